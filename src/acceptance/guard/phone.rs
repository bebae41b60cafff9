//! Finding international phone numbers.

use std::{collections::BTreeSet, sync::LazyLock};

/// The digits that a number of E.164 has.
const DIGITS: std::ops::RangeInclusive<usize> = 8..=15;

/// Separators that may stand together inside one number.
const GAP: usize = 4;

/// Shapes that are made of digits and hyphens and are no phone numbers: a UUID, a `traceparent`, an RFC 3339 instant.
static SHAPES: LazyLock<regex::Regex> = LazyLock::new(|| {
    regex::Regex::new(concat!(
        r"(?i)\b[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}\b",
        r"|\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b",
        r"|\b[0-9]{4}-[0-9]{2}-[0-9]{2}[tT ][0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]+)?)?(?:z|[+-][0-9]{2}:?[0-9]{2})?\b",
    ))
    .expect("a constant pattern, compiled in every test")
});

/// Stands where something that is known to be no number was: no digit, no letter, no separator.
const MASK: &str = "\u{1}";

/// The digits of a number of an allow-list, without its international prefix.
pub(super) fn digits_of(text: &str) -> Option<String> {
    let digits: String = text.chars().filter(char::is_ascii_digit).collect();
    let digits = if text.trim_start().starts_with('+') {
        &digits[..]
    } else {
        digits.strip_prefix("00").unwrap_or(&digits)
    };
    DIGITS.contains(&digits.len()).then(|| digits.to_owned())
}

/// Whether a text holds a number that is not allowed. `ours` are texts of our own, which hold none.
pub(super) fn has_foreign(text: &str, allowed: &BTreeSet<String>, ours: &[String]) -> bool {
    let masked = ours.iter().fold(text.to_owned(), |text, own| text.replace(own.as_str(), MASK));
    let chars: Vec<char> = SHAPES.replace_all(&masked, MASK).chars().collect();
    let mut n = 0;
    while n < chars.len() {
        n = match start_of_number(&chars, n) {
            None => n + 1,
            Some((start, has_plus)) => {
                let ends = read(&chars, start, has_plus);
                match ends.iter().find(|end| allowed.contains(&end.digits) && end.is_final) {
                    Some(end) => end.at,
                    None if ends.iter().any(|end| DIGITS.contains(&end.digits.len())) => return true,
                    None => n + 1,
                }
            }
        };
    }
    false
}

/// Where the digits of a number begin whose prefix stands at `n`, and whether the prefix is a plus sign.
fn start_of_number(chars: &[char], n: usize) -> Option<(usize, bool)> {
    if chars[n] == '+' {
        return Some((n + 1, true));
    }
    let before = |back: usize| n.checked_sub(back).map(|n| chars[n]);
    // `00` inside a word, a hexadecimal number, a decimal fraction or a time of day is no prefix.
    let is_inside = before(1).is_some_and(char::is_alphanumeric)
        || (before(1).is_some_and(|c| ".,:".contains(c)) && before(2).is_some_and(|c| c.is_ascii_digit()));
    (chars[n..].starts_with(&['0', '0']) && !is_inside).then_some((n + 2, false))
}

/// One place where a number may end.
struct End {
    at: usize,
    digits: String,
    /// Whether what follows cannot be a further part of the same number.
    is_final: bool,
}

/// Reads groups of digits with separators between them, and gives the end of each group.
fn read(chars: &[char], start: usize, has_plus: bool) -> Vec<End> {
    let (mut ends, mut digits, mut at) = (Vec::<End>::new(), String::new(), start);
    loop {
        let gap = gap(&chars[at..]);
        let group = chars[at + gap..].iter().take_while(|c| c.is_ascii_digit()).count();
        if group == 0 {
            break;
        }
        if let Some(previous) = ends.last_mut() {
            previous.is_final = gap > 1;
        }
        let end = at + gap + group;
        digits.extend(&chars[at + gap..end]);
        let follows_letter = chars.get(end).is_some_and(|c| c.is_alphanumeric());
        let is_padded = digits.starts_with('0');
        if !has_plus && (follows_letter || is_padded) {
            break;
        }
        ends.push(End { at: end, digits: digits.clone(), is_final: true });
        at = end;
        if digits.len() > *DIGITS.end() {
            break;
        }
    }
    ends
}

/// How many separators stand at the start.
fn gap(chars: &[char]) -> usize {
    if chars.first() == Some(&'+') {
        // A space of a form, between two groups. A second plus sign after a space begins a new number.
        return usize::from(chars.get(1).is_some_and(char::is_ascii_digit));
    }
    let is_separator = |c: char| {
        matches!(c, '-' | '.' | '(' | ')' | '/' | '\u{2010}'..='\u{2015}' | '\u{2212}' | '\u{b7}')
            || (c.is_whitespace() && !matches!(c, '\n' | '\r'))
    };
    let count = chars.iter().take_while(|c| is_separator(**c)).count();
    if count > GAP { 0 } else { count }
}

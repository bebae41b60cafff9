//! Finding mail addresses.

use std::collections::BTreeSet;

/// Separators of forms and paths, after which an address may begin, although they could belong to one.
const SEPARATORS: [char; 8] = ['=', '&', '/', '?', '\'', '`', '|', '{'];

/// An address as it is compared: lower case, the domain in its ASCII form.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Address {
    local: String,
    domain: String,
}

impl Address {
    /// An address of an allow-list, if it is one.
    pub fn of(text: &str) -> Option<Self> {
        let (local, domain) = text.trim().rsplit_once('@')?;
        (!local.is_empty() && !domain.is_empty())
            .then(|| Self { local: local.to_lowercase(), domain: ascii_domain(domain) })
    }
}

/// The domain as it goes over the wire: an internationalised name has two spellings and one meaning.
fn ascii_domain(domain: &str) -> String {
    reqwest::Url::parse(&format!("http://{domain}/"))
        .ok()
        .and_then(|url| url.host_str().map(str::to_owned))
        .unwrap_or_else(|| domain.to_lowercase())
}

fn is_local(c: char) -> bool {
    is_word(c) || ".!#$%&'*+-/=?^_`{|}~".contains(c)
}

fn is_domain(c: char) -> bool {
    is_word(c) || matches!(c, '.' | '-' | '_')
}

/// Letters, digits, and whatever else is not ASCII, such as marks and pictures; but no punctuation and no space.
fn is_word(c: char) -> bool {
    let is_foreign_punctuation = matches!(c, '\u{80}'..='\u{bf}' | '\u{2000}'..='\u{206f}' | '\u{3000}'..='\u{303f}')
        || c.is_whitespace();
    c.is_alphanumeric() || (!c.is_ascii() && !is_foreign_punctuation)
}

/// Whether a text holds an address that is not allowed.
pub(super) fn has_foreign(text: &str, allowed: &BTreeSet<Address>) -> bool {
    text.match_indices('@').any(|(at, _)| {
        let (before, after) = (&text[..at], &text[at + 1..]);
        let Some(domain) = domain_of(after) else { return false };
        let start = before.char_indices().rev().take_while(|(_, c)| is_local(*c)).last().map(|(n, _)| n);
        let is_foreign = |start| !allowed.iter().any(|one| is_this(one, before, start, domain));
        match start {
            Some(start) => is_foreign(start),
            // `"any thing"@domain` and `name(comment)@domain` are addresses as well.
            None if before.ends_with('"') => {
                quoted_local(&before[..at - 1]).is_some_and(|length| is_foreign(at - 2 - length))
            }
            None => before.ends_with(')'),
        }
    })
}

/// The length of the quoted local part that ends `before`, without its quotation marks.
fn quoted_local(before: &str) -> Option<usize> {
    let inner = &before[before.rfind('"')? + 1..];
    // In JSON it is what stands between two strings, and the at sign begins the second one.
    let is_structure = inner.trim_start().starts_with([',', ':', ']', '}'])
        && inner.trim_end().ends_with([',', ':', '{', '[']);
    (!inner.is_empty() && !is_structure).then_some(inner.len())
}

/// The domain at the start of a text, if one is there.
fn domain_of(text: &str) -> Option<&str> {
    let end = if text.starts_with('[') {
        text.find(']').map_or(text.len(), |n| n + 1)
    } else {
        text.find(|c| !is_domain(c)).unwrap_or(text.len())
    };
    let domain = text[..end].trim_end_matches(['.', '-']);
    (!domain.is_empty()).then_some(domain)
}

/// Whether the local part that ends `before`, and begins no earlier than `start`, is that of this address.
fn is_this(one: &Address, before: &str, start: usize, domain: &str) -> bool {
    if ascii_domain(domain) != one.domain {
        return false;
    }
    let found = before[start..].to_lowercase();
    let Some(left) = found.strip_suffix(&one.local) else { return false };
    left.is_empty() || left.ends_with(SEPARATORS)
}

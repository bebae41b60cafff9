//! Taking the wrappings off a text, one layer at a time, so that nothing hides in them.

/// Layers that are taken off at the most.
const LAYERS: usize = 8;

/// The text as it is, and as it is under each layer of percent-encoding, JSON or script escapes, and character references; each
/// folded, because a full-width percent sign may become a plain one on the way. Nothing when there are more layers than anybody writes by design.
pub(super) fn layers(text: &str) -> Option<Vec<String>> {
    let mut all = vec![folded(text)];
    for _ in 0..LAYERS {
        let last = all.last()?;
        let next = folded(&unwrapped(last));
        if next == *last {
            return Some(all);
        }
        all.push(next);
    }
    None
}

/// The text in the letters that the finders look for: full-width forms and foreign digits as ASCII, invisible characters gone.
pub(super) fn folded(text: &str) -> String {
    text.chars().filter(|c| !is_invisible(*c)).map(plain).collect()
}

fn is_invisible(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2064}' | '\u{2066}'..='\u{206f}' | '\u{feff}' | '\u{fe00}'..='\u{fe0f}')
}

fn plain(c: char) -> char {
    let digit = |zero: u32| char::from_digit(u32::from(c) - zero, 10).unwrap_or(c);
    match c {
        '\u{ff01}'..='\u{ff5e}' => char::from_u32(u32::from(c) - 0xfee0).unwrap_or(c),
        '\u{fe6b}' => '@',
        '\u{fe62}' | '\u{207a}' | '\u{208a}' => '+',
        '\u{3002}' | '\u{ff61}' | '\u{fe52}' => '.',
        '\u{660}'..='\u{669}' => digit(0x660),
        '\u{6f0}'..='\u{6f9}' => digit(0x6f0),
        '\u{966}'..='\u{96f}' => digit(0x966),
        '\u{9e6}'..='\u{9ef}' => digit(0x9e6),
        _ => c,
    }
}

/// One layer less.
fn unwrapped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let found = match c {
            '%' => percent(rest),
            '\\' => escape(rest),
            '&' => reference(rest),
            _ => None,
        };
        let (piece, length) = found.unwrap_or_else(|| (c.to_string(), c.len_utf8()));
        out.push_str(&piece);
        rest = &rest[length..];
    }
    out
}

fn hex(text: &str, digits: usize) -> Option<u32> {
    let part = text.get(..digits)?;
    part.bytes().all(|b| b.is_ascii_hexdigit()).then(|| u32::from_str_radix(part, 16).ok())?
}

/// A run of percent-encoded bytes, together: a character may take several.
fn percent(text: &str) -> Option<(String, usize)> {
    let mut bytes = Vec::new();
    while let Some(byte) =
        text.get(bytes.len() * 3..).and_then(|t| t.strip_prefix('%')).and_then(|t| hex(t, 2))
    {
        bytes.push(u8::try_from(byte).ok()?);
    }
    (!bytes.is_empty()).then(|| (String::from_utf8_lossy(&bytes).into_owned(), bytes.len() * 3))
}

/// An escape of JSON or of a script.
fn escape(text: &str) -> Option<(String, usize)> {
    let c = text.chars().nth(1)?;
    let simple = match c {
        '"' | '\\' | '/' | '\'' => c,
        'n' => '\n',
        'r' => '\r',
        't' => '\t',
        'b' | 'f' => ' ',
        'x' => return one(hex(text.get(2..)?, 2)?, 4),
        'u' if text[2..].starts_with('{') => {
            let end = text.bytes().take(12).position(|b| b == b'}')?;
            return one(hex(&text[3..end], end - 3)?, end + 1);
        }
        'u' => {
            let unit = hex(text.get(2..)?, 4)?;
            let second = text.get(6..).and_then(|t| t.strip_prefix("\\u")).and_then(|t| hex(t, 4));
            return match (unit, second) {
                (0xd800..0xdc00, Some(low @ 0xdc00..0xe000)) => {
                    one(0x10000 + ((unit - 0xd800) << 10) + (low - 0xdc00), 12)
                }
                _ => one(unit, 6),
            };
        }
        _ => return None,
    };
    Some((simple.to_string(), 1 + c.len_utf8()))
}

fn one(code: u32, length: usize) -> Option<(String, usize)> {
    Some((char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER).to_string(), length))
}

/// The named character references that stand for what an address or a number is written with.
const NAMED: [(&str, char); 22] = [
    ("commat", '@'),
    ("period", '.'),
    ("plus", '+'),
    ("hyphen", '-'),
    ("dash", '-'),
    ("lowbar", '_'),
    ("lpar", '('),
    ("rpar", ')'),
    ("sol", '/'),
    ("colon", ':'),
    ("equals", '='),
    ("num", '#'),
    ("percnt", '%'),
    ("bsol", '\\'),
    ("nbsp", ' '),
    ("Tab", '\t'),
    ("shy", '\u{ad}'),
    ("amp", '&'),
    ("quot", '"'),
    ("apos", '\''),
    ("lt", '<'),
    ("gt", '>'),
];

/// A character reference of HTML. The semicolon of a numeric one may be missing, as browsers have it.
fn reference(text: &str) -> Option<(String, usize)> {
    if let Some(number) = text.strip_prefix("&#") {
        let (radix, start) = if number.starts_with(['x', 'X']) { (16, 3) } else { (10, 2) };
        let digits = text.get(start..)?;
        let count = digits.chars().take_while(|c| c.is_digit(radix)).count();
        let code = u32::from_str_radix(digits.get(..count)?, radix).ok()?;
        let end = start + count + usize::from(digits[count..].starts_with(';'));
        return one(code, end);
    }
    NAMED.iter().find_map(|(name, c)| {
        text[1..].strip_prefix(name)?.strip_prefix(';').map(|_| (c.to_string(), name.len() + 2))
    })
}

//! Words, quotes, comments and casts of SQL, each from where it begins.

use super::ListType;

/// Whether a word begins here.
pub fn starts_word(text: &str) -> bool {
    text.starts_with(|c: char| c == '_' || c.is_alphabetic())
}

/// The word from here: a `$` belongs to it when it isn't the first character, so `a$b$` opens no dollar quote.
pub fn word_of(text: &str) -> &str {
    let end = text.find(|c: char| !(c == '_' || c == '$' || c.is_alphanumeric())).unwrap_or(text.len());
    &text[..end]
}

/// The length of a quoted text whose opening quote is at `open`: a doubled quote stays inside, and so does one after a backslash
/// where those escape.
pub fn until_quote(text: &str, open: usize, quote: char, backslash: bool) -> Option<usize> {
    let mut chars = text.char_indices().skip(open + 1).peekable();
    while let Some((at, c)) = chars.next() {
        if backslash && c == '\\' {
            chars.next();
        } else if c == quote && chars.next_if(|(_, next)| *next == quote).is_none() {
            return Some(at + c.len_utf8());
        }
    }
    None
}

/// The length of the comment that begins here; nothing where it has no end.
pub fn comment_length(text: &str, nested: bool) -> Option<usize> {
    let (mut depth, mut at) = (0usize, 0usize);
    while at < text.len() {
        let rest = &text.as_bytes()[at..];
        if rest.starts_with(b"/*") && (nested || depth == 0) {
            depth += 1;
            at += 2;
        } else if rest.starts_with(b"*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return Some(at);
            }
        } else {
            at += 1;
        }
    }
    None
}

/// `$$` or `$word$`, where the text begins with one.
pub fn dollar_tag(text: &str) -> Option<&str> {
    let inner = text.strip_prefix('$')?;
    let length = inner.find(|c: char| !(c == '_' || c.is_alphanumeric())).unwrap_or(inner.len());
    let is_tag = inner[length..].starts_with('$') && !inner.starts_with(|c: char| c.is_ascii_digit());
    is_tag.then(|| &text[..length + 2])
}

/// The type that a parameter is cast to right behind it.
pub fn list_type(text: &str) -> Option<ListType> {
    let cast = text.trim_start().strip_prefix("::")?.trim_start();
    let word = word_of(cast);
    cast[word.len()..].trim_start().strip_prefix('[')?.trim_start().strip_prefix(']')?;
    match word.to_ascii_lowercase().as_str() {
        "uuid" => Some(ListType::Uuid),
        "bigint" | "int8" => Some(ListType::Integer(8)),
        "integer" | "int" | "int4" => Some(ListType::Integer(4)),
        "smallint" | "int2" => Some(ListType::Integer(2)),
        _ => None,
    }
}

/// The first word of the type that a parameter is cast to right behind it; both spellings of a time with a zone are one.
pub fn cast(text: &str) -> Option<String> {
    let cast = text.trim_start().strip_prefix("::")?.trim_start();
    let word = word_of(cast).to_ascii_lowercase();
    let next = word_of(cast[word.len()..].trim_start()).to_ascii_lowercase();
    Some(if word == "timestamp" && next == "with" { "timestamptz".into() } else { word })
}

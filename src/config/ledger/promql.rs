//! The placeholders of a PromQL query: a word behind a colon, past strings and comments.

/// A part of a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Piece<'a> {
    /// What goes as it is.
    Text(&'a str),
    /// The name of a placeholder, without its colon.
    Placeholder(&'a str),
}

/// The placeholders that there are.
pub const PLACEHOLDERS: [&str; 3] = ["from", "until", "range"];

/// The parts of a query, in their order. A colon inside of a name, such as that of a recording rule, and one in a subquery begin no placeholder.
pub fn pieces(query: &str) -> Vec<Piece<'_>> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let (mut pieces, mut text_from, mut at) = (Vec::new(), 0, 0);
    let mut before = None;
    while let Some(next) = query[at..].chars().next() {
        let rest = &query[at..];
        let opaque = match next {
            '"' | '\'' => string_length(rest, next, true),
            '`' => string_length(rest, next, false),
            '#' => rest.find('\n').unwrap_or(rest.len()),
            _ => 0,
        };
        let name = rest.strip_prefix(':').and_then(|name| name.split(|c| !is_word(c)).next()).unwrap_or("");
        let begins = name.starts_with(|c: char| c.is_ascii_alphabetic())
            && !before.is_some_and(|c| is_word(c) || c == ':');
        if opaque > 0 {
            at += opaque;
        } else if begins {
            pieces.push(Piece::Text(&query[text_from..at]));
            pieces.push(Piece::Placeholder(name));
            at += 1 + name.len();
            text_from = at;
        } else {
            at += next.len_utf8();
        }
        before = query[..at].chars().next_back();
    }
    pieces.push(Piece::Text(&query[text_from..]));
    pieces
}

/// The bytes of the string that starts here, to the end where it has none.
fn string_length(text: &str, quote: char, escapes: bool) -> usize {
    let mut is_escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            c if c == quote && !is_escaped => return at + c.len_utf8(),
            '\\' if escapes => is_escaped = !is_escaped,
            _ => is_escaped = false,
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(query: &str) -> Vec<&str> {
        let names = pieces(query).into_iter().filter_map(|piece| match piece {
            Piece::Placeholder(name) => Some(name),
            Piece::Text(_) => None,
        });
        names.collect()
    }

    #[test]
    fn placeholders_are_found_past_all_other_colons() {
        let query = "sum by (route) (job:accepted:total{a=\":from\", b='\\':until', c=`:range\\`} @ :until - x[1h:5m] offset 5m) # :from\n - y @:from";
        assert_eq!(names(query), ["until", "from"]);
        let whole: String = pieces(query)
            .iter()
            .map(|piece| match piece {
                Piece::Text(text) => (*text).to_owned(),
                Piece::Placeholder(name) => format!(":{name}"),
            })
            .collect();
        assert_eq!(whole, query);
        assert_eq!(names("increase(x[:range] @ :form)"), ["range", "form"]);
        assert_eq!(names("a:from + b::until"), [""; 0]);
        assert_eq!(names("\"open :from"), [""; 0]);
        assert_eq!(names("é:from"), ["from"]);
        assert_eq!(names(":"), [""; 0]);
    }
}

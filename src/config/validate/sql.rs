//! A first look at the SQL of a ledger: its parameters, and whether it is one statement.
//!
//! Only what is the same in all dialects; the ledger's adapter reads it exactly.

mod writes;

use std::collections::BTreeSet;
use writes::Token;

/// What a look at the SQL shows.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Seen {
    /// The names behind a colon.
    pub parameters: BTreeSet<String>,
    /// Whether something stands behind a semicolon.
    pub several: bool,
    /// The first word, in lower case.
    pub verb: String,
    /// The verb of a part or of the end of a `with` that changes rows, in lower case.
    pub change: Option<String>,
}

/// Looks at SQL, past strings, quoted names, comments and casts.
pub(super) fn look(sql: &str) -> Seen {
    look_in(sql, false)
}

/// Looks at SQL of MySQL and MariaDB, which have comments by `#` and backslashes that escape.
pub(super) fn look_mysql(sql: &str) -> Seen {
    look_in(sql, true)
}

fn look_in(sql: &str, is_mysql: bool) -> Seen {
    let (mut seen, mut ended, mut rest) = (Seen::default(), false, sql);
    let mut tokens = Vec::new();
    while let Some(c) = rest.chars().next() {
        if let Some(skipped) = quoted(rest, is_mysql) {
            // A comment may stand behind the last semicolon, a string may not.
            let is_string = matches!(c, '\'' | '"' | '`' | '$');
            seen.several |= ended && is_string;
            tokens.extend(is_string.then_some(Token::Quoted));
            rest = &rest[skipped..];
            continue;
        }
        let word = rest[c.len_utf8()..].chars().take_while(|c| c.is_alphanumeric() || *c == '_');
        let length = c.len_utf8() + word.map(char::len_utf8).sum::<usize>();
        seen.several |= ended && !c.is_whitespace() && c != ';';
        if rest.starts_with("::") {
            tokens.push(Token::Other);
            rest = &rest[2..];
        } else if c == ':' && length > 1 {
            seen.parameters.insert(rest[1..length].to_owned());
            tokens.push(Token::Other);
            rest = &rest[length..];
        } else if c.is_alphabetic() || c == '_' {
            if seen.verb.is_empty() {
                seen.verb = rest[..length].to_lowercase();
            }
            tokens.push(Token::Word(&rest[..length]));
            rest = &rest[length..];
        } else {
            ended |= c == ';';
            tokens.extend(match c {
                '(' => Some(Token::Open),
                ')' => Some(Token::Close),
                c => (!c.is_whitespace()).then_some(Token::Other),
            });
            rest = &rest[c.len_utf8()..];
        }
    }
    seen.change = writes::verb_of_change(&tokens);
    seen
}

/// The bytes of the string, quoted name or comment that starts here.
fn quoted(text: &str, is_mysql: bool) -> Option<usize> {
    let until = |opened: usize, end: &str| {
        Some(text[opened..].find(end).map_or(text.len(), |at| opened + at + end.len()))
    };
    let escaped = |quote: u8| {
        let mut bytes = text.bytes().enumerate().skip(1);
        while let Some((at, byte)) = bytes.next() {
            match byte {
                b'\\' => drop(bytes.next()),
                byte if byte == quote => return Some(at + 1),
                _ => {}
            }
        }
        Some(text.len())
    };
    match text.as_bytes() {
        [b'#', ..] if is_mysql => until(1, "\n"),
        [quote @ (b'\'' | b'"'), ..] if is_mysql => escaped(*quote),
        [b'$', ..] if is_mysql => None,
        [b'-', b'-', ..] => until(2, "\n"),
        [b'/', b'*', ..] => until(2, "*/"),
        // A doubled quote is two strings side by side, which is skipped alike.
        [b'\'', ..] => until(1, "'"),
        [b'"', ..] => until(1, "\""),
        [b'`', ..] => until(1, "`"),
        [b'$', ..] => {
            let end = text[1..].find('$')? + 2;
            let tag = &text[..end];
            let sound = tag[1..end - 1].chars().all(|c| c.is_alphanumeric() || c == '_')
                && !tag[1..].starts_with(|c: char| c.is_ascii_digit());
            if sound { until(end, tag) } else { None }
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_and_statements_are_seen_past_strings_and_comments() {
        let seen = look(
            "select x::text, ':no', \":no\", $t$ :no; $t$ -- :no;\n from y where a = any(:ids) /* ; */ limit :limit;",
        );
        assert_eq!(seen.parameters, BTreeSet::from(["ids".to_owned(), "limit".to_owned()]));
        assert!(!seen.several);
        assert_eq!(seen.verb, "select");
        assert!(look("select 1; delete from x").several);
        assert!(!look("select ';' ; -- the end\n ;").several);
        assert!(look("select 1; 'x'").several);
        assert_eq!(look("  /* x */ DELETE from y").verb, "delete");
        assert_eq!(look("select 'it''s :no', :yes").parameters.len(), 1);
        assert_eq!(look("'open"), Seen::default());
    }

    #[test]
    fn comments_and_strings_of_mysql_are_seen_past() {
        let seen = look_mysql(
            "select 'it\\'s :no', \"\\\":no\" # it's :no;\n from n where id in (:ids_as_bytes); # the end",
        );
        assert_eq!(seen.parameters, BTreeSet::from(["ids_as_bytes".to_owned()]));
        assert!(!seen.several);
        assert!(look_mysql("select 1; 'x'").several);
        assert_eq!(look_mysql("'\\"), Seen::default());
    }
}

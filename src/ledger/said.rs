//! What a database says of a failure, as far as it may be shown.

/// The message without what stands in quotes: an error about a value quotes the value that it stumbled over.
pub fn without_quoted(message: &str, quote: char) -> String {
    match (message.find(quote), message.rfind(quote)) {
        (Some(first), Some(last)) if first < last => {
            format!("{}{quote}…{quote}{}", &message[..first], &message[last + quote.len_utf8()..])
        }
        _ => message.to_owned(),
    }
}

/// Its first line, of a bounded length.
pub fn bounded(message: &str) -> String {
    let line = message.lines().next().unwrap_or_default();
    line.chars().take(300).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quoted_value_is_left_out() {
        for (quote, message, expected) in [
            (
                '"',
                "invalid input syntax for type uuid: \"to \"x\" a@b.example\"",
                "invalid input syntax for type uuid: \"…\"",
            ),
            ('\'', "Incorrect DATETIME value: 'to 'x' a@b.example'", "Incorrect DATETIME value: '…'"),
            ('"', "a \" b", "a \" b"),
            ('\'', "a ' b", "a ' b"),
        ] {
            assert_eq!(without_quoted(message, quote), expected);
        }
    }
}

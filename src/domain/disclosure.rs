//! What may be shown of an id that is somebody else's text. A service may make its ids of whom it writes to; recipients are never
//! shown, so of such an id there is a digest.

use sha2::{Digest, Sha256};
use std::borrow::Cow;

/// How many hexadecimal digits of the SHA-256 stand for an id. Enough to find it again among those that one has; too few to find
/// out a number by trying all there are.
const SHOWN_DIGITS: usize = 8;

/// How many digits an international phone number has.
const PHONE: std::ops::RangeInclusive<usize> = 8..=15;

/// An id as it may be shown: itself, or `masked:sha256:` and the first 8 hexadecimal digits of its SHA-256 where it looks like a mail
/// address or an international phone number. A number without a plus sign is an id.
pub fn shown(id: &str) -> Cow<'_, str> {
    if !looks_like_a_recipient(id) {
        return Cow::Borrowed(id);
    }
    let digest = hex::encode(Sha256::digest(id.as_bytes()));
    Cow::Owned(format!("masked:sha256:{}", &digest[..SHOWN_DIGITS]))
}

/// Whether an id holds a mail address or an international phone number, percent-encoded or not.
pub fn looks_like_a_recipient(id: &str) -> bool {
    let plain = id.replace("%40", "@").replace("%2B", "+").replace("%2b", "+");
    plain.contains('@') || plain.split('+').skip(1).any(starts_with_a_number)
}

/// Whether digits, with what people write between them, are as many as those of a phone number.
fn starts_with_a_number(text: &str) -> bool {
    let number = text.chars().take_while(|c| c.is_ascii_digit() || " -.()".contains(*c));
    PHONE.contains(&number.filter(char::is_ascii_digit).count())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_shown_and_recipients_are_not() {
        for id in [
            "",
            "n-1",
            "15005550006",
            "0192f1c2-7f4e-7abc-8def-0123456789ab",
            "2026-09-21T14:13:20+00:00",
            "+1234567",
            "+1234567890123456",
            "a+b",
            "bm90aWZpY2F0aW9u+12=",
        ] {
            assert_eq!(shown(id), id);
        }
        for id in [
            "somebody@example.com",
            "n-1:somebody%40example.com",
            "@",
            "+15005550006",
            "sms:+1 (500) 555-0006",
            "sms/%2B15005550006/3",
            "+49.30.1234567",
        ] {
            let text = shown(id);
            assert!(text.starts_with("masked:sha256:") && text.len() == 22, "{id}: {text}");
            assert_eq!(shown(id), text, "one id, one digest");
        }
        assert_ne!(shown("a@example.com"), shown("b@example.com"));
    }

    #[test]
    fn a_masked_id_is_found_by_the_digest_that_anybody_can_make() {
        // printf %s somebody@example.com | sha256sum
        let digest = hex::encode(Sha256::digest(b"somebody@example.com"));
        assert_eq!(shown("somebody@example.com"), format!("masked:sha256:{}", &digest[..8]));
    }
}

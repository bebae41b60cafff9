//! The non-customer guard: whatever a request names must stand on the route's allow-list. Pure.
//!
//! It reads a text as it is and under each layer of percent-encoding, JSON and script escapes and HTML character references,
//! with full-width forms and foreign digits as ASCII and invisible characters gone. It finds mail addresses, ASCII and
//! internationalised, and international numbers: `+` or `00` and 8 to 15 digits, written together or with spaces, hyphens, dots,
//! slashes or parentheses. It does not read base64, quoted-printable or national numbers.

mod decode;
mod mail;
mod phone;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

/// Why the guard stopped a request before it left.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum GuardReason {
    /// A mail address that is not on the route's allow-list.
    MailAddress,
    /// A phone number that is not on it.
    PhoneNumber,
    /// The request could not be made of its template, or not be read to its ground.
    Template,
}

impl GuardReason {
    /// All reasons.
    pub const ALL: [Self; 3] = [Self::MailAddress, Self::PhoneNumber, Self::Template];

    /// The word for it in labels and logs.
    pub const fn word(self) -> &'static str {
        match self {
            Self::MailAddress => "mail_address",
            Self::PhoneNumber => "phone_number",
            Self::Template => "template",
        }
    }
}

/// The guard of one request.
#[derive(Debug)]
pub struct Guard {
    exact: BTreeSet<String>,
    mails: BTreeSet<mail::Address>,
    phones: BTreeSet<String>,
    ours: Vec<String>,
}

impl Guard {
    /// A guard that lets through what is on the allow-list. `ours` are the ids, keys, tokens and times of the request: random
    /// digits in them are no phone numbers.
    pub fn new(allowed: &[String], ours: impl IntoIterator<Item = String>) -> Self {
        // Something short could tear a number apart that is not ours.
        const SHORTEST: usize = 16;
        Self {
            exact: allowed.iter().cloned().collect(),
            mails: allowed.iter().filter_map(|one| mail::Address::of(&decode::folded(one))).collect(),
            phones: allowed.iter().filter_map(|one| phone::digits_of(one)).collect(),
            ours: ours.into_iter().filter(|own| own.len() >= SHORTEST).collect(),
        }
    }

    /// Whether this recipient stands on the allow-list, letter by letter.
    pub fn recipient(&self, recipient: &str) -> Result<(), GuardReason> {
        if self.exact.contains(recipient) {
            Ok(())
        } else if recipient.contains('@') {
            Err(GuardReason::MailAddress)
        } else if phone::digits_of(recipient).is_some() {
            Err(GuardReason::PhoneNumber)
        } else {
            Err(GuardReason::Template)
        }
    }

    /// Looks through a text.
    pub fn text(&self, text: &str) -> Result<(), GuardReason> {
        let layers = decode::layers(text).ok_or(GuardReason::Template)?;
        // An at sign outlives every layer that is taken off, and only under the last one do the address's other letters all show.
        if layers.last().is_some_and(|last| mail::has_foreign(last, &self.mails)) {
            return Err(GuardReason::MailAddress);
        }
        // A number can be lengthened beyond recognition by what is taken off around it.
        if layers.iter().any(|layer| phone::has_foreign(layer, &self.phones, &self.ours)) {
            return Err(GuardReason::PhoneNumber);
        }
        Ok(())
    }

    /// Looks through a body: where it is JSON, through each of its strings by itself, those of keys among them.
    pub fn body(&self, body: &str) -> Result<(), GuardReason> {
        if serde_json::from_str::<serde::de::IgnoredAny>(body).is_err() {
            return self.text(body);
        }
        // The strings are cut out of the text, because a parsed value would keep the last of two equal keys only.
        let mut rest = body;
        while let Some(start) = rest.find('"') {
            let literal = &rest[start..start + literal_length(&rest[start..])];
            match serde_json::from_str::<String>(literal) {
                Ok(text) => self.text(&text)?,
                // A lone surrogate, mostly.
                Err(_) => self.text(literal)?,
            }
            rest = &rest[start + literal.len()..];
        }
        Ok(())
    }
}

/// The length of the string literal at the start of a JSON text, its quotation marks included.
fn literal_length(text: &str) -> usize {
    let mut escaped = false;
    for (n, byte) in text.bytes().enumerate().skip(1) {
        match byte {
            b'"' if !escaped => return n + 1,
            b'\\' => escaped = !escaped,
            _ => escaped = false,
        }
    }
    text.len()
}

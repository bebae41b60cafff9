//! What is to be delivered, and the limits on each of its parts.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::{
    collections::BTreeMap,
    net::{IpAddr, Ipv4Addr},
};

/// By what means a message travels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs)]
pub enum Channel {
    Email,
    Sms,
    Webhook,
    Push,
}

impl Channel {
    /// Its word in the ledger.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Email => "email",
            Self::Sms => "sms",
            Self::Webhook => "webhook",
            Self::Push => "push",
        }
    }
}

/// A message's content: all that is needed to deliver it. It is kept apart from the ledger's rows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Message {
    /// To whom.
    pub recipient: String,
    /// Which template.
    pub template: String,
    /// The amount, as it is to be read by the recipient.
    pub amount: String,
    /// By what means.
    pub channel: Channel,
    /// The service's word for the route.
    pub route: String,
    /// Where the webhook goes.
    pub callback_url: String,
    /// Whatever the sender wants to find again in the webhook.
    pub metadata: BTreeMap<String, Value>,
}

/// Which part of a message is wrong, and how it should be.
#[derive(Debug, thiserror::Error, PartialEq)]
#[error("`{field}` must be {should}")]
pub struct MessageError {
    /// The field.
    pub field: &'static str,
    /// What it must be.
    pub should: &'static str,
}

const fn wrong(field: &'static str, should: &'static str) -> MessageError {
    MessageError { field, should }
}

impl Message {
    /// Refuses what no message can be. `anywhere` lets callbacks leave the loopback interface.
    pub fn check(&self, anywhere: bool) -> Result<(), MessageError> {
        if self.recipient.is_empty() || self.recipient.len() > 320 {
            return Err(wrong("recipient", "1 to 320 bytes long"));
        }
        for (field, word) in [("template", &self.template), ("route", &self.route)] {
            if !is_word(word) {
                return Err(wrong(field, "1 to 64 letters, digits, `_`, `-` or `.`"));
            }
        }
        if self.amount.len() > 64 {
            return Err(wrong("amount", "at most 64 bytes long"));
        }
        if self.metadata.len() > 64 {
            return Err(wrong("metadata", "an object of at most 64 members"));
        }
        check_callback(&self.callback_url, anywhere)
    }

    /// Whether the sender marked it as a canary: `metadata.canary_id` is there.
    pub fn is_canary(&self) -> bool {
        self.metadata.get("canary_id").is_some_and(|id| !id.is_null())
    }

    /// Whether policy always suppresses this recipient: `suppressed-...`.
    pub fn is_suppressed_by_policy(&self) -> bool {
        self.recipient.starts_with("suppressed-")
    }

    /// Whether the provider always rejects this recipient: `rejected-...`.
    pub fn is_dead_recipient(&self) -> bool {
        self.recipient.starts_with("rejected-")
    }
}

fn is_word(word: &str) -> bool {
    (1..=64).contains(&word.len()) && word.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-.".contains(&b))
}

fn check_callback(url: &str, anywhere: bool) -> Result<(), MessageError> {
    let Some(url) = (url.len() <= 2_048).then(|| reqwest::Url::parse(url).ok()).flatten() else {
        return Err(wrong("callback_url", "a URL of at most 2048 bytes"));
    };
    if url.scheme() != "http" {
        return Err(wrong("callback_url", "a plain `http://` URL"));
    }
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
    let address = if host == "localhost" { Ok(Ipv4Addr::LOCALHOST.into()) } else { host.parse::<IpAddr>() };
    if anywhere || address.is_ok_and(|address| address.is_loopback()) {
        Ok(())
    } else {
        Err(wrong("callback_url", "on the loopback interface, unless the simulator may call anywhere"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn callbacks_stay_on_loopback_unless_allowed() {
        for url in ["http://127.0.0.1:1/a", "http://localhost/", "http://[::1]:9/x"] {
            assert_eq!(check_callback(url, false), Ok(()), "{url}");
        }
        for url in ["http://10.0.0.1/", "http://localhost.example.test/", "http://user@192.0.2.1/"] {
            assert!(check_callback(url, false).is_err(), "{url}");
            assert_eq!(check_callback(url, true), Ok(()), "{url}");
        }
        for url in ["https://127.0.0.1/", "ftp://127.0.0.1/", "/relative", ""] {
            assert!(check_callback(url, true).is_err(), "{url}");
        }
    }
}

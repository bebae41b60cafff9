//! What a service's own word for a status probably means. It is a guess, and marked as one.

use crate::config::ledger::Meaning;

/// Parts of words with what they mean. The first part that a word has decides: the rarer meanings come first.
const PARTS: [(&str, Meaning); 61] = [
    ("undeliver", Meaning::RejectedRecipient),
    ("not_deliver", Meaning::RejectedService),
    ("unsent", Meaning::Pending),
    ("not_sent", Meaning::Pending),
    ("unsubscri", Meaning::Suppressed),
    ("opted_out", Meaning::Suppressed),
    ("opt_out", Meaning::Suppressed),
    ("optout", Meaning::Suppressed),
    ("suppress", Meaning::Suppressed),
    ("skip", Meaning::Suppressed),
    ("muted", Meaning::Suppressed),
    ("blocked", Meaning::Suppressed),
    ("blacklist", Meaning::Suppressed),
    ("kept_back", Meaning::Suppressed),
    ("disabled", Meaning::Suppressed),
    ("cancel", Meaning::Suppressed),
    ("delet", Meaning::Suppressed),
    ("complain", Meaning::RejectedRecipient),
    ("soft_bounce", Meaning::Retryable),
    ("softbounce", Meaning::Retryable),
    ("bounce", Meaning::RejectedRecipient),
    ("bad_address", Meaning::RejectedRecipient),
    ("dead_address", Meaning::RejectedRecipient),
    ("invalid_recipient", Meaning::RejectedRecipient),
    ("invalid_number", Meaning::RejectedRecipient),
    ("invalid_address", Meaning::RejectedRecipient),
    ("no_such_user", Meaning::RejectedRecipient),
    ("unregistered", Meaning::RejectedRecipient),
    ("timed_out", Meaning::Unknown),
    ("timedout", Meaning::Unknown),
    ("timeout", Meaning::Unknown),
    ("unknown", Meaning::Unknown),
    ("handed", Meaning::Unknown),
    ("retr", Meaning::Retryable),
    ("again", Meaning::Retryable),
    ("temp", Meaning::Retryable),
    ("transient", Meaning::Retryable),
    ("defer", Meaning::Retryable),
    ("throttl", Meaning::Retryable),
    ("rate_limit", Meaning::Retryable),
    ("refus", Meaning::RejectedService),
    ("reject", Meaning::RejectedService),
    ("fail", Meaning::RejectedService),
    ("error", Meaning::RejectedService),
    ("given_up", Meaning::RejectedService),
    ("expired", Meaning::RejectedService),
    ("dropped", Meaning::RejectedService),
    ("abandon", Meaning::RejectedService),
    ("exhaust", Meaning::RejectedService),
    ("discard", Meaning::RejectedService),
    ("pending", Meaning::Pending),
    ("queue", Meaning::Pending),
    ("schedul", Meaning::Pending),
    ("process", Meaning::Pending),
    ("progress", Meaning::Pending),
    ("running", Meaning::Pending),
    ("sending", Meaning::Pending),
    ("waiting", Meaning::Pending),
    ("deliver", Meaning::Delivered),
    ("succe", Meaning::Delivered),
    ("complet", Meaning::Delivered),
];

/// Whole words with what they mean.
const WORDS: [(&str, Meaning); 16] = [
    ("sent", Meaning::Delivered),
    ("ok", Meaning::Delivered),
    ("done", Meaning::Delivered),
    ("accepted", Meaning::Delivered),
    ("opened", Meaning::Delivered),
    ("clicked", Meaning::Delivered),
    ("read", Meaning::Delivered),
    ("dead", Meaning::RejectedService),
    ("broken", Meaning::RejectedService),
    ("new", Meaning::Pending),
    ("created", Meaning::Pending),
    ("open", Meaning::Pending),
    ("ready", Meaning::Pending),
    ("initial", Meaning::Pending),
    ("null", Meaning::Pending),
    ("later", Meaning::Retryable),
];

/// What this word probably means; nothing where it says nothing to us.
pub fn of_word(word: &str) -> Option<Meaning> {
    let word = word.trim().to_lowercase().replace(['-', '.', ' '], "_");
    let whole = WORDS.iter().find(|(known, _)| *known == word);
    whole.or_else(|| PARTS.iter().find(|(part, _)| word.contains(part))).map(|(_, meaning)| *meaning)
}

/// The word of the configuration for it.
pub const fn name(meaning: Meaning) -> &'static str {
    match meaning {
        Meaning::Delivered => "delivered",
        Meaning::Retryable => "retryable",
        Meaning::RejectedRecipient => "rejected_recipient",
        Meaning::RejectedService => "rejected_service",
        Meaning::Suppressed => "suppressed",
        Meaning::Pending => "pending",
        Meaning::Unknown => "unknown",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usual_words_are_understood_and_others_are_not() {
        for (word, meaning) in [
            ("delivered", Some(Meaning::Delivered)),
            ("UNDELIVERABLE", Some(Meaning::RejectedRecipient)),
            ("SENT", Some(Meaning::Delivered)),
            ("sending", Some(Meaning::Pending)),
            ("opted_out", Some(Meaning::Suppressed)),
            ("soft-bounce", Some(Meaning::Retryable)),
            ("hard_bounce", Some(Meaning::RejectedRecipient)),
            ("provider_refused", Some(Meaning::RejectedService)),
            ("timed_out", Some(Meaning::Unknown)),
            ("try_again", Some(Meaning::Retryable)),
            ("3", None),
            ("zork", None),
        ] {
            assert_eq!(of_word(word), meaning, "{word}");
        }
    }
}

//! What an answer, or its absence, means. Pure.

use super::error::BuildError;
use crate::{
    config::acceptance::{HttpAcceptance, JsonCondition},
    domain::{
        evidence::{AmbiguityReason, RefusalReason, SubmissionResult},
        route::NotificationId,
    },
};
use serde_json::Value;
use std::collections::BTreeSet;

/// Longest notification id that is taken, in bytes.
const ID_LIMIT: usize = 256;

/// How answers are read.
#[derive(Debug)]
pub(super) struct AnswerRules {
    accepted: BTreeSet<u16>,
    refused: BTreeSet<u16>,
    ask_ledger: BTreeSet<u16>,
    id: Option<String>,
    error_when: Vec<JsonCondition>,
}

/// The body of an answer, as far as it came.
#[derive(Debug)]
pub(super) enum AnswerBody<'a> {
    /// It was not read, because its status says all.
    Unread,
    /// All of it.
    Whole(&'a [u8]),
    /// It was beyond the limit.
    TooLarge,
    /// It did not come within the limit of time.
    TimedOut,
    /// The connection broke before its end.
    Broken,
}

/// Why there is no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NoAnswer {
    /// No connection came to be: nothing of the request left.
    NeverConnected,
    /// Nothing within the limit; the request may have left.
    TimedOut,
    /// The connection broke; the request may have left.
    Broken,
}

impl NoAnswer {
    /// What a client's error proves. Only a connector that failed is proof that nothing left: it ends, TLS handshake and its own
    /// timeout included, before the first byte of a request is written.
    pub fn of(error: &reqwest::Error) -> Self {
        if error.is_connect() {
            Self::NeverConnected
        } else if error.is_timeout() {
            Self::TimedOut
        } else {
            Self::Broken
        }
    }

    /// The result of the submission.
    pub const fn result(self) -> SubmissionResult {
        match self {
            Self::NeverConnected => refused(RefusalReason::Unreachable),
            Self::TimedOut => ambiguous(AmbiguityReason::Timeout),
            Self::Broken => ambiguous(AmbiguityReason::Broken),
        }
    }
}

const fn refused(reason: RefusalReason) -> SubmissionResult {
    SubmissionResult::Refused { reason }
}

const fn ambiguous(reason: AmbiguityReason) -> SubmissionResult {
    SubmissionResult::Ambiguous { reason }
}

impl AnswerRules {
    /// The rules of a configuration; each status in one list at the most, each pointer a pointer.
    pub fn new(config: &HttpAcceptance) -> Result<Self, BuildError> {
        let lists = [
            ("accepted.statuses", &config.accepted.statuses),
            ("refused_statuses", &config.refused_statuses),
            ("ask_ledger_statuses", &config.ask_ledger_statuses),
        ];
        for (n, (key, list)) in lists.iter().enumerate() {
            if let Some(&status) = list.iter().find(|s| !(200..600).contains(*s)) {
                return Err(BuildError::Status { key, status });
            }
            for (second, other) in &lists[n + 1..] {
                if let Some(&status) = list.iter().find(|s| other.contains(s)) {
                    return Err(BuildError::StatusTwice { first: key, second, status });
                }
            }
        }
        if config.accepted.statuses.is_empty() {
            return Err(BuildError::NothingAccepted);
        }
        let pointers = config.error_when.iter().map(|c| ("error_when", &c.pointer));
        for (key, pointer) in pointers.chain(config.accepted.id.iter().map(|id| ("accepted.id", id))) {
            if !pointer.starts_with('/') {
                return Err(BuildError::Pointer { key, pointer: pointer.clone() });
            }
        }
        Ok(Self {
            accepted: config.accepted.statuses.iter().copied().collect(),
            refused: config.refused_statuses.iter().copied().collect(),
            ask_ledger: config.ask_ledger_statuses.iter().copied().collect(),
            id: config.accepted.id.clone(),
            error_when: config.error_when.clone(),
        })
    }

    /// Whether the body of an answer of this status has to be read.
    pub fn needs_body(&self, status: u16) -> bool {
        self.accepted.contains(&status) && (self.id.is_some() || !self.error_when.is_empty())
    }

    /// What an answer means.
    pub fn judge(&self, status: u16, body: &AnswerBody) -> SubmissionResult {
        if self.refused.contains(&status) {
            return refused(RefusalReason::Status);
        }
        if self.ask_ledger.contains(&status) {
            return ambiguous(AmbiguityReason::AskLedger);
        }
        if !self.accepted.contains(&status) {
            return ambiguous(AmbiguityReason::Status);
        }
        if !self.needs_body(status) {
            return SubmissionResult::Accepted { notification_id: None };
        }
        let bytes = match body {
            AnswerBody::Whole(bytes) => bytes,
            AnswerBody::TimedOut => return ambiguous(AmbiguityReason::Timeout),
            AnswerBody::Broken => return ambiguous(AmbiguityReason::Broken),
            AnswerBody::TooLarge | AnswerBody::Unread => return ambiguous(AmbiguityReason::Answer),
        };
        let Ok(answer) = serde_json::from_slice::<Value>(bytes) else {
            return ambiguous(AmbiguityReason::Answer);
        };
        if self.error_when.iter().any(|condition| holds(condition, &answer)) {
            return refused(RefusalReason::ErrorInAnswer);
        }
        let Some(pointer) = &self.id else {
            return SubmissionResult::Accepted { notification_id: None };
        };
        match answer.pointer(pointer).and_then(notification_id) {
            Some(id) => SubmissionResult::Accepted { notification_id: Some(id) },
            None => ambiguous(AmbiguityReason::Answer),
        }
    }
}

fn holds(condition: &JsonCondition, answer: &Value) -> bool {
    match (answer.pointer(&condition.pointer), &condition.equals) {
        (Some(found), Some(wanted)) => found == wanted,
        (Some(found), None) => !found.is_null(),
        (None, _) => false,
    }
}

/// A string or a whole number of visible ASCII characters, not longer than the limit.
fn notification_id(value: &Value) -> Option<NotificationId> {
    let text = match value {
        Value::String(text) => text.clone(),
        // A number that the reader had to round is not the service's id.
        Value::Number(number) if number.is_u64() || number.is_i64() => number.to_string(),
        _ => return None,
    };
    let is_fit = (1..=ID_LIMIT).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_graphic());
    is_fit.then(|| NotificationId::from_text(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rules of a configuration with these keys, given as JSON, besides the address.
    fn rules(more: &str) -> Result<AnswerRules, BuildError> {
        let comma = if more.is_empty() { "" } else { "," };
        let config = format!(r#"{{"url": "http://localhost/"{comma}{more}}}"#);
        AnswerRules::new(&serde_json::from_str(&config).unwrap())
    }

    fn word(result: &SubmissionResult) -> String {
        match result {
            SubmissionResult::Accepted { notification_id } => {
                format!("accepted {}", notification_id.as_ref().map_or("-", |id| id.as_str()))
            }
            SubmissionResult::Refused { reason } => format!("refused {reason:?}"),
            SubmissionResult::Ambiguous { reason } => format!("ambiguous {reason:?}"),
        }
    }

    #[test]
    fn every_answer_has_its_meaning() {
        let with_id = r#""accepted": {"id": "/data/id"}, "error_when": [{"pointer": "/error"}, {"pointer": "/state", "equals": "failed"}]"#;
        let only_errors = r#""error_when": [{"pointer": "/error"}]"#;
        let long = format!(r#"{{"data":{{"id":"{}"}}}}"#, "x".repeat(257));
        let fitting = format!(r#"{{"data":{{"id":"{}"}}}}"#, "x".repeat(256));
        let fitted = format!("accepted {}", "x".repeat(256));
        let table: &[(&str, u16, &str, &str)] = &[
            ("", 200, "", "accepted -"),
            ("", 202, "not json", "accepted -"),
            ("", 204, "", "ambiguous Status"),
            ("", 301, "", "ambiguous Status"),
            ("", 101, "", "ambiguous Status"),
            ("", 400, "", "refused Status"),
            ("", 429, "", "refused Status"),
            ("", 408, "", "ambiguous Status"),
            ("", 409, "", "ambiguous AskLedger"),
            ("", 500, "", "ambiguous Status"),
            ("", 502, "", "ambiguous Status"),
            ("", 504, "", "ambiguous Status"),
            (r#""refused_statuses": [503]"#, 503, "", "refused Status"),
            (with_id, 202, r#"{"data":{"id":"n-1"}}"#, "accepted n-1"),
            (with_id, 202, r#"{"data":{"id":42}}"#, "accepted 42"),
            (with_id, 202, r#"{"data":{"id":-7}}"#, "accepted -7"),
            (with_id, 202, r#"{"data":{"id":18446744073709551615}}"#, "accepted 18446744073709551615"),
            (with_id, 202, r#"{"data":{"id":18446744073709551616}}"#, "ambiguous Answer"),
            (with_id, 202, r#"{"data":{"id":1.5}}"#, "ambiguous Answer"),
            (with_id, 202, r#"{"data":{"id":null}}"#, "ambiguous Answer"),
            (with_id, 202, r#"{"data":{"id":true}}"#, "ambiguous Answer"),
            (with_id, 202, r#"{"data":{"id":""}}"#, "ambiguous Answer"),
            (with_id, 202, r#"{"data":{"id":"a b"}}"#, "ambiguous Answer"),
            (with_id, 202, r#"{"data":{"id":"a\nb"}}"#, "ambiguous Answer"),
            (with_id, 202, &fitting, &fitted),
            (with_id, 202, &long, "ambiguous Answer"),
            (with_id, 202, r#"{"data":{}}"#, "ambiguous Answer"),
            (with_id, 202, "", "ambiguous Answer"),
            (with_id, 202, r#"{"data":{"id":"n-1"}"#, "ambiguous Answer"),
            (with_id, 202, r#"{"data":{"id":"n-1"},"error":{"code":3}}"#, "refused ErrorInAnswer"),
            (with_id, 202, r#"{"data":{"id":"n-1"},"error":null}"#, "accepted n-1"),
            (with_id, 202, r#"{"data":{"id":"n-1"},"error":false}"#, "refused ErrorInAnswer"),
            (with_id, 202, r#"{"data":{"id":"n-1"},"state":"failed"}"#, "refused ErrorInAnswer"),
            (with_id, 202, r#"{"data":{"id":"n-1"},"state":"done"}"#, "accepted n-1"),
            (with_id, 409, r#"{"data":{"id":"n-1"}}"#, "ambiguous AskLedger"),
            (with_id, 500, r#"{"data":{"id":"n-1"}}"#, "ambiguous Status"),
            (only_errors, 200, "{}", "accepted -"),
            (only_errors, 200, "<html>", "ambiguous Answer"),
            (only_errors, 200, r#"{"error":"no"}"#, "refused ErrorInAnswer"),
        ];
        for (keys, status, body, expected) in table {
            let found = rules(keys).unwrap().judge(*status, &AnswerBody::Whole(body.as_bytes()));
            assert_eq!(word(&found), *expected, "{status} {body} under {keys}");
        }
    }

    #[test]
    fn an_answer_that_did_not_come_whole_is_ambiguous_only_where_it_is_needed() {
        let needed = rules(r#""accepted": {"id": "/id"}"#).unwrap();
        let bodies = [
            (AnswerBody::TimedOut, "ambiguous Timeout"),
            (AnswerBody::Broken, "ambiguous Broken"),
            (AnswerBody::TooLarge, "ambiguous Answer"),
            (AnswerBody::Unread, "ambiguous Answer"),
        ];
        for (body, expected) in &bodies {
            assert_eq!(word(&needed.judge(200, body)), *expected);
            assert_eq!(word(&needed.judge(422, body)), "refused Status");
            assert_eq!(word(&rules("").unwrap().judge(200, body)), "accepted -");
        }
        assert!(needed.needs_body(200) && !needed.needs_body(422) && !needed.needs_body(500));
    }

    #[test]
    fn rules_that_contradict_themselves_are_refused() {
        for (keys, expected) in [
            (r#""refused_statuses": [409]"#, "`ask_ledger_statuses` both list status 409"),
            (r#""refused_statuses": [202]"#, "`accepted.statuses` and `refused_statuses`"),
            (r#""refused_statuses": [99]"#, "`refused_statuses`: 99"),
            (r#""accepted": {"statuses": []}"#, "`accepted.statuses` is empty"),
            (r#""accepted": {"id": "id"}"#, "`accepted.id`: `id`"),
            (r#""error_when": [{"pointer": "error"}]"#, "`error_when`: `error`"),
        ] {
            let fault = rules(keys).unwrap_err().to_string();
            assert!(fault.contains(expected), "{fault}");
        }
    }
}

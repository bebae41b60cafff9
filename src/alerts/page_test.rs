//! One test page: what is posted to the Alertmanager, and what its answer says of whom it tells.
//!
//! It has the labels by which a real page finds its way. Its route and channel are of its own, so that it is grouped with nothing real and keeps no
//! real ticket quiet.

use super::catalog::{Audience, Severity};
use chrono::{DateTime, SecondsFormat, Utc};
use serde_json::{Value, json};

/// The name of the alert. No rule has it.
pub const NAME: &str = "CanaryPageTest";

/// A test page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageTest {
    /// The name of the monitored service.
    pub service: String,
    /// How urgent it is.
    pub severity: Severity,
    /// Who started it.
    pub owner: String,
    /// By what it is known again.
    pub id: String,
    /// When it begins.
    pub begins: DateTime<Utc>,
    /// When it ends by itself.
    pub ends: DateTime<Utc>,
}

/// What the Alertmanager makes of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// Whom it tells.
    pub receivers: Vec<String>,
    /// What keeps it quiet, in words; empty where nothing does.
    pub quiet: Vec<String>,
}

impl PageTest {
    /// The alert, in a list of one, as version 2 of the API takes it.
    pub fn body(&self) -> Value {
        let Self { service, severity, owner, id, .. } = self;
        let (begins, ends) = (stamp(self.begins), stamp(self.ends));
        // Of nothing real, and another for each urgency: a page keeps the tickets of its own route quiet.
        let nowhere = format!("{}-test", severity.word());
        json!([{
            "labels": {
                "alertname": NAME,
                "severity": severity.word(),
                "audience": Audience::Service.word(),
                "service": service,
                "route": nowhere,
                "channel": nowhere,
            },
            "annotations": {
                "summary": format!("This is a test of the way that a {} takes. Nothing is wrong.", severity.word()),
                "question": "Does a page reach somebody?",
                "description": format!(
                    "Started by {owner} at {begins} with `delivery-canary alerts page-test`. It ends by itself at {ends}."
                ),
                "first": "Nothing is to be done but to tell who started it that it came.",
                "started_by": owner,
                "test": id,
            },
            "startsAt": begins,
            "endsAt": ends,
        }])
    }

    /// The matchers by which the Alertmanager is asked for it.
    pub fn filters(&self) -> [String; 2] {
        [format!("alertname=\"{NAME}\""), format!("service=\"{}\"", self.service)]
    }

    /// What becomes of it, by a list of alerts. Nothing while it is not there, or not yet routed.
    pub fn seen(&self, listed: &Value) -> Option<Seen> {
        let ours = |alert: &&Value| {
            alert["annotations"]["test"] == self.id.as_str()
                && alert["labels"]["severity"] == self.severity.word()
        };
        let alert = listed.as_array()?.iter().find(ours)?;
        let status = &alert["status"];
        if status["state"] == "unprocessed" {
            return None;
        }
        let texts = |list: &Value, of: fn(&Value) -> Option<&str>| -> Vec<String> {
            list.as_array().into_iter().flatten().filter_map(of).map(str::to_owned).collect()
        };
        let mut quiet = Vec::new();
        for (key, words) in
            [("silencedBy", "silenced by"), ("inhibitedBy", "inhibited by"), ("mutedBy", "muted in")]
        {
            quiet.extend(texts(&status[key], Value::as_str).into_iter().map(|by| format!("{words} {by}")));
        }
        Some(Seen { receivers: texts(&alert["receivers"], |receiver| receiver["name"].as_str()), quiet })
    }
}

fn stamp(at: DateTime<Utc>) -> String {
    at.to_rfc3339_opts(SecondsFormat::Millis, true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::alerts::alertmanager::EQUAL;

    fn test() -> PageTest {
        PageTest {
            service: "notifications".into(),
            severity: Severity::Page,
            owner: "ops".into(),
            id: "one".into(),
            begins: DateTime::UNIX_EPOCH,
            ends: DateTime::from_timestamp(300, 0).expect("an instant"),
        }
    }

    fn listed(id: &str, status: Value) -> Value {
        json!([
            { "annotations": { "test": "another" }, "labels": { "severity": "page" }, "receivers": [{ "name": "x" }], "status": { "state": "active" } },
            { "annotations": { "test": id }, "labels": { "severity": "page" }, "receivers": [{ "name": "pager" }, { "name": "log" }], "status": status },
        ])
    }

    #[test]
    fn it_has_every_label_that_a_page_is_routed_by_and_says_what_it_is() {
        let body = test().body();
        let alert = &body[0];
        for label in EQUAL.into_iter().chain(["alertname", "severity", "audience"]) {
            assert!(alert["labels"][label].is_string(), "{label}");
        }
        assert_eq!(alert["endsAt"], "1970-01-01T00:05:00.000Z");
        let said = alert["annotations"].to_string();
        assert!(
            said.contains("a test") && said.contains("Started by ops") && said.contains("00:05:00"),
            "{said}"
        );
    }

    #[test]
    fn it_is_known_again_and_what_keeps_it_quiet_is_said() {
        let seen = |id, status| test().seen(&listed(id, status));
        assert_eq!(seen("two", json!({ "state": "active" })), None);
        assert_eq!(seen("one", json!({ "state": "unprocessed" })), None);
        assert_eq!(test().seen(&json!({ "error": "no list" })), None);
        let receivers = vec!["pager".to_owned(), "log".to_owned()];
        let active = json!({ "state": "active", "silencedBy": [], "inhibitedBy": [] });
        assert_eq!(seen("one", active), Some(Seen { receivers: receivers.clone(), quiet: Vec::new() }));
        let quiet =
            json!({ "state": "suppressed", "silencedBy": ["5f"], "inhibitedBy": [], "mutedBy": ["nights"] });
        let said = vec!["silenced by 5f".to_owned(), "muted in nights".to_owned()];
        assert_eq!(seen("one", quiet), Some(Seen { receivers, quiet: said }));
    }
}

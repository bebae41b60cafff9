//! The terminal event of a canary: one line, with the documented fields and no others.

use chrono::{DateTime, TimeDelta, Utc};
use delivery_canary::{
    config::model::{Log, LogFormat, LogLevel},
    domain::{
        canary::{Canary, CanaryKind, Event, Judgement, Plan},
        evidence::{AttemptFact, Content, LedgerRow, Receipt, Submission, SubmissionResult},
        failure_evidence::Weights,
        following::Stopped,
        outcome::{Disposition, Outcome},
        route::{CanaryId, Channel, IdempotencyKey, Location, NotificationId, RouteName},
        verdict::{Class, ExpectedEnd, Verdict},
    },
    exposition::logs,
    monitor::{
        evidence::Book,
        terminal::{Occasion, TerminalLine},
        turns::Turns,
    },
    store::Settled,
};
use serde_json::Value;
use std::{
    collections::BTreeSet,
    io,
    sync::{Arc, Mutex},
};
use tracing_subscriber::fmt::MakeWriter;

#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl io::Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Lines {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

fn written(log: &Log, work: impl FnOnce()) -> String {
    let lines = Lines::default();
    tracing::subscriber::with_default(logs::subscriber(log, lines.clone()), work);
    String::from_utf8(lines.0.lock().unwrap().clone()).unwrap()
}

fn instant(millis: i64) -> DateTime<Utc> {
    DateTime::from_timestamp_millis(1_790_000_000_000 + millis).unwrap()
}

/// A canary that went the whole way: accepted after 120 ms, tried at 40 ms by the ledger's clock, delivered, received; all after the first submission.
fn canary(attempt_ids: &[&str]) -> Canary {
    let route = RouteName::new(Channel::Webhook, "receipts");
    let location = Location::from_text("zurich");
    let plan = Plan {
        canary_id: CanaryId(uuid::Uuid::from_u128(7)),
        key: IdempotencyKey::derive(&route, &location, CanaryKind::Scheduled, instant(0)),
        route,
        location,
        kind: CanaryKind::Scheduled,
        slot: instant(0),
        planned_at: instant(0),
        deadline: TimeDelta::seconds(60),
        settle: TimeDelta::seconds(30),
        follow_for: TimeDelta::seconds(600),
        ledger_overlap: TimeDelta::seconds(10),
        expected_end: ExpectedEnd::Delivered,
        has_ledger: true,
        has_sink: true,
        traceparent: "00-0000000000000000000000000000007-0000000000000001-01".into(),
        parent: None,
    };
    let attempts = attempt_ids.iter().zip(0..).map(|(id, n)| AttemptFact {
        attempt_id: (*id).into(),
        outcome: if n == 0 { Outcome::Retryable } else { Outcome::Delivered },
        at: Some(instant(40 + 1_000 * n)),
        policy_version: (n > 0).then(|| "2026-11 (b)".into()),
    });
    let row = LedgerRow {
        notification_ids: BTreeSet::from([NotificationId::from_text("n-1")]),
        accepted_at: None,
        disposition: Disposition::Delivered,
        cause: None,
        attempts: attempts.collect(),
        has_policy_version: true,
    };
    let events = [
        Event::Submitted(Submission {
            way: None,
            ledger: None,
            started_at: instant(0),
            ended_at: instant(120),
            status: Some(202),
            result: SubmissionResult::Accepted { notification_id: Some(NotificationId::from_text("n-1")) },
        }),
        Event::LedgerRead { as_of: instant(90_000), row: Some(row) },
        Event::Received(Receipt {
            at: instant(1_500),
            content: Content::Intact,
            digest: "d".into(),
            message: None,
            correlated: None,
            arrival_id: "a".into(),
        }),
    ];
    Canary::fold(plan, &events)
}

fn line(canary: &Canary, occasion: Occasion) -> Value {
    let judgement = Judgement { at: instant(90_000), verdict: Verdict::Late, class: Class::Bad };
    let terminal = TerminalLine::new(canary, Channel::Webhook, &judgement, Some(Stopped::Provider), occasion);
    let text = written(&Log::default(), || terminal.emit());
    assert_eq!(text.lines().count(), 1, "one line: {text}");
    serde_json::from_str(&text).unwrap()
}

/// The fields that docs/logs.md has for the terminal event.
fn documented() -> BTreeSet<String> {
    let page = include_str!("../docs/logs.md");
    let (_, section) = page.split_once("## The terminal event of a canary").unwrap();
    let (section, _) = section.split_once("## Other events").unwrap();
    let rows = section.lines().filter_map(|l| l.strip_prefix("| `")?.split_once('`'));
    rows.map(|(field, _)| field.to_owned()).collect()
}

#[test]
fn the_line_has_the_documented_fields_and_no_others() {
    let line = line(&canary(&["a-1", "a-2"]), Occasion::Settled);
    let always = ["timestamp", "level", "target"];
    let fields: BTreeSet<String> =
        line.as_object().unwrap().keys().filter(|k| !always.contains(&k.as_str())).cloned().collect();
    assert_eq!(fields, documented());
}

#[test]
fn the_values_are_those_of_the_canary() {
    let line = line(&canary(&["a-1", "a-2"]), Occasion::Corrected);
    let expected = serde_json::json!({
        "level": "INFO", "target": "delivery_canary::canary", "event": "canary_corrected",
        "canary_id": "00000000-0000-0000-0000-000000000007", "kind": "scheduled", "route": "webhook/receipts",
        "channel": "webhook", "location": "zurich", "slot": "2026-09-21T14:13:20.000Z", "notification_ids": "n-1",
        "attempt_ids": "a-1,a-2", "outcome": "delivered", "verdict": "late", "class": "bad", "stopped_at": "provider",
        "accept_ms": 120, "first_attempt_ms": 40, "ledger_delivered_ms": 1_040, "receipt_ms": 1_500,
        "traceparent": "00-0000000000000000000000000000007-0000000000000001-01", "policy_version": "2026-11%20%28b%29",
    });
    let mut line = line;
    line.as_object_mut().unwrap().remove("timestamp");
    assert_eq!(line, expected);
}

#[test]
fn what_is_not_known_is_left_out() {
    let mut canary = canary(&[]);
    canary = Canary::new(canary.plan);
    let line = line(&canary, Occasion::Settled);
    for field in ["notification_ids", "attempt_ids", "outcome", "accept_ms", "receipt_ms", "policy_version"] {
        assert!(line.get(field).is_none(), "{field}: {line}");
    }
}

#[test]
fn foreign_text_can_neither_break_nor_flood_a_line() {
    let long = "x".repeat(10_000);
    let many: Vec<_> = (0..200).map(|n| format!("a,{n}\n\"\u{1b}[31m{long}")).collect();
    let ids: Vec<_> = many.iter().map(String::as_str).collect();
    let line = line(&canary(&ids), Occasion::Settled);
    let list = line["attempt_ids"].as_str().unwrap();
    assert_eq!(list.split(',').count(), 33, "32 ids, and how many more");
    assert!(list.ends_with(",+168"), "{list}");
    assert!(list.starts_with("a%2C0%0A%22%1B%5B31m"), "{list}");
    assert!(list.len() < 32 * 200, "{} bytes", list.len());
}

#[test]
fn an_id_that_looks_like_a_recipient_is_masked() {
    let line = line(&canary(&["somebody@example.com", "+15005550006", "15005550006"]), Occasion::Settled);
    let list: Vec<&str> = line["attempt_ids"].as_str().unwrap().split(',').collect();
    let masked = list.iter().filter(|id| id.starts_with("masked:sha256:")).count();
    assert_eq!((list.len(), masked), (3, 2), "{list:?}");
    assert!(list.contains(&"15005550006"), "a number without a plus sign is an id: {list:?}");
    assert!(!line.to_string().contains("example.com"), "{line}");
}

#[test]
fn other_crates_show_nothing_below_a_warning() {
    let log = Log { level: LogLevel::Trace, format: LogFormat::Text };
    let text = written(&log, || {
        tracing::debug!(target: "hyper::proto", "a body went by");
        tracing::warn!(target: "hyper::proto", "something is wrong");
        tracing::trace!(target: "delivery_canary::monitor", "ours");
    });
    assert!(
        !text.contains("a body") && text.contains("something is wrong") && text.contains("ours"),
        "{text}"
    );
    let log = Log { level: LogLevel::Error, format: LogFormat::Json };
    let text = written(&log, || {
        tracing::warn!(target: "delivery_canary::monitor", "a warning");
        tracing::error!(target: "delivery_canary::monitor", event = "broken", "an error");
    });
    let line: Value = serde_json::from_str(&text).unwrap();
    assert_eq!((&line["event"], &line["message"]), (&"broken".into(), &"an error".into()));
}

/// The lines that a route's evidence makes while its canaries come to this, one a minute: `x` failed, `.` arrived. So many of them settled before
/// the process began.
fn turns(before: usize, canaries: &str) -> Vec<Value> {
    let (route, location) = (RouteName::new(Channel::Webhook, "receipts"), Location::from_text("zurich"));
    let weights = Weights::new(0.005, 0.3, 5.0, TimeDelta::minutes(5));
    let (mut book, mut turns) = (Book::default(), Turns::default());
    book.set_weights(&route, weights);
    book.refold(&route, &[], false, instant(0));
    let text = written(&Log::default(), || {
        for (minute, canary) in (0i64..).zip(canaries.chars()) {
            let failed = canary == 'x';
            let (verdict, class) =
                if failed { (Verdict::Overdue, Class::Bad) } else { (Verdict::OnTime, Class::Good) };
            let settled = Settled {
                change: minute,
                canary_id: CanaryId(uuid::Uuid::from_u128(minute as u128)),
                route: route.clone(),
                kind: CanaryKind::Scheduled,
                slot: instant(minute * 60_000),
                verdict,
                class,
                expected: ExpectedEnd::Delivered,
                stopped: failed.then_some(Stopped::Provider),
            };
            assert_eq!(book.take(&settled), None);
            if minute < before as i64 {
                continue;
            }
            turns.look(&route, &location, &book.get(&route), &weights);
            turns.look(&route, &location, &book.get(&route), &weights);
        }
    });
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn an_outage_is_told_at_its_turns_and_not_at_each_canary() {
    let lines = turns(0, &format!("..{}{}", "x".repeat(90), ".".repeat(60)));
    let said: Vec<_> =
        lines.iter().map(|line| (line["level"].as_str().unwrap(), line["event"].as_str().unwrap())).collect();
    let expected = [
        ("WARN", "delivery_in_question"),
        ("WARN", "delivery_failing"),
        ("INFO", "delivery_recovering"),
        ("INFO", "delivery_recovered"),
    ];
    assert_eq!(said, expected, "{lines:#?}");
    let failing = &lines[1];
    for (field, value) in [
        ("route", Value::from("webhook/receipts")),
        ("location", "zurich".into()),
        ("question", "arrives".into()),
        ("since", "2026-09-21T14:15:20.000Z".into()),
        ("bound", 5.0.into()),
        ("stopped_at", "provider".into()),
    ] {
        assert_eq!(failing[field], value, "{field} of {failing}");
    }
    assert!(failing["evidence"].as_f64().unwrap() >= 5.0, "{failing}");
}

#[test]
fn one_failure_is_told_once_and_so_is_its_end() {
    let lines = turns(0, &format!(".x{}", ".".repeat(40)));
    let said: Vec<_> = lines.iter().map(|line| line["event"].as_str().unwrap()).collect();
    assert_eq!(said, ["delivery_in_question", "delivery_recovered"]);
    assert_eq!(turns(0, "....."), Vec::<Value>::new());
}

#[test]
fn a_process_that_begins_while_the_evidence_comes_down_calls_nothing_failed() {
    let outage = format!("..{}{}", "x".repeat(90), ".".repeat(60));
    let events = |before: usize| -> Vec<Value> {
        turns(before, &outage).into_iter().map(|line| line["event"].clone()).collect()
    };
    assert_eq!(events(110), ["delivery_recovering", "delivery_recovered"]);
    assert_eq!(events(50), ["delivery_failing", "delivery_recovering", "delivery_recovered"]);
}

/// Every `event = "..."` of the sources below this folder.
fn events_of(folder: &std::path::Path, found: &mut BTreeSet<String>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            events_of(&path, found);
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        found.extend(
            text.split("event = \"").skip(1).filter_map(|rest| Some(rest.split_once('"')?.0.to_owned())),
        );
    }
}

/// Lines of the log without an event, of the sources below this folder.
fn without_event(folder: &std::path::Path, found: &mut Vec<String>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            // The simulated service is no part of the monitor.
            if path.file_name().is_some_and(|name| name != "simulator") {
                without_event(&path, found);
            }
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        for level in ["error", "warn", "info"] {
            let start = format!("tracing::{level}!(");
            let calls = text.split(&start).skip(1);
            let bare =
                calls.filter(|call| !call.split(';').next().is_some_and(|call| call.contains("event = ")));
            found.extend(
                bare.map(|call| format!("{}: {}", path.display(), call.lines().take(2).collect::<String>())),
            );
        }
    }
}

#[test]
fn every_line_of_the_log_has_an_event() {
    let mut found = Vec::new();
    without_event(&std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut found);
    assert!(found.is_empty(), "{found:#?}");
}

#[test]
fn every_event_is_documented_and_every_documented_event_is_there() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = std::fs::read_to_string(root.join("docs/logs.md")).unwrap();
    let (_, table) = page.split_once("## Other events").unwrap();
    let documented: BTreeSet<String> = table
        .lines()
        .filter_map(|line| Some(line.strip_prefix("| `")?.split_once('`')?.0.to_owned()))
        .collect();
    let mut written = BTreeSet::new();
    events_of(&root.join("src"), &mut written);
    // The terminal events have a table of their own.
    written.retain(|event| !event.starts_with("canary_"));
    assert_eq!(written, documented);
}

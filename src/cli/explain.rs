//! One canary, explained: the timeline of its three views, and why this verdict.

mod doubt;
mod under_way;
mod why;

pub use under_way::UnderWay;
pub use why::why;

use crate::{
    domain::{
        canary::{Canary, Event},
        disclosure,
        evidence::{ArrivalRefusal, Content, RefusalReason, SubmissionResult},
    },
    store::Stored,
};
use chrono::{DateTime, SecondsFormat, TimeDelta, Utc};
use serde_json::{Value, json};
use std::fmt::Write;

/// An event with the time at which it was written.
pub type Written = (DateTime<Utc>, Event);

/// One line of JSON for a list.
pub fn summary(stored: &Stored, now: DateTime<Utc>) -> Value {
    let plan = &stored.canary.plan;
    let standing = stored.canary.standing();
    let under_way = UnderWay::of(&stored.canary, now);
    json!({
        "canary_id": plan.canary_id.to_string(),
        "route": plan.route.as_str(),
        "location": plan.location.as_str(),
        "kind": plan.kind.word(),
        "slot": stamp(plan.slot),
        "verdict": standing.map(|j| j.verdict.word()),
        "class": standing.map(|j| j.class.word()),
        "verdict_due": under_way.map(|_| stamp(stored.canary.settles_at())),
        "overdue_so_far_seconds": under_way.and_then(UnderWay::overdue_seconds),
        "disagreements": stored.canary.disagreements.iter().map(|d| d.word()).collect::<Vec<_>>(),
        "corrections": stored.canary.judgements.len().saturating_sub(1),
        "erased": stored.erased,
    })
}

/// All that is known of a canary, as JSON.
pub fn json(stored: &Stored, events: &[Written], now: DateTime<Utc>) -> Value {
    let canary = &stored.canary;
    let mut value = summary(stored, now);
    value["notification_ids"] =
        canary.notification_ids().iter().map(|id| disclosure::shown(id.as_str())).collect();
    value["traceparent"] = canary.plan.traceparent.clone().into();
    value["deadline"] = stamp(canary.deadline()).into();
    value["followed_until"] = stamp(canary.followed_until()).into();
    value["why"] = why(canary, now).into();
    value["timeline"] = events
        .iter()
        .map(|(written_at, event)| {
            json!({ "at": stamp(event.at()), "written_at": stamp(*written_at), "event": event.word(), "says": says(event) })
        })
        .collect();
    value
}

/// All that is known of a canary, for people.
pub fn text(stored: &Stored, events: &[Written], now: DateTime<Utc>) -> String {
    let canary = &stored.canary;
    let plan = &canary.plan;
    let mut out = String::new();
    // Writing to a string can't fail.
    let mut line = |text: String| {
        let _ = writeln!(out, "{text}");
    };
    line(format!("canary    {}", plan.canary_id));
    line(format!("route     {}  at {}  ({})", plan.route, plan.location, plan.kind.word()));
    line(format!("slot      {}", stamp(plan.slot)));
    line(format!("verdict   {}", verdict(canary, now)));
    line(format!("why       {}", why(canary, now)));
    for kind in &canary.disagreements {
        line(format!("contradiction  {}", kind.word()));
    }
    if stored.erased {
        line("erased: what identified it is gone".to_owned());
        return out;
    }
    line(String::new());
    let mut timeline: Vec<(DateTime<Utc>, String)> =
        events.iter().map(|(_, event)| (event.at(), says(event))).collect();
    timeline.push((plan.planned_at, "planned".to_owned()));
    timeline.push((canary.deadline(), "deadline".to_owned()));
    timeline.sort_by_key(|(at, _)| *at);
    for (at, says) in timeline {
        line(format!("{}  {:>9}  {says}", stamp(at), since(canary, at)));
    }
    out
}

/// The verdict, or where it stands until there is one.
fn verdict(canary: &Canary, now: DateTime<Utc>) -> String {
    match (canary.standing(), UnderWay::of(canary, now)) {
        (Some(standing), _) => format!("{} ({})", standing.verdict.word(), standing.class.word()),
        (None, Some(under_way)) => under_way.told(canary, now),
        (None, None) => "not known".to_owned(),
    }
}

fn stamp(at: DateTime<Utc>) -> String {
    at.to_rfc3339_opts(SecondsFormat::Millis, true)
}

fn since(canary: &Canary, at: DateTime<Utc>) -> String {
    let delta: TimeDelta = at - canary.plan.planned_at;
    format!("{:+.3}s", delta.as_seconds_f64())
}

/// What an event says, in a line, without anything that must not be shown.
pub fn says(event: &Event) -> String {
    match event {
        Event::Submitted(submission) => {
            let status = submission.status.map_or_else(String::new, |s| format!(" (status {s})"));
            match &submission.result {
                SubmissionResult::Accepted { notification_id: Some(id) } => {
                    format!("acceptance: accepted as {}{status}", disclosure::shown(id.as_str()))
                }
                SubmissionResult::Accepted { notification_id: None } => {
                    format!("acceptance: accepted, without an id{status}")
                }
                SubmissionResult::Refused { reason: RefusalReason::Guard } => {
                    "acceptance: nothing left; the guard stopped it, `delivery-canary check` says where and what to change".to_owned()
                }
                SubmissionResult::Refused { reason } => {
                    format!("acceptance: refused, {}{status}", word(reason))
                }
                SubmissionResult::Ambiguous { .. } => {
                    format!("acceptance: not known, {}", doubt::phrase(submission).unwrap_or_default())
                }
            }
        }
        Event::LedgerRead { row: None, .. } => "ledger: no row".to_owned(),
        Event::LedgerRead { row: Some(row), .. } => {
            let attempts: Vec<String> = row
                .attempts
                .iter()
                .map(|a| format!("attempt {} {}", disclosure::shown(&a.attempt_id), a.outcome.word()))
                .collect();
            let attempts = if attempts.is_empty() { "no attempt".to_owned() } else { attempts.join(", ") };
            format!("ledger: {}; {attempts}", row.disposition.word())
        }
        Event::Received(receipt) => match &receipt.content {
            Content::Intact => "sink: arrived, content as expected".to_owned(),
            Content::Malformed { failed } => {
                let failed: Vec<&str> = failed.iter().map(String::as_str).collect();
                format!("sink: arrived, content wrong: {}", failed.join(", "))
            }
        },
        Event::SinkProven { .. } => {
            "sink: a message to ourselves arrived, so this canary could have".to_owned()
        }
        Event::ArrivalRefused { reason, .. } => refused_arrival(*reason).to_owned(),
        Event::SinkWatched { .. } => {
            "sink: messages to ourselves arrived all through its time, so none of ours hid it".to_owned()
        }
        Event::Settled(judgement) => format!("verdict: {}", judgement.verdict.word()),
        Event::Corrected(judgement) => format!("verdict corrected: {}", judgement.verdict.word()),
        Event::Disagreed { kind, .. } => format!("contradiction: {}", kind.word()),
    }
}

fn word(reason: &impl serde::Serialize) -> String {
    match serde_json::to_value(reason) {
        Ok(Value::String(word)) => word.replace('_', " "),
        _ => String::new(),
    }
}

const fn refused_arrival(reason: ArrivalRefusal) -> &'static str {
    match reason {
        ArrivalRefusal::Unavailable => {
            "sink: it arrived, and we answered 503: it could not be written to our store"
        }
        ArrivalRefusal::WrongRoute => {
            "sink: it arrived, and we answered 404: our receiver had no such route; was it taken out of the configuration?"
        }
        ArrivalRefusal::TooLarge => {
            "sink: it arrived, and we answered 413: its body was above the receiver's `max_body_bytes`"
        }
        ArrivalRefusal::Unproven => {
            "sink: something came with its token from a sender that did not prove itself as `sender` asks; it is no receipt"
        }
    }
}

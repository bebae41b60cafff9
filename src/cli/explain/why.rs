//! Why the verdict on a canary is what it is, in a sentence.

use super::{UnderWay, doubt, stamp};
use crate::domain::{
    canary::{Canary, Judgement},
    disagreement::Disagreement,
    evidence::{AmbiguityReason, ArrivalRefusal, RefusalReason, SubmissionResult},
    following::{Stopped, stopped_at},
    verdict::{Class, ExpectedEnd, LedgerState, SinkState, Verdict},
};
use chrono::{DateTime, TimeDelta, Utc};

/// Why the standing verdict is what it is, in a sentence.
pub fn why(canary: &Canary, now: DateTime<Utc>) -> String {
    let Some(standing) = canary.standing() else {
        let under_way = UnderWay::of(canary, now).unwrap_or(UnderWay::OnItsWay);
        let it = if under_way == UnderWay::Arrived { "it has" } else { "it is" };
        return format!("{it} {}", under_way.told(canary, now));
    };
    format!(
        "{}{}{}",
        reason(canary, standing),
        addition(canary, standing, now),
        another_monitor(canary, standing.verdict)
    )
}

/// By how much the ledger's time of acceptance must lie before our submission to say that it was not ours. Whole seconds and small
/// differences of clocks lie below it.
const NOT_OURS: TimeDelta = TimeDelta::seconds(2);

/// Whether it may have arrived elsewhere: an installation with the same location sends at the same slots under the same keys.
fn another_monitor(canary: &Canary, verdict: Verdict) -> &'static str {
    if !matches!(verdict, Verdict::Overdue | Verdict::Lost) {
        return "";
    }
    let ours = canary.acceptance.submissions.iter().map(|submission| submission.started_at).min();
    let theirs = canary.ledger.row.as_ref().and_then(|(_, row)| row.accepted_at);
    if ours.zip(theirs).is_some_and(|(ours, theirs)| theirs < ours - NOT_OURS) {
        return "; the ledger has it accepted before we submitted it: another monitor with the same location may have sent it under the \
                same key, so give each installation a location of its own";
    }
    if canary.disagreements.contains(&Disagreement::DeliveredWithoutReceipt) {
        return "; if another monitor with the same location sends through this service, it may have sent it under the same key and got \
                the receipt: give each installation a location of its own";
    }
    ""
}

fn reason(canary: &Canary, standing: &Judgement) -> String {
    let deadline = canary.plan.deadline.as_seconds_f64();
    match standing.verdict {
        Verdict::OnTime => format!("it arrived whole, within its deadline of {deadline}s"),
        Verdict::Late => match canary.sink.intact_at().map(|at| at - canary.deadline()) {
            Some(by) => format!("it arrived whole, {}s after its deadline of {deadline}s", by.as_seconds_f64()),
            None => format!("it arrived whole, after its deadline of {deadline}s"),
        },
        Verdict::Malformed if canary.sink.receipts.is_empty() => {
            "it arrived, and its body was above the receiver's `max_body_bytes`".to_owned()
        }
        Verdict::Malformed => "it arrived, and its content was not as expected".to_owned(),
        Verdict::Refused => refused(canary),
        Verdict::Undetermined if canary.acceptance.refusal() == Some(RefusalReason::Guard) => {
            "our own guard stopped the request before it left: it names somebody who is not among the route's recipients, or can't \
             be made of its template; `delivery-canary check` says where and what to change"
                .to_owned()
        }
        Verdict::Undetermined if canary.sink_state() == SinkState::Unclear => {
            "it arrived, and our own trouble hides whether whole and in time: we refused it, or could not take it all through its time"
                .to_owned()
        }
        Verdict::Undetermined if canary.is_cut_off() => {
            "no connection to the service came to be, and nothing proves that our own network worked".to_owned()
        }
        Verdict::Undetermined => {
            "nothing arrived, and nothing proves that it could have, all through its time: the monitor was blind, which says nothing of the service".to_owned()
        }
        Verdict::Suppressed => "the ledger says that policy kept it back".to_owned(),
        Verdict::Rejected => "the ledger says that it was permanently rejected".to_owned(),
        Verdict::Overdue => format!(
            "accepted, and not arrived within {deadline}s; it may still come, and is followed until {}",
            stamp(canary.followed_until())
        ),
        Verdict::Lost => "accepted, and never arrived, though the ledger has it delivered or has no row of it".to_owned(),
        Verdict::Unknown => unknown(canary, standing.at),
    }
}

/// What else there is to say: where to look for what is missing, or that this end is another than the route expects.
fn addition(canary: &Canary, standing: &Judgement, now: DateTime<Utc>) -> String {
    let stage = stopped_at(canary, standing.verdict, now);
    let expected = match canary.plan.expected_end {
        ExpectedEnd::Delivered => None,
        ExpectedEnd::Suppressed => Some("is suppressed"),
        ExpectedEnd::Rejected => Some("is permanently rejected"),
    };
    let stage = stage.map(|stage| stage.word());
    match (standing.verdict, stage, expected) {
        // It arrived: it stopped nowhere.
        (Verdict::OnTime | Verdict::Late | Verdict::Malformed, _, Some(end)) => {
            format!("; the route expects that it {end}")
        }
        (Verdict::OnTime, ..)
            if canary.plan.is_in_ledger()
                && now >= canary.has_row_by()
                && canary.ledger_state(now) == LedgerState::Unobserved =>
        {
            "; the ledger was not read since, so what it has of this one is not known".to_owned()
        }
        (Verdict::Suppressed | Verdict::Rejected, _, Some(_)) if standing.class == Class::Good => {
            ", as the route expects".to_owned()
        }
        (Verdict::Late, Some(stage), _) if stage == Stopped::Monitor.word() => {
            "; nothing of it is missing; the ledger was not read late enough, so it is not known where the time went"
                .to_owned()
        }
        (Verdict::Late, ..) => {
            "; nothing of it is missing, and the timeline shows where the time went".to_owned()
        }
        (Verdict::Refused | Verdict::Rejected | Verdict::Lost, Some(stage), _) => {
            format!("; it stopped at: {stage}")
        }
        // Not being able to look is no place in the service.
        (Verdict::Overdue, Some(stage), _) if stage == Stopped::Monitor.word() => {
            let row = canary.has_row_by();
            let why = if now < row {
                format!("a row of it may come into the ledger until {} (`overlap`)", stamp(row))
            } else {
                "the ledger was not read late enough".to_owned()
            };
            format!("; {why}, so it is not known whether it stands at the provider or before")
        }
        (Verdict::Overdue, Some(stage), _) => format!("; as far as can be seen it stands at: {stage}"),
        _ => String::new(),
    }
}

fn refused(canary: &Canary) -> String {
    let newest = canary.acceptance.submissions.last();
    match (canary.acceptance.refusal(), newest.and_then(|s| s.status)) {
        (Some(RefusalReason::Unreachable), _) => "no connection to the service came to be".to_owned(),
        (Some(RefusalReason::ErrorInAnswer), _) => "the service answered with an error".to_owned(),
        (_, Some(status)) => format!("the service refused it with status {status}"),
        _ => "the service refused it".to_owned(),
    }
}

/// What is not known, and which of the views could not say it.
fn unknown(canary: &Canary, judged_at: DateTime<Utc>) -> String {
    let is_accepted = canary.acceptance.accepted().is_some() || canary.ledger.row.is_some();
    let first = if is_accepted {
        "it was accepted, and nothing arrived for as long as it was followed; whether it is lost or still on its way is not known"
            .to_owned()
    } else {
        let doubt = doubt::all(&canary.acceptance.submissions);
        let doubt = if doubt.is_empty() { doubt } else { format!(" ({doubt})") };
        let hint = one_status(canary).map_or_else(String::new, |status| {
            format!(" (if {status} of this service is a definite no, write it into `refused_statuses` of its acceptance)")
        });
        format!("whether the service accepted it is not known{doubt}, and nothing arrived{hint}")
    };
    let ledger = match (canary.ledger_state(judged_at), &canary.ledger.row) {
        (LedgerState::Pending, Some((_, row))) if row.attempts.is_empty() => {
            "the ledger has it pending, without an attempt".to_owned()
        }
        (LedgerState::Pending, Some((_, row))) => {
            let newest = row.attempts.iter().max_by_key(|attempt| attempt.at);
            let outcome = newest.map_or("unknown", |attempt| attempt.outcome.word());
            format!("the ledger has it pending, its newest attempt `{outcome}`")
        }
        (LedgerState::NoRow, _) => "the ledger has no row of it".to_owned(),
        (LedgerState::Unobserved, _) if !canary.plan.is_in_ledger() => {
            "the route has no ledger that could say more".to_owned()
        }
        (LedgerState::Unobserved, _) if judged_at < canary.has_row_by() => format!(
            "it was too early to say that the ledger has no row of it, since one may come until {} (`overlap`)",
            stamp(canary.has_row_by())
        ),
        (LedgerState::Unobserved, _) => "the ledger was not read late enough".to_owned(),
        (state, _) => format!("the ledger has it {}", ledger_word(state)),
    };
    let unproven = if canary.sink.was_refused(ArrivalRefusal::Unproven) {
        "; something came with its token, from a sender that did not prove itself"
    } else {
        ""
    };
    format!("{first}: {ledger}{unproven}")
}

/// The status of a fault by which every submission was answered, if it was one and the same.
fn one_status(canary: &Canary) -> Option<u16> {
    let mut statuses = canary.acceptance.submissions.iter().map(|submission| match submission.result {
        SubmissionResult::Ambiguous { reason: AmbiguityReason::Status } => submission.status,
        _ => None,
    });
    let first = statuses.next()??;
    (first >= 400 && statuses.all(|status| status == Some(first))).then_some(first)
}

const fn ledger_word(state: LedgerState) -> &'static str {
    match state {
        LedgerState::Delivered => "delivered by now",
        LedgerState::Rejected => "rejected by now",
        LedgerState::Suppressed => "suppressed by now",
        LedgerState::Pending | LedgerState::NoRow | LedgerState::Unobserved => "not settled",
    }
}

#[cfg(test)]
mod tests;

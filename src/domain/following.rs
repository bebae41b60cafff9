//! When a canary is to be looked at again, and at which stage a failure stopped.

use super::{
    canary::Canary,
    evidence::ArrivalRefusal,
    outcome::Disposition,
    verdict::{AcceptanceState, LedgerState, SinkState, Verdict},
};
use chrono::{DateTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};

/// Where a failure stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stopped {
    /// It was never accepted.
    Acceptance,
    /// It was accepted and never became an attempt.
    Ledger,
    /// The provider did not take it, or its answer isn't known.
    Provider,
    /// The ledger says delivered, and the sink has nothing.
    Sink,
    /// It arrived with wrong content.
    Content,
    /// The monitor could not look.
    Monitor,
}

impl Stopped {
    /// All stages.
    pub const ALL: [Self; 6] =
        [Self::Acceptance, Self::Ledger, Self::Provider, Self::Sink, Self::Content, Self::Monitor];

    /// The word for it in labels.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Acceptance => "acceptance",
            Self::Ledger => "ledger",
            Self::Provider => "provider",
            Self::Sink => "sink",
            Self::Content => "content",
            Self::Monitor => "monitor",
        }
    }

    /// The stage of this word.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|s| s.word() == word)
    }
}

/// The stage at which a canary of this verdict stopped, as far as the views prove it; nothing for one that arrived in time
/// or was kept back by policy.
pub fn stopped_at(canary: &Canary, verdict: Verdict, now: DateTime<Utc>) -> Option<Stopped> {
    match verdict {
        Verdict::OnTime | Verdict::Suppressed => None,
        Verdict::Malformed => Some(Stopped::Content),
        Verdict::Refused => Some(Stopped::Acceptance),
        Verdict::Undetermined => Some(Stopped::Monitor),
        Verdict::Rejected => Some(Stopped::Provider),
        // Where its time went, only the ledger could say.
        Verdict::Late if is_unseen(canary, now) => Some(Stopped::Monitor),
        Verdict::Late => Some(Stopped::Provider),
        // It came as far as our door. Who sent it is not proven, but where to look is known.
        Verdict::Overdue | Verdict::Lost | Verdict::Unknown
            if canary.sink.was_refused(ArrivalRefusal::Unproven) =>
        {
            Some(Stopped::Sink)
        }
        Verdict::Overdue | Verdict::Lost | Verdict::Unknown => {
            let views = canary.views(now);
            let attempted = canary.ledger.row.as_ref().is_some_and(|(_, row)| !row.attempts.is_empty());
            Some(match (views.acceptance, views.ledger) {
                (_, LedgerState::Delivered) => Stopped::Sink,
                // It was pending before it had to be there: how far it got since is not known.
                (_, LedgerState::Pending) if !has_late_reading(canary) => Stopped::Monitor,
                (_, LedgerState::Pending) if attempted => Stopped::Provider,
                (_, LedgerState::Pending) | (AcceptanceState::Accepted, LedgerState::NoRow) => {
                    Stopped::Ledger
                }
                (AcceptanceState::Accepted, LedgerState::Unobserved) if canary.plan.is_in_ledger() => {
                    Stopped::Monitor
                }
                // Without a ledger, all that is known is that it did not come out at the other end.
                (AcceptanceState::Accepted, _) => Stopped::Sink,
                _ => Stopped::Acceptance,
            })
        }
    }
}

/// Whether the ledger could tell of it, and could not be read.
fn is_unseen(canary: &Canary, now: DateTime<Utc>) -> bool {
    canary.plan.is_in_ledger() && canary.ledger_state(now) == LedgerState::Unobserved
}

/// Whether its row was read at its deadline or later.
fn has_late_reading(canary: &Canary) -> bool {
    canary.ledger.row.as_ref().is_some_and(|(as_of, _)| *as_of >= canary.deadline())
}

/// How long the ledger is asked after the end of following, until a reading is as of that end: the most that its `freshness` may be.
/// A replica lags, and a single look may fail.
const LAST_READING_WITHIN: TimeDelta = TimeDelta::hours(1);

impl Canary {
    /// Until when it is followed; never less than to its settlement.
    pub fn followed_until(&self) -> DateTime<Utc> {
        (self.plan.slot + self.plan.follow_for).max(self.settles_at())
    }

    /// Whether following it is over at `now`: its time is, and the ledger has said all that it can say of that time, or was asked
    /// long enough.
    pub fn following_is_over(&self, now: DateTime<Utc>) -> bool {
        let until = self.followed_until();
        now >= until
            && (!self.plan.is_in_ledger()
                || self.ledger_has_said_all(until)
                || now >= until + LAST_READING_WITHIN)
    }

    /// Whether no later reading can say more of what was until `at`: one is as of then or later, or an end was read, which stands.
    fn ledger_has_said_all(&self, at: DateTime<Utc>) -> bool {
        let has_end = self
            .ledger
            .row
            .as_ref()
            .filter(|(as_of, row)| *as_of >= at || row.disposition != Disposition::Pending);
        has_end.is_some() || self.ledger.absent_as_of.is_some_and(|as_of| as_of >= at)
    }
}

/// When the canary is next to be looked at after a look at `now`; nothing when nothing more is to be learned.
///
/// The times of attempts stand in the ledger, so early looks would only cost: before the settlement the ledger is asked only
/// to resolve an acceptance that is not known, at growing distances; then once at the settlement, and while anything is
/// open, hourly at most, until following is over: then until a reading is as of that end. A definite refusal is settled at once;
/// what a message to ourselves may yet show is looked for at growing distances too.
pub fn next_look(canary: &Canary, now: DateTime<Utc>) -> Option<DateTime<Utc>> {
    let settled = canary.settlement().is_some();
    if settled && canary.is_complete() {
        return None;
    }
    let age = (now - canary.due_from()).max(TimeDelta::seconds(1));
    let wants_ledger = canary.plan.is_in_ledger();
    if !settled && canary.is_turned_away() {
        return Some(now + TimeDelta::milliseconds(1));
    }
    if !settled {
        let pause = age.clamp(TimeDelta::seconds(1), TimeDelta::seconds(30));
        let judged = canary.settles_at().max(now + TimeDelta::milliseconds(200));
        let unresolved = wants_ledger
            && canary.acceptance.state() == AcceptanceState::Ambiguous
            && canary.ledger.row.is_none();
        let early = unresolved || canary.awaits_proof();
        return Some(if early { (now + pause).min(judged) } else { judged });
    }
    if canary.following_is_over(now) {
        return None;
    }
    let past_its_end = now - canary.followed_until();
    if past_its_end >= TimeDelta::zero() {
        return Some(now + past_its_end.clamp(TimeDelta::seconds(1), TimeDelta::seconds(60)));
    }
    let pause = age.clamp(TimeDelta::seconds(60), TimeDelta::hours(1));
    let regular = if wants_ledger || canary.sink_state() == SinkState::Nothing {
        now + pause
    } else {
        canary.followed_until()
    };
    Some(regular.min(canary.followed_until()))
}

//! A canary: its plan, its events, and the fold that makes its state of them.

mod millis;
mod sight;

use super::{
    disagreement::Disagreement,
    evidence::{AcceptanceView, ArrivalRefusal, LedgerRow, LedgerView, Receipt, SinkView, Submission},
    route::{CanaryId, IdempotencyKey, Location, NotificationId, RouteName},
    verdict::{AcceptanceState, Class, ExpectedEnd, LedgerState, SinkState, Verdict, Views, verdict},
};
use chrono::{DateTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// Why a canary was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CanaryKind {
    /// By the route's schedule.
    Scheduled,
    /// To settle a question that a failure raised.
    Confirmation,
    /// By a person.
    Manual,
    /// To see that one key submitted twice has one effect.
    Replay,
    /// Straight to the sink.
    ControlSink,
    /// Straight to the provider, past the service.
    ControlProvider,
}

impl CanaryKind {
    /// All kinds.
    pub const ALL: [Self; 6] = [
        Self::Scheduled,
        Self::Confirmation,
        Self::Manual,
        Self::Replay,
        Self::ControlSink,
        Self::ControlProvider,
    ];

    /// The word for it in the store, the logs and the key.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Scheduled => "scheduled",
            Self::Confirmation => "confirmation",
            Self::Manual => "manual",
            Self::Replay => "replay",
            Self::ControlSink => "control_sink",
            Self::ControlProvider => "control_provider",
        }
    }

    /// The kind of this word.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|k| k.word() == word)
    }

    /// Whether its class enters the windows of the SLI. Only what the schedule sent does.
    pub const fn is_in_sli(self) -> bool {
        matches!(self, Self::Scheduled)
    }

    /// Whether it is evidence for or against the route.
    pub const fn is_evidence(self) -> bool {
        matches!(self, Self::Scheduled | Self::Confirmation)
    }

    /// The words for the control arms.
    pub const ARMS: [&'static str; 2] = ["sink", "provider"];

    /// The word for its arm, if it is a control.
    pub const fn arm(self) -> Option<&'static str> {
        match self {
            Self::ControlSink => Some("sink"),
            Self::ControlProvider => Some("provider"),
            _ => None,
        }
    }

    /// Whether it goes past the service, so that no ledger row is expected.
    pub const fn is_control(self) -> bool {
        matches!(self, Self::ControlSink | Self::ControlProvider)
    }
}

/// What is decided about a canary before anything leaves. It never changes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// Its id.
    pub canary_id: CanaryId,
    /// The key under which it is submitted.
    pub key: IdempotencyKey,
    /// Its route.
    pub route: RouteName,
    /// The place of observation that sends it.
    pub location: Location,
    /// Why it is sent.
    pub kind: CanaryKind,
    /// The instant it belongs to.
    pub slot: DateTime<Utc>,
    /// When it was planned.
    pub planned_at: DateTime<Utc>,
    /// How long after acceptance it must have arrived.
    #[serde(with = "millis")]
    pub deadline: TimeDelta,
    /// How long after the deadline the verdict waits.
    #[serde(with = "millis")]
    pub settle: TimeDelta,
    /// How long after its slot it is followed.
    #[serde(with = "millis")]
    pub follow_for: TimeDelta,
    /// How long after acceptance the ledger may take to show it.
    #[serde(with = "millis")]
    pub ledger_overlap: TimeDelta,
    /// The end that its route expects.
    pub expected_end: ExpectedEnd,
    /// Whether its route has a ledger.
    pub has_ledger: bool,
    /// Whether its route has a receiver of ours.
    pub has_sink: bool,
    /// The W3C `traceparent` that goes out with it.
    pub traceparent: String,
    /// The canary that it confirms.
    pub parent: Option<CanaryId>,
}

/// Something that happened to a canary. Events are appended, never changed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// It was submitted, and this came of it.
    Submitted(Submission),
    /// The ledger was read for it.
    LedgerRead {
        /// The time of the reading, on the ledger's clock corrected to ours.
        as_of: DateTime<Utc>,
        /// What was found: nothing, or a row.
        row: Option<LedgerRow>,
    },
    /// It arrived.
    Received(Receipt),
    /// It arrived, and we ourselves refused it.
    ArrivalRefused {
        /// When it arrived.
        at: DateTime<Utc>,
        /// Why we refused it.
        reason: ArrivalRefusal,
    },
    /// A message to ourselves arrived by the way that the canary takes: something could have arrived.
    SinkProven {
        /// When it arrived.
        at: DateTime<Utc>,
    },
    /// Messages to ourselves arrived all through a span, without a gap that could hide an arrival.
    SinkWatched {
        /// The beginning of the span.
        from: DateTime<Utc>,
        /// Its end.
        until: DateTime<Utc>,
    },
    /// The first verdict.
    Settled(Judgement),
    /// A verdict that later evidence gave.
    Corrected(Judgement),
    /// The views contradict each other.
    Disagreed {
        /// When it was noticed.
        at: DateTime<Utc>,
        /// How.
        kind: Disagreement,
    },
}

impl Event {
    /// The word for it in the store and the logs.
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Submitted(_) => "submitted",
            Self::LedgerRead { .. } => "ledger_read",
            Self::Received(_) => "received",
            Self::ArrivalRefused { .. } => "arrival_refused",
            Self::SinkProven { .. } => "sink_proven",
            Self::SinkWatched { .. } => "sink_watched",
            Self::Settled(_) => "settled",
            Self::Corrected(_) => "corrected",
            Self::Disagreed { .. } => "disagreed",
        }
    }

    /// When it happened.
    pub const fn at(&self) -> DateTime<Utc> {
        match self {
            Self::Submitted(s) => s.ended_at,
            Self::LedgerRead { as_of, .. } => *as_of,
            Self::Received(r) => r.at,
            Self::SinkProven { at }
            | Self::SinkWatched { until: at, .. }
            | Self::ArrivalRefused { at, .. }
            | Self::Disagreed { at, .. } => *at,
            Self::Settled(j) | Self::Corrected(j) => j.at,
        }
    }
}

/// A verdict at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Judgement {
    /// When it was given.
    pub at: DateTime<Utc>,
    /// The verdict.
    pub verdict: Verdict,
    /// Its class on this route.
    pub class: Class,
}

/// The state of a canary: its plan, and the fold of its events.
#[derive(Clone, Debug, PartialEq)]
pub struct Canary {
    /// The plan.
    pub plan: Plan,
    /// What the acceptance API answered.
    pub acceptance: AcceptanceView,
    /// What the ledger showed.
    pub ledger: LedgerView,
    /// What the sink received.
    pub sink: SinkView,
    /// The verdicts that were given, by time: the first is the settlement, the others are corrections.
    pub judgements: BTreeSet<Judgement>,
    /// The contradictions that were found.
    pub disagreements: BTreeSet<Disagreement>,
}

impl Plan {
    /// Whether a ledger can tell of it. What goes past the service is in none.
    pub const fn is_in_ledger(&self) -> bool {
        self.has_ledger && !self.kind.is_control()
    }
}

impl Canary {
    /// A canary of which nothing is known but its plan.
    pub fn new(plan: Plan) -> Self {
        Self {
            plan,
            acceptance: AcceptanceView::default(),
            ledger: LedgerView::default(),
            sink: SinkView::default(),
            judgements: BTreeSet::new(),
            disagreements: BTreeSet::new(),
        }
    }

    /// The fold: any order of the same events gives the same state.
    pub fn fold<'a>(plan: Plan, events: impl IntoIterator<Item = &'a Event>) -> Self {
        let mut canary = Self::new(plan);
        events.into_iter().for_each(|event| canary.apply(event));
        canary
    }

    /// Joins one event.
    pub fn apply(&mut self, event: &Event) {
        match event {
            Event::Submitted(submission) => {
                self.acceptance.submissions.insert(submission.clone());
            }
            Event::LedgerRead { as_of, row } => self.ledger.join(*as_of, row.as_ref()),
            Event::Received(receipt) => {
                self.sink.receipts.insert(receipt.clone());
            }
            Event::ArrivalRefused { at, reason } => {
                self.sink.refused.insert((*at, *reason));
            }
            Event::SinkProven { at } => {
                self.sink.proofs.insert(*at);
            }
            Event::SinkWatched { from, until } => {
                self.sink.watched.insert((*from, *until));
            }
            Event::Settled(judgement) | Event::Corrected(judgement) => {
                self.judgements.insert(*judgement);
            }
            Event::Disagreed { kind, .. } => {
                self.disagreements.insert(*kind);
            }
        }
    }

    /// The instant from which the deadline runs: acceptance, or the first submission where there was no acceptance,
    /// or the plan where none is known.
    ///
    /// A slot is not taken for it: a canary that went out late, after a crash, has its whole deadline before it.
    pub fn due_from(&self) -> DateTime<Utc> {
        let accepted = self.acceptance.accepted().map(|s| s.ended_at);
        let submitted = || self.acceptance.submissions.first().map(|s| s.started_at);
        accepted.or_else(submitted).unwrap_or(self.plan.planned_at)
    }

    /// By when it must have arrived.
    pub fn deadline(&self) -> DateTime<Utc> {
        self.due_from() + self.plan.deadline
    }

    /// When its verdict is due.
    pub fn settles_at(&self) -> DateTime<Utc> {
        self.deadline() + self.plan.settle
    }

    /// From when on a reading of the ledger without a row of it proves that there is none.
    pub fn has_row_by(&self) -> DateTime<Utc> {
        self.due_from() + self.plan.ledger_overlap
    }

    /// The state of the ledger for a judgement at `now`: that a row is absent is proven only by a reading that
    /// is not older than acceptance plus the time that a row may take to become visible, nor, once following is over,
    /// than its end.
    pub fn ledger_state(&self, now: DateTime<Utc>) -> LedgerState {
        let visible = self.has_row_by();
        let needed = if self.following_is_over(now) { visible.max(self.followed_until()) } else { visible };
        self.ledger.state(needed)
    }

    /// The three views as they stand at `now`.
    pub fn views(&self, now: DateTime<Utc>) -> Views {
        Views {
            acceptance: self.acceptance_state(),
            ledger: self.ledger_state(now),
            sink: self.sink_state(),
            following_over: self.following_is_over(now),
        }
    }

    /// The verdict at `now`, or nothing while it is not due.
    ///
    /// Before that only what no waiting can change is a verdict: an intact arrival whose time is beyond doubt, and a definite
    /// refusal. It is asked of a canary whose submissions are over; a receipt that comes after a refusal all the same corrects
    /// the verdict.
    pub fn judge(&self, now: DateTime<Utc>) -> Option<Judgement> {
        let has_arrived = matches!(self.sink_state(), SinkState::IntactInTime | SinkState::IntactLate);
        if now < self.settles_at() && !has_arrived && !self.is_turned_away() {
            return None;
        }
        let verdict = verdict(&self.views(now));
        Some(Judgement { at: now, verdict, class: verdict.class(self.plan.expected_end) })
    }

    /// Whether it was definitely refused, and nothing of it has arrived.
    pub fn is_turned_away(&self) -> bool {
        self.acceptance_state() == AcceptanceState::Refused
            && self.sink.receipts.is_empty()
            && self.sink.missed_at().is_none()
            && !self.sink.was_refused(ArrivalRefusal::TooLarge)
    }

    /// The first judgement: by its time the canary belongs to a window.
    pub fn settlement(&self) -> Option<&Judgement> {
        self.judgements.first()
    }

    /// The judgement in force.
    pub fn standing(&self) -> Option<&Judgement> {
        self.judgements.last()
    }

    /// Every notification id that the service or its ledger named for this canary.
    pub fn notification_ids(&self) -> BTreeSet<&NotificationId> {
        let mut ids = self.acceptance.notification_ids();
        if let Some((_, row)) = &self.ledger.row {
            ids.extend(&row.notification_ids);
        }
        ids
    }

    /// Whether nothing more can be learned of it: it arrived whole, and what the ledger can say it has said.
    pub fn is_complete(&self) -> bool {
        let ledger_done = !self.plan.is_in_ledger()
            || self
                .ledger
                .row
                .as_ref()
                .is_some_and(|(_, row)| row.disposition != super::outcome::Disposition::Pending);
        let acceptance_done =
            self.acceptance.state() == AcceptanceState::Accepted || self.ledger.row.is_some();
        self.sink.intact_at().is_some() && ledger_done && acceptance_done
    }
}

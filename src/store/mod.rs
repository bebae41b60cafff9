//! The monitor's own durable state: canaries with their events, sums by minute and hour, caps, pauses, proofs.
//!
//! One trait, one set of statements, two databases. Every call is one transaction. Times are kept to the microsecond, those in events whole.
//! Why it is made so: docs/adr/0006-store.md; what it holds: docs/data.md.

mod append;
mod audit;
mod change;
mod claim;
mod control;
mod database;
mod decide;
mod error;
mod fault;
mod file;
pub mod follower;
mod keep;
mod levels;
mod look;
mod open;
mod past;
mod plan;
mod read;
mod row;
mod schema;
mod sql;
mod statement;
mod stream;
mod sums;
mod writer;

pub use audit::{AuditSave, AuditStore, AuditSums};
pub use claim::{Claim, claim, is_served};
pub use error::StoreError;
pub use look::Look;
pub use open::{Standing, look_at, open};
pub use past::{Past, PastStore};
pub use sums::{ControlSum, WindowSum};

use crate::domain::{
    canary::{Canary, CanaryKind, Event, Plan},
    disagreement::Disagreement,
    following::Stopped,
    route::{CanaryId, Location, NotificationId, RouteName},
    verdict::{Class, ExpectedEnd, Verdict},
    watch::{Mark, Way},
};
use async_trait::async_trait;
use chrono::{DateTime, TimeDelta, Utc};
use follower::FollowerStore;
use std::{
    collections::{BTreeSet, HashMap},
    time::Duration,
};

/// How long before its end a lease is renewed by its own owner: longer than the owner may take from one look to the next.
pub const RENEWED_BEFORE: TimeDelta = TimeDelta::seconds(8);

/// A canary as the store has it.
#[derive(Clone, Debug, PartialEq)]
pub struct Stored {
    /// The fold of its events.
    pub canary: Canary,
    /// Counts the writes to it. A decision made on an older version is refused.
    pub version: i64,
    /// When it is next to be looked at; nothing once it is closed.
    pub next_look: Option<DateTime<Utc>>,
    /// Whether a recipient's or customer's wish erased it. Only the verdict is left then.
    pub erased: bool,
}

/// What became of the wish to plan a canary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Planned {
    /// It is durable, and ours to submit until the lease ends.
    Ours,
    /// Its key is there already: somebody planned this slot before.
    Taken,
    /// The cap of the route and hour is reached. Nothing was written.
    CapReached,
    /// The route is paused. Nothing was written.
    Paused,
}

/// A wish to plan one canary.
#[derive(Clone, Debug, PartialEq)]
pub struct PlanRequest {
    /// The plan.
    pub plan: Plan,
    /// The route's cap for one clock hour (UTC), all kinds together, per location.
    pub hourly_cap: u32,
    /// When it is first to be looked at.
    pub next_look: DateTime<Utc>,
}

/// Who holds a canary while it is being submitted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    /// The process, by a name that is new at each start.
    pub owner: String,
    /// Until when. After that another process may take it.
    pub until: DateTime<Utc>,
}

/// Events to append to one canary.
#[derive(Clone, Debug, PartialEq)]
pub struct Append {
    /// The canary.
    pub canary_id: CanaryId,
    /// The events.
    pub events: Vec<Event>,
    /// When it is next to be looked at, if that changes: the earlier of this and what is there wins.
    pub look_by: Option<DateTime<Utc>>,
    /// Ends the lease: the submission has its result.
    pub release: bool,
}

/// What an append met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Appended {
    /// Written. `receipts_before` says how many receipts the canary had.
    Written {
        /// Receipts before this append.
        receipts_before: u32,
    },
    /// No such canary.
    NoSuchCanary,
    /// It was erased, or has as many receipts as are kept (32): counted, not written.
    Dropped,
}

/// A decision on one canary: what to append, and how the sums change. Written whole or not at all.
#[derive(Clone, Debug, PartialEq)]
pub struct Decision {
    /// The canary.
    pub canary_id: CanaryId,
    /// The version the decision was made on.
    pub version: i64,
    /// The events to append. A `Settled` or `Corrected` among them changes the sums.
    pub events: Vec<Event>,
    /// Where it stopped, with a new judgement that is a failure.
    pub stopped: Option<Stopped>,
    /// When it is next to be looked at; nothing closes it.
    pub next_look: Option<DateTime<Utc>>,
}

/// A settled canary in the order of evidence.
#[derive(Clone, Debug, PartialEq)]
pub struct Settled {
    /// The route.
    pub route: RouteName,
    /// Its instant.
    pub slot: DateTime<Utc>,
    /// The canary.
    pub canary_id: CanaryId,
    /// Why it was sent.
    pub kind: CanaryKind,
    /// The verdict in force.
    pub verdict: Verdict,
    /// The class in force.
    pub class: Class,
    /// The end that was expected of it when it was planned.
    pub expected: ExpectedEnd,
    /// Where it stopped, if it failed.
    pub stopped: Option<Stopped>,
    /// Counts judgements over the whole store; later judgements have greater numbers.
    pub change: i64,
}

/// How many canaries of a route are on their way.
#[derive(Clone, Debug, PartialEq)]
pub struct InFlight {
    /// The route.
    pub route: RouteName,
    /// Those without a verdict.
    pub count: u64,
    /// The oldest slot among them.
    pub oldest_slot: Option<DateTime<Utc>>,
}

/// Which canaries to list.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Filter {
    /// Of this route.
    pub route: Option<RouteName>,
    /// Known by this notification id.
    pub notification: Option<NotificationId>,
    /// With this verdict in force.
    pub verdict: Option<Verdict>,
    /// With at least one of these contradictions; where there are none, with or without any.
    pub disagreements: BTreeSet<Disagreement>,
    /// With a slot at or after this.
    pub from: Option<DateTime<Utc>>,
    /// With a slot before this.
    pub until: Option<DateTime<Utc>>,
    /// At most so many, the newest first.
    pub limit: u32,
}

/// A pause: nothing is sent until it expires.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pause {
    /// The route; nothing for all of them.
    pub route: Option<RouteName>,
    /// Who paused it.
    pub owner: String,
    /// Why.
    pub reason: String,
    /// Until when.
    pub until: DateTime<Utc>,
}

/// What the operator did, for the record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operation {
    /// When.
    pub at: DateTime<Utc>,
    /// Who.
    pub who: String,
    /// What: `pause`, `resume`, `erase`, `send`, `serve`, `reload`.
    pub what: String,
    /// On what: a route's name or a canary's id.
    pub on: String,
}

/// What the janitor may remove.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Horizon {
    /// Closed canaries with a slot before this go, with their events.
    pub canaries: DateTime<Utc>,
    /// Sums by minute before this go.
    pub minutes: DateTime<Utc>,
    /// Sums by hour before this go.
    pub hours: DateTime<Utc>,
}

/// What the janitor removed in one step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Removed {
    /// Canaries.
    pub canaries: u64,
    /// Sums.
    pub sums: u64,
}

/// Which canary to erase.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ErasureTarget {
    /// By its own id.
    Canary(CanaryId),
    /// By the id under which the service accepted it.
    Notification(NotificationId),
}

/// The monitor's own durable state.
#[async_trait]
pub trait Store: FollowerStore + AuditStore + PastStore {
    /// Whether a write can be made now: makes one, of no worth, within two seconds.
    async fn ping(&self) -> Result<(), StoreError>;

    /// Plans canaries, each for itself: one per key, below its cap, unless paused. The answers are in the order of the wishes.
    async fn plan(&self, wishes: &[PlanRequest], lease: &Lease) -> Result<Vec<Planned>, StoreError>;

    /// Takes over canaries of this location whose submission has no result and whose lease has ended by `now`, and the lease's own
    /// owner's that end within [`RENEWED_BEFORE`]: so who is still submitting keeps what it holds, however long that takes.
    async fn take_over(
        &self,
        location: &Location,
        now: DateTime<Utc>,
        lease: &Lease,
        limit: u32,
    ) -> Result<Vec<Stored>, StoreError>;

    /// Appends events. The answers are in the order of the appends.
    async fn append(&self, appends: &[Append]) -> Result<Vec<Appended>, StoreError>;

    /// Canaries of this location that are to be looked at by `now` and are not being submitted, the longest due first; none of the
    /// routes in `but`.
    async fn due(
        &self,
        location: &Location,
        now: DateTime<Utc>,
        limit: u32,
        but: &[RouteName],
    ) -> Result<Vec<Stored>, StoreError>;

    /// When the next look is due at this location.
    async fn next_due(&self, location: &Location) -> Result<Option<DateTime<Utc>>, StoreError>;

    /// Writes decisions. `false` where the canary has changed since its version: look again.
    async fn decide(&self, decisions: &[Decision]) -> Result<Vec<bool>, StoreError>;

    /// The newest slot that was planned of each kind on each route at this location.
    async fn newest_slots(
        &self,
        location: &Location,
    ) -> Result<HashMap<(RouteName, CanaryKind), DateTime<Utc>>, StoreError>;

    /// Settled canaries of scheduled and confirmation kind with a slot at or after `from`, in the order (slot, id); of one route or of all.
    async fn settled(
        &self,
        location: &Location,
        route: Option<&RouteName>,
        from: DateTime<Utc>,
    ) -> Result<Vec<Settled>, StoreError>;

    /// Judgements after this change number, the oldest first, at most `limit`: what replicas settled or corrected.
    async fn settled_since(
        &self,
        location: &Location,
        change: i64,
        limit: u32,
    ) -> Result<Vec<Settled>, StoreError>;

    /// The number of the newest judgement; zero before the first.
    async fn newest_change(&self) -> Result<i64, StoreError>;

    /// Sums over [now - window, now), by the minute of first settlement.
    async fn window(&self, window: Duration, now: DateTime<Utc>) -> Result<Vec<WindowSum>, StoreError>;

    /// What the control arms came to over [now - window, now), by the minute of first settlement.
    async fn controls(&self, window: Duration, now: DateTime<Utc>) -> Result<Vec<ControlSum>, StoreError>;

    /// Disagreements over [now - window, now), by the minute in which they were found.
    async fn disagreements(
        &self,
        window: Duration,
        now: DateTime<Utc>,
    ) -> Result<Vec<(RouteName, Disagreement, u64)>, StoreError>;

    /// What is on its way at this location.
    async fn in_flight(&self, location: &Location) -> Result<Vec<InFlight>, StoreError>;

    /// The newest submission and the newest intact arrival per route at this location, of all kinds that go through the service.
    async fn newest(
        &self,
        location: &Location,
    ) -> Result<Vec<(RouteName, Option<DateTime<Utc>>, Option<DateTime<Utc>>)>, StoreError>;

    /// One canary with its events, in the order they were written, each with the time it was written.
    async fn canary(&self, id: CanaryId)
    -> Result<Option<(Stored, Vec<(DateTime<Utc>, Event)>)>, StoreError>;

    /// Canaries, the newest first.
    async fn list(&self, filter: &Filter) -> Result<Vec<Stored>, StoreError>;

    /// Erases identifiers, attempts and digests of a canary, closes it, and leaves the verdict. `false` if there is none such.
    async fn erase(&self, target: &ErasureTarget, operation: &Operation) -> Result<bool, StoreError>;

    /// Looks at the pauses in force and, in the same round trip, at the store's clock: [`clock::now`](crate::clock::now) follows it.
    ///
    /// From the first contact on, whichever call makes it, it is as late as the store says. Where that is another time than before, the
    /// calls that waited for the contact are refused: what they ask for was meant for a time that it is not.
    async fn look(&self) -> Result<Look, StoreError>;

    /// Pauses in force at `now`.
    async fn pauses(&self, now: DateTime<Utc>) -> Result<Vec<Pause>, StoreError>;

    /// Pauses, replacing the pause of the same route.
    async fn pause(&self, pause: &Pause, operation: &Operation) -> Result<(), StoreError>;

    /// Ends the pause of this route, or the one of all routes. `false` if there was none.
    async fn resume(&self, route: Option<&RouteName>, operation: &Operation) -> Result<bool, StoreError>;

    /// Notes what an operator did.
    async fn note(&self, operation: &Operation) -> Result<(), StoreError>;

    /// What operators did, the newest first.
    async fn operations(&self, limit: u32) -> Result<Vec<Operation>, StoreError>;

    /// Writes down that a self-receipt arrived by this way and, where given, since when this process could take arrivals. Kept for two days.
    async fn prove_sink(
        &self,
        way: Way,
        at: DateTime<Utc>,
        opened: Option<DateTime<Utc>>,
    ) -> Result<(), StoreError>;

    /// The record of this way within [from, until], by time.
    async fn sink_marks(
        &self,
        way: Way,
        from: DateTime<Utc>,
        until: DateTime<Utc>,
    ) -> Result<Vec<Mark>, StoreError>;

    /// The first self-receipt by this way within [from, until].
    async fn sink_proof(
        &self,
        way: Way,
        from: DateTime<Utc>,
        until: DateTime<Utc>,
    ) -> Result<Option<DateTime<Utc>>, StoreError>;

    /// Removes what is beyond the horizon, at most `limit` canaries; call again while it removes any.
    async fn prune(&self, horizon: &Horizon, limit: u32) -> Result<Removed, StoreError>;
}

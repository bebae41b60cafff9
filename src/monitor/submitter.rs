//! Submissions: each planned canary is submitted under its key until its fate is known or its bounds are reached.

use super::{active::ActiveRoute, crash, follower, planner, shared::Shared};
use crate::{
    acceptance::{Request, Submitter},
    catalog::labels::{LoopName, SubmissionLabel},
    clock,
    domain::{
        canary::{Canary, CanaryKind, Event, Plan},
        evidence::{AmbiguityReason, RefusalReason, Submission, SubmissionResult},
        following::next_look,
        route::CanaryId,
        watch::Way,
    },
    store::{Append, Appended, StoreError, Stored},
};
use chrono::{DateTime, TimeDelta, Utc};
use std::{
    collections::HashSet,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};
use tokio::sync::Semaphore;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

/// Most submissions under way at a time. More wait for a place.
const MOST_AT_A_TIME: usize = 1024;

/// Most submissions that wait for a place. While there are more, nothing is planned.
const MOST_WAITING: usize = 1024;

/// How long a canary that is planned or taken over is held. It is held again before that ends, for as long as it is under way here: so one that a
/// crash left is free soon enough to be sent all the same.
pub(super) const HELD_FOR: TimeDelta = TimeDelta::seconds(60);

/// Most that are taken over at a time.
const TAKEN_AT_A_TIME: u32 = 256;

/// How long after it was planned a canary that was never heard of is still sent.
const RESUME_WITHIN: TimeDelta = TimeDelta::minutes(10);

/// How long a replay's first request may run before it is aborted.
const ABORT_AFTER: Duration = Duration::from_millis(20);

/// Submissions under way.
#[derive(Clone)]
pub struct Submissions {
    shared: Arc<Shared>,
    places: Arc<Semaphore>,
    tasks: TaskTracker,
    cancel: CancellationToken,
    under_way: Arc<Mutex<HashSet<CanaryId>>>,
}

/// A canary that is under way here, until this is dropped.
struct UnderWay {
    canary_id: CanaryId,
    all: Arc<Mutex<HashSet<CanaryId>>>,
}

impl UnderWay {
    /// Nothing where it is under way already: one canary has one series of submissions at a time.
    fn begin(all: &Arc<Mutex<HashSet<CanaryId>>>, canary_id: CanaryId) -> Option<Self> {
        // Each change is one insertion or removal, so that a panic elsewhere leaves the set whole.
        let is_new = all.lock().unwrap_or_else(PoisonError::into_inner).insert(canary_id);
        is_new.then(|| Self { canary_id, all: Arc::clone(all) })
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.all.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.canary_id);
    }
}

/// Where the traces of a submission will be found.
struct Traces {
    way: Option<Way>,
    ledger: Option<String>,
}

impl Traces {
    /// The submission with its traces.
    fn on(&self, submission: Submission) -> Submission {
        Submission { way: self.way, ledger: self.ledger.clone(), ..submission }
    }
}

impl Submissions {
    /// None under way.
    pub fn new(shared: Arc<Shared>, cancel: CancellationToken) -> Self {
        Self {
            shared,
            places: Arc::new(Semaphore::new(MOST_AT_A_TIME)),
            tasks: TaskTracker::new(),
            cancel,
            under_way: Arc::default(),
        }
    }

    /// Whether more may be planned. What is planned faster than it can be submitted would wait longer and longer, and go out
    /// at another time than its slot says.
    pub fn has_room(&self) -> bool {
        self.tasks.len() < MOST_AT_A_TIME + MOST_WAITING
    }

    /// Submits a planned canary, in a task of its own.
    pub fn submit(&self, route: Arc<ActiveRoute>, plan: Plan) {
        if let Some(held) = UnderWay::begin(&self.under_way, plan.canary_id) {
            self.spawn(route, plan, Vec::new(), held);
        }
    }

    fn spawn(&self, route: Arc<ActiveRoute>, plan: Plan, before: Vec<Event>, held: UnderWay) {
        let this = self.clone();
        self.tasks.spawn(async move {
            let _held = held;
            let Ok(_place) = this.places.acquire().await else { return };
            this.submit_until_known(&route, plan, before).await;
        });
    }

    /// Waits until nothing is under way.
    pub async fn drained(&self) {
        self.tasks.close();
        self.tasks.wait().await;
    }

    /// Takes over what a process that is gone left unsubmitted, and holds on to what is under way here. Runs until it is cancelled.
    pub async fn take_over(self, cancel: CancellationToken) {
        // Until it is known what is paused, nothing goes out again.
        while !cancel.is_cancelled() && !self.shared.knows_pauses() {
            // To wait for the store is no standing still.
            self.shared.loops.ended(LoopName::Submitter, false, clock::now());
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        while !cancel.is_cancelled() {
            let result = self.take_over_once().await;
            self.shared.loops.ended(LoopName::Submitter, result.is_ok(), clock::now());
            match result {
                Ok(taken) if taken >= TAKEN_AT_A_TIME as usize => continue,
                Ok(_) => {}
                Err(error) => tracing::debug!(event = "taking_over_postponed", reason = %error),
            }
            tokio::select! {
                () = cancel.cancelled() => return,
                () = tokio::time::sleep(Duration::from_secs(2)) => {}
            }
        }
    }

    /// Each call of the store is made once: what fails is found again when its lease ends.
    async fn take_over_once(&self) -> Result<usize, StoreError> {
        let now = clock::now();
        let lease = planner::lease(&self.shared, HELD_FOR, now);
        let (store, location) = (&self.shared.store, &self.shared.location);
        let left = store.take_over(location, now, &lease, TAKEN_AT_A_TIME).await?;
        let taken = left.len();
        let active = self.shared.active.load_full();
        let mut released = Vec::new();
        for Stored { canary, .. } in left {
            let Some(held) = UnderWay::begin(&self.under_way, canary.plan.canary_id) else { continue };
            let plan = &canary.plan;
            let may_have_left = !self.repeats_safely(plan);
            match active.routes.get(&plan.route) {
                Some(route) if now - plan.planned_at <= RESUME_WITHIN && !may_have_left => {
                    let before = vec![Event::Submitted(gone(plan, now))];
                    self.spawn(Arc::clone(route), canary.plan, before, held);
                }
                // It is left to the follower: the ledger or the sink may know of it.
                _ => {
                    let look_by = next_look(&canary, now);
                    let canary_id = plan.canary_id;
                    released.push(Append { canary_id, events: Vec::new(), look_by, release: true });
                }
            }
        }
        if !released.is_empty() {
            store.append(&released).await?;
            self.shared.follow.notify_one();
        }
        Ok(taken)
    }

    fn repeats_safely(&self, plan: &Plan) -> bool {
        self.submitter(plan).is_some_and(|s| s.repeats_safely())
    }

    fn submitter(&self, plan: &Plan) -> Option<Arc<dyn Submitter>> {
        let active = self.shared.active.load();
        let route = active.routes.get(&plan.route)?;
        active.submitter(route, plan.kind).cloned()
    }

    /// `before` is what is known of submissions by a process that is gone.
    async fn submit_until_known(&self, route: &ActiveRoute, plan: Plan, before: Vec<Event>) {
        let Some(submitter) = self.submitter(&plan) else { return };
        let (request, traces) = self.request(route, &plan);
        let (most, mut wait) = self.bounds(route, plan.kind);
        // What is paused stays as it was left: that it may have left before is no news of the service either.
        if self.is_held(&plan) {
            return self.append(&plan, Vec::new(), !self.cancel.is_cancelled()).await;
        }
        let mut events = before;
        if !events.is_empty() {
            self.append(&plan, events.clone(), false).await;
        }
        if plan.kind == CanaryKind::Replay {
            let replayed = self.replay(&*submitter, &request).await;
            replayed.iter().for_each(|submission| self.count(&plan, &submission.result));
            let replayed = replayed.map(|submission| Event::Submitted(traces.on(submission))).to_vec();
            events.extend(replayed.iter().cloned());
            self.append_seen(&plan, replayed, &events, false).await;
        }
        for number in 1..=most {
            // The kill switch is asked before each request leaves, not only when the slot was planned.
            if self.is_held(&plan) {
                return self.append(&plan, Vec::new(), !self.cancel.is_cancelled()).await;
            }
            crash::point("before_submission");
            let submission = traces.on(submitter.submit(&request).await);
            crash::point("submitted_not_written");
            self.count(&plan, &submission.result);
            let repeat = match &submission.result {
                SubmissionResult::Accepted { .. } => false,
                SubmissionResult::Refused { reason } => *reason == RefusalReason::Unreachable,
                SubmissionResult::Ambiguous { .. } => submitter.repeats_safely(),
            };
            let last = !repeat || number == most;
            events.push(Event::Submitted(submission));
            let newest = events[events.len() - 1..].to_vec();
            self.append_seen(&plan, newest, &events, last).await;
            if last {
                return;
            }
            tokio::select! {
                () = self.cancel.cancelled() => return,
                () = tokio::time::sleep(wait) => {}
            }
            wait *= 2;
        }
    }

    /// Whether nothing of it may leave now: its route is paused, or this process ends.
    fn is_held(&self, plan: &Plan) -> bool {
        self.cancel.is_cancelled() || self.shared.paused(&plan.route, clock::now()).is_some()
    }

    /// One key at once and after an aborted request: one id and one effect are expected.
    async fn replay(&self, submitter: &dyn Submitter, request: &Request) -> [Submission; 3] {
        let started_at = clock::now();
        let aborted = match tokio::time::timeout(ABORT_AFTER, submitter.submit(request)).await {
            Ok(submission) => submission,
            Err(_) => Submission {
                started_at,
                ended_at: clock::now(),
                status: None,
                way: None,
                ledger: None,
                result: SubmissionResult::Ambiguous { reason: AmbiguityReason::Broken },
            },
        };
        let (one, other) = tokio::join!(submitter.submit(request), submitter.submit(request));
        [aborted, one, other]
    }

    /// The request, and where its traces will be.
    fn request(&self, route: &ActiveRoute, plan: &Plan) -> (Request, Traces) {
        let active = self.shared.active.load();
        let sink = route.config.receipt.as_ref().and_then(|r| active.adapters.sinks.get(&r.receiver));
        // A token outlives following, so that a late arrival is late and not forged.
        let expires_at = plan.slot.max(plan.planned_at) + plan.follow_for + TimeDelta::hours(1);
        let token = sink.map(|s| s.issue(plan.canary_id, &plan.route, expires_at)).unwrap_or_default();
        let request = Request {
            recipient: route.config.recipients.first().cloned().unwrap_or_default(),
            allowed: route.config.recipients.clone(),
            callback_url: sink.and_then(|s| s.callback_url(&token)),
            token,
            variables: route.config.variables.clone(),
            plan: plan.clone(),
        };
        let ledger = route.config.ledger.clone().filter(|_| !plan.kind.is_control());
        (request, Traces { way: sink.map(|sink| sink.way()), ledger })
    }

    fn bounds(&self, route: &ActiveRoute, kind: CanaryKind) -> (u32, Duration) {
        use crate::config::acceptance::Acceptance;
        let active = self.shared.active.load();
        match active.config.acceptances.get(&route.stream(kind).acceptance) {
            Some(Acceptance::Http(http)) => (http.max_submissions, http.resubmit_after.get()),
            None => (1, Duration::ZERO),
        }
    }

    fn count(&self, plan: &Plan, result: &SubmissionResult) {
        let Some(label) = SubmissionLabel::of(result) else { return };
        if let Some(counters) = self.shared.counters.route(&plan.route) {
            counters.submissions(label).inc();
        }
    }

    async fn append(&self, plan: &Plan, events: Vec<Event>, release: bool) {
        let all = events.clone();
        self.append_seen(plan, events, &all, release).await;
    }

    /// Writes down what is new, for as long as the store can't be written and the lease may hold. What can't be written is
    /// found again by taking over: the key makes that safe.
    async fn append_seen(&self, plan: &Plan, new: Vec<Event>, all: &[Event], release: bool) {
        let canary = Canary::fold(plan.clone(), all);
        let look_by = next_look(&canary, clock::now());
        let append = Append { canary_id: plan.canary_id, events: new, look_by, release };
        let mut wait = Duration::from_millis(200);
        for _ in 0..8 {
            match self.shared.store.append(std::slice::from_ref(&append)).await {
                Ok(answers) => {
                    crash::point("submission_written");
                    if wakes_follower(&answers, look_by, clock::now()) {
                        self.shared.follow.notify_one();
                    }
                    return;
                }
                Err(error) => tracing::debug!(event = "submission_not_yet_written", reason = %error),
            }
            tokio::time::sleep(wait).await;
            wait = (wait * 2).min(Duration::from_secs(5));
        }
        tracing::warn!(event = "submission_not_written", canary_id = %plan.canary_id, route = plan.route.as_str());
    }
}

/// What is known of submissions by a process that is gone: from when the canary was planned on, one may have left. So a refusal of
/// the next request, which may be another by now, is none of the canary.
fn gone(plan: &Plan, now: DateTime<Utc>) -> Submission {
    let result = SubmissionResult::Ambiguous { reason: AmbiguityReason::TakenOver };
    Submission { started_at: plan.planned_at, ended_at: now, status: None, way: None, ledger: None, result }
}

/// Whether the follower has something to do at once: what arrived before the submission had ended waits for it to end. A look that is
/// due later it finds by itself.
fn wakes_follower(answers: &[Appended], look_by: Option<DateTime<Utc>>, now: DateTime<Utc>) -> bool {
    let has_arrived = |answer: &Appended| matches!(answer, Appended::Written { receipts_before: 1.. });
    answers.iter().any(has_arrived) || look_by.is_some_and(|at| at <= now + follower::LONGEST_WAIT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_follower_is_woken_for_what_it_can_do_now() {
        let now = clock::now();
        let written = |receipts_before| [Appended::Written { receipts_before }];
        let (soon, later) = (now + TimeDelta::milliseconds(900), now + TimeDelta::minutes(2));
        assert!(wakes_follower(&written(1), Some(later), now), "it has arrived before its submission ended");
        assert!(
            wakes_follower(&written(0), Some(soon), now),
            "its look comes before the follower's next one"
        );
        assert!(!wakes_follower(&written(0), Some(later), now), "there is nothing to see yet");
        assert!(!wakes_follower(&[Appended::Dropped], None, now), "there is nothing to see any more");
    }

    #[test]
    fn a_canary_is_under_way_once_until_it_ends() {
        let all = Arc::default();
        let canary = CanaryId(uuid::Uuid::from_u128(1));
        let first = UnderWay::begin(&all, canary);
        assert!(first.is_some() && UnderWay::begin(&all, canary).is_none());
        assert!(UnderWay::begin(&all, CanaryId(uuid::Uuid::from_u128(2))).is_some());
        drop(first);
        assert!(UnderWay::begin(&all, canary).is_some());
    }
}

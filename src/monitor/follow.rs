//! Takes over the counts that the adapters keep themselves, under the words of the catalog.

use super::{
    counters::{Counters, LedgerCounters, ReceiverCounters},
    flow::FlowReport,
    snapshot::LedgerSnapshot,
};
use crate::{
    acceptance::{OnStop, guard},
    catalog::labels::{GuardReason, ReceiptResult},
    domain::pending::PendingSnapshot,
    ledger::LedgerFigures,
    receipt::stats::{ArrivalResult, ReceiverStats},
    store::AuditSums,
};
use std::sync::Arc;

impl From<guard::GuardReason> for GuardReason {
    fn from(reason: guard::GuardReason) -> Self {
        match reason {
            guard::GuardReason::MailAddress => Self::MailAddress,
            guard::GuardReason::PhoneNumber => Self::PhoneNumber,
            guard::GuardReason::Template => Self::Template,
        }
    }
}

impl From<ArrivalResult> for ReceiptResult {
    fn from(result: ArrivalResult) -> Self {
        match result {
            ArrivalResult::Recorded => Self::Recorded,
            ArrivalResult::Duplicate => Self::Duplicate,
            ArrivalResult::SelfReceipt => Self::SelfReceipt,
            ArrivalResult::MalformedToken => Self::MalformedToken,
            ArrivalResult::Forged => Self::Forged,
            ArrivalResult::Expired => Self::Expired,
            ArrivalResult::WrongRoute => Self::WrongRoute,
            ArrivalResult::BadSender => Self::BadSender,
            ArrivalResult::UnknownCanary => Self::UnknownCanary,
            ArrivalResult::Unavailable => Self::Unavailable,
            ArrivalResult::TooLarge => Self::TooLarge,
            ArrivalResult::TooSlow => Self::TooSlow,
            ArrivalResult::Method => Self::Method,
            ArrivalResult::MalformedRequest => Self::MalformedRequest,
            ArrivalResult::Broken => Self::Broken,
            ArrivalResult::CrowdedOut => Self::CrowdedOut,
        }
    }
}

impl Counters {
    /// What a submitter calls when the guard stops a request. A route that is no longer configured is not counted.
    pub fn on_stop(self: &Arc<Self>) -> OnStop {
        let counters = Arc::clone(self);
        Arc::new(move |route, reason| {
            if let Some(counted) = counters.route(route) {
                counted.guard_refusals(reason.into()).inc();
            }
        })
    }
}

impl ReceiverCounters {
    /// Rises to the counts of the receiver.
    pub fn follow(&self, stats: &ReceiverStats) {
        for (result, count) in stats.all() {
            self.results(result.into()).raise_to(count);
        }
    }
}

impl LedgerCounters {
    /// Takes what the ledger's adapter counted since. How long readings take is observed by whoever makes them.
    pub fn follow(&self, figures: &LedgerFigures) {
        self.rows_read.follow(figures.rows_read);
        self.unmapped_statuses.follow(figures.unmapped_statuses);
        self.refused_times.follow(figures.refused_times);
    }
}

impl LedgerSnapshot {
    /// What the outside may see of a ledger: its newest reading, and what its adapter knows of it.
    pub fn new(pending: Option<PendingSnapshot>, flow: FlowReport, figures: &LedgerFigures) -> Self {
        let (role_can_write, lag) = (figures.role_can_write, figures.lag);
        Self {
            pending_read_at: pending.as_ref().map(|pending| pending.as_of),
            pending,
            flow,
            role_can_write,
            lag,
            history: AuditSums::default(),
            violations_in_sample: 0,
        }
    }
}

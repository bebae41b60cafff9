//! How a ledger is followed: pages of two streams, the truth by id, and the exact count.

mod attempts;
mod cursor;
mod ids;
mod notifications;
mod page;
mod partition;
mod reader;
mod routes;
mod stream;

pub use ids::text_of;
pub(super) use ids::{UnitFields, ledger_id};
pub use page::{Page, PartitionReading, PendingCount, Seen, Truths};
pub(super) use reader::FlowQueries;
pub use reader::LedgerFlow;
pub(super) use routes::{RouteField, Routes};
pub(super) use stream::Stream;

use super::{Elsewhere, LedgerError, Position};
use crate::domain::{
    audit::sample::Reading,
    flow::rows::{AttemptRow, LedgerId, NotificationRow, RouteNo, UnitId},
    route::RouteName,
};
use async_trait::async_trait;
use chrono::{DateTime, Utc};
use std::{collections::BTreeMap, sync::Arc};

/// A ledger that can be followed.
#[async_trait]
pub trait FlowReader: Send + Sync {
    /// The routes that its rows can be of. A row's [`RouteNo`](crate::domain::flow::rows::RouteNo) is the place in here; the place
    /// behind the last means none of them. The order depends on the configuration: what is kept is kept by name.
    fn routes(&self) -> &[RouteName];

    /// Whether it has a stream of attempts.
    fn has_attempts(&self) -> bool;

    /// Whether the exact count can be taken.
    fn has_partition(&self) -> bool;

    /// The notifications behind this place, in the ledger's order; without a place, those of the configured history. Where the SQL
    /// binds `:until_ts`, rows from `until` on may be left out; others may still be among them.
    ///
    /// # Errors
    /// When the ledger can't be read, or its rows are not in the order of the cursor.
    async fn notifications_page(
        &self,
        after: Option<&Position>,
        until: Option<DateTime<Utc>>,
    ) -> Result<Page<NotificationRow>, LedgerError>;

    /// A place in the notifications' stream that comes before all rows of this time and later; before all rows where the cursor has no time.
    ///
    /// # Errors
    /// When the ledger can't be read.
    async fn notifications_from(&self, from: DateTime<Utc>) -> Result<Position, LedgerError>;

    /// The attempts behind this place, likewise. An attempt without an outcome has a place and no row.
    ///
    /// # Errors
    /// As for the notifications; and where there is no stream of attempts.
    async fn attempts_page(
        &self,
        after: Option<&Position>,
        until: Option<DateTime<Utc>>,
    ) -> Result<Page<AttemptRow>, LedgerError>;

    /// All that the ledger says now of these notifications, and of all destinations of each. What isn't there isn't in the answer.
    ///
    /// # Errors
    /// When the ledger can't be read.
    async fn truths(&self, units: &[UnitId]) -> Result<Truths, LedgerError>;

    /// The attempts of these notifications as they are now, for the audit; `with_keys` tells too which notifications share their key with
    /// others. At most two statements, as long as the answers are within the limit of rows.
    ///
    /// # Errors
    /// When the ledger can't be read.
    async fn histories(&self, notifications: &[LedgerId], with_keys: bool) -> Result<Reading, LedgerError>;

    /// Counts what was due at or after `from` and before `until`, by route and standing. Parts of a second are rounded outwards.
    ///
    /// # Errors
    /// When the ledger can't be read, the result is cut, or there is no such query.
    async fn partition(
        &self,
        from: DateTime<Utc>,
        until: DateTime<Utc>,
    ) -> Result<PartitionReading, LedgerError>;

    /// An independent count of the accepted, where one is configured.
    fn elsewhere(&self) -> Option<&Arc<Elsewhere>> {
        None
    }

    /// Counts what was accepted at or after `from` and before `until` by a query of its own; nothing where there is none. What isn't in it is 0.
    ///
    /// # Errors
    /// When the ledger can't be read, the result is cut, or the interval can't be told apart from its neighbours.
    async fn accepted(
        &self,
        _from: DateTime<Utc>,
        _until: DateTime<Utc>,
    ) -> Result<Option<BTreeMap<RouteNo, u64>>, LedgerError> {
        Ok(None)
    }

    /// What is pending, by the query for everybody's pending; nothing where there is none, or its result is cut.
    ///
    /// # Errors
    /// When the ledger can't be read.
    async fn pending_counts(&self) -> Result<Option<Vec<PendingCount>>, LedgerError> {
        Ok(None)
    }
}

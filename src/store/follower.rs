//! What the followers of ledgers keep: who follows, up to where, what is pending, and counts of what is past.

mod rows;

use super::StoreError;
use async_trait::async_trait;
use chrono::{DateTime, Utc};
use sha2::{Digest, Sha256};
use std::collections::BTreeSet;

/// A pending notification that is followed, or one of its destinations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FollowedUnit {
    /// Which one, by the follower's key.
    pub unit: String,
    /// The full name of its route.
    pub route: String,
    /// When it was due.
    pub due: DateTime<Utc>,
    /// What is known of it, in the follower's own words.
    pub body: String,
}

/// An attempt whose notification is not followed (yet, or any more).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FollowedStray {
    /// Whose it is, by the follower's key.
    pub unit: String,
    /// Which one, by the follower's key.
    pub attempt: String,
    /// What is known of it, in the follower's own words.
    pub body: String,
}

/// Counts of what has left the follower's memory, of one route and one stretch of time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FollowedCell {
    /// The length of the bucket in seconds.
    pub level: i64,
    /// The bucket's beginning.
    pub bucket: DateTime<Utc>,
    /// The full name of the route.
    pub route: String,
    /// The counts, in the follower's own words.
    pub body: String,
}

/// What is kept of one ledger, but for the units, which may be many: see [`FollowerStore::followed_units`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Followed {
    /// Up to where it was followed, in the follower's own words; nothing before the first save.
    pub position: Option<String>,
    /// When it was last saved.
    pub saved_at: Option<DateTime<Utc>>,
    /// What waits for its notification.
    pub strays: Vec<FollowedStray>,
    /// What is past.
    pub cells: Vec<FollowedCell>,
}

/// What one pass of a follower changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FollowerSave {
    /// Up to where it is followed now.
    pub position: String,
    /// Begins anew: all that was kept of this ledger goes first.
    pub is_fresh: bool,
    /// Units that are new or have changed.
    pub units: Vec<FollowedUnit>,
    /// Units that are followed no more.
    pub gone: Vec<String>,
    /// Strays that are new.
    pub strays: Vec<FollowedStray>,
    /// Strays that have found their notification or were given up, by unit and attempt.
    pub found: Vec<(String, String)>,
    /// Cells that have changed, with what they hold now.
    pub cells: Vec<FollowedCell>,
    /// Of each of these levels, cells whose bucket begins earlier go.
    pub forget: Vec<(i64, DateTime<Utc>)>,
}

/// Which notification to erase: its id, and the keys that it can have with the follower.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FollowedErasure {
    /// The id.
    pub notification_id: String,
    /// The keys that it can have by itself.
    pub keys: Vec<String>,
    /// What the keys of all its destinations begin with.
    pub prefixes: Vec<String>,
}

/// Who follows a ledger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lead {
    /// The caller, until somebody else takes it, which nobody may before the end of the lease.
    Ours {
        /// Whether somebody else, or nobody, did before: what is in memory is then out of date.
        is_new: bool,
        /// Digests of erased notifications, to be left alone; see [`erasure_digest`].
        erased: BTreeSet<String>,
    },
    /// Somebody else.
    Theirs,
}

/// The digest by which an erased notification is known: SHA-256 of its id, in hexadecimal digits.
pub fn erasure_digest(notification_id: &str) -> String {
    hex::encode(Sha256::digest(notification_id.as_bytes()))
}

/// What the followers of ledgers keep. Each call is one transaction.
#[async_trait]
pub trait FollowerStore: Send + Sync + 'static {
    /// Asks to follow a ledger until then; the one who does keeps it by asking again in time.
    ///
    /// # Errors
    /// When the store can't be used.
    async fn lead(
        &self,
        ledger: &str,
        owner: &str,
        now: DateTime<Utc>,
        until: DateTime<Utc>,
    ) -> Result<Lead, StoreError>;

    /// Keeps the lead until then. `false` where the caller has it no more: this takes it from nobody.
    ///
    /// # Errors
    /// When the store can't be used.
    async fn keep_lead(&self, ledger: &str, owner: &str, until: DateTime<Utc>) -> Result<bool, StoreError>;

    /// Gives a ledger up, so that another need not wait for the end of the lease. What is kept of it stays.
    ///
    /// # Errors
    /// When the store can't be used.
    async fn step_down(&self, ledger: &str, owner: &str) -> Result<(), StoreError>;

    /// What is kept of a ledger, but for the units.
    ///
    /// # Errors
    /// When the store can't be used.
    async fn followed(&self, ledger: &str) -> Result<Followed, StoreError>;

    /// The kept units of a ledger whose keys come after this one (`""`: from the first), in the order of their keys, a page of
    /// them: the last page is empty.
    ///
    /// # Errors
    /// When the store can't be used.
    async fn followed_units(&self, ledger: &str, after: &str) -> Result<Vec<FollowedUnit>, StoreError>;

    /// When what is kept of a ledger was last saved. Who doesn't lead reads in several calls, between which the leader may save:
    /// what was read is of one moment where this is what it was.
    ///
    /// # Errors
    /// When the store can't be used.
    async fn followed_saved_at(&self, ledger: &str) -> Result<Option<DateTime<Utc>>, StoreError>;

    /// Writes a pass down, whole or not at all. `false` where somebody else leads by now: nothing is written. Nobody can take the lead
    /// while it is written, and none of the lease goes by meanwhile.
    ///
    /// # Errors
    /// When the store can't be used.
    async fn save_followed(
        &self,
        ledger: &str,
        owner: &str,
        now: DateTime<Utc>,
        save: &FollowerSave,
    ) -> Result<bool, StoreError>;

    /// Digests of erased notifications, to be left alone; see [`erasure_digest`].
    ///
    /// # Errors
    /// When the store can't be used.
    async fn erased(&self) -> Result<BTreeSet<String>, StoreError>;

    /// Those of these notification ids that are canaries'.
    ///
    /// # Errors
    /// When the store can't be used.
    async fn canaries_among(&self, notification_ids: &[String]) -> Result<BTreeSet<String>, StoreError>;

    /// The slot of the oldest canary that is kept; nothing where there is none.
    ///
    /// # Errors
    /// When the store can't be used.
    async fn oldest_canary(&self) -> Result<Option<DateTime<Utc>>, StoreError>;

    /// Erases a notification from all that followers keep, and has it left alone from now on. Answers how many units went.
    ///
    /// # Errors
    /// When the store can't be used.
    async fn erase_followed(&self, which: &FollowedErasure, now: DateTime<Utc>) -> Result<u64, StoreError>;
}

//! What the follower reads from a ledger, row by row, without its database.

use crate::domain::{outcome::Outcome, pending::Tried};
use chrono::{DateTime, Utc};

/// An id in a ledger, as small as it can be held: most are UUIDs or numbers.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LedgerId {
    /// A whole number.
    Int(i64),
    /// A UUID.
    Uuid([u8; 16]),
    /// Any other text, such as a ksuid, or a composite joined by a unit separator.
    Text(Box<str>),
}

/// What one notification is told apart by: its id, and with fan-out its destination.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UnitId {
    /// The notification's id.
    pub notification: LedgerId,
    /// The destination, where one notification goes to several.
    pub destination: Option<Box<str>>,
}

/// The place of a configured route in the follower's table of routes; the last place is `other`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RouteNo(pub u16);

/// Where a notification stands, with what accounting needs of it. Exactly one is true of each accepted notification.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Standing {
    /// It is pending; what was tried so far.
    Pending(Tried),
    /// It was delivered.
    Delivered,
    /// It was rejected for good because of the recipient.
    RejectedRecipient,
    /// It was rejected for good for a reason of the service's own.
    RejectedService,
    /// Policy kept it back.
    Suppressed,
}

impl Standing {
    /// Whether no further attempt is expected.
    pub const fn is_terminal(self) -> bool {
        !matches!(self, Self::Pending(_))
    }

    /// The class of the attempt that leaves a notification in this standing; nothing where nothing was tried.
    pub const fn outcome(self) -> Option<Outcome> {
        match self {
            Self::Pending(Tried::Never) => None,
            Self::Pending(Tried::WillRetry) => Some(Outcome::Retryable),
            Self::Pending(Tried::OutcomeUnknown) => Some(Outcome::Unknown),
            Self::Delivered => Some(Outcome::Delivered),
            Self::RejectedRecipient | Self::RejectedService => Some(Outcome::PermanentRejection),
            Self::Suppressed => Some(Outcome::Suppressed),
        }
    }
}

/// One row of the `notifications` query.
#[derive(Clone, Debug, PartialEq)]
pub struct NotificationRow {
    /// Which one.
    pub unit: UnitId,
    /// Its route.
    pub route: RouteNo,
    /// The later of acceptance and `not_before`.
    pub due: DateTime<Utc>,
    /// Its own status, where the ledger has one that is known. It outweighs the attempts.
    pub own: Option<Standing>,
    /// Whether a marker column says that it is a canary: it is then kept apart, and is no leak.
    pub is_marked_canary: bool,
    /// Whether its key is one of ours: it is a canary, and a leak where it isn't marked.
    pub has_canary_key: bool,
}

/// One row of the `attempts` query. An attempt that is under way, without an outcome, is no row.
#[derive(Clone, Debug, PartialEq)]
pub struct AttemptRow {
    /// The attempt.
    pub attempt: LedgerId,
    /// Whose it is.
    pub unit: UnitId,
    /// When it started; attempts are ordered by this, then by id.
    pub at: DateTime<Utc>,
    /// What it leaves its notification in. Never `Pending(Never)`.
    pub leaves: Standing,
}

/// All that the ledger says of one notification at one moment: the answer of a lookup by id.
#[derive(Clone, Debug, PartialEq)]
pub struct Truth {
    /// Its route, where the lookup shows it.
    pub route: Option<RouteNo>,
    /// The later of acceptance and `not_before`, where the lookup shows it.
    pub due: Option<DateTime<Utc>>,
    /// Its own status, where it has one that is known.
    pub own: Option<Standing>,
    /// Its attempts that have an outcome.
    pub attempts: Vec<AttemptRow>,
}

//! What an attempt came to, and where an accepted notification stands.

use serde::{Deserialize, Serialize};

/// The class of one delivery attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The provider took it. Terminal.
    Delivered,
    /// It will be tried again.
    Retryable,
    /// It will never be taken. Terminal.
    PermanentRejection,
    /// Policy kept it back. Terminal.
    Suppressed,
    /// Nobody knows.
    Unknown,
}

impl Outcome {
    /// All outcomes.
    pub const ALL: [Self; 5] =
        [Self::Delivered, Self::Retryable, Self::PermanentRejection, Self::Suppressed, Self::Unknown];

    /// The word for it in labels and logs.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Delivered => "delivered",
            Self::Retryable => "retryable",
            Self::PermanentRejection => "permanent_rejection",
            Self::Suppressed => "suppressed",
            Self::Unknown => "unknown",
        }
    }

    /// Whether no further attempt is expected after it.
    pub const fn is_terminal(self) -> bool {
        matches!(self, Self::Delivered | Self::PermanentRejection | Self::Suppressed)
    }
}

/// Whose matter a permanent rejection is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// The address is dead.
    Recipient,
    /// The service's own.
    Service,
}

impl Cause {
    /// All causes.
    pub const ALL: [Self; 2] = [Self::Recipient, Self::Service];

    /// The word for it in labels and logs.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Recipient => "recipient",
            Self::Service => "service",
        }
    }
}

/// Where an accepted notification stands. The four partition the accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs)]
pub enum Disposition {
    Delivered,
    PermanentlyRejected,
    Suppressed,
    Pending,
}

impl Disposition {
    /// All dispositions.
    pub const ALL: [Self; 4] = [Self::Delivered, Self::PermanentlyRejected, Self::Suppressed, Self::Pending];

    /// The word for it in labels and logs.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Delivered => "delivered",
            Self::PermanentlyRejected => "permanently_rejected",
            Self::Suppressed => "suppressed",
            Self::Pending => "pending",
        }
    }

    /// The disposition that an attempt of this outcome leaves its notification in.
    pub const fn after(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Delivered => Self::Delivered,
            Outcome::PermanentRejection => Self::PermanentlyRejected,
            Outcome::Suppressed => Self::Suppressed,
            Outcome::Retryable | Outcome::Unknown => Self::Pending,
        }
    }
}

//! Labels, and the only values that each can have: words of an enum, or names from the configuration.

use super::bounds;
use crate::domain::{
    audit::compare::Change,
    canary::CanaryKind,
    disagreement::Disagreement,
    evidence::{RefusalReason, SubmissionResult},
    failure_evidence::Question,
    following::Stopped,
    outcome::{Cause, Disposition, Outcome},
    pending::PendingState,
    route::Channel,
    verdict::{Class, Verdict},
};
use std::time::Duration;

/// The `route` label of what belongs to no configured route.
pub const OTHER_ROUTE: &str = "other";

macro_rules! words {
    ($(#[$meta:meta])* $name:ident { $( $(#[$vmeta:meta])* $variant:ident = $word:literal, )+ }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name { $( $(#[$vmeta])* $variant, )+ }

        impl $name {
            /// All of them, in the order of the enum.
            pub const ALL: [Self; [$( $word ),+].len()] = [$( Self::$variant ),+];

            /// The label value.
            pub const fn word(self) -> &'static str {
                match self { $( Self::$variant => $word, )+ }
            }
        }
    };
}

words!(
    /// What came of a submission.
    SubmissionLabel {
        /// The service accepted it.
        Accepted = "accepted",
        /// It was definitely refused, or no connection came to be.
        Refused = "refused",
        /// It may have taken effect: a timeout, a broken connection, a status in no list.
        Unknown = "unknown",
    }
);
words!(
    /// Why the guard stopped a request before it left.
    GuardReason {
        /// A mail address that is not on the route's allow-list.
        MailAddress = "mail_address",
        /// A phone number that is not on it.
        PhoneNumber = "phone_number",
        /// The request could not be made of its template.
        Template = "template",
    }
);
words!(
    /// A stage of a canary's way, as a duration.
    Stage {
        /// From the first submission to acceptance.
        Accept = "accept",
        /// From the first submission to the first attempt in the ledger.
        FirstAttempt = "first_attempt",
        /// From the first submission to the attempt that delivered.
        LedgerDelivered = "ledger_delivered",
        /// From the first submission to the receipt.
        Receipt = "receipt",
    }
);
words!(
    /// What came of one request to a receiver.
    ReceiptResult {
        /// A canary's first receipt is written down.
        Recorded = "recorded",
        /// A further receipt of the same canary.
        Duplicate = "duplicate",
        /// A message that the monitor sent to itself.
        SelfReceipt = "self_receipt",
        /// The token can't be read.
        MalformedToken = "malformed_token",
        /// The token was not signed by us.
        Forged = "forged",
        /// The token is past its time.
        Expired = "expired",
        /// The token is of another route.
        WrongRoute = "wrong_route",
        /// The sender did not prove itself.
        BadSender = "bad_sender",
        /// There is no such canary (any more).
        UnknownCanary = "unknown_canary",
        /// The body is beyond its limit.
        TooLarge = "too_large",
        /// The request did not come to its end in time.
        TooSlow = "too_slow",
        /// Another method than POST.
        Method = "method",
        /// It is not HTTP, or its head is too large.
        MalformedRequest = "malformed_request",
        /// The sender hung up before its request was whole.
        Broken = "broken",
        /// Its connection was closed to make room for others.
        CrowdedOut = "crowded_out",
        /// It could not be written down; the sender is told to come again.
        Unavailable = "unavailable",
    }
);
words!(
    /// How much goes over a route, and so which ratios can page.
    VolumeClass {
        /// A ratio is eligible over an hour.
        High = "high",
        /// Over six hours or a day.
        Medium = "medium",
        /// Over neither: ages, absolute counts and canaries judge it.
        Low = "low",
        /// It is not configured how much goes over it.
        Unknown = "unknown",
    }
);
words!(
    /// A window that sums are made over.
    Window {
        /// 5 minutes.
        FiveMinutes = "5m",
        /// 30 minutes.
        HalfHour = "30m",
        /// An hour.
        Hour = "1h",
        /// 2 hours.
        TwoHours = "2h",
        /// 6 hours.
        SixHours = "6h",
        /// A day.
        Day = "1d",
        /// 3 days.
        ThreeDays = "3d",
        /// 30 days.
        Month = "30d",
    }
);
words!(
    /// What the follower of a ledger does.
    #[derive(Default)]
    FollowerMode {
        /// It follows new rows, and its figures are those of now.
        Following = "following",
        /// It reads history, and has no figures yet.
        CatchingUp = "catching_up",
        /// There are more pending notifications than it may hold: the pending query alone speaks.
        Snapshot = "snapshot",
        /// Another replica follows.
        Standby = "standby",
        /// This process can't read the ledger, and has left it to others.
        Unable = "unable",
        /// Nothing is to be followed, or nothing could be read yet.
        #[default]
        Off = "off",
    }
);
words!(
    /// The monitor's own loops.
    LoopName {
        /// Plans canaries.
        Scheduler = "scheduler",
        /// Sends them.
        Submitter = "submitter",
        /// Judges them.
        Settler = "settler",
        /// Folds failure evidence.
        Evidence = "evidence",
        /// Reads the ledgers' pending.
        LedgerWatcher = "ledger_watcher",
        /// Follows the ledgers' new rows.
        LedgerFollower = "ledger_follower",
        /// Sends messages to itself through the receivers' public addresses.
        Prover = "prover",
        /// Looks whether the store can be used.
        StoreWatcher = "store_watcher",
        /// Publishes the snapshot.
        Publisher = "publisher",
        /// Watches the configuration.
        Reloader = "reloader",
        /// Removes what is beyond retention.
        Janitor = "janitor",
    }
);

impl SubmissionLabel {
    /// The label of what came of a submission; nothing for one that our own guard stopped, which is counted by its reason.
    pub const fn of(result: &SubmissionResult) -> Option<Self> {
        match result {
            SubmissionResult::Accepted { .. } => Some(Self::Accepted),
            SubmissionResult::Ambiguous { .. } => Some(Self::Unknown),
            SubmissionResult::Refused { reason: RefusalReason::Guard } => None,
            SubmissionResult::Refused { .. } => Some(Self::Refused),
        }
    }
}

impl Window {
    /// How long it is.
    pub const fn duration(self) -> Duration {
        const HOUR: u64 = 3_600;
        Duration::from_secs(match self {
            Self::FiveMinutes => 300,
            Self::HalfHour => 1_800,
            Self::Hour => HOUR,
            Self::TwoHours => 2 * HOUR,
            Self::SixHours => 6 * HOUR,
            Self::Day => 24 * HOUR,
            Self::ThreeDays => 72 * HOUR,
            Self::Month => 720 * HOUR,
        })
    }
}

/// A label of some family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Label {
    Route,
    Location,
    Question,
    StoppedAt,
    Window,
    LedgerWindow,
    DispositionWindow,
    CauseWindow,
    AttemptWindow,
    Disposition,
    Cause,
    Outcome,
    FollowerMode,
    Class,
    Arm,
    ArmClass,
    Verdict,
    OutsideVerdict,
    Stage,
    Disagreement,
    HistoryChange,
    Submission,
    GuardReason,
    Ledger,
    PendingState,
    Channel,
    Provider,
    VolumeClass,
    Observer,
    Loop,
    Clock,
    Receiver,
    ReceiptResult,
    Version,
    Revision,
}

/// Where the values of a label come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Values {
    /// These words and no others.
    Words(Vec<&'static str>),
    /// Names from the configuration, or fixed when the program was built; what kind is said here.
    Named(&'static str),
}

impl Label {
    /// Its name in the exposition.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Route => "route",
            Self::Location => "location",
            Self::Question => "question",
            Self::StoppedAt | Self::Stage => "stage",
            Self::Window
            | Self::LedgerWindow
            | Self::DispositionWindow
            | Self::CauseWindow
            | Self::AttemptWindow => "window",
            Self::Disposition => "disposition",
            Self::Cause => "cause",
            Self::Outcome => "outcome",
            Self::FollowerMode => "mode",
            Self::Class | Self::ArmClass => "class",
            Self::Arm => "arm",
            Self::Verdict | Self::OutsideVerdict => "verdict",
            Self::Disagreement | Self::HistoryChange => "kind",
            Self::Submission | Self::ReceiptResult => "result",
            Self::GuardReason => "reason",
            Self::Ledger => "ledger",
            Self::PendingState => "state",
            Self::Channel => "channel",
            Self::Provider => "provider",
            Self::VolumeClass => "volume_class",
            Self::Observer => "observer",
            Self::Loop => "loop",
            Self::Clock => "against",
            Self::Receiver => "receiver",
            Self::Version => "version",
            Self::Revision => "revision",
        }
    }

    /// The only values that it can have.
    pub fn values(self) -> Values {
        fn words<T: Copy>(all: &[T], word: fn(T) -> &'static str) -> Values {
            Values::Words(all.iter().map(|t| word(*t)).collect())
        }
        match self {
            Self::Question => words(&Question::ALL, Question::word),
            Self::StoppedAt => words(&Stopped::ALL, Stopped::word),
            Self::Window => words(bounds::CANARY_WINDOWS, Window::word),
            Self::LedgerWindow => words(bounds::LEDGER_WINDOWS, Window::word),
            Self::DispositionWindow => words(&[bounds::DISPOSITION_WINDOW], Window::word),
            Self::CauseWindow => words(&[bounds::CAUSE_WINDOW], Window::word),
            Self::AttemptWindow => words(&[bounds::ATTEMPT_WINDOW], Window::word),
            Self::Disposition => words(&Disposition::ALL, Disposition::word),
            Self::Cause => words(&Cause::ALL, Cause::word),
            Self::Outcome => words(&Outcome::ALL, Outcome::word),
            Self::FollowerMode => words(&FollowerMode::ALL, FollowerMode::word),
            Self::Class => words(&Class::ALL, Class::word),
            Self::ArmClass => words(&bounds::ARM_CLASSES, Class::word),
            Self::Arm => Values::Words(CanaryKind::ARMS.to_vec()),
            Self::Verdict => words(&Verdict::ALL, Verdict::word),
            Self::OutsideVerdict => words(&Verdict::OUTSIDE, Verdict::word),
            Self::Stage => words(&Stage::ALL, Stage::word),
            Self::Disagreement => words(&Disagreement::ALL, Disagreement::word),
            Self::HistoryChange => words(&Change::VIOLATIONS, Change::word),
            Self::Submission => words(&SubmissionLabel::ALL, SubmissionLabel::word),
            Self::GuardReason => words(&GuardReason::ALL, GuardReason::word),
            Self::PendingState => words(&PendingState::ALL, PendingState::word),
            Self::Channel => words(&Channel::ALL, Channel::word),
            Self::VolumeClass => words(&VolumeClass::ALL, VolumeClass::word),
            Self::Loop => words(&LoopName::ALL, LoopName::word),
            Self::ReceiptResult => words(&ReceiptResult::ALL, ReceiptResult::word),
            Self::Route => Values::Named("a configured route, `channel/name`, or `other`"),
            Self::Location => Values::Named("this process's configured location"),
            Self::Ledger => Values::Named("a configured ledger"),
            Self::Receiver => Values::Named("a configured receiver"),
            Self::Provider => Values::Named("the route's configured provider, or empty"),
            Self::Observer => Values::Named("`ledger/NAME` or `receiver/NAME` of the configuration"),
            Self::Clock => Values::Named("`store`, or `ledger/NAME` of the configuration"),
            Self::Version => Values::Named("the version of this build"),
            Self::Revision => Values::Named("the source revision of this build, or `unknown`"),
        }
    }
}

//! The faults there are, what each may be given, and the order that switches one.

use serde::{Deserialize, Serialize};
use std::{fmt, str::FromStr};

/// A fault that can be switched on while the simulator runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "&'static str", try_from = "String")]
#[allow(missing_docs)] // the table below says what each one does
pub enum Fault {
    ProviderDown,
    ProviderSlow,
    Provider5xx,
    AmbiguousTimeout,
    SilentDrop,
    Duplicate,
    Malformed,
    CorrelationLost,
    Suppression,
    Rejection,
    AcceptanceDown,
    Acceptance5xx,
    AcceptanceSlow,
    AcceptanceAmbiguous,
    ErrorIn200,
    StuckWorker,
    LedgerUnreachable,
    ClockSkew,
    WriteLost,
    LateLedger,
}

/// What a fault is called, what it does, and what an order for it may hold.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct FaultKind {
    /// The fault.
    pub fault: Fault,
    /// Its name in kebab case.
    #[serde(skip)]
    pub name: &'static str,
    /// Whether it may be confined to one route.
    pub takes_route: bool,
    /// Whether it may strike only a part of the cases.
    pub takes_ratio: bool,
    /// The parameters that it reads.
    pub takes: &'static [&'static str],
    /// What it does.
    pub help: &'static str,
}

const fn kind(
    fault: Fault,
    name: &'static str,
    (takes_route, takes_ratio): (bool, bool),
    takes: &'static [&'static str],
    help: &'static str,
) -> FaultKind {
    FaultKind { fault, name, takes_route, takes_ratio, takes, help }
}

const ANY: (bool, bool) = (true, true);
const ROUTE: (bool, bool) = (true, false);
const WHOLE: (bool, bool) = (false, false);

/// Every fault, in the order in which they are listed.
const KINDS: [FaultKind; 20] = [
    kind(
        Fault::ProviderDown,
        "provider-down",
        ANY,
        &[],
        "the provider refuses connections; for one route or a part of the calls it answers 503",
    ),
    kind(
        Fault::ProviderSlow,
        "provider-slow",
        ANY,
        &["seconds"],
        "the provider waits before it delivers (3 s unless told)",
    ),
    kind(
        Fault::Provider5xx,
        "provider-5xx",
        ANY,
        &["status"],
        "the provider answers with a server error (503 unless told)",
    ),
    kind(
        Fault::AmbiguousTimeout,
        "ambiguous-timeout",
        ANY,
        &[],
        "the provider delivers and never answers: the worker's call times out",
    ),
    kind(Fault::SilentDrop, "silent-drop", ANY, &[], "the provider says delivered and sends nothing"),
    kind(Fault::Duplicate, "duplicate", ANY, &[], "the provider sends each webhook twice"),
    kind(
        Fault::Malformed,
        "malformed",
        ANY,
        &["kind"],
        "the service renders wrongly: `unrendered` (the default) or `wrong_amount`",
    ),
    kind(
        Fault::CorrelationLost,
        "correlation-lost",
        ANY,
        &[],
        "the provider leaves the traceparent out of the webhook",
    ),
    kind(
        Fault::Suppression,
        "suppression",
        ANY,
        &[],
        "the service's policy suppresses: the provider is never called",
    ),
    kind(
        Fault::Rejection,
        "rejection",
        ANY,
        &["code"],
        "the provider rejects for good (`recipient_unknown` unless told)",
    ),
    kind(
        Fault::AcceptanceDown,
        "acceptance-down",
        WHOLE,
        &[],
        "the acceptance listener is closed: connections are refused",
    ),
    kind(
        Fault::Acceptance5xx,
        "acceptance-5xx",
        ANY,
        &["status"],
        "acceptance answers with a server error (503 unless told); nothing is accepted",
    ),
    kind(
        Fault::AcceptanceSlow,
        "acceptance-slow",
        ANY,
        &["seconds"],
        "acceptance waits before it writes and answers (3 s unless told)",
    ),
    kind(
        Fault::AcceptanceAmbiguous,
        "acceptance-ambiguous",
        ANY,
        &["seconds"],
        "acceptance is durable, then the connection is dropped without an answer; or with `seconds` the answer comes so late",
    ),
    kind(
        Fault::ErrorIn200,
        "error-in-200",
        ANY,
        &[],
        "acceptance answers 200 with an error in the body; nothing is accepted",
    ),
    kind(Fault::StuckWorker, "stuck-worker", ROUTE, &[], "the workers take nothing up: no attempts are made"),
    kind(
        Fault::LedgerUnreachable,
        "ledger-unreachable",
        WHOLE,
        &[],
        "readers can't read the ledger; the service itself still can",
    ),
    kind(
        Fault::ClockSkew,
        "clock-skew",
        WHOLE,
        &["seconds"],
        "the times in the ledger are off by so many seconds (300 unless told; may be negative)",
    ),
    kind(
        Fault::WriteLost,
        "write-lost",
        ANY,
        &[],
        "acceptance answers with an id and writes nothing: no row, no delivery",
    ),
    kind(
        Fault::LateLedger,
        "late-ledger",
        ANY,
        &["seconds"],
        "rows of attempts are committed late (5 s unless told)",
    ),
];

impl Fault {
    /// Every fault's entry, in the order in which they are listed.
    pub const fn kinds() -> &'static [FaultKind] {
        &KINDS
    }

    /// Its entry.
    pub fn kind(self) -> &'static FaultKind {
        // The table lists the variants in their order of declaration, which a test holds.
        &KINDS[self as usize]
    }

    /// Its name in kebab case.
    pub fn name(self) -> &'static str {
        self.kind().name
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl From<Fault> for &'static str {
    fn from(fault: Fault) -> Self {
        fault.name()
    }
}

/// A name that is no fault's.
#[derive(Debug, thiserror::Error)]
#[error("there is no fault `{0}`; the faults are: {names}", names = KINDS.map(|kind| kind.name).join(", "))]
pub struct UnknownFault(String);

impl FromStr for Fault {
    type Err = UnknownFault;

    fn from_str(name: &str) -> Result<Self, UnknownFault> {
        let found = KINDS.iter().find(|kind| kind.name == name);
        found.map(|kind| kind.fault).ok_or_else(|| UnknownFault(name.chars().take(40).collect()))
    }
}

impl TryFrom<String> for Fault {
    type Error = UnknownFault;

    fn try_from(name: String) -> Result<Self, UnknownFault> {
        name.parse()
    }
}

/// How a malformed message is malformed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MalformedKind {
    /// The template goes out with its placeholders in it.
    #[default]
    Unrendered,
    /// The amount is another one.
    WrongAmount,
}

/// What a fault is given. Which of these a fault reads is in [`Fault::kinds`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct FaultParams {
    /// A wait or a shift, in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seconds: Option<f64>,
    /// An HTTP status from 500 to 599.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// The provider's code of a rejection.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// How a message is malformed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<MalformedKind>,
}

impl FaultParams {
    /// The names of those that are given.
    pub(super) fn given(&self) -> impl Iterator<Item = &'static str> {
        [
            ("seconds", self.seconds.is_some()),
            ("status", self.status.is_some()),
            ("code", self.code.is_some()),
            ("kind", self.kind.is_some()),
        ]
        .into_iter()
        .filter_map(|(name, given)| given.then_some(name))
    }
}

/// An order to switch one fault on or off.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FaultOrder {
    /// Which fault.
    pub fault: Fault,
    /// On or off. Off without a route switches it off everywhere.
    pub on: bool,
    /// Only this route.
    #[serde(default)]
    pub route: Option<String>,
    /// The part of the cases that it strikes, above 0 up to 1; all of them unless told.
    #[serde(default)]
    pub ratio: Option<f64>,
    /// What the fault is given.
    #[serde(default)]
    pub params: FaultParams,
}

impl FaultOrder {
    /// An order that switches the fault on, everywhere and always.
    pub fn on(fault: Fault) -> Self {
        Self { fault, on: true, route: None, ratio: None, params: FaultParams::default() }
    }

    /// An order that switches the fault off, everywhere.
    pub fn off(fault: Fault) -> Self {
        Self { on: false, ..Self::on(fault) }
    }

    /// The same order with a wait or a shift.
    #[must_use]
    pub fn seconds(mut self, seconds: f64) -> Self {
        self.params.seconds = Some(seconds);
        self
    }

    /// The same order for one route only.
    #[must_use]
    pub fn on_route(mut self, route: &str) -> Self {
        self.route = Some(route.to_owned());
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_lists_each_fault_at_its_own_place_and_names_read_back() {
        for (place, kind) in Fault::kinds().iter().enumerate() {
            assert_eq!(kind.fault as usize, place, "{}", kind.name);
            assert_eq!(kind.name.parse::<Fault>().ok(), Some(kind.fault));
            let json = serde_json::to_string(&kind.fault).ok();
            assert_eq!(json, Some(format!("\"{}\"", kind.name)));
        }
        assert!("no-such".parse::<Fault>().is_err());
    }
}

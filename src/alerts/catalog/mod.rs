//! Every alert: its one question, what it says and what it doesn't, how urgent it is, and what a person does first.

mod table;

pub use table::*;

/// Whom an alert is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Audience {
    /// Those who answer for the service.
    Service,
    /// Those who answer for the monitor.
    Owners,
    /// A dead man's switch.
    DeadMan,
}

impl Audience {
    /// The label value.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Service => "service",
            Self::Owners => "owners",
            Self::DeadMan => "dead_man",
        }
    }
}

/// How urgent an alert is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Somebody is woken.
    Page,
    /// It can wait for office hours.
    Ticket,
    /// Nobody is told: its silence tells.
    None,
}

impl Severity {
    /// The label value.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Page => "page",
            Self::Ticket => "ticket",
            Self::None => "none",
        }
    }
}

/// One alert. What differs between its rules, such as a route's numbers, is not here.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// Its name.
    pub name: &'static str,
    /// The one question that it answers.
    pub question: &'static str,
    /// What it says.
    pub says: &'static str,
    /// What it doesn't say.
    pub says_not: &'static str,
    /// How urgent it is at most.
    pub severity: Severity,
    /// Whom it is for.
    pub audience: Audience,
    /// Where it is made, and where it may judge.
    pub eligible: &'static str,
    /// The first three commands, where all that they need is configured.
    pub first: [&'static str; 3],
    /// When to stop looking.
    pub stop: &'static str,
}

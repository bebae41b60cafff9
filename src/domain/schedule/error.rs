//! What can be wrong with a schedule.

use thiserror::Error;

/// Why a schedule, a zone or a window was refused.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ScheduleError {
    /// The cron expression can't be read, or would never fire.
    #[error("column {column}: {what}; {hint}")]
    Expression {
        /// Where, in bytes from the start of the expression; the first is 1.
        column: usize,
        /// What is wrong there.
        what: String,
        /// What to write instead.
        hint: String,
    },
    /// No such IANA zone.
    #[error("unknown zone `{zone}`; {}", suggestion(near))]
    UnknownZone {
        /// What was asked for.
        zone: String,
        /// Known zones with a similar name, the nearest first; at most three.
        near: Vec<String>,
    },
    /// An interval that canaries can't be sent at.
    #[error("the interval {interval:?} {what}; write whole seconds, from 1s to 366 days")]
    Interval {
        /// The interval.
        interval: std::time::Duration,
        /// What is wrong with it.
        what: &'static str,
    },
    /// A maintenance or pause that says too little, or ends before it starts.
    #[error("{field}: {what}; {hint}")]
    Window {
        /// The field at fault.
        field: &'static str,
        /// What is wrong with it.
        what: &'static str,
        /// What to write instead.
        hint: &'static str,
    },
}

impl ScheduleError {
    /// An error at byte `at` (the first is 0) of the expression.
    pub(super) fn at(at: usize, what: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::Expression { column: at + 1, what: what.into(), hint: hint.into() }
    }
}

fn suggestion(near: &[String]) -> String {
    if near.is_empty() {
        "write an IANA name, such as `Europe/Berlin` or `UTC`".into()
    } else {
        format!("did you mean `{}`?", near.join("`, `"))
    }
}

//! The names of what is recorded, and how what is exported is read.

use crate::{
    alerts::number::{Numbers, Source},
    catalog::Family,
};

/// For each process whose loops run: how many of them do.
pub const RUNNER: &str = "instance:delivery_runner_fresh:count";
/// The evidence of each route, location and question, from processes whose loops run.
pub const EVIDENCE: &str = "route_location_question:delivery_evidence:max";
/// Since when it has been above zero.
pub const SINCE: &str = "route_location_question:delivery_failing_since:max";
/// At each location: whether an observer can look.
pub const OBSERVER_UP: &str = "location_observer:delivery_observer_up:max";
/// Since when a location's canaries of a route say nothing, by what became of the newest.
pub const UNMEASURED: &str = "route_location_verdict:delivery_unmeasured_since:max";
/// At each location: whether sending on a route is paused.
pub const PAUSED: &str = "route_location:delivery_paused:min";
/// Locations whose canaries of a route say nothing, or where it is paused while another one sends.
pub const SILENT: &str = "route_location:delivery_silent:max";
/// Failures in a row.
pub const CONSECUTIVE: &str = "route:delivery_consecutive_failures:max";
/// Routes whose pages are muted by planned work.
pub const MAINTENANCE: &str = "route:delivery_maintenance:max";
/// The time between two scheduled canaries.
pub const EVERY: &str = "route:delivery_interval_seconds:max";
/// The route's deadline.
pub const DEADLINE: &str = "route:delivery_deadline_seconds:max";
/// The share of a route's notifications that may be bad.
pub const BUDGET: &str = "route:delivery_error_budget:ratio";
/// For each process and ledger with a fresh reading: its age.
pub const READING: &str = "instance_ledger:delivery_reading_age_seconds:fresh";
/// Pending past the deadline.
pub const OVER: &str = "route:delivery_pending_over_deadline:max";
/// How many are accepted in a day, as the ledger last showed it.
pub const DAILY: &str = "route:delivery_accepted_1d:known";
/// How many may be pending past the deadline, by what a day's accepted leave of the budget.
pub const ALLOWED: &str = "route:delivery_pending_allowed:max";
/// Due time of the oldest that is pending.
pub const OLDEST: &str = "route:delivery_oldest_pending_due:min";
/// Due time of the oldest whose newest attempt is unknown.
pub const UNKNOWN: &str = "route:delivery_oldest_unknown:min";
/// Accepted, by window.
pub const ACCEPTED: &str = "route_window:delivery_accepted:max";
/// Bad, by window.
pub const BAD: &str = "route_window:delivery_bad:max";
/// Attempts of half an hour, by outcome.
pub const ATTEMPTS: &str = "route_outcome:delivery_attempts_30m:max";
/// The share of them that is to be tried again, or unknown.
pub const RETRIES: &str = "route:delivery_retry_share_30m:ratio";
/// Suppressed within six hours.
pub const SUPPRESSED: &str = "route:delivery_suppressed_6h:max";
/// Their share of the accepted.
pub const SUPPRESSED_SHARE: &str = "route:delivery_suppressed_share_6h:ratio";
/// Rejected within a day because of the recipient.
pub const REJECTED: &str = "route:delivery_rejected_recipient_1d:max";
/// By how much the books don't balance.
pub const RESIDUE: &str = "route:delivery_residue:max";
/// The same, where it is so much that ratios over the route don't judge.
pub const BOOKS: &str = "route:delivery_residue_doubtful:max";

/// Changes of a ledger's history within a day.
pub const HISTORY: &str = "ledger:delivery_history_violations_1d:sum";
/// Those of its sample, where they are so many that ratios over its routes don't judge.
pub const REWRITTEN: &str = "ledger:delivery_history_doubtful_1d:max";

/// All of them.
pub const RECORDED: [&str; 29] = [
    RUNNER,
    EVIDENCE,
    SINCE,
    UNMEASURED,
    OBSERVER_UP,
    PAUSED,
    CONSECUTIVE,
    MAINTENANCE,
    EVERY,
    DEADLINE,
    BUDGET,
    SILENT,
    READING,
    OVER,
    DAILY,
    ALLOWED,
    OLDEST,
    UNKNOWN,
    ACCEPTED,
    BAD,
    ATTEMPTS,
    RETRIES,
    SUPPRESSED,
    SUPPRESSED_SHARE,
    REJECTED,
    RESIDUE,
    BOOKS,
    HISTORY,
    REWRITTEN,
];

/// How long one failed scrape after another is bridged. What is older by its own timestamp is left out all the same.
pub const GAP: &str = "5m";

/// The newest value of each series of a family. A failed scrape, which would make `for` start anew, changes nothing.
pub fn newest(family: &Family, selector: &str, numbers: &mut Numbers) -> String {
    let gap = numbers.span(
        "bridged scrapes",
        GAP,
        Source::Chosen,
        "a scrape or four may fail; timestamps, not scrapes, say how old data is",
    );
    format!("last_over_time({}{}[{gap}])", family.name, braces(selector))
}

/// The newest value, from processes whose loops run.
pub fn seen(family: &Family, selector: &str, numbers: &mut Numbers) -> String {
    format!("{}\nand on (job, instance) {RUNNER}", newest(family, selector, numbers))
}

/// A selector in braces; nothing for an empty one.
pub fn braces(selector: &str) -> String {
    if selector.is_empty() { String::new() } else { format!("{{{selector}}}") }
}

/// A matcher of a label that has one of these values; names of ours need no escape in a regular expression.
pub fn one_of<T: AsRef<str>>(label: &str, values: &[T]) -> String {
    match values {
        [one] => format!("{label}=\"{}\"", one.as_ref()),
        several => {
            let all: Vec<_> = several.iter().map(AsRef::as_ref).collect();
            format!("{label}=~\"{}\"", all.join("|"))
        }
    }
}

//! Named points at which a debug build can be made to die as `kill -9` kills, so that tests can show that nothing is lost there.
//!
//! A release build has none of it.

/// The points between planning a canary and settling it.
pub const POINTS: [&str; 10] = [
    "planned",
    "before_submission",
    "submitted_not_written",
    "submission_written",
    "arrived_not_written",
    "arrival_written",
    "due_loaded",
    "ledger_read",
    "decided_not_written",
    "decision_written",
];

/// Dies here when the environment says so: `DELIVERY_CANARY_CRASH_AT=NAME:N` at the N-th passage of the point NAME.
#[cfg(debug_assertions)]
pub fn point(name: &str) {
    use std::sync::{
        OnceLock,
        atomic::{AtomicU64, Ordering},
    };
    static WANTED: OnceLock<Option<(String, u64)>> = OnceLock::new();
    static PASSED: AtomicU64 = AtomicU64::new(0);
    debug_assert!(POINTS.contains(&name), "{name} is no named point");
    let read = || {
        let text = std::env::var("DELIVERY_CANARY_CRASH_AT").ok()?;
        let (name, count) = text.split_once(':')?;
        Some((name.to_owned(), count.parse().ok()?))
    };
    let Some((wanted, count)) = WANTED.get_or_init(read) else { return };
    if wanted == name && PASSED.fetch_add(1, Ordering::SeqCst) + 1 == *count {
        // The signal can't be caught: nothing is flushed, no destructor runs.
        let _ = std::process::Command::new("kill").args(["-9", &std::process::id().to_string()]).status();
        loop {
            std::thread::park();
        }
    }
}

/// A release build passes.
#[cfg(not(debug_assertions))]
pub const fn point(_: &str) {}

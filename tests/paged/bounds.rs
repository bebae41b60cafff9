//! Between which times something must come, in times of a real installation, each from what it is made of.
//!
//! A page comes when the first canary that fails (at most an interval after the fault began) and those after it have failed for as long as
//! `sustain`, the last of them was judged (at its deadline and the time to settle, where nothing arrives), that was seen (the monitor's own loop, a
//! scrape, an evaluation), held (the rule's `for`), and waited for its group. `SLACK` is for a machine that is busy; it is no part of the product.

use super::{clock::s, servers::SCRAPE};
use std::time::Duration;

/// The time between two canaries, and the deadline, and the time to settle: a minute each.
pub const INTERVAL: Duration = s(60);
/// A canary of which nothing arrives is judged so long after it was accepted.
pub const OVERDUE: Duration = s(120);
/// `evidence.sustain`.
pub const SUSTAIN: Duration = s(300);
/// How often rules are evaluated.
const EVALUATION: Duration = s(30);
/// Between what happens in the store or the ledger and the page of metrics: loops that keep the pace of a clock that isn't faster, half a
/// second each, at the usual factor.
const LOOPS: Duration = s(20);
/// `group_wait`.
const GROUP_WAIT: Duration = s(45);
/// `group_interval` of pages.
const PAGE_GROUP: Duration = s(60);
/// `group_interval` of tickets.
const TICKET_GROUP: Duration = s(300);
/// How long a busy machine may stand in the way of all of it together: two and a half seconds, at the usual factor.
const SLACK: Duration = s(50);
/// A canary that was on its way when the fault began.
const ON_ITS_WAY: Duration = s(10);
/// So many good canaries bring the evidence from its cap to below its bound.
const GOOD_AGAIN: u32 = 7;

/// From when to when, after an instant.
pub type Bounds = (Duration, Duration);

/// From what is on the page of metrics to what is told: at the least, and at the most; `hold` is the rule's `for`. One group may be open already.
fn told(hold: Duration, group: Duration) -> Bounds {
    let seen = LOOPS + SCRAPE + EVALUATION;
    let wait = group.max(GROUP_WAIT);
    // What is held begins to be held at an evaluation, and one of them may come late.
    let late = if hold.is_zero() { Duration::ZERO } else { EVALUATION };
    (hold, seen + hold + late + wait + SLACK)
}

pub const fn sum(one: Bounds, other: Bounds) -> Bounds {
    (one.0.checked_add(other.0).expect("short"), one.1.checked_add(other.1).expect("short"))
}

/// A page, or a ticket, when `happens` came after so long at the least and at the most.
pub fn paged(happens: Bounds, hold: Duration) -> Bounds {
    sum(happens, told(hold, PAGE_GROUP))
}

/// A ticket.
pub fn ticketed(happens: Bounds, hold: Duration) -> Bounds {
    sum(happens, told(hold, TICKET_GROUP))
}

/// When evidence is at its bound, in an outage of which each canary is judged after `judged`.
pub fn evidence(judged: Duration) -> Bounds {
    (SUSTAIN + judged - ON_ITS_WAY, INTERVAL + SUSTAIN + judged)
}

/// When evidence is below its bound again, after an outage whose canaries never arrive.
pub fn good_again() -> Bounds {
    (INTERVAL * (GOOD_AGAIN - 1) - ON_ITS_WAY, INTERVAL * GOOD_AGAIN)
}

//! What no type can say: names that must exist, values that don't fit each other, and values that are absurd.
//!
//! Pure: the only time is the `now` that comes in. Every fault says what to do.

mod acceptance;
mod alerts;
pub mod capacity;
mod evidence;
mod ledger;
mod listeners;
mod maintenance;
mod names;
mod receipt;
mod route;
mod sql;
mod template;
mod text;
mod times;

use super::{
    draft::Draft,
    report::{At, Report},
};
use chrono::{DateTime, Utc};

/// Checks all pieces that could be decoded.
pub(super) fn check(draft: &Draft, now: DateTime<Utc>, report: &mut Report) {
    let top = At::root();
    names::check(draft, report);
    listeners::check(draft, report);
    times::check(draft, report);
    let mut parts = acceptance::PartsByName::new();
    for (name, piece) in &draft.acceptances {
        if let Some(super::acceptance::Acceptance::Http(http)) = piece {
            let at = top.keys(&["acceptances", name, "http"]);
            acceptance::check(http, &at, report);
            parts.insert(name, acceptance::compile(http, &at, report));
        }
    }
    for (name, piece) in &draft.receivers {
        if let Some(super::receipt::Receiver::Webhook(webhook)) = piece {
            receipt::check_receiver(webhook, &top.keys(&["receivers", name, "webhook"]), report);
        }
    }
    for (name, piece) in &draft.ledgers {
        if let Some(ledger) = piece {
            ledger::check(ledger, draft, &top.keys(&["ledgers", name]), report);
        }
    }
    ledger::apart::check(draft, report);
    for (n, piece) in draft.routes.iter().enumerate() {
        if let Some(route) = piece {
            route::check(route, draft, &parts, &top.key("routes").key(n), report);
        }
    }
    if let Some(alerts) = &draft.alerts {
        alerts::check(alerts, draft, &top.key("alerts"), report);
    }
    for (n, piece) in draft.maintenance.iter().enumerate() {
        if let Some(window) = piece {
            maintenance::check(window, draft, now, &top.key("maintenance").key(n), report);
        }
    }
}

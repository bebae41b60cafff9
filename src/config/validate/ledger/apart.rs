//! No route's notifications are in two ledgers: their figures would be joined, and what one of them hides would look as if it were gone.

use crate::config::{
    draft::Draft,
    ledger::Ledger,
    report::{At, Report},
};
use std::collections::BTreeMap;

/// From the service's words to routes.
type Routes = BTreeMap<String, String>;

/// The maps of a ledger from the service's words to routes, each with where it stands.
fn maps<'a>(ledger: &'a Ledger, at: &At) -> Vec<(&'a Routes, At)> {
    let elsewhere = ledger.accepted_elsewhere.as_ref();
    let in_ledger = elsewhere.and_then(|elsewhere| elsewhere.in_ledger.as_ref());
    let each: [(Option<&Routes>, &[&str]); 5] = [
        (ledger.pending.as_ref().map(|query| &query.routes), &["pending"]),
        (ledger.notifications.as_ref().map(|query| &query.routes), &["notifications"]),
        (ledger.partition.as_ref().map(|query| &query.routes), &["partition"]),
        (elsewhere.map(|elsewhere| &elsewhere.routes), &["accepted_elsewhere"]),
        (in_ledger.map(|query| &query.routes), &["accepted_elsewhere", "in_ledger"]),
    ];
    each.into_iter().filter_map(|(map, keys)| Some((map?, at.keys(keys).key("routes")))).collect()
}

pub(in crate::config::validate) fn check(draft: &Draft, report: &mut Report) {
    let ledgers = || draft.ledgers.iter().filter_map(|(name, piece)| Some((name.as_str(), piece.as_ref()?)));
    // A route that names a ledger is in that one; another one in the first that has it.
    let named =
        draft.routes.iter().flatten().filter_map(|route| Some((route.full_name(), route.ledger.as_deref()?)));
    let mut owners: BTreeMap<String, &str> =
        named.map(|(route, ledger)| (route.to_string(), ledger)).collect();
    for (name, ledger) in ledgers() {
        let at = At::root().keys(&["ledgers", name]);
        for (map, at) in maps(ledger, &at) {
            for (word, route) in map {
                let owner = *owners.entry(route.clone()).or_insert(name);
                if owner != name {
                    report.fault(
                        &at.key(word),
                        format!(
                            "notifications of `{}` are in the ledger `{}` already",
                            route.escape_debug(),
                            owner.escape_debug()
                        ),
                        "write a route of its own for what is in this ledger, with `ledger` naming it",
                    );
                }
            }
        }
    }
}

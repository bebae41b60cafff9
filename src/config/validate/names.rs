//! Names: of locations, routes and all that is referred to by name.

use super::text;
use crate::config::{
    draft::Draft,
    near,
    report::{At, Report},
};
use std::collections::{BTreeMap, BTreeSet};

pub(super) fn check(draft: &Draft, report: &mut Report) {
    let top = At::root();
    for (section, names) in [
        ("acceptances", draft.acceptances.keys().collect::<Vec<_>>()),
        ("receivers", draft.receivers.keys().collect()),
        ("ledgers", draft.ledgers.keys().collect()),
    ] {
        names.into_iter().for_each(|name| text::name(name, &top.keys(&[section, name]).name(), report));
    }
    locations(draft, report);
    routes(draft, report);
    unused(draft, report);
}

fn locations(draft: &Draft, report: &mut Report) {
    let at = At::root().key("locations");
    let mut seen = BTreeSet::new();
    for (n, name) in draft.locations.iter().enumerate() {
        text::name(name, &at.key(n), report);
        if !seen.insert(name.as_str()) {
            report.fault(&at.key(n), "this location is listed twice", "keep one of the two");
        }
    }
    let Some(location) = &draft.location else { return };
    text::name(location, &At::root().key("location"), report);
    if !seen.is_empty() && !seen.contains(location.as_str()) {
        let hint = near::hint(location, seen);
        report.fault(
            &At::root().key("location"),
            format!("the location `{location}` is not in `locations`"),
            hint,
        );
    }
}

fn routes(draft: &Draft, report: &mut Report) {
    let at = At::root().key("routes");
    let mut seen: BTreeMap<String, At> = BTreeMap::new();
    for (n, route) in draft.routes.iter().enumerate() {
        let Some(route) = route else { continue };
        let name_at = at.key(n).key("name");
        text::name(&route.name, &name_at, report);
        let full = route.full_name().to_string();
        if let Some(first) = seen.get(&full) {
            let line = report.line(first);
            report.fault(
                &name_at,
                format!("the route `{full}` is there twice: first on line {line}"),
                "rename one",
            );
        } else {
            seen.insert(full, name_at);
        }
    }
    if draft.routes.is_empty() && draft.route_names.is_some() {
        report.fault(&at, "there is no route: nothing would be measured", "write at least one");
    }
}

/// What no route refers to is allowed, and hardly meant.
fn unused(draft: &Draft, report: &mut Report) {
    if draft.routes.iter().any(Option::is_none) {
        return;
    }
    let (mut acceptances, mut receivers, mut ledgers) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    for route in draft.routes.iter().flatten() {
        acceptances.insert(route.acceptance.as_str());
        acceptances.extend(
            [&route.controls.sink, &route.controls.provider]
                .into_iter()
                .flatten()
                .map(|arm| arm.acceptance.as_str()),
        );
        receivers.extend(route.receipt.iter().map(|receipt| receipt.receiver.as_str()));
        ledgers.extend(route.ledger.as_deref());
    }
    let sections = [
        ("acceptances", draft.acceptances.keys().collect::<Vec<_>>(), acceptances),
        ("receivers", draft.receivers.keys().collect(), receivers),
        ("ledgers", draft.ledgers.keys().collect(), ledgers),
    ];
    for (section, names, used) in sections {
        for name in names.into_iter().filter(|name| !used.contains(name.as_str())) {
            let at = At::root().keys(&[section, name]).name();
            report.warn(&at, format!("no route uses `{name}`"), "remove it, or let a route use it");
        }
    }
}

/// Looks up a reference; an unknown one is a fault. `None` also when what it names could not be decoded.
pub(super) fn refer<'a, T>(
    kind: &str,
    name: &str,
    known: &'a BTreeMap<String, Option<T>>,
    at: &At,
    report: &mut Report,
) -> Option<&'a T> {
    match known.get(name) {
        Some(piece) => piece.as_ref(),
        None => {
            let hint = near::hint(name, known.keys().map(String::as_str));
            report.fault(at, format!("there is no {kind} `{}`", name.escape_debug()), hint);
            None
        }
    }
}

/// Checks a reference to a route by its full name.
pub(super) fn refer_route(name: &str, draft: &Draft, at: &At, report: &mut Report) {
    if let Some(known) = draft.route_names.as_ref().filter(|known| !known.contains(name)) {
        let hint = near::hint(name, known.iter().map(String::as_str));
        report.fault(at, format!("there is no route `{}`", name.escape_debug()), hint);
    }
}

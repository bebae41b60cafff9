//! The commands of an alert, as they can be run with this configuration.

use super::{
    catalog::{CHECK_LEDGER, Entry, NEXT, OFFLINE, ONLINE, RECONCILE_BEGINS, SEND},
    plan::{Plan, RoutePlan},
};

/// What stands in commands for something that only who runs them knows, and what that is.
const PLACEHOLDERS: [(&str, &str); 8] = [
    ("FILE", "the monitor's configuration"),
    ("ROUTE", "the alert's label `route`, such as `webhook/receipts`"),
    ("LEDGER", "the alert's label `ledger`"),
    ("ID", "the id of a canary, from the list"),
    ("FROM", "the first due time, a whole hour such as `2026-01-31T10:00:00Z`"),
    ("TO", "the due time before which it ends, likewise"),
    ("NAME", "who you are, for the record"),
    ("DIR", "the folder that the rules are made into"),
];

/// The commands of an alert, of this route or of any. What counts a ledger exactly is there only where a `partition` query makes it possible.
pub fn of(plan: &Plan<'_>, entry: &Entry, route: Option<&str>) -> [&'static str; 3] {
    let mut routes = plan.routes.iter().filter(|plan| route.is_none_or(|name| plan.name.as_str() == name));
    if routes.any(can_reconcile) {
        return entry.first;
    }
    let instead = (!plan.config.ledgers.is_empty()).then_some(CHECK_LEDGER);
    let instead = instead.into_iter().chain([SEND, ONLINE, OFFLINE, NEXT]);
    let instead = instead.into_iter().find(|command| !entry.first.contains(command)).unwrap_or(NEXT);
    entry.first.map(|command| if command.starts_with(RECONCILE_BEGINS) { instead } else { command })
}

fn can_reconcile(route: &RoutePlan<'_>) -> bool {
    route.ledger.is_some_and(|ledger| ledger.notifications.is_some() && ledger.partition.is_some())
}

/// The first command of an alert, with this alert's labels put in by the template.
pub fn annotation(plan: &Plan<'_>, entry: &Entry, route: Option<&str>) -> String {
    let with = of(plan, entry, route)[0].replace("ROUTE", "{{ $labels.route }}");
    with.replace("LEDGER", "{{ $labels.ledger }}")
}

/// What these commands need to be known, as sentences; nothing where they stand as they are.
pub fn notes(plan: &Plan<'_>, commands: &[&str]) -> Vec<String> {
    let stands = |word: &str| commands.iter().any(|command| command.split(' ').any(|part| part == word));
    let known: Vec<String> = PLACEHOLDERS
        .iter()
        .filter(|(word, _)| stands(word))
        .map(|(word, meaning)| format!("`{word}` is {meaning}"))
        .collect();
    let mut notes = Vec::new();
    if !known.is_empty() {
        notes.push(format!("Here {}.", known.join("; ")));
    }
    let without: Vec<String> = plan
        .routes
        .iter()
        .filter(|route| !can_reconcile(route))
        .map(|route| format!("`{}`", route.name))
        .collect();
    if commands.iter().any(|command| command.starts_with(RECONCILE_BEGINS)) && !without.is_empty() {
        notes.push(format!(
            "`ledger reconcile` can't count on {}: no ledger with a `partition` query is followed there.",
            without.join(", ")
        ));
    }
    notes
}

//! docs/metrics.md, made of the table.

use super::{
    FAMILIES, Family, Label, Values,
    bounds::{SERIES_AT_WORST, SERIES_PER_ROUTE},
    families::PROCESS_FAMILIES,
};
use std::fmt::Write;

const HEAD: &str = "# Metrics

This page is made from `src/catalog`, and so is the exporter: neither can name a metric that the other doesn't have.
Regenerate it with `UPDATE_GENERATED=1 cargo nextest run --test pure exposition::`.

Names and labels are a contract. Labels take their values from the configuration or from a fixed set of words; identifiers,
error texts and what stands in a ledger never become one.

Counters count what this process did since it started. What is known of canaries and of the ledger is a gauge, read from
durable data, so that a restart changes nothing: don't use `rate()` or `increase()` on it. Replicas of one store show the
same: take `max by (route)`, not `sum`. A time that never came is absent, never 0. Everything else is there from the
first scrape, with every word of its labels, except what is marked *may be absent*.

While the store is down, what was read from it stays as it was, and `delivery_monitor_store_up` is 0. While a ledger or a
receiver can't be looked at, `delivery_monitor_observer_up` is 0 for it: the monitor is blind there, and what it doesn't see
is neither good nor bad.
";

/// The page.
pub fn render() -> String {
    let mut page = String::from(HEAD);
    section(&mut page, "Canaries", "delivery_canary_");
    section(&mut page, "Routes", "delivery_route_");
    section(&mut page, "Ledgers", "delivery_ledger_");
    section(&mut page, "The monitor itself", "delivery_monitor_");
    page.push_str("\n## The process\n\nBy the usual names, on Linux: ");
    page.push_str(&PROCESS_FAMILIES.map(|name| format!("`{name}`")).join(", "));
    page.push_str(".\n");
    labels(&mut page);
    budget(&mut page);
    page
}

/// Writing to a string can't fail, so its result is dropped here and in what follows.
fn section(page: &mut String, title: &str, prefix: &str) {
    let _ = write!(
        page,
        "\n## {title}\n\n| name | labels | kind | unit | what it says | may be absent |\n|---|---|---|---|---|---|\n"
    );
    for family in FAMILIES.iter().filter(|f| f.name.starts_with(prefix)) {
        let Family { name, kind, unit, help, absent_when, .. } = family;
        let labels: Vec<_> = family.labels.iter().map(|label| format!("`{}`", label.name())).collect();
        let absent = absent_when.map_or(String::new(), |when| format!("while {when}"));
        let (labels, kind, unit) = (labels.join(", "), kind.word(), unit.words());
        let _ = writeln!(page, "| `{name}` | {labels} | {kind} | {unit} | {help} | {absent} |");
    }
}

fn labels(page: &mut String) {
    page.push_str("\n## Values of labels\n\n| label | of | values |\n|---|---|---|\n");
    let mut shown: Vec<Label> = Vec::new();
    for label in FAMILIES.iter().flat_map(|family| family.labels) {
        if shown.contains(label) {
            continue;
        }
        shown.push(*label);
        let values = match label.values() {
            Values::Words(words) => words.iter().map(|w| format!("`{w}`")).collect::<Vec<_>>().join(", "),
            Values::Named(what) => what.to_owned(),
        };
        let users: Vec<_> = FAMILIES.iter().filter(|f| f.labels.contains(label)).map(|f| f.name).collect();
        let of = if users.len() > 3 {
            format!("{} families", users.len())
        } else {
            users.iter().map(|n| format!("`{n}`")).collect::<Vec<_>>().join(", ")
        };
        let _ = writeln!(page, "| `{}` | {of} | {values} |", label.name());
    }
}

fn budget(page: &mut String) {
    let used: usize = FAMILIES.iter().map(|family| family.series_per_route()).sum();
    let _ = write!(
        page,
        "\n## How many series\n\nA route with one location has at most {SERIES_PER_ROUTE} series while all is well, its ledger \
         included, and at most {used} while it fails in every way at once with everything configured (the limit is {SERIES_AT_WORST}). The largest families:\n\n| family | series a route |\n|---|---|\n"
    );
    let mut largest: Vec<_> = FAMILIES.iter().map(|f| (f.series_per_route(), f.name)).collect();
    largest.sort_by(|a, b| b.cmp(a));
    for (series, name) in largest.into_iter().filter(|(series, _)| *series > 2) {
        let _ = writeln!(page, "| `{name}` | {series} |");
    }
}

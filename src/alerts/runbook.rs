//! A page for each alert, to be read by somebody who was just woken.

use super::{catalog::Entry, commands, plan::Plan, rules::Rule};
use std::{collections::BTreeSet, fmt::Write as _};

/// The page of an alert, with the numbers of its rules. Writing to a string can't fail.
pub fn page(plan: &Plan<'_>, entry: &Entry, rules: &[Rule]) -> String {
    let mine: Vec<_> = rules
        .iter()
        .filter_map(|rule| match rule {
            Rule::Alert(rule) if rule.entry.name == entry.name => Some(rule),
            _ => None,
        })
        .collect();
    let severities: BTreeSet<_> = mine.iter().map(|rule| rule.sent_as(plan.shadow).word()).collect();
    let severities: Vec<_> = severities.into_iter().collect();
    let mut page = format!(
        "# {}\n\n**{}**\n\nService `{}` · {} · for: {}\n\n## It says\n\n{}\n\n## It doesn't say\n\n{}\n\n",
        entry.name,
        entry.question,
        plan.alerts.service,
        severities.join(" or "),
        entry.audience.word(),
        entry.says,
        entry.says_not
    );
    let _ = write!(page, "It judges: {}.\n\n## First\n\n", entry.eligible);
    let commands = commands::of(plan, entry, None);
    for (n, command) in commands.iter().enumerate() {
        let _ = writeln!(page, "{}. `{command}`", n + 1);
    }
    for note in commands::notes(plan, &commands) {
        let _ = write!(page, "\n{note}\n");
    }
    let _ = write!(page, "\n## When to stop\n\n{}\n", entry.stop);
    let mut numbers = BTreeSet::new();
    for rule in &mine {
        let route = rule.labels.iter().find(|(key, _)| *key == "route").map_or("all", |(_, route)| route);
        numbers.extend(rule.numbers.all().iter().map(|number| {
            (number.what, number.written.clone(), number.source.word(), number.why.clone(), route.to_owned())
        }));
    }
    if !numbers.is_empty() {
        page.push_str("\n## Its numbers\n\n| what | value | route | source | why |\n|---|---|---|---|---|\n");
        for (what, written, source, why, route) in numbers {
            let _ = writeln!(page, "| {what} | {written} | {route} | {source} | {why} |");
        }
    }
    page
}

/// The table of all alerts, for the guide.
pub fn table(entries: &[&Entry]) -> String {
    let mut table = String::from("| alert | question | at most | for | judges |\n|---|---|---|---|---|\n");
    for entry in entries {
        let _ = writeln!(
            table,
            "| `{}` | {} | {} | {} | {} |",
            entry.name,
            entry.question,
            entry.severity.word(),
            entry.audience.word(),
            entry.eligible
        );
    }
    table
}

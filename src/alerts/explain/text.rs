//! The figures as text for people: a table a route, within a hundred columns, the answer first.

use super::{
    Explained, First, FirstByShare, RouteFigures, Row,
    times::{Time, Times},
};
use std::fmt::Write as _;

/// Columns.
const WIDTH: usize = 100;

/// All of it.
pub fn text(explained: &Explained) -> String {
    let mut out = String::new();
    for route in &explained.routes {
        of_route(&mut out, route);
        out.push('\n');
    }
    foot(&mut out, explained);
    out
}

/// A paragraph, broken between words: the first line is indented by so many columns, the others by so many.
fn paragraph(out: &mut String, (first, others): (usize, usize), text: &str) {
    let mut line = " ".repeat(first);
    let mut has_words = false;
    for word in text.split_whitespace() {
        if has_words && line.chars().count() + 1 + word.chars().count() > WIDTH {
            let _ = writeln!(out, "{line}");
            (line, has_words) = (" ".repeat(others), false);
        }
        if has_words {
            line.push(' ');
        }
        line.push_str(word);
        has_words = true;
    }
    let _ = writeln!(out, "{line}");
}

fn of_route(out: &mut String, route: &RouteFigures) {
    paragraph(out, (0, 2), &format!("{}: {}", route.route, answer(&route.first)));
    let canaries = &route.canaries;
    let short = |seconds: f64| Time::Seconds(seconds).to_string();
    let mut rests =
        format!("Canaries {}, at most {} apart", canaries.schedule, short(canaries.longest_gap_seconds));
    rests += &match canaries.confirmations_seconds {
        Some(every) => format!(", confirmations each {}", short(every)),
        None => ", no confirmations".to_owned(),
    };
    let _ = write!(
        rests,
        "; a failure is known after {}; {} of {} locations must agree; p0 {:.3} %, p1 {:.0} %.",
        short(canaries.known_after_seconds),
        canaries.needed,
        canaries.locations,
        canaries.p0 * 100.0,
        canaries.p1 * 100.0
    );
    paragraph(out, (2, 2), &rests);
    let volume = match route.accepted_per_day {
        Some(daily) => format!("{daily} accepted a day: volume class {}.", route.volume_class),
        None => format!("Volume class {}: `accepted_per_day` isn't configured.", route.volume_class),
    };
    paragraph(out, (2, 2), &volume);
    let _ = writeln!(out);
    line(out, ["alert", "told", "total outage", "half", "one in five", "for nothing"]);
    let judging = |row: &&&Row| row.not_eligible.is_none();
    let (timed, others): (Vec<&Row>, Vec<&Row>) = route.alerts.iter().partition(|row| row.times.is_some());
    timed.iter().for_each(|row| alert(out, row));
    let mut said = None;
    for row in others.iter().filter(judging) {
        if said != row.why_not.as_deref() {
            said = row.why_not.as_deref();
            paragraph(out, (2, 2), &format!("How soon these come is {}:", said.unwrap_or_default()));
        }
        paragraph(out, (4, 6), &format!("{} ({}): {}.", name(row), row.told, rule(row)));
    }
    for row in others.iter().filter(|row| row.not_eligible.is_some()) {
        let why = row.not_eligible.as_deref().unwrap_or_default();
        paragraph(out, (2, 4), &format!("Not {}: {why}.", name(row)));
    }
}

fn name(row: &Row) -> String {
    row.window.map_or_else(|| row.alert.to_owned(), |window| format!("{} {window}", row.alert))
}

fn line(out: &mut String, [alert, told, total, half, fifth, nothing]: [&str; 6]) {
    let text = format!("  {alert:<28}{told:<7}{total:<17}{half:<17}{fifth:<17}{nothing}");
    let _ = writeln!(out, "{}", text.trim_end());
}

/// When a row's alert is due.
fn rule(row: &Row) -> String {
    if row.hold_seconds > 0.0 {
        format!("{}; for {}", row.bound, Time::Seconds(row.hold_seconds))
    } else {
        row.bound.clone()
    }
}

fn alert(out: &mut String, row: &Row) {
    let [total, half, fifth] =
        row.times.map_or_else(Default::default, |times| times.all().map(|times| times.to_string()));
    let rate = row.for_nothing.map_or_else(|| "?".to_owned(), |rate| rate.to_string());
    line(out, [&name(row), row.told, &total, &half, &fifth, &rate]);
    let mut rests = format!("if {}: {}.", row.outage, rule(row));
    if let Some(why) = &row.why_not {
        let _ = write!(rests, " For nothing: {why}.");
    }
    paragraph(out, (4, 4), &rests);
}

/// How soon somebody is woken, and by what.
fn answer(first: &FirstByShare) -> String {
    let all =
        [("a total outage", &first.total), ("half of one", &first.half), ("one in five", &first.one_in_five)];
    let woken: Vec<String> = all.iter().map(|(what, first)| format!("{what} {}", wakes(first))).collect();
    format!("{}.", woken.join("; "))
}

fn wakes(first: &First) -> String {
    match (&first.page, &first.ticket) {
        (Some(page), ticket) => {
            let Times { median, p95 } = page.times;
            let woken = format!("wakes somebody after {median} (95 of 100: {p95}) by {}", page.alert);
            match ticket.as_ref().filter(|ticket| ticket.times.median.rank() < median.rank()) {
                Some(ticket) => format!(
                    "{woken}, with a ticket before, after {} by {}",
                    ticket.times.median, ticket.alert
                ),
                None => woken,
            }
        }
        (None, Some(ticket)) => {
            format!("wakes nobody, and is a ticket after {} by {}", ticket.times.median, ticket.alert)
        }
        (None, None) => "wakes nobody, as far as is known".to_owned(),
    }
}

fn foot(out: &mut String, explained: &Explained) {
    let assumed = &explained.assumed;
    let noise = match assumed.size.years {
        Some(years) => format!("counted over {years} years"),
        None => format!("weighed over {} episodes", assumed.size.outages * 10),
    };
    let text = format!(
        "Times are the median / what 95 of 100 are within, from the beginning of an outage at any moment, nights included, until the Alertmanager \
         tells somebody: a scrape each {}s, rules each {}s, what the rule must hold for, and a group wait of {}s are in it; tickets wait for office \
         hours besides. Canaries: {} outages of each share, seed {}. For nothing: times a year at p0, {noise}. Ledger: closed form, notifications evenly over \
         the day. `>`: not within what was looked at.",
        assumed.scrape_seconds,
        assumed.evaluation_seconds,
        assumed.group_wait_seconds,
        assumed.size.outages,
        assumed.size.seed,
    );
    paragraph(out, (0, 0), &text);
    let others = format!(
        "Not weighed, since no outage of a route tells how soon they come: {}.",
        explained.not_weighed.join(", ")
    );
    paragraph(out, (0, 0), &others);
    if assumed.alike > 0 {
        let text = format!(
            "Of {} routes the canaries are alike in everything that matters to those of another: they were computed once.",
            assumed.alike
        );
        paragraph(out, (0, 0), &text);
    }
}

//! The accounts of ledgers as text, CSV and JSON.

use crate::{
    domain::{
        accounting::{Partition, Place},
        elsewhere::{Accepted, Bounds},
        flow::rows::UnitId,
    },
    ledger::flow::text_of,
    monitor::flow::{Books, Interval, RouteBooks},
};
use chrono::{DateTime, SecondsFormat, Utc};
use serde_json::{Value, json};
use std::fmt::Write as _;

/// The books of one ledger, and what they are of.
pub struct Account {
    /// The ledger.
    pub ledger: String,
    /// The due times.
    pub interval: Interval,
    /// The books.
    pub books: Books,
}

fn stamp(at: DateTime<Utc>) -> String {
    at.to_rfc3339_opts(SecondsFormat::Secs, true)
}

fn named(unit: &UnitId) -> String {
    let id = text_of(&unit.notification);
    unit.destination.as_ref().map_or_else(|| id.clone(), |destination| format!("{id} to {destination}"))
}

/// The accounts for people: two lines a route, a third where the accepted were counted elsewhere, and under them the notifications that were asked for.
pub fn text(accounts: &[Account]) -> String {
    let mut out = String::new();
    // Writing to a String can't fail.
    let mut line = |text: String| {
        let _ = writeln!(out, "{}", text.trim_end());
    };
    for Account { ledger, interval, books } in accounts {
        line(format!(
            "ledger {ledger}, due from {} to {}, as of {}",
            stamp(interval.from),
            stamp(interval.until),
            stamp(books.as_of)
        ));
        let wide = books.routes.iter().map(|book| book.route.as_str().len()).max().unwrap_or(0).max(5);
        let cells = |of: &dyn Fn(Place) -> String| -> String {
            Place::ALL.map(|place| format!("  {:>w$}", of(place), w = place.word().len().max(7))).concat()
        };
        let words = cells(&|place| place.word().to_owned());
        line(format!("{:wide$}  {:8}  {:>8}{words}  {:>7}", "route", "account", "accepted", "residue"));
        for book in &books.routes {
            for (name, side, residue) in [
                ("followed", &book.followed, String::new()),
                ("counted", &book.counted, book.residue.to_string()),
            ] {
                let route = if name == "followed" { book.route.as_str() } else { "" };
                let counts = cells(&|place| side.count(place).to_string());
                line(format!("{route:wide$}  {name:8}  {:>8}{counts}  {residue:>7}", side.accepted()));
            }
            accepted_text(book, wide).into_iter().for_each(&mut line);
        }
        if let Some(reason) = &books.elsewhere_unknown {
            line(format!("elsewhere: {reason}"));
        }
        books.routes.iter().flat_map(units_text).for_each(&mut line);
        line((if books.is_balanced() { "balanced" } else { "not balanced" }).into());
    }
    out
}

/// The ledger's count of the accepted, and the independent one.
fn accepted_text(book: &RouteBooks, wide: usize) -> Option<String> {
    let Accepted { here, elsewhere: Bounds { least, most } } = book.accepted?;
    let count = match most {
        Some(most) if most == least => least.to_string(),
        Some(most) => format!("{least} to {most}"),
        None => format!("at least {least}"),
    };
    let missing = match book.accepted?.missing() {
        0 => String::new(),
        missing => format!(": {missing} accepted and never written"),
    };
    Some(format!("{:wide$}  elsewhere  accepted {count}, and {here} in the ledger{missing}", ""))
}

fn units_text(book: &RouteBooks) -> Vec<String> {
    let Some(units) = &book.units else { return Vec::new() };
    let mut lines = vec![format!("{}: notifications by which the accounts differ", book.route)];
    lines.extend(units.exact.iter().map(|(at, unit)| {
        let followed = unit.followed.map_or("not there", Place::word);
        format!(
            "  {}  {}  followed: {followed}, ledger: {}",
            stamp(*at),
            named(&unit.unit),
            unit.fresh.word()
        )
    }));
    lines.extend(units.only_followed.iter().map(|(at, place)| {
        let word = place.word();
        format!(
            "  {}  one that the ledger does not have any more; followed: {word}, its id is not kept",
            stamp(*at)
        )
    }));
    lines.extend(units.candidates.iter().map(|(at, unit, place)| {
        format!("  {}  {}  may be one of them; ledger: {}", stamp(*at), named(unit), place.word())
    }));
    if lines.len() == 1 {
        lines.push("  none: a fresh reading agrees with what is followed".into());
    }
    if units.fresh.counts != book.counted.counts {
        lines.push(format!(
            "  a fresh reading finds {} notifications, and `partition` counts {}, or they stand otherwise: the queries differ among themselves",
            units.fresh.accepted(),
            book.counted.accepted()
        ));
    }
    if units.canaries > 0 {
        let n = units.canaries;
        lines.push(format!(
            "  {n} canaries of this interval are not followed; the SQL of `partition` has to leave them out too"
        ));
    }
    if units.erased > 0 {
        lines.push(format!("  {} were erased: only the ledger's own count has them", units.erased));
    }
    lines
}

/// The accounts, two lines a route; and where the accepted were counted elsewhere, what the ledger has of them and the bounds of that count, whose
/// residue is what the ledger surely lacks.
pub fn csv(accounts: &[Account]) -> String {
    let words = Place::ALL.map(Place::word).join(",");
    let mut out = format!("ledger,from,until,route,account,accepted,{words},residue\n");
    for Account { ledger, interval, books } in accounts {
        for book in &books.routes {
            for (name, side) in [("followed", &book.followed), ("counted", &book.counted)] {
                let counts = side.counts.map(|count| count.to_string()).join(",");
                let (from, until) = (stamp(interval.from), stamp(interval.until));
                let head = [field(ledger), from, until, field(book.route.as_str()), name.into()].join(",");
                let _ = writeln!(out, "{head},{},{counts},{}", side.accepted(), book.residue);
            }
            let Some(accepted) = book.accepted else { continue };
            let Accepted { here, elsewhere: Bounds { least, most } } = accepted;
            for (name, count) in
                [("in_ledger", Some(here)), ("elsewhere_least", Some(least)), ("elsewhere_most", most)]
            {
                let Some(count) = count else { continue };
                let (from, until) = (stamp(interval.from), stamp(interval.until));
                let head = [field(ledger), from, until, field(book.route.as_str()), name.into()].join(",");
                let _ = writeln!(out, "{head},{count},,,,,,{}", accepted.missing());
            }
        }
    }
    out
}

/// The notifications by which the accounts differ, a line each.
pub fn units_csv(accounts: &[Account]) -> String {
    let mut out = "ledger,route,due_in,notification_id,destination,followed,in_ledger,certainty\n".to_owned();
    for Account { ledger, books, .. } in accounts {
        for book in &books.routes {
            for unit in book.units.iter().flat_map(all_units) {
                let (id, destination) = unit.unit.map_or_else(Default::default, |unit| {
                    (text_of(&unit.notification), unit.destination.as_deref().unwrap_or_default().to_owned())
                });
                let fields = [
                    ledger.as_str(),
                    book.route.as_str(),
                    &stamp(unit.due_in),
                    &id,
                    &destination,
                    unit.followed.map_or("", Place::word),
                    unit.fresh.map_or("", Place::word),
                    unit.certainty,
                ];
                let _ = writeln!(out, "{}", fields.map(field).join(","));
            }
        }
    }
    out
}

/// One line of what was found.
struct Line<'a> {
    due_in: DateTime<Utc>,
    unit: Option<&'a UnitId>,
    followed: Option<Place>,
    fresh: Option<Place>,
    certainty: &'static str,
}

fn all_units(units: &crate::monitor::flow::RouteUnits) -> impl Iterator<Item = Line<'_>> {
    let exact = units.exact.iter().map(|(at, found)| Line {
        due_in: *at,
        unit: Some(&found.unit),
        followed: found.followed,
        fresh: Some(found.fresh),
        certainty: "exact",
    });
    let gone = units.only_followed.iter().map(|(at, place)| Line {
        due_in: *at,
        unit: None,
        followed: Some(*place),
        fresh: None,
        certainty: "exact",
    });
    let candidates = units.candidates.iter().map(|(at, unit, place)| Line {
        due_in: *at,
        unit: Some(unit),
        followed: None,
        fresh: Some(*place),
        certainty: "candidate",
    });
    exact.chain(gone).chain(candidates)
}

/// A field of CSV, quoted where it must be.
fn field(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}

/// The accounts as JSON.
pub fn json(accounts: &[Account]) -> Value {
    let side = |partition: &Partition| {
        let mut value = json!({ "accepted": partition.accepted() });
        for place in Place::ALL {
            value[place.word()] = partition.count(place).into();
        }
        value
    };
    let route = |book: &RouteBooks| {
        let mut value = json!({
            "route": book.route.as_str(),
            "residue": book.residue,
            "followed": side(&book.followed),
            "counted": side(&book.counted),
        });
        if let Some(accepted) = book.accepted {
            value["accepted"] = json!({
                "in_ledger": accepted.here,
                "elsewhere_least": accepted.elsewhere.least,
                "elsewhere_most": accepted.elsewhere.most,
                "missing": accepted.missing(),
            });
        }
        if let Some(units) = &book.units {
            let found = all_units(units).map(|line| {
                json!({
                    "due_in": stamp(line.due_in),
                    "notification_id": line.unit.map(|unit| text_of(&unit.notification)),
                    "destination": line.unit.and_then(|unit| unit.destination.as_deref()),
                    "followed": line.followed.map(Place::word),
                    "in_ledger": line.fresh.map(Place::word),
                    "certainty": line.certainty,
                })
            });
            value["differ"] = found.collect();
            value["fresh"] = side(&units.fresh);
            value["canaries_left_out"] = units.canaries.into();
            value["erased_left_out"] = units.erased.into();
        }
        value
    };
    let ledgers = accounts.iter().map(|Account { ledger, interval, books }| {
        json!({
            "ledger": ledger,
            "from": stamp(interval.from),
            "until": stamp(interval.until),
            "as_of": stamp(books.as_of),
            "balanced": books.is_balanced(),
            "elsewhere_unknown": books.elsewhere_unknown.as_ref().map(ToString::to_string),
            "routes": books.routes.iter().map(route).collect::<Vec<_>>(),
        })
    });
    let balanced = accounts.iter().all(|account| account.books.is_balanced());
    json!({ "balanced": balanced, "ledgers": ledgers.collect::<Vec<_>>() })
}

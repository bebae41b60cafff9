//! Advice as YAML to be pasted into a configuration, each reason a comment before its value.

use super::{advice::Advice, observed::Seen};
use crate::domain::route::RouteName;
use chrono::SecondsFormat;
use std::fmt::Write as _;

/// As wide as a line of comment is, but for a long word.
const WIDE: usize = 100;

/// What is proposed for a route.
#[derive(Clone, Debug)]
pub struct Suggested {
    /// The route.
    pub route: RouteName,
    /// What its canaries showed.
    pub seen: Seen,
    /// The advice, in the order in which it is written.
    pub advice: Vec<Advice>,
}

/// The settings of the block `evidence` of a route.
const OF_EVIDENCE: [&str; 3] = ["p0", "sustain", "bound"];

/// The setting of the block `alerts`.
const OF_ALERTS: &str = "accepted_per_day";

/// The YAML. What is to be kept stands in it with its value, so that it is whole.
pub fn document(all: &[Suggested]) -> String {
    let mut out = String::new();
    comment(
        &mut out,
        0,
        "Proposed by `delivery-canary alerts suggest` from what was measured. Put the values into the routes of your configuration.",
    );
    out.push_str("routes:\n");
    for suggested in all {
        comment(&mut out, 2, &head(suggested));
        let (channel, name) =
            suggested.route.as_str().split_once('/').unwrap_or(("", suggested.route.as_str()));
        // Writing to a string can't fail.
        let _ = writeln!(out, "  - channel: {channel}\n    name: {name}");
        let is_of_evidence = |advice: &&Advice| OF_EVIDENCE.contains(&advice.key);
        let plain =
            suggested.advice.iter().filter(|advice| !is_of_evidence(advice) && advice.key != OF_ALERTS);
        plain.for_each(|advice| entry(&mut out, 4, advice));
        out.push_str("    evidence:\n");
        suggested.advice.iter().filter(is_of_evidence).for_each(|advice| entry(&mut out, 6, advice));
    }
    let of_alerts: Vec<_> = all
        .iter()
        .filter_map(|one| Some((&one.route, one.advice.iter().find(|advice| advice.key == OF_ALERTS)?)))
        .collect();
    if of_alerts.iter().any(|(_, advice)| advice.proposed.is_some()) {
        out.push_str("alerts:\n  routes:\n");
    }
    for (route, advice) in of_alerts {
        if advice.proposed.is_some() {
            let _ = writeln!(out, "    {route}:");
            entry(&mut out, 6, advice);
        } else {
            comment(&mut out, 0, &format!("{route}: {}: {}", advice.key, advice.why));
        }
    }
    out
}

fn head(suggested: &Suggested) -> String {
    let Seen { span, canaries, left_out, incidents, .. } = &suggested.seen;
    let Some((from, until)) = span else {
        return format!("{}: there is no settled canary", suggested.route);
    };
    let [from, until] = [from, until].map(|at| at.to_rfc3339_opts(SecondsFormat::Secs, true));
    format!(
        "{}: {} scheduled canaries from {from} to {until}; {left_out} of them in {} incidents, which are left out: from the first failure until the evidence, \
         which was at its bound, is zero again",
        suggested.route,
        canaries + left_out,
        incidents.len()
    )
}

fn entry(out: &mut String, indent: usize, advice: &Advice) {
    let Some(value) = &advice.proposed else { return };
    let was = match &advice.current {
        Some(current) if advice.is_change() => format!("was {current}: "),
        _ => String::new(),
    };
    comment(out, indent, &format!("{was}{}", advice.why));
    let _ = writeln!(out, "{:indent$}{}: {value}", "", advice.key);
}

/// Lines of comment, none wider than need be.
fn comment(out: &mut String, indent: usize, text: &str) {
    let mut line = String::new();
    let mut put = |line: &mut String| {
        let _ = writeln!(out, "{:indent$}# {line}", "");
        line.clear();
    };
    for word in text.split_whitespace() {
        if !line.is_empty() && indent + 3 + line.len() + word.len() > WIDE {
            put(&mut line);
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    put(&mut line);
}

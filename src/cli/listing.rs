//! `canary list`.

use super::{
    ConfigFile, Outcome, WrongUsage,
    canary::instant,
    explain::{self, UnderWay},
    out::say,
    wiring,
};
use crate::{
    clock,
    domain::{disagreement::Disagreement, verdict::Verdict},
    store::{Filter, Stored},
};
use anyhow::Result;
use chrono::{DateTime, SecondsFormat, Utc};
use clap::Args;

/// Arguments of `canary list`.
#[derive(Debug, Args)]
pub struct ListArgs {
    /// Only of this route, as channel/name
    #[arg(long)]
    route: Option<String>,
    /// Only with this verdict
    #[arg(long, value_parser = verdict)]
    verdict: Option<Verdict>,
    /// Only where views contradict each other: in this way, or without KIND in any. It can be given again
    #[arg(long, value_name = "KIND", num_args = 0..=1, default_missing_value = ANY, value_parser = contradiction)]
    contradiction: Vec<Contradiction>,
    /// Only with a slot at or after this time (RFC 3339)
    #[arg(long, value_parser = instant)]
    from: Option<DateTime<Utc>>,
    /// Only with a slot before this time (RFC 3339)
    #[arg(long, value_parser = instant)]
    until: Option<DateTime<Utc>>,
    /// At most so many
    #[arg(long, default_value_t = 20, value_parser = at_least_one, allow_negative_numbers = true)]
    limit: u32,
    /// Print JSON, an object a line
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    config: ConfigFile,
}

/// Runs the command.
pub async fn run(args: ListArgs) -> Result<Outcome> {
    if let (Some(from), Some(until)) = (args.from, args.until) {
        in_order(from, until)?;
    }
    let opened = wiring::open_store(&args.config).await?;
    let route = args.route.as_deref().map(|name| opened.route(name)).transpose()?;
    let filter = Filter {
        route,
        notification: None,
        verdict: args.verdict,
        disagreements: args.contradiction.iter().flat_map(Contradiction::kinds).collect(),
        from: args.from,
        until: args.until,
        limit: args.limit,
    };
    let (found, now) = (opened.store.list(&filter).await?, clock::now());
    if args.json {
        for stored in &found {
            say!("{}", explain::summary(stored, now));
        }
        return Ok(Outcome::Done);
    }
    let head = ["canary", "route", "kind", "slot", "verdict", "contradictions"].map(str::to_owned);
    let rows: Vec<_> = std::iter::once(head).chain(found.iter().map(|stored| row(stored, now))).collect();
    for line in aligned(&rows) {
        say!("{line}");
    }
    if found.is_empty() {
        say!("none");
    }
    Ok(Outcome::Done)
}

/// What is told of a canary, a cell a column.
fn row(stored: &Stored, now: DateTime<Utc>) -> [String; 6] {
    let plan = &stored.canary.plan;
    let verdict = match (stored.canary.standing(), UnderWay::of(&stored.canary, now)) {
        (Some(standing), _) => standing.verdict.word().to_owned(),
        (None, under_way) => under_way.unwrap_or(UnderWay::OnItsWay).told(&stored.canary, now),
    };
    let found: Vec<&str> = stored.canary.disagreements.iter().map(|kind| kind.word()).collect();
    let found = if found.is_empty() { "-".to_owned() } else { found.join(", ") };
    let erased = if stored.erased { "  (erased)" } else { "" };
    [
        plan.canary_id.to_string(),
        plan.route.to_string(),
        plan.kind.word().to_owned(),
        plan.slot.format("%Y-%m-%d %H:%M:%SZ").to_string(),
        verdict,
        format!("{found}{erased}"),
    ]
}

/// Rows of cells as lines: each column is as wide as its widest cell.
fn aligned<const N: usize>(rows: &[[String; N]]) -> impl Iterator<Item = String> {
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..N).map(width).collect();
    rows.iter().map(move |row| {
        let cells: Vec<String> =
            row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}")).collect();
        cells.join("  ").trim_end().to_owned()
    })
}

/// Refuses an interval that holds nothing: an empty list would look as if nothing had happened.
fn in_order(from: DateTime<Utc>, until: DateTime<Utc>) -> Result<(), WrongUsage> {
    if from < until {
        return Ok(());
    }
    let stamp = |at: DateTime<Utc>| at.to_rfc3339_opts(SecondsFormat::AutoSi, true);
    Err(WrongUsage(format!(
        "--from {} is not before --until {}, so nothing lies between them; write the earlier time as --from",
        stamp(from),
        stamp(until)
    )))
}

fn verdict(word: &str) -> Result<Verdict, String> {
    let known = || format!("write one of {}", Verdict::ALL.map(Verdict::word).join(", "));
    Verdict::from_word(word).ok_or_else(known)
}

/// What stands for every kind of contradiction.
const ANY: &str = "any";

/// The kinds of contradiction that are asked for.
#[derive(Clone, Copy, Debug)]
enum Contradiction {
    Any,
    Of(Disagreement),
}

impl Contradiction {
    fn kinds(&self) -> Vec<Disagreement> {
        match self {
            Self::Any => Disagreement::ALL.into(),
            Self::Of(kind) => vec![*kind],
        }
    }
}

fn contradiction(word: &str) -> Result<Contradiction, String> {
    if word == ANY {
        return Ok(Contradiction::Any);
    }
    let known = || format!("write {ANY}, or one of {}", Disagreement::ALL.map(Disagreement::word).join(", "));
    Disagreement::from_word(word).map(Contradiction::Of).ok_or_else(known)
}

fn at_least_one(text: &str) -> Result<u32, String> {
    match text.parse() {
        Ok(0) | Err(_) => Err(format!("write a whole number from 1 to {}, such as 20", u32::MAX)),
        Ok(limit) => Ok(limit),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_column_is_as_wide_as_its_widest_cell() {
        let rows = [
            ["route", "verdict", "more"],
            ["email/r", "overdue so far, by 4.2s", "-"],
            ["sms/reconciliation", "late", "-"],
        ];
        let rows = rows.map(|row| row.map(str::to_owned));
        let expected = [
            "route               verdict                  more",
            "email/r             overdue so far, by 4.2s  -",
            "sms/reconciliation  late                     -",
        ];
        assert_eq!(aligned(&rows).collect::<Vec<_>>(), expected);
    }
}

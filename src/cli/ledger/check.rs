//! `ledger check`: whether ledgers can be read as configured, what is odd about their rows, and what reading them costs.

use super::{NoSuchLedger, opened};
use crate::cli::{
    ConfigFile, Outcome,
    check::{CheckResult, Status, lines},
    out::{say, tell},
    wiring,
};
use crate::{
    config::ledger::Ledger,
    ledger::{
        LedgerAdapter, LedgerError,
        check::{Finding, Level, cost::Cost},
    },
};
use anyhow::Result;
use clap::Args;
use serde_json::json;

/// Arguments of `ledger check`.
#[derive(Debug, Args)]
pub struct LedgerCheckArgs {
    /// Only this ledger
    #[arg(long)]
    ledger: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    config: ConfigFile,
}

/// A ledger that was looked at.
struct Checked<'a> {
    name: &'a str,
    findings: Vec<Finding>,
    cost: Option<Cost>,
    /// Why it could not be read at all.
    unreachable: Option<LedgerError>,
}

/// Looks at the ledgers; found is what does not work. Nothing is written, to them or to the store.
pub async fn run(args: LedgerCheckArgs) -> Result<Outcome> {
    let loaded = wiring::load(&(&args.config).into())?;
    let ledgers = &loaded.config.ledgers;
    if let Some(name) = args.ledger.as_ref().filter(|name| !ledgers.contains_key(*name)) {
        let known: Vec<&str> = ledgers.keys().map(String::as_str).collect();
        return Err(NoSuchLedger { name: name.clone(), known: known.join(", ") }.into());
    }
    let mut checked = Vec::new();
    for (name, config) in
        ledgers.iter().filter(|(name, _)| args.ledger.as_ref().is_none_or(|only| only == *name))
    {
        checked.push(check(name, config, &*opened(name, config)?).await);
    }
    if checked.is_empty() {
        let reason =
            "the configuration has no `ledgers`: there is nothing to check. `ledger init` proposes one";
        return Err(wiring::ConfigurationAtFault(reason.into()).into());
    }
    let has_failed =
        checked.iter().flat_map(|ledger| &ledger.findings).any(|finding| finding.level == Level::Failed);
    if args.json {
        let ledgers: Vec<_> = checked.iter().map(as_json).collect();
        say!("{:#}", json!({ "ok": !has_failed, "ledgers": ledgers }));
    } else {
        let results: Vec<CheckResult> = checked
            .iter()
            .flat_map(|ledger| ledger.findings.iter().map(|finding| result(ledger.name, finding.clone())))
            .collect();
        tell!("{}", lines(&results));
    }
    match checked.into_iter().find_map(|ledger| ledger.unreachable) {
        Some(error) => Err(error.into()),
        None if has_failed => Ok(Outcome::Found),
        None => Ok(Outcome::Done),
    }
}

async fn check<'a>(name: &'a str, config: &Ledger, adapter: &LedgerAdapter) -> Checked<'a> {
    let mut findings = adapter.check().await;
    let is_there =
        findings.iter().all(|finding| finding.name != "connection" || finding.level != Level::Failed);
    findings.extend(config.finds_no_dated_back().filter(|_| is_there).map(|reason| Finding {
        name: "dated back".into(),
        level: Level::Warn,
        detail: format!("{reason}: a pending notification whose row comes behind the cursor is in no figure until an attempt of it comes by"),
        hint: Some("write a `pending` query, see docs/ledger.md#rows-that-come-behind-the-cursor".into()),
    }));
    let (mut cost, mut unreachable) = (None, None);
    if is_there {
        match adapter.cost(config.reread.per_refresh).await {
            Ok((found, more)) => {
                findings.extend(more);
                cost = Some(found);
            }
            Err(error) => {
                let hint = "the refresh did not come to its end: see the queries above".to_owned();
                findings.push(Finding {
                    name: "cost".into(),
                    level: Level::Failed,
                    detail: error.to_string(),
                    hint: Some(hint),
                });
            }
        }
    } else {
        unreachable = Some(LedgerError::Unreachable(format!("`{name}`; what it says stands above")));
    }
    Checked { name, findings, cost, unreachable }
}

/// A finding about a ledger, as a check of a configuration.
pub fn result(ledger: &str, finding: Finding) -> CheckResult {
    CheckResult {
        name: format!("ledger {ledger}: {}", finding.name),
        status: match finding.level {
            Level::Ok => Status::Ok,
            Level::Warn => Status::Warn,
            Level::Failed => Status::Failed,
        },
        detail: finding.detail,
        hint: finding.hint,
    }
}

fn as_json(ledger: &Checked<'_>) -> serde_json::Value {
    let checks: Vec<CheckResult> =
        ledger.findings.iter().map(|finding| result(ledger.name, finding.clone())).collect();
    let cost = ledger.cost.as_ref().map(|cost| {
        let queries: Vec<_> = cost
            .queries
            .iter()
            .map(|query| {
                json!({
                    "query": query.query, "rows": query.rows, "milliseconds": millis(query.took), "runs_an_hour": query.runs_an_hour,
                })
            })
            .collect();
        // A sum without some of them would be taken for all.
        let of_all = |sum: f64| cost.not_measured.is_empty().then_some(sum);
        json!({
            "queries": queries, "not_measured": cost.not_measured, "rows_an_hour": of_all(cost.rows_an_hour()),
            "milliseconds_an_hour": of_all(millis(cost.time_an_hour())),
        })
    });
    json!({ "ledger": ledger.name, "checks": checks, "cost": cost })
}

fn millis(time: std::time::Duration) -> f64 {
    time.as_secs_f64() * 1_000.0
}

//! `delivery-canary check`: what is wrong with a configuration, and what it will do.
//!
//! Offline nothing is connected to. What the online checks find is shown by [`lines`], a line a check.

use super::{
    ConfigFile, Outcome,
    wiring::{ConfigurationAtFault, environment},
};
use crate::cli::out::tell;
use crate::{
    config::{Faults, Loaded, Route, load_at, model::StoreConfig, scalar::Span, validate::capacity::Need},
    monitor::active,
};
use chrono::{DateTime, SecondsFormat, TimeDelta, Utc};
use clap::Args;
use serde::Serialize;
use serde_json::json;
use std::{
    fmt::{self, Write as _},
    path::Path,
};

/// Arguments of `check`.
#[derive(Debug, Args)]
pub struct CheckArgs {
    #[command(flatten)]
    config: ConfigFile,
    /// Connect to the store, the ledgers, the acceptance hosts and the receivers' addresses too. Nothing is sent
    #[arg(long)]
    online: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Checks a configuration and prints what it will do.
///
/// # Errors
/// When the configuration is at fault.
pub async fn run(args: CheckArgs) -> anyhow::Result<Outcome> {
    let ConfigFile { path, location } = &args.config;
    match run_offline(path, location.as_deref(), &environment, Utc::now(), args.json) {
        Ok(text) => {
            if !args.online {
                tell!("{text}");
                return Ok(Outcome::Done);
            }
            let loaded = super::wiring::load(&(&args.config).into())?;
            let results = super::check_online::run(&loaded).await;
            let failed = results.iter().any(|result| result.status == Status::Failed);
            if args.json {
                tell!(
                    "{}",
                    as_json(
                        &json!({ "ok": !failed, "summary": summarise(&loaded, Utc::now()), "checks": results })
                    )
                );
            } else {
                tell!("{text}{}", lines(&results));
            }
            Ok(if failed { Outcome::Found } else { Outcome::Done })
        }
        Err(json) if args.json => {
            tell!("{json}");
            Err(ConfigurationAtFault("the configuration is at fault".into()).into())
        }
        Err(text) => Err(ConfigurationAtFault(text.trim_end().into()).into()),
    }
}

/// What a configuration will do.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// The configuration's hash, as the metric has it.
    pub hash: String,
    /// The place of observation.
    pub location: String,
    /// Its routes.
    pub routes: Vec<RouteSummary>,
    /// What is allowed and hardly meant.
    pub warnings: Vec<String>,
}

/// What one route will do.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RouteSummary {
    /// The full name.
    pub route: String,
    /// The next slot; none only in a far future.
    pub next_slot: Option<DateTime<Utc>>,
    /// When its canary is sent: the slot and the route's own offset.
    pub next_canary: Option<DateTime<Utc>>,
    /// Canaries by schedule in the 24 hours after now.
    pub scheduled_a_day: u64,
    /// The most canaries of all kinds in one hour.
    pub needed_an_hour: u32,
    /// The cap.
    pub hourly_cap: u32,
    /// When a canary of the next slot is settled at the latest, counted from its acceptance.
    pub settled_after: Span,
    /// The ledger that is read, if any.
    pub ledger: Option<String>,
}

/// How one check ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// As it should be.
    Ok,
    /// It works, and should be looked at.
    Warn,
    /// It does not work.
    Failed,
}

/// One check of something outside.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CheckResult {
    /// What was checked, such as `ledger attempts: role`.
    pub name: String,
    /// How it ended.
    pub status: Status,
    /// What was seen.
    pub detail: String,
    /// What to do.
    pub hint: Option<String>,
}

/// The offline check, as text to print: the summary, or all faults.
///
/// # Errors
/// All faults, in the same form (text or JSON) as the summary would have.
pub fn run_offline(
    path: &Path,
    location: Option<&str>,
    env: &dyn Fn(&str) -> Option<String>,
    now: DateTime<Utc>,
    json: bool,
) -> Result<String, String> {
    let loaded =
        load_at(path, location, env).and_then(|loaded| match super::rehearsal::faults(&loaded, now) {
            none if none.is_empty() => Ok(loaded),
            faults => Err(Faults::new(faults)),
        });
    match loaded {
        Ok(loaded) => {
            let mut summary = summarise(&loaded, now);
            summary.warnings.extend(folders(&loaded));
            Ok(if json { as_json(&json!({ "ok": true, "summary": summary })) } else { summary.to_string() })
        }
        Err(faults) => Err(if json { as_json(&faults_json(&faults)) } else { format!("{faults}\n") }),
    }
}

/// What a configuration will do, as of now. Pure.
pub fn summarise(loaded: &Loaded, now: DateTime<Utc>) -> Summary {
    Summary {
        hash: loaded.hash.to_string(),
        location: loaded.config.location.clone(),
        routes: loaded.config.routes.iter().map(|route| summarise_route(route, now)).collect(),
        warnings: loaded.warnings.iter().map(ToString::to_string).collect(),
    }
}

fn summarise_route(route: &Route, now: DateTime<Utc>) -> RouteSummary {
    let schedule = route.schedule.schedule().ok();
    let offset = active::offset_of(&route.schedule, &route.full_name()).ok();
    let offset = offset.and_then(|offset| TimeDelta::from_std(offset).ok()).unwrap_or_default();
    // The next to be sent may be of a slot that has begun already.
    let next_slot = schedule.as_ref().and_then(|schedule| schedule.next_after(now - offset));
    let day = now.checked_add_signed(TimeDelta::days(1)).unwrap_or(now);
    RouteSummary {
        route: route.full_name().to_string(),
        next_slot,
        next_canary: next_slot.and_then(|slot| slot.checked_add_signed(offset)),
        scheduled_a_day: schedule.map_or(0, |schedule| schedule.count_between(now, day).slots),
        needed_an_hour: Need::of(route).map_or(0, Need::total),
        hourly_cap: route.hourly_cap,
        settled_after: Span(route.deadline.get().saturating_add(route.settle.get())),
        ledger: route.ledger.clone(),
    }
}

/// What can be seen of files without connecting to anything.
fn folders(loaded: &Loaded) -> Vec<String> {
    let StoreConfig::Sqlite(store) = &loaded.config.store else { return Vec::new() };
    let folder = match store.path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    if folder.is_dir() {
        return Vec::new();
    }
    vec![format!("the folder of the store, `{}`, is not there: make it before the start", folder.display())]
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "configuration {} for the location `{}`", self.hash, self.location)?;
        let wide = self.routes.iter().map(|route| route.route.len()).max().unwrap_or(0).max(5);
        writeln!(
            f,
            "{:wide$}  {:24}  {:>7}  {:>10}  {:>9}",
            "route", "next canary", "a day", "need/cap h", "settled"
        )?;
        for route in &self.routes {
            let next = route
                .next_canary
                .map_or_else(|| "never".into(), |at| at.to_rfc3339_opts(SecondsFormat::Millis, true));
            let need = format!("{}/{}", route.needed_an_hour, route.hourly_cap);
            let settled = route.settled_after.to_string();
            writeln!(
                f,
                "{:wide$}  {next:24}  {:>7}  {need:>10}  {settled:>9}",
                route.route, route.scheduled_a_day
            )?;
        }
        let a_day: u64 = self.routes.iter().map(|route| route.scheduled_a_day).sum();
        let routes = counted(u64::try_from(self.routes.len()).unwrap_or(u64::MAX), "route", "routes");
        writeln!(f, "{routes}, {} a day by schedule", counted(a_day, "canary", "canaries"))?;
        writeln!(
            f,
            "a canary is sent at its slot and the route's own offset, so that routes don't all send at once"
        )?;
        self.warnings.iter().try_for_each(|warning| writeln!(f, "warning: {warning}"))
    }
}

/// A count with its noun.
fn counted(n: u64, one: &str, several: &str) -> String {
    format!("{n} {}", if n == 1 { one } else { several })
}

/// The results of checks, a line each, with the hints of those that are not well.
pub fn lines(results: &[CheckResult]) -> String {
    let wide = results.iter().map(|result| result.name.len()).max().unwrap_or(0);
    let mut out = String::new();
    for result in results {
        let word = match result.status {
            Status::Ok => "ok",
            Status::Warn => "warn",
            Status::Failed => "FAILED",
        };
        // Writing to a String can't fail.
        let _ = writeln!(out, "{word:6}  {:wide$}  {}", result.name, result.detail);
        if let Some(hint) = result.hint.as_ref().filter(|_| result.status != Status::Ok) {
            let _ = writeln!(out, "        hint: {hint}");
        }
    }
    out
}

fn faults_json(faults: &Faults) -> serde_json::Value {
    let faults: Vec<_> = faults
        .as_slice()
        .iter()
        .map(|fault| {
            json!({
                "file": fault.file, "line": fault.line, "column": fault.column,
                "message": fault.message, "value": fault.value, "hint": fault.hint,
            })
        })
        .collect();
    json!({ "ok": false, "faults": faults })
}

fn as_json(value: &serde_json::Value) -> String {
    format!("{value:#}\n")
}

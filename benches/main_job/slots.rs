//! How late slots are served, at two thousand routes with a canary a minute.

use crate::{
    monitor::{self, Monitor, Setting},
    process,
    table::{self, number, quantile},
};
use anyhow::{Context, Result};
use chrono::{DateTime, TimeDelta, Utc};
use delivery_canary::{
    config::model::ScheduleConfig, domain::route::RouteName, monitor::active::offset_of, store::Stored,
};
use serde_json::json;
use std::{collections::HashMap, time::Duration};
use tokio::task::JoinSet;

const ROUTES: usize = 2_000;
const SPAN: Duration = Duration::from_secs(70);
const MINUTE: TimeDelta = TimeDelta::minutes(1);

/// Measures the monitor, and bare timers of the same instants beside it.
pub async fn run() -> Result<()> {
    let (target, address) = process::role("target")?;
    let mut monitor = Monitor::configure(&Setting {
        routes: ROUTES,
        every: "1m",
        hourly_cap: 80,
        deadline: "20s",
        target: address,
        total_timeout: "10s",
        ledger: None,
    })?;
    let began = std::time::Instant::now();
    monitor.start().await?;
    println!("  ready {:.1} s after its start with {ROUTES} routes", began.elapsed().as_secs_f64());
    let offsets = offsets()?;
    let from = Utc::now() + TimeDelta::seconds(1);
    let until = from + TimeDelta::from_std(SPAN)?;
    let due: Vec<(&RouteName, DateTime<Utc>)> = offsets
        .iter()
        .flat_map(|(route, offset)| slots(from, until, *offset).map(move |slot| (route, slot + *offset)))
        .collect();
    let (cpu, target_cpu) = (monitor.process()?.cpu()?, target.cpu()?);
    let mut timers = JoinSet::new();
    for (_, at) in &due {
        let at = *at;
        timers.spawn(async move {
            tokio::time::sleep((at - Utc::now()).to_std().unwrap_or_default()).await;
            late(Utc::now(), at)
        });
    }
    let bare = timers.join_all().await;
    let left = (until - Utc::now()).to_std().unwrap_or_default();
    tokio::time::sleep(left + Duration::from_secs(3)).await;
    let (cpu, target_cpu) = (monitor.process()?.cpu()? - cpu, target.cpu()? - target_cpu);
    monitor.end();

    let first = DateTime::from_timestamp(from.timestamp().div_euclid(60) * 60, 0).context("no such time")?;
    let stored = monitor.canaries(first - MINUTE, until, MINUTE).await?;
    let planned: Vec<f64> = lateness(&stored, &offsets, from..until, |s| Some(s.canary.plan.planned_at));
    let started = lateness(&stored, &offsets, from..until, |stored| {
        stored.canary.acceptance.submissions.first().map(|s| s.started_at)
    });
    let row = |what: &str, mut values: Vec<f64>| {
        values.sort_by(f64::total_cmp);
        let at = |share| format!("{:.1} ms", quantile(&values, share));
        vec![what.to_owned(), values.len().to_string(), at(0.5), at(0.99), at(0.999), at(1.0)]
    };
    table::print(
        &["lateness", "slots", "median", "p99", "p99.9", "most"],
        &[row("bare timer", bare), row("planned", planned), row("submission began", started.clone())],
    );
    println!("  slots due {}, submitted {}", due.len(), started.len());
    println!(
        "  CPU: monitor {:.0} % of one processor, target {:.0} %",
        100.0 * cpu.as_secs_f64() / SPAN.as_secs_f64(),
        100.0 * target_cpu.as_secs_f64() / SPAN.as_secs_f64()
    );
    println!(
        "  CPU of the monitor per canary {:.2} ms",
        1e3 * cpu.as_secs_f64() / number(started.len().max(1))
    );
    Ok(())
}

/// The offset of each route.
fn offsets() -> Result<HashMap<RouteName, TimeDelta>> {
    let schedule: ScheduleConfig = serde_json::from_value(json!({ "every": "1m" }))?;
    (0..ROUTES)
        .map(|number| {
            let route = RouteName::from_text(format!("webhook/{}", monitor::name(number)));
            let offset = TimeDelta::from_std(offset_of(&schedule, &route)?)?;
            Ok((route, offset))
        })
        .collect()
}

/// The slots that, with the offset, are due in a span.
fn slots(
    from: DateTime<Utc>,
    until: DateTime<Utc>,
    offset: TimeDelta,
) -> impl Iterator<Item = DateTime<Utc>> {
    let first = (from - offset).timestamp().div_euclid(60);
    (first..=until.timestamp().div_euclid(60))
        .filter_map(|minute| DateTime::from_timestamp(minute * 60, 0))
        .filter(move |slot| (from..until).contains(&(*slot + offset)))
}

fn late(at: DateTime<Utc>, due: DateTime<Utc>) -> f64 {
    (at - due).as_seconds_f64() * 1e3
}

/// How late, in milliseconds, a time of each canary is that was due in a span.
fn lateness(
    stored: &[Stored],
    offsets: &HashMap<RouteName, TimeDelta>,
    span: std::ops::Range<DateTime<Utc>>,
    at: impl Fn(&Stored) -> Option<DateTime<Utc>>,
) -> Vec<f64> {
    let of_one = |stored: &Stored| {
        let due = stored.canary.plan.slot + *offsets.get(&stored.canary.plan.route)?;
        span.contains(&due).then(|| at(stored)).flatten().map(|at| late(at, due))
    };
    stored.iter().filter_map(of_one).collect()
}

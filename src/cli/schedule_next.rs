//! `delivery-canary schedule next`: the slots of an expression, without a configuration.

use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use chrono::{DateTime, NaiveDateTime, SecondsFormat, TimeDelta, TimeZone, Utc};
use chrono_tz::{GapInfo, Tz};
use clap::Args;

use crate::domain::schedule::{CronExpression, Schedule, parse_zone};

/// Most slots that are printed.
const MOST_LINES: usize = 10_000;

/// Arguments of `schedule next`.
#[derive(Clone, Debug, Args)]
pub struct ScheduleNextArgs {
    /// The cron expression, as Kubernetes reads it: five fields, `@hourly` and its kin, or `@every 5m`.
    #[arg(long)]
    pub expression: Option<String>,
    /// The IANA zone in which the expression is read and the slots are printed.
    #[arg(long, default_value = "UTC")]
    pub zone: String,
    /// Print slots after this time: local time of the zone (2026-11-29T10:00:00), or with an offset. Now, if left out.
    #[arg(long)]
    pub after: Option<String>,
    /// How many slots to print.
    #[arg(long, default_value_t = 5)]
    pub count: usize,
}

/// The next `count` slots strictly after `after`, each as RFC 3339 with the zone's offset.
///
/// `after` is local time of the zone, or has an offset of its own. A local time that came twice means its first pass,
/// so that no slot is left out. One that never came (in the gap of spring) means the instant just before the clock
/// jumped, so that a slot at the end of the gap is printed. `offset` is a route's offset, added to each slot.
///
/// # Errors
/// When the expression, the zone, the time or the count can't be used; each says what to write instead.
pub fn run(
    expression: &str,
    zone: &str,
    after: &str,
    count: usize,
    offset: Option<Duration>,
) -> Result<Vec<String>> {
    ensure!((1..=MOST_LINES).contains(&count), "--count {count} is out of range; write 1 to {MOST_LINES}");
    let expression =
        CronExpression::parse(expression).with_context(|| format!("--expression `{expression}`"))?;
    let zone = parse_zone(zone).context("--zone")?;
    let offset = TimeDelta::from_std(offset.unwrap_or_default()).context("the route's offset is too long")?;
    // With an offset, `after` is about what is printed, so the slot itself may lie before it.
    let after = parse_after(after, zone)?
        .checked_sub_signed(offset)
        .context("the route's offset is too long for the time of --after")?;
    let lines: Vec<String> = Schedule::cron(&expression, zone)
        .slots_between(after, DateTime::<Utc>::MAX_UTC, count)
        .map(|slot| (slot + offset).with_timezone(&zone).to_rfc3339_opts(SecondsFormat::AutoSi, false))
        .collect();
    ensure!(!lines.is_empty(), "no slot after {after}; write a year from 1 to 9990");
    Ok(lines)
}

/// Reads `--after`: with an offset, or as local time of the zone.
fn parse_after(text: &str, zone: Tz) -> Result<DateTime<Utc>> {
    let text = text.trim();
    if let Ok(instant) = DateTime::parse_from_rfc3339(text) {
        return Ok(instant.to_utc());
    }
    let local = ["%Y-%m-%dT%H:%M:%S%.f", "%Y-%m-%d %H:%M:%S%.f", "%Y-%m-%dT%H:%M", "%Y-%m-%d %H:%M"]
        .iter()
        .find_map(|format| NaiveDateTime::parse_from_str(text, format).ok());
    let Some(local) = local else {
        bail!(
            "--after `{text}` is not a time; write local time of the zone, such as 2026-11-29T10:00:00, \
             or a time with an offset, such as 2026-11-29T10:00:00+01:00"
        );
    };
    if let Some(first) = zone.from_local_datetime(&local).earliest() {
        return Ok(first.to_utc());
    }
    GapInfo::new(&local, &zone)
        .and_then(|gap| gap.end)
        .map(|end| end.to_utc() - TimeDelta::nanoseconds(1))
        .with_context(|| format!("--after `{text}` is beyond what is known of the zone {zone}"))
}

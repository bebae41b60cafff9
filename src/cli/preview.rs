//! `schedule next`: the next slots of an expression, or of the configured routes with their offsets.

use super::{
    Outcome, WrongUsage,
    schedule_next::{self, ScheduleNextArgs},
    wiring::{self, Where},
};
use crate::cli::out::say;
use crate::{config::model::ScheduleConfig, monitor::active};
use anyhow::Result;
use chrono::{SecondsFormat, Utc};
use clap::Args;
use std::path::PathBuf;

/// Arguments of `schedule next`.
#[derive(Debug, Args)]
pub struct PreviewArgs {
    #[command(flatten)]
    next: ScheduleNextArgs,
    /// Preview the routes of this configuration, when there is no --expression
    #[arg(long = "config", value_name = "FILE", env = "DELIVERY_CANARY_CONFIG")]
    config: Option<PathBuf>,
}

/// Runs the command.
pub fn run(args: PreviewArgs) -> Result<Outcome> {
    let next = args.next;
    let after = next.after.unwrap_or_else(|| Utc::now().to_rfc3339_opts(SecondsFormat::Secs, true));
    if let Some(expression) = &next.expression {
        for line in schedule_next::run(expression, &next.zone, &after, next.count, None).map_err(usage)? {
            say!("{line}");
        }
        return Ok(Outcome::Done);
    }
    let Some(path) = args.config else {
        let text = "write --expression EXPRESSION for one schedule, or --config FILE for the routes of a configuration";
        return Err(WrongUsage(text.into()).into());
    };
    let loaded = wiring::load(&Where { path, location: None })?;
    for route in &loaded.config.routes {
        let (expression, zone) = match &route.schedule {
            ScheduleConfig::Cron(cron) => (cron.expression.clone(), cron.zone.as_str()),
            ScheduleConfig::Every(interval) => (format!("@every {interval}"), next.zone.as_str()),
        };
        let name = route.full_name();
        let offset = active::offset_of(&route.schedule, &name)?;
        say!(
            "{name}  {expression}  {zone}, and {}.{:03}s after each slot",
            offset.as_secs(),
            offset.subsec_millis()
        );
        for line in schedule_next::run(&expression, zone, &after, next.count, Some(offset)).map_err(usage)? {
            say!("  {line}");
        }
    }
    Ok(Outcome::Done)
}

/// What can't be printed was asked for wrongly: the configuration's own schedules were checked when it was loaded.
fn usage(error: anyhow::Error) -> WrongUsage {
    WrongUsage(format!("{error:#}"))
}

//! `delivery-canary alerts explain`: what each alert costs.

use super::at_fault;
use crate::cli::out::{say, tell};
use crate::{
    alerts::explain::{Size, explain, text},
    cli::{ConfigFile, Outcome, wiring},
    config::Loaded,
};
use anyhow::Result;
use clap::Args;

#[derive(Debug, Args)]
pub(super) struct ExplainArgs {
    /// Only this route, as channel/name
    #[arg(long)]
    route: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// The seed of the simulation: the same seed, the same figures
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// How many outages of each share are simulated
    #[arg(long, value_name = "N", default_value_t = 2_000, value_parser = clap::value_parser!(u32).range(100..=1_000_000))]
    outages: u32,
    /// Count false pages over so many simulated years, instead of weighing how likely each is
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    years: Option<u32>,
    #[command(flatten)]
    config: ConfigFile,
}

pub(super) fn run(args: &ExplainArgs) -> Result<Outcome> {
    let Loaded { config, hash, .. } = wiring::load(&(&args.config).into())?;
    let route = args.route.as_deref().map(|name| wiring::find_route(&config, name)).transpose()?;
    let size =
        Size { seed: args.seed, outages: usize::try_from(args.outages)?, years: args.years.map(f64::from) };
    let explained = explain(&config, hash, route.as_ref(), &size).map_err(|error| at_fault(&error))?;
    if args.json {
        say!("{}", serde_json::to_string_pretty(&explained)?);
    } else {
        tell!("{}", text(&explained));
    }
    Ok(Outcome::Done)
}

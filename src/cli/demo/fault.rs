//! `demo fault`: switches a fault of the demo that runs.

use crate::cli::Outcome;
use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};
use serde_json::json;

/// Arguments of `demo fault`.
#[derive(Debug, Args)]
pub struct FaultArgs {
    /// The fault, such as provider-down; without it, the faults are listed
    name: Option<String>,
    /// On or off
    #[arg(default_value = "on")]
    to: Switch,
    /// Only on this route of the service, such as receipts
    #[arg(long)]
    route: Option<String>,
    /// The part of the notifications that it meets, from 0 to 1
    #[arg(long)]
    ratio: Option<f64>,
    /// Where the demo's faults are switched
    #[arg(long, default_value = "http://127.0.0.1:9470")]
    admin: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Switch {
    On,
    Off,
}

/// Runs the command.
pub async fn run(args: FaultArgs) -> Result<Outcome> {
    crate::cli::wiring::install_tls();
    let client = reqwest::Client::builder().no_proxy().build()?;
    let url = format!("{}/admin/faults", args.admin);
    let unreachable = || format!("no demo answers at {}; start ./demo first, or give --admin", args.admin);
    let Some(name) = args.name else {
        let text = client.get(&url).send().await.with_context(unreachable)?.text().await?;
        println!("{text}");
        return Ok(Outcome::Done);
    };
    let mut order = json!({ "fault": name, "on": args.to == Switch::On });
    if let Some(route) = args.route {
        order["route"] = route.into();
    }
    if let Some(ratio) = args.ratio {
        order["ratio"] = ratio.into();
    }
    let answer = client.post(&url).json(&order).send().await.with_context(unreachable)?;
    if !answer.status().is_success() {
        bail!("the demo refused it: {}", answer.text().await?);
    }
    println!("{name} is {}", if args.to == Switch::On { "on" } else { "off" });
    Ok(Outcome::Done)
}

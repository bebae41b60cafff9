//! `demo fault`: switches a fault of the demo that runs.

use crate::cli::out::{say, tell};
use crate::{
    cli::{Outcome, WrongUsage},
    simulator::Fault,
};
use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};
use serde_json::{Value, json};
use std::fmt::Write;

/// Arguments of `demo fault`.
#[derive(Debug, Args)]
pub struct FaultArgs {
    /// The fault, such as provider-down; without it, the faults are listed
    name: Option<Fault>,
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
    /// Print the demo's answer as it is, in JSON
    #[arg(long)]
    json: bool,
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
    let url = format!("{}/admin/faults", args.admin.trim_end_matches('/'));
    let request = match args.name {
        None => client.get(&url),
        Some(fault) => {
            let mut order = json!({ "fault": fault, "on": args.to == Switch::On });
            if let Some(route) = &args.route {
                order["route"] = route.as_str().into();
            }
            if let Some(ratio) = args.ratio {
                order["ratio"] = ratio.into();
            }
            client.post(&url).json(&order)
        }
    };
    let unreachable = || format!("no demo answers at {}; start ./demo first, or give --admin", args.admin);
    let answer = request.send().await.with_context(unreachable)?;
    let status = answer.status();
    let text = answer.text().await.with_context(unreachable)?;
    if args.json {
        say!("{text}");
    }
    if !status.is_success() {
        let reason = format!("the demo refused it: {}", reason(&text));
        if status.is_client_error() {
            return Err(WrongUsage(reason).into());
        }
        bail!(reason);
    }
    if !args.json {
        let answer: Value = serde_json::from_str(&text)
            .with_context(|| format!("what answers at {} is no demo", args.admin))?;
        tell!("{}", told(args.name, &answer));
    }
    Ok(Outcome::Done)
}

/// Why the demo refused an order, in its own words.
fn reason(answer: &str) -> String {
    let parsed: Value = serde_json::from_str(answer).unwrap_or_default();
    parsed.pointer("/error/message").and_then(Value::as_str).unwrap_or(answer.trim()).to_owned()
}

/// The demo's answer for people: what is on, and all faults where none was switched.
fn told(switched: Option<Fault>, answer: &Value) -> String {
    let on: Vec<String> = answer["on"].as_array().into_iter().flatten().map(setting).collect();
    let mut out = format!("on now: {}\n", if on.is_empty() { "none".to_owned() } else { on.join("; ") });
    if switched.is_none() {
        let wide = Fault::kinds().iter().map(|kind| kind.name.len()).max().unwrap_or_default();
        out.push('\n');
        for kind in Fault::kinds() {
            let may = match (kind.takes_route, kind.takes_ratio) {
                (true, true) => "--route --ratio",
                (true, false) => "--route",
                (false, true) => "--ratio",
                (false, false) => "",
            };
            // Writing to a string can't fail.
            let _ = writeln!(out, "  {:wide$}  {may:15}  {}", kind.name, kind.help);
        }
        out.push_str("\nSwitch one: `./demo fault NAME on`, and `off` again\n");
    }
    out
}

/// One fault that is on.
fn setting(armed: &Value) -> String {
    let mut text = armed["fault"].as_str().unwrap_or("a fault that this release doesn't know").to_owned();
    if let Some(route) = armed["route"].as_str() {
        text += &format!(" on {route}");
    }
    match armed["ratio"].as_f64() {
        Some(ratio) if ratio < 1.0 => text += &format!(", for {ratio} of the cases"),
        _ => {}
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn people_read_no_json() {
        let answer =
            json!({ "on": [{ "fault": "provider-down", "route": "receipts", "ratio": 0.5, "params": {} }] });
        let list = told(None, &answer);
        assert!(list.starts_with("on now: provider-down on receipts, for 0.5 of the cases\n"), "{list}");
        assert!(
            Fault::kinds().iter().all(|kind| list.contains(kind.name) && list.contains(kind.help)),
            "{list}"
        );
        assert!(!list.contains(['{', '"']), "{list}");
        assert_eq!(told(Some(Fault::Duplicate), &json!({ "on": [] })), "on now: none\n");
    }

    #[test]
    fn a_refusal_is_told_in_its_own_words() {
        assert_eq!(
            reason(r#"{"error":{"code":"order","message":"leave `ratio` out"}}"#),
            "leave `ratio` out"
        );
        assert_eq!(reason("not found\n"), "not found");
    }
}

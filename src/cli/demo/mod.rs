//! `demo`: the main job on embedded defaults, against a simulated service with faults on demand.

mod fault;
mod stage;
mod tour;
mod view;

use super::Outcome;
use crate::{cli::out::say, clock};
use anyhow::{Context, Result};
use clap::{Args, Subcommand};
use std::{
    fs::Permissions,
    io::{IsTerminal, Write},
    os::unix::fs::PermissionsExt,
    time::{Duration, Instant},
};

/// How long the first looks of all observers may take. So long what was not seen yet is not said to be down.
const START: Duration = Duration::from_secs(5);

/// Arguments of `demo`.
#[derive(Debug, Args)]
pub struct DemoArgs {
    /// Walk through five faults, in under three minutes
    #[arg(long)]
    tour: bool,
    /// Stop after this many seconds, instead of at Ctrl-C
    #[arg(long, value_name = "SECONDS")]
    seconds: Option<u64>,
    #[command(subcommand)]
    what: Option<What>,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Switch a fault of the demo that runs, or list the faults
    Fault(fault::FaultArgs),
}

/// Runs the command.
pub async fn run(args: DemoArgs) -> Result<Outcome> {
    if let Some(What::Fault(args)) = args.what {
        return fault::run(args).await;
    }
    let folder = tempfile::Builder::new()
        .prefix("delivery-canary-demo-")
        // The configuration in it holds the run's secret.
        .permissions(Permissions::from_mode(0o700))
        .tempdir()
        .context("no temporary folder")?;
    let stage = stage::set(folder.path(), "error").await?;
    introduce(&stage);
    let result = if args.tour {
        tokio::select! {
            walked = tour::walk(&stage) => walked,
            stopped = super::serve::stop_signal() => stopped,
        }
    } else {
        watch(&stage, args.seconds).await
    };
    eprintln!("stopping");
    stage.monitor.stop().await;
    stage.simulator.stop().await;
    result.map(|()| Outcome::Done)
}

fn introduce(stage: &stage::Stage) {
    let monitor = stage.monitor.addresses();
    let service = stage.simulator.addresses();
    say!(
        "A small notification service with customers of its own, and delivery-canary watching it, all on loopback."
    );
    say!("  metrics        http://{}/metrics", monitor.metrics);
    say!("  own probes     http://{}/ready", monitor.health);
    say!("  the service    http://{}/v1/notifications", service.acceptance);
    let switch = if service.admin.port() == stage::ADMIN_PORT {
        "./demo fault provider-down on".to_owned()
    } else {
        format!("./demo fault provider-down on --admin http://{}", service.admin)
    };
    say!("  its faults     http://{}/admin/faults   ({switch})", service.admin);
    say!("  configuration  {}", stage.config.display());
    say!();
}

/// Shows the live view until Ctrl-C, SIGTERM, or so many seconds.
async fn watch(stage: &stage::Stage, seconds: Option<u64>) -> Result<()> {
    let stop = super::serve::stop_signal();
    tokio::pin!(stop);
    let is_terminal = std::io::stdout().is_terminal();
    let end = async {
        match seconds {
            Some(seconds) => tokio::time::sleep(Duration::from_secs(seconds)).await,
            None => std::future::pending().await,
        }
    };
    tokio::pin!(end);
    let mut tick = tokio::time::interval(Duration::from_secs(if is_terminal { 1 } else { 10 }));
    let began = Instant::now();
    let mut drawn = 0;
    loop {
        tokio::select! {
            result = &mut stop => return result,
            () = &mut end => {
                draw(stage, is_terminal, drawn, began.elapsed())?;
                return Ok(());
            }
            _ = tick.tick() => drawn = draw(stage, is_terminal, drawn, began.elapsed())?,
        }
    }
}

/// Draws the view, over the one before where a terminal allows it. Answers how many lines it has.
fn draw(stage: &stage::Stage, is_terminal: bool, drawn: usize, shown_for: Duration) -> Result<usize> {
    let shared = stage.monitor.shared();
    let faults: Vec<String> = stage.simulator.faults().iter().map(|f| f.fault.to_string()).collect();
    let (snapshot, is_starting) = (shared.snapshot.load(), shown_for < START);
    let lines = view::render(&shared.active.load(), &snapshot, &faults, is_starting, clock::now());
    let mut out = std::io::stdout().lock();
    if is_terminal && drawn > 0 {
        write!(out, "\x1b[{drawn}A")?;
    }
    for line in &lines {
        let clear = if is_terminal { "\x1b[K" } else { "" };
        writeln!(out, "{line}{clear}")?;
    }
    out.flush()?;
    Ok(lines.len())
}

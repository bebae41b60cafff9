//! `delivery-canary dashboards generate`: the dashboards as files.

use super::{Outcome, out::tell};
use crate::dashboards;
use anyhow::{Context, Result};
use clap::{Args, Subcommand};
use std::{fs, path::PathBuf};

/// Dashboards for Grafana.
#[derive(Debug, Args)]
pub struct DashboardsCommand {
    #[command(subcommand)]
    what: DashboardsWhat,
}

#[derive(Debug, Subcommand)]
enum DashboardsWhat {
    /// Write a file for each dashboard; they ask for a Prometheus data source when they are opened
    Generate {
        /// The folder; it is made where there is none
        #[arg(long, value_name = "DIR")]
        out: PathBuf,
    },
}

/// Writes the files.
///
/// # Errors
/// When a file can't be written.
pub fn run(command: &DashboardsCommand) -> Result<Outcome> {
    let DashboardsWhat::Generate { out } = &command.what;
    fs::create_dir_all(out).with_context(|| format!("the folder {} can't be made", out.display()))?;
    for board in dashboards::all() {
        let path = out.join(format!("{}.json", board.uid));
        fs::write(&path, board.text()).with_context(|| format!("{} can't be written", path.display()))?;
        tell!("{}: {}\n", path.display(), board.title);
    }
    Ok(Outcome::Done)
}

//! `ledger reconcile`.

mod account;
mod reconcile;

use super::Outcome;
use anyhow::Result;
use clap::{Args, Subcommand};

/// Ledgers.
#[derive(Debug, Args)]
pub struct LedgerCommand {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Hold what is followed against an exact count, for an interval of due times
    Reconcile(reconcile::ReconcileArgs),
}

/// There is no such ledger.
#[derive(Debug, thiserror::Error)]
#[error("there is no ledger `{name}`; the configuration has: {known}")]
pub struct NoSuchLedger {
    name: String,
    known: String,
}

/// Runs the command.
pub async fn run(command: LedgerCommand) -> Result<Outcome> {
    match command.what {
        What::Reconcile(args) => reconcile::run(args).await,
    }
}

//! `ledger init`, `ledger grants`, `ledger check` and `ledger reconcile`.

mod account;
mod check;
mod grants;
mod init;
mod reconcile;

pub(super) use check::result as check_result;

use super::{Outcome, wiring};
use crate::{
    config::ledger::Ledger,
    ledger::{self, LedgerAdapter},
};
use anyhow::Result;
use clap::{Args, Subcommand};
use std::sync::Arc;

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
    /// Propose a ledger's configuration from the tables of its database
    Init(init::InitArgs),
    /// Check ledgers: their queries, their rows, and what one real refresh costs. Nothing is written
    Check(check::LedgerCheckArgs),
    /// Print the least GRANTs that the configured queries need
    Grants(grants::GrantsArgs),
}

/// There is no such ledger.
#[derive(Debug, thiserror::Error)]
#[error("there is no ledger `{name}`; the configuration has: {known}")]
pub struct NoSuchLedger {
    name: String,
    known: String,
}

/// The adapter of a ledger. Nothing is connected to.
fn opened(name: &str, config: &Ledger) -> Result<Arc<LedgerAdapter>> {
    wiring::install_tls();
    ledger::open(name, config)
        .map_err(|error| wiring::ConfigurationAtFault(format!("ledger `{name}`: {error}")).into())
}

/// Runs the command.
pub async fn run(command: LedgerCommand) -> Result<Outcome> {
    match command.what {
        What::Reconcile(args) => reconcile::run(args).await,
        What::Init(args) => init::run(args).await,
        What::Check(args) => check::run(args).await,
        What::Grants(args) => grants::run(args).await,
    }
}

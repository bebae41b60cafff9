//! The commands: a file each. This is where the parts are wired together.

pub mod alerts;
pub mod canary;
pub mod check;
pub mod check_online;
pub mod dashboards;
pub mod demo;
pub mod explain;
pub mod ledger;
pub mod listing;
mod out;
mod paste;
pub mod pause;
pub mod paused;
pub mod preview;
pub mod rehearsal;
pub mod schedule_next;
pub mod schema;
pub mod send;
pub mod serve;
pub mod wiring;

use crate::receipt::{rules::RulesError, webhook::ReceiverError};
use anyhow::Result;
use clap::{Args, Parser, Subcommand};
use out::tell;
use std::{path::PathBuf, process::ExitCode};

/// Exit codes, the same for all commands.
pub mod exit {
    /// Done.
    pub const OK: u8 = 0;
    /// It was done, and what it found is bad: a canary that failed, a check that failed.
    pub const FOUND: u8 = 1;
    /// It was not written as it must be; clap's own code for it.
    pub const USAGE: u8 = 2;
    /// It was done, and nobody can say whether what it found is good or bad.
    pub const UNDECIDED: u8 = 3;
    /// There is no such canary, route, ledger or pause.
    pub const NOT_FOUND: u8 = 4;
    /// It could not be done now: the store or a peer can't be used, the route is paused, or its cap is reached.
    pub const UNAVAILABLE: u8 = 75;
    /// The configuration is at fault.
    pub const CONFIGURATION: u8 = 78;
}

/// Knows, from outside, whether a notification service really delivers.
#[derive(Debug, Parser)]
#[command(name = "delivery-canary", version, about, propagate_version = true)]
#[command(
    after_help = "Exit codes: 0 done; 1 done, and what was found is bad; 2 wrong usage; 3 done, and nobody can say; \
                        4 no such thing; 75 not now (store or peer down, paused, cap reached); 78 the configuration is at fault."
)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run: send canaries on schedule, follow them, export metrics
    Serve(serve::ServeArgs),
    /// Check a configuration; with --online connect to everything it names, and send nothing
    Check(check::CheckArgs),
    /// Print what is generated from the configuration's types
    Config(ConfigCommand),
    /// Look at schedules
    Schedule(ScheduleCommand),
    /// Look at, send and erase canaries
    Canary(canary::CanaryCommand),
    /// Look at what ledgers come to
    Ledger(ledger::LedgerCommand),
    /// Make dashboards for Grafana
    Dashboards(dashboards::DashboardsCommand),
    /// Make alert rules from a configuration, and look at rules
    Alerts(alerts::AlertsCommand),
    /// Stop sending, on one route or on all, until a time
    Pause(pause::PauseArgs),
    /// Send again
    Resume(pause::ResumeArgs),
    /// Run against a small notification service of our own, with faults on demand
    Demo(demo::DemoArgs),
}

/// Where the configuration is.
#[derive(Clone, Debug, Args)]
pub struct ConfigFile {
    /// The configuration file
    #[arg(long = "config", value_name = "FILE", env = "DELIVERY_CANARY_CONFIG")]
    pub path: PathBuf,
    /// The name of this place of observation, instead of the file's
    #[arg(long, value_name = "NAME", env = "DELIVERY_CANARY_LOCATION")]
    pub location: Option<String>,
}

/// What is generated from the configuration's types.
#[derive(Debug, Args)]
pub struct ConfigCommand {
    #[command(subcommand)]
    what: ConfigWhat,
}

#[derive(Debug, Subcommand)]
enum ConfigWhat {
    /// Print the JSON schema
    Schema,
    /// Print the reference, as Markdown
    Reference,
}

/// Schedules.
#[derive(Debug, Args)]
pub struct ScheduleCommand {
    #[command(subcommand)]
    what: ScheduleWhat,
}

#[derive(Debug, Subcommand)]
enum ScheduleWhat {
    /// Print the next slots of an expression, or of the configured routes
    Next(preview::PreviewArgs),
}

/// What a command came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Done.
    Done,
    /// Done, and what was found is bad.
    Found,
    /// Done, and nobody can say whether what was found is good or bad.
    Undecided,
    /// There is no such thing.
    NotFound,
}

/// The command was not written as it must be. The text says how to write it.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct WrongUsage(pub String);

/// Runs a command, and says on standard error why it could not.
pub fn run(cli: Cli) -> ExitCode {
    let runtime = match tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("error: the runtime can't start: {error}");
            return ExitCode::from(exit::UNAVAILABLE);
        }
    };
    let result = runtime.block_on(dispatch(cli.command));
    // What still runs now was given its time already.
    runtime.shutdown_timeout(std::time::Duration::from_millis(500));
    match result {
        Ok(Outcome::Done) => ExitCode::from(exit::OK),
        Ok(Outcome::Found) => ExitCode::from(exit::FOUND),
        Ok(Outcome::Undecided) => ExitCode::from(exit::UNDECIDED),
        Ok(Outcome::NotFound) => ExitCode::from(exit::NOT_FOUND),
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::from(code_of(&error))
        }
    }
}

fn code_of(error: &anyhow::Error) -> u8 {
    if error.is::<WrongUsage>() {
        exit::USAGE
    } else if error.is::<wiring::ConfigurationAtFault>()
        || matches!(error.downcast_ref(), Some(ReceiverError::Rules { .. }))
        || error.is::<RulesError>()
    {
        exit::CONFIGURATION
    } else if error.is::<send::NobodyCanSay>() {
        exit::UNDECIDED
    } else if error.is::<wiring::NoSuchRoute>() || error.is::<ledger::NoSuchLedger>() {
        exit::NOT_FOUND
    } else if error.is::<crate::store::StoreError>()
        || error.is::<send::NotNow>()
        || error.is::<crate::ledger::LedgerError>()
        || error.is::<crate::monitor::flow::BooksError>()
        || matches!(error.downcast_ref(), Some(ReceiverError::Bind { .. }))
        || error.is::<std::io::Error>()
        || error.is::<reqwest::Error>()
    {
        exit::UNAVAILABLE
    } else {
        exit::FOUND
    }
}

async fn dispatch(command: Command) -> Result<Outcome> {
    match command {
        Command::Serve(args) => serve::run(args).await,
        Command::Check(args) => check::run(args).await,
        Command::Config(command) => {
            match command.what {
                ConfigWhat::Schema => tell!("{}", schema::schema()?),
                ConfigWhat::Reference => tell!("{}", schema::reference()?),
            }
            Ok(Outcome::Done)
        }
        Command::Schedule(ScheduleCommand { what: ScheduleWhat::Next(args) }) => preview::run(args),
        Command::Canary(command) => canary::run(command).await,
        Command::Ledger(command) => ledger::run(command).await,
        Command::Dashboards(command) => dashboards::run(&command),
        Command::Alerts(command) => alerts::run(command).await,
        Command::Pause(args) => pause::pause(args).await,
        Command::Resume(args) => pause::resume(args).await,
        Command::Demo(args) => demo::run(args).await,
    }
}

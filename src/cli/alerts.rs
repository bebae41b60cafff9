//! `delivery-canary alerts generate`, and what looks at alerts: `lint`, `explain`, `backtest`.

mod backtest;
mod explain;
mod history;
mod page_test;
mod suggest;

use super::{ConfigFile, Outcome, wiring};
use crate::cli::out::say;
use crate::{
    alerts::{self, AlertsError, Format, Generated, lint},
    config::{Config, Loaded, acceptance::Acceptance},
};
use anyhow::{Context, Result};
use clap::{Args, Subcommand, ValueEnum};
use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

/// Alerts.
#[derive(Debug, Args)]
pub struct AlertsCommand {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Make rules, their tests, the Alertmanager's configuration and runbooks from a configuration
    Generate(GenerateArgs),
    /// Look whether rules and the Alertmanager's configuration, ours or merged ones, keep their promises
    Lint(LintArgs),
    /// Tell how soon each alert would come in an outage, and how often for nothing
    Explain(explain::ExplainArgs),
    /// Tell which pages would have come by other settings, from the canaries in the store
    Backtest(backtest::BacktestArgs),
    /// Propose deadlines, p0, sustain and bounds from what was measured, each with its reason
    Suggest(suggest::SuggestArgs),
    /// Send one page along the real way, that says that it is a test
    PageTest(page_test::PageTestArgs),
}

#[derive(Debug, Args)]
struct GenerateArgs {
    /// The folder to write into; files of ours in it are replaced, others stay
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// The form of the rules
    #[arg(long, value_enum, default_value_t = FormatArg::Prometheus)]
    format: FormatArg,
    /// Make everything a ticket: for the first week
    #[arg(long)]
    shadow: bool,
    #[command(flatten)]
    config: ConfigFile,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum FormatArg {
    /// A rule file of Prometheus, with tests for promtool
    Prometheus,
    /// The operator's custom resource
    PrometheusRule,
}

#[derive(Debug, Args)]
struct LintArgs {
    /// Rule files and Alertmanager configurations
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// The monitor's configuration: with it receivers on hosts of the monitored service are found
    #[arg(long = "config", value_name = "FILE", env = "DELIVERY_CANARY_CONFIG")]
    config: Option<PathBuf>,
}

/// Runs the command.
///
/// # Errors
/// When the configuration is at fault, no rules can be made from it, or a file can't be read or written.
pub async fn run(command: AlertsCommand) -> Result<Outcome> {
    match command.what {
        What::Generate(args) => generate(&args),
        What::Lint(args) => check(&args),
        What::Explain(args) => explain::run(&args),
        What::Backtest(args) => backtest::run(args).await,
        What::Suggest(args) => suggest::run(args).await,
        What::PageTest(args) => page_test::run(args).await,
    }
}

/// No rules can be made from this configuration.
fn at_fault(error: &AlertsError) -> anyhow::Error {
    wiring::ConfigurationAtFault(error.to_string()).into()
}

fn generate(args: &GenerateArgs) -> Result<Outcome> {
    let Loaded { config, hash, .. } = wiring::load(&(&args.config).into())?;
    let format = match args.format {
        FormatArg::Prometheus => Format::Prometheus,
        FormatArg::PrometheusRule => Format::PrometheusRule,
    };
    let Generated { files, left_out, alerts, recorded } =
        alerts::generate(&config, hash, args.shadow, format).map_err(|error| at_fault(&error))?;
    for (name, text) in &files {
        let path = args.out.join(name);
        let folder = path.parent().unwrap_or(Path::new(""));
        fs::create_dir_all(folder)
            .with_context(|| format!("the folder `{}` can't be made", folder.display()))?;
        fs::write(&path, text).with_context(|| format!("`{}` can't be written", path.display()))?;
    }
    for left in left_out {
        say!("left out: {left}");
    }
    say!(
        "{} files in {}: {alerts} alert rules and {recorded} recording rules, of the configuration {hash}",
        files.len(),
        args.out.display()
    );
    Ok(Outcome::Done)
}

/// The hosts at which the monitored service is reached.
fn target_hosts(config: &Config) -> BTreeSet<String> {
    let hosts = config.acceptances.values().filter_map(|Acceptance::Http(http)| {
        // The address is a template; its host hardly ever is.
        reqwest::Url::parse(&http.url).ok()?.host_str().map(str::to_owned)
    });
    hosts.collect()
}

fn check(args: &LintArgs) -> Result<Outcome> {
    let hosts = match &args.config {
        Some(path) => {
            target_hosts(&wiring::load(&wiring::Where { path: path.clone(), location: None })?.config)
        }
        None => BTreeSet::new(),
    };
    let mut found = 0;
    for path in &args.files {
        let text = fs::read_to_string(path).with_context(|| format!("`{}` can't be read", path.display()))?;
        for finding in lint::lint(&path.display().to_string(), &text, &hosts) {
            say!("{finding}");
            found += 1;
        }
    }
    if found == 0 {
        say!("{} files, nothing found", args.files.len());
        Ok(Outcome::Done)
    } else {
        Ok(Outcome::Found)
    }
}

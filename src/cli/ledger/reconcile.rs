//! `ledger reconcile`: what is followed, held against an exact count.

use super::{
    NoSuchLedger,
    account::{self, Account},
};
use crate::{
    catalog::labels::OTHER_ROUTE,
    cli::{
        ConfigFile, Outcome, WrongUsage,
        canary::instant,
        out::{say, tell},
        wiring::{self, ConfigurationAtFault},
    },
    config::{Config, ledger::Ledger},
    domain::route::RouteName,
    ledger::{self, ElsewhereError, FlowReader},
    monitor::flow::{Asked, BooksError, Interval, reconcile},
};
use anyhow::Result;
use chrono::{DateTime, Utc};
use clap::Args;
use std::sync::Arc;

/// Arguments of `ledger reconcile`.
#[derive(Debug, Args)]
pub struct ReconcileArgs {
    /// The first due time, a whole minute (RFC 3339); a whole hour where only hours are kept
    #[arg(long, value_parser = instant)]
    from: DateTime<Utc>,
    /// The due time before which it ends, likewise
    #[arg(long, value_parser = instant)]
    to: DateTime<Utc>,
    /// Only this ledger; without it every ledger that is followed and has a `partition` query
    #[arg(long)]
    ledger: Option<String>,
    /// Only this route, as channel/name; `other` is what is of no configured route
    #[arg(long)]
    route: Option<String>,
    /// Read the interval afresh, and name the notifications by which the sides differ
    #[arg(long)]
    ids: bool,
    /// Print JSON
    #[arg(long, conflicts_with = "csv")]
    json: bool,
    /// Print CSV: the accounts, or with --ids the notifications
    #[arg(long)]
    csv: bool,
    #[command(flatten)]
    config: ConfigFile,
}

/// Prints the accounts; found is what does not balance.
pub async fn run(args: ReconcileArgs) -> Result<Outcome> {
    let opened = wiring::open_store(&args.config).await?;
    let route = match args.route.as_deref() {
        Some(OTHER_ROUTE) => Some(RouteName::from_text(OTHER_ROUTE)),
        Some(name) => Some(opened.route(name)?),
        None => None,
    };
    let deadlines =
        opened.config.routes.iter().map(|route| (route.full_name(), route.deadline.get())).collect();
    let mut accounts = Vec::new();
    for (name, config, reader) in readers(&opened.config, args.ledger.as_deref())? {
        let has_route = |route: &RouteName| route.as_str() == OTHER_ROUTE || reader.routes().contains(route);
        if !route.as_ref().is_none_or(has_route) {
            continue;
        }
        let asked = Asked {
            ledger: name,
            config,
            deadlines: &deadlines,
            interval: Interval { from: args.from, until: args.to },
            route: route.as_ref(),
            with_units: args.ids,
        };
        let books = match reconcile(&asked, reader, &*opened.store).await {
            Err(BooksError::Interval(reason)) => return Err(WrongUsage(reason).into()),
            books => books?,
        };
        accounts.push(Account { ledger: name.to_owned(), interval: asked.interval, books });
    }
    if accounts.is_empty() {
        let route = route.map_or_else(String::new, |route| format!(" `{route}`"));
        return Err(WrongUsage(format!("no followed ledger has rows of the route{route}")).into());
    }
    if args.json {
        say!("{:#}", account::json(&accounts));
    } else if args.csv {
        tell!("{}", if args.ids { account::units_csv(&accounts) } else { account::csv(&accounts) });
    } else {
        tell!("{}", account::text(&accounts));
    }
    let is_balanced = accounts.iter().all(|account| account.books.is_balanced());
    // A text page never can be asked; what should have answered and did not leaves the question open.
    let mut unknown = accounts.iter().filter_map(|account| account.books.elsewhere_unknown.clone());
    if let Some(error) = unknown.find(|error| *error != ElsewhereError::NowAlone)
        && is_balanced
    {
        return Err(BooksError::Elsewhere(error).into());
    }
    Ok(if is_balanced { Outcome::Done } else { Outcome::Found })
}

type Reader<'a> = (&'a str, &'a Ledger, Arc<dyn FlowReader>);

/// The ledgers that can be reconciled; the one that was asked for has to be.
fn readers<'a>(config: &'a Config, only: Option<&str>) -> Result<Vec<Reader<'a>>> {
    wiring::install_tls();
    if let Some(name) = only
        && !config.ledgers.contains_key(name)
    {
        let known: Vec<&str> = config.ledgers.keys().map(String::as_str).collect();
        return Err(NoSuchLedger { name: name.to_owned(), known: known.join(", ") }.into());
    }
    let mut readers: Vec<Reader<'_>> = Vec::new();
    for (name, ledger) in config.ledgers.iter().filter(|(name, _)| only.is_none_or(|only| only == *name)) {
        let adapter = ledger::open(name, ledger)
            .map_err(|error| ConfigurationAtFault(format!("ledger `{name}`: {error}")))?;
        let flow = adapter.flow();
        if let Some(flow) = flow.filter(FlowReader::has_partition) {
            readers.push((name, ledger, Arc::new(flow)));
        }
    }
    if readers.is_empty() {
        let which =
            only.map_or_else(|| "no ledger".to_owned(), |name| format!("the ledger `{name}` does not"));
        let verb = if only.is_some() { "have" } else { "has" };
        let reason = format!(
            "{which} {verb} both `notifications` and `partition`: the first makes it followed, the second counts it exactly"
        );
        return Err(ConfigurationAtFault(reason).into());
    }
    Ok(readers)
}

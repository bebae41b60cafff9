//! `delivery-canary alerts suggest`: settings from what was measured.

use super::{at_fault, history};
use crate::cli::out::{say, tell};
use crate::{
    alerts::{
        backtest::Settings,
        explain::{Setting, setting},
        simulate::Random,
        suggest::{Accepted, Advice, Given, Observed, Seen, Sent, Suggested, advise, document},
    },
    cli::{
        ConfigFile, Outcome, WrongUsage,
        wiring::{self, ConfigurationAtFault, Opened},
    },
    clock,
    config::{Route, alerts::Alerts},
    domain::{canary::CanaryKind, failure_evidence::Weights, route::RouteName},
    monitor::flow::{AcceptedError, accepted_by_day},
};
use anyhow::Result;
use chrono::{DateTime, SecondsFormat, TimeDelta, Utc};
use clap::Args;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Episodes of noise that are weighed for each bound that is tried.
const EPISODES: usize = 20_000;

#[derive(Debug, Args)]
pub(super) struct SuggestArgs {
    /// Only of so many days to now; without it of all that the store has
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=4_000))]
    days: Option<u32>,
    /// Only this route, as channel/name
    #[arg(long)]
    route: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// The seed of the simulation of false pages
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    #[command(flatten)]
    config: ConfigFile,
}

/// Prints the proposals.
pub(super) async fn run(args: SuggestArgs) -> Result<Outcome> {
    let opened = wiring::open_store(&args.config).await?;
    let Some(alerts) = &opened.config.alerts else {
        let reason =
            "there is no block `alerts` in the configuration: how many false pages there may be stands there"
                .to_owned();
        return Err(ConfigurationAtFault(reason).into());
    };
    let only = args.route.as_deref().map(|name| opened.route(name)).transpose()?;
    let now = clock::now();
    let from = args.days.map_or(DateTime::UNIX_EPOCH, |days| now - TimeDelta::days(days.into()));
    let accepted = accepted(&opened, args.days.unwrap_or(400)).await?;
    let mut suggested = Vec::new();
    for route in &opened.config.routes {
        if only.as_ref().is_none_or(|only| *only == route.full_name()) {
            let seen = look(&opened, route, (from, now)).await?;
            suggested.push(of_route(&opened, alerts, route, seen, &accepted, args.seed)?);
        }
    }
    if args.json {
        say!("{:#}", shown(&suggested));
    } else {
        tell!("{}", document(&suggested));
    }
    let is_known = |one: &Suggested| one.seen.span.is_some();
    Ok(if suggested.iter().any(is_known) { Outcome::Done } else { Outcome::Undecided })
}

async fn look(opened: &Opened, route: &Route, span: (DateTime<Utc>, DateTime<Utc>)) -> Result<Seen> {
    let settings = Settings::of(&opened.config, route).map_err(|error| at_fault(&error))?;
    let name = settings.route.clone();
    let mut observed = Observed::new(settings);
    let see = |past: &crate::store::Past| {
        if let Some(standing) = past.judgements.last() {
            let sent = Sent {
                slot: past.slot,
                is_scheduled: past.kind == CanaryKind::Scheduled,
                verdict: standing.verdict,
                expected: past.expected,
                arrived_after: past.arrived_after,
            };
            observed.take(&past.location, &sent);
        }
    };
    history::read(&*opened.store, &name, span, see, |_, _| ()).await?;
    Ok(observed.end())
}

type ByRoute = BTreeMap<RouteName, Accepted>;

/// What followed ledgers had. A route whose ledger is not followed is not in it.
async fn accepted(opened: &Opened, days: u32) -> Result<ByRoute> {
    let mut all = ByRoute::new();
    for (name, _) in opened.config.ledgers.iter().filter(|(_, ledger)| ledger.notifications.is_some()) {
        let here = opened.config.routes.iter().filter(|route| route.ledger.as_ref() == Some(name));
        let routes: Vec<RouteName> = here.map(Route::full_name).collect();
        let mut known = match accepted_by_day(&*opened.store, name, &routes, days).await {
            Err(AcceptedError::Store(error)) => return Err(error.into()),
            known => known?,
        };
        all.extend(routes.into_iter().map(|route| {
            let by_day = known.remove(&route).unwrap_or_default();
            (route, Accepted { by_day })
        }));
    }
    Ok(all)
}

fn of_route(
    opened: &Opened,
    alerts: &Alerts,
    route: &Route,
    seen: Seen,
    accepted: &ByRoute,
    seed: u64,
) -> Result<Suggested> {
    let name = route.full_name();
    let setting = setting(&opened.config, opened.hash, &name).map_err(|error| at_fault(&error))?;
    let Some(setting) = setting else { return Err(WrongUsage(format!("there is no route {name}")).into()) };
    let noise =
        |weights: Weights| Setting { weights, ..setting.clone() }.noise(EPISODES, &mut Random::new(seed));
    let given = Given {
        route,
        seen: &seen,
        accepted: accepted.get(&name),
        accepted_per_day: alerts.routes.get(name.as_str()).and_then(|differs| differs.accepted_per_day),
        // What one installation may have is shared by its routes: there is one budget of sleep.
        false_pages: alerts.false_pages_a_year / opened.config.routes.len() as f64,
        noise: &noise,
    };
    let advice = advise(&given);
    Ok(Suggested { route: name, seen, advice })
}

fn shown(all: &[Suggested]) -> Value {
    let stamp = |at: DateTime<Utc>| at.to_rfc3339_opts(SecondsFormat::Millis, true);
    let advice = |advice: &Advice| {
        json!({
            "setting": advice.key,
            "current": advice.current,
            "proposed": advice.proposed,
            "is_change": advice.is_change(),
            "why": advice.why,
            "numbers": advice.numbers.iter().map(|(name, number)| ((*name).to_owned(), json!(number))).collect::<serde_json::Map<_, _>>(),
        })
    };
    let route = |one: &Suggested| {
        let incidents = one.seen.incidents.iter().map(|incident| {
            json!({
                "location": incident.location.as_str(),
                "from": stamp(incident.from),
                "until": incident.until.map(stamp),
                "failing_seconds": incident.failing_for.as_seconds_f64(),
            })
        });
        json!({
            "route": one.route.as_str(),
            "from": one.seen.span.map(|(from, _)| stamp(from)),
            "until": one.seen.span.map(|(_, until)| stamp(until)),
            "canaries": one.seen.canaries,
            "left_out": one.seen.left_out,
            "incidents": incidents.collect::<Vec<_>>(),
            "settings": one.advice.iter().map(advice).collect::<Vec<_>>(),
        })
    };
    json!({ "routes": all.iter().map(route).collect::<Vec<_>>() })
}

//! `delivery-canary alerts backtest`: which pages would have come by other settings.

use super::{
    at_fault,
    history::{self, Read},
};
use crate::cli::out::{say, tell};
use crate::{
    alerts::backtest::{Alarms, Change, Difference, Page, Settings, compare},
    cli::{
        ConfigFile, Outcome, WrongUsage,
        canary::instant,
        paused::whole_seconds,
        wiring::{self, Opened},
    },
    clock,
    config::{Route, model::PageOn, scalar::Span},
    domain::route::RouteName,
};
use anyhow::Result;
use chrono::{DateTime, TimeDelta, Utc};
use clap::{Args, ValueEnum};
use serde_json::{Value, json};
use std::fmt::Write as _;

#[derive(Debug, Args)]
pub(super) struct BacktestArgs {
    /// From when on pages are looked for (RFC 3339). What came before is weighed too, as far as the store still has it
    #[arg(long, value_parser = instant)]
    from: DateTime<Utc>,
    /// Until when (RFC 3339); now when left out
    #[arg(long, value_parser = instant)]
    to: Option<DateTime<Utc>>,
    /// Only this route, as channel/name
    #[arg(long)]
    route: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    tried: Tried,
    #[command(flatten)]
    config: ConfigFile,
}

/// What is tried in place of the configuration's settings.
#[derive(Debug, Args)]
struct Tried {
    /// Another healthy failure rate, a share of 1
    #[arg(long, value_name = "SHARE")]
    p0: Option<f64>,
    /// Another failure rate worth waking somebody for, a share of 1
    #[arg(long, value_name = "SHARE")]
    p1: Option<f64>,
    /// Another bound, in powers of ten
    #[arg(long, value_name = "POWERS")]
    bound: Option<f64>,
    /// Another time that the failing must have lasted
    #[arg(long, value_name = "DURATION")]
    sustain: Option<Span>,
    /// Another rule of locations
    #[arg(long, value_enum)]
    page_on: Option<PageOnArg>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum PageOnArg {
    /// One location is enough
    Any,
    /// More than half must fail
    Majority,
}

impl Tried {
    /// The route with them.
    fn on(&self, route: &Route) -> Result<Route, WrongUsage> {
        let mut tried = route.clone();
        let evidence = &mut tried.evidence;
        evidence.p0 = self.p0.or(evidence.p0);
        evidence.p1 = self.p1.unwrap_or(evidence.p1);
        evidence.bound = self.bound.unwrap_or(evidence.bound);
        evidence.sustain = self.sustain.unwrap_or(evidence.sustain);
        tried.page_on = match self.page_on {
            None => tried.page_on,
            Some(PageOnArg::Any) => PageOn::Any,
            Some(PageOnArg::Majority) => PageOn::Majority,
        };
        check(&tried)?;
        Ok(tried)
    }
}

/// What the configuration would refuse too.
fn check(route: &Route) -> Result<(), WrongUsage> {
    let (p0, p1, bound) = (route.healthy_failure_rate(), route.evidence.p1, route.evidence.bound);
    let name = route.full_name();
    let wrong = if !(p0 > 0.0 && p0 < 1.0) {
        format!("--p0 {p0} is no healthy failure rate; write a share above 0 and below 1, such as 0.001")
    } else if !(p1 > p0 && p1 < 1.0) {
        format!("on {name} p1 would be {p1} and p0 {p0}; --p1 must lie above p0 and below 1")
    } else if !(bound > 0.0 && bound <= 20.0) {
        format!("--bound {bound} is out of range; write powers of ten, above 0 and at most 20")
    } else if route.evidence.sustain > Span::seconds(86_400) {
        format!("--sustain {} is out of range; write at most 1d", route.evidence.sustain)
    } else {
        return Ok(());
    };
    Err(WrongUsage(wrong))
}

/// One route, looked at.
struct Looked {
    in_force: Settings,
    tried: Settings,
    read: Read,
    too_late: u32,
}

/// Everything that is to be told.
struct Told {
    from: DateTime<Utc>,
    to: DateTime<Utc>,
    routes: Vec<Looked>,
    found: Vec<Difference>,
    has_planned_work: bool,
}

/// Tells the pages by the settings in force and by those that are tried.
pub(super) async fn run(args: BacktestArgs) -> Result<Outcome> {
    in_order(args.from, args.to, clock::now())?;
    let opened = wiring::open_store(&args.config).await?;
    let now = clock::now();
    let only = args.route.as_deref().map(|name| opened.route(name)).transpose()?;
    let mut told = Told {
        from: args.from,
        to: args.to.map_or(now, |to| to.min(now)),
        routes: Vec::new(),
        found: Vec::new(),
        has_planned_work: !opened.config.maintenance.is_empty(),
    };
    let mut wished = Vec::new();
    for route in &opened.config.routes {
        if only.as_ref().is_none_or(|only| *only == route.full_name()) {
            wished.push((route, args.tried.on(route)?));
        }
    }
    for (route, tried) in wished {
        look(&opened, route, &tried, &mut told).await?;
    }
    told.found.sort_by_key(|found| found.page().map(|page| page.from));
    if args.json {
        say!("{:#}", told.json());
    } else {
        tell!("{}", told.text());
    }
    // Nothing is known of a time of which nothing is left.
    let is_known = |looked: &Looked| looked.read.begins.is_some();
    Ok(if told.routes.iter().any(is_known) { Outcome::Done } else { Outcome::Undecided })
}

fn in_order(from: DateTime<Utc>, to: Option<DateTime<Utc>>, now: DateTime<Utc>) -> Result<(), WrongUsage> {
    let from_word = whole_seconds(from);
    let wrong = match to {
        Some(to) if from >= to => format!(
            "--from {from_word} is not before --to {}, so nothing lies between them; write the earlier time as --from",
            whole_seconds(to)
        ),
        _ if from >= now => format!("--from {from_word} lies ahead; a backtest looks at what has been"),
        _ => return Ok(()),
    };
    Err(WrongUsage(wrong))
}

async fn look(opened: &Opened, route: &Route, tried: &Route, told: &mut Told) -> Result<()> {
    let in_force = Settings::of(&opened.config, route).map_err(|error| at_fault(&error))?;
    let tried = Settings::of(&opened.config, tried).map_err(|error| WrongUsage(error.to_string()))?;
    let (mut old, mut new) = (Alarms::new(in_force.clone()), Alarms::new(tried.clone()));
    // All that is left is weighed, so that the evidence at the beginning is what it was.
    let all = (DateTime::UNIX_EPOCH, told.to);
    let read = history::read(
        &*opened.store,
        &in_force.route,
        all,
        |_| (),
        |location, judged| {
            old.take(location, judged);
            new.take(location, judged);
        },
    )
    .await?;
    let too_late = old.too_late();
    let from = told.from;
    let is_in_time = |page: &Page| page.until.is_none_or(|until| until > from);
    let is_looked_at =
        |found: &Difference| [&found.in_force, &found.tried].into_iter().flatten().any(is_in_time);
    told.found.extend(compare(old.end(told.to), new.end(told.to)).into_iter().filter(is_looked_at));
    told.routes.push(Looked { in_force, tried, read, too_late });
    Ok(())
}

impl Told {
    fn count(&self, is_so: impl Fn(&Difference) -> bool) -> usize {
        self.found.iter().filter(|found| is_so(found)).count()
    }

    fn is_changed(&self) -> bool {
        self.routes.iter().any(|looked| looked.in_force != looked.tried)
    }

    /// What has to be known to judge it, a line each.
    fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        for Looked { in_force, read, too_late, .. } in &self.routes {
            let route = &in_force.route;
            match read.begins {
                None => notes.push(format!("of {route} the store has no settled canary until then: nobody can say")),
                Some(begins) if begins > self.from => notes.push(format!(
                    "the history of {route} begins at {}: what was before is not there, or retention has removed it",
                    whole_seconds(begins)
                )),
                Some(_) => {}
            }
            if *too_late > 0 {
                notes.push(format!("{too_late} judgements of {route} came so late that they are left out"));
            }
        }
        if self.is_changed() && self.routes.iter().any(|looked| looked.read.confirmations > 0) {
            notes.push(
                "the confirmations are those that were sent by the settings of that time: by others, others would have been sent"
                    .into(),
            );
        }
        if self.has_planned_work {
            notes.push("planned work is that of the configuration as it is now".into());
        }
        notes
    }

    fn text(&self) -> String {
        let mut out = String::new();
        // Writing to a string can't fail.
        let mut line = |text: String| {
            let _ = writeln!(out, "{text}");
        };
        let (old, new) =
            (self.count(|found| found.in_force.is_some()), self.count(|found| found.tried.is_some()));
        let by = |is_so: fn(Change) -> bool| self.count(|found| is_so(found.change));
        if self.is_changed() {
            line(format!(
                "{old} by the settings in force, {new} by those that are tried: {} new, {} gone, {} earlier, {} later",
                by(|change| change == Change::New),
                by(|change| change == Change::Gone),
                by(|change| matches!(change, Change::Earlier(_))),
                by(|change| matches!(change, Change::Later(_)))
            ));
        } else {
            line(format!("{old} by the settings in force; no other is tried"));
        }
        line(format!("looked at  {} to {}", whole_seconds(self.from), whole_seconds(self.to)));
        for looked in &self.routes {
            line(String::new());
            let Looked { in_force, tried, read, .. } = looked;
            let places: Vec<&str> = read.canaries.keys().map(|location| location.as_str()).collect();
            let at = if places.is_empty() { String::new() } else { format!(", at {}", places.join(", ")) };
            line(format!(
                "{}: {} canaries, {} of them confirmations{at}",
                in_force.route,
                read.all(),
                read.confirmations
            ));
            line(format!("  in force   {}", shown(in_force)));
            if in_force != tried {
                line(format!("  tried      {}", shown(tried)));
            }
            for found in self.found.iter().filter(|found| is_of(found, &in_force.route)) {
                self.page_text(found).into_iter().for_each(&mut line);
            }
        }
        line(String::new());
        self.notes().into_iter().for_each(&mut line);
        line("times are of the evidence and its minute of waiting; scrape, evaluation and Alertmanager come on top".into());
        out
    }

    fn page_text(&self, found: &Difference) -> Vec<String> {
        let Some(page) = found.page() else { return Vec::new() };
        let what = match found.change {
            _ if !self.is_changed() => String::new(),
            Change::Earlier(by) | Change::Later(by) => format!(": {} by {}", found.change.word(), span(by)),
            change => format!(": {}", change.word()),
        };
        let mut lines = vec![format!("  {} {}{what}", page.severity.word(), page.alert)];
        let mut side = |name: &str, page: Option<&Page>| {
            lines.push(format!("    {name:9}{}", page.map_or_else(|| "none".into(), times)));
        };
        side("in force", found.in_force.as_ref());
        if self.is_changed() {
            side("tried", found.tried.as_ref());
        }
        lines
    }

    fn json(&self) -> Value {
        let page = |page: Option<&Page>| {
            page.map(|page| json!({ "from": stamp(page.from), "until": page.until.map(stamp) }))
        };
        let pages = self.found.iter().filter_map(|found| {
            let about = found.page()?;
            Some(json!({
                "route": about.route.as_str(),
                "alert": about.alert,
                "told": about.severity.word(),
                "change": found.change.word(),
                "by_seconds": found.change.by().map(|by| by.as_seconds_f64()),
                "in_force": page(found.in_force.as_ref()),
                "tried": page(found.tried.as_ref()),
            }))
        });
        let routes = self.routes.iter().map(|looked| {
            json!({
                "route": looked.in_force.route.as_str(),
                "history_begins": looked.read.begins.map(stamp),
                "canaries": looked.read.all(),
                "confirmations": looked.read.confirmations,
                "locations": looked.read.canaries.keys().map(|location| location.as_str()).collect::<Vec<_>>(),
                "too_late": looked.too_late,
                "in_force": settings_json(&looked.in_force),
                "tried": settings_json(&looked.tried),
            })
        });
        json!({
            "from": stamp(self.from),
            "to": stamp(self.to),
            "routes": routes.collect::<Vec<_>>(),
            "pages": pages.collect::<Vec<_>>(),
            "notes": self.notes(),
        })
    }
}

fn is_of(found: &Difference, route: &RouteName) -> bool {
    found.page().is_some_and(|page| page.route == *route)
}

const fn page_on(settings: &Settings) -> &'static str {
    match settings.page_on {
        PageOn::Any => "any",
        PageOn::Majority => "majority",
    }
}

fn shown(settings: &Settings) -> String {
    format!("{}, page_on {}", settings.weights, page_on(settings))
}

fn settings_json(settings: &Settings) -> Value {
    let weights = &settings.weights;
    json!({
        "p0": weights.p0,
        "p1": weights.p1,
        "bound": weights.bound,
        "sustain_seconds": weights.sustain.as_seconds_f64(),
        "page_on": page_on(settings),
    })
}

fn times(page: &Page) -> String {
    let from = whole_seconds(page.from);
    match page.until {
        Some(until) => format!("{from} to {} ({})", whole_seconds(until), span(until - page.from)),
        None => format!("{from}, and still at the end"),
    }
}

/// To the second.
fn span(time: TimeDelta) -> Span {
    Span::seconds(u64::try_from(time.num_seconds()).unwrap_or(0))
}

fn stamp(at: DateTime<Utc>) -> String {
    at.to_rfc3339_opts(chrono::SecondsFormat::Millis, true)
}

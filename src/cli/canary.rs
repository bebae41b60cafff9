//! `canary list`, `show`, `send` and `erase`.

use super::{
    ConfigFile, Outcome, WrongUsage,
    explain::{self, UnderWay},
    paused::Ending,
    send, wiring,
};
use crate::cli::out::{say, tell};
use crate::{
    clock,
    domain::{
        disagreement::Disagreement,
        disclosure,
        flow::key::KeptUnder,
        route::{CanaryId, NotificationId},
        verdict::{Class, Verdict},
    },
    store::{ErasureTarget, Filter, Operation, Store, Stored, follower::FollowedErasure},
};
use anyhow::Result;
use chrono::{DateTime, SecondsFormat, Utc};
use clap::{Args, Subcommand};
use std::time::Duration;

/// Canaries.
#[derive(Debug, Args)]
pub struct CanaryCommand {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// List canaries, the newest first
    List(ListArgs),
    /// Show one canary: the timeline of its three views, and why this verdict
    Show(ShowArgs),
    /// Send one now, wait for its verdict, and explain it
    Send(SendArgs),
    /// Erase what identifies a canary, or with --notification anybody's notification; verdicts and counts stay
    Erase(EraseArgs),
}

#[derive(Debug, Args)]
struct ListArgs {
    /// Only of this route, as channel/name
    #[arg(long)]
    route: Option<String>,
    /// Only with this verdict
    #[arg(long, value_parser = verdict)]
    verdict: Option<Verdict>,
    /// Only where views contradict each other: in this way, or without KIND in any. It can be given again
    #[arg(long, value_name = "KIND", num_args = 0..=1, default_missing_value = ANY, value_parser = contradiction)]
    contradiction: Vec<Contradiction>,
    /// Only with a slot at or after this time (RFC 3339)
    #[arg(long, value_parser = instant)]
    from: Option<DateTime<Utc>>,
    /// Only with a slot before this time (RFC 3339)
    #[arg(long, value_parser = instant)]
    until: Option<DateTime<Utc>>,
    /// At most so many
    #[arg(long, default_value_t = 20, value_parser = at_least_one, allow_negative_numbers = true)]
    limit: u32,
    /// Print JSON, an object a line
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    config: ConfigFile,
}

#[derive(Debug, Args)]
struct ShowArgs {
    /// The canary's id, or with --notification the id under which the service accepted it
    id: String,
    /// The id is a notification id
    #[arg(long)]
    notification: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    config: ConfigFile,
}

#[derive(Debug, Args)]
struct SendArgs {
    /// The route, as channel/name
    route: String,
    /// Who sends it, for the record
    #[arg(long, default_value = "operator")]
    owner: String,
    /// Do not wait for the verdict
    #[arg(long)]
    no_wait: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    config: ConfigFile,
}

#[derive(Debug, Args)]
struct EraseArgs {
    /// The canary's id, or with --notification the id under which the service accepted it
    id: String,
    /// The id is a notification id
    #[arg(long)]
    notification: bool,
    /// Who erases it, for the record
    #[arg(long)]
    owner: String,
    #[command(flatten)]
    config: ConfigFile,
}

/// Runs the command.
pub async fn run(command: CanaryCommand) -> Result<Outcome> {
    match command.what {
        What::List(args) => list(args).await,
        What::Show(args) => show(args).await,
        What::Send(args) => send_one(args).await,
        What::Erase(args) => erase(args).await,
    }
}

async fn list(args: ListArgs) -> Result<Outcome> {
    if let (Some(from), Some(until)) = (args.from, args.until) {
        in_order(from, until)?;
    }
    let opened = wiring::open_store(&args.config).await?;
    let route = args.route.as_deref().map(|name| opened.route(name)).transpose()?;
    let filter = Filter {
        route,
        notification: None,
        verdict: args.verdict,
        disagreements: args.contradiction.iter().flat_map(Contradiction::kinds).collect(),
        from: args.from,
        until: args.until,
        limit: args.limit,
    };
    let (found, now) = (opened.store.list(&filter).await?, clock::now());
    if args.json {
        for stored in &found {
            say!("{}", explain::summary(stored, now));
        }
        return Ok(Outcome::Done);
    }
    say!(
        "{:<36}  {:<24}  {:<12}  {:<20}  {:<12}  contradictions",
        "canary",
        "route",
        "kind",
        "slot",
        "verdict"
    );
    for stored in &found {
        say!("{}", line(stored, now));
    }
    if found.is_empty() {
        say!("none");
    }
    Ok(Outcome::Done)
}

fn line(stored: &Stored, now: DateTime<Utc>) -> String {
    let plan = &stored.canary.plan;
    let slot = plan.slot.format("%Y-%m-%d %H:%M:%SZ");
    let verdict = match (stored.canary.standing(), UnderWay::of(&stored.canary, now)) {
        (Some(standing), _) => standing.verdict.word().to_owned(),
        (None, under_way) => under_way.unwrap_or(UnderWay::OnItsWay).told(&stored.canary, now),
    };
    let found: Vec<&str> = stored.canary.disagreements.iter().map(|kind| kind.word()).collect();
    let found = if found.is_empty() { "-".to_owned() } else { found.join(", ") };
    let erased = if stored.erased { "  (erased)" } else { "" };
    format!(
        "{}  {:<24}  {:<12}  {slot}  {verdict:<12}  {found}{erased}",
        plan.canary_id,
        plan.route,
        plan.kind.word()
    )
}

async fn show(args: ShowArgs) -> Result<Outcome> {
    let asked = if args.notification { None } else { Some(parse_id(&args.id)?) };
    let opened = wiring::open_store(&args.config).await?;
    let ids = match asked {
        Some(id) => vec![id],
        None => accepted_as(&*opened.store, &args.id).await?,
    };
    let (mut shown, now) = (0, clock::now());
    for id in ids {
        let Some((stored, events)) = opened.store.canary(id).await? else { continue };
        if args.json {
            say!("{}", explain::json(&stored, &events, now));
        } else {
            let gap = if shown > 0 { "\n" } else { "" };
            tell!("{gap}{}", explain::text(&stored, &events, now));
        }
        shown += 1;
    }
    if shown > 0 {
        return Ok(Outcome::Done);
    }
    let id = disclosure::shown(&args.id);
    if args.notification {
        eprintln!("no canary was accepted as {id}; it may be a customer's, be erased or be beyond retention");
    } else {
        eprintln!(
            "no canary {id}; it may be beyond retention. `canary list` shows what there is; a notification id is looked for with \
             --notification"
        );
    }
    Ok(Outcome::NotFound)
}

/// Most canaries of one notification id that are shown. One is usual; more is a finding.
const MOST_SHOWN: u32 = 20;

/// The canaries that the service accepted under this id, the newest first.
async fn accepted_as(store: &dyn Store, id: &str) -> Result<Vec<CanaryId>> {
    let mut found = Vec::new();
    for id in spellings(id) {
        let notification = Some(NotificationId::from_text(id));
        let filter = Filter { notification, limit: MOST_SHOWN, ..Filter::default() };
        found.extend(store.list(&filter).await?.iter().map(|stored| stored.canary.plan.canary_id));
    }
    found.dedup();
    Ok(found)
}

/// An id as it is given, and as a database writes it: a UUID in small letters.
fn spellings(id: &str) -> impl Iterator<Item = String> + use<> {
    let as_uuid = uuid::Uuid::try_parse(id).ok().map(|uuid| uuid.to_string());
    let other = as_uuid.filter(|uuid| uuid != id);
    [Some(id.to_owned()), other].into_iter().flatten()
}

async fn send_one(args: SendArgs) -> Result<Outcome> {
    let monitor = wiring::hand(&args.config).await?;
    let route = monitor.route(&args.route)?;
    let ending = Ending { owner: &args.owner, config: &args.config };
    let sent = send::manual(&monitor, &route, &ending).await?;
    eprintln!("sent canary {sent} on {route}");
    // It has been sent: that the store can't tell now must not look as if it hadn't.
    if send::nobody_serves(&monitor, &route).await.unwrap_or(false) {
        eprintln!(
            "warning: nobody seems to serve on this store, so no arrival can be taken and nobody will follow this canary; \
             start `delivery-canary serve` on the same configuration"
        );
    }
    if send::serves_another(&monitor).await.unwrap_or(None) == Some(true) {
        eprintln!(
            "warning: the process that serves has another configuration in force than {} (it was refused, is not loaded yet, or is \
             another file): this canary was sent by this file's",
            args.config.path.display()
        );
    }
    if args.no_wait {
        say!("{sent}");
        return Ok(Outcome::Done);
    }
    let (stored, events) = send::until_settled(&monitor, sent, Duration::from_millis(500)).await?;
    let now = clock::now();
    if args.json {
        say!("{}", explain::json(&stored, &events, now));
    } else {
        tell!("{}", explain::text(&stored, &events, now));
    }
    Ok(match stored.canary.standing().map(|judgement| judgement.class) {
        Some(Class::Good) => Outcome::Done,
        Some(Class::Bad) => Outcome::Found,
        Some(Class::Outside | Class::Unknown) | None => Outcome::Undecided,
    })
}

async fn erase(args: EraseArgs) -> Result<Outcome> {
    let target = if args.notification {
        ErasureTarget::Notification(NotificationId::from_text(args.id.clone()))
    } else {
        ErasureTarget::Canary(parse_id(&args.id)?)
    };
    let opened = wiring::open_store(&args.config).await?;
    let mut notifications = vec![args.id.clone()];
    if let ErasureTarget::Canary(id) = &target {
        let found = opened.store.canary(*id).await?;
        if found.as_ref().is_some_and(|(stored, _)| stored.erased) {
            say!("it was erased before; its verdict is in the sums");
            return Ok(Outcome::Done);
        }
        let ids = found.iter().flat_map(|(stored, _)| stored.canary.notification_ids());
        notifications = ids.map(|id| id.as_str().to_owned()).collect();
    }
    // Before the canary: its notification ids go with it, and could not be found a second time.
    let followed = erase_followed(&*opened.store, &notifications).await?;
    // The record of the erasure must not bring the erased id back.
    let on = if args.notification { "a notification".to_owned() } else { args.id.clone() };
    let operation = Operation { at: clock::now(), who: args.owner, what: "erase".into(), on };
    let is_canary = opened.store.erase(&target, &operation).await?;
    if is_canary {
        say!("erased; the verdict stays in the sums");
    }
    if followed > 0 {
        say!(
            "erased what followers and audits of ledgers kept of it: {followed} rows; where it was pending, it is in no figure any more"
        );
    }
    if is_canary || followed > 0 {
        return Ok(Outcome::Done);
    }
    let hint = if args.notification {
        "; if it was erased before, this id went with it. Followers of ledgers leave it alone from now on"
    } else {
        "; if it is a notification id, write --notification"
    };
    eprintln!("nothing is kept under that id{hint}");
    Ok(Outcome::NotFound)
}

/// Erases notifications from what followers of ledgers keep, and has them left alone. Answers how many rows went.
async fn erase_followed(store: &dyn Store, notifications: &[String]) -> Result<u64> {
    let mut gone = 0;
    for id in notifications {
        for id in spellings(id) {
            let KeptUnder { keys, prefixes } = KeptUnder::of(&id);
            let which = FollowedErasure { notification_id: id, keys, prefixes };
            gone += store.erase_followed(&which, clock::now()).await?;
        }
    }
    Ok(gone)
}

fn parse_id(text: &str) -> Result<CanaryId, WrongUsage> {
    let wrong = |_| {
        WrongUsage(format!(
            "`{}` is no canary id, which looks like 0192f1c2-7f4e-7abc-8def-0123456789ab; for a notification id write --notification",
            disclosure::shown(text)
        ))
    };
    text.parse().map(CanaryId).map_err(wrong)
}

/// Refuses an interval that holds nothing: an empty list would look as if nothing had happened.
fn in_order(from: DateTime<Utc>, until: DateTime<Utc>) -> Result<(), WrongUsage> {
    if from < until {
        return Ok(());
    }
    let stamp = |at: DateTime<Utc>| at.to_rfc3339_opts(SecondsFormat::AutoSi, true);
    Err(WrongUsage(format!(
        "--from {} is not before --until {}, so nothing lies between them; write the earlier time as --from",
        stamp(from),
        stamp(until)
    )))
}

fn verdict(word: &str) -> Result<Verdict, String> {
    let known = || format!("write one of {}", Verdict::ALL.map(Verdict::word).join(", "));
    Verdict::from_word(word).ok_or_else(known)
}

/// What stands for every kind of contradiction.
const ANY: &str = "any";

/// The kinds of contradiction that are asked for.
#[derive(Clone, Copy, Debug)]
enum Contradiction {
    Any,
    Of(Disagreement),
}

impl Contradiction {
    fn kinds(&self) -> Vec<Disagreement> {
        match self {
            Self::Any => Disagreement::ALL.into(),
            Self::Of(kind) => vec![*kind],
        }
    }
}

fn contradiction(word: &str) -> Result<Contradiction, String> {
    if word == ANY {
        return Ok(Contradiction::Any);
    }
    let known = || format!("write {ANY}, or one of {}", Disagreement::ALL.map(Disagreement::word).join(", "));
    Disagreement::from_word(word).map(Contradiction::Of).ok_or_else(known)
}

pub(super) fn instant(text: &str) -> Result<DateTime<Utc>, String> {
    let wrong = |_| "write a time with its offset, such as 2026-11-29T10:00:00Z or 2026-11-29T11:00:00+01:00";
    Ok(DateTime::parse_from_rfc3339(text.trim()).map_err(wrong)?.to_utc())
}

fn at_least_one(text: &str) -> Result<u32, String> {
    match text.parse() {
        Ok(0) | Err(_) => Err(format!("write a whole number from 1 to {}, such as 20", u32::MAX)),
        Ok(limit) => Ok(limit),
    }
}

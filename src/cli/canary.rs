//! `canary list`, `show`, `send` and `erase`.

use super::{
    ConfigFile, Outcome, WrongUsage, explain,
    listing::{self, ListArgs},
    paused::Ending,
    send, wiring,
};
use crate::cli::out::{say, tell};
use crate::{
    clock,
    domain::{
        disclosure,
        flow::key::KeptUnder,
        route::{CanaryId, NotificationId},
        verdict::Class,
    },
    store::{ErasureTarget, Filter, Operation, Store, follower::FollowedErasure},
};
use anyhow::Result;
use chrono::{DateTime, Utc};
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
    #[arg(long)]
    owner: Option<String>,
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
        What::List(args) => listing::run(args).await,
        What::Show(args) => show(args).await,
        What::Send(args) => send_one(args).await,
        What::Erase(args) => erase(args).await,
    }
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
    let ending = Ending { owner: args.owner.as_deref(), config: &args.config };
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

pub(super) fn instant(text: &str) -> Result<DateTime<Utc>, String> {
    let wrong = |_| "write a time with its offset, such as 2026-11-29T10:00:00Z or 2026-11-29T11:00:00+01:00";
    Ok(DateTime::parse_from_rfc3339(text.trim()).map_err(wrong)?.to_utc())
}

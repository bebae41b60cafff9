//! A canary by hand: planned, submitted and followed like any other.

use super::{explain::Written, wiring::Hand};
use crate::{
    config::{model::StoreConfig, receipt::Receiver},
    domain::{
        canary::CanaryKind,
        route::{CanaryId, RouteName},
    },
    monitor::{follower, planner, submitter::Submissions},
    store::{self, Operation, Planned, Stored},
};
use anyhow::{Context, Result, bail};
use chrono::{SecondsFormat, SubsecRound, TimeDelta, Utc};
use std::{sync::Arc, time::Duration};
use tokio_util::sync::CancellationToken;

/// Sends one canary now.
pub async fn manual(hand: &Hand, route: &RouteName, owner: &str) -> Result<CanaryId> {
    let shared = &hand.shared;
    let now = Utc::now();
    shared.pauses.store(Arc::new(shared.store.pauses(now).await?));
    let active = shared.active.load_full();
    let route = active.routes.get(route).context("the route was there a moment ago")?;
    let request = planner::plan(shared, route, CanaryKind::Manual, now.trunc_subsecs(3), None, now);
    let lease = planner::lease(shared, planner::longest_submission(route, shared, CanaryKind::Manual), now);
    let answer = shared.store.plan(std::slice::from_ref(&request), &lease).await?;
    match answer.first() {
        Some(Planned::Ours) => {}
        Some(Planned::Paused) => bail!("{} is paused: `resume` ends the pause", route.name),
        Some(Planned::CapReached) => bail!(
            "the cap of {} canaries an hour is reached on {}; it counts all kinds",
            route.config.hourly_cap,
            route.name
        ),
        Some(Planned::Taken) | None => {
            bail!("another canary was sent by hand in the same millisecond; send again")
        }
    }
    let on = request.plan.canary_id.to_string();
    shared.store.note(&Operation { at: now, who: owner.to_owned(), what: "send".into(), on }).await?;
    let id = request.plan.canary_id;
    let submissions = Submissions::new(Arc::clone(shared), CancellationToken::new());
    submissions.submit(Arc::clone(route), request.plan);
    submissions.drained().await;
    Ok(id)
}

/// Whether no process seems to serve on the store. On an SQLite file the lock tells; elsewhere the messages to ourselves do, which
/// keep arriving where somebody serves.
pub async fn nobody_serves(hand: &Hand, route: &RouteName) -> Result<bool> {
    let active = hand.shared.active.load_full();
    if let StoreConfig::Sqlite(sqlite) = &active.config.store {
        return Ok(store::is_served(sqlite) == Some(false));
    }
    let receipt = active.routes.get(route).and_then(|route| route.config.receipt.as_ref());
    let Some((receipt, Some(Receiver::Webhook(webhook)))) =
        receipt.map(|receipt| (receipt, active.config.receivers.get(&receipt.receiver)))
    else {
        return Ok(false);
    };
    let now = Utc::now();
    let since = now - webhook.self_receipt_every.delta() * 3 - TimeDelta::seconds(10);
    Ok(hand.shared.store.sink_proof(&receipt.receiver, since, now).await?.is_none())
}

/// Follows a canary until it has a verdict. The receipt comes to the monitor that serves; this only looks.
pub async fn until_settled(hand: &Hand, id: CanaryId, every: Duration) -> Result<(Stored, Vec<Written>)> {
    let mut last_seen = String::new();
    loop {
        follower::pass(&hand.shared, Utc::now()).await?;
        let found = hand.shared.store.canary(id).await?.context("the canary is gone from the store")?;
        if found.0.canary.standing().is_some() {
            return Ok(found);
        }
        let seen = found.1.last().map_or_else(String::new, |(_, event)| super::explain::says(event));
        if seen != last_seen {
            let by = found.0.canary.settles_at().to_rfc3339_opts(SecondsFormat::Secs, true);
            eprintln!("{seen}; its verdict is due by {by}");
            last_seen = seen;
        }
        // A canary always has a verdict soon after its settlement: only a store that stands still does not.
        if Utc::now() > found.0.canary.settles_at() + TimeDelta::seconds(60) {
            bail!("no verdict a minute after it was due; last seen: {last_seen}");
        }
        tokio::time::sleep(every).await;
    }
}

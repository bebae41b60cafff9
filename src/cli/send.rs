//! A canary by hand: planned, submitted and followed like any other.

use super::{
    explain::Written,
    paused::{self, Ending},
    wiring::Hand,
};
use crate::{
    clock,
    config::model::StoreConfig,
    domain::{
        canary::CanaryKind,
        route::{CanaryId, RouteName},
        schedule::Schedule,
    },
    monitor::{planner, reloader, submitter::Submissions},
    store::{self, Operation, Planned, Stored},
};
use anyhow::{Context, Result};
use chrono::{DateTime, DurationRound, SecondsFormat, SubsecRound, TimeDelta, Utc};
use std::{sync::Arc, time::Duration};
use tokio_util::sync::CancellationToken;

/// How far back the operators' record is looked through for the configuration in force.
const LOOKED_THROUGH: u32 = 10_000;

/// It can't be sent now.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct NotNow(pub String);

/// Who sends a canary, where nobody is named.
const OPERATOR: &str = "operator";

/// What became of a canary can't be said.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct NobodyCanSay(pub String);

/// Sends one canary now. `ending` is how whoever sends it would end a pause that is in the way.
pub async fn manual(hand: &Hand, route: &RouteName, ending: &Ending<'_>) -> Result<CanaryId> {
    let shared = &hand.shared;
    let now = clock::now();
    shared.pauses.store(Arc::new(shared.store.pauses(now).await?));
    let active = shared.active.load_full();
    let route = active.routes.get(route).context("the route was there a moment ago")?;
    let mut request = planner::plan(shared, route, CanaryKind::Manual, now.trunc_subsecs(3), None, now);
    // The schedule has the first right to the cap: what is to come in this clock hour is left to it.
    request.hourly_cap = request.hourly_cap.saturating_sub(still_to_come(&route.scheduled().schedule, now));
    // Nobody holds it again meanwhile: it is held for all its submissions.
    let lease = planner::lease(shared, planner::longest_submission(route, shared, CanaryKind::Manual), now);
    let answer = shared.store.plan(std::slice::from_ref(&request), &lease).await?;
    match answer.first() {
        Some(Planned::Ours) => {}
        Some(Planned::Paused) => {
            let pauses = shared.store.pauses(now).await?;
            return Err(NotNow(paused::in_the_way(&pauses, &route.name, ending)).into());
        }
        Some(Planned::CapReached) => {
            let reason = format!(
                "the cap of {} canaries a clock hour (UTC) on {} leaves no room beside its schedule; it counts all kinds",
                route.config.hourly_cap, route.name
            );
            return Err(NotNow(reason).into());
        }
        Some(Planned::Taken) | None => {
            return Err(
                NotNow("another canary was sent by hand in the same millisecond; send again".into()).into()
            );
        }
    }
    let on = request.plan.canary_id.to_string();
    let who = ending.owner.unwrap_or(OPERATOR).to_owned();
    shared.store.note(&Operation { at: now, who, what: "send".into(), on }).await?;
    let id = request.plan.canary_id;
    let submissions = Submissions::new(Arc::clone(shared), CancellationToken::new());
    submissions.submit(Arc::clone(route), request.plan);
    submissions.drained().await;
    Ok(id)
}

/// Whether the process that serves at this place has another configuration in force than the file that was read here; nothing where
/// none has said which.
pub async fn serves_another(hand: &Hand) -> Result<Option<bool>> {
    let shared = &hand.shared;
    let mine = reloader::in_force(&shared.location, shared.active.load().hash);
    let place = format!("{} ", shared.location);
    let known = shared.store.operations(LOOKED_THROUGH).await?;
    let newest = known.into_iter().find(|done| {
        [reloader::SERVE, reloader::RELOAD].contains(&done.what.as_str()) && done.on.starts_with(&place)
    });
    Ok(newest.map(|done| done.on != mine))
}

/// How many slots of a schedule are still to come in the clock hour.
fn still_to_come(schedule: &Schedule, now: DateTime<Utc>) -> u32 {
    let Ok(hour) = now.duration_trunc(TimeDelta::hours(1)) else { return 0 };
    let last = hour + TimeDelta::hours(1) - TimeDelta::milliseconds(1);
    u32::try_from(schedule.count_between(now, last).slots).unwrap_or(u32::MAX)
}

/// Whether no process seems to serve on the store. On an SQLite file the lock tells; elsewhere the messages to ourselves do, which
/// keep arriving where somebody serves.
pub async fn nobody_serves(hand: &Hand, route: &RouteName) -> Result<bool> {
    let active = hand.shared.active.load_full();
    if let StoreConfig::Sqlite(sqlite) = &active.config.store {
        return Ok(store::is_served(sqlite) == Some(false));
    }
    let receipt = active.routes.get(route).and_then(|route| route.config.receipt.as_ref());
    let Some(sink) = receipt.and_then(|receipt| active.adapters.sinks.get(&receipt.receiver)) else {
        return Ok(false);
    };
    let (now, every) = (clock::now(), sink.prove_every());
    let since = now - TimeDelta::from_std(every * 3)? - TimeDelta::seconds(10);
    Ok(hand.shared.store.sink_proof(sink.way(), since, now).await?.is_none())
}

/// Watches a canary until it has a verdict. The monitor that serves takes its receipt and gives the verdict, by the configuration that
/// is in force there: this only looks.
pub async fn until_settled(hand: &Hand, id: CanaryId, every: Duration) -> Result<(Stored, Vec<Written>)> {
    let mut last_seen = String::new();
    loop {
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
        // A canary always has a verdict soon after its settlement, where somebody serves.
        if clock::now() > found.0.canary.settles_at() + TimeDelta::seconds(60) {
            let reason = format!(
                "no verdict a minute after it was due: the process that serves on this store gives it, and none does or it stands \
                 still; last seen: {last_seen}"
            );
            return Err(NobodyCanSay(reason).into());
        }
        tokio::time::sleep(every).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_schedule_keeps_what_it_needs_of_the_hour() {
        let schedule = Schedule::parse("*/10 * * * *", "UTC").expect("a schedule");
        for (now, expected) in
            [("10:00:00", 5), ("10:09:59", 5), ("10:10:00", 4), ("10:50:00", 0), ("10:59:59", 0)]
        {
            let now = format!("2026-11-30T{now}Z").parse().expect("an instant");
            assert_eq!(still_to_come(&schedule, now), expected, "{now}");
        }
    }
}

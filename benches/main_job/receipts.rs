//! Receipts per second: a bare handler, the webhook receiver without its store, and the whole monitor.

use crate::{
    load::{self, AT_A_TIME},
    monitor::{LOCATION, Monitor, SECRET, Setting, WEBHOOK, name},
    process::{self, Running},
    table::{self, number},
};
use anyhow::{Context, Result};
use chrono::{DateTime, TimeDelta, Utc};
use delivery_canary::{
    config::scalar::Secret,
    domain::{
        canary::{CanaryKind, Event, Plan},
        evidence::{Submission, SubmissionResult},
        route::{CanaryId, IdempotencyKey, Location, NotificationId, RouteName},
        traceparent::traceparent,
        verdict::ExpectedEnd,
    },
    receipt::token::TokenSigner,
    store::{Append, Lease, PlanRequest, Store},
};
use std::{net::SocketAddr, time::Duration};

/// Canaries that wait for their receipt: more than can arrive in the time.
const WAITING: usize = 30_000;

/// Canaries written in one call.
const AT_ONCE: usize = 1_000;

struct Figure {
    what: &'static str,
    a_second: f64,
    cpu: Duration,
}

/// Measures the three.
pub async fn run() -> Result<()> {
    let route = RouteName::from_text(format!("webhook/{}", name(0)));
    let signer = TokenSigner::new(&[Secret::new(SECRET)])?;
    let now = Utc::now();
    let ids: Vec<CanaryId> = (0..WAITING).map(|_| CanaryId(uuid::Uuid::now_v7())).collect();
    let paths: Vec<String> = ids
        .iter()
        .map(|id| format!("/receipts/{}", signer.issue(*id, &route, now + TimeDelta::hours(1))))
        .collect();

    let mut figures = Vec::new();
    for (what, role) in [("bare axum handler", "bare"), ("receiver, keeping nothing", "receiver")] {
        let (process, address) = process::role(role)?;
        figures.push(measure(what, &process, address, paths.clone(), true).await?);
    }
    let mut monitor = Monitor::configure(&Setting {
        routes: 1,
        every: "1h",
        hourly_cap: 1_000,
        deadline: "10m",
        // Nothing is sent there in this time.
        target: SocketAddr::from(([127, 0, 0, 1], 9)),
        total_timeout: "10s",
        ledger: None,
    })?;
    plan(&*monitor.store().await?, &route, &ids, now).await?;
    monitor.start().await?;
    let address = monitor.receipts;
    figures.push(measure("monitor, durable and judged", monitor.process()?, address, paths, false).await?);
    let base = (figures[0].a_second, figures[0].cpu.as_secs_f64());
    let row = |figure: &Figure| {
        vec![
            figure.what.to_owned(),
            format!("{:.0}", figure.a_second),
            format!("{:.2}", figure.a_second / base.0),
            format!("{:.0} µs", figure.cpu.as_secs_f64() * 1e6),
            format!("{:.1}", figure.cpu.as_secs_f64() / base.1),
        ]
    };
    table::print(
        &["", "receipts/s", "ratio", "CPU each", "ratio"],
        &figures.iter().map(row).collect::<Vec<_>>(),
    );
    println!("  {AT_A_TIME} senders at a time, a connection each receipt");
    Ok(())
}

/// Posts receipts; the same ones again where that is the same to the receiver.
async fn measure(
    what: &'static str,
    process: &Running,
    address: SocketAddr,
    paths: Vec<String>,
    again: bool,
) -> Result<Figure> {
    let before = process.cpu()?;
    let paths = std::sync::Arc::new(paths);
    let (done, took) = load::repeat(move |number| {
        let paths = std::sync::Arc::clone(&paths);
        async move {
            let place = if again { number % paths.len() } else { number };
            let Some(path) = paths.get(place) else { return Ok(false) };
            load::ok(load::post(address, path, WEBHOOK).await?)?;
            Ok(true)
        }
    })
    .await?;
    let cpu = (process.cpu()? - before).div_f64(number(done.max(1)));
    Ok(Figure { what, a_second: number(done) / took.as_secs_f64(), cpu })
}

/// Writes canaries that were accepted and wait for their receipt.
async fn plan(store: &dyn Store, route: &RouteName, ids: &[CanaryId], now: DateTime<Utc>) -> Result<()> {
    let location = Location::from_text(LOCATION);
    let lease = Lease { owner: "bench".into(), until: now + TimeDelta::hours(1) };
    for (chunk, ids) in ids.chunks(AT_ONCE).enumerate() {
        let wishes = ids.iter().enumerate().map(|(place, id)| {
            let back = i64::try_from(chunk * AT_ONCE + place).context("more canaries than milliseconds")?;
            let slot = now - TimeDelta::milliseconds(back);
            let plan = Plan {
                canary_id: *id,
                key: IdempotencyKey::derive(route, &location, CanaryKind::Manual, slot),
                route: route.clone(),
                location: location.clone(),
                kind: CanaryKind::Manual,
                slot,
                planned_at: now,
                deadline: TimeDelta::minutes(10),
                settle: TimeDelta::minutes(1),
                follow_for: TimeDelta::days(1),
                ledger_overlap: TimeDelta::zero(),
                expected_end: ExpectedEnd::Delivered,
                has_ledger: false,
                has_sink: true,
                traceparent: traceparent(*id),
                parent: None,
            };
            Ok(PlanRequest { plan, hourly_cap: 1_000_000, next_look: now + TimeDelta::hours(1) })
        });
        store.plan(&wishes.collect::<Result<Vec<_>>>()?, &lease).await?;
        let appends = ids.iter().map(|id| {
            let result = SubmissionResult::Accepted {
                notification_id: Some(NotificationId::from_text(id.to_string())),
            };
            let submission = Submission {
                way: None,
                ledger: None,
                started_at: now,
                ended_at: now,
                status: Some(201),
                result,
            };
            Append {
                canary_id: *id,
                events: vec![Event::Submitted(submission)],
                look_by: None,
                release: true,
            }
        });
        store.append(&appends.collect::<Vec<_>>()).await?;
    }
    Ok(())
}

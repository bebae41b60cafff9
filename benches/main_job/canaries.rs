//! Canaries per second, and processor time per canary, through a target on loopback.

use crate::{
    load::{self, SPAN, client, client_without_pool},
    monitor::{BODY, Monitor, Setting},
    process,
    table::{self, number},
};
use anyhow::{Result, bail};
use axum::{Router, extract::State, routing::post};
use chrono::{TimeDelta, Utc};
use delivery_canary::domain::{canary::Judgement, verdict::Verdict};
use std::{
    net::{Ipv4Addr, SocketAddr},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};
use tokio::net::TcpListener;

/// Offered canaries a second: that many routes with a slot each second.
const OFFERED: [usize; 5] = [50, 200, 400, 800, 1_600];

struct Figure {
    what: String,
    a_second: f64,
    cpu: Duration,
    target_cpu: Duration,
    missed: String,
}

/// Measures the bare loops, then the monitor under growing load.
pub async fn run() -> Result<()> {
    let mut figures = vec![
        bare("bare reqwest loop, connections used again", client(Duration::from_secs(10))?).await?,
        bare("bare reqwest loop, a connection each", client_without_pool(Duration::from_secs(10))?).await?,
    ];
    for offered in OFFERED {
        figures.push(monitored(offered).await?);
    }
    let base = figures[1].cpu.as_secs_f64();
    let row = |figure: &Figure| {
        vec![
            figure.what.clone(),
            format!("{:.0}", figure.a_second),
            format!("{:.2} ms", figure.cpu.as_secs_f64() * 1e3),
            format!("{:.1}", figure.cpu.as_secs_f64() / base),
            format!("{:.2} ms", figure.target_cpu.as_secs_f64() * 1e3),
            figure.missed.clone(),
        ]
    };
    table::print(
        &["", "canaries/s", "CPU each", "ratio", "target's CPU each", "slots not served"],
        &figures.iter().map(row).collect::<Vec<_>>(),
    );
    Ok(())
}

/// The same POST in a loop; its webhook is taken by a bare handler in this process.
async fn bare(what: &str, client: reqwest::Client) -> Result<Figure> {
    let arrived = Arc::new(AtomicUsize::new(0));
    let count = |State(arrived): State<Arc<AtomicUsize>>, body: axum::body::Bytes| async move {
        arrived.fetch_add(usize::from(!body.is_empty()), Ordering::Relaxed);
    };
    let router = Router::new().route("/receipts/{token}", post(count)).with_state(Arc::clone(&arrived));
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    let sink: SocketAddr = listener.local_addr()?;
    let sinking = tokio::spawn(async move { axum::serve(listener, router).await });
    let (target, address) = process::role("target")?;
    let body = BODY.replace("CALLBACK", &format!("http://{sink}/receipts/{}", "a".repeat(92)));
    let url = format!("http://{address}/v1/notifications");
    let (cpu, target_cpu) = (process::own_cpu()?, target.cpu()?);
    let (_, took) = load::repeat(move |number| {
        let request = client
            .post(&url)
            .header("content-type", "application/json")
            .header("idempotency-key", format!("bench-{number}"))
            .body(body.clone());
        async move {
            let answer = request.send().await?.error_for_status()?;
            answer.bytes().await?;
            Ok(true)
        }
    })
    .await?;
    let done = arrived.load(Ordering::Relaxed);
    let each = |now: Duration, before: Duration| (now - before).div_f64(number(done));
    let figure = Figure {
        what: what.to_owned(),
        a_second: number(done) / took.as_secs_f64(),
        cpu: each(process::own_cpu()?, cpu),
        target_cpu: each(target.cpu()?, target_cpu),
        missed: String::new(),
    };
    sinking.abort();
    Ok(figure)
}

/// The real binary, with as many slots a second.
async fn monitored(offered: usize) -> Result<Figure> {
    let (target, address) = process::role("target")?;
    let mut monitor = Monitor::configure(&Setting {
        routes: offered,
        every: "1s",
        hourly_cap: 4_000,
        deadline: "20s",
        target: address,
        total_timeout: "10s",
        ledger: None,
    })?;
    monitor.start().await?;
    // The first slots, and the first readings of the sums.
    tokio::time::sleep(Duration::from_secs(4)).await;
    let (cpu, target_cpu, from) = (monitor.process()?.cpu()?, target.cpu()?, Utc::now());
    tokio::time::sleep(SPAN).await;
    let (cpu, target_cpu, until) = (monitor.process()?.cpu()? - cpu, target.cpu()? - target_cpu, Utc::now());
    // The canaries that are on their way.
    tokio::time::sleep(Duration::from_secs(2)).await;
    monitor.end();
    let margin = TimeDelta::seconds(20);
    let all = monitor.canaries(from - margin, until + margin, TimeDelta::seconds(1)).await?;
    let settled = all.iter().filter_map(|stored| stored.canary.settlement());
    let settled = settled.filter(|j| (from..until).contains(&j.at));
    let (good, others) = settled.partition::<Vec<&Judgement>, _>(|j| j.verdict == Verdict::OnTime);
    if !others.is_empty() {
        bail!(
            "{} of {} canaries settled as {:?}",
            others.len(),
            others.len() + good.len(),
            others[0].verdict
        );
    }
    let slots = all.iter().filter(|s| (from..until).contains(&s.canary.plan.slot)).count();
    let due = offered * usize::try_from((until.timestamp() - from.timestamp()).max(0))?;
    let each = |cpu: Duration| cpu.div_f64(number(good.len().max(1)));
    Ok(Figure {
        what: format!("monitor, {offered} slots a second"),
        a_second: number(good.len()) / (until - from).as_seconds_f64(),
        cpu: each(cpu),
        target_cpu: each(target_cpu),
        missed: format!("{} of {due}", due.saturating_sub(slots)),
    })
}

//! Memory: idle with fifty routes, and for each canary in flight.

use crate::{
    monitor::{Monitor, Setting},
    process::{self, Memory, memory},
    table::{self, number},
};
use anyhow::{Result, bail};
use delivery_canary::simulator::{LedgerOptions, Simulator, SimulatorOptions};
use std::{
    net::{Ipv4Addr, SocketAddr},
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};
use tokio::{io::AsyncReadExt, net::TcpListener};

const IDLE_ROUTES: usize = 50;

/// Fewer than the submissions that the monitor lets run at a time.
const IN_FLIGHT: usize = 800;

/// The first self-receipt and the first readings of the sums are over by then.
const SETTLED_AFTER: Duration = Duration::from_secs(20);

/// Measures the idle monitor beside a bare server, and in flight beside the same load answered.
pub async fn run() -> Result<()> {
    let (bare, _) = process::role("bare")?;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let base = memory(bare.id())?;
    let folder = tempfile::tempdir()?;
    let ledger = folder.path().join("ledger.db");
    let simulator = Simulator::start(SimulatorOptions::new(LedgerOptions::Sqlite(ledger.clone()))).await?;
    let rows = [
        row("bare axum server", base),
        row("idle, 50 routes, no ledger", idle(None).await?),
        row("idle, 50 routes, an SQLite ledger", idle(Some(ledger)).await?),
    ];
    drop(simulator);
    table::print(&["", "resident", "of it heap and stacks", "of it files"], &rows);
    in_flight().await
}

fn mib(kib: u64) -> String {
    format!("{}.{} MiB", kib / 1_024, kib % 1_024 * 10 / 1_024)
}

fn row(what: &str, memory: Memory) -> Vec<String> {
    vec![what.to_owned(), mib(memory.resident), mib(memory.anonymous), mib(memory.file)]
}

fn setting(routes: usize, every: &'static str, target: SocketAddr) -> Setting {
    Setting { routes, every, hourly_cap: 1_000, deadline: "10m", target, total_timeout: "5m", ledger: None }
}

async fn idle(ledger: Option<PathBuf>) -> Result<Memory> {
    let nobody = SocketAddr::from(([127, 0, 0, 1], 9));
    let mut monitor = Monitor::configure(&Setting { ledger, ..setting(IDLE_ROUTES, "1d", nobody) })?;
    monitor.start().await?;
    tokio::time::sleep(SETTLED_AFTER).await;
    memory(monitor.process()?.id())
}

/// The growth by canaries in flight, beside that by canaries that are answered at once.
async fn in_flight() -> Result<()> {
    let (target, address) = process::role("target")?;
    let answered = grown(address, None).await?;
    drop(target);
    let (held, address) = hold().await?;
    let waiting = grown(address, Some(&held)).await?;
    let row = |what: &str, grown: &Grown| {
        let kib = grown.after.saturating_sub(grown.before);
        let each = number(usize::try_from(kib).unwrap_or(0)) / number(grown.canaries.max(1));
        vec![
            what.to_owned(),
            grown.canaries.to_string(),
            mib(grown.before),
            mib(grown.after),
            format!("{each:.1} KiB"),
        ]
    };
    table::print(
        &["800 routes", "canaries", "resident before", "after", "growth per canary"],
        &[row("answered at once", &answered), row("all in flight", &waiting)],
    );
    Ok(())
}

/// Resident memory in KiB, and the canaries that came between the two readings.
struct Grown {
    before: u64,
    after: u64,
    canaries: usize,
}

/// Reads memory when the monitor is ready, and again when each route had a slot. A target that answers does not count: each
/// route's slot is taken as one canary then.
async fn grown(target: SocketAddr, held: Option<&AtomicUsize>) -> Result<Grown> {
    let count = || held.map_or(0, |held| held.load(Ordering::Relaxed));
    let mut monitor = Monitor::configure(&setting(IN_FLIGHT, "30s", target))?;
    monitor.start().await?;
    let process = monitor.process()?.id();
    let (before, first) = (memory(process)?.resident, count());
    let (least, limit) = (Duration::from_secs(30), Duration::from_secs(60));
    let began = Instant::now();
    while began.elapsed() < least || (held.is_some() && count() < IN_FLIGHT) {
        if began.elapsed() > limit {
            bail!("{} canaries were in flight after {limit:?}, and not {IN_FLIGHT}", count());
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let canaries = if held.is_some() { count() - first } else { IN_FLIGHT };
    Ok(Grown { before, after: memory(process)?.resident, canaries })
}

/// A target that takes connections and never answers; how many it holds.
async fn hold() -> Result<(Arc<AtomicUsize>, SocketAddr)> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    let (held, address) = (Arc::new(AtomicUsize::new(0)), listener.local_addr()?);
    let count = Arc::clone(&held);
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            count.fetch_add(1, Ordering::Relaxed);
            tokio::spawn(async move {
                let mut read = [0; 1_024];
                // It reads until the other end goes.
                while matches!(stream.read(&mut read).await, Ok(1..)) {}
            });
        }
    });
    Ok((held, address))
}

//! What following a ledger costs, each figure beside a baseline of the same run.
//!
//! `cargo bench --bench ledger` builds ledgers of 1 and 8 million notifications on a PostgreSQL server of its own, on loopback;
//! `-- --sizes 1` those sizes alone, in millions. What each figure includes: docs/performance.md. Nothing is asserted about time; that the
//! figures are those of plain SQL is.

#[path = "ledger/baselines.rs"]
mod baselines;
#[path = "ledger/behind.rs"]
mod behind;
#[path = "ledger/data.rs"]
mod data;
#[path = "ledger/first_read.rs"]
mod first_read;
#[path = "ledger/memory.rs"]
mod memory;
#[path = "../tests/common/postgres.rs"]
mod postgres;
#[path = "main_job/process.rs"]
#[allow(dead_code, reason = "a part of it is used")]
mod process;
#[path = "ledger/refresh.rs"]
mod refresh;
#[path = "ledger/subject.rs"]
mod subject;
#[path = "main_job/table.rs"]
#[allow(dead_code, reason = "a part of it is used")]
mod table;
#[path = "ledger/work.rs"]
mod work;
#[path = "ledger/writers.rs"]
mod writers;

use anyhow::{Context, Result, bail};
use postgres::Postgres;
use std::time::Instant;
use subject::Subject;

/// While the tables are filled nothing waits for the disk, and what a transaction made itself is not written twice.
const LOADING: [&str; 7] = [
    "shared_buffers=2GB",
    "maintenance_work_mem=512MB",
    "max_wal_size=1GB",
    "wal_level=minimal",
    "max_wal_senders=0",
    "max_connections=200",
    "dynamic_shared_memory_type=mmap",
];

/// What is measured is a server as a service would have it: it waits for the disk at each commit.
const MEASURING: [&str; 6] = [
    "shared_buffers=2GB",
    "max_wal_size=1GB",
    "max_connections=200",
    "fsync=on",
    "synchronous_commit=on",
    "full_page_writes=on",
];

/// What was measured at one size.
struct Measured {
    millions: u64,
    anti_join: f64,
    refresh: f64,
    server: f64,
}

fn main() -> Result<()> {
    // `cargo bench` adds `--bench`.
    let arguments: Vec<String> = std::env::args().skip(1).filter(|a| a != "--bench").collect();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["--role", "memory", rest @ ..] => runtime.block_on(memory::role(rest)),
        [] => runtime.block_on(run(&[1, 8], true)),
        ["--memory"] => runtime.block_on(run(&[], true)),
        ["--sizes", sizes] => {
            let sizes: Result<Vec<u64>, _> = sizes.split(',').map(str::parse).collect();
            runtime.block_on(run(&sizes.context("`--sizes` takes millions, such as 1,8")?, false))
        }
        other => bail!(
            "{other:?} is not understood: `--sizes 1,8` (in millions: anti-join, bare count, refresh, first read, late commits, and the looks \
             behind the cursor), `--memory` (of a follower, also one that goes on from its store), or nothing for all"
        ),
    }
}

async fn run(sizes: &[u64], with_memory: bool) -> Result<()> {
    println!("{} processors, load before: {}", process::processors(), process::load()?);
    let mut all = Vec::new();
    for millions in sizes {
        all.push(measure(*millions).await?);
    }
    if let (Some(small), Some(large)) = (all.first(), all.last())
        && small.millions < large.millions
    {
        println!(
            "\na refresh at {} million takes {:.2} times that at {} million (its server's part {:.2} times)",
            large.millions,
            large.refresh / small.refresh,
            small.millions,
            large.server / small.server
        );
        println!("the anti-join takes {:.1} times as long", large.anti_join / small.anti_join);
    }
    if with_memory {
        memory::measure().await?;
    }
    Ok(())
}

async fn measure(millions: u64) -> Result<Measured> {
    println!("\n{millions} million notifications, load before: {}", process::load()?);
    let mut server = Postgres::start_with(&LOADING);
    let url = server.fresh_database().await;
    let began = Instant::now();
    let filled = data::fill(&url, millions * 1_000_000).await?;
    server.stop();
    server.start_again_with(&MEASURING);
    println!(
        "  {} notifications, {} attempts, {} pending; {:.1} GB of files, made in {:.0?}",
        filled.notifications,
        filled.attempts,
        filled.pending,
        server.disk_bytes() as f64 / 1e9,
        began.elapsed()
    );
    let work = work::Server::new(server.process_id());
    let anti_join = baselines::anti_join(&url, &work).await?;
    let floor = baselines::floor(&url, &work).await?;

    let subject = Subject::new(&url).await?;
    first_read::measure(&subject, &filled, &work).await?;
    let refresh = refresh::measure(&subject, &url, &work).await?;
    println!(
        "  a refresh is 1/{:.0} of the anti-join and {:.1} times the bare count of the pending",
        anti_join / refresh.seconds,
        refresh.seconds / floor
    );
    writers::measure(&subject, &url).await?;
    behind::measure(&subject, &url, &work).await?;
    println!("  load after: {}; {:.1} GB of files", process::load()?, server.disk_bytes() as f64 / 1e9);
    Ok(Measured { millions, anti_join, refresh: refresh.seconds, server: refresh.server })
}

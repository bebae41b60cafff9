//! What the main job costs, each figure beside a baseline of the same run.
//!
//! `cargo bench --bench main_job` runs all parts, `cargo bench --bench main_job -- scrape` one of them: `canaries`, `slots`,
//! `receipts`, `scrape`, `memory`. What each figure includes: docs/performance.md. Nothing is asserted about time.

#[path = "main_job/canaries.rs"]
mod canaries;
#[path = "main_job/load.rs"]
mod load;
#[path = "main_job/memory.rs"]
mod memory;
#[path = "main_job/monitor.rs"]
mod monitor;
#[path = "main_job/page.rs"]
mod page;
#[path = "../tests/common/page_bench.rs"]
#[allow(dead_code, reason = "a part of it is used")]
mod page_bench;
#[path = "main_job/process.rs"]
mod process;
#[path = "main_job/receipts.rs"]
mod receipts;
#[path = "main_job/roles.rs"]
mod roles;
#[path = "../tests/common/scrape.rs"]
mod scrape;
#[path = "main_job/slots.rs"]
mod slots;
#[path = "main_job/table.rs"]
mod table;

use anyhow::{Result, bail};

const PARTS: [&str; 5] = ["canaries", "slots", "receipts", "scrape", "memory"];

fn main() -> Result<()> {
    // `cargo bench` adds `--bench`.
    let arguments: Vec<String> = std::env::args().skip(1).filter(|a| a != "--bench").collect();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["--role", role] => runtime.block_on(roles::run(role)),
        [] => PARTS.iter().try_for_each(|part| runtime.block_on(run(part))),
        parts if parts.iter().all(|part| PARTS.contains(part)) => {
            parts.iter().try_for_each(|part| runtime.block_on(run(part)))
        }
        other => bail!("there is no part {other:?}; there are: {}", PARTS.join(", ")),
    }
}

async fn run(part: &str) -> Result<()> {
    println!("\n{part}, on {} processors, load before it {}", process::processors(), process::load()?);
    match part {
        "canaries" => canaries::run().await,
        "slots" => slots::run().await,
        "receipts" => receipts::run().await,
        "scrape" => page::run().await,
        _ => memory::run().await,
    }
}

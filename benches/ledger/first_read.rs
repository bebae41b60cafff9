//! The first read of a whole ledger, by the code that follows it.

use crate::{
    data::Filled,
    subject::{self, Subject},
    work,
};
use anyhow::Result;
use std::time::{Duration, Instant};

/// Reads the whole ledger without the pause that the monitor makes between passes, and checks the figures. The store then has it.
pub async fn measure(subject: &Subject, filled: &Filled, server: &work::Server) -> Result<()> {
    let mut following = subject.following(Duration::from_secs(60)).await?;
    let (began, cpu, servers_cpu) = (Instant::now(), work::own_cpu()?, server.cpu()?);
    let (mut read, mut passes, mut saving) = (0, 0u32, Duration::ZERO);
    let as_of = loop {
        let pass = subject::pass(&*subject.store, &mut following).await?;
        read += pass.rows;
        passes += 1;
        saving += pass.save;
        if pass.is_end {
            break pass.as_of;
        }
    };
    let took = began.elapsed();
    let (own, servers) = (work::own_cpu()?.since(&cpu), server.cpu()?.since(&servers_cpu));
    let rows = filled.notifications + filled.attempts;
    let each = |cpu: Duration| cpu.as_secs_f64() * 1e6 / rows as f64;
    println!(
        "  (d) first read: {rows} rows (those that were read twice count once: {read} were read) in {:.1} s, {:.0} rows/s; {passes} passes; {:.0} % of the time writing down; of processor time {:.2} µs a row ours, \
         {:.2} µs the server's",
        took.as_secs_f64(),
        rows as f64 / took.as_secs_f64(),
        saving.as_secs_f64() / took.as_secs_f64() * 100.0,
        each(own),
        each(servers),
    );
    subject.check(&following, as_of).await
}

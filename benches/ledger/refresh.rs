//! A refresh in the steady state.

use crate::{
    subject::{self, Subject},
    table, work,
};
use anyhow::Result;
use sqlx::{AssertSqlSafe, Connection, PgConnection};
use std::time::{Duration, Instant};

/// New notifications in each interval; with their attempts it is 1.3 times as many rows more.
const NEW: u32 = 500;

/// Between two refreshes, and the overlap. The default is 15 s and 60 s: a refresh has as many rows to read again.
const EVERY: Duration = Duration::from_secs(1);
const OVERLAP: Duration = Duration::from_secs(4);

/// Passes in which each of 20,000 pending is looked up again once: what they read of the ledger is then in its memory, as it is after the
/// first minutes of following.
const ROUND: u32 = 41;

/// Passes before the measured ones, until as many rows close in each as are new, and measured ones.
const WARM_UP: u32 = 8;
const MEASURED: u32 = 30;

/// What a refresh takes.
pub struct Refresh {
    pub seconds: f64,
    pub server: f64,
}

/// Writes new rows, refreshes, and so on; then checks the figures.
pub async fn measure(subject: &Subject, url: &str, server: &work::Server) -> Result<Refresh> {
    let mut following = subject.following(OVERLAP).await?;
    for _ in 0..ROUND {
        subject::pass(&*subject.store, &mut following).await?;
    }
    let mut writer = PgConnection::connect(url).await?;
    let mut ticks = tokio::time::interval(EVERY);
    let (mut all, mut passing, mut saving, mut figuring) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let (mut rows, mut own, mut servers) = (0, Duration::ZERO, Duration::ZERO);
    for interval in 0..WARM_UP + MEASURED {
        ticks.tick().await;
        write(&mut writer, interval).await?;
        let (own_before, servers_before) = (work::own_cpu()?, server.cpu()?);
        let began = Instant::now();
        let pass = subject::pass(&*subject.store, &mut following).await?;
        let before_figures = began.elapsed();
        let figures = following.figures(pass.as_of);
        let took = began.elapsed();
        drop(figures);
        if interval >= WARM_UP {
            own += work::own_cpu()?.since(&own_before);
            servers += server.cpu()?.since(&servers_before);
            all.push(took.as_secs_f64() * 1e3);
            passing.push(pass.pass.as_secs_f64() * 1e3);
            saving.push(pass.save.as_secs_f64() * 1e3);
            figuring.push((took - before_figures).as_secs_f64() * 1e3);
            rows += pass.rows;
        }
    }
    let median = |times: &mut Vec<f64>, share| {
        times.sort_by(f64::total_cmp);
        table::quantile(times, share)
    };
    let each = |cpu: Duration| cpu.as_secs_f64() * 1e3 / f64::from(MEASURED);
    let seconds = median(&mut all, 0.5) / 1e3;
    println!(
        "  (c) refresh: median {:.1} ms of {MEASURED} (the longest {:.1} ms): reading and folding {:.1} ms, writing down {:.1} ms, figures {:.1} ms",
        seconds * 1e3,
        median(&mut all, 1.0),
        median(&mut passing, 0.5),
        median(&mut saving, 0.5),
        median(&mut figuring, 0.5),
    );
    println!(
        "      {NEW} new notifications with their attempts each; {} rows read, with the overlap of four intervals, and 500 pending looked up again; \
         of processor time {:.1} ms ours, {:.1} ms the server's",
        rows / u64::from(MEASURED),
        each(own),
        each(servers)
    );
    // All that was written is closed.
    tokio::time::sleep(OVERLAP + EVERY).await;
    let pass = subject::pass(&*subject.store, &mut following).await?;
    subject.check(&following, pass.as_of).await?;
    Ok(Refresh { seconds, server: each(servers) / 1e3 })
}

/// The rows of one interval: new notifications, their first attempts, and second ones of those of two intervals ago. One in 500 stays pending.
async fn write(connection: &mut PgConnection, interval: u32) -> Result<()> {
    let every = EVERY.as_millis();
    let before = i64::from(interval) - 2;
    let text = format!(
        "insert into notifications
             select md5('r{interval}n' || i)::uuid, clock_timestamp() - i * interval '{every} ms' / {NEW},
                    (array['receipts', 'alerts', 'notices'])[1 + i % 3]
               from generate_series(1, {NEW}) i;
         insert into attempts
             select md5('r{interval}a' || i)::uuid, md5('r{interval}n' || i)::uuid, clock_timestamp(),
                    case when i % 10 < 3 then 'retryable' else 'delivered' end
               from generate_series(1, {NEW}) i where i < {NEW};
         insert into attempts
             select md5('r{interval}b' || i)::uuid, md5('r{before}n' || i)::uuid, clock_timestamp(), 'delivered'
               from generate_series(1, {NEW}) i where i % 10 < 3 and i < {NEW} and {before} >= 0;"
    );
    sqlx::raw_sql(AssertSqlSafe(text)).execute(connection).await?;
    Ok(())
}

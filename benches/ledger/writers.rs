//! A service that writes while it is followed, and whose commits come late and in no order.

use crate::{
    subject::{self, Subject},
    table,
};
use anyhow::Result;
use rand::Rng;
use sqlx::{AssertSqlSafe, Connection, PgConnection};
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

/// Two transactions begin each half second: together 1,000 rows.
const EVERY: Duration = Duration::from_millis(500);
const NOTIFICATIONS: u32 = 435;
const ATTEMPTS: u32 = 565;

/// How long it writes, how late a commit can be, and the overlap that is configured for it.
const TICKS: u32 = 120;
const LATEST: Duration = Duration::from_secs(30);
const OVERLAP: Duration = Duration::from_secs(35);

/// Follows while 2,000 rows a second are written, and checks the figures once all is closed.
pub async fn measure(subject: &Subject, url: &str) -> Result<()> {
    let mut following = subject.following(OVERLAP).await?;
    let writing = tokio::spawn(write(url.to_owned()));
    let (mut times, mut rows) = (Vec::new(), 0);
    let mut ticks = tokio::time::interval(Duration::from_secs(1));
    while !writing.is_finished() {
        ticks.tick().await;
        let began = Instant::now();
        rows += subject::pass(&*subject.store, &mut following).await?.rows;
        times.push(began.elapsed().as_secs_f64() * 1e3);
    }
    let written = writing.await??;
    // A row closes when the overlap has passed, and what had to be looked up twice within a few passes more.
    let ended = Instant::now();
    let as_of = loop {
        ticks.tick().await;
        let pass = subject::pass(&*subject.store, &mut following).await?;
        if ended.elapsed() > OVERLAP + Duration::from_secs(5) {
            break pass.as_of;
        }
    };
    times.sort_by(f64::total_cmp);
    let passes = times.len();
    println!(
        "  while 2,000 rows a second are written and committed up to 30 s late: {written} rows in {} s; {passes} passes, median {:.0} ms, with {} rows each",
        TICKS / 2,
        table::quantile(&times, 0.5),
        rows / u64::try_from(passes.max(1))?
    );
    subject.check(&following, as_of).await
}

/// Writes, and answers how many rows when all are committed.
async fn write(url: String) -> Result<u64> {
    let mut ticks = tokio::time::interval(EVERY);
    let mut open = JoinSet::new();
    for tick in 0..TICKS {
        ticks.tick().await;
        for text in [notifications(tick), attempts(tick)] {
            let delay = LATEST.mul_f64(rand::rng().random::<f64>() * 0.95);
            open.spawn(transaction(url.clone(), text, delay));
        }
    }
    let mut written = 0;
    while let Some(done) = open.join_next().await {
        written += done??;
    }
    Ok(written)
}

/// The rows have the times of the beginning; they become visible at the end.
async fn transaction(url: String, text: String, delay: Duration) -> Result<u64> {
    let mut connection = PgConnection::connect(&url).await?;
    let mut transaction = connection.begin().await?;
    let rows = sqlx::raw_sql(AssertSqlSafe(text)).execute(&mut *transaction).await?.rows_affected();
    tokio::time::sleep(delay).await;
    transaction.commit().await?;
    connection.close().await?;
    Ok(rows)
}

fn notifications(tick: u32) -> String {
    format!(
        "insert into notifications
             select md5('w{tick}n' || i)::uuid, clock_timestamp(), (array['receipts', 'alerts', 'notices'])[1 + i % 3]
               from generate_series(1, {NOTIFICATIONS}) i"
    )
}

/// First attempts of this tick's notifications, and second ones of those of ten ticks before. Some end in a rejection, some stay open, and some
/// come again after the end.
fn attempts(tick: u32) -> String {
    let before = i64::from(tick) - 10;
    format!(
        "insert into attempts
             select md5('w{tick}a' || i)::uuid,
                    case when i <= {NOTIFICATIONS} then md5('w{tick}n' || i)
                         else md5('w' || {before} || 'n' || 3 * (i - {NOTIFICATIONS})) end::uuid,
                    clock_timestamp(),
                    case when i > {NOTIFICATIONS} then case when i % 50 = 0 then 'bounced' else 'delivered' end
                         when i % 3 = 0 then 'retryable' when i % 41 = 0 then 'unknown' when i % 43 = 0 then 'provider_refused'
                         else 'delivered' end
               from generate_series(1, {ATTEMPTS}) i where i <= {NOTIFICATIONS} or {before} >= 0"
    )
}

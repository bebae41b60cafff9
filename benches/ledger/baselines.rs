//! What people ask their database today.

use crate::{table, work};
use anyhow::Result;
use chrono::{DateTime, Utc};
use delivery_canary::domain::pending::AGE_BOUNDS_SECONDS;
use sqlx::{AssertSqlSafe, Connection, PgConnection, Row};
use std::{collections::BTreeMap, time::Instant};

/// How many pending there are, by route and bucket of age.
pub type Distribution = BTreeMap<String, [u64; AGE_BOUNDS_SECONDS.len() + 1]>;

/// How often each is asked, beside once to warm up.
const ANTI_JOINS: usize = 3;
const FLOORS: usize = 40;

/// The query of an SQL exporter: accepted, without an attempt that ended it, grouped by age.
pub async fn distribution(connection: &mut PgConnection, as_of: DateTime<Utc>) -> Result<Distribution> {
    // A bound belongs to its bucket, and times are whole microseconds.
    let bounds: Vec<String> = AGE_BOUNDS_SECONDS.iter().map(|bound| format!("{bound}.000001")).collect();
    let text = format!(
        "select n.route, width_bucket(extract(epoch from $1 - n.accepted_at), array[{}]), count(*)
           from notifications n
          where not exists (select from attempts a where a.notification_id = n.id
                               and a.outcome in ('delivered', 'bounced', 'provider_refused', 'suppressed'))
          group by 1, 2",
        bounds.join(", ")
    );
    let rows = sqlx::query(AssertSqlSafe(text)).bind(as_of).fetch_all(connection).await?;
    let mut all = Distribution::new();
    for row in rows {
        let (route, bucket, count): (String, i32, i64) = (row.get(0), row.get(1), row.get(2));
        all.entry(route).or_default()[usize::try_from(bucket)?] = u64::try_from(count)?;
    }
    Ok(all)
}

/// Prints what the anti-join takes, and gives the median in seconds.
pub async fn anti_join(url: &str, server: &work::Server) -> Result<f64> {
    let mut connection = PgConnection::connect(url).await?;
    let mut times = Vec::new();
    for _ in 0..=ANTI_JOINS {
        let began = Instant::now();
        distribution(&mut connection, Utc::now()).await?;
        times.push(began.elapsed().as_secs_f64());
    }
    // Its helpers end with it, so the server's time is that of one in this process alone.
    sqlx::raw_sql("set max_parallel_workers_per_gather = 0").execute(&mut connection).await?;
    let before = server.cpu()?;
    distribution(&mut connection, Utc::now()).await?;
    let alone = server.cpu()?.since(&before).as_secs_f64();
    let first = times.remove(0);
    times.sort_by(f64::total_cmp);
    let median = table::quantile(&times, 0.5);
    println!(
        "  (a) anti-join: median {median:.2} s of {ANTI_JOINS} (the first {first:.2} s); {alone:.2} s of processor time without helpers"
    );
    Ok(median)
}

/// Prints what a bare count of the pending takes, and gives the median in seconds.
pub async fn floor(url: &str, server: &work::Server) -> Result<f64> {
    let mut connection = PgConnection::connect(url).await?;
    let mut times = Vec::new();
    let mut before = server.cpu()?;
    for place in 0..=FLOORS {
        if place == 1 {
            before = server.cpu()?;
        }
        let began = Instant::now();
        sqlx::query("select count(*) from settled where settled_at is null")
            .fetch_one(&mut connection)
            .await?;
        times.push(began.elapsed().as_secs_f64());
    }
    let cpu = server.cpu()?.since(&before).as_secs_f64() / table::number(FLOORS);
    times.remove(0);
    times.sort_by(f64::total_cmp);
    let median = table::quantile(&times, 0.5);
    println!(
        "  (b) bare count of the pending on an index of just those: median {:.1} ms of {FLOORS}; {:.1} ms of the server's processor time",
        median * 1e3,
        cpu * 1e3
    );
    Ok(median)
}

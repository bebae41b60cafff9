//! The looks behind the cursor: what the exact count of an hour takes, and reading an hour afresh in which there is something.

use crate::{
    subject::{self, Subject},
    table, work,
};
use anyhow::{Result, ensure};
use chrono::{DurationRound, TimeDelta};
use delivery_canary::monitor::flow::{Behind, Beyond, Looked};
use sqlx::{Connection, PgConnection};
use std::{
    collections::BTreeSet,
    time::{Duration, Instant},
};

/// The overlap of the bench's refreshes.
const OVERLAP: Duration = Duration::from_secs(4);

/// How often an hour is counted, beside once to warm up.
const COUNTS: u32 = 30;

/// How many pending notifications are dated back into the last closed hour.
const DATED_BACK: u32 = 100;

/// Looks as the monitor does where there is a `partition` query and no `pending`, then writes what no page shows, and looks again; then
/// checks the figures.
pub async fn measure(subject: &Subject, url: &str, server: &work::Server) -> Result<()> {
    let config = subject::by_the_hour(url, OVERLAP)?;
    let reader = subject::reader(&config)?;
    let mut following = subject::following(&*subject.store, config.clone()).await?;
    let as_of = loop {
        let pass = subject::pass(&*subject.store, &mut following).await?;
        if pass.is_end {
            break pass.as_of;
        }
    };
    let (erased, beyond) = (BTreeSet::new(), Beyond::default());
    let looked = Looked {
        ledger: subject::LEDGER,
        config: &config,
        reader: &*reader,
        store: &*subject.store,
        erased: &erased,
        as_of,
    };
    let mut times = Vec::new();
    let mut servers = Duration::ZERO;
    for count in 0..=COUNTS {
        // One that was never asked begins with the last closed hour.
        let mut behind = Behind::default();
        let (before, began) = (server.cpu()?, Instant::now());
        behind.look(&looked, (&beyond, None), &mut following).await?;
        let took = began.elapsed();
        ensure!(behind.unseen() == Some(0), "{:?} are unseen before there is anything", behind.unseen());
        if count > 0 {
            servers += server.cpu()?.since(&before);
            times.push(took.as_secs_f64() * 1e3);
        }
    }
    times.sort_by(f64::total_cmp);
    let each = table::quantile(&times, 0.5);
    println!(
        "  (f) behind the cursor: one hour counted in {each:.1} ms, median of {COUNTS} (the longest {:.1} ms), {:.1} ms of the server's processor \
         time; with the defaults 31 more counts an hour: {:.2} s",
        table::quantile(&times, 1.0),
        servers.as_secs_f64() * 1e3 / f64::from(COUNTS),
        each * 31.0 / 1e3
    );
    let hour = (as_of - TimeDelta::minutes(2)).duration_trunc(TimeDelta::hours(1))? - TimeDelta::hours(1);
    let mut writer = PgConnection::connect(url).await?;
    sqlx::query(
        "insert into notifications select md5('behind' || i)::uuid, $1 + i * interval '1 second', 'receipts' from generate_series(1, $2) i",
    )
    .bind(hour)
    .bind(i32::try_from(DATED_BACK)?)
    .execute(&mut writer)
    .await?;
    let mut behind = Behind::default();
    let began = Instant::now();
    behind.look(&looked, (&beyond, None), &mut following).await?;
    let took = began.elapsed();
    ensure!(
        behind.unseen() == Some(0),
        "{:?} of {DATED_BACK} that were dated back are not found",
        behind.unseen()
    );
    println!(
        "      {DATED_BACK} pending that were dated back into the last closed hour: counted, the hour read afresh and taken in in {:.1} ms",
        took.as_secs_f64() * 1e3
    );
    let pass = subject::pass(&*subject.store, &mut following).await?;
    subject.check(&following, pass.as_of).await
}

//! What a pending notification takes of memory, each measured in a process of its own that has read the same rows.

use crate::{postgres::Postgres, process, subject, table};
use anyhow::{Context, Result, bail};
use chrono::Utc;
use sqlx::{AssertSqlSafe, Connection, PgConnection};
use std::{path::Path, process::Command};

/// Rows of each table. As many of them are pending as the process is told.
const ROWS: u64 = 520_000;
const PENDING: [u64; 3] = [0, 20_000, 500_000];

/// Prints what is resident with none, few and many pending, for ids in no order and in the order of time.
pub async fn measure() -> Result<()> {
    println!("\nmemory, load before: {}", process::load()?);
    let server = Postgres::start();
    let url = server.fresh_database().await;
    let mut connection = PgConnection::connect(&url).await?;
    for (table, id) in
        [("random", "md5('n' || i)"), ("ordered", "lpad(to_hex(i), 12, '0') || left(md5('n' || i), 20)")]
    {
        let text = format!(
            "create table {table} as
                 select i as seq, ({id})::uuid as id, now() - interval '1 day' + i * interval '0.1 s' as accepted_at, 'receipts' as route
                   from generate_series(1, {ROWS}) i;
             create index on {table} (accepted_at, id);"
        );
        sqlx::raw_sql(AssertSqlSafe(text)).execute(&mut connection).await?;
    }
    sqlx::raw_sql("vacuum (analyze)").execute(&mut connection).await?;
    let mut rows = Vec::new();
    for table in ["random", "ordered"] {
        let (mut none, mut few) = (0, 0);
        for pending in PENDING {
            let folder = tempfile::tempdir()?;
            let Resident { end: read, .. } = in_a_process(&url, table, pending, folder.path())?;
            let again = in_a_process(&url, table, pending, folder.path())?;
            match pending {
                0 => none = read,
                20_000 => few = read,
                _ => {}
            }
            let each = |grown: u64, count: u64| {
                if count == 0 {
                    "-".into()
                } else {
                    format!("{:.0} bytes", grown as f64 * 1024.0 / count as f64)
                }
            };
            let (over_few, count) =
                if pending > PENDING[1] { (read.saturating_sub(few), pending - PENDING[1]) } else { (0, 0) };
            rows.push(vec![
                format!("{pending} pending, ids {table}"),
                format!("{:.1} MiB", read as f64 / 1024.0),
                each(read.saturating_sub(none), pending),
                each(over_few, count),
                format!("{:.1} MiB", again.loaded as f64 / 1024.0),
                format!("{:.1} MiB", again.end as f64 / 1024.0),
            ]);
        }
    }
    table::print(
        &[
            "after reading 520,000 rows",
            "resident",
            "each, over none",
            "each, over 20,000",
            "restarted: what is kept is loaded",
            "and the rest is read",
        ],
        &rows,
    );
    Ok(())
}

/// The resident memory of a process, in KiB.
struct Resident {
    /// When what the store keeps was loaded, and nothing read yet.
    loaded: u64,
    /// When the table was read to its end.
    end: u64,
}

/// The resident memory of a process that follows this table. Where the folder has a store, it goes on from there.
fn in_a_process(url: &str, table: &str, pending: u64, folder: &Path) -> Result<Resident> {
    let done = Command::new(std::env::current_exe()?)
        .args(["--role", "memory", url, table, &pending.to_string()])
        .arg(folder)
        .output()?;
    let text = String::from_utf8_lossy(&done.stdout);
    let last = text.lines().last().and_then(|line| {
        let (loaded, end) = line.split_once(' ')?;
        Some(Resident { loaded: loaded.parse().ok()?, end: end.parse().ok()? })
    });
    last.with_context(|| format!("the process said {text:?} and {:?}", String::from_utf8_lossy(&done.stderr)))
}

/// That process.
pub async fn role(arguments: &[&str]) -> Result<()> {
    let [url, table, pending, folder] = arguments else { bail!("a URL, a table, a number and a folder") };
    let pending: u64 = pending.parse()?;
    let store = subject::open_store(Path::new(folder)).await?;
    let mut following = subject::following(&*store, subject::one_table(url, table, pending)?).await?;
    let loaded = process::memory(std::process::id())?.resident;
    while !subject::pass(&*store, &mut following).await?.is_end {}
    let pass = subject::pass(&*store, &mut following).await?;
    let counted: u64 = following.figures(pass.as_of).routes.iter().flat_map(|route| route.pending.ages).sum();
    if counted != pending || following.held() != pending {
        bail!("{counted} of {pending} are pending at {}", Utc::now());
    }
    println!("{loaded} {}", process::memory(std::process::id())?.resident);
    Ok(())
}

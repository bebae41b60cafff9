//! The schema and its steps. Applied steps never change; a change is a new step.

use super::{
    database::Dialect,
    fault::Fault,
    row::int,
    statement::{execute, fetch, run, values},
};
use crate::clock;
use sqlx::AnyConnection;

/// The steps, in order; the first is number 1.
const STEPS: [&str; 4] = [
    include_str!("migrations/0001_first.sql"),
    include_str!("migrations/0002_follower.sql"),
    include_str!("migrations/0003_sight.sql"),
    include_str!("migrations/0004_audit.sql"),
];

/// Names the lock under which PostgreSQL processes bring the schema up to date, one at a time.
const LOCK: i64 = 0x64_63_73_74_6f_72_65;

/// Brings the schema up to date, within the transaction that is open.
pub(super) async fn bring_up_to_date(conn: &mut AnyConnection, dialect: Dialect) -> Result<(), Fault> {
    if dialect == Dialect::Postgres {
        // Held to the end of the transaction, so that it works behind a pooler of transactions too.
        fetch(conn, "SELECT CAST(pg_advisory_xact_lock($1) AS TEXT)", values![LOCK]).await?;
    }
    let table = "CREATE TABLE IF NOT EXISTS schema_step (step BIGINT NOT NULL PRIMARY KEY, applied_at BIGINT NOT NULL)";
    run(conn, table).await.map_err(hint)?;
    let rows = fetch(conn, "SELECT COALESCE(MAX(step), 0) FROM schema_step", vec![]).await?;
    let known = rows.first().map_or(Ok(0), |row| int(row, 0))?;
    let applied = usize::try_from(known).unwrap_or(0);
    if applied > STEPS.len() {
        return Err(Fault::Schema(format!(
            "it is at step {applied} and this release knows {}: run the newer release again, or give this one a store of its own",
            STEPS.len()
        )));
    }
    for (text, step) in STEPS.iter().zip(1i64..).skip(applied) {
        // SQLite compares text byte by byte as it is; PostgreSQL does as its locale says, which may pass over characters.
        let (clustered, bytewise) = match dialect {
            Dialect::Sqlite => ("WITHOUT ROWID", ""),
            Dialect::Postgres => ("", "COLLATE \"C\""),
        };
        let text = text.replace("/*clustered*/", clustered).replace("/*bytewise*/", bytewise);
        run(conn, text).await.map_err(hint)?;
        let now = clock::now().timestamp_micros();
        execute(conn, "INSERT INTO schema_step (step, applied_at) VALUES ($1, $2)", values![step, now])
            .await?;
    }
    Ok(())
}

/// How many steps this release knows.
pub(super) const KNOWN: usize = STEPS.len();

/// The newest step of the schema, which is left as it is; 0 where there is none.
pub(super) async fn step(conn: &mut AnyConnection, dialect: Dialect) -> Result<usize, Fault> {
    let is_there = match dialect {
        Dialect::Sqlite => "SELECT COUNT(*) FROM sqlite_master WHERE name = 'schema_step'",
        Dialect::Postgres => "SELECT COUNT(to_regclass('schema_step'))",
    };
    let rows = fetch(conn, is_there, vec![]).await?;
    if rows.first().map_or(Ok(0), |row| int(row, 0))? == 0 {
        return may_be_made(conn, dialect).await.map(|()| 0);
    }
    let rows = fetch(conn, "SELECT COALESCE(MAX(step), 0) FROM schema_step", vec![]).await?;
    Ok(usize::try_from(rows.first().map_or(Ok(0), |row| int(row, 0))?).unwrap_or(0))
}

/// Whether this role could make the tables.
async fn may_be_made(conn: &mut AnyConnection, dialect: Dialect) -> Result<(), Fault> {
    if dialect == Dialect::Sqlite {
        return Ok(());
    }
    let may =
        "SELECT CAST(CASE WHEN has_schema_privilege(current_schema(), 'CREATE') THEN 1 ELSE 0 END AS BIGINT)";
    match fetch(conn, may, vec![]).await?.first().map_or(Ok(0), |row| int(row, 0))? {
        0 => Err(Fault::Schema("the role needs the right to create tables in its schema".into())),
        _ => Ok(()),
    }
}

/// A missing right is the usual cause; anything that passes by itself stays what it is.
fn hint(fault: Fault) -> Fault {
    match &fault {
        Fault::Database(sqlx::Error::Database(error)) if error.code().as_deref() == Some("42501") => {
            Fault::Schema(format!("{error}; the role needs the right to create tables in its schema"))
        }
        _ => fault,
    }
}

//! An SQLite ledger with everything in the way.

use super::support::{Bed, ends, ids, open, simple_lookup, sqlite};
use delivery_canary::ledger::{LedgerAdapter, LedgerError, LedgerReader};
use serde_json::{Value, json};
use sqlx::Executor;

const MADE: &str =
    "create table n (id text primary key, status text not null); insert into n values ('a', 'delivered')";

fn by_id() -> Value {
    let lookup = simple_lookup("id in (select value from json_each(:ids))");
    json!({ "lookup": lookup, "statement_timeout": "20s" })
}

async fn look(ledger: &LedgerAdapter) -> Result<usize, LedgerError> {
    ends("a lookup", ledger.lookup(&ids(&["a"]), &[])).await.map(|lookup| lookup.found.len())
}

#[tokio::test]
async fn a_file_that_is_missing_is_read_when_it_comes_and_when_another_takes_its_place() {
    let bed = Bed::sqlite();
    let ledger = open(bed.database(), by_id()).unwrap();
    let error = look(&ledger).await.unwrap_err();
    assert_eq!(error.word(), "unreachable");
    assert!(!bed.path().exists(), "a reader makes no file");
    bed.execute(MADE).await;
    assert_eq!(look(&ledger).await.unwrap(), 1);
    std::fs::rename(bed.path(), bed.path().with_extension("old")).unwrap();
    bed.execute("create table n (id text primary key, status text not null)").await;
    assert_eq!(look(&ledger).await.unwrap(), 0);
}

#[tokio::test]
async fn a_locked_file_gives_an_error_and_then_recovers() {
    let bed = Bed::sqlite();
    bed.execute(MADE).await;
    let ledger = open(bed.database(), by_id()).unwrap();
    let mut holder = sqlite(&bed.path()).await;
    holder.execute("begin exclusive").await.unwrap();
    assert_eq!(look(&ledger).await.unwrap_err().word(), "timeout");
    holder.execute("rollback").await.unwrap();
    assert_eq!(look(&ledger).await.unwrap(), 1);
}

#[tokio::test]
async fn a_writer_in_wal_mode_is_not_in_the_way() {
    let bed = Bed::sqlite();
    bed.execute(&format!("pragma journal_mode = wal; {MADE}")).await;
    let ledger = open(bed.database(), by_id()).unwrap();
    let mut writer = sqlite(&bed.path()).await;
    writer.execute("begin immediate; delete from n").await.unwrap();
    assert_eq!(look(&ledger).await.unwrap(), 1);
    writer.execute("commit").await.unwrap();
    assert_eq!(look(&ledger).await.unwrap(), 0);
}

#[tokio::test]
async fn a_statement_without_end_is_ended() {
    let bed = Bed::sqlite();
    bed.execute(MADE).await;
    let sql = "with recursive t (i) as (select 1 union all select i + 1 from t)
               select id, status from n where (select max(i) from t) > 0 and :ids = :ids";
    let lookup = json!({ "sql": sql, "columns": { "notification_id": "id", "status": "status" } });
    let ledger = open(bed.database(), json!({ "lookup": lookup, "statement_timeout": "200ms" })).unwrap();
    let error = look(&ledger).await.unwrap_err();
    assert!(error.to_string().contains("the statement took too long"), "{error}");
}

#[tokio::test]
async fn a_file_that_is_no_database_is_unreachable() {
    let bed = Bed::sqlite();
    std::fs::write(
        bed.path(),
        "something else altogether, and long enough to be a header of a database file, as it must be",
    )
    .unwrap();
    let error = look(&open(bed.database(), by_id()).unwrap()).await.unwrap_err();
    assert_eq!(error.word(), "unreachable", "{error}");
}

#[tokio::test]
async fn a_table_that_is_not_there_is_an_error_of_the_query() {
    let bed = Bed::sqlite();
    bed.execute("create table other (a)").await;
    let error = look(&open(bed.database(), by_id()).unwrap()).await.unwrap_err();
    assert_eq!(error.to_string(), "the ledger's lookup query failed: no such table: n");
}

#[tokio::test]
async fn what_writes_is_refused() {
    let bed = Bed::sqlite();
    bed.execute(MADE).await;
    for sql in
        ["delete from n where :ids = :ids returning id, status", "pragma query_only = off", "attach 'x' as y"]
    {
        let lookup = json!({ "sql": sql, "columns": { "notification_id": "id", "status": "status" } });
        assert_eq!(open(bed.database(), json!({ "lookup": lookup })).err().unwrap().word(), "configuration");
    }
    // A query that begins by reading and ends by writing.
    let sql = "with a as (select :ids as x) insert into n select x, 'y' from a returning id, status";
    let lookup = json!({ "sql": sql, "columns": { "notification_id": "id", "status": "status" } });
    let error = look(&open(bed.database(), json!({ "lookup": lookup })).unwrap()).await.unwrap_err();
    assert!(error.to_string().contains("readonly"), "{error}");
    assert_eq!(look(&open(bed.database(), by_id()).unwrap()).await.unwrap(), 1);
}

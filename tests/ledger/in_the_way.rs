//! A PostgreSQL ledger with everything in the way: each time an error that says so, in time, and afterwards it is used again.

use super::support::{Bed, ends, ids, open, simple_lookup, until};
use delivery_canary::ledger::{LedgerAdapter, LedgerError, LedgerReader};
use serde_json::{Value, json};
use sqlx::{AssertSqlSafe, Connection, Executor, PgConnection, Row};
use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    task::JoinSet,
};

/// A server with a table of one delivered notification.
async fn bed() -> Bed {
    let bed = Bed::postgres().await;
    bed.execute(
        "create table n (id text primary key, status text not null); insert into n values ('a', 'delivered')",
    )
    .await;
    bed
}

fn by_id() -> Value {
    json!({ "lookup": simple_lookup("id = any(:ids)"), "statement_timeout": "20s" })
}

fn with_sql(sql: &str) -> Value {
    json!({
        "lookup": { "sql": sql, "columns": { "notification_id": "id", "status": "status" } },
        "statement_timeout": "20s",
    })
}

/// A configuration with a limit that a test waits out.
fn impatient(mut fields: Value) -> Value {
    fields["statement_timeout"] = json!("500ms");
    fields
}

async fn look(ledger: &LedgerAdapter) -> Result<usize, LedgerError> {
    ends("a lookup", ledger.lookup(&ids(&["a"]), &[])).await.map(|lookup| lookup.found.len())
}

async fn until_found(ledger: &LedgerAdapter) {
    until("a good reading", async || {
        look(ledger).await.map(|found| assert_eq!(found, 1)).map_err(|e| e.to_string())
    })
    .await;
}

#[tokio::test]
async fn trial_21_a_missing_grant_is_an_error_that_names_it() {
    let bed = bed().await;
    let Bed::Postgres { server, url } = &bed else { unreachable!() };
    let role = server.role("reader", url).await;
    let ledger = open(json!({ "postgres": { "url": role } }), by_id()).unwrap();
    let error = look(&ledger).await.unwrap_err();
    assert_eq!((error.word(), ledger.stats().figures().last_error), ("denied", Some("denied")));
    assert!(error.to_string().contains("grant SELECT"), "{error}");
    bed.execute("grant select on n to reader").await;
    assert_eq!(look(&ledger).await.unwrap(), 1);
}

#[tokio::test]
async fn a_server_that_stops_is_used_again_when_it_is_back() {
    let mut bed = bed().await;
    let ledger = open(bed.database(), by_id()).unwrap();
    assert_eq!(look(&ledger).await.unwrap(), 1);
    bed.server().stop();
    assert_eq!(look(&ledger).await.unwrap_err().word(), "unreachable");
    bed.server().start_again();
    until_found(&ledger).await;
    // The kept connection died with a restart between two readings: the next one does not notice.
    bed.server().stop();
    bed.server().start_again();
    until_found(&ledger).await;
}

#[tokio::test]
async fn a_kept_connection_that_was_ended_costs_no_reading() {
    let bed = bed().await;
    let ledger = open(bed.database(), by_id()).unwrap();
    assert_eq!(look(&ledger).await.unwrap(), 1);
    bed.execute(
        "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'delivery-canary'",
    )
    .await;
    assert_eq!(look(&ledger).await.unwrap(), 1);
    assert_eq!(ledger.stats().figures().failures, 0);
}

#[tokio::test]
async fn a_server_that_is_down_at_the_start_is_used_when_it_comes() {
    let mut bed = bed().await;
    bed.server().stop();
    let ledger = open(bed.database(), by_id()).unwrap();
    assert_eq!(look(&ledger).await.unwrap_err().word(), "unreachable");
    bed.server().start_again();
    until_found(&ledger).await;
}

#[tokio::test]
async fn a_locked_table_gives_an_error_and_then_recovers() {
    let bed = bed().await;
    let ledger = open(bed.database(), by_id()).unwrap();
    let mut holder = PgConnection::connect(bed.url()).await.unwrap();
    holder.execute("begin; lock table n in access exclusive mode").await.unwrap();
    let error = look(&ledger).await.unwrap_err();
    assert!(error.to_string().contains("a lock that somebody else holds"), "{error}");
    holder.execute("rollback").await.unwrap();
    assert_eq!(look(&ledger).await.unwrap(), 1);
}

#[tokio::test]
async fn a_slow_statement_is_ended_by_the_server() {
    let bed = bed().await;
    let ledger = open(
        bed.database(),
        impatient(with_sql("select id, status from n, pg_sleep(3600) where id = any(:ids)")),
    )
    .unwrap();
    let error = look(&ledger).await.unwrap_err();
    assert!(error.to_string().contains("the statement took too long"), "{error}");
    let mut watcher = PgConnection::connect(bed.url()).await.unwrap();
    until("the end of the statement", async || {
        let sql = "select count(*) from pg_stat_activity where application_name = 'delivery-canary' and state <> 'idle'";
        match sqlx::query_scalar::<_, i64>(sql).fetch_one(&mut watcher).await.unwrap() {
            0 => Ok(()),
            n => Err(format!("{n} busy sessions")),
        }
    })
    .await;
}

#[tokio::test]
async fn what_writes_in_the_users_sql_is_refused() {
    let bed = bed().await;
    bed.execute("create sequence s; create function f() returns text language plpgsql volatile as $$ begin delete from n; return 'x'; end $$").await;
    for (sql, word) in [
        (
            "with gone as (delete from n where id = any(:ids) returning *) select * from gone",
            "read-only transaction",
        ),
        ("select id, status from n where id = any(:ids) for update", "read-only transaction"),
        ("select f() as id, 'x' as status where 'a' = any(:ids)", "read-only transaction"),
        ("select nextval('s')::text as id, 'x' as status where 'a' = any(:ids)", "read-only transaction"),
        (
            "select set_config('transaction_read_only', 'off', false) as id, f() as status where 'a' = any(:ids)",
            "read-write mode",
        ),
    ] {
        let error = look(&open(bed.database(), with_sql(sql)).unwrap()).await.unwrap_err();
        assert!(error.to_string().contains(word), "{sql}: {error}");
    }
    for sql in [
        "delete from n where id = any(:ids) returning id, status",
        "select 1 where :ids = :ids; delete from n",
    ] {
        let error = open(bed.database(), with_sql(sql)).err().unwrap();
        assert_eq!(error.word(), "configuration", "{error}");
    }
    assert_eq!(look(&open(bed.database(), by_id()).unwrap()).await.unwrap(), 1);
}

#[tokio::test]
async fn a_black_hole_gives_an_error() {
    let hole = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("postgres://reader@{}/x", hole.local_addr().unwrap());
    let swallowing = tokio::spawn(async move {
        let mut kept = Vec::new();
        loop {
            kept.push(hole.accept().await.unwrap());
        }
    });
    let ledger = open(json!({ "postgres": { "url": url } }), by_id()).unwrap();
    let error = look(&ledger).await.unwrap_err();
    assert_eq!(error.word(), "unreachable", "{error}");
    swallowing.abort();
}

/// Passes bytes on until it is frozen; then it holds connections and passes nothing.
async fn freezable(target: String, frozen: Arc<AtomicBool>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    tokio::spawn(async move {
        loop {
            let (mut client, _) = listener.accept().await.unwrap();
            let (target, frozen) = (target.clone(), Arc::clone(&frozen));
            tokio::spawn(async move {
                let mut server = TcpStream::connect(target).await.unwrap();
                let (mut up, mut down) = ([0; 4096], [0; 4096]);
                loop {
                    let passed = tokio::select! {
                        n = client.read(&mut up) => (n.unwrap_or(0), true),
                        n = server.read(&mut down) => (n.unwrap_or(0), false),
                    };
                    if frozen.load(Ordering::SeqCst) {
                        std::future::pending::<()>().await;
                    }
                    let written = match passed {
                        (0, _) => return,
                        (n, true) => server.write_all(&up[..n]).await,
                        (n, false) => client.write_all(&down[..n]).await,
                    };
                    if written.is_err() {
                        return;
                    }
                }
            });
        }
    });
    address
}

#[tokio::test]
async fn a_connection_that_goes_silent_gives_an_error_and_then_recovers() {
    let mut bed = bed().await;
    let frozen = Arc::new(AtomicBool::new(false));
    let address = bed.server().address();
    let proxy = freezable(address.clone(), Arc::clone(&frozen)).await;
    let url = bed.url().replace(&address, &proxy);
    let ledger = open(json!({ "postgres": { "url": url } }), impatient(by_id())).unwrap();
    until_found(&ledger).await;
    frozen.store(true, Ordering::SeqCst);
    let error = look(&ledger).await.unwrap_err();
    assert!(error.to_string().contains("gave no sign"), "{error}");
    frozen.store(false, Ordering::SeqCst);
    until_found(&ledger).await;
}

#[tokio::test]
async fn it_leaves_nothing_behind_and_uses_two_connections_at_most() {
    let bed = bed().await;
    let ledger = open(bed.database(), by_id()).unwrap();
    let mut readings = JoinSet::new();
    for _ in 0..40 {
        let ledger = Arc::clone(&ledger);
        readings
            .spawn(async move { ledger.lookup(&ids(&["a"]), &[]).await.map(|lookup| lookup.found.len()) });
    }
    while let Some(found) = ends("the readings", readings.join_next()).await {
        assert_eq!(found.unwrap().unwrap(), 1);
    }
    let mut watcher = PgConnection::connect(bed.url()).await.unwrap();
    let sql = "select state, query from pg_stat_activity where application_name = 'delivery-canary'";
    let sessions = watcher.fetch_all(sql).await.unwrap();
    let states: Vec<String> = sessions.iter().map(|row| row.get("state")).collect();
    assert!((1..=2).contains(&states.len()) && states.iter().all(|state| state == "idle"), "{states:?}");
}

#[tokio::test]
async fn what_a_pooler_would_lose_is_not_relied_on() {
    let bed = bed().await;
    // One query that looks at the session from inside a reading: settings hold for the transaction, and nothing is prepared by name.
    let sql = "select id, status from n where id = any(:ids) and current_setting('transaction_read_only') = 'on'
                 and current_setting('statement_timeout') = '20s' and current_setting('TimeZone') = 'UTC'
                 and current_setting('lock_timeout') = '2s' and current_setting('application_name') = 'delivery-canary'
                 and current_setting('idle_in_transaction_session_timeout') <> '0'
                 and not exists (select from pg_prepared_statements)";
    let ledger = open(bed.database(), with_sql(sql)).unwrap();
    assert_eq!(look(&ledger).await.unwrap(), 1);
    // The same connection is then without them again, and in no transaction.
    let after = "select pid::text as id, 'delivered' as status from pg_stat_activity
                  where application_name = 'delivery-canary' and state <> 'idle' and pid <> pg_backend_pid() and :ids = :ids";
    assert_eq!(look(&open(bed.database(), with_sql(after)).unwrap()).await.unwrap(), 0);
}

#[tokio::test]
async fn a_result_that_does_not_fit_says_which_column() {
    let bed = bed().await;
    for (sql, expected) in [
        (
            "select id as identity, status from n where id = any(:ids)",
            "column `id`: the result has no such column; it has: identity, status",
        ),
        ("select id, id, status from n where id = any(:ids)", "two columns of this name"),
        ("select jsonb_build_array(id) as id, status from n where id = any(:ids)", "cast it to text"),
        ("select id, array[status] as status from n where id = any(:ids)", "can't be a status"),
    ] {
        let error = look(&open(bed.database(), with_sql(sql)).unwrap()).await.unwrap_err();
        assert_eq!(error.word(), "shape", "{sql}");
        assert!(error.to_string().contains(expected), "{sql}: {error}");
    }
}

#[tokio::test]
async fn a_lookup_that_was_cut_is_an_error() {
    let bed = bed().await;
    bed.execute("insert into n select 'x' || i, 'delivered' from generate_series(1, 50) i").await;
    for sql in [
        "select id, status from n where :ids = :ids limit :limit",
        "select id, status from n where :ids = :ids",
    ] {
        let mut fields = with_sql(sql);
        fields["max_rows"] = json!(10);
        let error = look(&open(bed.database(), fields).unwrap()).await.unwrap_err();
        assert!(error.to_string().contains("would look absent"), "{error}");
    }
}

#[tokio::test]
async fn an_error_holds_no_value_of_the_ledgers_and_no_password() {
    let bed = bed().await;
    bed.execute("update n set id = 'someone@customer.example'").await;
    let sql = "select id, status from n where id::int = 7 or id = any(:ids)";
    let error = look(&open(bed.database(), with_sql(sql)).unwrap()).await.unwrap_err();
    assert!(error.to_string().contains("SQLSTATE 22P02"), "{error}");
    assert!(!format!("{error} {error:?}").contains("customer"), "{error}");
    let url = bed.url().replace("postgres@", "postgres:s3cr3t@").replace("/test_0", "/nowhere");
    let error = look(&open(json!({ "postgres": { "url": url } }), by_id()).unwrap()).await.unwrap_err();
    assert!(!format!("{error} {error:?}").contains("s3cr3t"), "{error}");
    let error =
        open(json!({ "postgres": { "url": "postgres://a:s3cr3t@host:port/x" } }), by_id()).err().unwrap();
    assert!(!format!("{error} {error:?}").contains("s3cr3t"), "{error}");
}

#[tokio::test]
async fn a_poisoned_search_path_or_zone_changes_nothing() {
    let bed = bed().await;
    let sql =
        "do $$ begin execute format('alter database %I set timezone = ''Asia/Tokyo''', current_database());
               execute format('alter database %I set datestyle = ''German''', current_database()); end $$";
    let mut owner = PgConnection::connect(bed.url()).await.unwrap();
    sqlx::raw_sql(AssertSqlSafe(sql)).execute(&mut owner).await.unwrap();
    let ledger = open(bed.database(), by_id()).unwrap();
    assert_eq!(look(&ledger).await.unwrap(), 1);
    let skew = ledger.stats().figures().skew.unwrap();
    assert!(skew.abs() < chrono::TimeDelta::seconds(60), "{skew}");
}

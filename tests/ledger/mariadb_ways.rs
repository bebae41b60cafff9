//! A MariaDB ledger with everything in the way: each time an error that says so, in time, and afterwards it is used again.

use super::{
    following::{all_notifications, follow, notifications},
    support::{Bed, ends, ids, open, simple_lookup, until},
};
use delivery_canary::ledger::{LedgerAdapter, LedgerError, LedgerReader, flow::FlowReader};
use serde_json::{Value, json};
use sqlx::{AssertSqlSafe, Connection, Executor, MySqlConnection};
use std::sync::Arc;
use tokio::{net::TcpListener, task::JoinSet};

/// A server with a table of one delivered notification.
pub async fn bed() -> Bed {
    let bed = Bed::mariadb().await;
    bed.execute(
        "create table n (id varchar(64) primary key, status text not null); insert into n values ('a', 'delivered')",
    )
    .await;
    bed
}

pub fn by_id() -> Value {
    json!({ "lookup": simple_lookup("id in (:ids)"), "statement_timeout": "20s" })
}

pub fn with_sql(sql: &str) -> Value {
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

pub async fn look(ledger: &LedgerAdapter) -> Result<usize, LedgerError> {
    ends("a lookup", ledger.lookup(&ids(&["a"]), &[])).await.map(|lookup| lookup.found.len())
}

async fn until_found(ledger: &LedgerAdapter) {
    until("a good reading", async || {
        look(ledger).await.map(|found| assert_eq!(found, 1)).map_err(|e| e.to_string())
    })
    .await;
}

/// The URL of a user that can log in and do nothing.
pub async fn reader(bed: &Bed) -> String {
    let Bed::Mariadb { server, url } = bed else { unreachable!() };
    // A user that may not read the database may not log into it either.
    server.execute("mysql", "create database lobby").await;
    let role = server.role("reader", url).await;
    bed.execute("create table lobby_key (id int); grant select on lobby_key to reader@'127.0.0.1'").await;
    role
}

#[tokio::test]
async fn a_missing_grant_is_an_error_that_names_it() {
    let bed = bed().await;
    let ledger = open(json!({ "mysql": { "url": reader(&bed).await } }), by_id()).unwrap();
    let error = look(&ledger).await.unwrap_err();
    assert_eq!((error.word(), ledger.stats().figures().last_error), ("denied", Some("denied")));
    assert!(error.to_string().contains("grant SELECT"), "{error}");
    bed.execute("grant select (id) on n to reader@'127.0.0.1'").await;
    assert_eq!(look(&ledger).await.unwrap_err().word(), "denied");
    bed.execute("grant select on n to reader@'127.0.0.1'").await;
    until_found(&ledger).await;
}

#[tokio::test]
async fn a_server_that_stops_is_used_again_when_it_is_back() {
    let mut bed = bed().await;
    let ledger = open(bed.database(), by_id()).unwrap();
    assert_eq!(look(&ledger).await.unwrap(), 1);
    let Bed::Mariadb { server, .. } = &mut bed else { unreachable!() };
    server.stop();
    assert_eq!(look(&ledger).await.unwrap_err().word(), "unreachable");
    server.start_again();
    until_found(&ledger).await;
    // The kept connection died with a restart between two readings: the next one does not notice.
    server.stop();
    server.start_again();
    until_found(&ledger).await;
}

/// The ids of the monitor's sessions, which are in this state.
async fn sessions(watcher: &mut MySqlConnection, condition: &str) -> Vec<i64> {
    let sql = format!(
        "select cast(id as signed) from information_schema.processlist where id <> connection_id() and user = 'root' and {condition}"
    );
    sqlx::query_scalar(AssertSqlSafe(sql)).fetch_all(watcher).await.unwrap()
}

async fn kill(watcher: &mut MySqlConnection, session: i64) {
    sqlx::raw_sql(AssertSqlSafe(format!("kill {session}"))).execute(watcher).await.unwrap();
}

#[tokio::test]
async fn a_kept_connection_that_was_ended_costs_no_reading() {
    let bed = bed().await;
    let ledger = open(bed.database(), by_id()).unwrap();
    assert_eq!(look(&ledger).await.unwrap(), 1);
    let mut watcher = MySqlConnection::connect(bed.url()).await.unwrap();
    for session in sessions(&mut watcher, "command = 'Sleep'").await {
        kill(&mut watcher, session).await;
    }
    assert_eq!(look(&ledger).await.unwrap(), 1);
    assert_eq!(ledger.stats().figures().failures, 0);
}

#[tokio::test]
async fn a_locked_table_gives_an_error_and_then_recovers() {
    let bed = bed().await;
    let ledger = open(bed.database(), by_id()).unwrap();
    let mut holder = MySqlConnection::connect(bed.url()).await.unwrap();
    holder.execute(sqlx::raw_sql("lock tables n write")).await.unwrap();
    let error = look(&ledger).await.unwrap_err();
    assert!(error.to_string().contains("a lock that somebody else holds"), "{error}");
    holder.execute(sqlx::raw_sql("unlock tables")).await.unwrap();
    assert_eq!(look(&ledger).await.unwrap(), 1);
}

#[tokio::test]
async fn a_slow_statement_is_ended_by_the_server() {
    let bed = bed().await;
    let sql = "select id, status from n where id in (:ids) and sleep(3600) = 0";
    let ledger = open(bed.database(), impatient(with_sql(sql))).unwrap();
    let error = look(&ledger).await.unwrap_err();
    assert!(error.to_string().contains("the statement took too long"), "{error}");
    let mut watcher = MySqlConnection::connect(bed.url()).await.unwrap();
    until("the end of the statement", async || {
        match sessions(&mut watcher, "command <> 'Sleep'").await.len() {
            0 => Ok(()),
            n => Err(format!("{n} busy sessions")),
        }
    })
    .await;
}

#[tokio::test]
async fn what_writes_in_the_users_sql_is_refused() {
    let bed = bed().await;
    bed.execute(
        "create function f() returns varchar(9) modifies sql data begin delete from n; return 'x'; end",
    )
    .await;
    bed.execute("create sequence s").await;
    for sql in [
        "select f() as id, 'x' as status from dual where 'a' in (:ids)",
        "select cast(nextval(s) as char) as id, 'x' as status from dual where 'a' in (:ids)",
    ] {
        let error = look(&open(bed.database(), with_sql(sql)).unwrap()).await.unwrap_err();
        assert!(error.to_string().contains("READ ONLY transaction"), "{sql}: {error}");
    }
    for sql in [
        "delete from n where id in (:ids) returning id, status",
        "select 1 where 1 in (:ids); delete from n",
        "select id, status from n where id in (:ids::text[])",
    ] {
        let error = open(bed.database(), with_sql(sql)).err().unwrap();
        assert_eq!(error.word(), "configuration", "{error}");
    }
    assert_eq!(look(&open(bed.database(), by_id()).unwrap()).await.unwrap(), 1);
}

#[tokio::test]
async fn a_black_hole_gives_an_error() {
    let hole = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("mysql://reader@{}/x", hole.local_addr().unwrap());
    let swallowing = tokio::spawn(async move {
        let mut kept = Vec::new();
        loop {
            kept.push(hole.accept().await.unwrap());
        }
    });
    let error = look(&open(json!({ "mysql": { "url": url } }), by_id()).unwrap()).await.unwrap_err();
    assert_eq!(error.word(), "unreachable", "{error}");
    swallowing.abort();
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
    let mut watcher = MySqlConnection::connect(bed.url()).await.unwrap();
    let prepared = "select cast(variable_value as signed) from information_schema.global_status where variable_name = 'Prepared_stmt_count'";
    // The one is this very statement.
    assert_eq!(sqlx::query_scalar::<_, i64>(prepared).fetch_one(&mut watcher).await.unwrap(), 1);
    let all = sessions(&mut watcher, "true").await.len();
    let idle = sessions(&mut watcher, "command = 'Sleep'").await.len();
    assert!((1..=2).contains(&all) && idle == all, "{all} sessions, {idle} idle");
    let open = "select count(*) from information_schema.innodb_trx";
    assert_eq!(sqlx::query_scalar::<_, i64>(open).fetch_one(&mut watcher).await.unwrap(), 0);
}

#[tokio::test]
async fn the_session_is_as_it_must_be_in_each_reading() {
    let bed = bed().await;
    let sql = "select id, status from n where id in (:ids) and @@tx_read_only = 1 and @@max_statement_time = 20
                 and @@time_zone = '+00:00' and @@lock_wait_timeout = 2 and @@innodb_lock_wait_timeout = 2 and @@wait_timeout = 660
                 and @@idle_transaction_timeout > 0 and @@character_set_results = 'utf8mb4' and 'it\\'s' = \"it's\" # :nothing
                 limit :limit";
    for mode in
        ["", "ansi_quotes,no_backslash_escapes", "strict_trans_tables,no_backslash_escapes,pipes_as_concat"]
    {
        bed.execute(&format!("set global sql_mode = '{mode}'")).await;
        let ledger = open(bed.database(), with_sql(sql)).unwrap();
        assert_eq!(look(&ledger).await.unwrap(), 1, "{mode}");
        let skew = ledger.stats().figures().skew.unwrap();
        assert!(skew.abs() < chrono::TimeDelta::seconds(60), "{skew}");
    }
}

#[tokio::test]
async fn what_is_read_only_must_say_how_far_it_is_behind() {
    let bed = bed().await;
    let url = reader(&bed).await;
    bed.execute("grant select on n to reader@'127.0.0.1'").await;
    let ledger = open(json!({ "mysql": { "url": url } }), by_id()).unwrap();
    // A server that can be written to is taken for no replica.
    assert_eq!(look(&ledger).await.unwrap(), 1);
    assert_eq!(ledger.stats().figures().lag, Some(std::time::Duration::ZERO));
    bed.execute("set global read_only = on").await;
    let error = look(&ledger).await.unwrap_err();
    assert_eq!(error.word(), "unreachable");
    assert!(error.to_string().contains("SLAVE MONITOR"), "{error}");
    bed.execute("set global read_only = off; grant slave monitor on *.* to reader@'127.0.0.1'; set global read_only = on").await;
    // It has no primary: a server that is read-only for another reason.
    let ledger = open(json!({ "mysql": { "url": url } }), by_id()).unwrap();
    assert_eq!(look(&ledger).await.unwrap(), 1);
    // Replication that does not run.
    bed.execute("change master to master_host = '127.0.0.1', master_port = 9, master_user = 'nobody'").await;
    let error = look(&ledger).await.unwrap_err();
    assert!(error.to_string().contains("replication does not run"), "{error}");
    // Promoted, with the old configuration left over.
    bed.execute("set global read_only = off").await;
    assert_eq!(look(&ledger).await.unwrap(), 1);
}

/// A stream that stops at its seventh row for as long as the table `nap` says.
async fn dreamy(bed: &Bed) -> Value {
    bed.execute(
        "set time_zone = '+00:00'; create table nap as select 3600.0 as seconds;
         create table d as select seq as id, cast(now() - interval 1 hour as datetime) as at, 'mail' as route from seq_1_to_9",
    )
    .await;
    let naive = json!({ "name": "at", "time": "naive_utc" });
    let sql = format!(
        "select id, at, route, if(id = 7, sleep((select seconds from nap)), 0) from d where {} order by at, id limit :limit",
        bed.behind("at", "id")
    );
    notifications(&sql, naive)
}

#[tokio::test]
async fn a_session_that_is_killed_in_a_page_is_an_error_and_the_next_page_works() {
    let bed = bed().await;
    let fields = json!({ "notifications": dreamy(&bed).await, "max_rows": 100, "statement_timeout": "60s" });
    let flow = follow(&bed, fields).unwrap();
    let killing = async {
        let mut watcher = MySqlConnection::connect(bed.url()).await.unwrap();
        until("a sleeping session", async || {
            let asleep = sessions(&mut watcher, "state = 'User sleep'").await;
            for session in &asleep {
                kill(&mut watcher, *session).await;
            }
            if asleep.is_empty() { Err("nobody sleeps".to_owned()) } else { Ok(()) }
        })
        .await;
    };
    let (page, ()) = tokio::join!(ends("a page", flow.notifications_page(None, None)), killing);
    assert_eq!(page.unwrap_err().word(), "unreachable");
    bed.execute("update nap set seconds = 0").await;
    assert_eq!(all_notifications(&flow).await.len(), 9);
}

#[tokio::test]
async fn a_page_that_takes_too_long_is_ended_and_the_next_one_works() {
    let bed = bed().await;
    let fields =
        json!({ "notifications": dreamy(&bed).await, "max_rows": 100, "statement_timeout": "700ms" });
    let flow = follow(&bed, fields).unwrap();
    let error = ends("a page", flow.notifications_page(None, None)).await.unwrap_err();
    assert!(error.to_string().contains("the statement took too long"), "{error}");
    bed.execute("update nap set seconds = 0").await;
    until("a page", async || match flow.notifications_page(None, None).await {
        Ok(page) if page.rows.len() == 9 => Ok(()),
        Ok(page) => Err(format!("{} rows", page.rows.len())),
        Err(error) => Err(error.to_string()),
    })
    .await;
}

//! The follower of one ledger, with something in its way.

use super::{
    bed::{Database, load, run},
    jobs::EAST,
    pgbouncer::PgBouncer,
    postgres::Postgres,
    switch::Switch,
    watch::Watch,
};
use delivery_canary::{
    config::{Loaded, ledger::LedgerDatabase, scalar::Secret},
    domain::{
        outcome::Disposition,
        route::{IdempotencyKey, NotificationId},
    },
    ledger::{self, LedgerReader},
    monitor::flow::PassError,
};
use sqlx::Row;
use std::{
    collections::BTreeMap,
    process::Command,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};
use tokio::task::JoinSet;

const NEW_JOB: &str =
    "insert into jobs (queue, created) values ('receipts', extract(epoch from clock_timestamp()))";

/// The example with both of its ledgers at one address.
async fn example(url: &str) -> Loaded {
    load("decimal_epochs", &[("LEDGER_EAST_URL", url), ("LEDGER_WEST_URL", url)]).await
}

/// A connection's state, but for the looker's own and the server's.
async fn sessions(database: &Database) -> Vec<String> {
    let mut connection = database.connect().await;
    let sql = "select coalesce(state, '?') from pg_stat_activity where usename = 'canary_reader'";
    let rows = sqlx::query(sql).fetch_all(&mut connection).await.expect("sessions can be seen");
    rows.iter().map(|row| row.get(0)).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn all_of_it_works_behind_a_pooler_in_transaction_mode() {
    let server = Postgres::start();
    let (database, reader) = Database::on(&server, "decimal_epochs").await;
    let pooler = PgBouncer::start(&server.address(), &["canary_reader"]);
    // The example's check is made through the pooler too.
    let loaded = example(&reader.replace(&server.address(), &pooler.address)).await;

    let most = Arc::new(AtomicUsize::new(0));
    let watching = tokio::spawn({
        let (database, most) = (database.clone(), Arc::clone(&most));
        async move {
            loop {
                most.fetch_max(sessions(&database).await.len(), Ordering::SeqCst);
            }
        }
    });
    let adapter = ledger::open("east", &loaded.config.ledgers["east"]).expect("the ledger can be read");
    let mut readings = JoinSet::new();
    for _ in 0..20 {
        let adapter = Arc::clone(&adapter);
        readings.spawn(async move {
            let (ids, keys) = ([NotificationId::from_text("12")], [IdempotencyKey::from_text("j20")]);
            let found = adapter.lookup(&ids, &keys).await.expect("the lookup works").found;
            let snapshot = adapter.pending(&BTreeMap::new()).await.expect("the pending query works");
            (found.into_iter().map(|found| found.row.disposition).collect::<Vec<_>>(), snapshot)
        });
    }
    while let Some(done) = readings.join_next().await {
        let (found, snapshot) = done.expect("a reading comes to its end");
        assert_eq!(found, [Disposition::Delivered; 2]);
        assert!(snapshot.at_least().other.unattempted > 0, "{snapshot:?}");
    }
    drop(adapter);
    // Pages of both streams, lookups and the exact count.
    let mut watch = Watch::new(&loaded, "east").await;
    watch.until_agreed("the history through the pooler", &database, &EAST).await;
    database.execute(NEW_JOB).await;
    watch.until_agreed("what is new through the pooler", &database, &EAST).await;
    watching.abort();
    let most = most.load(Ordering::SeqCst);
    assert!((1..=2).contains(&most), "{most} sessions at once; the pooler's log:\n{}", pooler.log());
    let left = sessions(&database).await;
    assert!(left.iter().all(|state| state == "idle"), "{left:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn one_follower_uses_two_connections_at_most_and_holds_nothing_open() {
    let server = Postgres::start();
    let (database, reader) = Database::on(&server, "decimal_epochs").await;
    let loaded = example(&reader).await;
    let mut watch = Watch::new(&loaded, "east").await;
    for _ in 0..5 {
        database.execute(NEW_JOB).await;
        watch.until_agreed("new jobs", &database, &EAST).await;
        let states = sessions(&database).await;
        assert!((1..=2).contains(&states.len()) && states.iter().all(|state| state == "idle"), "{states:?}");
    }
}

/// The caps of canaries are tried in `kinds.rs`.
#[tokio::test(flavor = "multi_thread")]
async fn trial_26_however_much_is_pending_a_pass_reads_no_more_than_it_may() {
    let server = Postgres::start();
    let (database, reader) = Database::on(&server, "decimal_epochs").await;
    let mut loaded = example(&reader).await;
    for ledger in loaded.config.ledgers.values_mut() {
        ledger.reread.per_refresh = 20;
    }
    let backlog = "insert into jobs (queue, created)
                   select 'receipts', extract(epoch from clock_timestamp()) - 600 - g * 0.01 from generate_series(1, 3000) g";
    database.execute(backlog).await;
    let mut watch = Watch::new(&loaded, "east").await;
    watch.until_agreed("a large backlog", &database, &EAST).await;
    // Nothing is new and nothing is open: a slice of the pending is looked up, each with all its attempts.
    for _ in 0..10 {
        let before = watch.figures();
        let passed = watch.try_pass().await.expect("a pass succeeds");
        let after = watch.figures();
        let (reads, rows) = (after.reads - before.reads, after.rows_read - before.rows_read);
        assert_eq!((passed.rows, passed.is_end), (0, true));
        assert!((20..=100).contains(&rows) && reads <= 4, "{rows} rows in {reads} readings");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failover_to_another_server_is_followed_from_where_it_was() {
    let mut first = Postgres::start();
    let (before, reader) = Database::on(&first, "decimal_epochs").await;
    let switch = Switch::to(&first.address()).await;
    let loaded = example(&reader.replace(&first.address(), &switch.address)).await;
    let mut watch = Watch::new(&loaded, "east").await;
    watch.until_agreed("the history", &before, &EAST).await;

    let second = Postgres::start();
    let after = Database { url: second.url("test_0") };
    second.fresh_database().await;
    second.role("canary_reader", &after.url).await;
    copy(&before, &after);
    first.stop();
    assert_eq!(failure(&mut watch).await, "unreachable");
    switch.lead_to(None);
    assert_eq!(failure(&mut watch).await, "unreachable");
    switch.lead_to(Some(&second.address()));
    after.execute(NEW_JOB).await;
    watch.until_agreed("the other server", &after, &EAST).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lock_a_limit_and_a_killed_backend_cost_a_pass_and_no_figure() {
    let server = Postgres::start();
    let (database, reader) = Database::on(&server, "decimal_epochs").await;
    let mut loaded = example(&reader).await;
    for ledger in loaded.config.ledgers.values_mut() {
        ledger.statement_timeout = delivery_canary::config::scalar::Span::seconds(2);
    }
    let mut watch = Watch::new(&loaded, "east").await;
    watch.until_agreed("the history", &database, &EAST).await;

    let mut holder = database.connect().await;
    for table in ["jobs", "runs"] {
        run(&mut holder, &format!("begin; lock table {table} in access exclusive mode")).await;
        assert_eq!(failure(&mut watch).await, "timeout", "{table}");
        run(&mut holder, "rollback").await;
        database.execute(NEW_JOB).await;
        watch.until_agreed("after the lock", &database, &EAST).await;
    }

    // A policy makes each reading of the table take longer than it may.
    database
        .execute(
            "create policy slow on runs for select to canary_reader using ((select pg_sleep(60))::text = '');
             alter table runs enable row level security",
        )
        .await;
    assert_eq!(failure(&mut watch).await, "timeout");
    database.execute("alter table runs disable row level security; drop policy slow on runs").await;
    watch.until_agreed("after the limit", &database, &EAST).await;

    for _ in 0..3 {
        database
            .execute("select pg_terminate_backend(pid) from pg_stat_activity where usename = 'canary_reader'")
            .await;
        database.execute(NEW_JOB).await;
        watch.until_agreed("after the backend's end", &database, &EAST).await;
    }
    assert!(sessions(&database).await.iter().all(|state| state == "idle"));
}

#[tokio::test(flavor = "multi_thread")]
async fn who_could_write_can_not_write_through_the_follower() {
    let server = Postgres::start();
    let (database, reader) = Database::on(&server, "decimal_epochs").await;
    let mut loaded = example(&reader).await;
    database
        .execute(
            "create table touched (at timestamptz);
             create function touch() returns boolean language plpgsql volatile as $$
               begin insert into touched values (now()); return true; end $$",
        )
        .await;
    let ledger = loaded.config.ledgers.get_mut("east").expect("the ledger");
    // The owner, a superuser.
    let LedgerDatabase::Postgres(postgres) = &mut ledger.database else {
        panic!("the example is one of PostgreSQL")
    };
    postgres.url = Secret::new(database.url.clone());
    let adapter = ledger::open("east", ledger).expect("the ledger can be read");
    let rights = adapter.check_role().await.expect("the rights can be read");
    assert_eq!(
        (rights.level, adapter.stats().figures().role_can_write),
        (ledger::check::Level::Warn, Some(true))
    );

    let notifications = ledger.notifications.as_mut().expect("it is followed");
    notifications.sql = notifications.sql.replace("where ", "where touch() and ");
    let mut watch = Watch::new(&loaded, "east").await;
    let error = watch.try_pass().await.err().expect("it can't write").to_string();
    assert!(error.contains("read-only transaction"), "{error}");
    let mut connection = database.connect().await;
    let count: i64 = sqlx::query("select count(*) from touched")
        .fetch_one(&mut connection)
        .await
        .expect("it counts")
        .get(0);
    assert_eq!(count, 0);
}

/// Makes a pass that can't succeed. The follower is then made anew from what was kept.
async fn failure(watch: &mut Watch) -> &'static str {
    match watch.try_pass().await {
        Err(PassError::Ledger(error) | PassError::Reread(error)) => error.word(),
        Err(error) => panic!("{error}"),
        Ok(passed) => panic!("a pass of {} rows succeeded", passed.rows),
    }
}

/// Copies one database into another, empty one.
fn copy(from: &Database, to: &Database) {
    let pipe = r#"PATH="$PATH:$(echo /usr/lib/postgresql/*/bin | tr ' ' ':')"; pg_dump -d "$0" | psql -qX -v ON_ERROR_STOP=1 -d "$1""#;
    let done = Command::new("/bin/sh").args(["-c", pipe, &from.url, &to.url]).output();
    let done = done.expect("/bin/sh can be started");
    assert!(done.status.success(), "pg_dump and psql: {}", String::from_utf8_lossy(&done.stderr));
}

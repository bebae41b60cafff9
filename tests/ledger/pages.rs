//! Pages follow each other without a gap and without a repeat, whatever ids and times a ledger has.

use super::{
    following::{all_notifications, follow, notifications, text},
    support::{Bed, ends, sqlite, until},
};
use chrono::{TimeDelta, Utc};
use delivery_canary::{
    domain::{
        flow::rows::{RouteNo, Standing},
        pending::Tried,
    },
    ledger::flow::FlowReader,
};
use serde_json::{Value, json};
use sqlx::{AssertSqlSafe, Connection, MySqlConnection, PgConnection, Row};

/// Twenty-three rows in groups of five of one time, an hour ago, with ids in no order.
const POSTGRES_ROWS: &str = "
    create type colour as enum ('blue');
    create domain label as text;
    create table n as
        select md5(g::text)::uuid as u, (g * 7919 % 1000)::bigint as big, (g * 7919 % 1000)::int as small,
               md5(g::text) as ksuid, md5(g::text)::varchar(40) as vc, md5(g::text)::label as dom, (g * 7919 % 1000)::numeric as num,
               'p/' || (g * 7919 % 1000) as composite, (g * 7919 % 1000)::text as digits,
               at as tz, at at time zone 'UTC' as naive, at at time zone 'Europe/Berlin' as berlin,
               to_char(at at time zone 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.US\"Z\"') as iso,
               floor(extract(epoch from at))::int as s, floor(extract(epoch from at) * 1000)::bigint as ms,
               extract(epoch from at)::numeric(20, 6) as dec, extract(epoch from at)::float8 as f, 'mail' as route
          from (select g, date_trunc('second', now()) - interval '1 hour' + (g / 5) * interval '1.000001 seconds' as at
                  from generate_series(0, 22) as g) as rows";

fn forms() -> Vec<(&'static str, Value)> {
    let declared = |time: &str| json!({ "name": "at", "time": time });
    vec![
        ("tz", json!("at")),
        ("naive", declared("naive_utc")),
        ("berlin", json!({ "name": "at", "time": "naive_local", "zone": "Europe/Berlin" })),
        ("iso", declared("iso")),
        ("s", declared("epoch_seconds")),
        ("ms", declared("epoch_millis")),
        ("dec", declared("epoch_seconds")),
        ("f", declared("epoch_seconds")),
    ]
}

async fn expected(bed: &Bed, id: &str, order: &str) -> Vec<String> {
    let sql = format!("select cast({id} as text) as shown from n order by {order}");
    match bed {
        Bed::Postgres { url, .. } => {
            let mut connection = PgConnection::connect(url).await.unwrap();
            let rows = sqlx::query(AssertSqlSafe(sql)).fetch_all(&mut connection).await.unwrap();
            rows.iter().map(|row| row.get("shown")).collect()
        }
        Bed::Mariadb { url, .. } => {
            let mut connection = MySqlConnection::connect(url).await.unwrap();
            let sql = format!("select {} as shown from n order by {order}", as_text(id));
            let rows = sqlx::query(AssertSqlSafe(sql)).fetch_all(&mut connection).await.unwrap();
            rows.iter().map(|row| row.get("shown")).collect()
        }
        Bed::Sqlite { .. } => {
            let mut connection = sqlite(&bed.path()).await;
            let rows = sqlx::query(AssertSqlSafe(sql)).fetch_all(&mut connection).await.unwrap();
            rows.iter().map(|row| row.get("shown")).collect()
        }
    }
}

/// A column of a MariaDB table as text: the bytes of a UUID as it is written.
fn as_text(id: &str) -> String {
    if id == "b" {
        "insert(insert(insert(insert(lower(hex(b)), 9, 0, '-'), 14, 0, '-'), 19, 0, '-'), 24, 0, '-')".into()
    } else {
        format!("cast({id} as char character set utf8mb4)")
    }
}

pub async fn pages_of(bed: &Bed, id: &str, at: &str, form: &Value) {
    let sql = format!(
        "select {id} as id, {at} as at, route from n where {} order by {at}, {id} limit :limit",
        bed.behind(at, id)
    );
    let flow = follow(bed, json!({ "notifications": notifications(&sql, form.clone()) })).unwrap();
    let rows = all_notifications(&flow).await;
    let ids: Vec<String> =
        rows.iter().map(|seen| text(&seen.row.as_ref().unwrap().unit.notification)).collect();
    assert_eq!(ids, expected(bed, id, &format!("{at}, {id}")).await, "{id} by {at}");
    let ago = |at: chrono::DateTime<Utc>| (Utc::now() - at - TimeDelta::hours(1)).abs();
    for seen in &rows {
        let row = seen.row.as_ref().unwrap();
        assert_eq!((seen.at, row.route), (Some(row.due), RouteNo(0)), "{id} by {at}");
        assert!(ago(row.due) < TimeDelta::minutes(10), "{id} by {at}: {}", row.due);
    }
}

#[tokio::test]
async fn postgres_pages_have_no_gap_and_no_repeat_in_any_type() {
    let bed = Bed::postgres().await;
    bed.execute(POSTGRES_ROWS).await;
    for (at, form) in forms() {
        pages_of(&bed, "u", at, &form).await;
    }
    for id in ["big", "small", "ksuid", "vc", "dom", "num", "composite", "digits"] {
        pages_of(&bed, id, "tz", &json!("at")).await;
    }
}

#[tokio::test]
async fn sqlite_pages_have_no_gap_and_no_repeat_in_any_type() {
    let bed = Bed::sqlite();
    bed.execute(
        "create table n (id integer, ksuid text, iso text, naive text, s integer, real real, ms integer, route text);
         with recursive g(g) as (select 0 union all select g + 1 from g where g < 22),
              rows as (select g, unixepoch('now') - 3600 + g / 5 as s from g)
         insert into n select g * 7919 % 1000, lower(hex(g * 7919 % 1000)), strftime('%Y-%m-%dT%H:%M:%SZ', s, 'unixepoch'),
                              datetime(s, 'unixepoch'), s, s + 0.25, s * 1000, 'mail' from rows",
    )
    .await;
    let declared = |time: &str| json!({ "name": "at", "time": time });
    for (at, form) in [
        ("iso", json!("at")),
        ("iso", declared("iso")),
        ("naive", declared("naive_utc")),
        ("s", declared("epoch_seconds")),
        ("real", declared("epoch_seconds")),
        ("ms", declared("epoch_millis")),
    ] {
        pages_of(&bed, "id", at, &form).await;
        pages_of(&bed, "ksuid", at, &form).await;
    }
}

pub async fn a_cursor_by_id_alone(bed: &Bed, ids: &[&str], cast: &str) {
    for id in ids {
        let sql = format!(
            "select {id} as id, tz as at, route from n where {id} > :after_id{cast} order by {id} limit :limit"
        );
        let mut stream = notifications(&sql, json!("at"));
        stream["cursor"] = json!({ "id": "id" });
        let rows = all_notifications(&follow(bed, json!({ "notifications": stream })).unwrap()).await;
        let ids: Vec<String> =
            rows.iter().map(|seen| text(&seen.row.as_ref().unwrap().unit.notification)).collect();
        assert_eq!(ids, expected(bed, id, id).await, "{id}");
        assert!(rows.iter().all(|seen| seen.at.is_none()), "{id}");
    }
}

#[tokio::test]
async fn a_cursor_may_be_an_id_alone() {
    let bed = Bed::postgres().await;
    bed.execute(POSTGRES_ROWS).await;
    a_cursor_by_id_alone(&bed, &["u", "big", "small", "ksuid", "vc", "num", "composite"], "").await;
    for (id, cast) in [("u", "::uuid"), ("big", "::bigint"), ("small", "::int"), ("ksuid", "::text")] {
        a_cursor_by_id_alone(&bed, &[id], cast).await;
    }
    let bed = Bed::sqlite();
    bed.execute(
        "create table n (id integer, ksuid text, tz text, route text);
         with recursive g(g) as (select -3 union all select g + 1 from g where g < 19)
         insert into n select g * 7919, lower(hex(g * 7919)), strftime('%Y-%m-%dT%H:%M:%SZ', 'now'), 'mail' from g",
    )
    .await;
    a_cursor_by_id_alone(&bed, &["id", "ksuid"], "").await;
}

#[tokio::test]
async fn the_first_read_goes_back_as_far_as_it_is_told() {
    let bed = Bed::postgres().await;
    bed.execute(
        "create table n as select g as id, now() - g * interval '1 hour' + interval '30 minutes' as at, 'sms' as route from generate_series(1, 60) as g",
    )
    .await;
    let sql = "select * from n where (at, id) > (:after_ts, :after_id) order by at, id limit :limit";
    let flow = |fields: Value| {
        let mut all = json!({ "notifications": notifications(sql, json!("at")), "history": "1d" });
        all.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        follow(&bed, all).unwrap()
    };
    let rows = all_notifications(&flow(json!({}))).await;
    assert_eq!(rows.len(), 24);
    assert!(rows.iter().all(|seen| seen.row.as_ref().unwrap().route == RouteNo(1)));
    // With `:from_ts` a cursor by id alone has an end in the past too, and `:until_ts` ends a stream before now.
    let by_id = json!({
        "sql": "select * from n where id > :after_id and at >= :from_ts and at < :until_ts order by id limit :limit",
        "columns": { "notification_id": "id", "accepted_at": "at", "route": "route" },
        "cursor": { "id": "id" },
        "routes": { "sms": "sms/codes" },
    });
    let flow = flow(json!({ "notifications": by_id, "max_rows": 100 }));
    let page = flow.notifications_page(None, None).await.unwrap();
    assert_eq!((page.rows.len(), page.is_full, page.refused), (24, false, 0));
    assert!((page.database_now - Utc::now()).abs() < TimeDelta::minutes(5) && page.lag.is_zero());
    let until = Utc::now() - TimeDelta::minutes(300);
    assert_eq!(flow.notifications_page(None, Some(until)).await.unwrap().rows.len(), 19);
}

#[tokio::test]
async fn rows_out_of_order_or_of_one_place_are_an_error_that_says_so() {
    let bed = Bed::postgres().await;
    bed.execute(
        "create table n as select g as id, g / 2 as pair, now() - interval '1 hour' + (g % 3) * interval '1 second' as at, 'mail' as route
           from generate_series(1, 9) as g",
    )
    .await;
    let behind = "where (at, id) > (:after_ts, :after_id)";
    for (sql, word) in [
        (format!("select id, at, route from n {behind} order by id limit :limit"), "not in the order of the cursor"),
        (format!("select id, at, route from n {behind} order by at desc, id limit :limit"), "not in the order of the cursor"),
        (
            "select pair as id, max(at) over () as at, route from n where (at, pair) > (:after_ts, :after_id) order by pair limit :limit".into(),
            "the same place",
        ),
        (format!("select id, null::timestamptz as at, route from n {behind} limit :limit"), "have no place"),
        (format!("select id::float8 / 3 as id, at, route from n {behind} order by at, id limit :limit"), "can't be a cursor's id"),
        (format!("select id, at, route from n {behind} and no_such_column limit :limit"), "no_such_column"),
    ] {
        let flow = follow(&bed, json!({ "notifications": notifications(&sql, json!("at")) })).unwrap();
        let error = flow.notifications_page(None, None).await.unwrap_err();
        assert!(error.to_string().contains(word), "{sql}: {error}");
    }
    let sql =
        "select id, at, route from n where (at, id) >= (:after_ts, :after_id) order by at, id limit :limit";
    let flow = follow(&bed, json!({ "notifications": notifications(sql, json!("at")) })).unwrap();
    let first = flow.notifications_page(None, None).await.unwrap();
    let error = flow.notifications_page(first.last(), None).await.unwrap_err();
    assert!(error.to_string().contains("not `>=`"), "{error}");
    let mut by_id =
        notifications("select * from n where id > :after_id order by id limit :limit", json!("at"));
    by_id["cursor"] = json!({ "id": "id" });
    let flow = follow(&bed, json!({ "notifications": by_id })).unwrap();
    let error = flow.notifications_page(first.last(), None).await.unwrap_err();
    assert!(error.to_string().contains("another cursor"), "{error}");
}

#[tokio::test]
async fn what_can_not_be_used_of_a_row_is_refused_and_counted() {
    let bed = Bed::postgres().await;
    bed.execute(
        "create table n (seq bigint, id text, at timestamptz, not_before timestamptz, route text, status text, canary boolean, key text);
         insert into n values
           (1, 'a', now(), null, 'mail', 'delivered', false, 'dc-0123456789abcdef0123456789abcdef'),
           (2, null, now(), null, 'mail', null, null, null),
           (3, 'c', null, null, 'mail', null, null, null),
           (4, 'd', '1970-01-01', null, 'mail', null, null, null),
           (5, 'e', now(), 'infinity', 'mail', null, null, null),
           (6, E'f\\n', now(), null, 'mail', null, null, null),
           (7, 'g', now(), now() + interval '2 hours', 'fax', 'wonderful', true, 'dc-abc'),
           (8, 'h', now(), null, null, null, null, null)",
    )
    .await;
    let stream = json!({
        "sql": "select * from n where seq > :after_id order by seq limit :limit",
        "columns": { "notification_id": "id", "accepted_at": "at", "not_before": "not_before", "route": "route", "status": "status",
                     "canary": "canary", "idempotency_key": "key" },
        "cursor": { "id": "seq" },
        "routes": { "mail": "email/receipts", "sms": "sms/codes" },
    });
    let flow = follow(&bed, json!({ "notifications": stream, "max_rows": 100 })).unwrap();
    let page = flow.notifications_page(None, None).await.unwrap();
    assert_eq!((page.rows.len(), page.refused), (8, 5));
    let rows: Vec<_> = page.rows.iter().filter_map(|seen| seen.row.as_ref()).collect();
    let seen: Vec<_> = rows
        .iter()
        .map(|r| (text(&r.unit.notification), r.route.0, r.own, r.is_marked_canary, r.has_canary_key))
        .collect();
    let (never, unknown) = (Standing::Pending(Tried::Never), Standing::Pending(Tried::OutcomeUnknown));
    assert_eq!(
        seen,
        [
            ("a".to_owned(), 0, Some(Standing::Delivered), false, true),
            ("g".to_owned(), 2, Some(unknown), true, false),
            // Without attempts to ask, NULL that is not in the table means that nothing was tried.
            ("h".to_owned(), 2, Some(never), false, false),
        ]
    );
    assert!(rows[1].due > Utc::now() + TimeDelta::hours(1));
    assert_eq!(flow.routes().len(), 2);
}

/// A stream that stops at its seventh row for as long as the table `nap` says.
fn dreamy() -> Value {
    let sql = "select id, at, route, case when id = 7 then pg_sleep((select seconds from nap)) end
                 from n where (at, id) > (:after_ts, :after_id) order by at, id limit :limit";
    notifications(sql, json!("at"))
}

async fn dreamy_bed() -> Bed {
    let bed = Bed::postgres().await;
    bed.execute(
        "create table nap as select 3600::float8 as seconds;
         create table n as select g as id, now() - interval '1 hour' as at, 'mail' as route from generate_series(1, 9) as g",
    )
    .await;
    bed
}

#[tokio::test]
async fn a_backend_that_is_killed_in_a_page_is_an_error_and_the_next_page_works() {
    let bed = dreamy_bed().await;
    let flow =
        follow(&bed, json!({ "notifications": dreamy(), "max_rows": 100, "statement_timeout": "60s" }))
            .unwrap();
    let kill = async {
        let mut watcher = PgConnection::connect(bed.url()).await.unwrap();
        until("a sleeping backend", async || {
            let sql = "select count(pg_terminate_backend(pid)) from pg_stat_activity
                        where application_name = 'delivery-canary' and wait_event = 'PgSleep'";
            match sqlx::query_scalar::<_, i64>(sql).fetch_one(&mut watcher).await.unwrap() {
                0 => Err("nobody sleeps".to_owned()),
                _ => Ok(()),
            }
        })
        .await;
    };
    let (page, ()) = tokio::join!(ends("a page", flow.notifications_page(None, None)), kill);
    assert_eq!(page.unwrap_err().word(), "unreachable");
    bed.execute("update nap set seconds = 0").await;
    assert_eq!(all_notifications(&flow).await.len(), 9);
}

#[tokio::test]
async fn a_page_that_takes_too_long_is_ended_and_the_next_one_works() {
    let bed = dreamy_bed().await;
    let flow =
        follow(&bed, json!({ "notifications": dreamy(), "max_rows": 100, "statement_timeout": "700ms" }))
            .unwrap();
    let error = ends("a page", flow.notifications_page(None, None)).await.unwrap_err();
    assert!(error.to_string().contains("the statement took too long"), "{error}");
    bed.execute("update nap set seconds = 0").await;
    until("a page", async || match flow.notifications_page(None, None).await {
        Ok(page) => {
            assert_eq!(page.rows.len(), 9);
            Ok(())
        }
        Err(error) => Err(error.to_string()),
    })
    .await;
}

//! The truth by id, and the exact count.

use super::{
    following::{all_notifications, any_of, follow, notifications, unit},
    support::Bed,
};
use chrono::{DateTime, TimeDelta, Utc};
use delivery_canary::{
    domain::{
        flow::rows::{LedgerId, RouteNo, Standing, UnitId},
        pending::Tried,
    },
    ledger::flow::FlowReader,
};
use serde_json::{Value, json};

fn stream_of(bed: &Bed, table: &str) -> String {
    format!("select * from {table} where {} order by at, seq limit :limit", bed.behind("at", "seq"))
}

/// Notifications with two destinations and their attempts.
async fn fanned_out(bed: &Bed) -> Value {
    let time = bed.time_type();
    bed.execute(&format!(
        "create table d (seq integer, id integer, dest text, route text, at {time}, not_before {time});
         create table a (seq integer, id integer, dest text, status text, at {time});
         insert into d values (1, 1, 'x', 'mail', '{at}', null), (2, 1, 'y', 'mail', '{at}', '{later}'), (3, 2, 'x', 'sms', '{at}', null);
         insert into a values (1, 1, 'x', 'failed', '{at}'), (2, 1, 'x', 'delivered', '{at}'), (3, 1, 'y', 'bounced', '{at}')",
        at = bed.time(ago(600)),
        later = bed.time(ago(60)),
    ))
    .await;
    let unit = json!({ "notification_id": "id", "destination": "dest" });
    let with = |more: Value| {
        let mut all = unit.clone();
        all.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        all
    };
    let cursor = json!({ "at": "at", "id": "seq" });
    json!({
        "notifications": {
            "sql": stream_of(bed, "d"),
            "columns": with(json!({ "route": "route", "accepted_at": "at", "not_before": "not_before" })),
            "cursor": cursor, "routes": { "mail": "email/receipts", "sms": "sms/codes" },
        },
        "attempts": {
            "sql": stream_of(bed, "a"), "cursor": cursor, "columns": with(json!({ "attempt_id": "seq", "status": "status", "at": "at" })),
        },
        "lookup": {
            "sql": format!(
                "select d.id, d.dest, d.route, d.at, d.not_before, a.seq as attempt, a.status, a.at as started
                   from d left join a on a.id = d.id and a.dest = d.dest where {} limit :limit", any_of(bed, "d.id", "::int[]")),
            "columns": with(json!({ "route": "route", "accepted_at": "at", "not_before": "not_before", "attempt_id": "attempt",
                                    "attempt_status": "status", "attempt_at": "started" })),
        },
    })
}

fn ago(seconds: i64) -> DateTime<Utc> {
    DateTime::from_timestamp(Utc::now().timestamp() - seconds, 0).unwrap()
}

fn to(number: i64, destination: &str) -> UnitId {
    UnitId { notification: LedgerId::Int(number), destination: Some(destination.into()) }
}

async fn each_destination_is_told_apart(bed: Bed) {
    let fields = fanned_out(&bed).await;
    let flow = follow(&bed, fields).unwrap();
    let units: Vec<UnitId> =
        all_notifications(&flow).await.into_iter().map(|seen| seen.row.unwrap().unit).collect();
    assert_eq!(units, [to(1, "x"), to(1, "y"), to(2, "x")]);
    let attempts = flow.attempts_page(None, None).await.unwrap();
    let whose: Vec<UnitId> = attempts.rows.into_iter().map(|seen| seen.row.unwrap().unit).collect();
    assert_eq!(whose, [to(1, "x"), to(1, "x"), to(1, "y")]);

    let truths = flow.truths(&[to(1, "x"), to(2, "x"), to(7, "x"), unit(8)]).await.unwrap();
    assert_eq!(truths.refused, 0);
    let mut found: Vec<_> = truths.found.iter().collect();
    found.sort_by_key(|(unit, _)| (*unit).clone());
    let leaves =
        |unit: &UnitId| -> Vec<Standing> { truths.found[unit].attempts.iter().map(|a| a.leaves).collect() };
    assert_eq!(
        found.iter().map(|(unit, _)| (*unit).clone()).collect::<Vec<_>>(),
        [to(1, "x"), to(1, "y"), to(2, "x")]
    );
    assert_eq!(leaves(&to(1, "x")), [Standing::Pending(Tried::WillRetry), Standing::Delivered]);
    assert_eq!((leaves(&to(1, "y")), leaves(&to(2, "x"))), (vec![Standing::RejectedRecipient], vec![]));
    let (held, sms) = (&truths.found[&to(1, "y")], &truths.found[&to(2, "x")]);
    assert_eq!((held.route, sms.route, held.own), (Some(RouteNo(0)), Some(RouteNo(1)), None));
    let (held, sms) = (held.due.unwrap(), sms.due.unwrap());
    assert_eq!((held - sms).num_seconds(), 540);
    assert!(flow.truths(&[]).await.unwrap().found.is_empty());
}

#[tokio::test]
async fn postgres_tells_destinations_apart() {
    each_destination_is_told_apart(Bed::postgres().await).await;
}

#[tokio::test]
async fn mariadb_tells_destinations_apart() {
    each_destination_is_told_apart(Bed::mariadb().await).await;
}

#[tokio::test]
async fn sqlite_tells_destinations_apart() {
    each_destination_is_told_apart(Bed::sqlite()).await;
}

#[tokio::test]
async fn what_is_too_much_for_one_lookup_is_asked_in_parts() {
    let bed = Bed::postgres().await;
    bed.execute("create table n as select g as id, now() as at, 'mail' as route, 'delivered' as status from generate_series(1, 50) as g")
        .await;
    let mut stream = notifications(
        "select * from n where (at, id) > (:after_ts, :after_id) order by at, id limit :limit",
        json!("at"),
    );
    stream["columns"]["status"] = json!("status");
    let lookup = |condition: &str| {
        json!({ "sql": format!("select id, status from n where {condition} limit :limit"),
                "columns": { "notification_id": "id", "status": "status" } })
    };
    let fields =
        json!({ "notifications": stream, "lookup": lookup("id = any(:ids::bigint[])"), "max_rows": 7 });
    let flow = follow(&bed, fields.clone()).unwrap();
    let units: Vec<UnitId> = (0..100).map(unit).collect();
    let truths = flow.truths(&units).await.unwrap();
    assert_eq!(truths.found.len(), 50);
    assert!(truths.found.values().all(|truth| truth.own == Some(Standing::Delivered) && truth.due.is_none()));
    let mut fields = fields;
    fields["lookup"] = lookup("id = any(:ids::bigint[]) or true");
    let error = follow(&bed, fields).unwrap().truths(&units[..1]).await.unwrap_err();
    assert!(error.to_string().contains("is `:ids` in the condition"), "{error}");
}

pub async fn partition_of(
    bed: &Bed,
    column: &str,
    form: Value,
    from: DateTime<Utc>,
    until: DateTime<Utc>,
) -> (u64, bool) {
    let fields = json!({
        "notifications": notifications(
            &format!("select seq as id, {column} as at, 'mail' as route from n where {} order by {column}, seq limit :limit",
                     bed.behind(column, "seq")),
            form),
        "partition": {
            "sql": format!("select status, count(*) as n from n where {column} >= :from_ts and {column} < :until_ts group by status"),
            "columns": { "status": "status", "count": "n" }, "routes": { "*": "sms/codes" },
        },
        "max_rows": 100,
    });
    let reading = follow(bed, fields).unwrap().partition(from, until).await.unwrap();
    // `email/receipts` and `sms/codes` are the ledger's routes.
    assert!(reading.counts.keys().all(|route| *route == RouteNo(1)), "{reading:?}");
    (reading.counts.values().flat_map(|by| by.values()).sum(), reading.is_exact())
}

#[tokio::test]
async fn the_exact_count_is_bounded_in_the_form_of_the_column() {
    let hour = |hour: u32| format!("2026-03-01T{hour:02}:00:00Z").parse::<DateTime<Utc>>().unwrap();
    let declared = |time: &str| json!({ "name": "at", "time": time });
    let bed = Bed::postgres().await;
    bed.execute(
        "create table n as select g as seq, at as tz, at at time zone 'UTC' as naive, at at time zone 'Europe/Berlin' as berlin,
                to_char(at at time zone 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS\"+00:00\"') as iso, extract(epoch from at)::int as s,
                (extract(epoch from at) * 1000)::bigint as ms, extract(epoch from at)::numeric(20, 6) as dec, 'delivered' as status
           from (select g, '2026-03-01T00:00:00Z'::timestamptz + g * interval '10 minutes' as at from generate_series(0, 143) as g) as rows",
    )
    .await;
    let berlin = json!({ "name": "at", "time": "naive_local", "zone": "Europe/Berlin" });
    for (column, form) in [
        ("tz", json!("at")),
        ("naive", declared("naive_utc")),
        ("berlin", berlin),
        ("iso", declared("iso")),
        ("s", declared("epoch_seconds")),
        ("ms", declared("epoch_millis")),
        ("dec", declared("epoch_seconds")),
    ] {
        assert_eq!(partition_of(&bed, column, form, hour(9), hour(12)).await, (18, true), "{column}");
    }
    let bed = Bed::sqlite();
    bed.execute(
        "create table n (seq integer, iso text, naive text, s integer, status text);
         with recursive g(g) as (select 0 union all select g + 1 from g where g < 143),
              rows as (select g, unixepoch('2026-03-01') + g * 600 as s from g)
         insert into n select g, strftime('%Y-%m-%dT%H:%M:%SZ', s, 'unixepoch'), datetime(s, 'unixepoch'), s, 'delivered' from rows",
    )
    .await;
    for (column, form) in
        [("iso", json!("at")), ("naive", declared("naive_utc")), ("s", declared("epoch_seconds"))]
    {
        assert_eq!(partition_of(&bed, column, form, hour(9), hour(12)).await, (18, true), "{column}");
    }
}

#[tokio::test]
async fn an_hour_that_the_clock_repeats_is_counted_whole_and_said_to_be_doubtful() {
    let bed = Bed::postgres().await;
    bed.execute(
        "create table n as select g as seq, at at time zone 'Europe/Berlin' as berlin, 'delivered' as status
           from (select g, '2026-10-24T22:00:00Z'::timestamptz + g * interval '10 minutes' as at from generate_series(0, 35) as g) as rows",
    )
    .await;
    let berlin = json!({ "name": "at", "time": "naive_local", "zone": "Europe/Berlin" });
    let at = |text: &str| text.parse::<DateTime<Utc>>().unwrap();
    let count = async |from: &str, hours: i64| {
        partition_of(&bed, "berlin", berlin.clone(), at(from), at(from) + TimeDelta::hours(hours)).await
    };
    assert_eq!(count("2026-10-25T00:00:00Z", 1).await, (12, false));
    assert_eq!(count("2026-10-25T01:00:00Z", 1).await, (12, false));
    assert_eq!(count("2026-10-25T00:00:00Z", 2).await, (12, true), "both hours, and nothing but them");
}

#[tokio::test]
async fn the_exact_count_is_by_route_and_standing_and_never_cut() {
    let bed = Bed::sqlite();
    bed.execute(
        "create table n (route text, status text, count integer);
         insert into n values ('mail', 'delivered', 7), ('mail', null, 2), ('mail', 'odd', 1), ('fax', 'failed', 4), ('sms', 'held', 3)",
    )
    .await;
    let partition = |max_rows: u32| {
        let fields = json!({
            "notifications": notifications(
                "select 1 as id, 1 as at, 'x' as route where (1, 1) > (:after_ts, :after_id) limit :limit", json!("at")),
            "partition": {
                "sql": "select * from n where :from_ts < :until_ts limit :limit",
                "columns": { "route": "route", "status": "status", "count": "count" },
                "routes": { "mail": "email/receipts", "sms": "sms/codes" },
            },
            "max_rows": max_rows,
        });
        follow(&bed, fields).unwrap()
    };
    let until = Utc::now();
    let reading = partition(100).partition(until - TimeDelta::hours(1), until).await.unwrap();
    let of = |route: u16, standing| reading.counts[&RouteNo(route)][&standing];
    assert_eq!((of(0, Standing::Delivered), of(0, Standing::Pending(Tried::Never))), (7, 2));
    assert_eq!((of(0, Standing::Pending(Tried::OutcomeUnknown)), of(1, Standing::Suppressed)), (1, 3));
    assert_eq!(of(2, Standing::Pending(Tried::WillRetry)), 4);
    let error = partition(3).partition(until - TimeDelta::hours(1), until).await.unwrap_err();
    assert!(error.to_string().contains("let the query count"), "{error}");
}

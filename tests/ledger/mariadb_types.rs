//! Every kind of id, time and status that MariaDB has, and MySQL with it.

use super::{
    following::{all_notifications, follow, notifications, text},
    lookups::{accepted_at, finds_ids_of, instant, reads_statuses},
    pages::{a_cursor_by_id_alone, pages_of},
    support::{Bed, ids, open, simple_lookup},
    truths::partition_of,
};
use chrono::{DateTime, Utc};
use delivery_canary::{domain::outcome::Disposition, ledger::LedgerReader};
use serde_json::{Value, json};

const UUID: &str = "0193c1a0-0000-7000-8000-00000000000a";

#[tokio::test]
async fn each_kind_of_id_is_found() {
    let bed = Bed::mariadb().await;
    let (quoted, upper) = (format!("'{UUID}'"), UUID.to_uppercase());
    let bytes = format!("unhex(replace('{UUID}', '-', ''))");
    let by_text = "id in (:ids)";
    finds_ids_of(
        &bed,
        &[
            ("bigint", "7", by_text, &["7", UUID, "99999999999999999999"], true),
            ("bigint", "9007199254740993", by_text, &["9007199254740993", "9007199254740992"], true),
            ("bigint unsigned", "18446744073709551615", by_text, &["18446744073709551615"], true),
            ("int unsigned", "4294967295", by_text, &["4294967295"], true),
            ("tinyint unsigned", "200", by_text, &["200"], true),
            (
                "decimal(30)",
                "123456789012345678901234567890",
                "id = cast(:ids as decimal(30))",
                &["123456789012345678901234567890"],
                true,
            ),
            ("uuid", &quoted, by_text, &[UUID, "no uuid", "7"], true),
            ("char(36)", &quoted, by_text, &[UUID], true),
            ("char(36) character set ascii collate ascii_bin", &quoted, by_text, &[UUID], true),
            (
                "varchar(40) collate utf8mb4_bin",
                "'01HZY3'",
                by_text,
                &["01HZY3", "' or 1 = 1 -- ", "\\"],
                true,
            ),
            ("varbinary(40)", "'ntf:1'", by_text, &["ntf:1"], true),
            ("binary(16)", &bytes, "id in (:ids_as_bytes)", &[UUID, "no uuid", "7"], true),
            ("binary(16)", &bytes, "id in (:ids_as_bytes)", &[&upper], true),
            ("binary(16)", &bytes, "id in (:ids_as_bytes)", &["no uuid"], false),
            ("varchar(40)", "'x'", by_text, &["nowhere"], false),
        ],
    )
    .await;
}

#[tokio::test]
async fn many_ids_are_asked_for_at_once_and_none_too() {
    let bed = Bed::mariadb().await;
    bed.execute(
        "create table n (id bigint primary key, status varchar(20)); insert into n select seq, 'delivered' from seq_1_to_3000",
    )
    .await;
    let many: Vec<String> = (1..=2_500).map(|n| n.to_string()).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    let ledger = open(bed.database(), json!({ "lookup": simple_lookup("id in (:ids)") })).unwrap();
    assert_eq!(ledger.lookup(&ids(&many), &[]).await.unwrap().found.len(), 2_500);
    let fields = json!({ "lookup": {
        "sql": "select id, status, concat('dc-', id) as k from n where id in (:ids) or concat('dc-', id) in (:keys) limit :limit",
        "columns": { "notification_id": "id", "status": "status", "idempotency_key": "k" },
    } });
    let ledger = open(bed.database(), fields).unwrap();
    assert_eq!(ledger.lookup(&ids(&["7"]), &[]).await.unwrap().found.len(), 1);
    assert_eq!(ledger.lookup(&[], &super::support::keys(&["dc-8"])).await.unwrap().found.len(), 1);
    let too_many: Vec<String> = (1..=20_001).map(|n| n.to_string()).collect();
    let too_many: Vec<&str> = too_many.iter().map(String::as_str).collect();
    let error = ledger.lookup(&ids(&too_many), &[]).await.unwrap_err();
    assert!(error.to_string().contains("more than 20000"), "{error}");
}

#[tokio::test]
async fn each_kind_of_time_is_read() {
    let bed = Bed::mariadb().await;
    let declared = |time: &str| json!({ "time": time });
    bed.execute(
        "set time_zone = '+00:00';
         create table t (ts timestamp(6) null, dt datetime(6), zero datetime, zero_ts timestamp default '0000-00-00 00:00:00', part datetime);
         set sql_mode = '';
         insert into t values ('2026-11-01 10:00:00.25', '2026-11-01 10:00:00.25', '0000-00-00', '0000-00-00', '2026-00-10 10:00:00')",
    )
    .await;
    for (expression, form) in [
        ("(select ts from t)", Value::Null),
        ("(select dt from t)", declared("naive_utc")),
        (
            "cast('2026-11-01 11:00:00.25' as datetime(6))",
            json!({ "time": "naive_local", "zone": "Europe/Berlin" }),
        ),
        ("'2026-11-01 10:00:00.25+00'", declared("iso")),
        ("'2026-11-01T10:00:00.25Z'", Value::Null),
        ("1793527200250", declared("epoch_millis")),
        ("cast(1793527200250 as unsigned)", declared("epoch_millis")),
        ("cast(1793527200.25 as decimal(20, 6))", declared("epoch_seconds")),
        ("cast(1793527200.25 as double)", declared("epoch_seconds")),
    ] {
        assert_eq!(accepted_at(&bed, expression, form).await, (instant(), 0), "{expression}");
    }
    for (refused, form) in [
        ("(select cast(null as datetime))", declared("naive_utc")),
        ("(select zero from t)", declared("naive_utc")),
        ("(select part from t)", declared("naive_utc")),
        ("(select zero_ts from t)", Value::Null),
        ("cast('9999-12-31 23:59:59.999999' as datetime(6))", declared("naive_utc")),
        ("cast('1970-01-01' as datetime)", declared("naive_utc")),
        ("cast(18446744073709551615 as unsigned)", declared("epoch_seconds")),
        ("9223372036854775807", declared("epoch_seconds")),
        ("1e300", declared("epoch_seconds")),
    ] {
        assert_eq!(accepted_at(&bed, refused, form).await, (None, 1), "{refused}");
    }
}

#[tokio::test]
async fn each_kind_of_status_is_read() {
    use Disposition::{Delivered, Pending, PermanentlyRejected, Suppressed};
    let bed = Bed::mariadb().await;
    bed.execute(
        "create table t (e enum('Done', 'Dead'), f boolean, g tinyint(1), c char(9), vb varbinary(9), s set('a', 'b'), j json);
         insert into t values ('Dead', false, 3, 'x', 'x', 'a,b', '\"x\"')",
    )
    .await;
    let of = |column: &str| format!("(select {column} from t)");
    let booleans = r#"{"true": "delivered", "false": "rejected_service"}"#;
    let numbers = r#"{"1": "delivered", "0": "rejected_service", "3": "suppressed"}"#;
    let (e, f, g, c, vb, s, j) = (of("e"), of("f"), of("g"), of("c"), of("vb"), of("s"), of("j"));
    reads_statuses(
        &bed,
        &[
            ("'DLVD'", r#"{"DLVD": "delivered"}"#, Delivered),
            (&e, r#"{"Done": "delivered", "Dead": "rejected_service"}"#, PermanentlyRejected),
            (&f, booleans, PermanentlyRejected),
            (&f, numbers, PermanentlyRejected),
            (&g, numbers, Suppressed),
            (&c, r#"{"x": "suppressed"}"#, Suppressed),
            (&vb, r#"{"x": "suppressed"}"#, Suppressed),
            (&s, r#"{"a,b": "suppressed"}"#, Suppressed),
            (&j, r#"{"\"x\"": "suppressed"}"#, Suppressed),
            ("200", r#"{"200": "delivered"}"#, Delivered),
            ("-1", r#"{"-1": "rejected_service"}"#, PermanentlyRejected),
            ("null", r#"{"null": "suppressed"}"#, Suppressed),
            ("null", "{}", Pending),
            ("'done'", r#"{"Done": "delivered"}"#, Pending),
        ],
    )
    .await;
}

/// Twenty-three rows in groups of five of one time, an hour ago, with ids in no order.
const ROWS: &str = "
    set time_zone = '+00:00';
    create table n (ksuid char(32), u_text char(36), b binary(16)) as
        select cast(seq * 7919 % 1000 as signed) as big, cast(seq * 7919 % 1000 as unsigned) as unsigned_big,
               cast(18446744073709551615 - seq * 7919 % 1000 as unsigned) as huge,
               cast(seq * 7919 % 1000 as decimal(20)) as num, md5(seq) as ksuid, concat('p/', seq * 7919 % 1000) as composite,
               cast(concat('0193c1a0-0000-7000-8000-', left(md5(seq), 12)) as uuid) as u,
               concat('0193c1a0-0000-7000-8000-', left(md5(seq), 12)) as u_text,
               unhex(concat('0193c1a0000070008000', left(md5(seq), 12))) as b,
               at as naive, convert_tz(at, '+00:00', '+02:00') as plus_two, date_format(at, '%Y-%m-%dT%H:%i:%s.%fZ') as iso,
               cast(floor(unix_timestamp(at)) as signed) as s, cast(floor(unix_timestamp(at) * 1000) as signed) as ms,
               cast(unix_timestamp(at) as decimal(20, 6)) as `dec`, cast(unix_timestamp(at) as double) as f, 'mail' as route
          from (select seq, cast(now() as datetime(6)) - interval 1 hour + interval floor(seq / 5) * 1000001 microsecond as at
                  from seq_0_to_22) as r;
    alter table n add tz timestamp(6) null; update n set tz = naive";

#[tokio::test]
async fn pages_have_no_gap_and_no_repeat_in_any_type() {
    let bed = Bed::mariadb().await;
    bed.execute(ROWS).await;
    let declared = |time: &str| json!({ "name": "at", "time": time });
    for (at, form) in [
        ("tz", json!("at")),
        ("naive", declared("naive_utc")),
        ("plus_two", json!({ "name": "at", "time": "naive_local", "zone": "Etc/GMT-2" })),
        ("iso", declared("iso")),
        ("s", declared("epoch_seconds")),
        ("ms", declared("epoch_millis")),
        ("`dec`", declared("epoch_seconds")),
        ("f", declared("epoch_seconds")),
    ] {
        pages_of(&bed, "big", at, &form).await;
    }
    for id in ["unsigned_big", "huge", "num", "ksuid", "composite", "u", "u_text", "b"] {
        pages_of(&bed, id, "tz", &json!("at")).await;
    }
}

#[tokio::test]
async fn a_cursor_may_be_an_id_alone_in_any_type() {
    let bed = Bed::mariadb().await;
    bed.execute(ROWS).await;
    let all = ["big", "unsigned_big", "huge", "num", "ksuid", "composite", "u", "u_text", "b"];
    a_cursor_by_id_alone(&bed, &all, "").await;
}

#[tokio::test]
async fn a_zero_date_has_no_place_and_is_counted() {
    let bed = Bed::mariadb().await;
    bed.execute(
        "set sql_mode = ''; create table n (id bigint, at datetime);
         insert into n values (1, '0000-00-00'), (2, utc_timestamp() - interval 1 minute), (3, '2026-02-00')",
    )
    .await;
    let naive = json!({ "name": "at", "time": "naive_utc" });
    let sql = "select id, at, 'mail' as route from n where id > :after_id order by id limit :limit";
    let mut stream = notifications(sql, naive);
    stream["cursor"] = json!({ "id": "id" });
    let flow = follow(&bed, json!({ "notifications": stream, "max_rows": 100 })).unwrap();
    let rows = all_notifications(&flow).await;
    assert_eq!(rows.iter().filter(|seen| seen.row.is_none()).count(), 2);
    let whole = rows.iter().find_map(|seen| seen.row.as_ref()).unwrap();
    assert_eq!(text(&whole.unit.notification), "2");
    assert_eq!(
        open(bed.database(), json!({ "lookup": simple_lookup("id in (:ids)") }))
            .unwrap()
            .stats()
            .figures()
            .reads,
        0
    );
}

#[tokio::test]
async fn the_exact_count_is_bounded_in_the_form_of_the_column() {
    let hour = |hour: u32| format!("2026-03-01T{hour:02}:00:00Z").parse::<DateTime<Utc>>().unwrap();
    let declared = |time: &str| json!({ "name": "at", "time": time });
    let bed = Bed::mariadb().await;
    bed.execute(
        "set time_zone = '+00:00';
         create table n as select seq, at as naive, convert_tz(at, '+00:00', '+01:00') as berlin,
                date_format(at, '%Y-%m-%dT%H:%i:%s+00:00') as iso, cast(unix_timestamp(at) as signed) as s,
                cast(unix_timestamp(at) * 1000 as signed) as ms, cast(unix_timestamp(at) as decimal(20, 6)) as `dec`, 'delivered' as status
           from (select seq, cast('2026-03-01' as datetime) + interval seq * 10 minute as at from seq_0_to_143) as r;
         alter table n add tz timestamp null; update n set tz = naive",
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
        ("`dec`", declared("epoch_seconds")),
    ] {
        assert_eq!(partition_of(&bed, column, form, hour(9), hour(12)).await, (18, true), "{column}");
    }
}

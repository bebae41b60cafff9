use super::*;
use crate::ledger::sql::{Parameter, parse};

const TABLES: [(&str, &[&str]); 4] = [
    ("notifications", &["id", "key", "route", "status", "created_at", "send_at", "recipient", "body"]),
    ("attempts", &["id", "notification_id", "status", "created_at", "body", "code"]),
    ("archive", &["id", "key", "route", "status", "created_at", "send_at", "recipient", "body"]),
    ("app.events", &["id", "status", "value"]),
];

fn catalog(table: &TableName) -> Option<Vec<String>> {
    let name = match &table.schema {
        Some(schema) => format!("{schema}.{}", table.name),
        None => table.name.clone(),
    };
    let found = TABLES.iter().find(|(known, _)| *known == name.to_lowercase())?;
    Some(found.1.iter().map(ToString::to_string).collect())
}

/// `table: columns` of each table, in order.
fn uses_in(dialect: Dialect, sql: &str) -> String {
    use Parameter::{AfterId, AfterTs, FromTs, Ids, Keys, Limit, UntilTs};
    let allowed = [AfterTs, AfterId, FromTs, Ids, Keys, Limit, UntilTs];
    let query = parse(sql, dialect, &allowed).unwrap();
    let uses = Names::of(&query).uses(&catalog);
    assert_eq!(uses.unknown, BTreeSet::new(), "{sql}");
    let line = |(table, columns): (&TableName, &BTreeSet<String>)| {
        let columns: Vec<&str> = columns.iter().map(String::as_str).collect();
        format!("{}: {}", table.name, columns.join(" "))
    };
    uses.columns.iter().map(line).collect::<Vec<_>>().join("; ")
}

fn uses(sql: &str) -> String {
    uses_in(Dialect::Postgres, sql)
}

#[test]
fn a_column_is_asked_of_the_table_that_it_is_of() {
    assert_eq!(
        uses(
            "select n.id, a.status from notifications n left join attempts a on a.notification_id = n.id where n.key = any(:keys)"
        ),
        "attempts: notification_id status; notifications: id key"
    );
    assert_eq!(
        uses(
            "select n.route, count(*) as status from notifications as n where \"id\" > :after_id group by 1"
        ),
        "notifications: id route"
    );
    assert_eq!(
        uses("select notifications.id from notifications, attempts where code = 1"),
        "attempts: code; notifications: id"
    );
    assert_eq!(
        uses("select e.value from app.events e where status is distinct from 'x'"),
        "events: status value"
    );
}

#[test]
fn what_is_no_column_is_not_asked_for() {
    for (sql, expected) in [
        ("select count(*) from notifications", "notifications: "),
        (
            "select id as body, extract(epoch from created_at) as recipient from notifications",
            "notifications: created_at id",
        ),
        (
            "select id::text, cast(id as text) from notifications -- body\n where route = 'body' /* recipient */",
            "notifications: id route",
        ),
        ("select $$ body $$ || route from notifications", "notifications: route"),
        (
            "select id from notifications order by created_at desc nulls last limit :limit",
            "notifications: created_at id",
        ),
        (
            "select id from notifications where created_at at time zone 'utc' > :from_ts::timestamp without time zone",
            "notifications: created_at id",
        ),
        (
            "select n.id from notifications n where n.id in (select value from json_each(:ids))",
            "notifications: id",
        ),
    ] {
        assert_eq!(uses(sql), expected, "{sql}");
    }
}

#[test]
fn selects_in_selects_have_names_of_their_own() {
    for (sql, expected) in [
        (
            "select n.route, a.status from notifications n
               left join lateral (select status from attempts where notification_id = n.id order by created_at desc limit 1) a on true",
            "attempts: created_at notification_id status; notifications: id route",
        ),
        // Without a table of its own, the name is that of the select around it.
        (
            "select id from notifications where exists (select from attempts where notification_id = key)",
            "attempts: notification_id; notifications: id key",
        ),
        (
            "with newest as (select route, send_at as at from notifications) select at, status from newest, attempts",
            "attempts: status; notifications: route send_at",
        ),
        (
            "with attempts as (select id, code from attempts) select id, code, status from attempts",
            "attempts: code id",
        ),
        (
            "select id, status from (select id, 'x' as status from notifications union all select id, key from archive) as either
              where (id) > (:after_id)",
            "archive: id key; notifications: id",
        ),
        (
            "(select id from notifications where key = any(:keys)) union all (select id from archive) order by id limit :limit",
            "archive: id; notifications: id key",
        ),
        (
            "select r.code from notifications cross join lateral unnest(array[route]) with ordinality as r (code, n)",
            "notifications: route",
        ),
        (
            "select n.id from (notifications n join attempts a using (id)) where a.code > 1",
            "attempts: code id; notifications: id",
        ),
    ] {
        assert_eq!(uses(sql), expected, "{sql}");
    }
}

#[test]
fn a_star_and_a_row_take_all_and_are_told() {
    let all = "body code created_at id notification_id status";
    for sql in [
        "select * from attempts",
        "select a.* from attempts a",
        "select distinct * from attempts a",
        "select row_to_json(a) from attempts a",
        "select id from (select * from attempts) as t",
        "table attempts",
    ] {
        assert_eq!(uses(sql), format!("attempts: {all}"), "{sql}");
        let query = parse(sql, Dialect::Postgres, &[]).unwrap();
        assert_eq!(Names::of(&query).uses(&catalog).whole.len(), 1, "{sql}");
    }
    assert_eq!(uses("select id * 2 from attempts"), "attempts: id");
}

#[test]
fn each_dialect_has_its_own_quotes_and_folds() {
    assert_eq!(
        uses_in(
            Dialect::Mysql,
            "select `id`, Status from NOTIFICATIONS where route = \"body\" # recipient\n limit :limit"
        ),
        "NOTIFICATIONS: id route status"
    );
    assert_eq!(
        uses_in(Dialect::Sqlite, "select [id], n.\"key\" from Notifications n limit :limit"),
        "Notifications: id key"
    );
    assert_eq!(uses("select ID from Notifications"), "notifications: id");
}

#[test]
fn functions_and_names_of_nothing_are_told() {
    let query = parse("select app.route_of(n.id), x.y from notifications n", Dialect::Postgres, &[]).unwrap();
    let names = Names::of(&query);
    assert!(names.functions().contains(&(Some("app".into()), "route_of".into())));
    assert_eq!(names.uses(&catalog).unknown, BTreeSet::from(["x".to_owned()]));
}

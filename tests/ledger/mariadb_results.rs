//! What results of MariaDB do not fit, and what errors and checks say of them.

use super::{
    following::notifications,
    mariadb_ways::{bed, by_id, look, reader, with_sql},
    support::{open, simple_lookup},
};
use delivery_canary::ledger::check::{Finding, Level};
use serde_json::{Value, json};

#[tokio::test]
async fn a_result_that_does_not_fit_says_which_column() {
    let bed = bed().await;
    for (sql, expected) in [
        (
            "select id as identity, status from n where id in (:ids)",
            "column `id`: the result has no such column; it has: identity, status",
        ),
        ("select id, id, status from n where id in (:ids)", "two columns of this name"),
        ("select point(1, 1) as id, status from n where id in (:ids)", "cast it to text"),
        ("select id, unhex('ff') as status from n where id in (:ids)", "can't be a status"),
    ] {
        let error = look(&open(bed.database(), with_sql(sql)).unwrap()).await.unwrap_err();
        assert_eq!(error.word(), "shape", "{sql}: {error}");
        assert!(error.to_string().contains(expected), "{sql}: {error}");
    }
    bed.execute("insert into n select concat('x', seq), 'delivered' from seq_1_to_50").await;
    let mut fields = with_sql("select id, status from n where id in (:ids) or true limit :limit");
    fields["max_rows"] = json!(10);
    let error = look(&open(bed.database(), fields).unwrap()).await.unwrap_err();
    assert!(error.to_string().contains("would look absent"), "{error}");
}

#[tokio::test]
async fn an_error_holds_no_value_of_the_ledgers_and_no_password() {
    let bed = bed().await;
    bed.execute("update n set id = 'someone@customer.example'").await;
    let sql = "select id, status from n where status in (:ids) or (select release_lock(1 / (id + (select 1 union select 2))))";
    let error = look(&open(bed.database(), with_sql(sql)).unwrap()).await.unwrap_err();
    assert!(!format!("{error} {error:?}").contains("customer"), "{error}");
    let url = bed.url().replace("root@", "root:s3cr3t@");
    let error = look(&open(json!({ "mysql": { "url": url } }), by_id()).unwrap()).await.unwrap_err();
    assert_eq!(error.word(), "unreachable");
    assert!(!format!("{error} {error:?}").contains("s3cr3t"), "{error}");
    let error = open(json!({ "mysql": { "url": "mysql://a:s3cr3t@host:port/x" } }), by_id()).err().unwrap();
    assert!(!format!("{error} {error:?}").contains("s3cr3t"), "{error}");
}

fn told(findings: &[Finding], name: &str) -> Finding {
    findings
        .iter()
        .find(|f| f.name == name)
        .unwrap_or_else(|| panic!("no `{name}` among {findings:#?}"))
        .clone()
}

#[tokio::test]
async fn a_check_says_what_a_first_reading_would_stumble_over() {
    let bed = bed().await;
    let database = json!({ "mysql": { "url": reader(&bed).await } });
    bed.execute(
        "create table big (id bigint primary key, u binary(16) not null unique, status varchar(20), route varchar(20), extra geometry,
                           naive datetime not null default utc_timestamp());
         insert into big (id, u, status, route, naive)
           select seq, unhex(md5(seq)), 'delivered', 'mail', utc_timestamp() - interval seq minute from seq_1_to_20000;
         analyze table big; grant select on big to reader@'127.0.0.1'",
    )
    .await;
    let by = |sql: &str, more: Value| {
        let mut columns = json!({ "notification_id": "id", "status": "status" });
        columns.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        open(database.clone(), json!({ "lookup": { "sql": sql, "columns": columns } })).unwrap()
    };
    let good = by(
        "select id, status from big where id in (:ids) or u in (select u from big where 1 = 0) limit :limit # end",
        json!({}),
    );
    let findings = good.check().await;
    let names: Vec<&str> = findings.iter().map(|f| f.name.as_str()).collect();
    assert_eq!(
        names,
        ["connection", "rights", "lookup query", "lookup columns", "lookup plan", "lookup rows", "clock"]
    );
    let good = by("select id, status from big where id in (:ids) limit :limit # end", json!({}));
    let findings = good.check().await;
    assert!(findings.iter().all(|f| f.level == Level::Ok && f.hint.is_none()), "{findings:#?}");
    assert!(findings[0].detail.starts_with("MariaDB 1"), "{}", findings[0].detail);
    assert_eq!(good.stats().figures().role_can_write, Some(false));
    let bytes = by("select u as id, status from big where u in (:ids_as_bytes) limit :limit", json!({}));
    assert_eq!(told(&bytes.check().await, "lookup plan").detail, "by indexes");
    for (sql, columns, name, level, word) in [
        (
            "select id, state as status from big where id in (:ids)",
            json!({}),
            "lookup query",
            Level::Failed,
            "Unknown column",
        ),
        (
            "select id as x, status from big where id in (:ids)",
            json!({}),
            "lookup columns",
            Level::Failed,
            "it has: x, status",
        ),
        (
            "select id, status, naive from big where id in (:ids)",
            json!({ "accepted_at": "naive" }),
            "lookup columns",
            Level::Failed,
            "naive_utc",
        ),
        (
            "select id, status, extra from big where id in (:ids)",
            json!({ "idempotency_key": "extra" }),
            "lookup columns",
            Level::Failed,
            "cast it to text",
        ),
        (
            "select id, status from big where concat(id, '') in (:ids) limit :limit",
            json!({}),
            "lookup plan",
            Level::Warn,
            "it reads all of big (about",
        ),
        (
            "select id, status from big where id in (:ids)",
            json!({}),
            "lookup limit",
            Level::Warn,
            "no `:limit`",
        ),
    ] {
        let finding = told(&by(sql, columns).check().await, name);
        assert_eq!(finding.level, level, "{sql}: {finding:?}");
        assert!(finding.detail.contains(word), "{sql}: {finding:?}");
    }
    bed.execute("create index cursor_of_big on big (naive, id); analyze table big").await;
    let naive = json!({ "name": "naive", "time": "naive_utc" });
    let stream = |condition: &str| {
        let sql = format!(
            "select id, naive, route from big as b where {condition} order by naive, id limit :limit"
        );
        let mut fields = json!({ "notifications": notifications(&sql, naive.clone()) });
        fields["lookup"] = simple_lookup("id in (:ids)");
        fields["notifications"]["cursor"] = json!({ "at": naive, "id": "id" });
        open(database.clone(), fields).unwrap()
    };
    let plan = told(&stream("(naive, id) > (:after_ts, :after_id)").check().await, "notifications plan");
    assert_eq!(plan.level, Level::Warn, "{plan:?}");
    assert!(
        plan.detail.contains("it reads all of b") && plan.hint.is_some_and(|h| h.contains(":after_ts or id"))
    );
    let plan = told(&stream(&bed.behind("naive", "id")).check().await, "notifications plan");
    assert_eq!((plan.level, plan.detail.as_str()), (Level::Ok, "by indexes"));
    for (grant, word) in [
        ("grant update (status) on big to reader@'127.0.0.1'", "big (UPDATE"),
        ("grant insert, delete on *.* to reader@'127.0.0.1'", "everything (INSERT, DELETE)"),
    ] {
        bed.execute(grant).await;
        let rights = good.check_role().await.unwrap();
        assert_eq!(rights.level, Level::Warn, "{grant}");
        assert!(rights.detail.contains(word), "{grant}: {}", rights.detail);
    }
    assert_eq!(good.stats().figures().role_can_write, Some(true));
}

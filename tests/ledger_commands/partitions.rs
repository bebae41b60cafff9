//! A table with partitions: what `ledger check` says of it is what helps, and what `ledger init` proposes is what PostgreSQL takes.

use super::{
    bed::Database,
    check::{found, json},
    init::proposed,
    postgres::Postgres,
    run::run,
};

/// Notifications by day, one of whose partitions has partitions itself and another one an index that is wanted; and attempts by day.
const SCHEMA: &str = "
    create table notifications (id uuid not null, idempotency_key text, route text not null, is_canary boolean not null default false,
        accepted_at timestamptz not null, settled_at timestamptz, primary key (id, accepted_at)) partition by range (accepted_at);
    create table notifications_old partition of notifications for values from (minvalue) to (date_trunc('day', now()));
    create table \"notifications Today\" partition of notifications
        for values from (date_trunc('day', now())) to (date_trunc('day', now()) + interval '1 day');
    create table notifications_later partition of notifications
        for values from (date_trunc('day', now()) + interval '1 day') to (maxvalue) partition by range (accepted_at);
    create table notifications_later_all partition of notifications_later default;
    create index own_one on notifications_old (accepted_at, id);
    create table delivery_attempts (id bigint not null, notification_id uuid not null, outcome text not null,
        started_at timestamptz not null, primary key (id, started_at)) partition by range (started_at);
    create table attempts_all partition of delivery_attempts for values from (minvalue) to (maxvalue);
    insert into notifications
        select md5(g::text)::uuid, 'k' || g, 'receipts', false, now() - g * interval '10 seconds', now() from generate_series(1, 12000) as g;
    insert into delivery_attempts select g, md5(g::text)::uuid, 'delivered', now() - g * interval '10 seconds' from generate_series(1, 12000) as g;
    grant select on notifications, delivery_attempts to reader; analyze";

/// The statements that are proposed step by step.
fn steps(yaml: &str) -> Vec<String> {
    let of_a_step = |line: &str| line.strip_prefix("#                 ").map(str::to_owned);
    yaml.lines().filter_map(of_a_step).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn its_indexes_are_asked_for_in_steps_that_the_server_takes() {
    let server = Postgres::start();
    let url = server.fresh_database().await;
    let database = Database { url: url.clone() };
    let reader = server.role("reader", &url).await;
    database.execute(SCHEMA).await;
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (yaml, _) = proposed(folder.path(), &url, &reader, &["receipts"], &[]).await;
    assert!(yaml.contains("# GUESS       notification id: notifications.id, in its primary key"), "{yaml}");
    let steps = steps(&yaml);
    assert!(
        steps
            .iter()
            .any(|step| step
                .starts_with("create index notifications_accepted_at_id_idx on only notifications")),
        "{yaml}"
    );
    assert!(steps.iter().any(|step| step.ends_with("attach partition own_one;")), "{yaml}");
    assert!(steps.iter().any(|step| step.contains("concurrently \"notifications Today_")), "{yaml}");

    let file = folder.path().join("canary.yaml");
    let file = file.to_str().expect("a path that is text");
    let check =
        || json(&run(&["ledger", "check", "--json", "--config", file], &[("LEDGER_URL", &reader)]).ended(0));
    let before = check();
    let plan = found(&before, "attempts plan");
    let text = format!("{} {}", plan["detail"], plan["hint"]);
    assert_eq!(plan["status"], "warn", "{before:#}");
    for word in [
        "it reads all of delivery_attempts (about",
        "in 1 of its partitions: attempts_all)",
        "on only",
        "attach partition",
    ] {
        assert!(text.contains(word), "`{word}` is not in: {text}");
    }
    for step in &steps {
        database.execute(step.trim_end_matches(';')).await;
    }
    // So small a table is read whole with less effort; of interest is that the indexes can be used.
    database.execute("alter role reader set enable_seqscan = off; analyze").await;
    let after = check();
    for name in ["notifications plan", "attempts plan", "lookup plan", "pending plan"] {
        assert_eq!(found(&after, name)["status"], "ok", "{after:#}");
    }
    let (again, _) = proposed(folder.path(), &url, &reader, &["receipts"], &[]).await;
    assert!(!again.contains("MISSING     an index"), "{again}");
}

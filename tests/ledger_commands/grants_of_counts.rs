//! `ledger grants` covers the counts of the accepted too: the one in the ledger, and the one in another database.

use super::{
    bed::Database,
    check::{found, json},
    postgres::Postgres,
    run::run,
};

/// Counts on both sides, each over a table that nothing else reads.
const COUNTS: &str = "    accepted_elsewhere:
      source:
        sql:
          database: { postgres: { url: '${GATEWAY_URL}' } }
          sql: select kind, count(*) as n from requests where status = 202 and at >= :from_ts and at < :until_ts group by kind
          columns: { route: kind, count: n }
          accepted_at: at
      routes: { receipts: webhook/receipts, alerts: webhook/alerts }
      in_ledger:
        sql: select route, count(*) as n from intake where accepted_at >= :from_ts and accepted_at < :until_ts group by route
        columns: { route: route, count: n }
        routes: { receipts: webhook/receipts, alerts: webhook/alerts }
";

#[tokio::test(flavor = "multi_thread")]
async fn a_role_with_what_is_printed_can_take_both_counts_and_no_more() {
    let server = Postgres::start();
    let (database, _) = Database::on(&server, "append_only").await;
    let gateway = Database { url: server.fresh_database().await };
    database.execute("create table intake (id bigint primary key, route text, accepted_at timestamptz, recipient text)").await;
    gateway.execute("create table requests (id bigint primary key, kind text, status integer, at timestamptz, body text)").await;
    let (ledger, counts) =
        (server.role("smallest", &database.url).await, server.role("counter", &gateway.url).await);
    let folder = tempfile::tempdir().expect("a temporary folder");
    let shape = std::fs::read_to_string("config/shapes/append_only.yaml").expect("the shape is there");
    let file = folder.path().join("canary.yaml");
    let text =
        shape.replace("    # A call takes 45 seconds", &format!("{COUNTS}    # A call takes 45 seconds"));
    assert_ne!(text, shape);
    std::fs::write(&file, text).expect("the file is written");
    let file = file.to_str().expect("a path that is text");
    let variables = [("LEDGER_URL", ledger.as_str()), ("GATEWAY_URL", counts.as_str())];
    let printed = |more: &[&str]| run(&[&["ledger", "grants", "--config", file], more].concat(), &variables);

    let script = printed(&["--database", &database.url]).ended(0);
    assert!(script.contains("grant select (route, accepted_at) on public.intake to smallest;"), "{script}");
    assert!(script.contains("printed with --elsewhere") && !script.contains("requests"), "{script}");
    let other = printed(&["--elsewhere", "--database", &gateway.url]).ended(0);
    assert!(other.contains("grant select (kind, status, at) on public.requests to counter;"), "{other}");
    assert!(
        other.contains("to read `accepted_elsewhere` of the ledger `service`") && !other.contains("intake"),
        "{other}"
    );
    database.execute(&script).await;
    gateway.execute(&other).await;

    let answer = json(&run(&["ledger", "check", "--json", "--config", file], &variables).ended(0));
    for name in ["in_ledger query", "accepted_elsewhere", "rights"] {
        assert_eq!(found(&answer, name)["status"], "ok", "{name}: {answer:#}");
    }
    let plain =
        run(&["ledger", "grants", "--elsewhere", "--config", "config/shapes/append_only.yaml"], &variables);
    assert_eq!(plain.code, 2, "{}", plain.err);
    assert!(plain.err.contains("accepted_elsewhere"), "{}", plain.err);
}

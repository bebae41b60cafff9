//! The ledger's configuration in `docs/simulator.md`, run by the monitor's own adapter against a simulator.

use super::{
    postgres::Postgres,
    support::{World, until},
};
use delivery_canary::{
    config,
    domain::{
        outcome::{Cause, Disposition},
        route::{Channel, IdempotencyKey, NotificationId, RouteName},
    },
    ledger::{LedgerAdapter, LedgerReader, open},
    simulator::{Fault, FaultOrder, LedgerOptions, ReaderAddress},
};
use std::{collections::BTreeMap, sync::Arc, time::Duration};

/// The rest of a configuration.
const MONITOR: &str = r#"
store:
  sqlite: { path: canary.sqlite }
acceptances:
  service:
    http:
      url: http://127.0.0.1:8080/v1/notifications
      body: '{"recipient": {{ recipient | tojson }}, "callback_url": {{ callback_url | tojson }}}'
receivers:
  sink:
    webhook:
      listen: 127.0.0.1:9466
      public_url: http://127.0.0.1:9466/receipts
      token_secrets: [0123456789abcdef-not-a-secret]
routes:
  - channel: webhook
    name: receipts
    schedule: { every: 5m }
    deadline: 60s
    acceptance: service
    recipients: [canary-endpoint]
    receipt: { receiver: sink }
    ledger: simulator
    hourly_cap: 80
"#;
const PAGE: &str = include_str!("../../docs/simulator.md");

/// The adapter that the documentation configures for this ledger.
fn documented(reader: &ReaderAddress) -> Arc<LedgerAdapter> {
    let (place, ledger) = match reader {
        ReaderAddress::Sqlite(path) => (0, path.to_str().unwrap().to_owned()),
        ReaderAddress::Postgres(url) => (1, url.clone()),
    };
    let block = PAGE.split("```yaml\n").skip(1).nth(place).and_then(|rest| rest.split("```").next());
    let text =
        block.expect("the page has a block for each ledger").replace(": LEDGER", &format!(": {ledger}"));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("monitor.yaml");
    std::fs::write(&path, format!("{MONITOR}{text}")).unwrap();
    let loaded = config::load(&path, &|_| None).unwrap_or_else(|faults| panic!("{faults}"));
    open("simulator", &loaded.config.ledgers["simulator"]).unwrap()
}

async fn reads_what_the_service_wrote(world: World, reader: &ReaderAddress) {
    let adapter = documented(reader);
    world.accepted("key-delivered").await;
    for recipient in ["suppressed-x@example.test", "rejected-x@example.test"] {
        let mut body = world.body();
        body["recipient"] = recipient.into();
        assert_eq!(world.send(recipient, &body).await.unwrap().status(), 201);
    }
    until("three settled", || async {
        let counts = world.simulator.ledger_counts().await.unwrap();
        if (counts.notifications, counts.pending) == (3, 0) { Ok(()) } else { Err(counts) }
    })
    .await;
    world.simulator.switch(FaultOrder::on(Fault::StuckWorker)).await.unwrap();
    let pending = world.accepted("key-pending").await;
    let mut customer = world.body();
    customer["metadata"] = serde_json::json!({});
    assert_eq!(world.send("key-customer", &customer).await.unwrap().status(), 201);

    let keys = ["key-delivered", "suppressed-x@example.test", "rejected-x@example.test", "key-none"]
        .map(IdempotencyKey::from_text);
    let ids = [NotificationId::from_text(pending)];
    let found = adapter.lookup(&ids, &keys).await.unwrap().found;
    let stands: BTreeMap<_, _> = found
        .iter()
        .map(|found| {
            assert!(found.row.has_policy_version);
            let key = found.key.as_ref().map(|key| key.as_str().to_owned()).unwrap();
            (key, (found.row.disposition, found.row.cause, found.row.attempts.len()))
        })
        .collect();
    let expected = [
        ("key-delivered", (Disposition::Delivered, None, 1)),
        ("key-pending", (Disposition::Pending, None, 0)),
        ("rejected-x@example.test", (Disposition::PermanentlyRejected, Some(Cause::Recipient), 1)),
        ("suppressed-x@example.test", (Disposition::Suppressed, None, 1)),
    ];
    assert_eq!(stands, expected.map(|(key, stands)| (key.to_owned(), stands)).into());

    let route = RouteName::new(Channel::Webhook, "receipts");
    let deadlines = BTreeMap::from([(route.clone(), Duration::from_secs(60))]);
    let backlog = adapter.pending(&deadlines).await.unwrap();
    // The customer's alone: canaries are kept out.
    assert_eq!(backlog.exact().unwrap().routes[&route].unattempted, 1, "{backlog:?}");

    world.simulator.fault_on(Fault::LedgerUnreachable).await.unwrap();
    adapter.lookup(&ids, &keys).await.expect_err("the ledger can't be read");
    world.simulator.reset().await.unwrap();
    adapter.lookup(&ids, &keys).await.expect("the ledger can be read again");
}

#[tokio::test]
async fn the_documented_sqlite_ledger_reads_what_the_service_wrote() {
    let world = World::new().await;
    let reader = world.simulator.ledger_reader();
    reads_what_the_service_wrote(world, &reader).await;
}

#[tokio::test]
async fn the_documented_postgres_ledger_reads_what_the_service_wrote_with_the_documented_rights() {
    let server = Postgres::start();
    let url = server.fresh_database().await;
    let world = World::with(|options| options.ledger = LedgerOptions::Postgres(url.clone())).await;
    let ReaderAddress::Postgres(reader) = world.simulator.ledger_reader() else { panic!("not PostgreSQL") };
    let reader = server.role("ledger_reader", &reader).await;
    let grant = PAGE.split("```sql\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    server.execute(url.rsplit('/').next().unwrap(), grant).await;
    reads_what_the_service_wrote(world, &ReaderAddress::Postgres(reader)).await;
}

#[test]
fn the_page_lists_every_fault_once_and_no_other() {
    let rows =
        PAGE.lines().skip_while(|line| *line != "## Faults").take_while(|line| *line != "## The ledger");
    let mut listed: Vec<&str> = rows.filter_map(|line| line.strip_prefix("| `")?.split('`').next()).collect();
    let mut there: Vec<&str> = Fault::kinds().iter().map(|kind| kind.name).collect();
    listed.sort_unstable();
    there.sort_unstable();
    assert_eq!(listed, there);
}

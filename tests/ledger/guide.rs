//! The guide's example, word for word, on a real database.

use super::support::{Bed, ids, keys};
use chrono::{TimeDelta, Utc};
use delivery_canary::{
    config::{self, ledger::Ledger},
    domain::{
        flow::rows::{RouteNo, Standing},
        outcome::Disposition,
        pending::Tried,
        route::RouteName,
    },
    ledger::{self, FlowReader, LedgerReader, check::Level},
};
use std::{collections::BTreeMap, time::Duration};

const GUIDE: &str = include_str!("../../docs/ledger.md");
const MINIMAL: &str = include_str!("../../config/minimal.yaml");

/// The first block of this language.
fn block(language: &str) -> &'static str {
    let begin = format!("```{language}\n");
    let text = GUIDE.split_once(&begin).unwrap_or_else(|| panic!("the guide has a block of {language}")).1;
    text.split_once("```").expect("the block ends").0
}

/// The block that begins with this line.
fn block_of(first_line: &str) -> &'static str {
    let at =
        GUIDE.find(&format!("```yaml\n{first_line}\n")).unwrap_or_else(|| panic!("no block of {first_line}"));
    GUIDE[at..].split_once('\n').and_then(|(_, rest)| rest.split_once("```")).expect("the block ends").0
}

/// The guide's ledger as part of the least configuration that works, read from this database.
fn configuration(url: &str) -> Ledger {
    configuration_of(url, &[block("yaml"), block_of("notifications:")])
}

fn configuration_of(url: &str, blocks: &[&str]) -> Ledger {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("config.yaml");
    let block: String = blocks
        .iter()
        .flat_map(|block| block.lines())
        .map(|line| match line.trim_start() {
            address if address.starts_with("url: postgres") || address.starts_with("url: mysql") => {
                format!("        url: {url}\n")
            }
            _ => format!("    {line}\n"),
        })
        .collect();
    std::fs::write(&file, format!("{MINIMAL}    ledger: guide\nledgers:\n  guide:\n{block}"))
        .expect("the file is written");
    let env = |name: &str| match name {
        "TOKEN_SECRET" => Some("0123456789abcdef0123456789abcdef".to_owned()),
        "GATEWAY_PASSWORD" => Some("of-nobody".to_owned()),
        _ => None,
    };
    let loaded = config::load(&file, &env).unwrap_or_else(|faults| panic!("{faults}"));
    loaded.config.ledgers["guide"].clone()
}

#[test]
fn each_of_the_guides_counts_elsewhere_can_be_used_as_it_stands() {
    let (streams, elsewhere) = (block_of("notifications:"), block_of("accepted_elsewhere:"));
    let (head, rest) = elsewhere.split_once("    prometheus_text:\n").expect("it is a page first");
    let (_, tail) = rest.split_once("      edge: 5s\n").expect("the source ends");
    let other = |first_line: &str| {
        let source: String = block_of(first_line).lines().map(|line| format!("    {line}\n")).collect();
        format!("{head}{source}{tail}")
    };
    for elsewhere in [elsewhere.to_owned(), other("promql:"), other("sql:")] {
        let config = configuration_of(
            "postgres://canary_reader@127.0.0.1:1/guide",
            &[block("yaml"), streams, &elsewhere],
        );
        let adapter = ledger::open("guide", &config).unwrap();
        assert!(adapter.flow().is_some_and(|flow| flow.elsewhere().is_some()));
    }
}

#[tokio::test]
async fn the_guides_pending_query_works_on_sqlite() {
    let bed = Bed::sqlite();
    let stamp = |minutes| (Utc::now() - TimeDelta::minutes(minutes)).to_rfc3339();
    let (old, new) = (stamp(5), stamp(1));
    bed.execute(&format!(
        "create table notifications (notification_id text primary key, idempotency_key text, route text not null,
           is_canary integer not null default 0, accepted_at text not null, not_before text, settled_at text);
         create table delivery_attempts (attempt_id integer primary key, notification_id text not null, outcome text not null,
           started_at text not null, policy_version text);
         insert into notifications (notification_id, route, is_canary, accepted_at, settled_at) values
           ('a', 'payment_receipts', 0, '{old}', null), ('b', 'payment_receipts', 0, '{old}', null),
           ('c', 'payment_receipts', 0, '{new}', null), ('d', 'payment_receipts', 1, '{old}', null),
           ('e', 'payment_receipts', 0, '{old}', '{new}');
         insert into delivery_attempts (notification_id, outcome, started_at) values
           ('a', 'bounced', '{old}'), ('a', 'retryable', '{new}'), ('c', 'retryable', '{new}')"
    ))
    .await;
    let example = block("yaml");
    let (lookup, statuses) = (
        &example
            [example.find("lookup:").expect("a lookup")..example.find("pending:").expect("a pending query")],
        &example[example.find("statuses:").expect("statuses")..],
    );
    let lookup = lookup.replace(
        "n.notification_id = any(:ids::uuid[]) or n.idempotency_key = any(:keys)",
        "n.notification_id in (select value from json_each(:ids)) or n.idempotency_key in (select value from json_each(:keys))",
    );
    let database = format!("database:\n  sqlite:\n    path: {}\n", bed.path().display());
    let pending = block_of("pending: # SQLite");
    let config = configuration_of("of-no-server", &[&database, &lookup, pending, statuses]);
    let ledger = ledger::open("guide", &config).unwrap();
    let route = RouteName::from_text("webhook/receipts");
    let snapshot =
        ledger.pending(&BTreeMap::from([(route.clone(), Duration::from_secs(120))])).await.unwrap();
    let receipts = &snapshot.exact().unwrap().routes[&route];
    assert_eq!((receipts.unattempted, receipts.retrying, receipts.over_deadline), (1, 2, Some(2)));
}

#[tokio::test]
async fn the_guides_example_works_as_it_stands() {
    let bed = Bed::postgres().await;
    bed.execute(block("sql")).await;
    let (a, b) = ("0193c1a0-0000-7000-8000-00000000000a", "0193c1a0-0000-7000-8000-00000000000b");
    bed.execute(&format!(
        "insert into notifications (notification_id, idempotency_key, route, is_canary, accepted_at, settled_at) values
           ('{a}', 'dc-a', 'payment_receipts', true, now() - interval '5 minutes', now()),
           ('{b}', 'dc-b', 'payment_receipts', true, now() - interval '5 minutes', null);
         insert into delivery_attempts (notification_id, outcome, started_at) values ('{a}', 'delivered', now());
         insert into notifications (notification_id, route, accepted_at)
           select gen_random_uuid(), 'payment_receipts', date_trunc('second', now()) - interval '5 minutes' from generate_series(1, 30000);
         analyze notifications, delivery_attempts"
    ))
    .await;
    let config = configuration(&bed.url().replacen("postgres@", "canary_reader@", 1));
    let ledger = ledger::open("guide", &config).unwrap();

    let lookup = ledger.lookup(&ids(&[a, "no uuid"]), &keys(&["dc-b"])).await.unwrap();
    let found: Vec<_> =
        lookup.found.iter().map(|f| (f.notification_id.as_str(), f.row.disposition)).collect();
    assert_eq!(found, [(a, Disposition::Delivered), (b, Disposition::Pending)]);

    let route = RouteName::from_text("webhook/receipts");
    let snapshot = ledger.pending(&BTreeMap::from([(route.clone(), Duration::from_secs(60))])).await.unwrap();
    let receipts = &snapshot.exact().unwrap().routes[&route];
    // Canaries are left out.
    assert_eq!((receipts.unattempted, receipts.over_deadline), (30_000, Some(30_000)));
    assert!((Utc::now() - snapshot.as_of).num_seconds() < 60);

    let findings = ledger.check().await;
    // Nothing but the pending is counted from end to end, and the streams' indexes are not made yet.
    for finding in findings.iter().filter(|f| !f.name.ends_with(" plan") || f.name == "lookup plan") {
        assert_eq!(finding.level, Level::Ok, "{finding:?}");
    }
}

#[tokio::test]
async fn the_guides_streams_are_held_against_its_exact_count() {
    let bed = Bed::postgres().await;
    bed.execute(block("sql")).await;
    bed.execute(
        "insert into notifications (notification_id, route, is_canary, accepted_at, not_before)
           select md5(g::text)::uuid, 'payment_receipts', g = 0, now() - interval '5 hours' + g * interval '10 minutes',
                  case when g = 1 then now() - interval '30 minutes' end
             from generate_series(0, 11) as g;
         insert into delivery_attempts (notification_id, outcome, started_at)
           select md5(g::text)::uuid, o, now() - interval '2 hours' from generate_series(0, 9) as g, unnest(
             case when g < 4 then array['retryable', 'delivered'] when g < 6 then array['bounced'] when g < 8 then array['retryable']
                  else array['odd'] end) as o",
    )
    .await;
    let config = configuration(&bed.url().replacen("postgres@", "canary_reader@", 1));
    let flow = ledger::open("guide", &config).unwrap().flow().expect("the guide follows its ledger");
    let notifications = flow.notifications_page(None, None).await.unwrap();
    let attempts = flow.attempts_page(None, None).await.unwrap();
    assert_eq!((notifications.rows.len(), attempts.rows.len(), attempts.refused), (12, 14, 0));
    let canaries =
        notifications.rows.iter().filter_map(|seen| seen.row.as_ref()).filter(|row| row.is_marked_canary);
    assert_eq!(canaries.count(), 1);
    // The one that was held back was due later than the interval.
    let now = Utc::now();
    let reading = flow.partition(now - TimeDelta::hours(6), now - TimeDelta::hours(1)).await.unwrap();
    let counts: Vec<_> =
        reading.counts[&RouteNo(0)].iter().map(|(standing, count)| (*standing, *count)).collect();
    let expected = [
        (Standing::Pending(Tried::Never), 2),
        (Standing::Pending(Tried::WillRetry), 2),
        (Standing::Pending(Tried::OutcomeUnknown), 2),
        (Standing::Delivered, 2),
        (Standing::RejectedRecipient, 2),
    ];
    assert_eq!((counts.as_slice(), reading.is_exact()), (expected.as_slice(), true));
}

#[tokio::test]
async fn the_guides_mariadb_example_works_as_it_stands() {
    let bed = Bed::mariadb().await;
    let section = GUIDE.split_once("## MySQL and MariaDB").expect("the guide has the section").1;
    bed.execute(section.split_once("```sql\n").and_then(|(_, rest)| rest.split_once("```")).expect("SQL").0)
        .await;
    let (a, b) = ("0193c1a0-0000-7000-8000-00000000000a", "0193c1a0-0000-7000-8000-00000000000b");
    bed.execute(&format!(
        "set time_zone = '+00:00';
         insert into notifications (notification_id, idempotency_key, route, is_canary, accepted_at, settled_at) values
           ('{a}', 'dc-a', 'payment_receipts', true, now() - interval 5 minute, now()),
           ('{b}', 'dc-b', 'payment_receipts', true, now() - interval 5 minute, null);
         insert into delivery_attempts (notification_id, outcome, started_at) values ('{a}', 'delivered', now() - interval 4 minute);
         insert into notifications (notification_id, route, accepted_at)
           select uuid(), 'payment_receipts', now(6) - interval 1 day + interval seq microsecond from seq_1_to_15000;
         insert into delivery_attempts (notification_id, outcome, started_at)
           select notification_id, 'retryable', accepted_at from notifications where idempotency_key is null;
         analyze table notifications, delivery_attempts"
    ))
    .await;
    let url = bed.url().replacen("root@", "canary_reader@", 1);
    let ledger =
        ledger::open("guide", &configuration_of(&url, &[block_of("database: # MySQL or MariaDB")])).unwrap();

    let lookup = ledger.lookup(&ids(&[a, "no uuid"]), &keys(&["dc-b"])).await.unwrap();
    let found: Vec<_> =
        lookup.found.iter().map(|f| (f.notification_id.as_str(), f.row.disposition)).collect();
    assert_eq!(found, [(a, Disposition::Delivered), (b, Disposition::Pending)]);

    let route = RouteName::from_text("webhook/receipts");
    let snapshot = ledger.pending(&BTreeMap::from([(route.clone(), Duration::from_secs(60))])).await.unwrap();
    let receipts = &snapshot.exact().unwrap().routes[&route];
    assert_eq!((receipts.retrying, receipts.over_deadline), (15_000, Some(15_000)));

    let flow = ledger.flow().expect("the guide follows its ledger");
    let notifications = flow.notifications_page(None, None).await.unwrap();
    let attempts = flow.attempts_page(None, None).await.unwrap();
    assert_eq!((notifications.rows.len(), attempts.rows.len(), attempts.refused), (15_002, 15_001, 0));
    let next = flow.attempts_page(attempts.rows.get(14_999).map(|seen| &seen.position), None).await.unwrap();
    assert_eq!(next.rows.len(), 1);

    for finding in ledger.check().await {
        assert!(finding.level == Level::Ok || finding.name == "pending plan", "{finding:?}");
    }
}

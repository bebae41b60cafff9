//! The guide's example, word for word, on a real database.

use crate::support::{Bed, ids, keys};
use chrono::Utc;
use delivery_canary::{
    config::{self, ledger::Ledger},
    domain::{outcome::Disposition, route::RouteName},
    ledger::{self, LedgerReader, check::Level},
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

/// The guide's ledger as part of the least configuration that works, read from this database.
fn configuration(url: &str) -> Ledger {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("config.yaml");
    let block: String = block("yaml")
        .lines()
        .map(|line| match line.trim_start() {
            address if address.starts_with("url: ") => format!("        url: {url}\n"),
            _ => format!("    {line}\n"),
        })
        .collect();
    std::fs::write(&file, format!("{MINIMAL}    ledger: guide\nledgers:\n  guide:\n{block}"))
        .expect("the file is written");
    let env = |name: &str| (name == "TOKEN_SECRET").then(|| "0123456789abcdef0123456789abcdef".to_owned());
    let loaded = config::load(&file, &env).unwrap_or_else(|faults| panic!("{faults}"));
    loaded.config.ledgers["guide"].clone()
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
    for finding in findings.iter().filter(|f| f.name != "pending plan") {
        assert_eq!(finding.level, Level::Ok, "{finding:?}");
    }
}

//! What the audit of ledgers keeps.

use super::support::{Place, at, on_both};
use chrono::{DateTime, TimeDelta, Utc};
use delivery_canary::{
    domain::audit::{
        compare::Change,
        sample::{Changes, Kept},
    },
    store::{
        AuditSave, AuditSums, Horizon, Store,
        follower::{FollowedErasure, Lead},
    },
};
use std::{collections::BTreeMap, time::Duration};

on_both!(
    a_sample_and_its_findings_are_written_whole,
    who_has_lost_the_lead_writes_no_findings,
    findings_are_summed_by_ledger_over_a_window,
    an_erased_notification_leaves_the_sample,
    the_sample_of_a_ledger_that_nobody_follows_is_forgotten,
);

const DAY: Duration = Duration::from_secs(86_400);

async fn leads(store: &dyn Store, ledger: &str, owner: &str, now: DateTime<Utc>) {
    let lead = store.lead(ledger, owner, now, now + TimeDelta::seconds(10)).await.expect("the store answers");
    assert!(matches!(lead, Lead::Ours { .. }), "{lead:?}");
}

fn kept(key: &str, body: &str) -> Kept {
    Kept { key: key.into(), due: at(7), body: body.into() }
}

fn save_of(kept: Vec<Kept>, gone: &[&str], found: &[(Change, u64)], compared: u64) -> AuditSave {
    let gone = gone.iter().map(ToString::to_string).collect();
    AuditSave { changes: Changes { kept, gone }, found: found.iter().copied().collect(), compared }
}

async fn save(store: &dyn Store, ledger: &str, now: DateTime<Utc>, save: &AuditSave) -> bool {
    store.save_audit(ledger, "first", now, save).await.expect("the store answers")
}

async fn sample(store: &dyn Store, ledger: &str) -> Vec<Kept> {
    store.audited(ledger).await.expect("the store answers")
}

async fn a_sample_and_its_findings_are_written_whole(place: &mut Place) {
    let store = place.open().await;
    leads(&*store, "main", "first", at(0)).await;
    assert_eq!(sample(&*store, "main").await, []);
    let first = save_of(vec![kept("i1", "one"), kept("i2", "two"), kept("tA", "three")], &[], &[], 0);
    assert!(save(&*store, "main", at(1), &first).await);
    // One that went and came again within one writing is there.
    let second =
        save_of(vec![kept("i2", "two again"), kept("i3", "new")], &["i1", "i3", "not there"], &[], 1);
    assert!(save(&*store, "main", at(2), &second).await);
    let expected = [kept("i2", "two again"), kept("i3", "new"), kept("tA", "three")];
    assert_eq!(sample(&*store, "main").await, expected);
    assert_eq!(sample(&*store, "other").await, []);
}

async fn who_has_lost_the_lead_writes_no_findings(place: &mut Place) {
    let store = place.open().await;
    let write = save_of(vec![kept("i1", "one")], &[], &[(Change::OutcomeRewritten, 1)], 1);
    assert!(!save(&*store, "main", at(0), &write).await, "nobody leads");
    leads(&*store, "main", "first", at(0)).await;
    leads(&*store, "main", "second", at(10)).await;
    assert!(!save(&*store, "main", at(11), &write).await, "another leads");
    assert_eq!(sample(&*store, "main").await, []);
    assert_eq!(store.audits(DAY, at(20)).await.expect("the store answers"), BTreeMap::new());
}

async fn findings_are_summed_by_ledger_over_a_window(place: &mut Place) {
    let store = place.open().await;
    for (ledger, second) in [("main", 0), ("main", 3_600), ("other", 3_600)] {
        leads(&*store, ledger, "first", at(second)).await;
        let found = [(Change::AttemptVanished, 2), (Change::LateReversal, 1)];
        assert!(save(&*store, ledger, at(second + 1), &save_of(vec![], &[], &found, 5)).await);
    }
    let sums = |times: u64| AuditSums {
        found: BTreeMap::from([(Change::AttemptVanished, 2 * times), (Change::LateReversal, times)]),
        compared: 5 * times,
    };
    let expected = BTreeMap::from([("main".to_owned(), sums(2)), ("other".to_owned(), sums(1))]);
    let now = at(3_700);
    assert_eq!(store.audits(DAY, now).await.expect("the store answers"), expected);
    let expected = BTreeMap::from([("main".to_owned(), sums(1)), ("other".to_owned(), sums(1))]);
    assert_eq!(store.audits(Duration::from_secs(600), now).await.expect("the store answers"), expected);
    assert_eq!(store.audits(DAY, at(3 * 86_400)).await.expect("the store answers"), BTreeMap::new());
    // Neither verdicts nor contradictions are among them, nor they among those.
    assert!(store.window(DAY, now).await.expect("the store answers").is_empty());
    assert!(store.disagreements(DAY, now).await.expect("the store answers").is_empty());
    let horizon = Horizon { canaries: at(0), minutes: at(86_399), hours: at(86_399) };
    store.prune(&horizon, 100).await.expect("the store answers");
    assert_eq!(place.number("SELECT COUNT(*) FROM sums").await, 2 * 3, "only those by day are left");
}

async fn an_erased_notification_leaves_the_sample(place: &mut Place) {
    let store = place.open().await;
    leads(&*store, "main", "first", at(0)).await;
    let all = save_of(vec![kept("i1", "one"), kept("i11", "two"), kept("t1", "three")], &[], &[], 0);
    assert!(save(&*store, "main", at(1), &all).await);
    let which = FollowedErasure {
        notification_id: "1".into(),
        keys: vec!["t1".into(), "i1".into()],
        prefixes: vec!["\u{1e}i1:".into()],
    };
    assert_eq!(store.erase_followed(&which, at(2)).await.expect("the store answers"), 2);
    assert_eq!(sample(&*store, "main").await, [kept("i11", "two")]);
}

async fn the_sample_of_a_ledger_that_nobody_follows_is_forgotten(place: &mut Place) {
    let store = place.open().await;
    for (ledger, second) in [("old", 0), ("new", 1_000)] {
        leads(&*store, ledger, "first", at(second)).await;
        assert!(save(&*store, ledger, at(second), &save_of(vec![kept("i1", "one")], &[], &[], 0)).await);
    }
    let before = at(500);
    store
        .prune(&Horizon { canaries: before, minutes: before, hours: before }, 100)
        .await
        .expect("the store answers");
    assert_eq!(sample(&*store, "old").await, []);
    assert_eq!(sample(&*store, "new").await, [kept("i1", "one")]);
}

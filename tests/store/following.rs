//! What followers of ledgers keep.

use super::support::{Place, accepted, append, at, on_both, planned};
use chrono::{DateTime, TimeDelta, Utc};
use delivery_canary::domain::audit::sample::{Changes, Kept};
use delivery_canary::store::{
    AuditSave, Horizon, Store,
    follower::{
        Followed, FollowedCell, FollowedErasure, FollowedStray, FollowedUnit, FollowerSave, Lead,
        erasure_digest,
    },
};
use std::collections::BTreeSet;

on_both!(
    one_leads_and_another_takes_over,
    who_steps_down_need_not_be_waited_for,
    a_pass_is_written_whole,
    who_has_lost_the_lead_writes_nothing,
    a_lease_that_nobody_took_is_still_ones_own,
    what_was_kept_outlives_a_graceful_stop,
    many_units_and_cells_are_loaded_once_each,
    beginning_anew_leaves_nothing_of_before,
    an_erased_notification_goes_with_all_its_destinations,
    canaries_are_known_by_their_notification_ids,
    a_ledger_that_nobody_follows_is_forgotten,
);

fn until(seconds: i64) -> DateTime<Utc> {
    at(seconds + 10)
}

async fn leads(store: &dyn Store, owner: &str, now: i64) -> Lead {
    store.lead("main", owner, at(now), until(now)).await.expect("the store answers")
}

fn ours(is_new: bool) -> Lead {
    Lead::Ours { is_new, erased: BTreeSet::new() }
}

fn unit(id: &str, body: &str) -> FollowedUnit {
    FollowedUnit { unit: id.into(), route: "webhook/a".into(), due: at(7), body: body.into() }
}

fn stray(unit: &str, attempt: &str) -> FollowedStray {
    FollowedStray { unit: unit.into(), attempt: attempt.into(), body: "late".into() }
}

fn cell(level: i64, bucket: i64, body: &str) -> FollowedCell {
    FollowedCell { level, bucket: at(bucket), route: "webhook/a".into(), body: body.into() }
}

async fn save(store: &dyn Store, owner: &str, now: i64, save: &FollowerSave) -> bool {
    store.save_followed("main", owner, at(now), save).await.expect("the store answers")
}

async fn kept(store: &dyn Store) -> Followed {
    store.followed("main").await.expect("the store answers")
}

/// All units of a ledger, by its pages.
async fn units(store: &dyn Store, ledger: &str) -> Vec<FollowedUnit> {
    let mut all: Vec<FollowedUnit> = Vec::new();
    loop {
        let after = all.last().map_or("", |unit| &unit.unit);
        let page = store.followed_units(ledger, after).await.expect("the store answers");
        if page.is_empty() {
            return all;
        }
        all.extend(page);
    }
}

async fn one_leads_and_another_takes_over(place: &mut Place) {
    let (first, second) = (place.open().await, place.open().await);
    assert_eq!(leads(&*first, "first", 0).await, ours(true));
    assert_eq!(leads(&*second, "second", 1).await, Lead::Theirs);
    assert_eq!(leads(&*first, "first", 9).await, ours(false), "it keeps the lead by asking in time");
    assert_eq!(leads(&*second, "second", 18).await, Lead::Theirs);
    assert_eq!(leads(&*second, "second", 19).await, ours(true));
    assert_eq!(leads(&*first, "first", 20).await, Lead::Theirs);
    assert_eq!(leads(&*first, "first", 29).await, ours(true), "what it remembers is out of date");
}

async fn who_steps_down_need_not_be_waited_for(place: &mut Place) {
    let store = place.open().await;
    leads(&*store, "first", 0).await;
    store.step_down("main", "second").await.expect("the store answers");
    assert_eq!(leads(&*store, "second", 1).await, Lead::Theirs, "nobody gives up what is another's");
    store.step_down("main", "first").await.expect("the store answers");
    assert_eq!(leads(&*store, "second", 1).await, ours(true));
}

async fn a_pass_is_written_whole(place: &mut Place) {
    let store = place.open().await;
    assert_eq!(kept(&*store).await, Followed::default());
    leads(&*store, "first", 0).await;
    let first = FollowerSave {
        position: "p1".into(),
        units: vec![unit("1", "never"), unit("2", "never")],
        strays: vec![stray("8", "a"), stray("8", "b"), stray("9", "a")],
        cells: vec![cell(60, 0, "3"), cell(3600, 0, "3")],
        ..FollowerSave::default()
    };
    assert!(save(&*store, "first", 1, &first).await);
    let second = FollowerSave {
        position: "p2".into(),
        units: vec![unit("2", "retry"), unit("3", "never")],
        gone: vec!["1".into(), "not there".into()],
        found: vec![("8".into(), "a".into()), ("9".into(), "not there".into())],
        cells: vec![cell(60, 60, "1"), cell(3600, 0, "4")],
        forget: vec![(60, at(60)), (3600, at(0))],
        ..FollowerSave::default()
    };
    assert!(save(&*store, "first", 2, &second).await);
    let expected = Followed {
        position: Some("p2".into()),
        saved_at: Some(at(2)),
        strays: vec![stray("8", "b"), stray("9", "a")],
        cells: vec![cell(60, 60, "1"), cell(3600, 0, "4")],
    };
    assert_eq!(kept(&*store).await, expected);
    assert_eq!(units(&*store, "main").await, [unit("2", "retry"), unit("3", "never")]);
    assert_eq!(store.followed_saved_at("main").await.expect("the store answers"), Some(at(2)));
    assert_eq!(store.followed_saved_at("other").await.expect("the store answers"), None);
    assert_eq!(store.followed("other").await.expect("the store answers"), Followed::default());
}

async fn who_has_lost_the_lead_writes_nothing(place: &mut Place) {
    let store = place.open().await;
    let write =
        FollowerSave { position: "late".into(), units: vec![unit("1", "never")], ..FollowerSave::default() };
    assert!(!save(&*store, "first", 0, &write).await, "nobody leads");
    leads(&*store, "first", 0).await;
    leads(&*store, "second", 10).await;
    assert!(!save(&*store, "first", 11, &write).await, "another leads");
    let all = kept(&*store).await;
    assert_eq!((all.position, units(&*store, "main").await), (None, vec![]));
}

/// A lease says when another may take over. As long as nobody has, what is remembered is up to date, and may be written.
async fn a_lease_that_nobody_took_is_still_ones_own(place: &mut Place) {
    let store = place.open().await;
    leads(&*store, "first", 0).await;
    let write = FollowerSave { position: "p1".into(), ..FollowerSave::default() };
    assert!(save(&*store, "first", 100, &write).await, "its lease has ended, and nobody has the lead");
    assert_eq!(leads(&*store, "first", 101).await, ours(false));
}

/// What was kept is as old as its last writing, however its process ended: another process that doesn't follow the ledger leaves it alone.
async fn what_was_kept_outlives_a_graceful_stop(place: &mut Place) {
    let store = place.open().await;
    leads(&*store, "first", 1_000).await;
    let write = FollowerSave {
        position: "p".into(),
        units: vec![unit("1", "never")],
        strays: vec![stray("9", "a")],
        cells: vec![cell(60, 0, "3")],
        ..FollowerSave::default()
    };
    assert!(save(&*store, "first", 1_001, &write).await);
    let sample = Kept { key: "i1".into(), due: at(7), body: "one".into() };
    let sample = AuditSave { changes: Changes { kept: vec![sample], gone: vec![] }, ..AuditSave::default() };
    assert!(store.save_audit("main", "first", at(1_002), &sample).await.expect("the store answers"));
    store.step_down("main", "first").await.expect("the store answers");
    let before = at(1_000);
    store
        .prune(&Horizon { canaries: before, minutes: before, hours: before }, 100)
        .await
        .expect("the store answers");
    for table in ["follower", "follower_unit", "follower_stray", "follower_cell", "audit_sample"] {
        assert_eq!(place.number(&format!("SELECT COUNT(*) FROM {table}")).await, 1, "{table}");
    }
    assert_eq!(leads(&*store, "second", 1_003).await, ours(true));
    assert_eq!(kept(&*store).await.position, Some("p".into()));
}

async fn many_units_and_cells_are_loaded_once_each(place: &mut Place) {
    let store = place.open().await;
    leads(&*store, "first", 0).await;
    // More than one query gives.
    let ids: BTreeSet<String> = (0..20_500).map(|n| format!("{n}")).collect();
    let written = ids.iter().map(|id| unit(id, "never")).collect();
    let strays = ids.iter().map(|id| stray(&id[..1], id)).collect();
    let cells: Vec<FollowedCell> =
        (0..20_500).map(|n| cell(if n < 9_000 { 60 } else { 3600 }, n * 60, "1")).collect();
    for part in [
        FollowerSave { units: written, ..FollowerSave::default() },
        FollowerSave { strays, ..FollowerSave::default() },
        FollowerSave { cells: cells.clone(), ..FollowerSave::default() },
    ] {
        assert!(save(&*store, "first", 1, &part).await);
    }
    let all = kept(&*store).await;
    let loaded: Vec<String> = units(&*store, "main").await.into_iter().map(|unit| unit.unit).collect();
    assert!(loaded.iter().eq(ids.iter()), "{} units", loaded.len());
    let loaded: BTreeSet<String> = all.strays.iter().map(|stray| stray.attempt.clone()).collect();
    assert!(all.strays.len() == ids.len() && loaded == ids, "{} strays", all.strays.len());
    assert!(all.cells == cells, "{} cells", all.cells.len());
}

async fn beginning_anew_leaves_nothing_of_before(place: &mut Place) {
    let store = place.open().await;
    leads(&*store, "first", 0).await;
    let first = FollowerSave {
        position: "p1".into(),
        units: vec![unit("1", "never")],
        strays: vec![stray("9", "a")],
        cells: vec![cell(60, 0, "3")],
        ..FollowerSave::default()
    };
    save(&*store, "first", 1, &first).await;
    let anew = FollowerSave {
        position: "p0".into(),
        is_fresh: true,
        units: vec![unit("2", "never")],
        ..FollowerSave::default()
    };
    assert!(save(&*store, "first", 2, &anew).await);
    let all = kept(&*store).await;
    assert_eq!(units(&*store, "main").await, [unit("2", "never")]);
    assert_eq!((all.strays, all.cells), (vec![], vec![]));
}

async fn an_erased_notification_goes_with_all_its_destinations(place: &mut Place) {
    let store = place.open().await;
    leads(&*store, "first", 0).await;
    let names = ["a", "ab", "a%", "A", "a:one", "a:two", "b:a:", "A:one"];
    let write = FollowerSave {
        position: "p".into(),
        units: names.iter().map(|id| unit(id, "never")).collect(),
        strays: vec![stray("a", "1"), stray("ab", "1")],
        ..FollowerSave::default()
    };
    save(&*store, "first", 1, &write).await;
    let which = FollowedErasure {
        notification_id: "the id".into(),
        keys: vec!["a".into(), "not there".into()],
        prefixes: vec!["a:".into(), "%".into()],
    };
    assert_eq!(store.erase_followed(&which, at(2)).await.expect("the store answers"), 4);
    let all = kept(&*store).await;
    let left: BTreeSet<String> = units(&*store, "main").await.into_iter().map(|unit| unit.unit).collect();
    assert_eq!(left, ["ab", "a%", "A", "b:a:", "A:one"].map(Into::into).into());
    assert_eq!(all.strays, [stray("ab", "1")]);
    let erased = BTreeSet::from([erasure_digest("the id")]);
    assert_eq!(leads(&*store, "first", 3).await, Lead::Ours { is_new: false, erased });
    let statement = "SELECT COUNT(*) FROM follower_erasure WHERE LENGTH(digest) = 64";
    assert_eq!(place.number(statement).await, 1, "only a digest stays");
}

async fn canaries_are_known_by_their_notification_ids(place: &mut Place) {
    let store = place.open().await;
    assert_eq!(store.oldest_canary().await.expect("the store answers"), None);
    let plan = planned(&*store, "a", at(0)).await;
    planned(&*store, "a", at(60)).await;
    assert_eq!(store.oldest_canary().await.expect("the store answers"), Some(at(0)));
    append(&*store, plan.canary_id, vec![accepted("n-1", at(1))], true).await;
    let ids = ["n-1", "n-2"].map(String::from);
    let known = store.canaries_among(&ids).await.expect("the store answers");
    assert_eq!(known, BTreeSet::from(["n-1".to_owned()]));
    assert_eq!(store.canaries_among(&[]).await.expect("the store answers"), BTreeSet::new());
}

async fn a_ledger_that_nobody_follows_is_forgotten(place: &mut Place) {
    let store = place.open().await;
    let write = FollowerSave {
        position: "p".into(),
        units: vec![unit("1", "never")],
        strays: vec![stray("9", "a")],
        cells: vec![cell(60, 0, "3")],
        ..FollowerSave::default()
    };
    let erasure = |id: &str| FollowedErasure { notification_id: id.into(), keys: vec![], prefixes: vec![] };
    for (ledger, now) in [("old", 0), ("new", 1_000)] {
        store.lead(ledger, "first", at(now), until(now)).await.expect("the store answers");
        store.save_followed(ledger, "first", at(now), &write).await.expect("the store answers");
    }
    store.erase_followed(&erasure("x"), at(0)).await.expect("the store answers");
    store.erase_followed(&erasure("y"), at(1_000)).await.expect("the store answers");
    let before = at(0) + TimeDelta::seconds(500);
    let horizon = Horizon { canaries: before, minutes: before, hours: before };
    store.prune(&horizon, 100).await.expect("the store answers");
    for table in ["follower", "follower_unit", "follower_stray", "follower_cell", "follower_erasure"] {
        assert_eq!(place.number(&format!("SELECT COUNT(*) FROM {table}")).await, 1, "{table}");
    }
    assert_eq!(units(&*store, "new").await.len(), 1);
}

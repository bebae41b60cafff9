//! Windows, held against a recount of everything that ever happened.

use super::support::{Place, at, decide, judged, lease, on_both, plan, settle, wish};
use chrono::{DateTime, TimeDelta, Utc};
use delivery_canary::{
    domain::{
        canary::{Canary, CanaryKind, Event, Judgement},
        verdict::{Class, Verdict},
    },
    store::Filter,
};
use proptest::{
    prelude::*,
    strategy::ValueTree,
    test_runner::{Config, RngAlgorithm, TestRng, TestRunner},
};
use std::collections::BTreeMap;

on_both!(windows_agree_with_a_recount);

/// What happens to one canary: its route, its kind, its settlement, its corrections.
#[derive(Clone, Debug)]
struct Life {
    route: &'static str,
    kind: CanaryKind,
    settled_after: i64,
    verdict: Verdict,
    corrections: Vec<(i64, Verdict)>,
}

fn life() -> impl Strategy<Value = Life> {
    let verdict = || prop::sample::select(Verdict::ALL.to_vec());
    let kind = prop_oneof![
        4 => Just(CanaryKind::Scheduled),
        1 => Just(CanaryKind::Confirmation),
        2 => prop::sample::select(vec![CanaryKind::ControlSink, CanaryKind::ControlProvider]),
    ];
    // Three days, to cross every level of the sums more than once.
    let settled_after = prop_oneof![0..600i64, 0..260_000i64];
    let corrections = prop::collection::vec((-100..90_000i64, verdict()), 0..3);
    (prop::sample::select(vec!["a", "b"]), kind, settled_after, verdict(), corrections).prop_map(
        |(route, kind, settled_after, verdict, corrections)| Life {
            route,
            kind,
            settled_after,
            verdict,
            corrections,
        },
    )
}

/// The canaries first settled in a window, and how they stand.
fn within(
    canaries: &[(DateTime<Utc>, Canary)],
    from: DateTime<Utc>,
    until: DateTime<Utc>,
) -> impl Iterator<Item = (&Canary, Judgement)> {
    canaries.iter().filter_map(move |(first, canary)| {
        let minute = DateTime::from_timestamp(first.timestamp() - first.timestamp().rem_euclid(60), 0)?;
        Some((canary, *canary.standing()?)).filter(|_| from <= minute && minute < until)
    })
}

/// The sums of a window, straight from the canaries.
fn recount<'a>(
    canaries: impl Iterator<Item = (&'a Canary, Judgement)>,
) -> Vec<(String, Verdict, Class, u64)> {
    let mut sums: BTreeMap<(String, Verdict, Class), u64> = BTreeMap::new();
    for (canary, standing) in canaries.filter(|(canary, _)| canary.plan.kind.is_in_sli()) {
        let route = canary.plan.route.as_str().to_owned();
        *sums.entry((route, standing.verdict, standing.class)).or_default() += 1;
    }
    sums.into_iter().map(|((route, verdict, class), count)| (route, verdict, class, count)).collect()
}

/// The same for the control arms.
fn recount_of_controls<'a>(
    canaries: impl Iterator<Item = (&'a Canary, Judgement)>,
) -> Vec<(String, CanaryKind, Class, u64)> {
    let mut sums: BTreeMap<(String, CanaryKind, Class), u64> = BTreeMap::new();
    for (canary, standing) in canaries.filter(|(canary, _)| canary.plan.kind.is_control()) {
        let route = canary.plan.route.as_str().to_owned();
        *sums.entry((route, canary.plan.kind, standing.class)).or_default() += 1;
    }
    sums.into_iter().map(|((route, kind, class), count)| (route, kind, class, count)).collect()
}

async fn windows_agree_with_a_recount(place: &mut Place) {
    let store = place.open().await;
    // One history of many lives: a database of its own for each case would take minutes.
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &rand::random::<[u8; 32]>());
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    let lives: Vec<Life> =
        prop::collection::vec(life(), 60..90).new_tree(&mut runner).expect("lives can be made").current();
    let mut first = Vec::new();
    for (life, n) in lives.iter().zip(0..) {
        let plan = plan(life.route, life.kind, at(n));
        let id = plan.canary_id;
        store.plan(&[wish(plan, 100_000)], &lease("one", at(1_000_000))).await.expect("plans");
        let settled_at = at(life.settled_after);
        settle(&*store, id, life.verdict, settled_at).await;
        for (after, verdict) in &life.corrections {
            let when = settled_at + TimeDelta::seconds(*after);
            decide(&*store, id, vec![Event::Corrected(judged(*verdict, when))]).await;
        }
        first.push((settled_at, id));
    }
    let listed = store.list(&Filter { limit: 10_000, ..Filter::default() }).await.expect("reads");
    let canaries: Vec<_> = listed
        .into_iter()
        .map(|stored| {
            let id = stored.canary.plan.canary_id;
            let (settled_at, _) = first.iter().find(|(_, known)| *known == id).expect("it was planned");
            (*settled_at, stored.canary)
        })
        .collect();
    let windows =
        (prop_oneof![0..900i64, 0..400_000i64], prop_oneof![Just(300i64), 0..9_000i64, 0..400_000i64]);
    for _ in 0..60 {
        let (until, length) = windows.new_tree(&mut runner).expect("a window can be made").current();
        let (until, seconds) = (at(until), u64::try_from(length).expect("positive"));
        let from = until - TimeDelta::seconds(length);
        let expected = recount(within(&canaries, from, until));
        let found = super::support::window(&*store, seconds, until).await;
        assert_eq!(found, expected, "{seconds} s before {until}; lives: {lives:#?}");
        let controls = store.controls(std::time::Duration::from_secs(seconds), until).await.expect("reads");
        let mut found: Vec<_> =
            controls.into_iter().map(|s| (s.route.as_str().to_owned(), s.kind, s.class, s.count)).collect();
        found.sort();
        let expected = recount_of_controls(within(&canaries, from, until));
        assert_eq!(found, expected, "controls, {seconds} s before {until}; lives: {lives:#?}");
    }
}

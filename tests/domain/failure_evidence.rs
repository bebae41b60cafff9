//! Failure evidence: the weighing of failures, and the book that keeps it in order.

use super::instant;
use chrono::{DateTime, TimeDelta, Utc};
use delivery_canary::{
    domain::{
        canary::CanaryKind,
        failure_evidence::{Stream, Weights},
        route::{CanaryId, Channel, RouteName},
        verdict::{ExpectedEnd, Verdict},
    },
    monitor::evidence::{Book, Evidence, Unmeasured},
    store::Settled,
};
use proptest::prelude::*;

fn weights(p0: f64) -> Weights {
    Weights::new(p0, 0.3, 5.0, TimeDelta::minutes(5))
}

/// The states after each canary; canaries are a minute apart unless `minutes` says otherwise.
fn states(weights: &Weights, votes: &[(i64, bool)]) -> Vec<Stream> {
    let mut stream = Stream::default();
    let mut observe = |(minute, failed): &(i64, bool)| {
        stream.observe(weights, instant(60 * minute), *failed);
        stream
    };
    votes.iter().map(&mut observe).collect()
}

/// One canary a minute; `x` failed.
fn by_the_minute(text: &str) -> Vec<(i64, bool)> {
    (0..).zip(text.chars().map(|c| c == 'x')).collect()
}

/// The minute of the first canary at which a page is due.
fn page_at(p0: f64, text: &str) -> Option<usize> {
    let weights = weights(p0);
    states(&weights, &by_the_minute(text)).iter().position(|s| s.is_sustained(&weights))
}

const RATES: [f64; 3] = [0.0005, 0.0025, 0.01];

#[test]
fn a_total_outage_is_due_when_it_has_lasted_the_sustain_and_not_before() {
    for p0 in RATES {
        assert_eq!(page_at(p0, "xxxxxxxxxx"), Some(5), "p0 {p0}");
    }
}

#[test]
fn a_blip_is_never_due_and_a_stray_failure_beside_it_hardly() {
    for p0 in RATES {
        for blip in ["x", "xxx", "xxxx"] {
            assert_eq!(page_at(p0, &format!("{blip}{}", ".".repeat(90))), None, "p0 {p0}, {blip}");
        }
        // A stray failure at any distance before or after: how many of the distances would page.
        let due = |blip: &str| {
            let after = (0..60).filter(|n| page_at(p0, &format!("{blip}{}x", ".".repeat(*n))).is_some());
            let before = (0..60).filter(|n| page_at(p0, &format!("x{}{blip}", ".".repeat(*n))).is_some());
            after.count() + before.count()
        };
        // A year's 48 blips, times the distances, times the rate: the pages of a year.
        let pages = |distances: usize| 48.0 * f64::from(u32::try_from(distances).unwrap()) * p0;
        assert!(pages(due("xxx")) <= 1.0, "p0 {p0}: {} distances", due("xxx"));
    }
}

#[test]
fn it_comes_down_within_ten_minutes_of_the_recovery() {
    for p0 in RATES {
        let weights = weights(p0);
        let outage = format!("{}{}", "x".repeat(60), ".".repeat(60));
        let states = states(&weights, &by_the_minute(&outage));
        let resolved = states.iter().skip(60).position(|s| !s.is_sustained(&weights)).unwrap();
        assert!(resolved < 10, "p0 {p0}: {resolved} minutes");
    }
}

#[test]
fn a_run_is_worth_little_more_than_one_failure_until_it_has_lasted() {
    for p0 in RATES {
        let weights = weights(p0);
        let run = states(&weights, &by_the_minute("xxxxxx"));
        assert!(
            run[4].value < weights.held() && run[4].value - weights.up < (weights.bound - weights.up) / 2.0
        );
        assert!((run[5].value - weights.cap()).abs() < 1e-9, "then it counts in full");
        // As many failures, each by itself.
        let apart = states(&weights, &by_the_minute("x.x.x.x.x.x"));
        assert!(apart[8].value > run[4].value, "p0 {p0}");
    }
}

#[test]
fn sparse_canaries_count_in_full() {
    for p0 in RATES {
        let weights = weights(p0);
        let outage: Vec<_> = (0..6).map(|n| (15 * n, true)).collect();
        let states = states(&weights, &outage);
        let due = states.iter().position(|s| s.is_sustained(&weights)).unwrap();
        let needed = (weights.bound / weights.up).ceil();
        assert_eq!(f64::from(u32::try_from(due + 1).unwrap()), needed, "p0 {p0}");
    }
}

#[test]
fn one_failure_is_never_enough() {
    let weights = Weights::new(0.0001, 0.3, 1.0, TimeDelta::seconds(1));
    let mut stream = Stream::default();
    stream.observe(&weights, instant(0), true);
    assert!(!stream.is_sustained(&weights), "whatever the bound");
    stream.observe(&weights, instant(1), true);
    assert!(stream.is_sustained(&weights));
}

fn gaps_and_votes() -> impl Strategy<Value = Vec<(i64, bool)>> {
    let vote = (prop_oneof![Just(1i64), Just(5), 1i64..40], prop::bool::weighted(0.35));
    prop::collection::vec(vote, 1..120).prop_map(|votes| {
        let mut minute = 0;
        let mut next = |(gap, failed)| {
            minute += gap;
            (minute, failed)
        };
        votes.into_iter().map(&mut next).collect()
    })
}

fn any_weights() -> impl Strategy<Value = Weights> {
    (0.0001f64..0.02, 0.1f64..0.6, 0.5f64..12.0, 0i64..3_600)
        .prop_map(|(p0, p1, bound, sustain)| Weights::new(p0, p1, bound, TimeDelta::seconds(sustain)))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1024, ..ProptestConfig::default() })]

    #[test]
    fn the_sum_stays_between_zero_and_its_cap(weights in any_weights(), votes in gaps_and_votes()) {
        for stream in states(&weights, &votes) {
            prop_assert!(stream.value >= 0.0 && stream.value <= weights.cap());
            prop_assert_eq!(stream.value > 0.0, stream.failing_since.is_some());
        }
        let trailing = votes.iter().rev().take_while(|(_, failed)| *failed).count();
        prop_assert_eq!(states(&weights, &votes).last().unwrap().consecutive as usize, trailing);
    }

    /// So a rule needs nothing but the sum: what is at its bound has lasted.
    #[test]
    fn what_is_at_its_bound_has_failed_for_the_sustain(weights in any_weights(), votes in gaps_and_votes()) {
        for (stream, (minute, _)) in states(&weights, &votes).iter().zip(&votes) {
            if stream.is_sustained(&weights) {
                let since = stream.failing_since.unwrap();
                prop_assert!(instant(60 * minute) - since >= weights.sustain, "since {since}, at minute {minute}");
            }
        }
    }

    #[test]
    fn a_failure_never_lessens_the_evidence_and_a_success_never_adds(weights in any_weights(), votes in gaps_and_votes()) {
        let mut before = 0.0;
        for (stream, (_, failed)) in states(&weights, &votes).iter().zip(&votes) {
            let is_so = if *failed { stream.value >= before } else { stream.value <= before };
            prop_assert!(is_so, "{before}, then {}", stream.value);
            before = stream.value;
        }
    }
}

fn route() -> RouteName {
    RouteName::new(Channel::Webhook, "receipts")
}

fn verdict() -> impl Strategy<Value = Verdict> {
    prop_oneof![4 => Just(Verdict::OnTime), 4 => prop::sample::select(&Verdict::ALL[..])]
}

/// Settled canaries in the order (slot, id), some with one slot.
fn history() -> impl Strategy<Value = Vec<Settled>> {
    prop::collection::vec((0i64..3, verdict()), 1..60).prop_map(|all| {
        let mut minute = 0;
        let mut next = |(n, (gap, verdict)): (u128, (i64, Verdict))| {
            minute += gap;
            settled(n, minute, verdict)
        };
        (1..).zip(all).map(&mut next).collect()
    })
}

fn settled(n: u128, minute: i64, verdict: Verdict) -> Settled {
    Settled {
        route: route(),
        slot: instant(60 * minute),
        canary_id: CanaryId(uuid::Uuid::from_u128(n)),
        kind: CanaryKind::Scheduled,
        verdict,
        class: verdict.class(ExpectedEnd::Delivered),
        expected: ExpectedEnd::Delivered,
        stopped: None,
        change: i64::try_from(n).unwrap(),
    }
}

fn whole(history: &[Settled], weights: Weights) -> Evidence {
    let mut book = Book::default();
    book.set_weights(&route(), weights);
    book.refold(&route(), history, false, DateTime::<Utc>::MIN_UTC);
    book.get(&route())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    #[test]
    fn a_refold_from_a_checkpoint_is_the_whole_fold(history in history(), stable in 0i64..120, known in any::<prop::sample::Index>()) {
        let known = known.index(history.len());
        let mut book = Book::default();
        book.set_weights(&route(), weights(0.0005));
        book.refold(&route(), &history[..known], false, instant(60 * stable));
        book.refold(&route(), &history, true, instant(60 * stable));
        prop_assert_eq!(book.get(&route()), whole(&history, weights(0.0005)));
    }

    /// Whatever the order in which they settle, and however often a judgement is heard of: what the store has then decides.
    #[test]
    fn any_order_of_settling_gives_the_same_evidence(
        (history, order) in history().prop_flat_map(|h| (Just(h.clone()), Just(h).prop_shuffle())), stable in 0i64..120, repeats in 1usize..3,
    ) {
        let mut book = Book::default();
        book.set_weights(&route(), weights(0.0025));
        book.refold(&route(), &[], false, instant(0));
        let mut stored: Vec<Settled> = Vec::new();
        for one in order.iter().flat_map(|one| std::iter::repeat_n(one, repeats)) {
            if !stored.contains(one) {
                stored.push(one.clone());
                stored.sort_by_key(|s| (s.slot, s.canary_id));
            }
            if let Some(from) = book.take(one) {
                // Nothing before the stable time is corrected, so the checkpoint lies before what still comes.
                let first = order.iter().filter(|o| !stored.contains(o)).map(|o| o.slot).min();
                let stable = first.unwrap_or(instant(60 * stable)).min(instant(60 * stable));
                book.refold(&route(), &stored, from.is_some(), stable);
            }
        }
        prop_assert_eq!(book.get(&route()), whole(&history, weights(0.0025)));
    }
}

#[test]
fn other_weights_fold_all_of_it_anew_and_the_old_evidence_shows_until_then() {
    let history: Vec<Settled> =
        (1..).zip([Verdict::Overdue; 4]).map(|(n, v)| settled(n, n as i64, v)).collect();
    let mut book = Book::default();
    book.set_weights(&route(), weights(0.0005));
    assert_eq!(book.due(), [route()]);
    let first = book.refold(&route(), &history, false, instant(0)).unwrap();
    assert_eq!((first.old, first.canaries, first.from), (None, 4, Some(instant(60))));
    assert!(book.due().is_empty());
    let before = book.get(&route());

    book.set_weights(&route(), weights(0.0005));
    assert!(book.due().is_empty(), "the same weights");
    book.set_weights(&route(), weights(0.01));
    book.set_weights(&route(), weights(0.02));
    assert_eq!(book.due(), [route()]);
    assert_eq!(book.get(&route()), before, "until it is folded anew");
    assert_eq!(book.take(&history[3]), Some(None), "from the beginning");
    assert_eq!(
        book.refold(&route(), &history, true, instant(0)),
        None,
        "a checkpoint by other weights is of no use"
    );
    assert_eq!(book.due(), [route()]);

    let refolded = book.refold(&route(), &history, false, instant(0)).unwrap();
    assert_eq!((refolded.old, refolded.new, refolded.canaries), (Some(weights(0.0005)), weights(0.02), 4));
    assert_eq!((refolded.before, refolded.now), (before, whole(&history, weights(0.02))));
    assert!(refolded.now.arrives.value < before.arrives.value);
    assert_eq!(book.refold(&route(), &history, false, instant(0)), None, "nothing was due");
}

/// A reload that expects another end changes what is wanted of new canaries. What was good when it was sent stays good.
#[test]
fn a_canary_is_judged_by_the_end_that_was_expected_of_it() {
    let old = (1..=50).map(|n| settled(n, n as i64, Verdict::OnTime));
    let new = (51..=60).map(|n| {
        let expected = ExpectedEnd::Suppressed;
        let class = Verdict::Suppressed.class(expected);
        Settled { expected, class, ..settled(n, n as i64, Verdict::Suppressed) }
    });
    let history: Vec<Settled> = old.chain(new).collect();
    let evidence = whole(&history, weights(0.0005));
    assert_eq!((evidence.arrives.value, evidence.in_time.value), (0.0, 0.0));
    assert_eq!(evidence.unmeasured, None, "it was suppressed, as it had to be");

    let arrives = Settled {
        expected: ExpectedEnd::Suppressed,
        class: Verdict::OnTime.class(ExpectedEnd::Suppressed),
        ..settled(61, 61, Verdict::OnTime)
    };
    let history: Vec<Settled> = history.into_iter().chain([arrives]).collect();
    assert!(whole(&history, weights(0.0005)).arrives.value > 0.0, "it arrived, and had to be suppressed");
}

#[test]
fn canaries_that_say_nothing_leave_the_evidence_as_it_was_and_are_told() {
    use Verdict::{OnTime, Overdue, Suppressed, Undetermined};
    let of = |verdicts: &[Verdict]| {
        let history: Vec<Settled> = (1..).zip(verdicts).map(|(n, v)| settled(n, n as i64, *v)).collect();
        whole(&history, weights(0.0005))
    };
    let failing = of(&[Overdue, Overdue]);
    let unseen = of(&[Overdue, Overdue, Undetermined, Suppressed]);
    assert_eq!((unseen.arrives, unseen.in_time), (failing.arrives, failing.in_time));
    assert_eq!(failing.unmeasured, None);
    let since = instant(3 * 60);
    assert_eq!(
        unseen.unmeasured,
        Some(Unmeasured { since, verdict: Suppressed, canaries: 2 }),
        "what the newest came to"
    );
    assert_eq!(of(&[Undetermined, OnTime]).unmeasured, None, "a success ends it");
    assert_eq!(of(&[Undetermined, Overdue]).unmeasured, None, "and so does a failure");
}

//! The replay of `alerts backtest`: held against the live evidence, and against evidence that is made anew at each moment.

use super::past::at;
use chrono::{DateTime, TimeDelta, Utc};
use delivery_canary::{
    alerts::{
        backtest::{Alarms, HOLD, Judged, Replay, Settings},
        catalog::{CANARY_FAILING, CANARY_SLOW, Severity},
        plan::Plan,
        rules::{self, Rule},
    },
    config::{self, model::PageOn, scalar::Span},
    domain::{
        canary::CanaryKind,
        failure_evidence::{Question, Stream, Weights},
        route::{CanaryId, Channel, Location, RouteName},
        verdict::{ExpectedEnd, Verdict},
    },
    monitor::evidence::Book,
    store::Settled,
};
use proptest::prelude::*;
use std::collections::BTreeMap;
use uuid::Uuid;

const FOLLOWED: TimeDelta = TimeDelta::hours(25);

pub fn weights(bound: f64) -> Weights {
    Weights::new(0.0005, 0.3, bound, TimeDelta::minutes(5))
}

pub fn route() -> RouteName {
    RouteName::new(Channel::Webhook, "receipts")
}

/// Judgements by time: canaries a minute apart, each judged once, some once more, most of them before the next and some long after it.
fn judgements() -> impl Strategy<Value = Vec<Judged>> {
    let verdict = prop_oneof![
        4 => Just(Verdict::OnTime),
        6 => Just(Verdict::Overdue),
        1 => Just(Verdict::Late),
        1 => Just(Verdict::Undetermined),
        1 => Just(Verdict::Unknown),
    ];
    let after = prop_oneof![5 => Just(1i64), 4 => Just(120), 1 => 0..20_000i64];
    let canary = (verdict.clone(), after, proptest::option::of((verdict, 1..30_000i64)));
    proptest::collection::vec(canary, 1..60).prop_map(|canaries| {
        let mut all = Vec::new();
        for (n, (verdict, after, correction)) in canaries.into_iter().enumerate() {
            let minute = i64::try_from(n).expect("few");
            let place = (at(60 * minute), CanaryId(Uuid::from_u128(n as u128)));
            let settled = at(60 * minute + after);
            all.push(Judged { at: settled, place, verdict, expected: ExpectedEnd::Delivered });
            all.extend(correction.map(|(verdict, later)| Judged {
                at: settled + TimeDelta::seconds(later),
                place,
                verdict,
                expected: ExpectedEnd::Delivered,
            }));
        }
        all.sort_by_key(|judged| (judged.at, judged.place));
        all
    })
}

fn settled(judged: &Judged) -> Settled {
    Settled {
        route: route(),
        slot: judged.place.0,
        canary_id: judged.place.1,
        kind: CanaryKind::Scheduled,
        verdict: judged.verdict,
        class: judged.verdict.class(ExpectedEnd::Delivered),
        expected: judged.expected,
        stopped: None,
        change: 0,
    }
}

/// The evidence of the monitor, live: what comes in order is added, the rest is folded anew from the store's canaries.
struct Live {
    book: Book,
    store: BTreeMap<(DateTime<Utc>, CanaryId), Settled>,
}

impl Live {
    fn new(weights: Weights) -> Self {
        let mut book = Book::default();
        book.set_weights(&route(), weights);
        book.refold(&route(), &[], false, at(0));
        Self { book, store: BTreeMap::new() }
    }

    fn take(&mut self, judged: &Judged) -> [Stream; 2] {
        let one = settled(judged);
        self.store.insert(judged.place, one.clone());
        if let Some(from) = self.book.take(&one) {
            let first = from.unwrap_or(DateTime::UNIX_EPOCH);
            let rest: Vec<Settled> = self.store.values().filter(|one| one.slot >= first).cloned().collect();
            self.book.refold(&route(), &rest, from.is_some(), judged.at - FOLLOWED);
        }
        let evidence = self.book.get(&route());
        [evidence.arrives, evidence.in_time]
    }
}

/// The evidence as plainly as it can be made: of all that has been judged, each time.
pub fn naive(weights: &Weights, known: &BTreeMap<(DateTime<Utc>, CanaryId), Verdict>) -> [Stream; 2] {
    Question::ALL.map(|question| {
        let mut stream = Stream::default();
        for ((slot, _), verdict) in known {
            if let Some(failed) = question.vote(*verdict, ExpectedEnd::Delivered) {
                stream.observe(weights, *slot, failed);
            }
        }
        stream
    })
}

proptest! {
    #[test]
    fn a_replay_has_the_evidence_that_was_there_live_after_each_judgement(all in judgements(), bound in 2.0f64..6.0) {
        let weights = weights(bound);
        let mut replay = Replay::new(weights, FOLLOWED);
        let (mut live, mut known) = (Live::new(weights), BTreeMap::new());
        for judged in &all {
            replay.take(judged);
            known.insert(judged.place, judged.verdict);
            let seen = Question::ALL.map(|question| replay.stream(question));
            prop_assert_eq!(seen, live.take(judged));
            prop_assert_eq!(seen, naive(&weights, &known));
        }
        prop_assert_eq!(replay.too_late(), 0);
    }

    #[test]
    fn what_is_folded_for_good_changes_nothing_that_comes_after_it(all in judgements()) {
        let weights = weights(3.0);
        // Nothing is judged later than this, so nothing is left out, however little is kept.
        let latest = all.iter().map(|judged| judged.at - judged.place.0).max().expect("there are some");
        let mut short = Replay::new(weights, latest);
        let mut long = Replay::new(weights, FOLLOWED);
        for judged in &all {
            short.take(judged);
            long.take(judged);
            for question in Question::ALL {
                prop_assert_eq!(short.stream(question), long.stream(question));
            }
        }
        prop_assert_eq!(short.too_late(), 0);
    }

    #[test]
    fn settings_that_are_not_changed_give_the_pages_that_there_were(all in judgements(), any in any::<bool>()) {
        let settings = settings(if any { PageOn::Any } else { PageOn::Majority });
        let mut alarms = Alarms::new(settings.clone());
        let mut live = [Live::new(settings.weights), Live::new(settings.weights)];
        let names = ["one", "two"].map(Location::from_text);
        // When canaries do not arrive, by the live evidence of two locations: the moments at which that changes.
        let mut bad = [false; 2];
        let mut seen = [false; 2];
        let mut spans: Vec<(DateTime<Utc>, Option<DateTime<Utc>>)> = Vec::new();
        for (n, judged) in all.iter().enumerate() {
            let place = usize::from(judged.place.1.0.as_u128() % 2 == 1);
            alarms.take(&names[place], judged);
            bad[place] = live[place].take(judged)[0].is_sustained(&settings.weights);
            seen[place] = true;
            let (failing, of) = (bad.iter().filter(|bad| **bad).count(), seen.iter().filter(|seen| **seen).count());
            let is_due = if any { failing > 0 } else { failing * 2 > of };
            // At one moment the last word counts.
            if all.get(n + 1).is_some_and(|next| next.at == judged.at) {
                continue;
            }
            match spans.last_mut() {
                Some((_, until @ None)) if !is_due => *until = Some(judged.at),
                Some((_, None)) => {}
                _ if is_due => spans.push((judged.at, None)),
                _ => {}
            }
        }
        let end = all.last().expect("there are some").at + TimeDelta::hours(1);
        let wanted: Vec<_> = spans
            .into_iter()
            .filter(|(from, until)| until.unwrap_or(end) - *from >= HOLD)
            .map(|(from, until)| (from + HOLD, until))
            .collect();
        let pages = alarms.end(end);
        let failing = pages.iter().filter(|page| page.alert == CANARY_FAILING.name);
        prop_assert_eq!(failing.map(|page| (page.from, page.until)).collect::<Vec<_>>(), wanted);
    }
}

fn settings(page_on: PageOn) -> Settings {
    Settings {
        route: route(),
        weights: weights(5.0),
        page_on,
        locations: ["one", "two", "here"].map(Location::from_text).into(),
        corrected_for: FOLLOWED,
        slow: Severity::Ticket,
        muted: Vec::new(),
    }
}

/// A canary a minute: good but for those of these minutes. By time.
fn minutes(bad: std::ops::Range<i64>, until: i64, verdict: Verdict) -> Vec<Judged> {
    let mut all: Vec<Judged> = (0..until)
        .map(|minute| {
            let place = (at(60 * minute), CanaryId(Uuid::from_u128(minute as u128)));
            let is_bad = bad.contains(&minute);
            let after = if is_bad { 120 } else { 1 };
            Judged {
                at: at(60 * minute + after),
                place,
                verdict: if is_bad { verdict } else { Verdict::OnTime },
                expected: ExpectedEnd::Delivered,
            }
        })
        .collect();
    all.sort_by_key(|judged| judged.at);
    all
}

fn pages(settings: &Settings, all: &[Judged], end: i64) -> Vec<(&'static str, Severity, i64, Option<i64>)> {
    let mut alarms = Alarms::new(settings.clone());
    for judged in all {
        alarms.take(&Location::from_text("here"), judged);
    }
    let second = |time: DateTime<Utc>| (time - at(0)).num_seconds();
    let pages = alarms.end(at(60 * end));
    pages.iter().map(|page| (page.alert, page.severity, second(page.from), page.until.map(second))).collect()
}

#[test]
fn planned_work_mutes_pages_and_no_tickets_and_what_outlasts_it_pages_then() {
    let outage = minutes(60..120, 180, Verdict::Overdue);
    let plain = settings(PageOn::Majority);
    let [failing] = pages(&plain, &outage, 180)[..] else { panic!("one page") };
    // The sixth failure is five minutes after the first; two minutes later it is known, and a minute later it has held.
    assert_eq!((failing.0, failing.1, failing.2), (CANARY_FAILING.name, Severity::Page, 60 * 68));
    let ends = failing.3.expect("it ends");
    assert!((60 * 120..60 * 130).contains(&ends), "{ends}");
    let muted =
        |from: i64, until: i64| Settings { muted: vec![(at(60 * from), at(60 * until))], ..plain.clone() };
    assert_eq!(pages(&muted(0, 180), &outage, 180), []);
    let outlasting = pages(&muted(0, 100), &outage, 180);
    assert_eq!(outlasting, [(CANARY_FAILING.name, Severity::Page, 60 * 101, Some(ends))]);
    let late = minutes(60..120, 180, Verdict::Late);
    let [slow] = pages(&muted(0, 180), &late, 180)[..] else { panic!("one ticket") };
    assert_eq!((slow.0, slow.1, slow.2), (CANARY_SLOW.name, Severity::Ticket, 60 * 68));
    let paging = Settings { slow: Severity::Page, ..muted(0, 180) };
    assert_eq!(pages(&paging, &late, 180), []);
}

#[test]
fn the_hold_is_that_of_the_rules() {
    let text = std::fs::read_to_string("config/example.yaml").expect("it is there");
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("monitor.yaml");
    std::fs::write(&path, text).expect("it is written");
    let secret = |name: &str| match name {
        "LOCATION" => None,
        "WEBHOOK_SECRET" => Some("whsec_aHVudGVyMi1odW50ZXIyLWh1bnRlcjI=".to_owned()),
        _ => Some("0123456789abcdef-hunter2".to_owned()),
    };
    let loaded = config::load(&path, &secret).unwrap_or_else(|faults| panic!("{faults}"));
    let plan =
        Plan::new(&loaded.config, loaded.config.alerts.as_ref().expect("it has alerts"), loaded.hash, false);
    let mut seen = 0;
    for rule in rules::rules(&plan).0 {
        if let Rule::Alert(rule) = rule
            && [CANARY_FAILING.name, CANARY_SLOW.name].contains(&rule.entry.name)
        {
            seen += 1;
            assert_eq!(rule.hold.parse::<Span>().expect("a span").delta(), HOLD);
        }
    }
    assert_eq!(seen, 6);
}

#[test]
fn a_location_that_is_configured_no_more_has_a_say_for_a_day() {
    let renamed = |age: TimeDelta| {
        let mut alarms = Alarms::new(settings(PageOn::Majority));
        let good = minutes(0..0, 1, Verdict::OnTime);
        let before = Judged { at: good[0].at - age, ..good[0] };
        alarms.take(&Location::from_text("default"), &before);
        let failing = minutes(0..120, 120, Verdict::Overdue);
        failing.iter().for_each(|judged| alarms.take(&Location::from_text("here"), judged));
        alarms.end(at(60 * 121)).len()
    };
    assert_eq!(renamed(TimeDelta::hours(1)), 0, "two locations, and one of them fails");
    assert_eq!(renamed(TimeDelta::days(2)), 1, "it is gone, and the other fails");
}

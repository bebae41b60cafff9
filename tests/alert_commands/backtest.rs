//! `alerts backtest`: held against the live evidence, against evidence that is made anew at each moment, and as a command on both stores.

use super::{
    past::{Told, at, write},
    run::{configure, run},
    support::{Place, judged},
};
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
    monitor::evidence::{Book, Rules},
    store::Settled,
};
use proptest::prelude::*;
use serde_json::Value;
use std::collections::BTreeMap;
use uuid::Uuid;

const FOLLOWED: TimeDelta = TimeDelta::hours(25);

fn weights(bound: f64) -> Weights {
    Weights::new(0.0005, 0.3, bound, TimeDelta::minutes(5))
}

fn route() -> RouteName {
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
            all.push(Judged { at: settled, place, verdict });
            all.extend(correction.map(|(verdict, later)| Judged {
                at: settled + TimeDelta::seconds(later),
                place,
                verdict,
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
        book.set_rules(&route(), Rules { weights, expected: ExpectedEnd::Delivered });
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
fn naive(weights: &Weights, known: &BTreeMap<(DateTime<Utc>, CanaryId), Verdict>) -> [Stream; 2] {
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
        let mut replay = Replay::new(weights, ExpectedEnd::Delivered, FOLLOWED);
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
        let mut short = Replay::new(weights, ExpectedEnd::Delivered, latest);
        let mut long = Replay::new(weights, ExpectedEnd::Delivered, FOLLOWED);
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
        expected: ExpectedEnd::Delivered,
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

/// Two outages of which one is short, a blip, and one canary that was called lost and came after all.
fn past() -> Vec<Told> {
    let mut past: Vec<Told> = (0..240)
        .map(|minute| {
            let slot = at(60 * minute);
            match minute {
                30..60 | 100..106 | 150..152 => Told::bad(slot),
                _ => Told::good(slot, 900),
            }
        })
        .collect();
    // At the end of the first outage two come after all, late: it is over a little earlier for `arrives`, as soon as that is known.
    for told in &mut past[58..60] {
        told.judgements.push((told.slot + TimeDelta::minutes(9), Verdict::Late));
    }
    past.push(Told::bad(at(60 * 30 + 30)).confirming());
    past.push(Told::bad(at(60 * 31 + 30)).confirming());
    past
}

/// The pages of a past, from evidence that is made anew after each judgement.
fn known(past: &[Told], ids: &[CanaryId], weights: &Weights) -> Vec<(String, Option<String>)> {
    let mut all: Vec<Judged> = past
        .iter()
        .zip(ids)
        .flat_map(|(told, id)| {
            told.judgements.iter().map(|(at, verdict)| Judged {
                at: *at,
                place: (told.slot, *id),
                verdict: *verdict,
            })
        })
        .collect();
    all.sort_by_key(|judged| (judged.at, judged.place));
    let stamp = |time: DateTime<Utc>| time.to_rfc3339_opts(chrono::SecondsFormat::Millis, true);
    let (mut known, mut since, mut pages) = (BTreeMap::new(), None, Vec::new());
    for judged in all {
        known.insert(judged.place, judged.verdict);
        let is_due = naive(weights, &known)[0].is_sustained(weights);
        match since {
            None if is_due => since = Some(judged.at),
            Some(begun) if !is_due => {
                since = None;
                if judged.at - begun >= HOLD {
                    pages.push((stamp(begun + HOLD), Some(stamp(judged.at))));
                }
            }
            _ => {}
        }
    }
    pages
}

fn side(said: &Value, name: &str) -> Vec<(String, Option<String>)> {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let all = said["pages"].as_array().expect("a list").iter();
    let failing = all.filter(|page| page["alert"] == CANARY_FAILING.name && !page[name].is_null());
    failing.map(|page| (text(&page[name]["from"]).expect("a time"), text(&page[name]["until"]))).collect()
}

async fn the_pages_are_those_that_are_known(place: &Place) {
    let store = place.open().await;
    let ids = write(&*store, &past()).await;
    drop(store);
    let config = configure(place, "", "");
    let (from, to) = (at(0).to_rfc3339(), at(60 * 300).to_rfc3339());
    let asked = ["alerts", "backtest", "--json", "--from", &from, "--to", &to];
    let said = run(&config, &asked).json(0);
    let in_force = known(&past(), &ids, &weights(5.0));
    assert_eq!(in_force.len(), 2, "{in_force:?}");
    assert_eq!(
        (side(&said, "in_force"), side(&said, "tried")),
        (in_force.clone(), in_force.clone()),
        "{said:#}"
    );
    let route = &said["routes"][0];
    assert_eq!(
        (&route["canaries"], &route["confirmations"], &route["too_late"]),
        (&242.into(), &2.into(), &0.into())
    );
    assert_eq!(
        said["notes"],
        serde_json::json!([]),
        "nothing is tried, and the history reaches back far enough"
    );
    // With a longer sustain the short outage is a blip, and the long one comes later.
    let tried = run(&config, &[&asked[..], &["--sustain", "10m", "--bound", "5"]].concat()).json(0);
    let longer = Weights::new(0.0005, 0.3, 5.0, TimeDelta::minutes(10));
    assert_eq!(side(&tried, "tried"), known(&past(), &ids, &longer));
    assert_eq!(side(&tried, "in_force"), in_force);
    let changes: Vec<_> =
        tried["pages"].as_array().expect("a list").iter().map(|page| &page["change"]).collect();
    assert_eq!(changes, ["later", "gone"]);
    assert_eq!(tried["pages"][0]["by_seconds"], 300.0);
    assert!(tried["notes"][0].as_str().is_some_and(|note| note.contains("confirmations")), "{tried:#}");
    // Only what lies in the time that is asked for, with the beginning that it had.
    let (from, to) = (at(60 * 50).to_rfc3339(), at(60 * 90).to_rfc3339());
    let text =
        run(&config, &["alerts", "backtest", "--from", &from, "--to", &to, "--sustain", "7m"]).ended(0);
    assert!(
        text.starts_with(
            "1 by the settings in force, 1 by those that are tried: 0 new, 0 gone, 0 earlier, 1 later\n"
        ),
        "{text}"
    );
    for line in ["page CanaryDeliveryFailing: later by 2m\n", "    in force ", "webhook/receipts: "] {
        assert!(text.contains(line), "`{line}` is not in\n{text}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_pages_are_those_that_are_known_on_sqlite() {
    the_pages_are_those_that_are_known(&Place::sqlite().await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_pages_are_those_that_are_known_on_postgres() {
    the_pages_are_those_that_are_known(&Place::postgres().await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_of_three_locations_pages_only_where_one_is_enough() {
    let place = Place::sqlite().await;
    let mut past = Vec::new();
    for minute in 0..100 {
        let slot = at(60 * minute);
        let bad = |is_bad| if is_bad { Told::bad(slot) } else { Told::good(slot, 900) };
        past.push(bad((30..60).contains(&minute)).at("east"));
        past.push(bad((40..60).contains(&minute)).at("north"));
        past.push(bad(false).at("west"));
    }
    let store = place.open().await;
    write(&*store, &past).await;
    drop(store);
    let config = configure(&place, "", "");
    let (from, to) = (at(0).to_rfc3339(), at(60 * 200).to_rfc3339());
    let said =
        run(&config, &["alerts", "backtest", "--json", "--from", &from, "--to", &to, "--page-on", "any"])
            .json(0);
    let [page] = &said["pages"].as_array().expect("a list")[..] else { panic!("{said:#}") };
    assert_eq!((&page["change"], &page["by_seconds"]), (&"earlier".into(), &600.0.into()));
    assert_eq!(said["routes"][0]["locations"], serde_json::json!(["east", "north", "west"]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_past_of_many_pages_is_read_whole_and_in_order() {
    let place = Place::sqlite().await;
    let store = place.open().await;
    // Canaries of three locations share each slot, so that readings end in the middle of a slot.
    let past: Vec<Told> = (0..600)
        .flat_map(|minute| ["east", "north", "west"].map(|name| Told::good(at(60 * minute), 5).at(name)))
        .collect();
    let mut wanted = write(&*store, &past).await;
    let (mut seen, mut from, mut after) = (Vec::new(), at(0), None);
    loop {
        let page = store.past(&route(), from, after, 100).await.expect("reads");
        let Some(last) = page.last() else { break };
        (from, after) = (last.slot, Some(last.canary_id));
        assert!(page.windows(2).all(|pair| pair[0].slot <= pair[1].slot));
        seen.extend(page.iter().map(|past| past.canary_id));
    }
    let first = &store.past(&route(), at(0), None, 1).await.expect("reads")[0];
    assert_eq!(first.judgements, [judged(Verdict::OnTime, at(0) + TimeDelta::milliseconds(5))]);
    seen.sort_unstable();
    wanted.sort_unstable();
    assert_eq!(seen, wanted, "each once");
    assert!(
        store
            .past(&RouteName::new(Channel::Sms, "receipts"), at(0), None, 9)
            .await
            .expect("reads")
            .is_empty()
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_not_there_any_more_is_said_and_what_makes_no_sense_is_refused() {
    let place = Place::sqlite().await;
    let config = configure(&place, "", "");
    let (from, to) = (at(0).to_rfc3339(), at(3_600).to_rfc3339());
    let asked = ["alerts", "backtest", "--from", &from, "--to", &to];
    let with = |more: &[&str]| run(&config, &[&asked[..], more].concat());
    assert!(with(&[]).refused(75).contains("there is no store"));
    let store = place.open().await;
    let text = with(&[]).ended(3);
    assert!(text.contains("no settled canary") && text.contains("nobody can say"), "{text}");
    write(&*store, &(10..20).map(|minute| Told::good(at(60 * minute), 900)).collect::<Vec<_>>()).await;
    let text = with(&[]).ended(0);
    let begins = at(600).to_rfc3339_opts(chrono::SecondsFormat::Secs, true);
    assert!(text.contains(&format!("the history of webhook/receipts begins at {begins}")), "{text}");
    for (more, code, wanted) in [
        (&["--p0", "0"][..], 2, "--p0 0 is no healthy failure rate"),
        (&["--p0", "nan"], 2, "healthy failure rate"),
        (&["--p1", "0.0001"], 2, "--p1 must lie above p0"),
        (&["--p0", "0.5"], 2, "--p1 must lie above p0"),
        (&["--bound", "21"], 2, "--bound 21 is out of range"),
        (&["--sustain", "2d"], 2, "--sustain 2d is out of range"),
        (&["--sustain", "long"], 2, "is not a duration"),
        (&["--bound", "1", "--sustain", "0s"], 2, "would page"),
        (&["--page-on", "all"], 2, "majority"),
        (&["--route", "webhook/nothing"], 4, "there is no route"),
    ] {
        let said = with(more).refused(code);
        assert!(said.contains(wanted), "{more:?}: {said}");
    }
    let backwards = run(&config, &["alerts", "backtest", "--from", &to, "--to", &from]).refused(2);
    assert!(backwards.contains("is not before --to"), "{backwards}");
    let ahead = run(
        &config,
        &["alerts", "backtest", "--from", "2999-01-01T00:00:00Z", "--to", "2999-01-02T00:00:00Z"],
    );
    assert!(ahead.refused(2).contains("lies ahead"));
}

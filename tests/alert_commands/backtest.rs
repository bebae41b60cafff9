//! `alerts backtest` as a command, on both stores.

use super::{
    past::{Told, at, write},
    replay::{naive, weights},
    run::{configure, run},
    support::Place,
};
use chrono::{DateTime, TimeDelta, Utc};
use delivery_canary::{
    alerts::{
        backtest::{HOLD, Judged},
        catalog::CANARY_FAILING,
    },
    domain::{
        failure_evidence::Weights,
        route::CanaryId,
        verdict::{ExpectedEnd, Verdict},
    },
};
use serde_json::Value;
use std::collections::BTreeMap;

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
                expected: ExpectedEnd::Delivered,
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

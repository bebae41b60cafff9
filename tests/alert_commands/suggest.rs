//! `alerts suggest`: held against pasts of which the truth is known, and as a command on both stores.

use super::{past::at, run::edit};
use chrono::TimeDelta;
use delivery_canary::{
    alerts::{
        Format,
        backtest::Settings,
        catalog::Severity,
        explain::times::Rate,
        generate,
        simulate::Random,
        suggest::{Accepted, Advice, Given, Observed, Seen, Sent, advise, bounds::share_at_most},
    },
    config::{Config, Route, model::PageOn, scalar::Span},
    domain::{
        failure_evidence::Weights,
        route::{Channel, Location, RouteName},
        verdict::{ExpectedEnd, Verdict},
    },
};
use proptest::prelude::*;
use serde_json::{Value, json};

pub const ALERTS: &str = "alerts:\n  service: small\n  runbooks: https://runbooks.example.com\n";

fn settings() -> Settings {
    Settings {
        route: RouteName::new(Channel::Webhook, "receipts"),
        weights: Weights::new(0.0005, 0.3, 5.0, TimeDelta::minutes(5)),
        page_on: PageOn::Majority,
        locations: ["us", "eu", "here"].map(Location::from_text).into(),
        corrected_for: TimeDelta::hours(25),
        slow: Severity::Ticket,
        muted: Vec::new(),
    }
}

/// A scheduled canary of this minute.
fn sent(minute: i64, failed: bool) -> Sent {
    Sent {
        slot: at(60 * minute),
        is_scheduled: true,
        verdict: if failed { Verdict::Overdue } else { Verdict::OnTime },
        expected: ExpectedEnd::Delivered,
        arrived_after: (!failed).then_some(TimeDelta::seconds(2)),
    }
}

fn seen(canaries: impl IntoIterator<Item = Sent>) -> Seen {
    seen_by(settings(), canaries)
}

fn seen_by(settings: Settings, canaries: impl IntoIterator<Item = Sent>) -> Seen {
    let mut observed = Observed::new(settings);
    for sent in canaries {
        observed.take(&Location::from_text("here"), &sent);
    }
    observed.end()
}

#[test]
fn the_bound_on_the_healthy_rate_holds_in_95_of_100_pasts() {
    const PASTS: u64 = 400;
    for (rate, canaries) in [(0.0005, 10_000), (0.004, 2_000), (0.01, 1_000)] {
        let held = (0..PASTS)
            .filter(|seed| {
                let mut random = Random::new(*seed);
                // Weighed by their own rate: by one that is far too low much of the noise would be incidents.
                let weights = Weights::new(rate, 0.3, 5.0, TimeDelta::minutes(5));
                let all = (0..canaries).map(|minute| sent(minute, random.happens(rate)));
                let seen = seen_by(Settings { weights, ..settings() }, all);
                share_at_most(seen.failures, seen.canaries) >= rate
            })
            .count();
        // 380 of 400 would be exact; 367 is three standard deviations below. What noise pages is left out, which is little.
        assert!(held >= 367, "at {rate} it held {held} times of {PASTS}");
    }
}

#[test]
fn an_incident_is_left_out_whole_and_a_blip_is_not() {
    let is_bad = |minute: &i64| matches!(minute, 100..160 | 400..403 | 500);
    let seen = seen((0..1_000).map(|minute| sent(minute, is_bad(&minute))));
    assert_eq!((seen.failures, seen.runs.as_slice()), (4, &[TimeDelta::zero(), TimeDelta::minutes(2)][..]));
    let [incident] = &seen.incidents[..] else { panic!("one incident, not {:?}", seen.incidents) };
    assert_eq!((incident.from, incident.failing_for), (at(60 * 100), TimeDelta::minutes(59)));
    let until = incident.until.expect("it is over");
    assert!(until > at(60 * 190) && until < at(60 * 205), "{until}");
    assert_eq!(seen.canaries + seen.left_out, 1_000);
    assert_eq!(seen.left_out, u64::try_from((until - incident.from).num_minutes()).expect("few") + 1);
    assert_eq!((seen.arrivals.len() as u64, seen.never), (seen.canaries - seen.failures, seen.failures));
    assert_eq!(seen.span, Some((at(0), at(60 * 999))));
}

#[test]
fn confirmations_say_how_long_a_blip_was_and_not_how_often_one_comes() {
    let confirming = |second: i64, failed| Sent { slot: at(second), is_scheduled: false, ..sent(0, failed) };
    let canaries =
        [sent(0, false), sent(15, true), confirming(960, true), confirming(1_020, false), sent(30, false)];
    let seen = seen(canaries);
    assert_eq!((seen.canaries, seen.failures, seen.runs), (3, 1, vec![TimeDelta::minutes(1)]));
}

#[test]
fn how_long_a_run_lasts_that_goes_on_is_not_known() {
    let seen = seen((0..30).map(|minute| sent(minute, matches!(minute, 3 | 28 | 29))));
    assert_eq!((seen.failures, seen.runs), (3, vec![TimeDelta::zero()]));
}

/// The route of `config/minimal.yaml`, with this evidence.
fn a_route(evidence: Value) -> Route {
    let config: Config = serde_json::from_value(json!({
        "store": { "sqlite": { "path": "canary.db" } },
        "acceptances": {},
        "routes": [{
            "channel": "webhook", "name": "receipts", "schedule": { "every": "1m" }, "deadline": "60s", "acceptance": "api",
            "recipients": ["nobody"], "hourly_cap": 200, "evidence": evidence,
        }],
    }))
    .expect("a configuration");
    config.routes[0].clone()
}

fn plain() -> Value {
    json!({ "p0": null, "p1": 0.3, "bound": 5.0, "sustain": "5m" })
}

fn advice(
    route: &Route,
    seen: &Seen,
    accepted: Option<&Accepted>,
    noise: &dyn Fn(Weights) -> Rate,
) -> Vec<Advice> {
    advise(&Given { route, seen, accepted, accepted_per_day: None, false_pages: 0.5, noise })
}

fn quiet(_: Weights) -> Rate {
    Rate { a_year: 0.01, low: 0.01, high: 0.01 }
}

fn of<'a>(all: &'a [Advice], key: &str) -> &'a Advice {
    all.iter().find(|advice| advice.key == key).unwrap_or_else(|| panic!("no {key} in {all:?}"))
}

#[test]
fn nothing_is_proposed_that_the_data_can_not_carry() {
    let route = a_route(plain());
    let all = advice(&route, &seen((0..214).map(|minute| sent(minute, false))), None, &quiet);
    for (key, said) in [
        ("p0", "only 214 canaries, and none failed: p0 below 1.4 % can't be told; keep 0.05 %"),
        (
            "deadline",
            "only 214 arrivals outside of incidents, and 2995 are needed to tell within which time 99.9 % arrive: keep 1m",
        ),
        ("sustain", "nothing failed outside of incidents"),
        ("bound", "0.01 false pages a year at 5 with p0 0.05 %, by simulation, and 0.5 may be: keep 5"),
    ] {
        let advice = of(&all, key);
        assert!(advice.why.starts_with(said), "{key}: {}", advice.why);
        assert!(!advice.is_change(), "{advice:?}");
    }
    assert!(!all.iter().any(|advice| advice.key == "accepted_per_day"), "its ledger is not followed");
    let none = advice(&route, &seen([]), None, &quiet);
    assert!(none.iter().all(|advice| !advice.is_change()), "{none:?}");
}

#[test]
fn what_the_data_carries_is_proposed_with_its_numbers() {
    let route = a_route(plain());
    // One of a hundred fails, spread evenly, and is always alone.
    let seen_all = seen((0..20_000).map(|minute| sent(minute, minute % 100 == 50)));
    let all = advice(&route, &seen_all, None, &quiet);
    let p0 = of(&all, "p0");
    assert_eq!((p0.current.as_deref(), p0.proposed.as_deref()), (Some("0.0005"), Some("0.012")));
    assert!(
        p0.why.contains("200 of 20000 scheduled canaries")
            && p0.why.contains("more than the objective leaves, 0.1 %"),
        "{}",
        p0.why
    );
    assert!(p0.why.contains("each 95 % sure"), "{}", p0.why);
    let deadline = of(&all, "deadline");
    assert_eq!(deadline.proposed.as_deref(), Some("2s"), "{}", deadline.why);
    assert!(
        deadline.why.contains(", rounded up; 200 more did not arrive: with them no deadline holds 99.9 %"),
        "{}",
        deadline.why
    );
    // Few failures of many canaries prove that a rate is too high, too.
    let careful = a_route(json!({ "p0": 0.01, "p1": 0.3, "bound": 5.0, "sustain": "5m" }));
    let few = advice(&careful, &seen((0..2_000).map(|minute| sent(minute, minute == 50))), None, &quiet);
    assert_eq!(of(&few, "p0").proposed.as_deref(), Some("0.0024"));
    // A rate above p1 is nobody's healthy rate.
    let strict = a_route(json!({ "p0": 0.001, "p1": 0.005, "bound": 5.0, "sustain": "5m" }));
    let all = advice(&strict, &seen_all, None, &quiet);
    assert!(
        !of(&all, "p0").is_change() && of(&all, "p0").why.contains("Mend the route"),
        "{:?}",
        of(&all, "p0")
    );
}

#[test]
fn a_deadline_is_that_of_the_objective_and_the_healthy_rate_is_counted_by_it() {
    let route = a_route(plain());
    // Of 10,000 half are there in a second, half in 3 s, and four after 50 s.
    let slow = |minute: i64| match minute {
        minute if minute % 2_500 == 50 => 50,
        minute if minute % 2 == 0 => 1,
        _ => 3,
    };
    let taken =
        |minute| Sent { arrived_after: Some(TimeDelta::seconds(slow(minute))), ..sent(minute, false) };
    let seen = seen((0..10_000).map(taken));
    let all = advice(&route, &seen, None, &quiet);
    let deadline = of(&all, "deadline");
    assert_eq!(deadline.proposed.as_deref(), Some("3s"), "{}", deadline.why);
    let p0 = of(&all, "p0");
    assert!(
        p0.why.starts_with("4 of 10000 scheduled canaries failed or were late by a deadline of 3s"),
        "{}",
        p0.why
    );
    // Where a ledger is judged by it too, it gets no shorter: how long its notifications take nobody measured.
    let judged = Route { ledger: Some("main".into()), ..route.clone() };
    let kept = advice(&judged, &seen, None, &quiet);
    assert!(
        !of(&kept, "deadline").is_change() && of(&kept, "deadline").why.contains("judges the ledger"),
        "{kept:?}"
    );
    assert!(
        of(&kept, "p0").why.contains("none failed") || of(&kept, "p0").numbers.contains(&("failures", 0.0)),
        "{kept:?}"
    );
    // A longer one lets those be in time that were late.
    let strict = Route { deadline: Span::seconds(2), ..route };
    let late = |minute| Sent {
        verdict: if slow(minute) > 2 { Verdict::Late } else { Verdict::OnTime },
        ..taken(minute)
    };
    let mut weighed = settings();
    weighed.weights.bound = 1e9;
    let all = advice(&strict, &seen_by(weighed, (0..10_000).map(late)), None, &quiet);
    assert_eq!(of(&all, "deadline").proposed.as_deref(), Some("3s"));
    assert!(of(&all, "p0").numbers.contains(&("failures", 4.0)), "{:?}", of(&all, "p0"));
}

const MINIMAL: &str = include_str!("../../config/minimal.yaml");

/// The minimal configuration, with these lines of its route.
fn written(deadline: &str, evidence: &str) -> String {
    let text = edit(MINIMAL, "    deadline: 60s\n", &format!("    deadline: {deadline}\n"));
    edit(&text, "    hourly_cap: 80\n", &format!("    hourly_cap: 80\n    evidence: {evidence}\n")) + ALERTS
}

/// Loads it and makes its alerts.
fn load(text: &str) -> Result<Config, String> {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("canary.yaml");
    std::fs::write(&file, text).expect("the file is written");
    let secret = |name: &str| (name == "TOKEN_SECRET").then(|| "0123456789abcdef0123456789abcdef".to_owned());
    let loaded = delivery_canary::config::load(&file, &secret).map_err(|faults| faults.to_string())?;
    generate(&loaded.config, loaded.hash, false, Format::Prometheus).map_err(|error| error.to_string())?;
    Ok(loaded.config)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    /// Whatever was seen and whatever is there: if that loads and alerts are made from it, so it is with what is proposed.
    #[test]
    fn what_is_proposed_always_loads_and_makes_alerts(
        canaries in 1i64..6_000, every in 1i64..3_000, run in 1i64..8, seconds in 1i64..80_000,
        (p0, p1, bound) in (1e-6f64..0.2, 0.01f64..0.9, 1.0f64..20.0), sustain in 0u64..900,
    ) {
        let evidence = |p0: &str, bound: &str, sustain: &str| format!("{{ p0: {p0}, p1: {p1}, bound: {bound}, sustain: {sustain} }}");
        let now = load(&written("60s", &evidence(&p0.to_string(), &bound.to_string(), &format!("{sustain}s"))));
        prop_assume!(now.is_ok());
        let route = now.expect("it loads").routes[0].clone();
        let taken = |minute: i64| {
            let failed = minute % (every + run) < run;
            Sent { arrived_after: (!failed).then_some(TimeDelta::seconds(seconds)), ..sent(minute, failed) }
        };
        let weights = Weights::new(p0, p1, bound, TimeDelta::seconds(sustain as i64));
        let seen = seen_by(Settings { weights, ..settings() }, (0..canaries).map(taken));
        let noisy = |weights: Weights| Rate::exact(10f64.powf(4.0 - weights.bound));
        let all = advice(&route, &seen, None, &noisy);
        let value = |key: &str| of(&all, key).proposed.clone().expect("it stands there");
        let proposed = written(&value("deadline"), &evidence(&value("p0"), &value("bound"), &value("sustain")));
        prop_assert!(load(&proposed).is_ok(), "{:?} of {all:#?}", load(&proposed));
    }
}

#[test]
fn sustain_is_longer_than_what_ended_by_itself_and_is_cut_only_by_many() {
    let proposed = |sustain: &str, minutes: i64, blips: i64| {
        let mut weighed = settings();
        // So far from the bound that nothing is an incident.
        weighed.weights.bound = 20.0;
        let mut observed = Observed::new(weighed);
        for minute in 0..blips * 400 {
            observed.take(&Location::from_text("here"), &sent(minute, minute % 400 <= minutes));
        }
        let route = a_route(json!({ "p0": 0.001, "p1": 0.3, "bound": 5.0, "sustain": sustain }));
        of(&advice(&route, &observed.end(), None, &quiet), "sustain").proposed.clone().expect("a time")
    };
    assert_eq!(proposed("2m", 2, 3), "5m");
    assert_eq!(proposed("5m", 2, 3), "5m");
    assert_eq!(proposed("5m", 5, 1), "6m");
    assert_eq!(proposed("15m", 2, 3), "15m");
    assert_eq!(proposed("15m", 2, 80), "5m");
}

#[test]
fn the_bound_is_raised_until_noise_keeps_to_its_budget() {
    let route = a_route(plain());
    let seen = seen((0..500).map(|minute| sent(minute, false)));
    let noisy = |weights: Weights| {
        assert_eq!((weights.p0, weights.sustain), (route.healthy_failure_rate(), TimeDelta::minutes(5)));
        let a_year = 10f64.powf(6.0 - weights.bound);
        Rate { a_year, low: a_year, high: a_year }
    };
    let all = advice(&route, &seen, None, &noisy);
    let bound = of(&all, "bound");
    assert_eq!(bound.proposed.as_deref(), Some("6.5"), "{}", bound.why);
    assert!(
        bound.numbers.contains(&("may_be", 0.5)) && bound.numbers.contains(&("false_pages_a_year", 10.0)),
        "{bound:?}"
    );
    let hopeless = |_: Weights| Rate { a_year: 9.0, low: 9.0, high: 9.0 };
    let all = advice(&route, &seen, None, &hopeless);
    assert!(!of(&all, "bound").is_change() && of(&all, "bound").why.contains("no bound up to 20"), "{all:?}");
}

#[test]
fn how_many_are_accepted_is_said_of_whole_days() {
    let route = a_route(plain());
    let seen = seen([]);
    let said = |by_day: &[u64]| {
        let accepted = Accepted { by_day: by_day.to_vec() };
        of(&advice(&route, &seen, Some(&accepted), &quiet), "accepted_per_day").clone()
    };
    assert_eq!(said(&[]).proposed, None);
    let two = said(&[12_000, 12_690]);
    assert_eq!((two.current.as_deref(), two.proposed.as_deref()), (None, Some("12000")));
    assert!(two.why.contains("2 whole days") && two.why.contains("look again"), "{}", two.why);
    assert!(!said(&[9; 7]).why.contains("look again"));
}

//! What `alerts suggest` proposes from stores and followers, on both stores.

use super::{
    past::{Told, at, write},
    run::{configure, edit, run},
    suggest::ALERTS,
    support::Place,
};
use chrono::{DateTime, TimeDelta, Utc};
use delivery_canary::{
    domain::route::RouteName,
    monitor::flow::accepted_by_day,
    store::follower::{FollowedCell, FollowedUnit, FollowerSave, Lead},
};
use serde_json::json;

fn instant(text: &str) -> DateTime<Utc> {
    text.parse().expect("a time")
}

async fn whole_days_of_a_follower_are_counted(place: &Place) {
    let store = place.open().await;
    let routes = ["webhook/a", "webhook/b"].map(RouteName::from_text);
    assert!(accepted_by_day(&*store, "main", &routes, 30).await.expect("reads").is_empty());
    let now = instant("2026-09-05T10:00:00Z");
    let lead = store.lead("main", "us", now, now + TimeDelta::minutes(1)).await.expect("leads");
    assert!(matches!(lead, Lead::Ours { .. }));
    let cell = |level: i64, bucket: &str, route: &str, settled: u64| FollowedCell {
        level,
        bucket: instant(bucket),
        route: route.into(),
        body: format!("{settled} 1 0 0 0 0 0 0 0 0 0 0 0"),
    };
    let unit = |name: &str, due: &str| FollowedUnit {
        unit: name.into(),
        route: "webhook/b".into(),
        due: instant(due),
        body: "0 0 0 0".into(),
    };
    let save = FollowerSave {
        position: json!({ "notifications": null, "attempts": null, "horizon": "2026-09-01T12:00:00Z" })
            .to_string(),
        is_fresh: true,
        cells: vec![
            cell(3_600, "2026-09-01T12:00:00Z", "webhook/a", 500),
            cell(3_600, "2026-09-02T00:00:00Z", "webhook/a", 7),
            cell(3_600, "2026-09-02T23:00:00Z", "webhook/a", 2),
            // Minutes are in their hours already.
            cell(60, "2026-09-02T23:00:00Z", "webhook/a", 2),
            cell(3_600, "2026-09-04T01:00:00Z", "webhook/a", 3),
            cell(3_600, "2026-09-04T01:00:00Z", "other", 99),
            cell(3_600, "2026-09-05T01:00:00Z", "webhook/a", 100),
        ],
        units: vec![unit("i1", "2026-09-03T05:00:00Z"), unit("i2", "2026-09-05T05:00:00Z")],
        ..FollowerSave::default()
    };
    assert!(store.save_followed("main", "us", now, &save).await.expect("saves"));
    let days = accepted_by_day(&*store, "main", &routes, 30).await.expect("reads");
    assert_eq!(days, [(routes[0].clone(), vec![11, 0, 4]), (routes[1].clone(), vec![0, 1, 0])].into());
    let days = accepted_by_day(&*store, "main", &routes, 1).await.expect("reads");
    assert_eq!(days[&routes[0]], [4]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whole_days_of_a_follower_are_counted_on_both_stores() {
    whole_days_of_a_follower_are_counted(&Place::sqlite().await).await;
    whole_days_of_a_follower_are_counted(&Place::postgres().await).await;
}

/// 3,200 canaries that take half a second to 2.5 s, one of them as long as 4.1 s; a blip of three, and an outage of half an hour.
fn past() -> Vec<Told> {
    (0..3_200)
        .map(|minute| {
            let slot = at(60 * minute);
            match minute {
                100..103 | 1_000..1_030 => Told::bad(slot),
                2_000 => Told::good(slot, 4_100),
                _ => Told::good(slot, 500 + minute % 100 * 20),
            }
        })
        .collect()
}

async fn proposals_are_those_that_the_past_carries(place: &Place) {
    let store = place.open().await;
    write(&*store, &past()).await;
    drop(store);
    let config = configure(place, "", ALERTS);
    let said = run(&config, &["alerts", "suggest", "--json"]).json(0);
    let route = &said["routes"][0];
    assert_eq!(route["incidents"].as_array().expect("a list").len(), 1, "{said:#}");
    assert_eq!(route["incidents"][0]["failing_seconds"], 29.0 * 60.0);
    let setting = |name: &str| {
        let mut all = route["settings"].as_array().expect("a list").iter();
        all.find(|setting| setting["setting"] == name).unwrap_or_else(|| panic!("{name} in {said:#}"))
    };
    assert_eq!(
        (&setting("deadline")["proposed"], &setting("p0")["proposed"]),
        (&"5s".into(), &"0.0005".into())
    );
    assert_eq!(setting("p0")["numbers"]["failures"], 3.0);
    assert_eq!((&setting("sustain")["proposed"], &setting("bound")["proposed"]), (&"5m".into(), &"5".into()));
    assert_eq!(setting("sustain")["numbers"]["longest_seconds"], 120.0);
    let text = run(&config, &["alerts", "suggest"]).ended(0);
    for line in [
        "    deadline: 5s\n",
        "      p0: 0.0005\n",
        "      sustain: 5m\n",
        "      bound: 5\n",
        "1 incidents, which are left out",
    ] {
        let words: Vec<_> = text.split_whitespace().filter(|word| *word != "#").collect();
        assert!(words.join(" ").contains(line.trim()), "`{line}` is not in\n{text}");
    }
    assert!(text.lines().all(|line| line.chars().count() <= 110), "{text}");
    // Pasted into the configuration, it loads, and alerts are made from it.
    let value = |key: &str| {
        let line =
            text.lines().find_map(|line| line.trim().strip_prefix(&format!("{key}: "))).expect("it is there");
        line.to_owned()
    };
    let pasted = format!(
        "    deadline: {}\n    evidence:\n      p0: {}\n      sustain: {}\n      bound: {}\n",
        value("deadline"),
        value("p0"),
        value("sustain"),
        value("bound")
    );
    let mut config = configure(place, &pasted, ALERTS);
    let text = std::fs::read_to_string(&config.file).expect("it is there");
    config.file.set_file_name("pasted.yaml");
    std::fs::write(&config.file, edit(&text, "    deadline: 60s\n", "")).expect("it is written");
    run(&config, &["check"]).ended(0);
    let out = config.file.with_file_name("alerts");
    run(&config, &["alerts", "generate", "--out", out.to_str().expect("a path")]).ended(0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn proposals_are_those_that_the_past_carries_on_sqlite() {
    proposals_are_those_that_the_past_carries(&Place::sqlite().await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn proposals_are_those_that_the_past_carries_on_postgres() {
    proposals_are_those_that_the_past_carries(&Place::postgres().await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_can_not_be_answered_has_its_code() {
    let place = Place::sqlite().await;
    let config = configure(&place, "", ALERTS);
    assert!(run(&config, &["alerts", "suggest"]).refused(75).contains("there is no store"));
    drop(place.open().await);
    let text = run(&config, &["alerts", "suggest"]).ended(3);
    assert!(text.contains("there is no settled canary") && text.contains("p0: 0.0005"), "{text}");
    assert!(run(&config, &["alerts", "suggest", "--days", "0"]).refused(2).contains("--days"));
    assert!(
        run(&config, &["alerts", "suggest", "--route", "nothing"]).refused(4).contains("there is no route")
    );
    let without = configure(&place, "", "");
    assert!(run(&without, &["alerts", "suggest"]).refused(78).contains("there is no block `alerts`"));
}

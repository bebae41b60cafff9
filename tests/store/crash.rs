//! Killed in the middle of its work, a process leaves everything that was answered, and nothing by halves.

use super::support::{Place, append, at, judged, lease, plan, wish};
use delivery_canary::{
    config::{
        model::{PostgresStore, SqliteStore, StoreConfig},
        scalar::Secret,
    },
    domain::{
        canary::{CanaryKind, Event},
        route::CanaryId,
        verdict::Verdict,
    },
    store::{self, Decision, Planned, Store},
};
use std::{
    io::{BufRead, BufReader},
    process::{Command, Stdio},
    sync::Arc,
};

/// Where the child works, and in which round.
const STORE: &str = "DELIVERY_CANARY_TEST_STORE";
const ROUND: &str = "DELIVERY_CANARY_TEST_ROUND";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sqlite_keeps_what_it_answered() {
    if let Ok(path) = std::env::var(STORE) {
        return work_until_killed(StoreConfig::Sqlite(SqliteStore { path: path.into() })).await;
    }
    let place = Place::sqlite().await;
    let address = place.address();
    let path = address.strip_prefix("sqlite:").expect("the address of a file").to_owned();
    kill_and_look(&place, "store::crash::sqlite_keeps_what_it_answered", &path).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn postgres_keeps_what_it_answered() {
    if let Ok(url) = std::env::var(STORE) {
        let url = Secret::new(url);
        return work_until_killed(StoreConfig::Postgres(PostgresStore { url, max_connections: 4 })).await;
    }
    let place = Place::postgres().await;
    kill_and_look(&place, "store::crash::postgres_keeps_what_it_answered", &place.address()).await;
}

/// The child: many canaries at a time, each planned, submitted and settled, a line for each answer.
async fn work_until_killed(config: StoreConfig) {
    let store = store::open(&config).await.expect("the store opens");
    let round: i64 = std::env::var(ROUND).expect("a round").parse().expect("a number");
    let mut tasks = Vec::new();
    for task in 0..10 {
        let store = store.clone();
        tasks.push(tokio::spawn(async move {
            for n in 0.. {
                live(&store, round * 1_000_000 + task * 100_000 + n).await;
            }
        }));
    }
    for task in tasks {
        task.await.expect("the task goes on");
    }
}

async fn live(store: &Arc<dyn Store>, seconds: i64) {
    let plan = plan("a", CanaryKind::Scheduled, at(seconds));
    let id = plan.canary_id;
    let answer = store.plan(&[wish(plan, 1_000_000)], &lease("child", at(seconds))).await.expect("plans");
    assert_eq!(answer, [Planned::Ours]);
    println!("planned {id}");
    append(&**store, id, vec![super::support::accepted("n", at(seconds))], true).await;
    println!("submitted {id}");
    let events = vec![Event::Settled(judged(Verdict::OnTime, at(seconds + 60)))];
    let decision = Decision { canary_id: id, version: 2, events, stopped: None, next_look: None };
    assert_eq!(store.decide(&[decision]).await.expect("decides"), [true]);
    println!("settled {id}");
}

async fn kill_and_look(place: &Place, test: &str, address: &str) {
    let mut lines = Vec::new();
    for round in 0..3 {
        let mut child = Command::new(std::env::current_exe().expect("this test's own program"))
            .args([test, "--exact", "--nocapture"])
            .env(STORE, address)
            .env(ROUND, round.to_string())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the child starts");
        let mut output = BufReader::new(child.stdout.take().expect("its output")).lines();
        lines.extend(output.by_ref().take(300).map_while(Result::ok));
        child.kill().expect("the child is killed");
        // What it had said before it died was answered too.
        lines.extend(output.map_while(Result::ok));
        child.wait().expect("the child is gone");
    }
    let store = place.open().await;
    let mut answered = 0;
    for line in &lines {
        let Some((what, id)) = line.split_once(' ') else { continue };
        let wanted = match what {
            "planned" => 0,
            "submitted" => 1,
            "settled" => 2,
            _ => continue,
        };
        let id = CanaryId(id.parse().unwrap_or_else(|error| panic!("{line}: {error}")));
        let (_, history) = store.canary(id).await.expect("reads").unwrap_or_else(|| panic!("{line}: gone"));
        assert!(history.len() >= wanted, "{line}: {history:?}");
        answered += 1;
    }
    assert!(answered > 600, "the children wrote little: {answered} of {} lines", lines.len());
    let one = async |statement: &str| place.number(statement).await;
    let canaries = one("SELECT COUNT(*) FROM canary").await;
    assert_eq!(one("SELECT CAST(SUM(planned) AS BIGINT) FROM cap").await, canaries);
    let settled = one("SELECT COUNT(*) FROM canary WHERE verdict IS NOT NULL").await;
    let summed = "SELECT CAST(SUM(amount) AS BIGINT) FROM sums WHERE family = 'verdict' AND level = ";
    for level in [60, 600, 3_600, 86_400] {
        assert_eq!(one(&format!("{summed}{level}")).await, settled);
    }
    assert_eq!(one("SELECT COUNT(*) FROM event WHERE kind = 'settled'").await, settled);
}

//! Who follows a ledger, and how long: readers that take their time, replicas on one store, a ledger that stands still beside one that doesn't.

mod slow;
mod unable;

use crate::store::support::{Place, on_both};
use delivery_canary::catalog::labels::FollowerMode;
use slow::{Process, Slow, until};
use std::{sync::Arc, time::Duration};

on_both!(whoever_reads_slowly_keeps_the_lead, a_ledger_that_stands_still_keeps_no_other_waiting,);

/// Longer than the lead lasts without being asked for again.
const LONG: Duration = Duration::from_secs(15);

const OWNER: &str = "SELECT COUNT(DISTINCT owner) FROM follower WHERE ledger = 'east'";

/// Alone, each step takes longer than the lease: what it reads is written down all the same, and its figures are there.
async fn whoever_reads_slowly_keeps_the_lead(place: &mut Place) {
    let reader = Arc::new(Slow::of(LONG));
    let process = Process::start(place, &[("east", Arc::clone(&reader))]).await;
    until("the first pass", || async {
        (process.mode("east") == FollowerMode::Following, process.seen("east"))
    })
    .await;
    let saved = process.saved_at("east").await;
    assert!(saved.is_some(), "its figures are shown, so the pass was written");
    until("the second pass", || async {
        let now = process.saved_at("east").await;
        (now > saved, format!("{now:?}; {}", process.seen("east")))
    })
    .await;
    assert!(process.has_figures("east"), "{}", process.seen("east"));
    assert_eq!(place.number(OWNER).await, 1);
    process.stop().await;
}

/// One ledger is not answered at all; the other one is followed at its own pace.
async fn a_ledger_that_stands_still_keeps_no_other_waiting(place: &mut Place) {
    let (still, quick) = (Arc::new(Slow::of(Duration::ZERO)), Arc::new(Slow::of(Duration::ZERO)));
    let gate = still.close();
    let process = Process::start(place, &[("east", Arc::clone(&still)), ("west", Arc::clone(&quick))]).await;
    until("the quick one's fifth pass", || async { (quick.readings() >= 5, quick.readings()) }).await;
    assert_eq!((still.readings(), process.saved_at("east").await), (0, None));
    drop(gate);
    until("the other one's second pass", || async { (still.readings() >= 2, process.seen("east")) }).await;
    process.stop().await;
}

/// Two processes on one store: the one that leads goes on leading, the other one asks now and then, reads nothing, and takes over when it may.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_two_that_read_slowly_one_leads_and_the_other_waits_quietly() {
    let place = Place::postgres().await;
    let (first, second) = (Arc::new(Slow::of(LONG)), Arc::new(Slow::of(LONG)));
    let leader = Process::start(&place, &[("east", Arc::clone(&first))]).await;
    until("the leader's first reading", || async { (first.begun() > 0, leader.seen("east")) }).await;
    // Whoever asks for the lead tries to make its row.
    slow::execute(
        &place,
        "create table asked (at timestamptz not null default clock_timestamp());
         create function asked() returns trigger language plpgsql as $$
           begin insert into asked default values; return new; end $$;
         create trigger asked before insert on follower for each row execute function asked()",
    )
    .await;
    let other = Process::start(&place, &[("east", Arc::clone(&second))]).await;
    until("the other to stand by", || async {
        (other.mode("east") == FollowerMode::Standby, other.seen("east"))
    })
    .await;
    until("the leader's second pass", || async { (first.readings() >= 2, leader.seen("east")) }).await;
    assert_eq!(second.begun(), 0, "who stands by reads nothing");
    assert_eq!((leader.mode("east"), other.mode("east")), (FollowerMode::Following, FollowerMode::Standby));
    let asked = place.number("select count(*) from asked").await;
    let seconds =
        place.number("select ceil(extract(epoch from clock_timestamp() - min(at)))::bigint from asked").await;
    // Two processes, each once in three seconds and once at each step; were it as often as the store answers, it would be thousands.
    assert!(asked <= seconds + 10, "{asked} times in {seconds} s");
    leader.stop().await;
    until("the other to take over", || async { (second.readings() > 0, other.seen("east")) }).await;
    until("its figures", || async { (other.has_figures("east"), other.seen("east")) }).await;
    other.stop().await;
}

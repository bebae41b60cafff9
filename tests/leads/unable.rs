//! Processes that can't read the ledger leave it to whoever can, and take it from nobody.

use super::slow::{self, Process, Slow, until};
use crate::store::support::Place;
use delivery_canary::catalog::labels::FollowerMode;
use std::{sync::Arc, time::Duration};

const OWNED: &str = "SELECT COUNT(*) FROM follower WHERE ledger = 'east' AND owner <> ''";

async fn until_mode(process: &Process, mode: FollowerMode) {
    until(mode.word(), || async { (process.mode("east") == mode, process.seen("east")) }).await;
}

async fn until_begun(reader: &Slow, more: usize) {
    let before = reader.begun();
    until("further trials", || async { (reader.begun() >= before + more, reader.begun() - before) }).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_two_that_can_not_read_it_neither_has_it_and_the_first_that_can_follows() {
    let place = Place::postgres().await;
    let (first, second) = (Arc::new(Slow::of(Duration::ZERO)), Arc::new(Slow::of(Duration::ZERO)));
    let leader = Process::start(&place, &[("east", Arc::clone(&first))]).await;
    until_mode(&leader, FollowerMode::Following).await;
    let other = Process::start(&place, &[("east", Arc::clone(&second))]).await;
    until_mode(&other, FollowerMode::Standby).await;
    let saved = leader.saved_at("east").await;
    first.breaks(true);
    until_mode(&leader, FollowerMode::Unable).await;
    until_mode(&other, FollowerMode::Following).await;
    until("a pass of the other", || async { (other.saved_at("east").await > saved, other.seen("east")) })
        .await;
    assert_eq!(leader.mode("east"), FollowerMode::Unable, "it is no standby: it could not take over");

    second.breaks(true);
    until_mode(&other, FollowerMode::Unable).await;
    assert_eq!(place.number(OWNED).await, 0, "nobody has it");
    // Whoever asks for the lead tries to make its row.
    slow::execute(
        &place,
        "create table asked (at timestamptz not null default clock_timestamp());
         create function asked() returns trigger language plpgsql as $$
           begin insert into asked default values; return new; end $$;
         create trigger asked before insert on follower for each row execute function asked()",
    )
    .await;
    until_begun(&first, 1).await;
    until_begun(&second, 1).await;
    assert_eq!(place.number("select count(*) from asked").await, 0, "who can't read it does not ask for it");

    // It was the other that had it last; who can read it first is the one that follows.
    first.breaks(false);
    until_mode(&leader, FollowerMode::Following).await;
    assert_eq!(other.mode("east"), FollowerMode::Unable);
    second.breaks(false);
    until_mode(&other, FollowerMode::Standby).await;
    assert_eq!(leader.mode("east"), FollowerMode::Following);
    leader.stop().await;
    until_mode(&other, FollowerMode::Following).await;
    other.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_is_stopped_while_it_can_not_read_takes_nothing_from_the_other() {
    let place = Place::postgres().await;
    let (first, second) = (Arc::new(Slow::of(Duration::ZERO)), Arc::new(Slow::of(Duration::ZERO)));
    let leader = Process::start(&place, &[("east", Arc::clone(&first))]).await;
    until_mode(&leader, FollowerMode::Following).await;
    first.breaks(true);
    until("a reading to fail", || async { (first.begun() > first.readings() + 1, leader.seen("east")) })
        .await;
    first.breaks(false);
    until_begun(&first, 2).await;
    assert_eq!(leader.mode("east"), FollowerMode::Following, "a moment is no reason");
    first.breaks(true);
    // Alone it gives it up too, and has it again when it can read it.
    until_mode(&leader, FollowerMode::Unable).await;
    first.breaks(false);
    until_mode(&leader, FollowerMode::Following).await;
    first.breaks(true);
    let other = Process::start(&place, &[("east", Arc::clone(&second))]).await;
    until_mode(&leader, FollowerMode::Unable).await;
    until_mode(&other, FollowerMode::Following).await;
    leader.stop().await;
    let read = second.readings();
    until("passes go on", || async { (second.readings() > read + 2, other.seen("east")) }).await;
    assert_eq!((other.mode("east"), place.number(OWNED).await), (FollowerMode::Following, 1));
    other.stop().await;
}

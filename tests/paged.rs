//! What somebody is told, and when: real faults of a simulated service and of the monitor itself, the real program, a real Prometheus and a real
//! Alertmanager with the rules and the tree that are made from the configuration. What must come to whom is a table; the rest must not come.
//!
//! Clocks run twenty times faster; `PAGED_FACTOR=1` runs them as they are, which takes two hours. The tables are printed:
//! `cargo nextest run --test whole --success-output final paged::`.

mod bounds;
mod clock;
mod gate;
mod installation;
mod itself;
mod receivers;
mod scaled;
mod servers;
mod service;
mod stage;
mod table;

use crate::common::{postgres, world};

#[tokio::test(flavor = "multi_thread")]
async fn what_is_wrong_with_the_service_is_told_once_and_in_time() {
    service::run().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_wrong_with_the_monitor_is_told_to_its_owners() {
    itself::run().await;
}

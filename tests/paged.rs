//! What somebody is told, and when: real faults of a simulated service and of the monitor itself, the real program, a real Prometheus and a real
//! Alertmanager with the rules and the tree that are made from the configuration. What must come to whom is a table; the rest must not come.
//!
//! Clocks run twenty times faster; `PAGED_FACTOR=1` runs them as they are, which takes two hours. The tables are printed:
//! `cargo nextest run --test paged --success-output final`.

#[path = "paged/bounds.rs"]
mod bounds;
#[path = "paged/clock.rs"]
mod clock;
#[path = "paged/gate.rs"]
mod gate;
#[path = "paged/installation.rs"]
mod installation;
#[path = "paged/itself.rs"]
mod itself;
#[path = "common/postgres.rs"]
mod postgres;
#[path = "paged/receivers.rs"]
mod receivers;
#[path = "paged/scaled.rs"]
mod scaled;
#[path = "common/scrape.rs"]
mod scrape;
#[path = "paged/servers.rs"]
mod servers;
#[path = "paged/service.rs"]
mod service;
#[path = "paged/stage.rs"]
mod stage;
#[path = "paged/table.rs"]
mod table;
#[path = "common/world.rs"]
mod world;

#[tokio::test(flavor = "multi_thread")]
async fn what_is_wrong_with_the_service_is_told_once_and_in_time() {
    service::run().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_wrong_with_the_monitor_is_told_to_its_owners() {
    itself::run().await;
}

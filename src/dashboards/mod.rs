//! The dashboards for Grafana, generated: nothing in them names a metric or a label that the exporter doesn't have.
//!
//! * [`panel`] is one panel and its queries, [`board`] a dashboard of rows of panels, as Grafana's classic JSON.
//! * [`overview`], [`route`], [`ledger`] and [`monitor`] are the four dashboards.
//!
//! Replicas of one store show the same, so every query takes the greatest by its labels before it adds anything up.

pub mod board;
mod ledger;
mod monitor;
mod overview;
pub mod panel;
mod route;

pub use board::Board;

/// The four dashboards, in the order in which one reads them.
pub fn all() -> [Board; 4] {
    [overview::board(), route::board(), ledger::board(), monitor::board()]
}

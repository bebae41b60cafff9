//! Tests without a server: the domain, the schedule, the configuration, what is generated, and the house itself.

mod architecture;
mod bounded;
mod common;
mod config;
mod domain;
mod exposition;
mod flow;
mod logs;
mod metrics_server;
mod schedule;

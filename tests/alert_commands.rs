//! The commands that look at alerts from the side: `alerts backtest` and `alerts page-test`, as processes of their own, on real
//! stores and a real Alertmanager.

#[path = "alert_commands/backtest.rs"]
mod backtest;
#[path = "alert_commands/page_test.rs"]
mod page_test;
#[path = "alert_commands/past.rs"]
mod past;
#[path = "common/postgres.rs"]
mod postgres_server;
#[path = "alert_commands/run.rs"]
mod run;
#[path = "store/support.rs"]
#[allow(dead_code, unused_imports, unused_macros, reason = "the store's own tests use the rest")]
mod support;

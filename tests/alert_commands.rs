//! The commands that look at alerts from the side: `alerts backtest` and `alerts page-test`, as processes of their own, on real
//! stores and a real Alertmanager.

mod backtest;
mod page_test;
mod past;
mod run;

use crate::store::support;

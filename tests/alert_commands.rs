//! The commands that look at alerts from the side: `alerts backtest`, `alerts suggest` and `alerts page-test`, as processes of their own, on real
//! stores and a real Alertmanager.

mod backtest;
mod page_test;
mod pages;
mod past;
mod replay;
mod run;
mod suggest;
mod suggest_stored;

use crate::store::support;

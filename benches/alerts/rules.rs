//! The rivals: each sees the canaries one by one, and says when it would page.

use chrono::TimeDelta;
use delivery_canary::{
    alerts::simulate::{Millis, Rule},
    domain::failure_evidence::Weights,
};
use std::collections::VecDeque;

/// The rate worth waking somebody for, in all rules that know one.
pub const P1: f64 = 0.3;
/// The bound of the evidence.
pub const BOUND: f64 = 5.0;
/// How long the failing must have lasted, in minutes.
pub const SUSTAIN: i64 = 5;

const MINUTE: Millis = 60_000;

pub fn weights(p0: f64) -> Weights {
    Weights::new(p0, P1, BOUND, TimeDelta::minutes(SUSTAIN))
}

/// The rule before it: the same sum without an allowance; due at the bound when the newest failure is `SUSTAIN` after the first.
#[derive(Clone)]
pub struct Earlier {
    weights: Weights,
    sum: f64,
    first: i64,
    newest: i64,
}

impl Earlier {
    pub fn new(p0: f64) -> Self {
        Self { weights: weights(p0), sum: 0.0, first: 0, newest: 0 }
    }
}

impl Rule for Earlier {
    fn observe(&mut self, slot: Millis, failed: bool) {
        let minute = slot / MINUTE;
        if !failed {
            self.sum = (self.sum + self.weights.down).max(0.0);
            return;
        }
        if self.sum <= 0.0 {
            self.first = minute;
        }
        self.newest = minute;
        self.sum = (self.sum + self.weights.up).min(self.weights.cap());
    }

    fn is_firing(&self) -> bool {
        self.sum >= self.weights.bound && self.newest - self.first >= SUSTAIN
    }

    fn is_open(&self) -> bool {
        self.sum > 0.0
    }
}

/// Three failures in a row.
#[derive(Clone, Default)]
pub struct ThreeInARow {
    failures: u32,
}

impl Rule for ThreeInARow {
    fn observe(&mut self, _: Millis, failed: bool) {
        self.failures = if failed { self.failures + 1 } else { 0 };
    }

    fn is_firing(&self) -> bool {
        self.failures >= 3
    }

    fn is_open(&self) -> bool {
        self.failures > 0
    }

    fn wants_confirmations(&self) -> bool {
        false
    }
}

/// The two paging pairs of the SRE workbook: 14.4 times the budget over an hour and 5 minutes, 6 times over 6 hours and 30 minutes. They
/// are looked at when a canary has settled; the budget is twice the healthy failure rate, as that is half of it by default.
#[derive(Clone)]
pub struct Workbook {
    budget: f64,
    interval: i64,
    now: i64,
    failures: VecDeque<i64>,
}

const LONGEST: i64 = 360;

impl Workbook {
    pub fn new(p0: f64, interval: i64) -> Self {
        Self { budget: 2.0 * p0, interval, now: 0, failures: VecDeque::new() }
    }

    fn burns(&self, factor: f64, minutes: i64) -> bool {
        let from = self.now - minutes;
        let failed = self.failures.iter().rev().take_while(|at| **at > from).count() as f64;
        let sent = self.now.div_euclid(self.interval) - from.div_euclid(self.interval);
        failed > factor * self.budget * sent as f64
    }
}

impl Rule for Workbook {
    fn observe(&mut self, slot: Millis, failed: bool) {
        let minute = slot / MINUTE;
        self.now = minute;
        if failed {
            self.failures.push_back(minute);
        }
        while self.failures.front().is_some_and(|at| *at <= minute - LONGEST) {
            self.failures.pop_front();
        }
    }

    fn is_firing(&self) -> bool {
        let pair = |factor, long, short| self.burns(factor, short) && self.burns(factor, long);
        pair(14.4, 60, 5) || pair(6.0, LONGEST, 30)
    }

    fn is_open(&self) -> bool {
        !self.failures.is_empty()
    }

    fn wants_confirmations(&self) -> bool {
        false
    }
}

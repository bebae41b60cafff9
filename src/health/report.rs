//! From what is known of the process to the answer of a probe. Pure.

use crate::monitor::{
    progress::{LoopReading, Reading},
    steady::Answer,
};
use serde::Serialize;
use std::sync::atomic::{AtomicBool, Ordering};

/// A probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Probe {
    /// Whether the start is done. Once it is, it stays so.
    Startup,
    /// Whether the promises can be kept now.
    Ready,
    /// Whether the loops make progress.
    Live,
}

/// The latch of `/startup`.
#[derive(Debug, Default)]
pub struct Startup(AtomicBool);

/// The answer of a probe.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Report {
    /// Whether it is well.
    pub ok: bool,
    /// Why it isn't: one short sentence each.
    pub reasons: Vec<String>,
    /// The loops, for `/live`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub loops: Vec<LoopReport>,
}

/// One loop, as `/live` shows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LoopReport {
    /// Its name.
    name: &'static str,
    /// How long ago it last ended an iteration.
    age_ms: u128,
    /// How long that may take.
    budget_ms: u128,
    /// Whether it takes longer.
    stalled: bool,
}

/// The answer of a probe to this reading.
pub fn judge(probe: Probe, reading: &Reading, startup: &Startup) -> Report {
    let not_started = not_started(reading, startup);
    let (reasons, loops) = match probe {
        Probe::Startup => (not_started, Vec::new()),
        Probe::Ready => (not_started.into_iter().chain(not_ready(reading)).collect(), Vec::new()),
        // A process that stops ends its loops; how long that may take is limited by the grace time.
        Probe::Live if reading.stopping => (Vec::new(), Vec::new()),
        Probe::Live => (stalled(&reading.loops), reading.loops.iter().map(LoopReport::new).collect()),
    };
    Report { ok: reasons.is_empty(), reasons, loops }
}

/// Why the start isn't done. Once nothing is left to do, never again.
fn not_started(reading: &Reading, startup: &Startup) -> Vec<String> {
    if startup.0.load(Ordering::Acquire) {
        return Vec::new();
    }
    let steps = reading.missing_steps.iter().map(|step| format!("{} not done", step.word()));
    let loops = reading.loops.iter().filter(|l| !l.has_run);
    let reasons: Vec<_> = steps.chain(loops.map(|l| format!("loop {} has not run yet", l.name))).collect();
    if reasons.is_empty() {
        startup.0.store(true, Ordering::Release);
    }
    reasons
}

fn not_ready(reading: &Reading) -> Vec<String> {
    let store = match reading.store {
        Answer::Yes => None,
        Answer::NeverReported => Some("the store has not been tried yet"),
        Answer::Failing => Some("the store can't be used"),
        Answer::Silent => Some("the store has not been tried for too long"),
    };
    let stopping = reading.stopping.then_some("stopping");
    store.into_iter().chain(stopping).map(str::to_owned).collect()
}

fn stalled(loops: &[LoopReading]) -> Vec<String> {
    let stalled = loops.iter().filter(|l| l.is_stalled());
    stalled
        .map(|l| {
            let (age, budget) = (l.age.as_millis(), l.budget.as_millis());
            format!("loop {} has ended no iteration for {age} ms; its budget is {budget} ms", l.name)
        })
        .collect()
}

impl LoopReport {
    fn new(reading: &LoopReading) -> Self {
        Self {
            name: reading.name,
            age_ms: reading.age.as_millis(),
            budget_ms: reading.budget.as_millis(),
            stalled: reading.is_stalled(),
        }
    }
}

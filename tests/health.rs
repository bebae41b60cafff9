//! The monitor's own probes: about this process alone, answered whatever it is busy with, and steady.

use crate::common::http;
use delivery_canary::{
    health::{HealthServer, HealthThread},
    monitor::{
        progress::{LoopHandle, Progress, StartStep},
        steady::{Answer, Patience, Steady},
    },
};
use proptest::prelude::*;
use std::{
    io::Write,
    net::{SocketAddr, TcpStream},
    sync::{Arc, mpsc},
    time::{Duration, Instant},
};

const LONG: Duration = Duration::from_secs(3_600);

struct Bench {
    progress: Arc<Progress>,
    address: SocketAddr,
    _thread: HealthThread,
}

impl Bench {
    fn new() -> Self {
        // No silence within a test, however slow the machine is.
        let progress = Arc::new(Progress::new(Patience { silent_for: LONG, ..PATIENCE }));
        let server = HealthServer::bind("127.0.0.1:0".parse().unwrap(), Arc::clone(&progress)).unwrap();
        let address = server.local_addr().unwrap();
        Self { progress, address, _thread: server.spawn().unwrap() }
    }

    /// One that has started, with one loop that has run.
    fn started() -> (Self, LoopHandle) {
        let bench = Self::new();
        let handle = bench.progress.register("scheduler", LONG);
        StartStep::ALL.into_iter().for_each(|step| bench.progress.step_done(step));
        handle.beat();
        bench.progress.store_tried(true);
        (bench, handle)
    }

    fn status(&self, path: &str) -> u16 {
        http::get(self.address, path).status
    }

    fn reasons(&self, path: &str) -> Vec<String> {
        let answer = http::get(self.address, path);
        let body: serde_json::Value = serde_json::from_str(&answer.body).unwrap();
        assert_eq!(body["ok"] == true, answer.status == 200, "{body}");
        body["reasons"].as_array().unwrap().iter().map(|r| r.as_str().unwrap().to_owned()).collect()
    }

    /// Asks until the probe gives this status.
    fn becomes(&self, path: &str, status: u16) -> Vec<String> {
        let asked_since = Instant::now();
        loop {
            let seen = self.status(path);
            if seen == status {
                return self.reasons(path);
            }
            let waited = asked_since.elapsed();
            assert!(waited < Duration::from_secs(20), "{path} is still {seen}: {:?}", self.reasons(path));
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

#[test]
fn startup_names_what_is_missing_and_then_latches() {
    let bench = Bench::new();
    let all =
        ["configuration", "listeners", "embedded_store", "loops"].map(|step| format!("{step} not done"));
    assert_eq!(bench.reasons("/startup"), all);
    let handle = bench.progress.register("settler", LONG);
    StartStep::ALL.into_iter().for_each(|step| bench.progress.step_done(step));
    assert_eq!(bench.reasons("/startup"), ["loop settler has not run yet"]);
    assert_eq!(bench.status("/ready"), 503, "not before the start is done");
    handle.beat();
    assert_eq!(bench.status("/startup"), 200);
    // What comes later is no matter of the start: a loop of a reload, a store that goes, a stop.
    let _late = bench.progress.register("reloader", LONG);
    bench.progress.store_tried(false);
    bench.progress.stopping();
    assert_eq!(bench.status("/startup"), 200);
}

#[test]
fn trial_05_a_stalled_loop_fails_live_after_its_budget_and_is_named() {
    let (bench, _healthy) = Bench::started();
    assert_eq!(bench.status("/live"), 200);
    let stalled = bench.progress.register("submitter", Duration::from_millis(50));
    let reasons = bench.becomes("/live", 503);
    assert!(reasons.len() == 1 && reasons[0].contains("submitter"), "{reasons:?}");
    let body: serde_json::Value = serde_json::from_str(&http::get(bench.address, "/live").body).unwrap();
    assert_eq!(body["loops"].as_array().unwrap().len(), 2);
    assert_eq!(body["loops"][1]["stalled"], true, "{body}");
    assert_eq!(bench.status("/ready"), 200, "a stalled loop is a matter of /live alone");
    // It gets on: alive again, at least for its budget.
    let asked_since = Instant::now();
    loop {
        stalled.beat();
        if bench.status("/live") == 200 {
            break;
        }
        assert!(asked_since.elapsed() < Duration::from_secs(20), "{:?}", bench.reasons("/live"));
    }
}

#[test]
fn a_loop_whose_iterations_all_end_in_errors_is_alive() {
    let bench = Bench::new();
    let handle = bench.progress.register("ledger_watcher", LONG);
    for _ in 0..100 {
        let failed: Result<(), &str> = Err("the ledger can't be reached");
        handle.beat();
        assert!(failed.is_err());
    }
    bench.progress.store_tried(false);
    assert_eq!(bench.status("/live"), 200, "neither the store nor the ledger is in it");
}

#[test]
fn the_probes_answer_while_every_worker_is_blocked() {
    let (bench, _handle) = Bench::started();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().unwrap();
    let (release, held) = mpsc::channel::<()>();
    let (entered, is_in) = mpsc::channel();
    let blocked = runtime.spawn(async move {
        entered.send(()).unwrap();
        // Blocks the only worker until the test lets go.
        let _ = held.recv();
    });
    is_in.recv().unwrap();
    for path in ["/startup", "/ready", "/live"] {
        assert_eq!(bench.status(path), 200, "{path}");
    }
    assert!(!blocked.is_finished());
    drop(release);
    runtime.block_on(blocked).unwrap();
}

#[test]
fn slow_clients_hold_no_probe_up() {
    let (bench, _handle) = Bench::started();
    // Far more than there are places: half a head each, and then nothing.
    let slow: Vec<_> = (0..300)
        .map(|_| {
            let mut stream = TcpStream::connect(bench.address).unwrap();
            stream.write_all(b"GET /live HTTP/1.1\r\nHo").unwrap();
            stream
        })
        .collect();
    for path in ["/startup", "/ready", "/live"] {
        assert_eq!(bench.status(path), 200, "{path}");
    }
    drop(slow);
}

#[test]
fn stopping_is_not_ready_at_once_and_stays_alive() {
    let bench = Bench::new();
    let _loop_that_ends = bench.progress.register("janitor", Duration::ZERO);
    bench.progress.store_tried(true);
    bench.progress.stopping();
    assert!(bench.reasons("/ready").contains(&"stopping".to_owned()));
    assert_eq!(bench.status("/live"), 200, "a stop ends the loops: the grace time limits it, no restart");
}

#[test]
fn only_the_three_probes_are_there_and_only_to_be_read() {
    let (bench, _handle) = Bench::started();
    assert_eq!(bench.status("/"), 404);
    assert_eq!(bench.status("/metrics"), 404);
    assert_eq!(http::request(bench.address, "POST", "/live").status, 405);
}

#[test]
fn a_server_that_is_dropped_listens_no_more() {
    let (bench, _handle) = Bench::started();
    let address = bench.address;
    drop(bench);
    assert!(TcpStream::connect(address).is_err());
}

const PATIENCE: Patience = Patience {
    failing_for: Duration::from_secs(6),
    working_for: Duration::from_secs(12),
    silent_for: Duration::from_secs(15),
};

fn seconds(n: u64) -> Duration {
    Duration::from_secs(n)
}

/// The answers after each of these reports, one every two seconds.
fn answers(reports: &[bool]) -> Vec<bool> {
    let mut steady = Steady::new(PATIENCE);
    let every_two = reports.iter().zip((0..).step_by(2));
    every_two
        .map(|(works, at)| {
            steady.report(seconds(at), *works);
            steady.answer(seconds(at)) == Answer::Yes
        })
        .collect()
}

#[test]
fn one_fault_turns_nothing_and_an_outage_does() {
    assert_eq!(Steady::new(PATIENCE).answer(LONG), Answer::NeverReported);
    assert!(answers(&[true, true, false, true, false, false, true, true]).iter().all(|ready| *ready));
    let outage = answers(&[true, false, false, false, false, false]);
    assert_eq!(outage, [true, true, true, true, false, false], "after 6 seconds of faults alone");
    let recovery = answers(&[&[false][..], &[true; 8]].concat());
    assert_eq!(recovery.iter().position(|ready| *ready), Some(7), "after 12 seconds of successes alone");
    assert!(answers(&[true])[0], "the first report decides at once");
}

#[test]
fn silence_is_not_ready_and_ends_only_with_steady_work() {
    let mut steady = Steady::new(PATIENCE);
    steady.report(seconds(0), true);
    assert_eq!(steady.answer(seconds(15)), Answer::Yes);
    assert_eq!(steady.answer(seconds(16)), Answer::Silent);
    steady.report(seconds(20), true);
    assert_eq!(steady.answer(seconds(20)), Answer::Failing);
    (21..32).for_each(|at| steady.report(seconds(at), true));
    assert_eq!(steady.answer(seconds(31)), Answer::Failing);
    steady.report(seconds(32), true);
    assert_eq!(steady.answer(seconds(32)), Answer::Yes);
}

proptest! {
    /// Whatever the store does, readiness comes back at most once in the time that it asks to be steady for.
    #[test]
    fn readiness_does_not_flap(reports in prop::collection::vec((1u64..40_000, any::<bool>()), 1..300)) {
        let mut steady = Steady::new(PATIENCE);
        let (mut now, mut was_ready, mut came_back, mut first) = (Duration::ZERO, false, Vec::new(), true);
        for (pause, works) in reports {
            let until = now + Duration::from_millis(pause);
            // Looks between the reports too: a probe comes when it likes.
            for quarter in 1..=4u32 {
                let at = now + (until - now) * quarter / 4;
                let ready = steady.answer(at) == Answer::Yes;
                prop_assert!(!ready || was_ready, "without a report nothing becomes ready");
                was_ready = ready;
            }
            now = until;
            steady.report(now, works);
            let ready = steady.answer(now) == Answer::Yes;
            if ready && !was_ready && !first {
                came_back.push(now);
            }
            (was_ready, first) = (ready, false);
        }
        prop_assert!(came_back.windows(2).all(|pair| pair[1] - pair[0] >= PATIENCE.working_for));
    }
}

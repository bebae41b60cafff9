//! The monitor itself: whether it keeps its schedule, can see, and what it takes.

use super::{
    board::Board,
    panel::{Kind, Panel, State, Unit, colour},
};

pub(super) fn board() -> Board {
    Board {
        uid: "delivery-canary-monitor",
        title: "Delivery canary: the monitor itself",
        description: "Whether the monitor can keep its promises. Nothing here says anything of the service.",
        choices: Vec::new(),
        rows: vec![
            ("Can it see?", sight()),
            ("Does it keep its schedule?", schedule()),
            ("What it takes", costs()),
        ],
    }
}

fn sight() -> Vec<Panel> {
    vec![
        Panel::new(Kind::StateTimeline, "Observers", "Whether each ledger and receiver could be looked at.")
            .query("min by (observer) (delivery_monitor_observer_up)", "{{observer}}")
            .query("min(delivery_monitor_store_up)", "store")
            .states(&[State(0, "blind", colour::BLIND), State(1, "sees", colour::WELL)]),
        Panel::new(
            Kind::TimeSeries,
            "Since the last good iteration of each loop",
            "A loop that stands still shows here before anything else does.",
        )
        .query("time() - max by (loop) (delivery_monitor_loop_last_success_timestamp_seconds)", "{{loop}}")
        .unit(Unit::Seconds),
        Panel::new(Kind::TimeSeries, "Clocks", "How far other clocks are ahead of ours; below zero: behind.")
            .query("max by (against) (delivery_monitor_clock_skew_seconds)", "ahead: {{against}}")
            .query("-min by (against) (delivery_monitor_clock_skew_seconds)", "behind: {{against}}")
            .unit(Unit::Seconds),
        Panel::new(
            Kind::TimeSeries,
            "Requests to receivers, per minute",
            "`self_receipt` are the messages to ourselves, without which a missing receipt proves nothing.",
        )
        .query(
            "60 * sum by (receiver, result) (rate(delivery_monitor_receipts_total[$__rate_interval])) > 0",
            "{{receiver}}: {{result}}",
        ),
    ]
}

fn schedule() -> Vec<Panel> {
    vec![
        Panel::new(Kind::TimeSeries, "Slots missed, per hour", "The monitor was down, too late, or at a route's cap.")
            .query("3600 * sum by (route) (rate(delivery_canary_missed_slots_total[$__rate_interval])) > 0", "{{route}}")
            .size(8, 8),
        Panel::new(Kind::TimeSeries, "Stopped by the guard, per hour", "A request named somebody who is on no allow-list, or could not be made.")
            .query("3600 * sum by (route, reason) (rate(delivery_canary_guard_refusals_total[$__rate_interval])) > 0", "{{route}}: {{reason}}")
            .size(8, 8),
        Panel::new(Kind::Stat, "Configuration", "Whether the newest file is in force, or was refused and the one before is kept.")
            .query("min(delivery_monitor_config_last_reload_successful)", "newest file")
            .states(&[State(0, "refused", colour::BAD), State(1, "in force", colour::WELL)])
            .size(4, 8),
        Panel::new(Kind::Stat, "In force since", "When the configuration was last taken into force, and by which builds.")
            .query("1000 * max(delivery_monitor_config_last_reload_success_timestamp_seconds)", "configuration")
            .unit(Unit::Time)
            .size(4, 4),
        Panel::new(Kind::Stat, "Builds", "More than one version: a roll-out is under way, or a replica was forgotten.")
            .query("count by (version) (delivery_monitor_build_info)", "{{version}}")
            .size(4, 4),
    ]
}

fn costs() -> Vec<Panel> {
    vec![
        Panel::new(Kind::TimeSeries, "Processor", "Share of one processor, by process. What it should be: docs/performance.md.")
            .query("rate(process_cpu_seconds_total[$__rate_interval]) and on (instance, job) delivery_monitor_build_info", "{{instance}}")
            .unit(Unit::Share)
            .size(8, 8),
        Panel::new(Kind::TimeSeries, "Memory", "Resident, by process. What it should be: docs/performance.md.")
            .query("process_resident_memory_bytes and on (instance, job) delivery_monitor_build_info", "{{instance}}")
            .unit(Unit::Bytes)
            .size(8, 8),
        Panel::new(Kind::TimeSeries, "Open files", "By process. One that grows for ever is a leak.")
            .query("process_open_fds and on (instance, job) delivery_monitor_build_info", "{{instance}}")
            .size(8, 8),
    ]
}

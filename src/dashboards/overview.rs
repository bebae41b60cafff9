//! All routes at a glance, and above them whether the monitor can see.

use super::{
    board::{Board, Choice},
    panel::{Kind, Panel, State, Unit, colour},
};

/// What a route is doing, from what the rules and the evidence say.
const ROUTE_STATES: [State; 4] = [
    State(0, "arriving", colour::WELL),
    State(1, "failing, not yet sustained", colour::DOUBT),
    State(2, "failing: pages", colour::BAD),
    State(3, "not measured", colour::BLIND),
];

pub(super) fn board() -> Board {
    Board {
        uid: "delivery-canary-overview",
        title: "Delivery canary: all routes",
        description: "Whether notifications arrive, by route, and whether the monitor itself can see.",
        choices: vec![Choice { label: "route", of: "delivery_canary_interval_seconds", many: true }],
        rows: vec![
            ("Can the monitor see?", sight()),
            ("Do notifications arrive?", routes()),
            ("Everybody's notifications", everybody()),
        ],
    }
}

fn sight() -> Vec<Panel> {
    vec![
        Panel::new(
            Kind::Stat,
            "Observers",
            "Whether each ledger and receiver can be looked at. While one can't, what it would show is neither good nor bad.",
        )
        .query("min by (observer) (delivery_monitor_observer_up)", "{{observer}}")
        .states(&[State(0, "blind", colour::BLIND), State(1, "sees", colour::WELL)])
        .size(8, 4),
        Panel::new(
            Kind::Stat,
            "Since the last good iteration of each loop",
            "The longest of the loops, of any process, that canaries and figures depend on. Everything below may be as old as this.",
        )
        .query(
            "max(time() - max by (job, instance, loop) (delivery_monitor_loop_last_success_timestamp_seconds{loop=~\"scheduler|submitter|settler|evidence|publisher\"}))",
            "oldest loop",
        )
        .unit(Unit::Seconds)
        .thresholds(colour::WELL, &[(60.0, colour::DOUBT), (300.0, colour::BLIND)])
        .size(4, 4),
        Panel::new(
            Kind::Stat,
            "Age of the ledger's reading",
            "How old the figures of everybody's notifications are. Without a reading there is none: no age is not a good age.",
        )
        .query("time() - max by (ledger) (delivery_ledger_snapshot_timestamp_seconds)", "{{ledger}}")
        .unit(Unit::Seconds)
        .thresholds(colour::WELL, &[(120.0, colour::DOUBT), (300.0, colour::BLIND)])
        .size(6, 4),
        Panel::new(Kind::Stat, "Store", "Whether every process of the monitor can write down what it sees.")
            .query("min(delivery_monitor_store_up)", "store")
            .states(&[State(0, "down", colour::BLIND), State(1, "up", colour::WELL)])
            .size(3, 4),
        Panel::new(Kind::Stat, "Routes paused or in maintenance", "Paused routes are not measured; maintenance mutes their pages.")
            .query("sum(max by (route) (delivery_canary_paused))", "paused")
            .query("sum(max by (route) (delivery_canary_maintenance))", "in maintenance")
            .thresholds(colour::WELL, &[(1.0, colour::DOUBT)])
            .size(3, 4),
    ]
}

fn routes() -> Vec<Panel> {
    vec![
        Panel::new(
            Kind::StateTimeline,
            "Routes",
            "Arriving; failing, but not sustained; failing so that a person is paged, which is what the rule says, so it needs the rules to be loaded; \
             and not measured: paused, its canaries say nothing, or no process has read what settled.",
        )
        .query(
            "2 * max by (route) (ALERTS{alertname=\"CanaryDeliveryFailing\", alertstate=\"firing\", route=~\"$route\"}) \
             or max by (route) (delivery_canary_failing_since_timestamp_seconds{question=\"arrives\", route=~\"$route\"} > bool 0) \
             or 3 * max by (route) (delivery_canary_paused{route=~\"$route\"} == 1) \
             or 3 * group by (route) (delivery_canary_unmeasured_since_timestamp_seconds{route=~\"$route\"}) \
             or 0 * max by (route) (delivery_canary_failure_evidence{question=\"arrives\", route=~\"$route\"}) \
             or 3 * group by (route) (delivery_canary_interval_seconds{route=~\"$route\"})",
            "{{route}}",
        )
        .states(&ROUTE_STATES)
        .size(24, 9),
        Panel::new(
            Kind::TimeSeries,
            "Evidence that canaries do not arrive",
            "In powers of ten: 5 is a hundred thousand to one. It is at the route's bound only when the failing has lasted.",
        )
        .query(
            "max by (route) (delivery_canary_failure_evidence{question=\"arrives\", route=~\"$route\"}) > 0",
            "{{route}}",
        ),
        Panel::new(
            Kind::BarGauge,
            "Budget left, of 30 days",
            "What is left of the failures that the objective allows, by scheduled canaries. Below zero the objective is missed.",
        )
        .query(
            "1 - (sum by (route) (max by (route, location) (delivery_canary_window{window=\"30d\", class=\"bad\", route=~\"$route\"})) \
             / (sum by (route) (max by (route, location, class) (delivery_canary_window{window=\"30d\", class=~\"good|bad\", route=~\"$route\"})) > 0)) \
             / (1 - max by (route) (delivery_route_objective_ratio{route=~\"$route\"}))",
            "{{route}}",
        )
        .unit(Unit::Share)
        .thresholds(colour::BAD, &[(0.0, colour::DOUBT), (0.5, colour::WELL)]),
        Panel::new(
            Kind::Table,
            "Verdicts of the last day",
            "Scheduled canaries first settled within a day, by the verdict in force. `undetermined` says that we could not look.",
        )
        .query(
            "sum by (route, verdict) (max by (route, location, verdict) (delivery_canary_verdicts{route=~\"$route\"})) > 0",
            "{{route}} {{verdict}}",
        ),
        Panel::new(Kind::Table, "Where the newest failure stopped", "Only while there is evidence of failure.")
            .query(
                "max by (route, location, stage) (delivery_canary_stopped_at{route=~\"$route\"}) == 1",
                "{{route}} {{stage}}",
            ),
    ]
}

fn everybody() -> Vec<Panel> {
    vec![
        Panel::new(
            Kind::Heatmap,
            "Ages of the pending",
            "All routes that are chosen. A snapshot of now at each moment: how many are pending, by how long they have been due.",
        )
        .query(
            "sum by (le) (max by (route, le) (delivery_ledger_pending_age_seconds_bucket{route=~\"$route\"}))",
            "{{le}}",
        )
        .unit(Unit::Count),
        Panel::new(
            Kind::TimeSeries,
            "Pending past the deadline",
            "An exact count, of everybody's notifications. At least so many while a reading is cut, which is then drawn as 1.",
        )
        .query("max by (route) (delivery_ledger_pending_over_deadline{route=~\"$route\"})", "{{route}}")
        .query("max by (ledger) (delivery_ledger_truncated) > 0", "{{ledger}}: cut, there may be more"),
    ]
}

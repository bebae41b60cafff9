//! One route: its canaries by the three views, the stages of their way, and its customers' notifications.

use super::{
    board::{Board, Choice},
    panel::{Kind, Panel, State, Unit, colour},
};

pub(super) fn board() -> Board {
    Board {
        uid: "delivery-canary-route",
        title: "Delivery canary: one route",
        description: "What became of the canaries of one route, stage by stage, and where the three views contradict each other.",
        choices: vec![
            Choice { label: "route", of: "delivery_canary_interval_seconds", many: false },
            Choice { label: "location", of: "delivery_canary_in_flight", many: true },
        ],
        rows: vec![
            ("Now", now()),
            ("The way of a canary", stages()),
            ("The three views", views()),
            ("Everybody's notifications", everybody()),
        ],
    }
}

fn now() -> Vec<Panel> {
    vec![
        Panel::new(Kind::Stat, "Newest canary that arrived whole", "By place of observation. No data: none has arrived yet.")
            .query(
                "time() - max by (location) (delivery_canary_last_arrival_timestamp_seconds{route=\"$route\", location=~\"$location\"})",
                "{{location}}",
            )
            .unit(Unit::Seconds)
            .size(6, 4),
        Panel::new(Kind::Stat, "Failures in a row", "Up to the newest canary that settled.")
            .query("max by (location) (delivery_canary_consecutive_failures{route=\"$route\", location=~\"$location\"})", "{{location}}")
            .thresholds(colour::WELL, &[(1.0, colour::DOUBT)])
            .size(5, 4),
        Panel::new(Kind::Stat, "Failing since", "The slot of the first failure since there was no evidence of failure. No data: there is none.")
            .query(
                "1000 * min by (location, question) (delivery_canary_failing_since_timestamp_seconds{route=\"$route\", location=~\"$location\"})",
                "{{location}}: {{question}}",
            )
            .unit(Unit::Time)
            .thresholds(colour::DOUBT, &[])
            .size(7, 4),
        Panel::new(Kind::Stat, "Paused or in maintenance", "A paused route is not measured; maintenance mutes its pages.")
            .query("max(delivery_canary_paused{route=\"$route\"})", "paused")
            .query("max(delivery_canary_maintenance{route=\"$route\"})", "in maintenance")
            .states(&[State(0, "no", colour::WELL), State(1, "yes", colour::DOUBT)])
            .size(6, 4),
        Panel::new(
            Kind::TimeSeries,
            "Evidence of failure",
            "Two questions: does it arrive, and does it arrive in time? In powers of ten, and at the route's bound only when it is sustained.",
        )
        .query(
            "max by (location, question) (delivery_canary_failure_evidence{route=\"$route\", location=~\"$location\"})",
            "{{location}}: {{question}}",
        ),
        Panel::new(Kind::TimeSeries, "Verdicts of the last day", "Scheduled canaries by the verdict in force.")
            .query(
                "sum by (verdict) (max by (location, verdict) (delivery_canary_verdicts{route=\"$route\", location=~\"$location\"})) > 0",
                "{{verdict}}",
            ),
    ]
}

/// A small chart for each stage, all on the same terms.
fn stages() -> Vec<Panel> {
    let stage = |stage: &str, title, description| {
        let of = |part: &str| {
            format!("delivery_canary_stage_seconds_{part}{{route=\"$route\", stage=\"{stage}\"}}")
        };
        let mean = format!(
            "sum(rate({}[$__rate_interval])) / (sum(rate({}[$__rate_interval])) > 0)",
            of("sum"),
            of("count")
        );
        let p95 = format!("histogram_quantile(0.95, sum by (le) (rate({}[1h])))", of("bucket"));
        Panel::new(Kind::TimeSeries, title, description)
            .query(mean, "mean")
            .query(p95, "95 of 100 within, over an hour")
            .unit(Unit::Seconds)
            .size(6, 7)
    };
    vec![
        stage(
            "accept",
            "To acceptance",
            "From the first submission to the API's acceptance, of canaries that arrived.",
        ),
        stage(
            "first_attempt",
            "To the first attempt",
            "From the first submission to the first attempt in the ledger: the queue's part.",
        ),
        stage(
            "ledger_delivered",
            "To delivered, by the ledger",
            "From the first submission to the attempt that delivered.",
        ),
        stage(
            "receipt",
            "To the receipt",
            "From the first submission to the receipt. Its bounds are few: read the 95 as between two of them.",
        ),
    ]
}

fn views() -> Vec<Panel> {
    vec![
        Panel::new(Kind::Table, "Contradictions of the last day", "Where API, ledger and sink say different things. Each is a finding of its own.")
            .query("max by (kind) (delivery_canary_disagreements{route=\"$route\"}) > 0", "{{kind}}")
            .size(8, 8),
        Panel::new(Kind::TimeSeries, "Submissions, per minute", "By what the acceptance API answered to this process; repeats under one key count each.")
            .query("60 * sum by (result) (rate(delivery_canary_submissions_total{route=\"$route\"}[$__rate_interval]))", "{{result}}")
            .size(8, 8),
        Panel::new(Kind::TimeSeries, "In flight", "Canaries without a verdict.")
            .query("max by (location) (delivery_canary_in_flight{route=\"$route\", location=~\"$location\"})", "{{location}}: in flight")
            .size(8, 8),
    ]
}

fn everybody() -> Vec<Panel> {
    vec![
        Panel::new(
            Kind::Heatmap,
            "Ages of the pending",
            "How many are pending at each moment, by how long they have been due.",
        )
        .query(
            "sum by (le) (max by (le) (delivery_ledger_pending_age_seconds_bucket{route=\"$route\"}))",
            "{{le}}",
        ),
        Panel::new(
            Kind::TimeSeries,
            "Pending, by state",
            "`scheduled` is not due yet; `unknown` is what nobody can say of. At least so many while a reading is cut, which is then drawn as 1.",
        )
        .query("max by (state) (delivery_ledger_pending{route=\"$route\"})", "{{state}}")
        .query("max(delivery_ledger_pending_over_deadline{route=\"$route\"})", "past the deadline")
        .query("max by (ledger) (delivery_ledger_truncated) > 0", "{{ledger}}: cut, there may be more"),
    ]
}

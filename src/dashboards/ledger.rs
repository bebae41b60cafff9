//! A ledger: where everybody's notifications stand, their ages and outcomes, and whether the books balance.

use super::{
    board::{Board, Choice},
    panel::{Kind, Panel, State, Unit, colour},
};

pub(super) fn board() -> Board {
    Board {
        uid: "delivery-canary-ledger",
        title: "Delivery canary: the ledger",
        description: "Everybody's notifications, by the service's own ledger. Canaries are not among them.",
        choices: vec![
            Choice { label: "ledger", of: "delivery_ledger_follower", many: true },
            Choice { label: "route", of: "delivery_ledger_pending", many: true },
        ],
        rows: vec![
            ("Is it followed?", following()),
            ("Where notifications stand", partition()),
            ("The pending", pending()),
            ("Can the figures be trusted?", trust()),
        ],
    }
}

fn following() -> Vec<Panel> {
    vec![
        Panel::new(Kind::Stat, "What the follower does", "`snapshot`: more is pending than may be held, so that only the pending query counts.")
            .query("max by (ledger, mode) (delivery_ledger_follower{ledger=~\"$ledger\", mode!=\"standby\"}) == 1", "{{ledger}}: {{mode}}")
            .size(6, 4),
        Panel::new(Kind::Stat, "Age of the reading", "How old the figures are.")
            .query("time() - max by (ledger) (delivery_ledger_snapshot_timestamp_seconds{ledger=~\"$ledger\"})", "{{ledger}}")
            .unit(Unit::Seconds)
            .thresholds(colour::WELL, &[(120.0, colour::DOUBT), (300.0, colour::BLIND)])
            .size(6, 4),
        Panel::new(Kind::Stat, "Held in memory", "Notifications that are pending, or too new to be closed.")
            .query("max by (ledger) (delivery_ledger_followed_notifications{ledger=~\"$ledger\"})", "{{ledger}}")
            .size(6, 4),
        Panel::new(Kind::Stat, "Replica lag", "How far the database that is read is behind. No data: it was never measured, or can't be.")
            .query("max by (ledger) (delivery_ledger_lag_seconds{ledger=~\"$ledger\"})", "{{ledger}}")
            .unit(Unit::Seconds)
            .size(6, 4),
        Panel::new(Kind::TimeSeries, "What it costs: rows read, per minute", "All queries of ours on this ledger.")
            .query("60 * sum by (ledger) (rate(delivery_ledger_rows_read_total{ledger=~\"$ledger\"}[$__rate_interval]))", "{{ledger}}"),
        Panel::new(Kind::TimeSeries, "What it costs: time of a reading", "The mean, failed readings included.")
            .query(
                "sum by (ledger) (rate(delivery_ledger_read_seconds_sum{ledger=~\"$ledger\"}[$__rate_interval])) \
                 / (sum by (ledger) (rate(delivery_ledger_read_seconds_count{ledger=~\"$ledger\"}[$__rate_interval])) > 0)",
                "{{ledger}}",
            )
            .unit(Unit::Seconds),
    ]
}

fn partition() -> Vec<Panel> {
    vec![
        Panel::new(Kind::TimeSeries, "Dispositions over six hours", "Of what was due in the six hours that ended a deadline ago. The four make up the accepted.")
            .query(
                "sum by (disposition) (max by (route, disposition) (delivery_ledger_window_notifications{window=\"6h\", route=~\"$route\"}))",
                "{{disposition}}",
            ),
        Panel::new(Kind::TimeSeries, "Share that went bad, over an hour", "Rejected for a cause of the service, or pending past the deadline. A route that accepted nothing has no share.")
            .query(
                "max by (route) (delivery_ledger_window_bad{window=\"1h\", route=~\"$route\"}) \
                 / (max by (route) (delivery_ledger_window_accepted{window=\"1h\", route=~\"$route\"}) > 0)",
                "{{route}}",
            )
            .unit(Unit::Share),
        Panel::new(Kind::TimeSeries, "Attempts of half an hour, by outcome", "A surge of `retryable` is what retries still hide.")
            .query(
                "sum by (outcome) (max by (route, outcome) (delivery_ledger_window_attempts{window=\"30m\", route=~\"$route\"}))",
                "{{outcome}}",
            ),
        Panel::new(Kind::TimeSeries, "Rejected for good over a day, by cause", "`recipient` is that recipient's matter, `service` is ours to mend.")
            .query(
                "sum by (cause) (max by (route, cause) (delivery_ledger_window_rejected{window=\"1d\", route=~\"$route\"}))",
                "{{cause}}",
            ),
    ]
}

fn pending() -> Vec<Panel> {
    vec![
        Panel::new(Kind::Heatmap, "Ages of the pending", "How many are pending at each moment, by how long they have been due.")
            .query(
                "sum by (le) (max by (route, le) (delivery_ledger_pending_age_seconds_bucket{route=~\"$route\"}))",
                "{{le}}",
            ),
        Panel::new(Kind::TimeSeries, "Age of the oldest pending", "Since it was due; there may be an older one while a reading is cut. No data: nothing due is pending.")
            .query(
                "time() - min by (route) (delivery_ledger_oldest_pending_due_timestamp_seconds{route=~\"$route\"})",
                "{{route}}",
            )
            .unit(Unit::Seconds),
    ]
}

fn trust() -> Vec<Panel> {
    vec![
        Panel::new(
            Kind::TimeSeries,
            "Residue of the last closed hour",
            "Notifications on whose place the follower and an exact count differ. More than one in a hundred of the counted gates the ratios.",
        )
        .query("max by (route) (delivery_ledger_residue{route=~\"$route\"})", "{{route}}"),
        Panel::new(
            Kind::TimeSeries,
            "Accepted, and not in the ledger",
            "Of the last closed hour: at least so many were accepted by an independent count and never written. No data: there is no such count, or it is not certain.",
        )
        .query(
            "max by (route) (delivery_ledger_accepted_elsewhere{route=~\"$route\"}) - max by (route) (delivery_ledger_accepted_here{route=~\"$route\"})",
            "{{route}}",
        ),
        Panel::new(Kind::Table, "Changes of history, of the last day", "What the audit found and history doesn't allow.")
            .query("max by (ledger, kind) (delivery_ledger_history_violations{ledger=~\"$ledger\"})", "{{ledger}} {{kind}}")
            .size(6, 8),
        Panel::new(Kind::Stat, "Canaries among the customers", "Since this process follows. They are left out of the numbers, but by our knowledge alone.")
            .query("sum(max by (route) (delivery_ledger_canary_leaks{route=~\"$route\"}))", "leaks")
            .thresholds(colour::WELL, &[(1.0, colour::DOUBT)])
            .size(6, 4),
        Panel::new(Kind::Stat, "Rows that aren't understood, of an hour", "Statuses that are in no table, and times that are missing or absurd.")
            .query("sum(increase(delivery_ledger_unmapped_statuses_total{ledger=~\"$ledger\"}[1h]))", "statuses")
            .query("sum(increase(delivery_ledger_refused_times_total{ledger=~\"$ledger\"}[1h]))", "times")
            .thresholds(colour::WELL, &[(1.0, colour::DOUBT)])
            .size(6, 4),
        Panel::new(Kind::Stat, "Behind the cursor, and overdue", "Pending notifications that no stream showed, found since this process follows, and not found; and readings of the audit that are due.")
            .query("sum(max by (ledger) (delivery_ledger_dated_back{ledger=~\"$ledger\"}))", "found")
            .query("sum(max by (ledger) (delivery_ledger_pending_unseen{ledger=~\"$ledger\"}))", "not found")
            .query("sum(max by (ledger) (delivery_ledger_history_overdue{ledger=~\"$ledger\"}))", "readings overdue")
            .thresholds(colour::WELL, &[(1.0, colour::DOUBT)])
            .size(6, 4),
        Panel::new(Kind::Stat, "Could our role write?", "It should not be able to.")
            .query("max by (ledger) (delivery_ledger_role_can_write{ledger=~\"$ledger\"})", "{{ledger}}")
            .states(&[State(0, "no", colour::WELL), State(1, "yes", colour::BAD)])
            .size(6, 4),
    ]
}

//! Maintenance windows.

use super::names::refer_route;
use crate::config::{
    draft::Draft,
    model::MaintenanceWindow,
    report::{At, Report},
};
use chrono::{DateTime, TimeDelta, Utc};

pub(super) fn check(
    window: &MaintenanceWindow,
    draft: &Draft,
    now: DateTime<Utc>,
    at: &At,
    report: &mut Report,
) {
    for (n, name) in window.routes.iter().enumerate() {
        refer_route(name, draft, &at.key("routes").key(n), report);
    }
    for (key, text) in [("owner", &window.owner), ("reason", &window.reason)] {
        if text.trim().is_empty() {
            report.fault(
                &at.key(key),
                format!("the {key} is empty"),
                "say it: it is shown with what is muted",
            );
        } else if text.len() > 200 {
            report.fault(&at.key(key), format!("the {key} has {} bytes", text.len()), "write at most 200");
        }
    }
    let until = &at.key("until");
    match window.from {
        Some(from) if window.until <= from => {
            report.fault(until, "this maintenance ends before it starts", "put `until` after `from`");
        }
        _ if window.until <= now => {
            report.warn(until, "this maintenance is over", "remove it");
        }
        from if window.until - from.unwrap_or(now) > TimeDelta::days(92) => {
            report.warn(
                until,
                "this maintenance mutes pages for more than three months",
                "choose a nearer end",
            );
        }
        _ => {}
    }
}

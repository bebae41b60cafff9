//! Retention and the time to stop.

use crate::config::{
    draft::Draft,
    report::{At, Report},
    scalar::Span,
};
use std::time::Duration;

const HOUR: Duration = Duration::from_secs(3600);
const DAY: Duration = Duration::from_secs(86_400);

pub(super) fn check(draft: &Draft, report: &mut Report) {
    let top = At::root();
    if let Some(retention) = &draft.retention {
        let at = top.key("retention");
        let longest =
            draft.routes.iter().flatten().map(|route| route.follow_for.get()).max().unwrap_or_default();
        let least = longest.saturating_mul(2);
        if retention.canaries.get() < least {
            let message = format!(
                "`canaries` is kept for {}, and a canary is followed for up to {}",
                retention.canaries,
                Span(longest)
            );
            report.fault(&at.key("canaries"), message, format!("write at least {}", Span(least)));
        }
        // Windows reach back three days from now; the rollup of the current hour must not be gone before it is used.
        let least = DAY * 3 + HOUR;
        if retention.minutes.get() < least {
            let message =
                format!("`minutes` is {}, and windows of three days are made of them", retention.minutes);
            report.fault(&at.key("minutes"), message, format!("write at least {}", Span(least)));
        }
        let least = DAY * 31;
        if retention.hours.get() < least {
            let message =
                format!("`hours` is {}, and windows of thirty days are made of them", retention.hours);
            report.fault(&at.key("hours"), message, format!("write at least {}", Span(least)));
        }
    }
    if let Some(grace) = draft.grace {
        let (least, most) = (Span::seconds(1), Span::seconds(600));
        if grace < least || grace > most {
            let message = format!("a grace time of {grace}");
            report.fault(
                &top.key("grace"),
                message,
                format!("write {least} to {most}, below the orchestrator's own"),
            );
        }
    }
}

/// A limit on waiting: more than nothing, and at most an hour.
pub(super) fn limit(span: Span, at: &At, report: &mut Report) {
    if span.get().is_zero() || span.get() > HOUR {
        report.fault(at, format!("a limit of {span}"), "write more than 0s and at most 1h");
    }
}

//! The objective, and how failures are weighed.

use crate::config::{
    model::Route,
    report::{At, Report},
};

pub(super) fn check(route: &Route, at: &At, report: &mut Report) {
    let objective = route.objective_percent;
    if !(objective > 0.0 && objective < 100.0) {
        let hint = if objective == 100.0 {
            "a budget of nothing is spent by one failure, and no ratio can be made of it: write 99.99, say"
        } else {
            "write per cent, above 0 and below 100, such as 99.9"
        };
        report.fault(&at.key("objective_percent"), format!("an objective of {objective} per cent"), hint);
        return;
    }
    if objective < 1.0 {
        let hint = format!("it is in per cent: did you mean {:.3}?", objective * 100.0);
        report.fault(&at.key("objective_percent"), format!("an objective of {objective} per cent"), hint);
        return;
    }
    let at = at.key("evidence");
    let (p0, p1, bound) = (route.healthy_failure_rate(), route.evidence.p1, route.evidence.bound);
    if !(p0 > 0.0 && p0 < 1.0) {
        report.fault(
            &at.key("p0"),
            format!("a healthy failure rate of {p0}"),
            "write a share above 0 and below 1",
        );
    } else if !(p1 > p0 && p1 < 1.0) {
        let message = format!("`p1` is {p1}, and `p0` is {p0}");
        report.fault(
            &at.key("p1"),
            message,
            "`p1` must lie above `p0` and below 1: the rate worth waking for",
        );
    }
    if !(bound > 0.0 && bound <= 20.0) {
        let hint = "write powers of ten, above 0 and at most 20; 5 is a hundred thousand to one";
        report.fault(&at.key("bound"), format!("a bound of {bound}"), hint);
    }
    if route.evidence.sustain.get() > std::time::Duration::from_secs(86_400) {
        let message = format!("failing must last {} before a page", route.evidence.sustain);
        report.fault(&at.key("sustain"), message, "write at most 1d");
    }
}

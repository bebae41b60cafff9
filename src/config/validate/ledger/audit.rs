//! The audit of a ledger's history.

use crate::config::{
    ledger::Ledger,
    report::{At, Report},
};
use std::time::Duration;

const HOUR: Duration = Duration::from_secs(3_600);
const MOST: Duration = Duration::from_secs(4_000 * 86_400);

/// The most notifications in the sample: each is a row of the store.
const LARGEST_SAMPLE: u32 = 20_000;

/// The most ages.
const MOST_AGES: usize = 16;

pub(super) fn check(ledger: &Ledger, at: &At, report: &mut Report) {
    let audit = &ledger.audit;
    let (of_audit, of_ages) = (at.key("audit"), at.keys(&["audit", "ages"]));
    if ledger.retention.get() < HOUR || ledger.retention.get() > MOST {
        let message = format!("a retention of {}", ledger.retention);
        report.fault(&at.key("retention"), message, "write how long rows surely stay, 1h to 4000d");
    }
    if audit.sample > LARGEST_SAMPLE {
        let message = format!("`sample` is {}", audit.sample);
        report.fault(&of_audit.key("sample"), message, format!("write at most {LARGEST_SAMPLE}"));
    }
    let is_ascending = audit.ages.is_sorted_by(|one, next| one < next);
    let is_positive = audit.ages.first().is_some_and(|first| first.get() >= Duration::from_secs(1));
    if !is_ascending || !is_positive || !(2..=MOST_AGES).contains(&audit.ages.len()) {
        let hint = format!(
            "write 2 to {MOST_AGES} ages, from 1s on and each above the one before, such as [5m, 1h, 6h, 1d]"
        );
        report.fault(&of_ages, "these are no ages to read at", hint);
    } else if audit.sample > 0 && audit.ages[1].get() + Duration::from_secs(60) >= ledger.retention.get() {
        let message = format!(
            "the second of the ages is {}, and rows stay for {}: there would be nothing to hold the first reading against",
            audit.ages[1], ledger.retention
        );
        report.fault(&of_ages, message, "write two ages well below `retention`, or `sample: 0`");
    }
}

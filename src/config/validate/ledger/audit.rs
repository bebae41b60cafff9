//! The audit of a ledger's history.

use crate::{
    config::{
        ledger::Ledger,
        report::{At, Report},
    },
    domain::audit::sample::Settings,
};
use chrono::TimeDelta;
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
    } else {
        keeps_up(ledger, &of_audit.key("sample"), report);
    }
}

/// Whether all that falls due of a full sample can be read.
fn keeps_up(ledger: &Ledger, at: &At, report: &mut Report) {
    let audit = &ledger.audit;
    let settings = Settings {
        size: audit.sample as usize,
        ages: audit.ages.iter().map(|age| age.delta()).collect(),
        retention: ledger.retention.delta(),
        second_reading: TimeDelta::zero(),
        meaning: 0,
    };
    let refresh = ledger.refresh_every.delta();
    let (due, can) = settings.readings_in(refresh);
    if due > can {
        let last = audit.ages.last().copied().unwrap_or(ledger.retention);
        let message = format!(
            "`sample` is {}: on a busy ledger {due} readings fall due at each refresh ({} notifications in each 24th part of {last}, each read at {} \
             ages, every {}), and {can} are made",
            audit.sample,
            (audit.sample / 25).max(1),
            audit.ages.len(),
            ledger.refresh_every
        );
        let hint = match settings.largest_for(refresh) {
            0 => "write a greater last age, fewer ages, or a shorter `refresh_every`".to_owned(),
            largest => format!(
                "write at most {largest}, a greater last age, fewer ages, or a shorter `refresh_every`"
            ),
        };
        report.fault(at, message, hint);
    }
}

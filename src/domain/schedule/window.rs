//! Spans in which a route is muted or stopped. Each has an owner, a reason and an end.

use chrono::{DateTime, Utc};

use super::error::ScheduleError;

/// Planned work: canaries go on and are measured, pages are muted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Maintenance {
    owner: String,
    reason: String,
    from: DateTime<Utc>,
    until: DateTime<Utc>,
}

impl Maintenance {
    /// Checks a maintenance.
    ///
    /// # Errors
    /// When the owner or the reason is blank, or it ends before it starts.
    pub fn new(
        owner: &str,
        reason: &str,
        from: DateTime<Utc>,
        until: DateTime<Utc>,
    ) -> Result<Self, ScheduleError> {
        let (owner, reason) = (said("owner", owner)?, said("reason", reason)?);
        if until <= from {
            return Err(ScheduleError::Window {
                field: "until",
                what: "the end is not after the start",
                hint: "write an instant later than `from`",
            });
        }
        Ok(Self { owner, reason, from, until })
    }

    /// Who answers for it.
    pub fn owner(&self) -> &str {
        &self.owner
    }

    /// Why.
    pub fn reason(&self) -> &str {
        &self.reason
    }

    /// Its first instant.
    pub fn from(&self) -> DateTime<Utc> {
        self.from
    }

    /// The first instant after it.
    pub fn until(&self) -> DateTime<Utc> {
        self.until
    }

    /// Whether it is in force at `now`: from its start, until just before its end.
    pub fn is_active(&self, now: DateTime<Utc>) -> bool {
        self.from <= now && now < self.until
    }
}

/// A pause, the kill switch: nothing is sent until it expires.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pause {
    owner: String,
    reason: String,
    until: DateTime<Utc>,
}

impl Pause {
    /// Checks a pause. It is in force at once; one that has expired already is allowed and does nothing.
    ///
    /// # Errors
    /// When the owner or the reason is blank.
    pub fn new(owner: &str, reason: &str, until: DateTime<Utc>) -> Result<Self, ScheduleError> {
        Ok(Self { owner: said("owner", owner)?, reason: said("reason", reason)?, until })
    }

    /// Who paused.
    pub fn owner(&self) -> &str {
        &self.owner
    }

    /// Why.
    pub fn reason(&self) -> &str {
        &self.reason
    }

    /// The first instant at which canaries may go out again.
    pub fn until(&self) -> DateTime<Utc> {
        self.until
    }

    /// Whether it is in force at `now`: until just before its end.
    pub fn is_active(&self, now: DateTime<Utc>) -> bool {
        now < self.until
    }
}

fn said(field: &'static str, text: &str) -> Result<String, ScheduleError> {
    match text.trim() {
        "" => Err(ScheduleError::Window {
            field,
            what: "it is blank",
            hint: "say who answers for it and why, so that nobody has to guess",
        }),
        text => Ok(text.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use chrono::TimeDelta;

    use super::*;

    fn utc(text: &str) -> DateTime<Utc> {
        text.parse().unwrap()
    }

    #[test]
    fn windows_have_an_owner_a_reason_and_an_end() {
        let (from, until) = (utc("2026-11-29T10:00:00Z"), utc("2026-11-29T11:00:00Z"));
        let just_before = until - TimeDelta::nanoseconds(1);
        let work = Maintenance::new(" payments ", "database upgrade", from, until).expect("complete");
        assert_eq!(
            (work.owner(), work.reason(), work.from(), work.until()),
            ("payments", "database upgrade", from, until)
        );
        let before = from - TimeDelta::seconds(1);
        assert_eq!(
            [before, from, just_before, until].map(|now| work.is_active(now)),
            [false, true, true, false]
        );
        let pause = Pause::new("payments", "customers see canaries", until).expect("complete");
        assert_eq!(
            (pause.owner(), pause.reason(), pause.until()),
            ("payments", "customers see canaries", until)
        );
        assert_eq!([before, just_before, until].map(|now| pause.is_active(now)), [true, true, false]);
        for refused in [
            Maintenance::new(" ", "upgrade", from, until).map(drop),
            Maintenance::new("payments", "", from, until).map(drop),
            Maintenance::new("payments", "upgrade", from, from).map(drop),
            Pause::new("", "upgrade", until).map(drop),
            Pause::new("payments", "\t", until).map(drop),
        ] {
            assert!(matches!(refused, Err(ScheduleError::Window { .. })), "{refused:?}");
        }
    }
}

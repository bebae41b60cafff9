//! Instants of ours, written as a ledger writes its times. Never later than meant from below, never earlier from above.

use super::{position::Value, sql::Dialect, time::Form};
use chrono::{DateTime, Days, NaiveDateTime, Offset, SubsecRound, TimeDelta, TimeZone, Utc};
use chrono_tz::Tz;

/// How far around a bound a change of the clock matters: no clock is changed by more.
const CLOCK_CHANGE: TimeDelta = TimeDelta::hours(3);

/// How the values of a parameter are written where nothing else tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Times {
    /// The database has types for times.
    Typed,
    /// Times are texts.
    Texts,
}

impl Times {
    /// What a database of this dialect has.
    pub fn of(dialect: Dialect) -> Self {
        if dialect == Dialect::Sqlite { Self::Texts } else { Self::Typed }
    }
}

/// Instants of which a local clock shows the times twice, since it goes back in the middle of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repeated {
    /// From this one on.
    pub from: DateTime<Utc>,
    /// Before this one.
    pub until: DateTime<Utc>,
}

/// A column's form, and how values that are held against it are written.
#[derive(Clone, Copy, Debug)]
pub struct Writing<'a> {
    /// The form of the column.
    pub form: Form,
    /// What the database has for times.
    pub times: Times,
    /// The type that the parameter is cast to in the SQL.
    pub cast: Option<&'a str>,
}

impl Writing<'_> {
    /// A value at or before every row from this instant on. It may let in rows of up to a day before.
    pub fn loosely_from(&self, at: DateTime<Utc>) -> Value {
        let at = at.trunc_subsecs(0);
        let (naive, _) = shown(self.zone(), at, at.checked_add_signed(CLOCK_CHANGE).unwrap_or(at));
        if self.is_text() {
            // The date alone comes before any time of that day, whatever stands between date and time.
            return Value::Text(naive.format("%Y-%m-%d").to_string().into());
        }
        self.write(at, naive)
    }

    /// A value behind every row before this instant. It may let in rows of up to a day after.
    pub fn loosely_until(&self, at: DateTime<Utc>) -> Value {
        let at = ceiling(at);
        let early = at.checked_sub_signed(CLOCK_CHANGE).unwrap_or(at);
        let (_, naive) = shown(self.zone(), early, at);
        if self.is_text() {
            let next = naive.checked_add_days(Days::new(1)).unwrap_or(naive);
            return Value::Text(next.format("%Y-%m-%d").to_string().into());
        }
        self.write(at, naive)
    }

    /// The two ends of an interval of whole seconds. Where the clock is changed in it, local times that mean two instants are all in.
    pub fn interval(&self, from: DateTime<Utc>, until: DateTime<Utc>) -> (Value, Value) {
        let (from, until) = (from.trunc_subsecs(0), ceiling(until));
        let (low, high) = self.edges(from, until);
        (self.write(from, low), self.write(until, high))
    }

    /// What a clock shows in the interval, from and until. A change further in makes no difference: no clock goes back by more.
    fn edges(&self, from: DateTime<Utc>, until: DateTime<Utc>) -> (NaiveDateTime, NaiveDateTime) {
        let (early, late) = (near(from, CLOCK_CHANGE).min(until), near(until, -CLOCK_CHANGE).max(from));
        (shown(self.zone(), from, early).0, shown(self.zone(), late, until).1)
    }

    /// What the clock shows twice around a bound of this interval, if a local time in it can mean an instant outside of it.
    pub fn shown_twice(&self, from: DateTime<Utc>, until: DateTime<Utc>) -> Option<Repeated> {
        let (from, until) = (from.trunc_subsecs(0), ceiling(until));
        let (low, high) = self.edges(from, until);
        let before = near(from, -CLOCK_CHANGE);
        if shown(self.zone(), before, from).1 > low {
            return Some(repeated(self.zone(), before, near(from, CLOCK_CHANGE)));
        }
        let after = near(until, CLOCK_CHANGE);
        let comes_back = shown(self.zone(), until, after).0 < high;
        comes_back.then(|| repeated(self.zone(), near(until, -CLOCK_CHANGE), after))
    }

    fn zone(&self) -> Tz {
        if let Form::Naive(zone) = self.form { zone } else { Tz::UTC }
    }

    fn is_text(&self) -> bool {
        let of_a_time = match self.cast {
            Some("text" | "varchar" | "character" | "char") => true,
            Some(_) => false,
            None => self.times == Times::Texts || self.form == Form::Iso,
        };
        of_a_time && !matches!(self.form, Form::EpochSeconds | Form::EpochMillis)
    }

    /// An instant, and what a clock in the column's zone shows then.
    fn write(&self, at: DateTime<Utc>, naive: NaiveDateTime) -> Value {
        match self.form {
            Form::EpochSeconds => Value::Int(at.timestamp()),
            Form::EpochMillis => Value::Int(at.timestamp_millis()),
            // Without fraction and offset it comes before every text of that second.
            Form::ReadOff | Form::Iso if self.is_text() => {
                Value::Text(naive.format("%Y-%m-%dT%H:%M:%S").to_string().into())
            }
            Form::Naive(_) if self.is_text() => {
                Value::Text(naive.format("%Y-%m-%d %H:%M:%S").to_string().into())
            }
            Form::Naive(_) => Value::Naive(naive),
            Form::ReadOff | Form::Iso => Value::Instant(at),
        }
    }
}

fn ceiling(at: DateTime<Utc>) -> DateTime<Utc> {
    let floor = at.trunc_subsecs(0);
    if floor == at { at } else { floor.checked_add_signed(TimeDelta::seconds(1)).unwrap_or(at) }
}

/// An instant so far from another one.
fn near(at: DateTime<Utc>, by: TimeDelta) -> DateTime<Utc> {
    at.checked_add_signed(by).unwrap_or(at)
}

fn offset(zone: Tz, at: DateTime<Utc>) -> i32 {
    zone.offset_from_utc_datetime(&at.naive_utc()).fix().local_minus_utc()
}

/// The lowest time that a clock there shows from the one instant on, and the highest that it comes to before the other. In between it
/// is changed once at most.
fn shown(zone: Tz, from: DateTime<Utc>, until: DateTime<Utc>) -> (NaiveDateTime, NaiveDateTime) {
    let clock = |at: DateTime<Utc>, offset: i32| at.naive_utc() + TimeDelta::seconds(offset.into());
    // At the end itself the clock may just have been changed.
    let last = until.checked_sub_signed(TimeDelta::seconds(1)).unwrap_or(until).max(from);
    let (first_offset, last_offset) = (offset(zone, from), offset(zone, last));
    let (low, high) = (clock(from, first_offset), clock(until, last_offset));
    if first_offset <= last_offset {
        return (low, high);
    }
    // It goes back: up to there it showed more, and from there on less.
    let change = change(zone, from, last);
    (low.min(clock(change, last_offset)), high.max(clock(change, first_offset)))
}

/// The first instant after a change of the clock between these two.
fn change(zone: Tz, from: DateTime<Utc>, last: DateTime<Utc>) -> DateTime<Utc> {
    let first_offset = offset(zone, from);
    let (mut before, mut after) = (from.timestamp(), last.timestamp());
    while before + 1 < after {
        let middle = before + (after - before) / 2;
        let is_before =
            DateTime::from_timestamp(middle, 0).is_some_and(|at| offset(zone, at) == first_offset);
        if is_before { before = middle } else { after = middle }
    }
    DateTime::from_timestamp(after, 0).unwrap_or(last)
}

/// What is shown twice, where the clock goes back between these two.
fn repeated(zone: Tz, from: DateTime<Utc>, until: DateTime<Utc>) -> Repeated {
    let change = change(zone, from, until);
    let back = TimeDelta::seconds((offset(zone, from) - offset(zone, until)).into());
    Repeated { from: near(change, -back), until: near(change, back) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> DateTime<Utc> {
        text.parse().unwrap()
    }

    fn local(form: Form) -> Writing<'static> {
        Writing { form, times: Times::Typed, cast: None }
    }

    fn naive(text: &str) -> Value {
        Value::Naive(text.parse().unwrap())
    }

    #[test]
    fn each_form_has_its_own_value() {
        let (from, until) = (at("2026-03-01T10:00:00Z"), at("2026-03-01T11:00:00Z"));
        let text = |text: &str| Value::Text(text.into());
        for (form, times, cast, expected) in [
            (Form::ReadOff, Times::Typed, None, Value::Instant(from)),
            (Form::ReadOff, Times::Typed, Some("timestamptz"), Value::Instant(from)),
            (Form::ReadOff, Times::Texts, None, text("2026-03-01T10:00:00")),
            (Form::ReadOff, Times::Typed, Some("text"), text("2026-03-01T10:00:00")),
            (Form::Iso, Times::Typed, None, text("2026-03-01T10:00:00")),
            (Form::Naive(Tz::UTC), Times::Typed, None, naive("2026-03-01T10:00:00")),
            (Form::Naive(Tz::Europe__Berlin), Times::Texts, None, text("2026-03-01 11:00:00")),
            (Form::EpochSeconds, Times::Texts, None, Value::Int(from.timestamp())),
            (Form::EpochMillis, Times::Typed, Some("text"), Value::Int(from.timestamp_millis())),
        ] {
            let writing = Writing { form, times, cast };
            assert_eq!(writing.interval(from, until).0, expected, "{form:?} {times:?} {cast:?}");
        }
        let texts = Writing { form: Form::ReadOff, times: Times::Texts, cast: None };
        assert_eq!(texts.loosely_from(from), text("2026-03-01"));
        assert_eq!(texts.loosely_until(from), text("2026-03-02"));
    }

    /// On 2026-10-25 at 01:00 UTC a clock in Berlin goes from 03:00 back to 02:00.
    #[test]
    fn in_the_fold_more_is_read_and_never_less() {
        let berlin = local(Form::Naive(Tz::Europe__Berlin));
        let interval = |from: &str, until: &str| berlin.interval(at(from), at(until));
        let fold = (naive("2026-10-25T02:00:00"), naive("2026-10-25T03:00:00"));
        assert_eq!(interval("2026-10-25T00:00:00Z", "2026-10-25T01:00:00Z"), fold);
        assert_eq!(interval("2026-10-25T01:00:00Z", "2026-10-25T02:00:00Z"), fold);
        let both = interval("2026-10-24T23:00:00Z", "2026-10-25T02:00:00Z");
        assert_eq!(both, (naive("2026-10-25T01:00:00"), naive("2026-10-25T03:00:00")));
    }

    /// Only a bound within the two hours of one name makes an interval that can't be counted, however long it is.
    #[test]
    fn what_holds_the_repeated_hour_whole_or_not_at_all_is_told_apart() {
        let berlin = local(Form::Naive(Tz::Europe__Berlin));
        let repeated = Repeated { from: at("2026-10-25T00:00:00Z"), until: at("2026-10-25T02:00:00Z") };
        for (from, until, expected) in [
            ("2026-10-25T00:00:00Z", "2026-10-25T01:00:00Z", Some(repeated)),
            ("2026-10-25T01:00:00Z", "2026-10-25T02:00:00Z", Some(repeated)),
            ("2026-10-24T00:00:00Z", "2026-10-25T01:30:00Z", Some(repeated)),
            ("2026-10-25T00:30:00Z", "2026-10-26T00:00:00Z", Some(repeated)),
            ("2026-10-25T00:00:00Z", "2026-10-25T02:00:00Z", None),
            ("2026-10-24T23:00:00Z", "2026-10-25T00:00:00Z", None),
            ("2026-10-25T02:00:00Z", "2026-10-25T03:00:00Z", None),
            ("2026-10-01T00:00:00Z", "2026-11-01T00:00:00Z", None),
            ("2026-01-01T00:00:00Z", "2027-01-01T00:00:00Z", None),
            ("2026-03-29T00:00:00Z", "2026-03-29T01:00:00Z", None),
            ("2026-03-29T01:00:00Z", "2026-03-29T02:00:00Z", None),
        ] {
            assert_eq!(berlin.shown_twice(at(from), at(until)), expected, "{from} to {until}");
        }
        let utc = Writing { form: Form::ReadOff, ..berlin };
        assert_eq!(utc.shown_twice(repeated.from, at("2026-10-25T01:00:00Z")), None);
    }

    proptest::proptest! {
        /// Held against each minute around it: in an interval that is told apart, just those of its own are counted.
        #[test]
        fn what_is_told_apart_holds_its_own_minutes_and_no_others(start in 0i64..24 * 365, quarter in 0i64..4, length in 1i64..40, zone in 0usize..3) {
            let zone = [Tz::Europe__Berlin, Tz::Australia__Lord_Howe, Tz::America__New_York][zone];
            let writing = local(Form::Naive(zone));
            let from = at("2026-01-01T00:00:00Z") + TimeDelta::minutes(60 * start + 15 * quarter);
            let until = from + TimeDelta::minutes(15 * length);
            let (Value::Naive(low), Value::Naive(high)) = writing.interval(from, until) else { panic!("naive times are written as such") };
            let mut alien = false;
            for minute in -300..15 * length + 300 {
                let instant = from + TimeDelta::minutes(minute);
                let clock = instant.naive_utc() + TimeDelta::seconds(offset(zone, instant).into());
                let (is_counted, is_own) = (low <= clock && clock < high, from <= instant && instant < until);
                proptest::prop_assert!(is_counted || !is_own, "{zone} {instant} is not counted in {from} to {until}");
                alien |= is_counted && !is_own;
            }
            proptest::prop_assert_eq!(alien, writing.shown_twice(from, until).is_some());
        }
    }

    #[test]
    fn every_instant_from_the_bound_on_is_read() {
        let zones = [Tz::Europe__Berlin, Tz::Australia__Lord_Howe, Tz::America__New_York, Tz::UTC];
        for zone in zones {
            let writing = local(Form::Naive(zone));
            let clock = |at: DateTime<Utc>| at.naive_utc() + TimeDelta::seconds(offset(zone, at).into());
            for quarter in 0..4 * 24 * 365 {
                let bound = at("2026-01-01T00:07:03.5Z") + TimeDelta::minutes(15 * quarter);
                let (Value::Naive(from), Value::Naive(until)) =
                    (writing.loosely_from(bound), writing.loosely_until(bound))
                else {
                    panic!("naive times are written as such")
                };
                for minutes in (0..240).step_by(7) {
                    let delta = TimeDelta::minutes(minutes);
                    assert!(from <= clock(bound + delta), "{zone} {bound} + {minutes} minutes");
                    let before = bound - delta - TimeDelta::milliseconds(1);
                    assert!(until > clock(before), "{zone} {bound} - {minutes} minutes");
                }
            }
        }
    }
}

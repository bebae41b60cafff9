use super::*;
use crate::config::ledger::TypedColumn;
use chrono::TimeDelta;
use proptest::prelude::*;

fn now() -> DateTime<Utc> {
    "2026-11-30T12:00:00Z".parse().unwrap()
}

fn text(text: &str) -> Cell {
    Cell::Text(text.into())
}

fn reading(cell: &Cell, form: Form) -> Reading {
    read(cell, form, Horizon::Happened, now(), "at").unwrap()
}

fn at(text: &str) -> Reading {
    Reading::At(text.parse().unwrap())
}

#[test]
fn each_form_gives_the_instant() {
    let berlin = Form::Naive("Europe/Berlin".parse().unwrap());
    let naive: NaiveDateTime = "2026-11-30T11:59:30.25".parse().unwrap();
    for (cell, form) in [
        (Cell::Instant("2026-11-30T11:59:30.25Z".parse().unwrap()), Form::ReadOff),
        (Cell::Instant("2026-11-30T11:59:30.25Z".parse().unwrap()), Form::EpochMillis),
        (Cell::Naive(naive), Form::Naive(Tz::UTC)),
        (Cell::Naive(naive + TimeDelta::hours(1)), berlin),
        (text("2026-11-30 12:59:30.25"), berlin),
        (text("2026-11-30T11:59:30.250Z"), Form::ReadOff),
        (text("2026-11-30 12:59:30.25+01:00"), Form::ReadOff),
        (text("2026-11-30 12:59:30.25+0100"), Form::Iso),
        (text("2026-11-30 11:59:30.25+00"), Form::Iso),
        (text("2026-11-30 11:59:30.25"), Form::Naive(Tz::UTC)),
        (Cell::Int(1_796_039_970_250), Form::EpochMillis),
        (Cell::Float(1_796_039_970.25), Form::EpochSeconds),
        (Cell::Decimal("1796039970.250000".into()), Form::EpochSeconds),
        (Cell::Decimal("1796039970250".into()), Form::EpochMillis),
        (text("1796039970.25"), Form::EpochSeconds),
    ] {
        assert_eq!(reading(&cell, form), at("2026-11-30T11:59:30.25Z"), "{cell:?} as {form:?}");
    }
    assert_eq!(reading(&Cell::Int(1_796_039_970), Form::EpochSeconds), at("2026-11-30T11:59:30Z"));
}

#[test]
fn trial_23_a_missing_or_absurd_time_is_refused() {
    assert_eq!(reading(&Cell::Null, Form::ReadOff), Reading::Missing);
    for (cell, form) in [
        (Cell::Int(0), Form::EpochSeconds),
        (Cell::Int(-1), Form::EpochSeconds),
        (Cell::Int(i64::MAX), Form::EpochMillis),
        // Milliseconds declared as seconds, and the other way round.
        (Cell::Int(1_796_039_970_250), Form::EpochSeconds),
        (Cell::Int(1_796_039_970), Form::EpochMillis),
        (Cell::Float(f64::NAN), Form::EpochSeconds),
        (Cell::Float(f64::INFINITY), Form::EpochSeconds),
        (Cell::Decimal("NaN".into()), Form::EpochSeconds),
        (Cell::BeyondTime, Form::ReadOff),
        (text("1970-01-01T00:00:00Z"), Form::ReadOff),
        (text("0001-01-01 00:00:00"), Form::Naive(Tz::UTC)),
        (text("2026-12-01T12:00:01Z"), Form::ReadOff),
        (text("soon"), Form::ReadOff),
        (text(""), Form::Iso),
        (text("-0.5"), Form::EpochSeconds),
        // In the gap of a clock change.
        (text("2026-03-29 02:30:00"), Form::Naive("Europe/Berlin".parse().unwrap())),
    ] {
        assert_eq!(reading(&cell, form), Reading::Refused, "{cell:?} as {form:?}");
    }
}

#[test]
fn what_is_planned_may_lie_further_ahead() {
    let cell = text("2027-01-31T00:00:00Z");
    assert_eq!(
        read(&cell, Form::ReadOff, Horizon::Planned, now(), "at").unwrap(),
        at("2027-01-31T00:00:00Z")
    );
    assert_eq!(reading(&cell, Form::ReadOff), Reading::Refused);
}

#[test]
fn in_the_fold_the_later_instant_that_has_happened() {
    let form = Form::Naive("Europe/Berlin".parse().unwrap());
    let cell = text("2026-10-25 02:30:00");
    let read_at = |now: &str| read(&cell, form, Horizon::Happened, now.parse().unwrap(), "at").unwrap();
    assert_eq!(read_at("2026-10-25T00:31:00Z"), at("2026-10-25T00:30:00Z"));
    assert_eq!(read_at("2026-10-25T01:31:00Z"), at("2026-10-25T01:30:00Z"));
    // What is planned may lie ahead: put off in the repeated hour, it must not be due at once.
    let planned = read(&cell, form, Horizon::Planned, "2026-10-25T01:05:00Z".parse().unwrap(), "at").unwrap();
    assert_eq!(planned, at("2026-10-25T01:30:00Z"));
}

#[test]
fn nothing_is_guessed() {
    let naive: NaiveDateTime = "2026-11-30T11:59:30".parse().unwrap();
    for (cell, form) in [
        (Cell::Naive(naive), Form::ReadOff),
        (Cell::Int(1_796_039_970), Form::ReadOff),
        (Cell::Decimal("1796039970".into()), Form::ReadOff),
        (text("2026-11-30 11:59:30"), Form::ReadOff),
        (text("2026-11-30T11:59:30"), Form::Iso),
        (Cell::Bool(true), Form::EpochSeconds),
        (Cell::Naive(naive), Form::EpochMillis),
        (Cell::Int(3), Form::Naive(Tz::UTC)),
    ] {
        let misfit = read(&cell, form, Horizon::Happened, now(), "at").unwrap_err();
        assert_eq!(misfit.column, "at");
        assert!(misfit.problem.contains("time"), "{}", misfit.problem);
    }
}

#[test]
fn a_declaration_must_be_whole() {
    let form = |time, zone: Option<&str>| {
        Form::of(&Column::Typed(TypedColumn { name: "at".into(), time, zone: zone.map(Into::into) }))
    };
    assert_eq!(form(TimeForm::NaiveLocal, Some("Europe/Berlin")), Ok(Form::Naive(Tz::Europe__Berlin)));
    assert!(form(TimeForm::NaiveLocal, None).unwrap_err().problem.contains("needs a `zone`"));
    assert!(form(TimeForm::NaiveLocal, Some("Mars/Base")).unwrap_err().problem.contains("Mars/Base"));
    assert!(form(TimeForm::NaiveUtc, Some("UTC")).unwrap_err().problem.contains("naive_local` only"));
}

proptest! {
    #[test]
    fn numbers_and_texts_of_one_instant_agree(micros in EARLIEST_SECONDS * 1_000_000..=1_796_000_000_000_000i64) {
        let instant = DateTime::from_timestamp_micros(micros).unwrap();
        let decimal = format!("{}.{:06}", micros / 1_000_000, micros % 1_000_000);
        let iso = instant.to_rfc3339();
        let naive = instant.naive_utc().format("%Y-%m-%d %H:%M:%S%.6f").to_string();
        prop_assert_eq!(reading(&Cell::Decimal(decimal), Form::EpochSeconds), Reading::At(instant));
        prop_assert_eq!(reading(&Cell::Text(iso), Form::ReadOff), Reading::At(instant));
        prop_assert_eq!(reading(&Cell::Text(naive), Form::Naive(Tz::UTC)), Reading::At(instant));
    }

    #[test]
    fn no_value_panics(number in any::<i64>(), float in any::<f64>(), text in "\\PC{0,30}") {
        for form in [Form::ReadOff, Form::Iso, Form::Naive(Tz::Europe__Berlin), Form::EpochSeconds, Form::EpochMillis] {
            for cell in [Cell::Int(number), Cell::Float(float), Cell::Text(text.clone()), Cell::Decimal(number.to_string())] {
                let _ = read(&cell, form, Horizon::Planned, now(), "at");
            }
        }
    }
}

#[test]
fn a_cursors_time_is_the_latest_that_it_can_mean() {
    let berlin = Form::Naive(chrono_tz::Europe::Berlin);
    let naive = |text: &str| Cell::Naive(text.parse().unwrap());
    let utc = |cell: &Cell, form| latest(cell, form, "at").unwrap().map(|at| at.to_rfc3339());
    // In the fold the second pass, in the gap what the clock before it means.
    for (local, expected) in [
        ("2026-10-25T02:30:00", "2026-10-25T01:30:00+00:00"),
        ("2026-03-29T02:30:00", "2026-03-29T01:30:00+00:00"),
        ("2026-03-29T03:30:00", "2026-03-29T01:30:00+00:00"),
        ("2026-07-01T12:00:00", "2026-07-01T10:00:00+00:00"),
    ] {
        assert_eq!(utc(&naive(local), berlin).as_deref(), Some(expected), "{local}");
        assert_eq!(utc(&Cell::Text(local.into()), berlin).as_deref(), Some(expected), "{local}");
    }
    // Absurd times have their place in a stream too; what is no time has none.
    assert_eq!(utc(&Cell::Int(-1), Form::EpochSeconds).as_deref(), Some("1969-12-31T23:59:59+00:00"));
    assert_eq!((utc(&Cell::Null, berlin), utc(&Cell::BeyondTime, berlin)), (None, None));
    assert!(latest(&Cell::Bool(true), Form::ReadOff, "at").is_err());
}

//! How a ledger's times are read: nothing is guessed, and an absurd time is refused, never turned into an age.

use super::cell::{Cell, Misfit};
use crate::config::ledger::{Column, TimeForm};
use chrono::{DateTime, Days, NaiveDateTime, Offset, TimeZone, Utc};
use chrono_tz::Tz;

/// 2000-01-01T00:00:00Z in seconds since 1970: an older time is a default or a mistake.
const EARLIEST_SECONDS: i64 = 946_684_800;

/// How a column's times are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// As the type says, or as ISO text with an offset.
    ReadOff,
    /// ISO text with an offset.
    Iso,
    /// Without a zone, in this one.
    Naive(Tz),
    /// Seconds since 1970.
    EpochSeconds,
    /// Milliseconds since 1970.
    EpochMillis,
}

impl Form {
    /// The form of a column of the configuration.
    ///
    /// # Errors
    /// When the zone is missing, not needed, or no IANA zone.
    pub fn of(column: &Column) -> Result<Self, Misfit> {
        let Column::Typed(typed) = column else { return Ok(Self::ReadOff) };
        let fault = |problem: String| Misfit::new(&typed.name, problem);
        let zone = typed.zone.as_deref();
        if let (Some(zone), true) = (zone, typed.time != TimeForm::NaiveLocal) {
            return Err(fault(format!("`zone: {zone}` goes with `time: naive_local` only")));
        }
        Ok(match typed.time {
            TimeForm::NaiveUtc => Self::Naive(Tz::UTC),
            TimeForm::NaiveLocal => {
                let zone = zone.ok_or_else(|| {
                    fault("`time: naive_local` needs a `zone`, such as `Europe/Berlin`".into())
                })?;
                Self::Naive(
                    zone.parse().map_err(|_| {
                        fault(format!("`{zone}` is not an IANA zone, such as `Europe/Berlin`"))
                    })?,
                )
            }
            TimeForm::EpochSeconds => Self::EpochSeconds,
            TimeForm::EpochMillis => Self::EpochMillis,
            TimeForm::Iso => Self::Iso,
        })
    }
}

/// How far in the future a time may lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Horizon {
    /// A day: for what has happened, with room for a clock that is off.
    Happened,
    /// Ten years: for what is planned.
    Planned,
}

/// A time as it was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reading {
    /// NULL.
    Missing,
    /// A value that can't be a time of a notification: too early, too late, or not readable.
    Refused,
    /// A time.
    At(DateTime<Utc>),
}

/// Reads a time, at this time of our clock.
///
/// # Errors
/// When values of this type can't be read as configured: the configuration has to change.
pub fn read(
    cell: &Cell,
    form: Form,
    horizon: Horizon,
    now: DateTime<Utc>,
    column: &str,
) -> Result<Reading, Misfit> {
    if matches!(cell, Cell::Null) {
        return Ok(Reading::Missing);
    }
    let latest = match horizon {
        Horizon::Happened => now.checked_add_days(Days::new(1)),
        Horizon::Planned => now.checked_add_days(Days::new(3_653)),
    };
    let is_sane =
        |at: &DateTime<Utc>| at.timestamp() >= EARLIEST_SECONDS && latest.is_none_or(|latest| *at <= latest);
    // In the hour that a clock repeats, what has happened is the latest that can have been, and what is planned the later of the two.
    let by = match horizon {
        Horizon::Happened => now,
        Horizon::Planned => DateTime::<Utc>::MAX_UTC,
    };
    let at = instant(cell, form, by, column)?;
    Ok(at.filter(is_sane).map_or(Reading::Refused, Reading::At))
}

/// The later of acceptance and `not_before`; nothing where acceptance is missing, or either is absurd.
pub fn due(accepted_at: Reading, not_before: Reading) -> Option<DateTime<Utc>> {
    match (accepted_at, not_before) {
        (Reading::At(accepted_at), Reading::At(not_before)) => Some(accepted_at.max(not_before)),
        (Reading::At(accepted_at), Reading::Missing) => Some(accepted_at),
        _ => None,
    }
}

/// The latest instant that a cursor's value can mean, however far off it is; nothing where it means none. In the fold and in the
/// gap of a clock change a local time is the later one, so that a row never counts as older than it is.
///
/// # Errors
/// When values of this type can't be read as configured.
pub fn latest(cell: &Cell, form: Form, column: &str) -> Result<Option<DateTime<Utc>>, Misfit> {
    if let (Cell::Null, _) = (cell, form) {
        return Ok(None);
    }
    let at = instant(cell, form, DateTime::<Utc>::MAX_UTC, column)?;
    let (None, Form::Naive(zone), Cell::Naive(_) | Cell::Text(_)) = (at, form, cell) else { return Ok(at) };
    let naive = match cell {
        Cell::Naive(naive) => Some(*naive),
        Cell::Text(text) => parse_naive(text),
        _ => None,
    };
    // In the gap the clock before it is behind the one after it, and so gives the later instant.
    Ok(naive.and_then(|naive| {
        let before = naive.checked_sub_days(Days::new(1))?;
        let offset = zone.offset_from_utc_datetime(&before).fix();
        Some(naive.checked_sub_offset(offset)?.and_utc())
    }))
}

/// The instant of a value; nothing where it means none.
fn instant(
    cell: &Cell,
    form: Form,
    now: DateTime<Utc>,
    column: &str,
) -> Result<Option<DateTime<Utc>>, Misfit> {
    Ok(match (cell, form) {
        (Cell::BeyondTime, _) => None,
        // An instant is one whatever was declared.
        (Cell::Instant(at), _) => Some(*at),
        (Cell::Naive(naive), Form::Naive(zone)) => from_local(*naive, zone, now),
        (Cell::Text(text), Form::ReadOff | Form::Iso) => match DateTime::parse_from_rfc3339(text.trim()) {
            Ok(at) => Some(at.to_utc()),
            Err(_) => match parse_with_offset(text) {
                Some(at) => Some(at),
                None if parse_naive(text).is_some() => {
                    return Err(undeclared(cell, column));
                }
                None => None,
            },
        },
        (Cell::Text(text), Form::Naive(zone)) => {
            parse_naive(text).and_then(|naive| from_local(naive, zone, now))
        }
        (_, Form::EpochSeconds) => epoch_micros(cell, 6, column)?.and_then(DateTime::from_timestamp_micros),
        (_, Form::EpochMillis) => epoch_micros(cell, 3, column)?.and_then(DateTime::from_timestamp_micros),
        (cell, _) => return Err(undeclared(cell, column)),
    })
}

/// What to write for a value that is no time as it is declared.
fn undeclared(cell: &Cell, column: &str) -> Misfit {
    let declared = |form: &str| format!("`{{ name: {column}, time: {form} }}`");
    let (what, write) = match cell {
        Cell::Naive(_) | Cell::Text(_) => {
            let what =
                if matches!(cell, Cell::Text(_)) { "text without an offset" } else { cell.type_name() };
            let local = declared("naive_local, zone: Europe/Berlin");
            (what, format!("{}, or {local} with the zone that it is in", declared("naive_utc")))
        }
        Cell::Int(_) | Cell::Decimal(_) | Cell::Float(_) => {
            let (seconds, millis) = (declared("epoch_seconds"), declared("epoch_millis"));
            let write = match magnitude(cell) {
                Some(number) if (1e9..5e9).contains(&number) => {
                    format!("{seconds}: that is what its value looks like")
                }
                Some(number) if (1e12..5e12).contains(&number) => {
                    format!("{millis}: that is what its value looks like")
                }
                Some(number) if (1e15..5e15).contains(&number) => {
                    format!("{millis}, and let the SQL divide it by 1000: its value looks like microseconds")
                }
                _ => format!("{seconds} or {millis}, whichever it holds"),
            };
            (cell.type_name(), write)
        }
        _ => {
            let problem = format!("{} is no time: is it the right column?", cell.type_name());
            return Misfit::new(column, problem);
        }
    };
    let problem = format!("{what} is no time as it is configured. Where it is named, write {write}");
    Misfit::new(column, problem)
}

fn magnitude(cell: &Cell) -> Option<f64> {
    match cell {
        Cell::Int(number) => Some(*number as f64),
        Cell::Float(number) => Some(*number),
        Cell::Decimal(text) => text.parse().ok(),
        _ => None,
    }
}

/// In the fold of a clock change a local time means two instants: the later one that isn't in the future, so that no age is
/// an hour too long. In the gap it means none.
fn from_local(naive: NaiveDateTime, zone: Tz, now: DateTime<Utc>) -> Option<DateTime<Utc>> {
    let local = zone.from_local_datetime(&naive);
    let (earlier, later) = (local.earliest()?.to_utc(), local.latest()?.to_utc());
    Some(if later <= now { later } else { earlier })
}

const NAIVE_FORMS: [&str; 2] = ["%Y-%m-%d %H:%M:%S%.f", "%Y-%m-%dT%H:%M:%S%.f"];

fn parse_naive(text: &str) -> Option<NaiveDateTime> {
    let text = text.trim();
    NAIVE_FORMS.iter().find_map(|form| NaiveDateTime::parse_from_str(text, form).ok())
}

/// The forms with an offset that RFC 3339 does not have: a space, and `+00` or `+0000`.
fn parse_with_offset(text: &str) -> Option<DateTime<Utc>> {
    let text = text.trim();
    NAIVE_FORMS
        .iter()
        .find_map(|form| Some(DateTime::parse_from_str(text, &format!("{form}%#z")).ok()?.to_utc()))
}

/// Microseconds since 1970 of a number whose unit is 10^`digits` microseconds.
fn epoch_micros(cell: &Cell, digits: u32, column: &str) -> Result<Option<i64>, Misfit> {
    let unit = 10i64.pow(digits);
    Ok(match cell {
        Cell::Int(number) => number.checked_mul(unit),
        Cell::Float(number) => {
            let micros = (number * unit as f64).round();
            // Beyond 2^53 it is no time that is accepted anyway.
            (micros.abs() < 9e15).then_some(micros as i64)
        }
        Cell::Decimal(text) | Cell::Text(text) => decimal_micros(text.trim(), digits),
        _ => {
            let problem = format!(
                "{} is no number since 1970: leave `time` away or give its true form",
                cell.type_name()
            );
            return Err(Misfit::new(column, problem));
        }
    })
}

fn decimal_micros(text: &str, digits: u32) -> Option<i64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    if whole.starts_with('-') || !fraction.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let digits = digits as usize;
    let fraction: String = fraction.chars().chain(std::iter::repeat('0')).take(digits).collect();
    let whole: i64 = whole.parse().ok()?;
    whole.checked_mul(10i64.checked_pow(digits as u32)?)?.checked_add(fraction.parse().ok()?)
}

#[cfg(test)]
mod tests;

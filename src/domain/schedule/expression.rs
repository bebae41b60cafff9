//! Cron expressions as Kubernetes reads them.

use std::fmt;
use std::time::Duration;

use chrono::{Datelike, Days, Months, NaiveDate, NaiveDateTime, TimeDelta, Timelike};

use super::error::ScheduleError;
use super::field::{DAY, Field, FieldKind, HOUR, MINUTE, MONTH, WEEKDAY};
use super::interval::Interval;

/// The longest expression that is read, in bytes.
const LONGEST_EXPRESSION: usize = 1024;

/// How far a match is looked for: from a 29 February to the next one it can be eight years, over 2100.
const HORIZON_DAYS: u32 = 9 * 366;

/// A cron expression: five fields, `@hourly` and its kin, or `@every 5m`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CronExpression {
    text: String,
    meaning: Meaning,
}

/// What an expression stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Meaning {
    Fields(CronFields),
    Every(Interval),
}

impl CronExpression {
    /// Reads an expression.
    ///
    /// # Errors
    /// With the column, what is wrong there, and a hint: when a field can't be read, or when the expression never fires.
    pub fn parse(text: &str) -> Result<Self, ScheduleError> {
        if text.len() > LONGEST_EXPRESSION {
            return Err(ScheduleError::at(
                LONGEST_EXPRESSION,
                format!("the expression has {} bytes", text.len()),
                format!("write at most {LONGEST_EXPRESSION}"),
            ));
        }
        let words = words(text);
        let meaning = match words.first() {
            None => return Err(ScheduleError::at(0, "the expression is empty", FIVE_FIELDS)),
            Some((at, word)) if word.starts_with("TZ=") || word.starts_with("CRON_TZ=") => {
                return Err(ScheduleError::at(
                    *at,
                    format!("`{word}`: a zone has no place in the expression"),
                    "write the zone in the field `zone`",
                ));
            }
            Some((at, word)) if word.starts_with('@') => parse_descriptor(*at, word, &words[1..])?,
            Some(_) => Meaning::Fields(CronFields::parse(text, &words)?),
        };
        Ok(Self { text: text.trim().to_owned(), meaning })
    }

    pub(super) const fn meaning(&self) -> &Meaning {
        &self.meaning
    }
}

impl fmt::Display for CronExpression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

const FIVE_FIELDS: &str =
    "write five fields: minute, hour, day of month, month, day of week, such as `*/5 * * * *`";

/// The words of the expression with the byte at which each starts.
fn words(text: &str) -> Vec<(usize, &str)> {
    let mut words = Vec::new();
    let mut at = 0;
    for word in text.split(char::is_whitespace) {
        if !word.is_empty() {
            words.push((at, word));
        }
        // The blank after the word may take several bytes.
        at += word.len();
        at += text[at..].chars().next().map_or(0, char::len_utf8);
    }
    words
}

fn parse_descriptor(at: usize, word: &str, rest: &[(usize, &str)]) -> Result<Meaning, ScheduleError> {
    if word == "@every" {
        return match rest {
            [(at, duration)] => Ok(Meaning::Every(parse_every(*at, duration)?)),
            [] => Err(ScheduleError::at(at, "`@every` without a duration", "write one, such as `@every 5m`")),
            [_, (at, extra), ..] => Err(ScheduleError::at(
                *at,
                format!("`{extra}` after the duration"),
                "write the duration as one word, such as `@every 1h30m`",
            )),
        };
    }
    if let Some((at, extra)) = rest.first() {
        return Err(ScheduleError::at(
            *at,
            format!("`{extra}` after `{word}`"),
            format!("write `{word}` alone"),
        ));
    }
    let (first, sunday) = (Field::only(1), Field::only(0));
    let (hour, day, month, weekday) = match word {
        "@hourly" => (Field::any(&HOUR), Field::any(&DAY), Field::any(&MONTH), Field::any(&WEEKDAY)),
        "@daily" | "@midnight" => {
            (Field::only(0), Field::any(&DAY), Field::any(&MONTH), Field::any(&WEEKDAY))
        }
        "@weekly" => (Field::only(0), Field::any(&DAY), Field::any(&MONTH), sunday),
        "@monthly" => (Field::only(0), first, Field::any(&MONTH), Field::any(&WEEKDAY)),
        "@yearly" | "@annually" => (Field::only(0), first, first, Field::any(&WEEKDAY)),
        _ => {
            return Err(ScheduleError::at(
                at,
                format!("`{word}` is not known"),
                "write `@hourly`, `@daily`, `@midnight`, `@weekly`, `@monthly`, `@yearly`, `@annually` or `@every 5m`",
            ));
        }
    };
    Ok(Meaning::Fields(CronFields { minute: Field::only(0), hour, day, month, weekday }))
}

/// A duration as `1h30m`, `90s` or `1.5h`.
fn parse_every(at: usize, text: &str) -> Result<Interval, ScheduleError> {
    let refuse = |at: usize, what: String| {
        ScheduleError::at(
            at,
            what,
            "write whole seconds with the units `h`, `m` and `s`, such as `1h30m` or `90s`",
        )
    };
    let mut total = Duration::ZERO;
    let mut rest = text;
    while !rest.is_empty() {
        let here = at + text.len() - rest.len();
        let number = &rest[..rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len())];
        let unit = &rest[number.len()..];
        let unit = &unit[..unit.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(unit.len())];
        let nanos_per_unit: u128 = match unit {
            "h" => 3_600_000_000_000,
            "m" => 60_000_000_000,
            "s" => 1_000_000_000,
            "" => return Err(refuse(here + number.len(), format!("`{number}` has no unit"))),
            _ => return Err(refuse(here + number.len(), format!("`{unit}` is not a unit"))),
        };
        let part = scaled(number, nanos_per_unit)
            .ok_or_else(|| refuse(here, format!("`{number}` is not a number of usual size")))?;
        total = total.saturating_add(part);
        rest = &rest[number.len() + unit.len()..];
    }
    Interval::new(total).map_err(|error| refuse(at, error.to_string()))
}

/// A decimal number times a unit, exactly. `None` for a bad number, a very long one, or a part below a nanosecond.
fn scaled(number: &str, nanos_per_unit: u128) -> Option<Duration> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.len() > 9 || fraction.len() > 9 || number.ends_with('.') {
        return None;
    }
    let fraction_value: u128 = if fraction.is_empty() { 0 } else { fraction.parse().ok()? };
    let scale = 10_u128.pow(u32::try_from(fraction.len()).ok()?);
    let fraction_nanos = fraction_value * nanos_per_unit;
    if !fraction_nanos.is_multiple_of(scale) {
        return None;
    }
    let nanos = whole.parse::<u128>().ok()? * nanos_per_unit + fraction_nanos / scale;
    Some(Duration::from_nanos_u128(nanos))
}

/// Five fields, matched against a local clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CronFields {
    pub minute: Field,
    pub hour: Field,
    day: Field,
    month: Field,
    weekday: Field,
}

impl CronFields {
    fn parse(text: &str, words: &[(usize, &str)]) -> Result<Self, ScheduleError> {
        let field = |index: usize, kind: &FieldKind| match words.get(index) {
            Some((at, word)) => Field::parse(kind, word, *at),
            None => Err(ScheduleError::at(
                text.trim_end().len(),
                format!("the {} is missing: there are {} fields", kind.name, words.len()),
                FIVE_FIELDS,
            )),
        };
        if let Some((at, _)) = words.get(5) {
            return Err(ScheduleError::at(
                *at,
                format!("there are {} fields", words.len()),
                format!("{FIVE_FIELDS}; there is none for seconds or years"),
            ));
        }
        let fields = Self {
            minute: field(0, &MINUTE)?,
            hour: field(1, &HOUR)?,
            day: field(2, &DAY)?,
            month: field(3, &MONTH)?,
            weekday: field(4, &WEEKDAY)?,
        };
        if fields.never_fires() {
            let at = words.get(2).map_or(0, |(at, _)| *at);
            return Err(ScheduleError::at(
                at,
                "no month that is named has such a day, so this never fires",
                "choose a day that exists, such as 28 for February",
            ));
        }
        Ok(fields)
    }

    /// Only a day of month beyond the end of every month can keep an expression from firing, and only while the days
    /// of the week are unrestricted: a restricted one fires by itself.
    fn never_fires(&self) -> bool {
        let longest = |month| match month {
            2 => 29,
            4 | 6 | 9 | 11 => 30,
            _ => 31,
        };
        let first_day = self.day.at_or_after(0).unwrap_or(u32::MAX);
        self.weekday.unrestricted && !self.month.values().any(|month| first_day <= longest(month))
    }

    /// The same times of day on every day.
    pub fn on_every_day(&self) -> Self {
        Self { day: Field::any(&DAY), month: Field::any(&MONTH), weekday: Field::any(&WEEKDAY), ..*self }
    }

    /// Whether a job of this hour field runs by the clock on the wall, in both passes of a repeated hour.
    pub const fn has_wildcard_hour(&self) -> bool {
        self.hour.wildcard
    }

    /// How many matching minutes a matching day has.
    pub const fn per_day(&self) -> u32 {
        self.minute.len() * self.hour.len()
    }

    /// Whether the day matches: AND of the two day fields if either is unrestricted, else OR.
    pub fn matches_day(&self, date: NaiveDate) -> bool {
        let day = self.day.has(date.day());
        let weekday = self.weekday.has(date.weekday().num_days_from_sunday());
        let either =
            if self.day.unrestricted || self.weekday.unrestricted { day && weekday } else { day || weekday };
        either && self.month.has(date.month())
    }

    /// The first matching minute strictly after `after`, on a clock that never changes.
    pub fn next_local(&self, after: NaiveDateTime) -> Option<NaiveDateTime> {
        let start = after.with_second(0)?.with_nanosecond(0)?.checked_add_signed(TimeDelta::minutes(1))?;
        let end = start.date().checked_add_days(Days::new(u64::from(HORIZON_DAYS)))?;
        let mut date = start.date();
        let mut from = (start.hour(), start.minute());
        while date <= end {
            if !self.month.has(date.month()) {
                date = date.with_day(1)?.checked_add_months(Months::new(1))?;
                from = (0, 0);
                continue;
            }
            if self.matches_day(date)
                && let Some((hour, minute)) = self.time_at_or_after(from)
            {
                return date.and_hms_opt(hour, minute, 0);
            }
            date = date.succ_opt()?;
            from = (0, 0);
        }
        None
    }

    fn time_at_or_after(&self, (hour, minute): (u32, u32)) -> Option<(u32, u32)> {
        if self.hour.has(hour)
            && let Some(minute) = self.minute.at_or_after(minute)
        {
            return Some((hour, minute));
        }
        Some((self.hour.at_or_after(hour + 1)?, self.minute.at_or_after(0)?))
    }
}

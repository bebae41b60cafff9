//! One field of a cron expression, as a set of bits.

use super::error::ScheduleError;

/// What may stand in a field.
#[derive(Debug)]
pub(super) struct FieldKind {
    pub name: &'static str,
    pub min: u32,
    pub max: u32,
    /// Names in the order of their numbers, the first one for `min`.
    pub names: &'static [&'static str],
}

pub(super) const MINUTE: FieldKind = FieldKind { name: "minute", min: 0, max: 59, names: &[] };
pub(super) const HOUR: FieldKind = FieldKind { name: "hour", min: 0, max: 23, names: &[] };
pub(super) const DAY: FieldKind = FieldKind { name: "day of month", min: 1, max: 31, names: &[] };
pub(super) const MONTH: FieldKind = FieldKind {
    name: "month",
    min: 1,
    max: 12,
    names: &["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"],
};
pub(super) const WEEKDAY: FieldKind = FieldKind {
    name: "day of week",
    min: 0,
    max: 6,
    names: &["sun", "mon", "tue", "wed", "thu", "fri", "sat"],
};

/// The values of one field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Field {
    bits: u64,
    /// An item is a `*` or `?` that leaves nothing out. Kubernetes joins the two day fields by AND when either has one,
    /// whatever else is in its list, and by OR otherwise.
    pub unrestricted: bool,
    /// A `*` or `?` was written, with a step or without.
    pub wildcard: bool,
}

impl Field {
    /// Every value of `kind`, as `*` gives it.
    pub fn any(kind: &FieldKind) -> Self {
        Self { bits: run(kind.min, kind.max, 1), unrestricted: true, wildcard: true }
    }

    /// One value, as its number gives it.
    pub const fn only(value: u32) -> Self {
        Self { bits: 1 << value, unrestricted: false, wildcard: false }
    }

    pub const fn has(self, value: u32) -> bool {
        value < 64 && self.bits >> value & 1 == 1
    }

    /// How many values it has.
    pub const fn len(self) -> u32 {
        self.bits.count_ones()
    }

    /// The smallest value that is not below `from`.
    pub fn at_or_after(self, from: u32) -> Option<u32> {
        let rest = self.bits.checked_shr(from)?;
        (rest != 0).then(|| from + rest.trailing_zeros())
    }

    /// All values, upwards.
    pub fn values(self) -> impl Iterator<Item = u32> {
        (0..64).filter(move |value| self.has(*value))
    }

    /// Reads the text of a field that starts at byte `at` of the expression.
    pub fn parse(kind: &FieldKind, text: &str, at: usize) -> Result<Self, ScheduleError> {
        let mut field = Self { bits: 0, unrestricted: false, wildcard: false };
        let mut start = at;
        for item in text.split(',') {
            let (bits, star, step) = parse_item(kind, item, start)?;
            field.bits |= bits;
            field.wildcard |= star;
            field.unrestricted |= star && step == 1;
            start += item.len() + 1;
        }
        Ok(field)
    }
}

/// The bits of one item of a list, whether it is a star, and its step.
fn parse_item(kind: &FieldKind, item: &str, at: usize) -> Result<(u64, bool, u32), ScheduleError> {
    if item.is_empty() {
        return Err(ScheduleError::at(
            at,
            format!("an empty item in the list of the {}", kind.name),
            "remove the comma",
        ));
    }
    if item.contains('#')
        || item.eq_ignore_ascii_case("L")
        || item.eq_ignore_ascii_case("W")
        || is_quartz(item)
    {
        return Err(ScheduleError::at(
            at,
            format!("`{item}` is not known: `L`, `W` and `#` belong to other schedulers"),
            format!("write {} to {} for the {}, with lists, ranges and steps", kind.min, kind.max, kind.name),
        ));
    }
    let (span, step_text) = match item.split_once('/') {
        Some((span, step)) => (span, Some((step, at + span.len() + 1))),
        None => (item, None),
    };
    let step = step_text.map_or(Ok(1), |(text, at)| parse_step(kind, text, at))?;
    if matches!(span, "*" | "?") {
        return Ok((run(kind.min, kind.max, step), true, step));
    }
    let (low, high) = match span.split_once('-') {
        None => {
            let low = parse_value(kind, span, at)?;
            // `25/1` means from 25 on, as `25-59/1` does.
            (low, if step_text.is_some() { kind.max } else { low })
        }
        Some((low_text, high_text)) => {
            let low = parse_value(kind, low_text, at)?;
            let high = parse_value(kind, high_text, at + low_text.len() + 1)?;
            if low > high {
                return Err(ScheduleError::at(
                    at,
                    format!("the range `{span}` of the {} runs backwards", kind.name),
                    format!("write two ranges: `{low_text}-{},{}-{high_text}`", kind.max, kind.min),
                ));
            }
            (low, high)
        }
    };
    Ok((run(low, high, step), false, step))
}

/// `5L`, `15W`, `LW`: digits or nothing, then the letters of Quartz.
fn is_quartz(item: &str) -> bool {
    let letters = item.trim_start_matches(|c: char| c.is_ascii_digit());
    !letters.is_empty()
        && letters.len() < 3
        && letters.chars().all(|c| matches!(c.to_ascii_uppercase(), 'L' | 'W'))
}

fn parse_step(kind: &FieldKind, text: &str, at: usize) -> Result<u32, ScheduleError> {
    match parse_number(text) {
        Some(0) => Err(ScheduleError::at(
            at,
            format!("a step of 0 in the {}", kind.name),
            "write a step of 1 or more, or none",
        )),
        Some(step) => Ok(step),
        None => Err(ScheduleError::at(
            at,
            format!("the step `{text}` of the {} is not a number", kind.name),
            "write a whole number after one `/`, such as `*/5`",
        )),
    }
}

fn parse_value(kind: &FieldKind, text: &str, at: usize) -> Result<u32, ScheduleError> {
    let named = || kind.names.iter().position(|name| text.eq_ignore_ascii_case(name));
    let value = match parse_number(text) {
        Some(value) => value,
        None => match named().and_then(|index| u32::try_from(index).ok()) {
            Some(index) => kind.min + index,
            None => return Err(unknown_value(kind, text, at)),
        },
    };
    if (kind.min..=kind.max).contains(&value) {
        return Ok(value);
    }
    let hint = if kind.name == WEEKDAY.name && value == 7 {
        "write 0 or `sun` for Sunday".into()
    } else {
        format!("write {} to {}", kind.min, kind.max)
    };
    Err(ScheduleError::at(at, format!("{} {text} is out of range", kind.name), hint))
}

fn unknown_value(kind: &FieldKind, text: &str, at: usize) -> ScheduleError {
    let what = if text.is_empty() {
        format!("a number is missing in the {}", kind.name)
    } else {
        format!("`{text}` is not a {}", kind.name)
    };
    let range = format!("write {} to {}", kind.min, kind.max);
    let short: Option<&str> =
        text.get(..3).filter(|short| kind.names.iter().any(|n| n.eq_ignore_ascii_case(short)));
    let hint = match (short, kind.names) {
        (Some(short), _) => format!("write the name with three letters: `{}`", short.to_ascii_lowercase()),
        (None, []) => range,
        (None, [first, .., last]) => format!("{range}, or `{first}` to `{last}`"),
        (None, [only]) => format!("{range}, or `{only}`"),
    };
    ScheduleError::at(at, what, hint)
}

/// Digits only: no sign, no blank. Very large numbers stay large.
fn parse_number(text: &str) -> Option<u32> {
    let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    digits.then(|| text.parse().unwrap_or(u32::MAX))
}

/// The bits from `low` to `high`, every `step`th.
fn run(low: u32, high: u32, step: u32) -> u64 {
    (low..=high).step_by(step as usize).fold(0, |bits, value| bits | 1 << value)
}

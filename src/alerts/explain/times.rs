//! Figures: how long something takes, and how often it happens, each with how far it may be off.

use super::path::TICK;
use crate::alerts::simulate::Millis;
use serde::Serialize;
use std::fmt;

/// How long something takes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Time {
    /// So many seconds.
    Seconds(f64),
    /// Longer than was looked.
    LongerThanSeconds(f64),
    /// It can't come.
    Never,
}

impl Time {
    /// The later it is, the greater.
    pub fn rank(self) -> f64 {
        match self {
            Self::Seconds(seconds) => seconds,
            Self::LongerThanSeconds(_) | Self::Never => f64::INFINITY,
        }
    }

    /// So much later.
    pub fn later(self, seconds: f64) -> Self {
        match self {
            Self::Seconds(known) => Self::Seconds(known + seconds),
            other => other,
        }
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Seconds(seconds) => f.write_str(&words(*seconds)),
            Self::LongerThanSeconds(seconds) => write!(f, "> {}", words(*seconds)),
            Self::Never => f.write_str("never"),
        }
    }
}

/// As exact as it is of use: `9m 40s`, `34m`, `3h 10m`, `2d 4h`.
fn words(seconds: f64) -> String {
    const UNITS: [(f64, f64, &str, &str); 4] = [
        (600.0, 10.0, "m", "s"),
        (7_200.0, 60.0, "m", ""),
        (172_800.0, 600.0, "h", "m"),
        (f64::INFINITY, 3_600.0, "d", "h"),
    ];
    let (_, step, large, small) = UNITS.into_iter().find(|(below, ..)| seconds < *below).unwrap_or(UNITS[3]);
    let whole = ((seconds / step).round() * step) as u64;
    let size = match large {
        "m" => 60,
        "h" => 3_600,
        _ => 86_400,
    };
    let rest = match small {
        "s" => whole % size,
        "m" => whole % size / 60,
        _ => whole % size / 3_600,
    };
    match (whole / size, rest) {
        (0, rest) => format!("{rest}{small}"),
        (n, 0) => format!("{n}{large}"),
        (n, rest) => format!("{n}{large} {rest}{small}"),
    }
}

/// The median, and the time that 95 of 100 are within.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Times {
    /// Half of all are sooner.
    pub median: Time,
    /// 95 of 100 are sooner.
    pub p95: Time,
}

impl Times {
    /// The same for all.
    pub const fn always(time: Time) -> Self {
        Self { median: time, p95: time }
    }

    /// Of simulated ones; those that are nothing took longer than was looked.
    pub fn of(times: impl Iterator<Item = Option<Millis>>, looked: Millis) -> Self {
        let mut times: Vec<Millis> = times.map(|time| time.unwrap_or(Millis::MAX)).collect();
        times.sort_unstable();
        let seconds = |time: Millis| time as f64 / 1_000.0;
        let at = |share: f64| match times.get((times.len() as f64 * share) as usize) {
            Some(&Millis::MAX) | None => Time::LongerThanSeconds(seconds(looked)),
            Some(time) => Time::Seconds(seconds(*time)),
        };
        Self { median: at(0.5), p95: at(0.95) }
    }

    /// So much later.
    pub fn later(self, seconds: f64) -> Self {
        Self { median: self.median.later(seconds), p95: self.p95.later(seconds) }
    }
}

impl fmt::Display for Times {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.median == self.p95 && self.median.rank().is_infinite() {
            return self.median.fmt(f);
        }
        write!(f, "{} / {}", self.median, self.p95)
    }
}

/// Times in outages of different shares.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ByShare {
    /// Everything fails.
    pub total: Times,
    /// Half of all fail.
    pub half: Times,
    /// One in five fails.
    pub one_in_five: Times,
}

impl ByShare {
    /// By the share that fails, the greatest first.
    pub const fn all(&self) -> [Times; 3] {
        [self.total, self.half, self.one_in_five]
    }
}

/// How often something happens in a year, and between which bounds that lies with a confidence of 95 %.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Rate {
    /// So many a year.
    pub a_year: f64,
    /// Not fewer.
    pub low: f64,
    /// Not more.
    pub high: f64,
}

impl Rate {
    /// What needs no simulation.
    pub const fn exact(a_year: f64) -> Self {
        Self { a_year, low: a_year, high: a_year }
    }

    /// Of a count, which is Poisson: the bounds are wide enough where it is 0 too.
    pub fn counted(count: f64, years: f64) -> Self {
        let off = 1.96 * (count + 0.96).sqrt();
        Self {
            a_year: count / years,
            low: ((count + 1.92 - off) / years).max(0.0),
            high: (count + 1.92 + off) / years,
        }
    }

    /// So many times as often.
    pub fn times(self, factor: f64) -> Self {
        Self { a_year: self.a_year * factor, low: self.low * factor, high: self.high * factor }
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // As exact as it is known, and never 0 for what is rare.
        let least = [0.01, 0.1, 1.0, 10.0, 100.0].into_iter().find(|least| self.high < *least);
        match least {
            Some(least) if self.low <= 0.0 || self.a_year < 0.01 => write!(f, "< {least}"),
            _ if self.a_year < 10.0 => write!(f, "{:.2}", self.a_year),
            _ => write!(f, "{:.0}", self.a_year),
        }
    }
}

/// About so many sums stand for all that the waits can come to.
const SUMS: f64 = 100.0;

/// Waits that a notification or a figure meets on its way, each anything from nothing to so many seconds.
#[derive(Clone, Debug)]
pub struct Waits(Vec<f64>);

impl Waits {
    /// A scrape and an evaluation, and these.
    pub fn new(others: &[f64]) -> Self {
        let tick = TICK as f64 / 1_000.0;
        let all = [&[tick, tick][..], others].concat();
        let steps = SUMS.powf(1.0 / all.len() as f64) as u32;
        let mut sums = vec![0.0];
        for most in all {
            let middles: Vec<f64> =
                (0..steps).map(|n| (f64::from(n) + 0.5) / f64::from(steps) * most).collect();
            sums = sums.iter().flat_map(|sum| middles.iter().map(move |wait| sum + wait)).collect();
        }
        Self(sums)
    }

    /// When it has come to pass and was seen, if by `t` seconds it has come to pass with the probability `by(t)`, which only grows. After
    /// `settled` seconds it grows no more.
    pub fn times(&self, by: &impl Fn(f64) -> f64, settled: f64) -> Times {
        let longest = self.0.iter().copied().fold(0.0, f64::max);
        let seen = |t: f64| self.0.iter().map(|wait| by(t - wait)).sum::<f64>() / self.0.len() as f64;
        let at = |share: f64| {
            let (mut low, mut high) = (0.0, settled + longest);
            if by(settled) < share {
                return if by(settled) < 1e-6 { Time::Never } else { Time::LongerThanSeconds(settled) };
            }
            while high - low > 1.0 {
                let middle = (low + high) / 2.0;
                if seen(middle) < share { low = middle } else { high = middle }
            }
            Time::Seconds(high)
        };
        Times { median: at(0.5), p95: at(0.95) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_as_exact_as_they_are_of_use() {
        for (seconds, said) in [
            (45.0, "50s"),
            (61.0, "1m"),
            (584.0, "9m 40s"),
            (598.0, "10m"),
            (2_050.0, "34m"),
            (11_500.0, "3h 10m"),
            (7_190.0, "120m"),
            (187_200.0, "2d 4h"),
        ] {
            assert_eq!(Time::Seconds(seconds).to_string(), said, "{seconds}");
        }
        let times = Times { median: Time::Seconds(600.0), p95: Time::LongerThanSeconds(86_400.0) };
        assert_eq!(times.to_string(), "10m / > 24h");
        assert_eq!(Times::always(Time::Never).to_string(), "never");
    }

    #[test]
    fn what_is_rare_is_never_said_to_be_nothing() {
        for (rate, said) in [
            (Rate::exact(0.000_01), "< 0.01"),
            (Rate::exact(0.0), "< 0.01"),
            (Rate { a_year: 0.0, low: 0.0, high: 0.04 }, "< 0.1"),
            (Rate { a_year: 0.02, low: 0.01, high: 0.03 }, "0.02"),
            (Rate { a_year: 0.002, low: 0.001, high: 0.011 }, "< 0.1"),
            (Rate::exact(23.4), "23"),
        ] {
            assert_eq!(rate.to_string(), said);
        }
        assert_eq!(Rate::counted(0.0, 500.0).to_string(), "< 0.01");
    }

    #[test]
    fn waits_move_what_comes_at_once() {
        let step = |t: f64| f64::from(u8::from(t >= 100.0));
        let times = Waits::new(&[]).times(&step, 100.0);
        let off = |time: Time, wanted: f64| (time.rank() - wanted).abs() < 4.0;
        // Of two waits of up to 30 s the median is 30 s together, and 95 of 100 are within 50.5 s.
        assert!(off(times.median, 130.0) && off(times.p95, 150.5), "{times:?}");
        assert_eq!(Waits::new(&[]).times(&|_| 0.0, 100.0), Times::always(Time::Never));
        let rarely = Waits::new(&[]).times(&|_| 0.7, 100.0);
        assert_eq!(rarely.p95, Time::LongerThanSeconds(100.0));
    }
}

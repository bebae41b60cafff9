//! Numbers as people write them into a configuration.

use crate::config::scalar::Span;
use chrono::TimeDelta;

/// Times that are written, in seconds.
const TIMES: [u64; 24] = [
    1, 2, 3, 5, 10, 15, 20, 30, 45, 60, 90, 120, 180, 300, 600, 900, 1_200, 1_800, 2_700, 3_600, 7_200,
    14_400, 43_200, 86_400,
];

/// The next time that people would write; whole days beyond one.
pub fn time_up(time: TimeDelta) -> Span {
    let seconds = u64::try_from((time.num_milliseconds() + 999) / 1_000).unwrap_or(0);
    let listed = TIMES.into_iter().find(|listed| *listed >= seconds);
    Span::seconds(listed.unwrap_or_else(|| seconds.div_ceil(86_400) * 86_400))
}

/// The next whole minute after this time.
pub fn minute_after(time: TimeDelta) -> Span {
    Span::seconds((u64::try_from(time.num_seconds()).unwrap_or(0) / 60 + 1) * 60)
}

/// Up to two digits: 0.00123 is 0.0013.
pub fn up(share: f64) -> f64 {
    digits(share, f64::ceil)
}

/// To two digits, the nearer: 12345 is 12000.
pub fn near(number: f64) -> f64 {
    digits(number, f64::round)
}

fn digits(number: f64, round: fn(f64) -> f64) -> f64 {
    if number <= 0.0 {
        return 0.0;
    }
    let place = number.log10().floor() as i32 - 1;
    // What is all but written so already is left as it is.
    let rounded = round(number / 10f64.powi(place) - 1e-9);
    if place < 0 { rounded / 10f64.powi(-place) } else { rounded * 10f64.powi(place) }
}

/// As per cent, to two digits.
pub fn percent(share: f64) -> String {
    let number = digits(share * 100.0, f64::round);
    format!("{number} %")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_as_people_write_them() {
        assert_eq!(time_up(TimeDelta::milliseconds(4_001)), Span::seconds(5));
        assert_eq!(time_up(TimeDelta::seconds(60)), Span::seconds(60));
        assert_eq!(time_up(TimeDelta::hours(30)), Span::seconds(2 * 86_400));
        assert_eq!(time_up(TimeDelta::zero()), Span::seconds(1));
        assert_eq!(minute_after(TimeDelta::seconds(180)), Span::seconds(240));
        assert_eq!(minute_after(TimeDelta::seconds(181)), Span::seconds(240));
        assert_eq!([up(0.001_23), up(0.001_3), up(0.014)], [0.0013, 0.0013, 0.014]);
        assert_eq!([near(12_345.0), near(0.0), near(7.0)], [12_000.0, 0.0, 7.0]);
        assert_eq!([percent(0.0005), percent(0.014), percent(0.0)], ["0.05 %", "1.4 %", "0 %"]);
    }
}

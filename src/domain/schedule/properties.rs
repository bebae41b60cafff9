//! Everything about slots, held against a matcher that knows nothing of the code: minute after minute, by the text.

use chrono::{DateTime, Datelike, NaiveDateTime, TimeDelta, Timelike, Utc};
use chrono_tz::Tz;
use proptest::prelude::*;
use proptest::sample::select;

use super::Schedule;

const NAMES: [&str; 19] = [
    "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec", "sun", "mon", "tue",
    "wed", "thu", "fri", "sat",
];

/// Whether the value is in the field, by its text, in the words of cron's manual.
fn field_has(text: &str, value: u32, min: u32, max: u32) -> bool {
    let number = |text: &str| match NAMES.iter().position(|name| *name == text) {
        Some(index @ 0..12) => index as u32 + 1,
        Some(index) => index as u32 - 12,
        None => text.parse().unwrap(),
    };
    text.split(',').any(|item| {
        let (range, step) =
            item.split_once('/').map_or((item, None), |(range, step)| (range, Some(number(step))));
        let (low, high) = match range.split_once('-') {
            Some((low, high)) => (number(low), number(high)),
            None if range == "*" => (min, max),
            None if step.is_some() => (number(range), max),
            None => (number(range), number(range)),
        };
        low <= value && value <= high && (value - low).is_multiple_of(step.unwrap_or(1))
    })
}

fn leaves_nothing_out(field: &str) -> bool {
    field.split(',').any(|item| item == "*" || item == "*/1")
}

fn matches(expression: &str, local: NaiveDateTime) -> bool {
    let [minute, hour, day, month, weekday] = expression.split(' ').collect::<Vec<_>>()[..] else { panic!() };
    let in_day = field_has(day, local.day(), 1, 31);
    let in_week = field_has(weekday, local.weekday().num_days_from_sunday(), 0, 6);
    let both = leaves_nothing_out(day) || leaves_nothing_out(weekday);
    field_has(minute, local.minute(), 0, 59)
        && field_has(hour, local.hour(), 0, 23)
        && field_has(month, local.month(), 1, 12)
        && if both { in_day && in_week } else { in_day || in_week }
}

/// Whether a slot stands at this minute, by what the wall shows then and a minute before.
fn is_slot(expression: &str, zone: Tz, at: DateTime<Utc>) -> bool {
    let wall = |at: DateTime<Utc>| at.with_timezone(&zone).naive_local();
    let now = wall(at);
    if expression.split(' ').nth(1).unwrap().contains('*') {
        return matches(expression, now);
    }
    let shown_before = || (1..=360).any(|ago| wall(at - TimeDelta::minutes(ago)) == now);
    let mut skipped = wall(at - TimeDelta::minutes(1)) + TimeDelta::minutes(1);
    let mut owed = false;
    while skipped < now && !owed {
        owed = matches(expression, skipped);
        skipped += TimeDelta::minutes(1);
    }
    owed || (matches(expression, now) && !shown_before())
}

fn field(min: u32, max: u32, names: &'static [&'static str]) -> BoxedStrategy<String> {
    let value = min..=max;
    let name = if names.is_empty() {
        value.clone().prop_map(|v| v.to_string()).boxed()
    } else {
        select(names).prop_map(str::to_owned).boxed()
    };
    let item = prop_oneof![
        3 => Just("*".to_owned()),
        3 => value.clone().prop_map(|v| v.to_string()),
        1 => name,
        2 => (2..=max).prop_map(|step| format!("*/{step}")),
        1 => Just("*/1".to_owned()),
        2 => (value.clone(), 1..=max).prop_map(|(from, step)| format!("{from}/{step}")),
        3 => (value.clone(), value.clone()).prop_map(|(a, b)| format!("{}-{}", a.min(b), a.max(b))),
        2 => (value.clone(), value, 1..9_u32).prop_map(|(a, b, s)| format!("{}-{}/{s}", a.min(b), a.max(b))),
    ];
    prop::collection::vec(item, 1..4).prop_map(|items| items.join(",")).boxed()
}

/// Expressions that fire somewhere. Half of them on all days, so that the short spans below have slots.
fn expression() -> impl Strategy<Value = String> {
    let days = prop_oneof![
        Just("* * *".to_owned()),
        (field(1, 31, &[]), field(1, 12, &NAMES[..12]), field(0, 6, &NAMES[12..]))
            .prop_map(|(day, month, weekday)| format!("{day} {month} {weekday}")),
    ];
    (field(0, 59, &[]), field(0, 23, &[]), days)
        .prop_map(|(minute, hour, days)| format!("{minute} {hour} {days}"))
        .prop_filter("fires", |text| super::CronExpression::parse(text).is_ok())
}

/// Zones with the oddest clocks, and days on which they change.
fn place() -> impl Strategy<Value = (Tz, DateTime<Utc>)> {
    let changes = [
        (Tz::America__New_York, "2026-03-08T07:00:00Z"),
        (Tz::America__New_York, "2026-11-01T06:00:00Z"),
        (Tz::Australia__Lord_Howe, "2026-04-04T15:00:00Z"),
        (Tz::Australia__Lord_Howe, "2026-10-03T15:30:00Z"),
        // Changes at midnight: a day without a first hour, and one with two.
        (Tz::Africa__Cairo, "2026-04-23T22:00:00Z"),
        (Tz::Africa__Cairo, "2026-10-29T21:00:00Z"),
        (Tz::America__Havana, "2026-03-08T05:00:00Z"),
        (Tz::America__Havana, "2026-11-01T05:00:00Z"),
        // Two hours at once; three hours at once; a day that never was; a quarter of an hour off.
        (Tz::Antarctica__Troll, "2026-03-29T01:00:00Z"),
        (Tz::Antarctica__Troll, "2026-10-25T01:00:00Z"),
        (Tz::Antarctica__Casey, "2010-03-04T15:00:00Z"),
        (Tz::Pacific__Apia, "2011-12-30T10:00:00Z"),
        (Tz::Pacific__Chatham, "2026-04-04T14:00:00Z"),
        (Tz::Asia__Kolkata, "2026-02-28T18:30:00Z"),
        (Tz::UTC, "2028-02-29T00:00:00Z"),
    ];
    (select(changes.to_vec()).prop_map(|(zone, at)| (zone, at.parse().unwrap())).boxed(), -2_000_i64..2_000)
        .prop_map(|((zone, at), minutes): ((Tz, DateTime<Utc>), i64)| {
            (zone, at + TimeDelta::minutes(minutes))
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    /// Nothing skipped, nothing added, strictly increasing, and the count agrees without walking.
    #[test]
    fn slots_are_those_found_minute_by_minute(text in expression(), (zone, from) in place(), second in 0..60_i64) {
        let schedule = Schedule::parse(&text, zone.name()).unwrap();
        let minutes = 3_100;
        let expected: Vec<_> =
            (1..=minutes).map(|n| from + TimeDelta::minutes(n)).filter(|at| is_slot(&text, zone, *at)).collect();
        let until = from + TimeDelta::minutes(minutes);
        // Asked in the midst of a minute, the same come.
        let after = from + TimeDelta::seconds(second);
        let got: Vec<_> = schedule.slots_between(after, until, usize::MAX).collect();
        prop_assert_eq!(&got, &expected);
        prop_assert!(got.windows(2).all(|pair| pair[0] < pair[1]));
        prop_assert_eq!(schedule.count_between(after, until).slots, got.len() as u64);
        // From anywhere, also from between two passes, the next slot is the next of the same list.
        for step in (0..minutes).step_by(97) {
            let at = from + TimeDelta::minutes(step);
            let next = schedule.next_after(at);
            let of_list = expected.iter().find(|slot| **slot > at).copied();
            prop_assert!(of_list.is_none() || next == of_list, "{} after {}: {:?}", text, at, next);
        }
    }

    /// The bounds hold for the slots there are.
    #[test]
    fn bounds_hold((text, (zone, from)) in (expression(), place())) {
        let schedule = Schedule::parse(&text, zone.name()).unwrap();
        let slots: Vec<_> = schedule.slots_between(from, from + TimeDelta::days(3), usize::MAX).collect();
        // Casey and Apia changed before the span in which changes are looked for.
        prop_assume!(from.year() >= 2020);
        let (gap, most) = (schedule.shortest_gap(), schedule.max_per_hour());
        prop_assert!(slots.windows(2).all(|pair| (pair[1] - pair[0]).to_std().unwrap() >= gap));
        for (index, slot) in slots.iter().enumerate() {
            let in_hour = slots[index..].iter().take_while(|other| **other - *slot < TimeDelta::hours(1)).count();
            prop_assert!(in_hour as u32 <= most, "{} in an hour, bound {}", in_hour, most);
        }
    }

    /// Whatever is asked when, each slot is fired or missed once.
    #[test]
    fn each_slot_is_fired_or_missed_once(text in expression(), (zone, from) in place(), looks in prop::collection::vec(1..20_000_i64, 1..12)) {
        let schedule = Schedule::parse(&text, zone.name()).unwrap();
        let (mut last, mut handled) = (from, 0);
        for seconds in looks {
            let now = last + TimeDelta::seconds(seconds);
            let due = schedule.due(last, now, std::time::Duration::from_secs(300));
            if let Some(slot) = due.fire {
                prop_assert!(last < slot && slot <= now && now - slot <= TimeDelta::seconds(300));
            }
            handled += due.missed + u64::from(due.fire.is_some());
            last = now;
        }
        prop_assert_eq!(handled, schedule.slots_between(from, last, usize::MAX).count() as u64);
    }

    /// No text makes the parser panic, and an error points into the text.
    #[test]
    fn any_text_is_read_or_refused(text in "[0-9*/,?@a-zLW# \u{e9}\u{2003}-]{0,24}") {
        if let Err(super::ScheduleError::Expression { column, .. }) = super::CronExpression::parse(&text) {
            prop_assert!((1..=text.len() + 1).contains(&column));
        }
    }
}

//! Schedules: the reference of Kubernetes' own parser, clock changes by hand, and everything else by brute force.

use std::time::Duration;

use chrono::{DateTime, Utc};
use clap::Parser;
use delivery_canary::cli::schedule_next;
use delivery_canary::domain::schedule::{
    CronExpression, DueSlots, Interval, LONGEST_COUNT, Schedule, ScheduleError, offset_for, parse_zone,
};

fn utc(text: &str) -> DateTime<Utc> {
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn schedule(expression: &str, zone: &str) -> Schedule {
    Schedule::parse(expression, zone).unwrap_or_else(|error| panic!("{expression} in {zone}: {error}"))
}

fn slots(schedule: &Schedule, after: &str, count: usize) -> Vec<DateTime<Utc>> {
    schedule.slots_between(utc(after), DateTime::<Utc>::MAX_UTC, count).collect()
}

#[test]
fn all_rows_of_the_reference_agree() {
    let mut rows = 0;
    for line in include_str!("data/cron_reference.tsv").lines().filter(|line| !line.starts_with('#')) {
        let columns: Vec<&str> = line.split('\t').collect();
        let [expression, zone, after, expected] = columns[..] else { panic!("four columns, not {line}") };
        let printed = schedule_next::run(expression, zone, after, 5, None);
        assert_eq!(printed.expect(line).join(", "), expected, "{expression}");
        rows += 1;
    }
    assert_eq!(rows, 300);
}

/// Worked out by hand. New York 2026: 8 March 02:00 becomes 03:00 (07:00Z), 1 November 02:00 becomes 01:00 (06:00Z).
/// Lord Howe 2026: 5 April 02:00 becomes 01:30 (4 April 15:00Z), 4 October 02:00 becomes 02:30 (3 October 15:30Z).
const CLOCK_CHANGES: &[(&str, &str, &str, &[&str])] = &[
    // The gap in New York. Fixed hours: once, at its end, and not twice where a slot stands there anyway.
    ("America/New_York", "30 2 * * *", "03-07T06:00", &["03-07T07:30", "03-08T07:00", "03-09T06:30"]),
    ("America/New_York", "*/10 2 * * *", "03-08T06:00", &["03-08T07:00", "03-09T06:00", "03-09T06:10"]),
    ("America/New_York", "0 3 * * *", "03-08T06:00", &["03-08T07:00", "03-09T07:00"]),
    ("America/New_York", "0 2,3 * * *", "03-08T06:00", &["03-08T07:00", "03-09T06:00", "03-09T07:00"]),
    ("America/New_York", "30 2,3 * * *", "03-08T06:00", &["03-08T07:00", "03-08T07:30", "03-09T06:30"]),
    ("America/New_York", "30 2 * * *", "03-08T07:00", &["03-09T06:30"]),
    // Wildcard hours: what the wall shows.
    ("America/New_York", "30 * * * *", "03-08T05:00", &["03-08T05:30", "03-08T06:30", "03-08T07:30"]),
    ("America/New_York", "*/30 * * * *", "03-08T06:00", &["03-08T06:30", "03-08T07:00", "03-08T07:30"]),
    ("America/New_York", "0 */2 * * *", "03-08T04:00", &["03-08T05:00", "03-08T08:00", "03-08T10:00"]),
    // The fold in New York. Fixed hours: the first pass alone.
    ("America/New_York", "30 1 * * *", "10-31T12:00", &["11-01T05:30", "11-02T06:30"]),
    ("America/New_York", "*/30 1 * * *", "11-01T00:00", &["11-01T05:00", "11-01T05:30", "11-02T06:00"]),
    ("America/New_York", "30 1 * * *", "11-01T06:15", &["11-02T06:30"]),
    ("America/New_York", "0 1-3 * * *", "11-01T00:00", &["11-01T05:00", "11-01T07:00", "11-01T08:00"]),
    ("America/New_York", "0 2 * * *", "11-01T00:00", &["11-01T07:00", "11-02T07:00"]),
    ("America/New_York", "@daily", "11-01T00:00", &["11-01T04:00", "11-02T05:00"]),
    // Wildcard hours: both passes.
    (
        "America/New_York",
        "30 * * * *",
        "11-01T04:00",
        &["11-01T04:30", "11-01T05:30", "11-01T06:30", "11-01T07:30"],
    ),
    ("America/New_York", "45 * * * *", "11-01T05:50", &["11-01T06:45", "11-01T07:45"]),
    ("America/New_York", "15 * * * *", "11-01T05:50", &["11-01T06:15", "11-01T07:15"]),
    ("America/New_York", "0 */2 * * *", "11-01T03:00", &["11-01T04:00", "11-01T07:00", "11-01T09:00"]),
    // The half hour of Lord Howe: the gap.
    ("Australia/Lord_Howe", "15 2 * * *", "10-02T15:00", &["10-02T15:45", "10-03T15:30", "10-04T15:15"]),
    ("Australia/Lord_Howe", "30 2 * * *", "10-03T00:00", &["10-03T15:30", "10-04T15:30"]),
    ("Australia/Lord_Howe", "0,30 2 * * *", "10-03T00:00", &["10-03T15:30", "10-04T15:00", "10-04T15:30"]),
    ("Australia/Lord_Howe", "15 * * * *", "10-03T14:00", &["10-03T14:45", "10-03T16:15"]),
    ("Australia/Lord_Howe", "*/30 * * * *", "10-03T14:45", &["10-03T15:00", "10-03T15:30", "10-03T16:00"]),
    // And its fold.
    ("Australia/Lord_Howe", "45 1 * * *", "04-04T00:00", &["04-04T14:45", "04-05T15:15"]),
    ("Australia/Lord_Howe", "0 2 * * *", "04-04T00:00", &["04-04T15:30", "04-05T15:30"]),
    ("Australia/Lord_Howe", "45 * * * *", "04-04T14:00", &["04-04T14:45", "04-04T15:15", "04-04T16:15"]),
    ("Australia/Lord_Howe", "15 * * * *", "04-04T14:00", &["04-04T14:15", "04-04T15:45"]),
    (
        "Australia/Lord_Howe",
        "*/15 * * * *",
        "04-04T14:20",
        &["04-04T14:30", "04-04T14:45", "04-04T15:00", "04-04T15:15", "04-04T15:30"],
    ),
];

fn check_clock_changes() {
    for (zone, expression, after, expected) in CLOCK_CHANGES {
        let full = |short: &str| format!("2026-{short}:00Z");
        let expected: Vec<DateTime<Utc>> = expected.iter().map(|short| utc(&full(short))).collect();
        assert_eq!(
            slots(&schedule(expression, zone), &full(after), expected.len()),
            expected,
            "{expression} in {zone} after {after}"
        );
    }
}

#[test]
fn trial_16_both_clock_changes_in_two_zones() {
    check_clock_changes();
}

/// The same table in a process that is told of zone files that don't exist: the zones are those compiled in.
#[test]
fn trial_16_no_zone_files_are_needed() {
    const INSIDE: &str = "SCHEDULE_TEST_WITHOUT_ZONE_FILES";
    if std::env::var_os(INSIDE).is_some() {
        return check_clock_changes();
    }
    let empty = tempfile::tempdir().expect("an empty folder");
    let outcome = std::process::Command::new(std::env::current_exe().expect("this test"))
        .args(["--exact", "schedule::trial_16_no_zone_files_are_needed"])
        .env_clear()
        .env(INSIDE, "1")
        .env("TZDIR", empty.path())
        .env("TZ", "No/Such_Zone")
        .output()
        .expect("this test starts again");
    assert!(outcome.status.success(), "{}", String::from_utf8_lossy(&outcome.stdout));
    assert!(String::from_utf8_lossy(&outcome.stdout).contains("1 passed"));
}

#[test]
fn descriptors_and_intervals() {
    let table: &[(&str, &[&str])] = &[
        ("@hourly", &["2026-11-29T11:00:00Z", "2026-11-29T12:00:00Z"]),
        ("@daily", &["2026-11-30T00:00:00Z", "2026-12-01T00:00:00Z"]),
        ("@midnight", &["2026-11-30T00:00:00Z", "2026-12-01T00:00:00Z"]),
        ("@weekly", &["2026-12-06T00:00:00Z", "2026-12-13T00:00:00Z"]),
        ("@monthly", &["2026-12-01T00:00:00Z", "2027-01-01T00:00:00Z"]),
        ("@yearly", &["2027-01-01T00:00:00Z", "2028-01-01T00:00:00Z"]),
        ("@annually", &["2027-01-01T00:00:00Z", "2028-01-01T00:00:00Z"]),
        ("@every 5m", &["2026-11-29T10:05:00Z", "2026-11-29T10:10:00Z"]),
        ("@every 0.5h30m", &["2026-11-29T11:00:00Z", "2026-11-29T12:00:00Z"]),
        // Seven does not divide a day: it counts from 1970 and not from midnight.
        ("@every 7m", &["2026-11-29T10:01:00Z", "2026-11-29T10:08:00Z"]),
        ("? 12 ? * mon-WED", &["2026-11-30T12:00:00Z", "2026-11-30T12:01:00Z"]),
        ("5 4 29 Feb ?", &["2028-02-29T04:05:00Z", "2032-02-29T04:05:00Z"]),
        // The 30 February never comes, but Mondays of February do.
        ("0 0 30 2 1", &["2027-02-01T00:00:00Z", "2027-02-08T00:00:00Z"]),
    ];
    for (expression, expected) in table {
        let expected: Vec<DateTime<Utc>> = expected.iter().map(|text| utc(text)).collect();
        let got = slots(&schedule(expression, "UTC"), "2026-11-29T10:00:00Z", expected.len());
        assert_eq!(got, expected, "{expression}");
    }
    // Over 2100, which has no 29 February.
    let leap = schedule("0 0 29 2 *", "UTC");
    assert_eq!(slots(&leap, "2096-03-01T00:00:00Z", 1), [utc("2104-02-29T00:00:00Z")]);
    assert_eq!(leap.next_after(DateTime::<Utc>::MAX_UTC), None);
    assert!(leap.count_between(DateTime::<Utc>::MIN_UTC, DateTime::<Utc>::MAX_UTC).capped);
    assert_eq!(CronExpression::parse("  5 4 * * * ").expect("blanks around").to_string(), "5 4 * * *");
}

#[test]
fn what_is_refused_says_where_and_what_to_write() {
    let table = [
        ("* * * * 7", 9, "write 0 or `sun`"),
        ("0 0 * * 1-7", 11, "write 0 or `sun`"),
        ("0 0 L * *", 5, "write 1 to 31"),
        ("0 0 1,15W * *", 7, "write 1 to 31"),
        ("0 0 * * fri#2", 9, "write 0 to 6"),
        ("0 0 * * 5L", 9, "write 0 to 6"),
        ("30-10 * * * *", 1, "`30-59,0-10`"),
        ("0 0 * * fri-mon", 9, "`fri-6,0-mon`"),
        ("0 */5 * * * *", 13, "none for seconds"),
        ("* * * *", 8, "write five fields"),
        ("", 1, "write five fields"),
        ("TZ=UTC * * * * *", 1, "`zone`"),
        (" CRON_TZ=UTC * * * * *", 2, "`zone`"),
        ("*/0 * * * *", 3, "1 or more"),
        ("*/x * * * *", 3, "whole number"),
        ("1/2/3 * * * *", 3, "whole number"),
        ("1,,2 * * * *", 3, "remove the comma"),
        ("60 * * * *", 1, "write 0 to 59"),
        ("99999999999 * * * *", 1, "write 0 to 59"),
        ("+5 * * * *", 1, "write 0 to 59"),
        ("*-5 * * * *", 1, "write 0 to 59"),
        ("1-2-3 * * * *", 3, "write 0 to 59"),
        ("0 0 0 * *", 5, "write 1 to 31"),
        ("0 0 * monday *", 7, "`jan` to `dec`"),
        ("0 0 * * monday", 9, "three letters: `mon`"),
        ("é * * * *", 1, "write 0 to 59"),
        ("0 0 é * *", 5, "write 1 to 31"),
        ("0 0 30 2 *", 5, "28 for February"),
        ("0 0 31 4,jun ?", 5, "28 for February"),
        ("@reboot", 1, "`@hourly`"),
        ("@Daily", 1, "`@daily`"),
        ("@daily 5", 8, "alone"),
        ("@every", 1, "`@every 5m`"),
        ("@every 5", 9, "`h`, `m` and `s`"),
        ("@every 5m 3s", 11, "one word"),
        ("@every 5x", 9, "`h`, `m` and `s`"),
        ("@every 500ms", 11, "`h`, `m` and `s`"),
        ("@every -5m", 8, "`h`, `m` and `s`"),
        ("@every 1.5s", 8, "whole seconds"),
        ("@every 0s", 8, "too short"),
        ("@every 999999h", 8, "too long"),
    ];
    for (expression, at, says) in table {
        let error = CronExpression::parse(expression).expect_err(expression);
        let ScheduleError::Expression { column, .. } = &error else { panic!("{expression}: {error}") };
        assert_eq!(*column, at, "{expression}: {error}");
        assert!(error.to_string().contains(says), "{expression}: {error}");
    }
    assert!(CronExpression::parse(&"1,".repeat(1000)).is_err());
    assert!(Interval::new(Duration::from_millis(1500)).is_err());
}

#[test]
fn unknown_zones_suggest_near_names() {
    for (wrong, right) in [
        ("America/NewYork", "America/New_York"),
        ("europe/berlin", "Europe/Berlin"),
        ("Berlin", "Europe/Berlin"),
        ("New York", "America/New_York"),
        ("Asia/Calcuta", "Asia/Calcutta"),
    ] {
        let error = parse_zone(wrong).expect_err(wrong).to_string();
        assert!(error.contains(right), "{error}");
    }
    assert!(parse_zone("").expect_err("blank").to_string().contains("IANA name"));
    assert!(parse_zone("Middle_Earth/Shire").expect_err("none such").to_string().contains("IANA name"));
}

#[test]
fn bounds_count_the_clock_changes() {
    let table = [
        ("* * * * *", "America/New_York", 60, 60),
        ("*/5 * * * *", "UTC", 12, 300),
        ("0,1,30 * * * *", "America/New_York", 3, 60),
        ("30 4 * * *", "UTC", 1, 86_400),
        // A night of 23 hours.
        ("30 4 * * *", "America/New_York", 1, 82_800),
        ("0 9 * * 1", "UTC", 1, 86_400),
        // At 01:30, and at the end of the gap, half an hour later.
        ("30 1,2 * * *", "America/New_York", 2, 1_800),
        ("30 1,2 * * *", "UTC", 1, 3_600),
        // The half hour after 01:30 twice in a row in autumn.
        ("30-59 * * * *", "Australia/Lord_Howe", 60, 60),
        ("30-59 * * * *", "UTC", 30, 60),
        ("45 * * * *", "Australia/Lord_Howe", 2, 1_800),
        ("@every 7m", "UTC", 9, 420),
        ("@every 2h", "UTC", 1, 7_200),
        ("@every 1s", "UTC", 3_600, 1),
    ];
    for (expression, zone, per_hour, gap_seconds) in table {
        let schedule = schedule(expression, zone);
        let bounds = (schedule.max_per_hour(), schedule.shortest_gap().as_secs());
        assert_eq!(bounds, (per_hour, gap_seconds), "{expression} in {zone}");
    }
}

#[test]
fn the_typical_interval_is_a_median() {
    let office = schedule("*/10 9-17 * * 1-5", "Europe/Berlin");
    for (schedule, seconds) in
        [(office, 600), (schedule("0 0 1 * *", "UTC"), 31 * 86_400), (schedule("@every 90s", "UTC"), 90)]
    {
        let typical = schedule.typical_interval(utc("2026-11-27T17:40:00Z"));
        assert_eq!(typical, Some(Duration::from_secs(seconds)));
    }
}

#[test]
fn offsets_are_fixed_and_spread_evenly() {
    let spread = Duration::from_secs(60);
    // A changed hash would move every route of every user: this value is a promise.
    assert_eq!(offset_for("webhook/receipts", spread), Duration::from_millis(44_498));
    let mut per_second = [0_u32; 60];
    for route in 0..6_000 {
        let offset = offset_for(&format!("email/route-{route}"), spread);
        assert!(offset < spread);
        per_second[usize::try_from(offset.as_secs()).expect("below 60")] += 1;
    }
    // 100 are expected in each second, with a deviation of 10.
    assert!(per_second.iter().all(|routes| (50..=150).contains(routes)), "{per_second:?}");
    let minutely = schedule("* * * * *", "UTC");
    let offsets =
        (0..1_000).map(|route| minutely.offset_for(&format!("sms/{route}"), Duration::from_secs(3_600)));
    assert!(offsets.into_iter().all(|offset| offset < minutely.shortest_gap()));
    assert_eq!(offset_for("webhook/receipts", Duration::ZERO), Duration::ZERO);
}

#[test]
fn missed_slots_are_counted_and_never_a_burst() {
    let minutely = schedule("* * * * *", "America/New_York");
    let minute = Duration::from_secs(60);
    let last = utc("2026-10-15T00:00:00Z");
    let due = |now: &str, tolerance| minutely.due(last, utc(now), tolerance);
    let slot = |text: &str| Some(utc(text));
    let table = [
        ("2026-10-15T00:00:59Z", minute, None, 0),
        ("2026-10-15T00:01:00Z", minute, slot("2026-10-15T00:01:00Z"), 0),
        ("2026-10-15T00:01:30Z", minute, slot("2026-10-15T00:01:00Z"), 0),
        ("2026-10-15T00:03:59Z", minute, slot("2026-10-15T00:03:00Z"), 2),
        // As old as the tolerance is still fresh; a moment older is missed.
        ("2026-10-15T00:03:05Z", Duration::from_secs(5), slot("2026-10-15T00:03:00Z"), 2),
        ("2026-10-15T00:03:05.001Z", Duration::from_secs(5), None, 3),
        // A month, over the end of summer time.
        ("2026-11-15T00:00:00Z", minute, slot("2026-11-15T00:00:00Z"), 31 * 1_440 - 1),
        ("2026-11-15T00:00:30Z", Duration::MAX, slot("2026-11-15T00:00:00Z"), 31 * 1_440 - 1),
        // A clock that was put back.
        ("2026-10-14T00:00:00Z", minute, None, 0),
    ];
    for (now, tolerance, fire, missed) in table {
        assert_eq!(due(now, tolerance), DueSlots { fire, missed, capped: false }, "{now} {tolerance:?}");
    }
    let ages = minutely.due(utc("1990-01-01T00:00:00Z"), utc("2026-10-15T00:00:00Z"), minute);
    let most = u64::try_from(LONGEST_COUNT.num_minutes()).expect("positive");
    assert_eq!((ages.missed, ages.capped), (most - 1, true));
    let every = Schedule::every(Interval::new(Duration::from_secs(90)).expect("an interval"));
    let due = every.due(utc("2026-10-15T00:00:00Z"), utc("2026-10-16T00:00:29Z"), minute);
    assert_eq!(due, DueSlots { fire: slot("2026-10-16T00:00:00Z"), missed: 959, capped: false });
}

#[derive(Parser)]
struct Command {
    #[command(flatten)]
    args: schedule_next::ScheduleNextArgs,
}

#[test]
fn schedule_next_prints_local_times() {
    let run = |after: &str, expression: &str| {
        let line = [
            "next",
            "--expression",
            expression,
            "--zone",
            "America/New_York",
            "--after",
            after,
            "--count",
            "1",
        ];
        let args = Command::try_parse_from(line).expect("arguments").args;
        let expression = args.expression.unwrap_or_default();
        schedule_next::run(&expression, &args.zone, &args.after.unwrap_or_default(), args.count, None)
            .map(|lines| lines.join(" "))
            .map_err(|error| format!("{error:#}"))
    };
    let table = [
        ("2026-11-29T10:00:00", "* * * * *", "2026-11-29T10:01:00-05:00"),
        ("2026-11-29 10:00", "* * * * *", "2026-11-29T10:01:00-05:00"),
        ("2026-11-29T10:00:00+01:00", "* * * * *", "2026-11-29T04:01:00-05:00"),
        ("2026-11-29T10:00:00Z", "* * * * *", "2026-11-29T05:01:00-05:00"),
        // In the gap: just before the jump, so that what fires at its end is printed.
        ("2026-03-08T02:45:00", "30 2 * * *", "2026-03-08T03:00:00-04:00"),
        ("2026-03-08T03:00:00", "30 2 * * *", "2026-03-09T02:30:00-04:00"),
        // In the fold: the first pass.
        ("2026-11-01T01:15:00", "30 1 * * *", "2026-11-01T01:30:00-04:00"),
        ("2026-11-01T01:45:00", "30 * * * *", "2026-11-01T01:30:00-05:00"),
    ];
    for (after, expression, line) in table {
        assert_eq!(run(after, expression).as_deref(), Ok(line), "{expression} after {after}");
    }
    for (after, expression, says) in [
        ("tomorrow", "* * * * *", "--after `tomorrow`"),
        ("2026-11-29T10:00:00", "* * * * 7", "--expression `* * * * 7`: column 9"),
        ("9999-01-01T00:00:00", "* * * * *", "a year from 1 to 9990"),
    ] {
        let error = run(after, expression).expect_err(after);
        assert!(error.contains(says), "{error}");
    }
    let offset = Some(Duration::from_millis(12_500));
    let lines = schedule_next::run("* * * * *", "UTC", "2026-11-29T10:00:00", 2, offset).expect("two lines");
    assert_eq!(lines, ["2026-11-29T10:00:12.500+00:00", "2026-11-29T10:01:12.500+00:00"]);
    assert!(schedule_next::run("* * * * *", "UTC", "2026-11-29T10:00:00", 0, None).is_err());
}

/// Samoa had no 30 December 2011: what was due on it fires once, and a count by days must not miss that slot.
#[test]
fn a_day_that_never_was_fires_once() {
    let schedule = schedule("* 1-23 * * *", "Pacific/Apia");
    let (from, until) = (utc("2011-12-30T09:59:00Z"), utc("2011-12-31T09:59:59Z"));
    assert_eq!(
        slots(&schedule, "2011-12-30T09:59:00Z", 2),
        [utc("2011-12-30T10:00:00Z"), utc("2011-12-30T11:00:00Z")]
    );
    assert_eq!(schedule.count_between(from, until).slots, 1 + 23 * 60);
}

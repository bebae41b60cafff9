use super::*;
use proptest::prelude::*;

fn at(seconds: f64) -> DateTime<Utc> {
    #[allow(clippy::cast_possible_truncation, reason = "small times")]
    let micros = (seconds * 1e6) as i64;
    DateTime::from_timestamp_micros(1_800_000_000_000_000 + micros).expect("an instant")
}

const HOUR: f64 = 3_600.0;

fn look(began: f64, process: Option<f64>, sum: f64) -> Sample<u8> {
    Sample {
        began: at(began),
        ended: at(began + 0.1),
        uptime: Duration::from_secs_f64(began + 10_000.0),
        process: process.map(at),
        sums: BTreeMap::from([(0, sum)]),
    }
}

fn of(looks: impl IntoIterator<Item = Sample<u8>>, edge: i64) -> Result<Bounds, Unknown> {
    let mut samples = Samples::new(TimeDelta::hours(3));
    looks.into_iter().for_each(|look| samples.push(look));
    let bounds = samples.increase(at(0.0), at(HOUR), TimeDelta::seconds(edge))?;
    Ok(bounds.get(&0).copied().unwrap_or_default())
}

/// The looks at and around both edges, by what they saw.
fn four(process: [Option<f64>; 4], sums: [f64; 4]) -> Vec<Sample<u8>> {
    let times = [-10.0, 6.0, HOUR - 10.0, HOUR + 6.0];
    times.into_iter().zip(process).zip(sums).map(|((at, process), sum)| look(at, process, sum)).collect()
}

#[test]
fn looks_inside_give_the_least_and_those_outside_the_most() {
    let one = Some(-9_000.0);
    assert_eq!(of(four([one; 4], [100.0, 101.0, 150.0, 152.0]), 5), Ok(Bounds { least: 49, most: Some(52) }));
    // Without a word of the process nobody knows whether it began anew in between and soon had more than before.
    let unsaid = of(four([None; 4], [100.0, 101.0, 150.0, 152.0]), 5);
    assert_eq!(unsaid, Ok(Bounds { least: 49, most: None }));
    let quiet = of(four([one; 4], [7.0; 4]), 5);
    assert_eq!(quiet, Ok(Bounds::exactly(0)), "nothing was accepted, and that is certain");
}

#[test]
fn a_new_process_counts_from_nothing_and_hides_what_came_just_before() {
    let (old, new) = (Some(-9_000.0), Some(1_000.0));
    let restarted = of(four([old, old, new, new], [100.0, 101.0, 20.0, 22.0]), 5);
    assert_eq!(restarted, Ok(Bounds { least: 20, most: None }));
    // It has more than the old one had, and is known all the same.
    let busy = of(four([old, old, new, new], [100.0, 101.0, 300.0, 301.0]), 5);
    assert_eq!(busy, Ok(Bounds { least: 300, most: None }));
    // A start that is computed anew at each look is no restart.
    let jitter = of(four([old, Some(-8_999.0), old, old], [1.0, 1.0, 5.0, 5.0]), 5);
    assert_eq!(jitter, Ok(Bounds::exactly(4)));
}

#[test]
fn what_can_not_be_told_is_not_told() {
    let (one, older) = (Some(-9_000.0), Some(-20_000.0));
    assert_eq!(of(four([None; 4], [100.0, 101.0, 90.0, 95.0]), 5), Err(Unknown::Fell));
    assert_eq!(of(four([one; 4], [100.0, 101.0, 90.0, 95.0]), 5), Err(Unknown::NoCounter));
    assert_eq!(of(four([one, one, older, one], [100.0, 101.0, 110.0, 120.0]), 5), Err(Unknown::Several));
    assert_eq!(of([], 5), Err(Unknown::NotCovered));
    assert_eq!(of([look(6.0, one, 1.0)], 5), Err(Unknown::NotCovered));
    let late = [look(400.0, one, 1.0), look(HOUR - 10.0, one, 9.0)];
    assert_eq!(of(late, 5), Err(Unknown::NotCovered), "this process began to look in the middle of the hour");
    let early = [look(6.0, one, 1.0), look(HOUR - 400.0, one, 9.0)];
    assert_eq!(of(early, 5), Err(Unknown::NotCovered), "the page was not there at the end of the hour");
    let inner = [look(6.0, one, 1.0), look(HOUR - 10.0, one, 9.0)];
    assert_eq!(of(inner, 5), Ok(Bounds { least: 8, most: None }));
}

#[test]
fn a_clock_that_is_set_takes_away_the_meaning_of_what_was_seen() {
    let one = Some(-9_000.0);
    let mut looks = four([one; 4], [0.0, 1.0, 9.0, 9.0]);
    looks[2].uptime += Duration::from_secs(30);
    looks[3].uptime += Duration::from_secs(30);
    assert_eq!(of(looks, 5), Err(Unknown::NotCovered));
}

#[test]
fn looks_come_by_the_minute_and_close_to_the_edges_of_hours() {
    let hour = at(0.0).duration_trunc(TimeDelta::hours(1)).expect("an hour");
    let seconds = |n| hour + TimeDelta::seconds(n);
    let edge = TimeDelta::seconds(5);
    let mut seen = Vec::new();
    let mut now = seconds(3_530);
    for _ in 0..5 {
        now = next_look(now, edge);
        seen.push((now - hour).num_seconds());
    }
    assert_eq!(seen, [3_540, 3_594, 3_600, 3_605, 3_660]);
    assert_eq!(next_look(seconds(1), edge), seconds(5));
    assert_eq!(next_look(seconds(3_590), TimeDelta::zero()), seconds(3_599));
}

#[test]
fn two_ledgers_add_up() {
    let one = Accepted { here: 5, elsewhere: Bounds::exactly(7) };
    let other = Accepted { here: 2, elsewhere: Bounds { least: 1, most: None } };
    assert_eq!((one.missing(), other.missing()), (2, 0));
    assert_eq!(one.and(other), Accepted { here: 7, elsewhere: Bounds { least: 8, most: None } });
}

proptest! {
    /// Whatever is accepted, and when, and however often the process is started anew: the truth is never outside of the bounds.
    #[test]
    fn the_truth_lies_within_the_bounds(
        mut accepted in prop::collection::vec((-200.0f64..HOUR + 200.0, -4.9f64..4.9), 0..200),
        mut starts in prop::collection::vec(-100.0f64..HOUR + 100.0, 0..3),
        missed in prop::collection::vec(0usize..90, 0..8),
        says_start in any::<bool>(),
    ) {
        accepted.sort_by(|a, b| a.0.total_cmp(&b.0));
        starts.push(-9_000.0);
        starts.sort_by(f64::total_cmp);
        let counted = |from: f64, to: f64| accepted.iter().filter(|(at, _)| from <= *at && *at < to).count() as f64;
        let edge = TimeDelta::seconds(5);
        let mut samples = Samples::new(TimeDelta::hours(3));
        let (mut now, mut number) = (at(-150.0), 0);
        while now < at(HOUR + 150.0) {
            now = next_look(now, edge);
            number += 1;
            if missed.contains(&number) {
                continue;
            }
            let began = (now - at(0.0)).as_seconds_f64();
            let start = starts.iter().copied().rfind(|start| *start <= began).expect("the first");
            samples.push(look(began, says_start.then_some(start), counted(start, began + 0.05)));
        }
        // The ledger has other times than the counter.
        let truth = accepted.iter().filter(|(at, off)| (0.0..HOUR).contains(&(at + off))).count() as u64;
        if let Ok(bounds) = samples.increase(at(0.0), at(HOUR), edge) {
            let bounds = bounds.get(&0).copied().unwrap_or_default();
            prop_assert!(bounds.least <= truth, "{bounds:?}, and it was {truth}");
            prop_assert!(bounds.most.is_none_or(|most| most >= truth), "{bounds:?}, and it was {truth}");
        }
    }
}

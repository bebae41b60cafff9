//! What must come, as data; what came; and the two held against each other.

use super::{bounds::Bounds, clock::Clock, receivers::Episode};
use chrono::{DateTime, TimeDelta, Utc};
use std::{collections::BTreeMap, fmt::Write as _};

/// An instant of a row: when its fault began, and when it was over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum When {
    /// It began.
    Began(&'static str),
    /// It was over.
    Ended(&'static str),
}

/// When somebody is told that it is over.
#[derive(Clone, Copy, Debug)]
pub enum Over {
    /// So long after an instant.
    After(When, Bounds),
    /// Not before the suite ends.
    Not,
}

/// One thing that must come, once.
#[derive(Clone, Debug)]
pub struct Expected {
    /// The row.
    pub row: &'static str,
    /// Who is told.
    pub receiver: &'static str,
    /// The alert.
    pub alert: &'static str,
    /// What it is about.
    pub about: String,
    /// From what instant on.
    pub after: When,
    /// So long.
    pub comes: Bounds,
    /// When it is over.
    pub over: Over,
}

/// A row: what is done to the service or the monitor.
pub type Row = (&'static str, &'static str);

/// When what happened.
pub type Instants = BTreeMap<When, DateTime<Utc>>;

/// What was expected, and what came of it.
pub struct Compared {
    /// The table.
    pub text: String,
    /// What is wrong.
    pub wrong: Vec<String>,
}

/// The episodes in the order in which they came, each given to the first expectation that it can be.
fn given<'e>(expected: &[Expected], episodes: &'e [Episode]) -> (Vec<Option<&'e Episode>>, Vec<&'e Episode>) {
    let mut given: Vec<Option<&Episode>> = vec![None; expected.len()];
    let mut left = Vec::new();
    for episode in episodes {
        let is_it = |e: &Expected| {
            (e.receiver, e.alert, &*e.about) == (&*episode.receiver, &*episode.alert, &*episode.about)
        };
        match (0..expected.len()).find(|n| given[*n].is_none() && is_it(&expected[*n])) {
            Some(place) => given[place] = Some(episode),
            None => left.push(episode),
        }
    }
    (given, left)
}

/// Whether everything that must come has come, or is too late to come.
pub fn undecided(
    expected: &[Expected],
    episodes: &[Episode],
    instants: &Instants,
    clock: Clock,
) -> Vec<String> {
    let now = Utc::now();
    let may_come =
        |when: &When, bounds: &Bounds| instants.get(when).is_none_or(|at| now < clock.after(*at, bounds.1));
    let (given, _) = given(expected, episodes);
    let open = expected.iter().zip(given).filter(|(e, episode)| match (episode, &e.over) {
        (None, _) => may_come(&e.after, &e.comes),
        (Some(episode), Over::After(when, bounds)) => episode.went.is_none() && may_come(when, bounds),
        (Some(_), Over::Not) => false,
    });
    open.map(|(e, episode)| {
        let state = if episode.is_some() { "is not over" } else { "has not come" };
        format!("{}: {} {} {state}", e.row, e.alert, e.about)
    })
    .collect()
}

/// Minutes and seconds.
fn clockwise(time: TimeDelta) -> String {
    let (sign, seconds) = (if time < TimeDelta::zero() { "-" } else { "" }, time.num_seconds().abs());
    format!("{sign}{}:{:02}", seconds / 60, seconds % 60)
}

/// How long after, in real time, and whether that is within the bounds.
fn measured(
    at: DateTime<Utc>,
    since: Option<&DateTime<Utc>>,
    bounds: Bounds,
    clock: Clock,
) -> (String, bool) {
    let Some(since) = since else { return ("before its fault".into(), false) };
    let real = clock.real(at - *since);
    let within = real.to_std().is_ok_and(|real| (bounds.0..=bounds.1).contains(&real));
    (clockwise(real), within)
}

fn between(bounds: Bounds) -> String {
    let time = |bound| clockwise(TimeDelta::from_std(bound).expect("short"));
    format!("{} to {}", time(bounds.0), time(bounds.1))
}

/// Holds what came against what must come, and everything else against nothing.
pub fn compare(
    rows: &[Row],
    expected: &[Expected],
    episodes: &[Episode],
    instants: &Instants,
    clock: Clock,
) -> Compared {
    let mut text = "| row | fault | told | alert | after | must be | over after | must be |\n\
                    |---|---|---|---|---|---|---|---|\n"
        .to_owned();
    let mut wrong = Vec::new();
    let (given, left) = given(expected, episodes);
    for (row, fault) in rows {
        let mine: Vec<_> = expected.iter().zip(&given).filter(|(e, _)| e.row == *row).collect();
        if mine.is_empty() {
            let _ = writeln!(text, "| {row} | {fault} | nobody | | | | | |");
        }
        for (n, (e, episode)) in mine.into_iter().enumerate() {
            let (row, fault) = if n == 0 { (*row, *fault) } else { ("", "") };
            let (mut came, mut went) = (("never".to_owned(), false), ("not".to_owned(), true));
            let over = match e.over {
                Over::After(_, bounds) => between(bounds),
                Over::Not => "not".into(),
            };
            if let Some(episode) = episode {
                came = measured(episode.came, instants.get(&e.after), e.comes, clock);
                went = match (e.over, episode.went) {
                    (Over::After(when, bounds), Some(at)) => measured(at, instants.get(&when), bounds, clock),
                    (Over::After(..), None) => ("never".into(), false),
                    (Over::Not, Some(at)) => (format!("at {at}"), false),
                    (Over::Not, None) => ("not".into(), true),
                };
            }
            let _ = writeln!(
                text,
                "| {row} | {fault} | {} | `{}` {} | {} | {} | {} | {over} |",
                e.receiver,
                e.alert,
                e.about,
                came.0,
                between(e.comes),
                went.0
            );
            if !(came.1 && went.1) {
                let (comes, name) = (between(e.comes), format!("{}: {} {}", e.row, e.alert, e.about));
                wrong.push(format!(
                    "{name} came after {} ({comes}), was over after {} ({over})",
                    came.0, went.0
                ));
            }
        }
    }
    for expectation in expected.iter().filter(|e| rows.iter().all(|(row, _)| *row != e.row)) {
        wrong.push(format!("there is no row {:?}", expectation.row));
    }
    let origin = instants.values().min();
    for episode in left {
        let Episode { receiver, alert, about, came, went } = episode;
        let after = |at: &DateTime<Utc>| origin.map(|origin| clockwise(clock.real(*at - *origin)));
        wrong.push(format!(
            "{receiver} was told of {alert} {about}, which nobody expected, {:?} after the first fault; over: {:?}",
            after(came),
            went.as_ref().map(after)
        ));
    }
    Compared { text, wrong }
}

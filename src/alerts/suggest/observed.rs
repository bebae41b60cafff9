//! What a route's canaries showed: how many failed while nothing was wrong, how long what failed by itself lasted, how long arrivals took.

use crate::{
    alerts::backtest::Settings,
    domain::{
        failure_evidence::{Question, Stream},
        route::Location,
        verdict::{ExpectedEnd, Verdict},
    },
};
use chrono::{DateTime, TimeDelta, Utc};
use std::collections::BTreeMap;

/// A canary of the past, by the verdict in force.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sent {
    /// Its slot.
    pub slot: DateTime<Utc>,
    /// Whether the schedule sent it. Confirmations are sent where something fails, so they count only for how long that lasts.
    pub is_scheduled: bool,
    /// The verdict in force.
    pub verdict: Verdict,
    /// The end that was expected of it.
    pub expected: ExpectedEnd,
    /// How long after its deadline began to run it arrived whole.
    pub arrived_after: Option<TimeDelta>,
}

/// Scheduled canaries, and what became of them.
#[derive(Clone, Debug, Default, PartialEq)]
struct Counted {
    canaries: u64,
    failures: u64,
    never: u64,
    arrivals: Vec<TimeDelta>,
}

impl Counted {
    fn add(&mut self, sent: &Sent, failed: bool) {
        if sent.is_scheduled {
            self.canaries += 1;
            self.failures += u64::from(failed);
            self.never += u64::from(failed && sent.arrived_after.is_none());
            self.arrivals.extend(sent.arrived_after);
        }
    }

    fn join(&mut self, other: Self) {
        self.canaries += other.canaries;
        self.failures += other.failures;
        self.never += other.never;
        self.arrivals.extend(other.arrivals);
    }
}

/// The evidence was at its bound: from the first failure since it was zero until it was zero again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Incident {
    /// Where.
    pub location: Location,
    /// The slot of the first failure.
    pub from: DateTime<Utc>,
    /// The slot of the canary with which the evidence was zero again; nothing: it isn't yet.
    pub until: Option<DateTime<Utc>>,
    /// From the first failure to the last.
    pub failing_for: TimeDelta,
}

/// Evidence above zero, until it is zero again.
#[derive(Clone, Debug)]
struct Episode {
    from: DateTime<Utc>,
    last_failure: DateTime<Utc>,
    was_at_bound: bool,
    counted: Counted,
    /// How long each of its runs of failures lasted.
    runs: Vec<TimeDelta>,
}

/// One location.
#[derive(Clone, Debug, Default)]
struct Watched {
    stream: Stream,
    episode: Option<Episode>,
}

/// What was seen of a route, canary by canary.
#[derive(Clone, Debug)]
pub struct Observed {
    settings: Settings,
    locations: BTreeMap<Location, Watched>,
    well: Counted,
    left_out: u64,
    incidents: Vec<Incident>,
    runs: Vec<TimeDelta>,
    span: Option<(DateTime<Utc>, DateTime<Utc>)>,
}

impl Observed {
    /// Nothing yet, of a route with these settings.
    pub const fn new(settings: Settings) -> Self {
        Self {
            settings,
            locations: BTreeMap::new(),
            well: Counted { canaries: 0, failures: 0, never: 0, arrivals: Vec::new() },
            left_out: 0,
            incidents: Vec::new(),
            runs: Vec::new(),
            span: None,
        }
    }

    /// Takes the next canary, by its slot. What is late failed too: one healthy rate serves both questions.
    pub fn take(&mut self, location: &Location, sent: &Sent) {
        let from = self.span.map_or(sent.slot, |(from, _)| from);
        self.span = Some((from, sent.slot));
        let Some(failed) = Question::InTime.vote(sent.verdict, sent.expected) else { return };
        let weights = &self.settings.weights;
        let watched = self.locations.entry(location.clone()).or_default();
        let before = watched.stream;
        watched.stream.observe(weights, sent.slot, failed);
        if !failed && watched.episode.is_none() {
            self.well.add(sent, false);
            return;
        }
        let episode = watched.episode.get_or_insert_with(|| Episode {
            from: sent.slot,
            last_failure: sent.slot,
            was_at_bound: false,
            counted: Counted::default(),
            runs: Vec::new(),
        });
        episode.counted.add(sent, failed);
        if failed {
            episode.last_failure = sent.slot;
            let since = watched.stream.run.map_or(sent.slot, |run| run.since);
            if before.run.is_some() {
                episode.runs.pop();
            }
            episode.runs.push(sent.slot - since);
            episode.was_at_bound |= watched.stream.is_sustained(weights);
        }
        if watched.stream.value <= 0.0
            && let Some(episode) = watched.episode.take()
        {
            self.close(location.clone(), episode, Some(sent.slot));
        }
    }

    fn close(&mut self, location: Location, episode: Episode, until: Option<DateTime<Utc>>) {
        if episode.was_at_bound {
            self.left_out += episode.counted.canaries;
            let failing_for = episode.last_failure - episode.from;
            self.incidents.push(Incident { location, from: episode.from, until, failing_for });
        } else {
            self.runs.extend(episode.runs);
            self.well.join(episode.counted);
        }
    }

    /// Ends the look. What is open still counts as what it is so far; but how long a run lasts that hasn't ended nobody knows.
    pub fn end(mut self) -> Seen {
        for (location, watched) in std::mem::take(&mut self.locations) {
            if let Some(mut episode) = watched.episode {
                if watched.stream.run.is_some() {
                    episode.runs.pop();
                }
                self.close(location, episode, None);
            }
        }
        let Counted { canaries, failures, never, mut arrivals } = self.well;
        arrivals.sort_unstable();
        self.runs.sort_unstable();
        Seen {
            span: self.span,
            canaries,
            failures,
            never,
            left_out: self.left_out,
            incidents: self.incidents,
            runs: self.runs,
            arrivals,
        }
    }
}

/// What was seen of a route.
#[derive(Clone, Debug, PartialEq)]
pub struct Seen {
    /// The first slot and the last; nothing: there was no canary.
    pub span: Option<(DateTime<Utc>, DateTime<Utc>)>,
    /// Scheduled canaries outside of incidents that say something.
    pub canaries: u64,
    /// How many of them failed, or came late.
    pub failures: u64,
    /// How many of them failed and did not arrive, or not whole, as far as is known.
    pub never: u64,
    /// Scheduled canaries within incidents.
    pub left_out: u64,
    /// Incidents, at each location by itself.
    pub incidents: Vec<Incident>,
    /// How long runs of failures lasted that ended without an incident, from their first failure to their last, the shortest first.
    /// Confirmations are in them.
    pub runs: Vec<TimeDelta>,
    /// How long the arrivals outside of incidents took, the shortest first.
    pub arrivals: Vec<TimeDelta>,
}

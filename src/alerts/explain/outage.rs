//! How soon the evidence of canaries pages in an outage that begins at any moment: simulated.

use super::path::Watch;
use crate::{
    alerts::simulate::{Cadence, Evidence, Millis, Random, Rule as _, Run},
    domain::failure_evidence::Weights,
};

/// Scheduled canaries before an outage, so that it meets what noise has left.
const BEFORE: i64 = 100;

/// Scheduled canaries that an outage lasts, if that is more than a day.
const AFTER: i64 = 400;

const DAY: Millis = 86_400_000;

/// Rules are looked at in steps of this, or of a gap between two canaries.
const STEP: Millis = 300_000;

/// Everything on which the figures of a route's canaries depend. Routes that are alike in it have the same figures.
#[derive(Clone, Debug, PartialEq)]
pub struct Setting {
    /// When canaries go out.
    pub cadence: Cadence,
    /// How they are weighed.
    pub weights: Weights,
    /// How many places of observation send them.
    pub locations: usize,
    /// At how many the evidence must be at its bound.
    pub needed: usize,
    /// How long that must hold.
    pub hold: Millis,
}

/// What came of one outage, in milliseconds from its beginning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// Until the alert fired. Nothing: not within [`Setting::lasts`].
    pub fired: Option<Millis>,
    /// Until two canaries in a row were known to have failed. Looked for until the alert fires.
    pub twice: Option<Millis>,
}

impl Setting {
    /// How long outages are that are simulated: a day, or 400 scheduled canaries.
    pub fn lasts(&self) -> Millis {
        DAY.max(AFTER * self.cadence.slots.mean_gap())
    }

    /// Outages in which this share fails, each beginning at any moment of the schedule.
    pub fn outages(&self, share: f64, count: usize, random: &mut Random) -> Vec<Found> {
        (0..count).map(|_| self.outage(share, random)).collect()
    }

    fn outage(&self, share: f64, random: &mut Random) -> Found {
        let slots = &self.cadence.slots;
        let (ring, period) = slots.round();
        let begin = ring + random.below(period);
        let mut watch = Watch::new(self.hold, random);
        let first = slots.from(begin) - BEFORE;
        let fails = Fails { healthy: self.weights.p0, begin, share };
        let mut places: Vec<Place<'_>> =
            (0..self.locations).map(|_| Place::new(&self.cadence, self.weights, first)).collect();
        let mut bad = vec![false; self.locations];
        for (place, bad) in places.iter_mut().zip(&mut bad) {
            place.go_on(begin, &fails, random, |_, is_bad| *bad = is_bad);
        }
        let (mut from, mut found) = (begin, Found::default());
        let mut changes = Vec::new();
        while from < begin + self.lasts() {
            let until = from + STEP.max(slots.mean_gap());
            changes.clear();
            for (n, place) in places.iter_mut().enumerate() {
                place.go_on(until, &fails, random, |at, is_bad| changes.push((at, n, is_bad)));
                found.twice = place.twice.into_iter().chain(found.twice).min();
            }
            changes.sort_by_key(|(at, ..)| *at);
            for (at, n, is_bad) in changes.iter().copied() {
                if let Some(fired) = watch.see(from, at, self.is_due(&bad)) {
                    return Found { fired: Some(fired - begin), ..found };
                }
                (from, bad[n]) = (at, is_bad);
            }
            if let Some(fired) = watch.see(from, until, self.is_due(&bad)) {
                return Found { fired: Some(fired - begin), ..found };
            }
            from = until;
        }
        found
    }

    fn is_due(&self, bad: &[bool]) -> bool {
        bad.iter().filter(|is_bad| **is_bad).count() >= self.needed
    }
}

/// What happens to canaries.
struct Fails {
    healthy: f64,
    begin: Millis,
    share: f64,
}

impl Fails {
    /// The probability that one that goes out now fails. What fails when all is well fails in an outage too.
    fn at(&self, sent: Millis) -> f64 {
        if sent < self.begin { self.healthy } else { 1.0 - (1.0 - self.share) * (1.0 - self.healthy) }
    }
}

/// One place of observation.
struct Place<'a> {
    run: Run<'a, Evidence>,
    is_bad: bool,
    twice: Option<Millis>,
}

impl<'a> Place<'a> {
    fn new(cadence: &'a Cadence, weights: Weights, first: i64) -> Self {
        Self { run: Run::new(cadence, Evidence::new(weights), first), is_bad: false, twice: None }
    }

    /// Goes on to an instant. Tells when the evidence reaches its bound, and when it falls below.
    fn go_on(
        &mut self,
        until: Millis,
        fails: &Fails,
        random: &mut Random,
        mut told: impl FnMut(Millis, bool),
    ) {
        let Self { run, is_bad, twice } = self;
        let mut see = |at: Millis, rule: &Evidence| {
            if rule.is_firing() != *is_bad {
                *is_bad = rule.is_firing();
                told(at, *is_bad);
            }
            if at >= fails.begin && rule.consecutive() >= 2 {
                twice.get_or_insert(at - fails.begin);
            }
        };
        while let Some(canary) = run.next_by(until, &mut |change, rule| see(change.at, rule)) {
            run.send(canary, random.happens(fails.at(canary.sent)));
        }
    }
}

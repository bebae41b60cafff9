//! How often the evidence of canaries pages a year when nothing is wrong but what always fails, the healthy rate.
//!
//! That is rare: once in thousands of years, so counting years would find nothing. It is weighed instead. An episode begins with a failure while the
//! sum is zero and ends when it is zero again; in between canaries fail as often as in an outage, and each that does or doesn't makes the episode
//! count for as much less, or more, as that is less, or more, likely when all is well (importance sampling by the likelihood ratio, as in the
//! theory of sequential tests). Pages a year are the episodes of a year times what pages in one of them.

use super::{outage::Setting, path::Watch, times::Rate};
use crate::{
    alerts::simulate::{Canary, Evidence, Millis, Random, Rule as _, Run},
    domain::failure_evidence::Weights,
};

/// Milliseconds of a year of 365 days.
const YEAR: f64 = 365.0 * 86_400_000.0;

/// More canaries than this an episode has only where the evidence doesn't come down by itself. Then it is as good as one without an end.
const LONGEST: u32 = 200_000;

/// What one place of observation does, by the year.
#[derive(Clone, Copy, Debug)]
struct Alone {
    pages: Rate,
    /// The share of the time in which it fires.
    firing: f64,
}

impl Setting {
    /// Pages a year, from so many weighed episodes.
    pub fn noise(&self, episodes: usize, random: &mut Random) -> Rate {
        let plain = episodes.div_ceil(10);
        let length: f64 =
            (0..plain).map(|_| self.episode(false, random).scheduled).sum::<f64>() / plain as f64;
        // Until the failure with which an episode begins, and then the scheduled canaries within it.
        let cycle = 1.0 / self.weights.p0 + length;
        let a_year = YEAR / self.cadence.slots.mean_gap() as f64 / cycle;
        let (mut pages, mut squares, mut firing) = (0.0, 0.0, 0.0);
        for _ in 0..episodes {
            let episode = self.episode(true, random);
            pages += episode.pages;
            squares += episode.pages * episode.pages;
            firing += episode.firing;
        }
        let n = episodes as f64;
        let mean = pages / n;
        let deviation = ((squares / n - mean * mean).max(0.0) / n).sqrt();
        // Where none was seen, three in as many would have been too many to miss.
        let off = if pages > 0.0 { 1.96 * deviation } else { 3.0 / n };
        let pages = Rate { a_year: mean, low: (mean - off).max(0.0), high: mean + off };
        self.together(Alone { pages: pages.times(a_year), firing: firing / n * a_year / YEAR })
    }

    /// Pages a year, counted over so many of them.
    pub fn noise_of_years(&self, years: f64, random: &mut Random) -> Rate {
        let end = self.cadence.slots.at(0) + (years * YEAR) as Millis;
        let mut run = Run::new(&self.cadence, Evidence::new(self.weights), 0);
        let mut seen = Seen::new(self, self.cadence.slots.at(0), random);
        loop {
            let mut canary = run.next(&mut |change, rule| seen.see(change.at, rule, 1.0));
            let is_idle = !run.rule().is_open() && run.is_quiet();
            if is_idle {
                // Nothing happens until something fails.
                run.skip_to(run.next_index() + random.misses(self.weights.p0));
                canary = run.next(&mut |_, _| ());
                seen.idle(canary.sent);
            }
            if canary.sent >= end {
                break;
            }
            run.send(canary, is_idle || random.happens(self.weights.p0));
        }
        let pages = Rate::counted(seen.pages, years);
        self.together(Alone { pages, firing: seen.firing / (years * YEAR) })
    }

    /// Of so many places of observation, each with noise of its own, as many as are needed fire at the same time.
    fn together(&self, alone: Alone) -> Rate {
        let (of, needed) = (self.locations as f64, self.needed as f64);
        let others = needed - 1.0;
        // So many ways there are to choose those that fire already when the last one joins them.
        let ways: f64 = (1..self.needed).map(|k| (of - 1.0 - others + k as f64) / k as f64).product();
        let share = alone.firing.min(1.0);
        let quiet = (1.0 - share).powf(of - needed);
        alone.pages.times(of * ways * share.powf(others) * quiet)
    }

    /// One episode. With `weighed` its canaries fail as often as in an outage until it pages, and what it counts for is told with it.
    fn episode(&self, weighed: bool, random: &mut Random) -> Episode {
        let first = random.below(self.cadence.slots.in_round());
        let mut run = Run::new(&self.cadence, Evidence::new(self.weights), first);
        let mut seen = Seen::new(self, self.cadence.slots.at(first), random);
        let mut likelihood = Likelihood { weights: self.weights, ratio: 1.0 };
        // What the evidence will be when all that is under way is known.
        let mut ahead = Evidence::new(self.weights);
        let mut scheduled = 0u32;
        for n in 0..LONGEST {
            let ratio = likelihood.ratio;
            let canary: Canary = run.next(&mut |change, rule| seen.see(change.at, rule, ratio));
            if n > 0 && !run.rule().is_open() && run.is_quiet() {
                break;
            }
            let is_hurried = weighed && seen.pages == 0.0 && !ahead.is_full();
            let failed = n == 0 || likelihood.draw(is_hurried, random);
            scheduled += u32::from(n > 0 && canary.is_scheduled);
            ahead.observe(canary.slot, failed);
            run.send(canary, failed);
        }
        Episode { pages: seen.pages, firing: seen.firing, scheduled: f64::from(scheduled) }
    }
}

/// What came of an episode.
struct Episode {
    /// Its pages, times what it counts for.
    pages: f64,
    /// For how long they fired, times what it counts for.
    firing: f64,
    /// Its scheduled canaries, the first left out.
    scheduled: f64,
}

/// How likely the canaries of an episode are when all is well, as a multiple of how likely they are as they were drawn.
struct Likelihood {
    weights: Weights,
    ratio: f64,
}

impl Likelihood {
    fn draw(&mut self, is_hurried: bool, random: &mut Random) -> bool {
        let Weights { p0, p1, .. } = self.weights;
        if !is_hurried {
            return random.happens(p0);
        }
        let failed = random.happens(p1);
        self.ratio *= if failed { p0 / p1 } else { (1.0 - p0) / (1.0 - p1) };
        failed
    }
}

/// Pages as Prometheus sees them.
struct Seen {
    watch: Watch,
    last: Millis,
    was_bad: bool,
    was_firing: bool,
    pages: f64,
    firing: f64,
}

impl Seen {
    fn new(setting: &Setting, at: Millis, random: &mut Random) -> Self {
        let watch = Watch::new(setting.hold, random);
        Self { watch, last: at, was_bad: false, was_firing: false, pages: 0.0, firing: 0.0 }
    }

    fn see(&mut self, at: Millis, rule: &Evidence, counts_for: f64) {
        let begun = self.watch.see(self.last, at, self.was_bad);
        if begun.is_some() {
            self.pages += counts_for;
        }
        if self.was_firing || begun.is_some() {
            let from = begun.unwrap_or(self.last).clamp(self.last, at);
            self.firing += (at - from) as f64 * counts_for;
        }
        self.was_firing = self.watch.is_firing(at);
        (self.last, self.was_bad) = (at, rule.is_firing());
    }

    /// Until this instant nothing happened.
    fn idle(&mut self, until: Millis) {
        self.watch.see(self.last, until, false);
        (self.last, self.was_bad, self.was_firing) = (until, false, false);
    }
}

//! What the canaries meet: noise, blips and outages. Scheduled canaries go out at multiples of the interval, and confirmations each minute while
//! there is evidence. A verdict is there a minute after its slot.

use delivery_canary::alerts::simulate::{Cadence, Change, Confirmations, Millis, Random, Rule, Run, Slots};

const MINUTES_OF_A_YEAR: f64 = 525_600.0;
const MINUTE: Millis = 60_000;

/// From the slot of a canary to its verdict, in minutes.
const SETTLES: f64 = 1.0;

/// Before an outage begins, and after it has ended.
const BEFORE: f64 = 180.0;
const AFTER: f64 = 180.0;

/// How long a page is kept after the evidence fell below the bound, in minutes.
pub const KEPT: [f64; 5] = [0.0, 5.0, 10.0, 15.0, 30.0];

/// When canaries go out, and what happens to them while nothing is wrong.
#[derive(Clone, Copy)]
pub struct World {
    /// Minutes between scheduled canaries.
    pub interval: i64,
    /// Whether confirmations are sent.
    pub confirms: bool,
    /// The share that fails.
    pub p0: f64,
    /// The share of stray failures that another follows at once.
    pub followed: f64,
}

/// Blips: for some minutes everything fails. They begin at any moment, between canaries too.
#[derive(Clone, Copy)]
pub struct Blips {
    pub a_year: f64,
    pub minutes: f64,
}

fn minutes(slot: Millis) -> f64 {
    slot as f64 / MINUTE as f64
}

impl World {
    fn cadence(&self) -> Cadence {
        let confirmations = Confirmations { every: MINUTE, max: self.interval, tolerance: 0 };
        Cadence {
            slots: Slots::every(self.interval * MINUTE),
            confirmations: self.confirms.then_some(confirmations),
            good_after: MINUTE,
            bad_after: MINUTE,
        }
    }

    /// The probability that a stray failure comes after a canary that was good, so that `p0` of all fail.
    fn stray(&self) -> f64 {
        self.p0 * (1.0 - self.followed) / (1.0 - self.p0)
    }

    /// How often the rule begins to page in so many years without an outage.
    pub fn false_pages(&self, rule: impl Rule, random: &mut Random, years: f64, blips: Blips) -> u64 {
        let cadence = self.cadence();
        let end = (years * MINUTES_OF_A_YEAR) as i64 * MINUTE;
        let mut blip = Times { blips, from: 0.0 };
        blip.next(random);
        let mut run = Run::new(&cadence, rule, 0);
        let (mut pages, mut was_stray) = (Pages::default(), false);
        loop {
            let mut canary = run.next(&mut |_, rule| pages.see(rule));
            if canary.slot >= end {
                break;
            }
            if !run.rule().is_open() && !was_stray {
                // Nothing happens until something fails, so time is skipped up to there.
                let next = run.next_index();
                let stray = next + random.misses(self.stray());
                let scheduled = (blip.from.min(1e15) / self.interval as f64).ceil() as i64;
                let index = stray.min(scheduled.max(next));
                run.skip_to(index);
                canary = run.next(&mut |_, _| ());
                if canary.slot >= end {
                    break;
                }
                pages.was_firing = false;
                let is_in_blip = blip.is_at(minutes(canary.slot), random);
                was_stray = index == stray;
                if !is_in_blip && !was_stray {
                    // It passed between two canaries.
                    continue;
                }
                run.send(canary, true);
            } else {
                let is_in_blip = blip.is_at(minutes(canary.slot), random);
                was_stray = random.happens(if was_stray { self.followed.max(self.p0) } else { self.stray() });
                run.send(canary, is_in_blip || was_stray);
            }
        }
        run.finish(&mut |_, rule| pages.see(rule));
        pages.begun
    }

    /// An outage in which this share fails: what the rule does in it and after it.
    pub fn outage(&self, rule: impl Rule, random: &mut Random, share: f64, lasts: f64) -> Outcome {
        let cadence = self.cadence();
        let begin = BEFORE + random.share() * self.interval as f64;
        let mut seen = Seen {
            begin,
            recovery: begin + lasts,
            was_firing: false,
            fired: f64::NEG_INFINITY,
            outcome: Outcome::default(),
        };
        let end = seen.recovery + AFTER;
        let mut run = Run::new(&cadence, rule, 0);
        loop {
            let canary = run.next(&mut |change, rule| seen.see(change, rule));
            if minutes(canary.slot) >= end {
                break;
            }
            run.send(canary, random.happens(if seen.is_out(minutes(canary.slot)) { share } else { self.p0 }));
        }
        run.finish(&mut |change, rule| seen.see(change, rule));
        seen.outcome
    }
}

/// How often a rule began to page.
#[derive(Default)]
struct Pages {
    begun: u64,
    was_firing: bool,
}

impl Pages {
    fn see(&mut self, rule: &impl Rule) {
        let is_firing = rule.is_firing();
        self.begun += u64::from(is_firing && !self.was_firing);
        self.was_firing = is_firing;
    }
}

/// An outage, and what a rule did in it so far.
struct Seen {
    begin: f64,
    recovery: f64,
    was_firing: bool,
    /// When it was last firing.
    fired: f64,
    outcome: Outcome,
}

impl Seen {
    fn is_out(&self, minute: f64) -> bool {
        self.begin <= minute && minute < self.recovery
    }

    fn see(&mut self, change: Change, rule: &impl Rule) {
        let at = minutes(change.slot);
        let is_firing = rule.is_firing();
        let begins = is_firing && !self.was_firing;
        let outcome = &mut self.outcome;
        if at >= self.recovery {
            outcome.again |= begins && outcome.found.is_some();
            if self.was_firing && !is_firing {
                outcome.resolved.get_or_insert(at + SETTLES - self.recovery);
            }
        } else if at >= self.begin {
            let ended = self.fired;
            for (pages, kept) in outcome.pages.iter_mut().zip(KEPT) {
                *pages += u32::from(begins && at - ended > kept);
            }
            if is_firing {
                outcome.found.get_or_insert(at + SETTLES - self.begin);
            }
        }
        if is_firing || self.was_firing {
            self.fired = at;
        }
        self.was_firing = is_firing;
    }
}

/// What a rule did in one outage, in minutes.
#[derive(Default)]
pub struct Outcome {
    /// From its beginning to the page.
    pub found: Option<f64>,
    /// How often it began to page in it, by how long a page is kept.
    pub pages: [u32; KEPT.len()],
    /// From the recovery to the end of the page.
    pub resolved: Option<f64>,
    /// Whether it paged again, after the recovery.
    pub again: bool,
}

/// The blips of one run, one after the other, in minutes.
struct Times {
    blips: Blips,
    from: f64,
}

impl Times {
    fn next(&mut self, random: &mut Random) {
        self.from += if self.blips.minutes > 0.0 {
            self.blips.minutes + random.wait(MINUTES_OF_A_YEAR / self.blips.a_year)
        } else {
            f64::INFINITY
        };
    }

    fn is_at(&mut self, minute: f64, random: &mut Random) -> bool {
        while minute >= self.from + self.blips.minutes {
            self.next(random);
        }
        minute >= self.from
    }
}

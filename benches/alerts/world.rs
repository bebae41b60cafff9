//! What the canaries meet: noise, blips and outages, by the minute. Canaries that have a say are scheduled ones, at multiples of the
//! interval, and confirmations, each minute while there is evidence. A verdict is there a minute after its slot.

use crate::{random::Random, rules::Rule};

const MINUTES_OF_A_YEAR: f64 = 525_600.0;

/// From the slot of a canary to its verdict, in minutes.
pub const SETTLES: f64 = 1.0;

/// Before an outage begins, and after it has ended.
const BEFORE: i64 = 180;
const AFTER: f64 = 180.0;

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

impl World {
    fn next(&self, rule: &impl Rule, minute: i64) -> i64 {
        if self.confirms && rule.wants_confirmations() {
            minute + 1
        } else {
            (minute.div_euclid(self.interval) + 1) * self.interval
        }
    }

    /// The probability that a stray failure comes after a canary that was good, so that `p0` of all fail.
    fn stray(&self) -> f64 {
        self.p0 * (1.0 - self.followed) / (1.0 - self.p0)
    }

    /// How often the rule begins to page in so many years without an outage.
    pub fn false_pages(&self, rule: &mut impl Rule, random: &mut Random, years: f64, blips: Blips) -> u64 {
        let end = (years * MINUTES_OF_A_YEAR) as i64;
        let mut blip = Times { blips, from: 0.0 };
        blip.next(random);
        let (mut minute, mut pages) = (0, 0);
        let (mut was_firing, mut was_stray) = (false, false);
        while minute < end {
            if !rule.is_open() && !was_stray {
                // Nothing happens until something fails, so time is skipped up to there.
                let stray = minute + self.interval * random.misses(self.stray());
                let scheduled = (blip.from.min(1e15) / self.interval as f64).ceil() as i64 * self.interval;
                minute = stray.min(scheduled.max(minute));
                if minute >= end {
                    break;
                }
                was_firing = false;
                let is_in_blip = blip.is_at(minute, random);
                was_stray = minute == stray;
                if !is_in_blip && !was_stray {
                    // It passed between two canaries.
                    continue;
                }
                rule.observe(minute, true);
            } else {
                let is_in_blip = blip.is_at(minute, random);
                was_stray = random.happens(if was_stray { self.followed.max(self.p0) } else { self.stray() });
                rule.observe(minute, is_in_blip || was_stray);
            }
            let is_firing = rule.is_firing();
            pages += u64::from(is_firing && !was_firing);
            was_firing = is_firing;
            minute = self.next(rule, minute);
        }
        pages
    }

    /// An outage in which this share fails: what the rule does in it and after it.
    pub fn outage(&self, rule: &mut impl Rule, random: &mut Random, share: f64, minutes: f64) -> Outcome {
        let begin = BEFORE as f64 + random.share() * self.interval as f64;
        let recovery = begin + minutes;
        let mut outcome = Outcome::default();
        let (mut minute, mut was_firing) = (0, false);
        while (minute as f64) < recovery + AFTER {
            let at = minute as f64;
            let is_out = begin <= at && at < recovery;
            rule.observe(minute, random.happens(if is_out { share } else { self.p0 }));
            let is_firing = rule.is_firing();
            if is_out && is_firing {
                outcome.found.get_or_insert(at + SETTLES - begin);
            }
            if at >= recovery {
                let has_begun = is_firing && !was_firing;
                outcome.again |= has_begun && outcome.found.is_some();
                if was_firing && !is_firing {
                    outcome.resolved.get_or_insert(at + SETTLES - recovery);
                }
            } else {
                outcome.pages += u32::from(is_firing && !was_firing && is_out);
            }
            was_firing = is_firing;
            minute = self.next(rule, minute);
        }
        outcome
    }
}

/// What a rule did in one outage, in minutes.
#[derive(Default)]
pub struct Outcome {
    /// From its beginning to the page.
    pub found: Option<f64>,
    /// How often it began to page in it.
    pub pages: u32,
    /// From the recovery to the end of the page.
    pub resolved: Option<f64>,
    /// Whether it paged again, after the recovery.
    pub again: bool,
}

/// The blips of one run, one after the other.
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

    fn is_at(&mut self, minute: i64, random: &mut Random) -> bool {
        while minute as f64 >= self.from + self.blips.minutes {
            self.next(random);
        }
        minute as f64 >= self.from
    }
}

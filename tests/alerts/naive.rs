//! Simulations as plain as can be, to hold `alerts explain` against: second by second, event by event, everything counted anew each time. They share
//! the failure evidence and the schedules with it, and nothing else.

use chrono::{DateTime, TimeDelta, Utc};
use delivery_canary::{
    config::Route,
    domain::{
        failure_evidence::{Stream, Weights},
        schedule::Schedule,
    },
};
use std::collections::BTreeSet;

/// Other random numbers than the product's: a 64-bit xorshift.
pub struct Random(pub u64);

impl Random {
    fn share(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 12) as f64 / (1u64 << 52) as f64
    }

    fn below(&mut self, below: i64) -> i64 {
        (self.share() * below as f64) as i64
    }

    fn happens(&mut self, probability: f64) -> bool {
        self.share() < probability
    }

    fn wait(&mut self, mean: f64) -> f64 {
        -(1.0 - self.share()).ln() * mean
    }
}

/// The canaries of a route.
pub struct Canaries {
    schedule: Schedule,
    weights: Weights,
    every: i64,
    max: i64,
    tolerance: i64,
    known_after: i64,
    places: usize,
    needed: usize,
}

/// A canary: when its slot is, whether it failed, and when that is known.
type Sent = (i64, bool, i64);

const FIRST: i64 = 1_772_323_200;
const YEAR: i64 = 364 * 86_400;

impl Canaries {
    pub fn new(route: &Route, places: usize, needed: usize) -> Self {
        let schedule = route.schedule.schedule().expect("a schedule");
        let evidence = &route.evidence;
        let tolerance = (schedule.shortest_gap() / 2).as_secs().min(30) as i64;
        Self {
            schedule,
            weights: Weights::new(
                route.healthy_failure_rate(),
                evidence.p1,
                evidence.bound,
                evidence.sustain.delta(),
            ),
            every: route.confirmations.every.get().as_secs() as i64,
            max: route.confirmations.max.into(),
            tolerance,
            known_after: (route.deadline.get() + route.settle.get()).as_secs() as i64 + 1,
            places,
            needed,
        }
    }

    fn next(&self, after: i64) -> i64 {
        let after = DateTime::<Utc>::from_timestamp(after, 0).expect("an instant");
        self.schedule.next_after(after).expect("a slot").timestamp()
    }

    fn fold(&self, sent: &[Sent], now: i64) -> Stream {
        let mut stream = Stream::default();
        for (slot, failed, _) in sent.iter().filter(|(.., known)| *known <= now) {
            stream.observe(&self.weights, DateTime::UNIX_EPOCH + TimeDelta::seconds(*slot), *failed);
        }
        stream
    }

    /// From the beginning of an outage until the page is sent, in seconds.
    pub fn outage(&self, share: f64, random: &mut Random) -> f64 {
        let begin = FIRST + random.below(YEAR);
        let (scraped, judged) = (random.below(30), random.below(30));
        let mut sent: Vec<Vec<Sent>> = vec![Vec::new(); self.places];
        let mut streams = vec![Stream::default(); self.places];
        // The seconds at which something becomes known of a place.
        let mut news = vec![BTreeSet::new(); self.places];
        let mut parent = None;
        let mut next = self.next(begin - 1);
        let mut seen = false;
        let mut held: Option<i64> = None;
        for now in begin.. {
            for ((place, stream), news) in sent.iter().zip(&mut streams).zip(&mut news) {
                if news.remove(&now) {
                    *stream = self.fold(place, now);
                }
            }
            if now == next {
                for (place, news) in sent.iter_mut().zip(&mut news) {
                    news.insert(self.send(place, now, now, random.happens(share)));
                }
                (parent, next) = (Some(now), self.next(now));
            } else if let Some(parent) = parent {
                let n = (now - parent) / self.every;
                let instant = parent + n * self.every;
                let is_due = n >= 1 && n <= self.max && instant < next && now - instant <= self.tolerance;
                for ((place, stream), news) in sent.iter_mut().zip(&streams).zip(&mut news) {
                    let is_new = place.last().is_none_or(|(slot, ..)| *slot < instant);
                    if is_due && is_new && stream.value > 0.0 {
                        news.insert(self.send(place, instant, now, random.happens(share)));
                    }
                }
            }
            if now % 30 == scraped {
                let firing = streams.iter().filter(|stream| stream.is_sustained(&self.weights)).count();
                seen = firing >= self.needed;
            }
            if now % 30 == judged {
                held = if seen { held.or(Some(now)) } else { None };
                if held.is_some_and(|since| now - since >= 60) {
                    return (now + 45 - begin) as f64;
                }
            }
        }
        unreachable!("time goes on")
    }

    /// Gives when it will be known.
    fn send(&self, place: &mut Vec<Sent>, slot: i64, now: i64, failed: bool) -> i64 {
        let known = now + if failed { self.known_after } else { 1 };
        place.push((slot, failed, known));
        known
    }
}

/// The customers' notifications of a route.
pub struct Ledger {
    pub daily: f64,
    pub budget: f64,
    pub deadline: f64,
    pub refresh: f64,
}

/// A pair of windows.
#[derive(Clone, Copy)]
pub struct Pair {
    pub long: f64,
    pub short: f64,
    pub factor: f64,
}

impl Ledger {
    fn mean_wait(&self) -> f64 {
        86_400.0 / self.daily
    }

    fn healthy(&self) -> f64 {
        self.budget / 2.0
    }

    /// What was due in `[-before, after)`, and whether it is bad.
    fn notifications(&self, before: f64, after: f64, share: f64, random: &mut Random) -> Vec<(f64, bool)> {
        let mut all = Vec::new();
        let mut at = -before + random.wait(self.mean_wait());
        while at < after {
            let is_hit = at >= 0.0 && random.happens(share);
            let bad = random.happens(self.healthy()) || is_hit;
            all.push((at, bad));
            at += random.wait(self.mean_wait());
        }
        all
    }

    /// From the beginning of an outage until a burn of the pair is told, in seconds.
    pub fn burns(&self, pair: Pair, share: f64, random: &mut Random) -> f64 {
        let all = self.notifications(pair.long + 300.0, pair.long + 600.0, share, random);
        let mut bad_before = vec![0usize];
        for (_, bad) in &all {
            bad_before.push(bad_before[bad_before.len() - 1] + usize::from(*bad));
        }
        let index = |at: f64| all.partition_point(|(due, _)| *due < at);
        let minute = random.share() * 60.0;
        let to_the_minute = |at: f64| ((at - minute) / 60.0).floor() * 60.0 + minute;
        let above = |now: f64, window: f64| {
            let until = to_the_minute(now - self.deadline);
            let (from, until) = (index(until - window), index(until));
            let bad = (bad_before[until] - bad_before[from]) as f64;
            until > from && bad / (until - from) as f64 > pair.factor * self.budget
        };
        self.told(60.0, random, |now| above(now, pair.long) && above(now, pair.short))
    }

    /// From the beginning of an outage until a page says that too many are pending past their deadline, in seconds.
    pub fn piles_up(&self, share: f64, random: &mut Random) -> f64 {
        let most = (self.budget * self.daily).max(3.0);
        let mut due = Vec::new();
        let mut at = 0.0;
        while due.len() < most as usize + 2 {
            at += random.wait(self.mean_wait());
            if random.happens(share) {
                due.push(at);
            }
        }
        self.told(600.0, random, |now| {
            due.iter().filter(|due| now - **due > self.deadline).count() as f64 > most
        })
    }

    /// When a rule on what is read each `refresh` and scraped and judged each 30 s is told of, having held for so long.
    fn told(&self, hold: f64, random: &mut Random, holds: impl Fn(f64) -> bool) -> f64 {
        let (read, scraped, judged) =
            (random.share() * self.refresh, random.share() * 30.0, random.share() * 30.0);
        let newest = |at: f64, phase: f64, every: f64| ((at - phase) / every).floor() * every + phase;
        let mut held: Option<f64> = None;
        for n in 0.. {
            let now = judged + f64::from(n) * 30.0;
            let as_of = newest(newest(now, scraped, 30.0), read, self.refresh);
            held = if holds(as_of) { held.or(Some(now)) } else { None };
            if held.is_some_and(|since| now - since >= hold - 1e-6) {
                return now + 45.0;
            }
        }
        unreachable!("time goes on")
    }

    /// How often a year a pair comes to its bound by the healthy rate.
    pub fn for_nothing(&self, pair: Pair, years: f64, random: &mut Random) -> f64 {
        let most = |window: f64| pair.factor * self.budget * self.daily / 86_400.0 * window;
        let end = years * 365.0 * 86_400.0;
        let (mut at, mut bad, mut begun) = (0.0, std::collections::VecDeque::new(), 0u32);
        while at < end {
            at += random.wait(self.mean_wait() / self.healthy());
            let is_at = |bad: &std::collections::VecDeque<f64>, window: f64| {
                bad.iter().rev().take_while(|due| at - **due < window).count() as f64 > most(window)
            };
            let was = is_at(&bad, pair.long) && is_at(&bad, pair.short);
            bad.push_back(at);
            begun += u32::from(!was && is_at(&bad, pair.long) && is_at(&bad, pair.short));
            while bad.front().is_some_and(|due| at - due > pair.long) {
                bad.pop_front();
            }
        }
        f64::from(begun) / years
    }

    /// How often a year so many bad ones come to lie within a window.
    pub fn repeated(&self, least: usize, window: f64, years: f64, random: &mut Random) -> f64 {
        let end = years * 365.0 * 86_400.0;
        let (mut at, mut bad, mut begun) = (0.0, Vec::<f64>::new(), 0u32);
        while at < end {
            at += random.wait(self.mean_wait() / self.healthy());
            bad.retain(|due| at - due < window);
            bad.push(at);
            begun += u32::from(bad.len() == least);
        }
        f64::from(begun) / years
    }
}

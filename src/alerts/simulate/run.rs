//! One place of observation: canaries go out by schedule and to confirm, and become known after their time.
//!
//! It follows the scheduler: a confirmation's instant is its parent's slot plus n intervals, before the next scheduled slot, while the rule wishes
//! for it. A route's offset moves all of it alike, so nothing that is counted from any moment depends on it; and its hourly cap holds nothing
//! back, since a configuration whose cap is below what the route can need is refused. Failures become known later than successes: so canaries
//! become known out of order, and are taken in the order of their slots all the same, as the monitor does.

use super::{Millis, Rule, Slots};
use std::collections::VecDeque;

/// When canaries go out, and when it is known what became of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cadence {
    /// The scheduled ones.
    pub slots: Slots,
    /// Those that confirm, if any.
    pub confirmations: Option<Confirmations>,
    /// From going out until it is known that it was good.
    pub good_after: Millis,
    /// From going out until it is known that it failed.
    pub bad_after: Millis,
}

/// Canaries that are sent while the rule wishes for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Confirmations {
    /// Their interval, above zero.
    pub every: Millis,
    /// Most of them after one scheduled canary.
    pub max: i64,
    /// How late one may still go out.
    pub tolerance: Millis,
}

/// A canary that goes out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Canary {
    /// Its slot, or a confirmation's instant.
    pub slot: Millis,
    /// When it goes out.
    pub sent: Millis,
    /// Whether it was scheduled.
    pub is_scheduled: bool,
}

/// It became known what became of a canary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change {
    /// When.
    pub at: Millis,
    /// Its slot.
    pub slot: Millis,
}

#[derive(Clone, Copy, Debug)]
struct Sent {
    slot: Millis,
    known: Millis,
    failed: bool,
    is_known: bool,
}

/// The canaries of one place of observation, and what the rule makes of those that are known.
#[derive(Clone, Debug)]
pub struct Run<'a, R> {
    cadence: &'a Cadence,
    clock: Millis,
    /// The index of the next scheduled slot.
    next: i64,
    /// The newest scheduled slot that was served.
    parent: Option<Millis>,
    /// The newest confirmation.
    confirmed: Millis,
    /// What the rule makes of all before the first that is not known.
    settled: R,
    /// What it makes of all that are known, where that differs.
    current: Option<R>,
    /// From the first that is not known on.
    tail: VecDeque<Sent>,
}

impl<'a, R: Rule> Run<'a, R> {
    /// Begins with the scheduled slot of this index.
    pub fn new(cadence: &'a Cadence, rule: R, first: i64) -> Self {
        let clock = cadence.slots.at(first);
        Self {
            cadence,
            clock,
            next: first,
            parent: None,
            confirmed: Millis::MIN,
            settled: rule,
            current: None,
            tail: VecDeque::new(),
        }
    }

    /// The rule, as it stands by what is known.
    pub fn rule(&self) -> &R {
        self.current.as_ref().unwrap_or(&self.settled)
    }

    /// Whether nothing is under way that failed.
    pub fn is_quiet(&self) -> bool {
        !self.tail.iter().any(|sent| sent.failed)
    }

    /// The index of the next scheduled slot.
    pub const fn next_index(&self) -> i64 {
        self.next
    }

    /// Goes on with the scheduled slot of this index, as if all before it had been good. Nothing may be open or under way that failed.
    pub fn skip_to(&mut self, index: i64) {
        self.tail.clear();
        self.current = None;
        self.next = index;
    }

    /// The canary that goes out next; [`Run::send`] sends it. Until then, what becomes known is told.
    pub fn next(&mut self, told: &mut impl FnMut(Change, &R)) -> Canary {
        loop {
            let canary = self.planned();
            if !self.learn_one(canary.sent, told) {
                return canary;
            }
        }
    }

    /// As [`Run::next`], if it goes out by this instant. If not, all that is known by then is told.
    pub fn next_by(&mut self, until: Millis, told: &mut impl FnMut(Change, &R)) -> Option<Canary> {
        loop {
            let canary = self.planned();
            if !self.learn_one(canary.sent.min(until), told) {
                return (canary.sent <= until).then_some(canary);
            }
        }
    }

    /// Tells what becomes of all that are under way.
    pub fn finish(&mut self, told: &mut impl FnMut(Change, &R)) {
        while self.learn_one(Millis::MAX, told) {}
    }

    /// Sends the canary that is next.
    pub fn send(&mut self, canary: Canary, failed: bool) {
        self.clock = canary.sent;
        if canary.is_scheduled {
            self.next += 1;
            self.parent = Some(canary.slot);
        } else {
            self.confirmed = canary.slot;
        }
        let after = if failed { self.cadence.bad_after } else { self.cadence.good_after };
        self.tail.push_back(Sent { slot: canary.slot, known: canary.sent + after, failed, is_known: false });
    }

    fn planned(&self) -> Canary {
        let slot = self.cadence.slots.at(self.next);
        match self.confirmation() {
            Some(confirmation) if confirmation.sent < slot => confirmation,
            _ => Canary { slot, sent: slot, is_scheduled: true },
        }
    }

    /// The confirmation that is due, or the next one.
    fn confirmation(&self) -> Option<Canary> {
        let Confirmations { every, max, tolerance } = self.cadence.confirmations?;
        let parent = self.parent?;
        if !self.rule().wants_confirmations() {
            return None;
        }
        let elapsed = (self.clock - parent).max(0);
        let newest = elapsed / every;
        let instant = parent + newest * every;
        let is_due = newest > 0 && elapsed - newest * every <= tolerance && instant > self.confirmed;
        let (n, slot, sent) = if is_due {
            (newest, instant, self.clock)
        } else {
            (newest + 1, instant + every, instant + every)
        };
        (n <= max).then_some(Canary { slot, sent, is_scheduled: false })
    }

    /// Learns what becomes known first, if that is by this instant.
    fn learn_one(&mut self, until: Millis, told: &mut impl FnMut(Change, &R)) -> bool {
        let open = self.tail.iter().enumerate().filter(|(_, sent)| !sent.is_known);
        let first = open.min_by_key(|(place, sent)| (sent.known, *place)).map(|(place, sent)| (place, *sent));
        let Some((place, Sent { slot, known, .. })) = first.filter(|(_, sent)| sent.known <= until) else {
            return false;
        };
        self.clock = self.clock.max(known);
        self.tail[place].is_known = true;
        while let Some(sent) = self.tail.front().copied().filter(|sent| sent.is_known) {
            self.settled.observe(sent.slot, sent.failed);
            self.tail.pop_front();
        }
        let mut current = None;
        for sent in self.tail.iter().filter(|sent| sent.is_known) {
            current.get_or_insert_with(|| self.settled.clone()).observe(sent.slot, sent.failed);
        }
        self.current = current;
        told(Change { at: known, slot }, self.rule());
        true
    }
}

#[cfg(test)]
mod tests {
    use super::{super::Evidence, *};
    use crate::domain::failure_evidence::Weights;
    use chrono::TimeDelta;
    use proptest::prelude::*;

    const MINUTE: Millis = 60_000;

    fn weights() -> Weights {
        Weights::new(0.0005, 0.3, 5.0, TimeDelta::minutes(5))
    }

    fn cadence(interval: Millis, max: i64) -> Cadence {
        let confirmations = Confirmations { every: MINUTE, max, tolerance: 30_000 };
        Cadence {
            slots: Slots::every(interval),
            confirmations: Some(confirmations),
            good_after: 1_000,
            bad_after: 121_000,
        }
    }

    /// The minutes at which canaries go out when all fail.
    fn all_fail(cadence: &Cadence, until: Millis) -> Vec<(i64, bool)> {
        let mut run = Run::new(cadence, Evidence::new(weights()), 0);
        let mut sent = Vec::new();
        while let Some(canary) = run.next_by(until, &mut |_, _| ()) {
            sent.push((canary.slot / 1_000, canary.is_scheduled));
            run.send(canary, true);
        }
        sent
    }

    #[test]
    fn confirmations_follow_the_first_failure_that_is_known_and_end_before_the_next_slot() {
        let sent = all_fail(&cadence(5 * MINUTE, 14), 7 * MINUTE);
        let minutes: Vec<_> = sent.iter().map(|(second, scheduled)| (second / 60, *scheduled)).collect();
        // The first is known to have failed at 121 s: the instant of two minutes has just passed, and is still fresh.
        assert_eq!(
            minutes,
            [(0, true), (2, false), (3, false), (4, false), (5, true), (6, false), (7, false)]
        );
        let sent = all_fail(&cadence(5 * MINUTE, 3), 9 * MINUTE);
        let minutes: Vec<_> = sent.iter().map(|(second, _)| second / 60).collect();
        assert_eq!(minutes, [0, 2, 3, 5, 6, 7, 8], "three of them at the most: those of 1, 2 and 3 minutes");
    }

    #[test]
    fn what_is_known_out_of_order_is_taken_in_order() {
        let cadence = cadence(MINUTE, 0);
        let mut run = Run::new(&cadence, Evidence::new(weights()), 0);
        let mut seen = Vec::new();
        for failed in [true, false, false] {
            let canary =
                run.next(&mut |change, rule: &Evidence| seen.push((change.slot / MINUTE, rule.is_open())));
            run.send(canary, failed);
        }
        run.finish(&mut |change, rule| seen.push((change.slot / MINUTE, rule.is_open())));
        assert_eq!(seen, [(1, false), (0, true), (2, true)]);
        let mut in_order = Evidence::new(weights());
        [true, false, false].iter().zip(0..).for_each(|(failed, n)| in_order.observe(n * MINUTE, *failed));
        assert_eq!(run.rule().stream, in_order.stream);
    }

    proptest! {
        /// However they become known, in the end the rule has seen all in the order of their slots, which only grow.
        #[test]
        fn in_the_end_all_are_folded_in_order(fails in prop::collection::vec(any::<bool>(), 1..80), interval in 1i64..20, bad in 0i64..600, max in 0i64..20) {
            let cadence = Cadence { bad_after: bad * 1_000, ..cadence(interval * MINUTE, max) };
            let mut run = Run::new(&cadence, Evidence::new(weights()), 3);
            let mut in_order = Evidence::new(weights());
            let mut newest = i64::MIN;
            for failed in fails {
                let canary = run.next(&mut |_, _| ());
                prop_assert!(canary.slot > newest && canary.sent >= canary.slot && canary.sent - canary.slot <= 30_000);
                newest = canary.slot;
                in_order.observe(canary.slot, failed);
                run.send(canary, failed);
            }
            run.finish(&mut |_, _| ());
            prop_assert_eq!(run.rule().stream, in_order.stream);
        }
    }
}

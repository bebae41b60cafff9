//! The agenda: when each stream of slots is to be looked at next, so that a wake costs what is due and not what is configured.

use crate::domain::{canary::CanaryKind, route::RouteName};
use chrono::{DateTime, Utc};
use std::{cmp::Reverse, collections::BinaryHeap};

/// The slots of one kind on one route.
pub type StreamKey = (RouteName, CanaryKind);

/// What is to be looked at, the earliest first. Whoever takes a stream puts it back, or it is looked at no more.
#[derive(Debug, Default)]
pub struct Agenda(BinaryHeap<Reverse<(DateTime<Utc>, StreamKey)>>);

impl Agenda {
    /// Looks at a stream at an instant.
    pub fn put(&mut self, at: DateTime<Utc>, stream: StreamKey) {
        self.0.push(Reverse((at, stream)));
    }

    /// The earliest instant.
    pub fn earliest(&self) -> Option<DateTime<Utc>> {
        self.0.peek().map(|Reverse((at, _))| *at)
    }

    /// Takes a stream whose instant has come.
    pub fn take_due(&mut self, now: DateTime<Utc>) -> Option<StreamKey> {
        if self.earliest()? > now {
            return None;
        }
        self.0.pop().map(|Reverse((_, stream))| stream)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::route::Channel;
    use proptest::prelude::*;

    fn at(seconds: i64) -> DateTime<Utc> {
        DateTime::from_timestamp(seconds, 0).expect("an instant")
    }

    proptest! {
        #[test]
        fn takes_all_that_is_due_and_nothing_else(
            instants in prop::collection::vec(0..100i64, 0..40),
            now in 0..100i64,
        ) {
            let mut agenda = Agenda::default();
            let key = |n: usize| (RouteName::new(Channel::Webhook, &n.to_string()), CanaryKind::Scheduled);
            for (n, instant) in instants.iter().enumerate() {
                agenda.put(at(*instant), key(n));
            }
            let mut taken: Vec<StreamKey> = std::iter::from_fn(|| agenda.take_due(at(now))).collect();
            taken.sort();
            let due = instants.iter().enumerate().filter(|(_, instant)| **instant <= now);
            let mut expected: Vec<StreamKey> = due.map(|(n, _)| key(n)).collect();
            expected.sort();
            prop_assert_eq!(taken, expected);
            let left = instants.iter().copied().filter(|instant| *instant > now).min();
            prop_assert_eq!(agenda.earliest(), left.map(at));
        }
    }
}

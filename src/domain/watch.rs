//! Whether something could have arrived at our own sink all through a span of time: what messages to ourselves prove, and what not.
//!
//! Why it is asked, and how the bound was chosen: docs/adr/0008-our-own-sight.md.

use super::route::Location;
use chrono::{DateTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::{fmt, time::Duration};
use uuid::Uuid;

/// A way to a receiver of ours: from one place of observation, by one public address. A message to ourselves proves the way that it took and
/// no other: another place may have a name, a certificate or an ingress of its own, and so may the same place after its configuration was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Way(Uuid);

impl Way {
    /// The way from this place to this receiver: the first 16 bytes of the SHA-256 of the three, each ended by a line feed.
    pub fn new(location: &Location, receiver: &str, public_url: &str) -> Self {
        let digest = Sha256::digest(format!("{location}\n{receiver}\n{public_url}\n").as_bytes());
        let mut bytes = [0; 16];
        bytes.copy_from_slice(&digest[..16]);
        Self(Uuid::from_bytes(bytes))
    }

    /// The way of this number.
    pub const fn from_uuid(uuid: Uuid) -> Self {
        Self(uuid)
    }

    /// Its number.
    pub const fn uuid(self) -> Uuid {
        self.0
    }
}

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.simple().fmt(f)
    }
}

/// What a mark in the record of a way says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MarkKind {
    /// A message to ourselves arrived.
    Proof,
    /// A listener of ours began, or began again after its process had not run: nothing is known of the time before it.
    Opened,
}

/// A mark in the record of a way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// When.
    pub at: DateTime<Utc>,
    /// What happened then.
    pub kind: MarkKind,
}

/// The record of one way over some span, and how to read it.
#[derive(Clone, Debug, PartialEq)]
pub struct Watch {
    /// The marks, by time.
    pub marks: Vec<Mark>,
    /// The longest time between two of them in which nothing could be missed.
    pub bound: TimeDelta,
}

/// How long marks are kept after the newest one. A verdict that is due later than that after its first submission could be proven by none of
/// them, so no configuration has one.
pub const KEPT: TimeDelta = TimeDelta::days(2);

/// The longest gap that still proves an open sink, where a message to ourselves is sent so often: three of its intervals, at least
/// five seconds. One message that is lost is no outage, and a busy machine is no outage either.
pub fn bound(every: Duration) -> TimeDelta {
    TimeDelta::from_std(every.saturating_mul(3)).unwrap_or(TimeDelta::MAX).max(TimeDelta::seconds(5))
}

impl Watch {
    /// The first proof within [from, until].
    pub fn proof(&self, from: DateTime<Utc>, until: DateTime<Utc>) -> Option<DateTime<Utc>> {
        let proofs = self.marks.iter().filter(|mark| mark.kind == MarkKind::Proof).map(|mark| mark.at);
        proofs.filter(|at| (from..=until).contains(at)).min()
    }

    /// Whether something could have arrived all through [from, until]: marks follow each other within the bound, from the last one at or
    /// before `from` to the first proof at or after `until`, and no listener was opened in between.
    ///
    /// The gap in which `from` lies is judged by its whole length: what had been down until just before the first proof was down at `from`.
    pub fn covers(&self, from: DateTime<Utc>, until: DateTime<Utc>) -> bool {
        let Some(mut last) = self.marks.iter().map(|mark| mark.at).filter(|at| *at <= from).max() else {
            return false;
        };
        for mark in self.marks.iter().filter(|mark| mark.at > from) {
            if mark.kind == MarkKind::Opened || mark.at - last > self.bound {
                return false;
            }
            last = mark.at;
            if last >= until {
                return true;
            }
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn each_place_receiver_and_address_has_a_way_of_its_own() {
        let way = |location: &str, receiver, url| Way::new(&Location::from_text(location), receiver, url);
        let one = way("eu", "sink", "https://a.example/r");
        assert_eq!(one, way("eu", "sink", "https://a.example/r"));
        for other in [
            way("us", "sink", "https://a.example/r"),
            way("eu", "other", "https://a.example/r"),
            way("eu", "sink", "https://b.example/r"),
        ] {
            assert_ne!(one, other);
        }
        assert_eq!(Way::from_uuid(one.uuid()), one);
    }

    fn at(seconds: i64) -> DateTime<Utc> {
        DateTime::from_timestamp(1_790_000_000 + seconds, 0).expect("an instant")
    }

    /// Proofs at these seconds, and listeners that were opened at those; a gap may be 45 seconds long.
    fn watch(proofs: &[i64], opened: &[i64]) -> Watch {
        let mark = |kind| move |second: &i64| Mark { at: at(*second), kind };
        let proofs = proofs.iter().map(mark(MarkKind::Proof));
        let mut marks: Vec<Mark> = proofs.chain(opened.iter().map(mark(MarkKind::Opened))).collect();
        marks.sort_by_key(|mark| mark.at);
        Watch { marks, bound: bound(Duration::from_secs(15)) }
    }

    #[test]
    fn a_span_is_covered_only_by_proofs_without_a_gap_in_it() {
        let cases: [(&str, &[i64], &[i64], bool); 12] = [
            ("every quarter of a minute", &[-5, 10, 25, 40, 55, 70], &[], true),
            ("one was lost", &[-5, 10, 40, 70], &[], true),
            ("three were lost", &[-5, 10, 56, 70], &[], false),
            ("one was lost before its beginning", &[-20, 10, 25, 40, 55, 70], &[], true),
            ("it was down until just after its beginning", &[-40, 10, 25, 40, 55, 70], &[], false),
            ("none after its end", &[-5, 10, 25, 40, 55], &[], false),
            ("none at all", &[], &[], false),
            ("the last gap touches the end", &[-5, 10, 25, 71], &[], false),
            ("a listener was opened within", &[-5, 10, 25, 40, 55, 70], &[30], false),
            ("a listener was opened in the gap at the end", &[-5, 10, 25, 40, 55, 70], &[65], false),
            ("a listener was opened before", &[10, 25, 40, 55, 70], &[0], true),
            ("a listener was opened after", &[-5, 10, 25, 40, 55, 70, 90], &[80], true),
        ];
        for (what, proofs, opened, expected) in cases {
            assert_eq!(watch(proofs, opened).covers(at(0), at(60)), expected, "{what}");
        }
    }

    #[test]
    fn the_bound_follows_the_interval_down_to_five_seconds() {
        assert_eq!(bound(Duration::from_secs(15)), TimeDelta::seconds(45));
        assert_eq!(bound(Duration::from_millis(500)), TimeDelta::seconds(5));
        assert_eq!(bound(Duration::MAX), TimeDelta::MAX);
    }

    #[test]
    fn what_opened_is_no_proof() {
        let watch = watch(&[10, 70], &[20]);
        assert_eq!(watch.proof(at(15), at(60)), None);
        assert_eq!(watch.proof(at(15), at(70)), Some(at(70)));
    }

    proptest! {
        #[test]
        fn without_proofs_for_longer_than_the_bound_nothing_is_covered(
            proofs in prop::collection::btree_set(0i64..600, 0..40),
            from in 0i64..500,
            length in 1i64..100,
        ) {
            let proofs: Vec<i64> = proofs.into_iter().collect();
            let until = from + length;
            let covered = watch(&proofs, &[]).covers(at(from), at(until));
            // Second by second: each one lies between two proofs that are within the bound of each other.
            let seen = |second: i64| {
                let Some(before) = proofs.iter().copied().filter(|p| *p <= second).max() else { return false };
                let after = proofs.iter().copied().filter(|p| *p > second || (*p == until && second == until)).min();
                after.is_some_and(|after| after - before <= 45)
            };
            prop_assert_eq!(covered, (from..until).all(seen));
        }
    }
}

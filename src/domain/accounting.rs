//! Accounting: of which dispositions the accepted are made up, and how far two such divisions are apart.

use super::flow::{
    key::UnitKey,
    rows::{Standing, UnitId},
};

/// The places that accepted notifications are divided over. Each is in exactly one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Place {
    /// Delivered.
    Delivered,
    /// Rejected for good, because of the recipient.
    RejectedRecipient,
    /// Rejected for good, for a reason of the service's own.
    RejectedService,
    /// Policy kept it back.
    Suppressed,
    /// Pending, in whatever state.
    Pending,
}

impl Place {
    /// All places.
    pub const ALL: [Self; 5] =
        [Self::Delivered, Self::RejectedRecipient, Self::RejectedService, Self::Suppressed, Self::Pending];

    /// Those that expect no further attempt.
    pub const TERMINAL: [Self; 4] =
        [Self::Delivered, Self::RejectedRecipient, Self::RejectedService, Self::Suppressed];

    /// The word for it in answers.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Delivered => "delivered",
            Self::RejectedRecipient => "rejected_recipient",
            Self::RejectedService => "rejected_service",
            Self::Suppressed => "suppressed",
            Self::Pending => "pending",
        }
    }
}

impl From<Standing> for Place {
    fn from(standing: Standing) -> Self {
        match standing {
            Standing::Pending(_) => Self::Pending,
            Standing::Delivered => Self::Delivered,
            Standing::RejectedRecipient => Self::RejectedRecipient,
            Standing::RejectedService => Self::RejectedService,
            Standing::Suppressed => Self::Suppressed,
        }
    }
}

/// The accepted of one route and interval of due times, divided.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Partition {
    /// How many are in each place, in the order of [`Place::ALL`].
    pub counts: [i64; 5],
    /// The wrapping sum of the fingerprints of the units in each place. All zero where only counts are known.
    pub prints: [u64; 5],
}

impl Partition {
    /// How many are in this place.
    pub const fn count(&self, place: Place) -> i64 {
        self.counts[place as usize]
    }

    /// The accepted: the sum over all places.
    pub fn accepted(&self) -> i64 {
        self.counts.iter().sum()
    }

    /// Adds counted notifications that are not known one by one.
    pub const fn add_count(&mut self, standing_in: Place, count: i64) {
        self.counts[standing_in as usize] += count;
    }

    /// Adds one unit by its fingerprint.
    pub const fn add(&mut self, place: Place, fingerprint: u64) {
        self.counts[place as usize] += 1;
        self.prints[place as usize] = self.prints[place as usize].wrapping_add(fingerprint);
    }
}

/// The least number of notifications that would have to be placed otherwise for these two to agree. Never negative.
pub fn residue(ours: &Partition, theirs: &Partition) -> u64 {
    let more = |one: &Partition, other: &Partition| {
        Place::ALL
            .iter()
            .map(|place| one.count(*place) - other.count(*place))
            .filter(|more| *more > 0)
            .sum::<i64>()
    };
    more(ours, theirs).max(more(theirs, ours)).unsigned_abs()
}

/// One unit that two divisions place differently.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Misplaced {
    /// Which one.
    pub unit: UnitId,
    /// Where the follower has it; nothing where it doesn't have it.
    pub followed: Option<Place>,
    /// Where the fresh reading has it.
    pub fresh: Place,
}

/// Which units make two divisions differ.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Explanation {
    /// Those that are surely meant.
    pub exact: Vec<Misplaced>,
    /// Where more than one differs: all that can be meant, with where the fresh reading has them.
    pub candidates: Vec<(UnitId, Place)>,
    /// The follower has one here that the fresh reading doesn't have at all; its id isn't known any more.
    pub only_followed: Option<Place>,
}

/// Names the units that make the follower's division differ from a fresh reading of the same interval. The smaller the interval, the more
/// surely: where one unit differs, it is named exactly.
pub fn explain(ours: &Partition, fresh: &[(UnitId, Standing)]) -> Explanation {
    let fresh: Vec<_> = fresh
        .iter()
        .map(|(unit, standing)| (unit, UnitKey::from(unit.clone()).fingerprint(), Place::from(*standing)))
        .collect();
    let mut theirs = Partition::default();
    for (_, print, place) in &fresh {
        theirs.add(*place, *print);
    }
    let off: Vec<Off> = Place::ALL.iter().filter_map(|place| Off::of(*place, ours, &theirs)).collect();
    let lacking = |wanted: &Off| {
        fresh.iter().find(|(_, print, place)| *place == wanted.place && *print == wanted.print)
    };
    let mut found = Explanation::default();
    match off.as_slice() {
        [] => return found,
        [only] if only.count == -1 => {
            if let Some((unit, ..)) = lacking(only) {
                found.exact.push(Misplaced { unit: (*unit).clone(), followed: None, fresh: only.place });
                return found;
            }
        }
        [only] if only.count == 1 => {
            found.only_followed = Some(only.place);
            return found;
        }
        [one, other] if one.count == -other.count && one.count.abs() == 1 && one.print == other.print => {
            let (followed, fresh) = if one.count > 0 { (one, other) } else { (other, one) };
            if let Some((unit, ..)) = lacking(fresh) {
                let unit = (*unit).clone();
                found.exact.push(Misplaced { unit, followed: Some(followed.place), fresh: fresh.place });
                return found;
            }
        }
        _ => {}
    }
    let is_off = |place: Place| off.iter().any(|off| off.place == place);
    found.candidates = fresh
        .iter()
        .filter(|(_, _, place)| is_off(*place))
        .map(|(unit, _, place)| ((*unit).clone(), *place))
        .collect();
    found
}

/// How one place differs.
struct Off {
    place: Place,
    /// How many the follower has more.
    count: i64,
    /// The fingerprint of what it has more, or else less.
    print: u64,
}

impl Off {
    fn of(place: Place, ours: &Partition, theirs: &Partition) -> Option<Self> {
        let count = ours.count(place) - theirs.count(place);
        let print = ours.prints[place as usize].wrapping_sub(theirs.prints[place as usize]);
        let print = if count < 0 { print.wrapping_neg() } else { print };
        (count != 0 || print != 0).then_some(Self { place, count, print })
    }
}

//! One followed unit, and how attempts decide where it stands.

use super::rows::{AttemptRow, LedgerId, RouteNo, Standing, Truth};
use crate::domain::pending::Tried;
use chrono::{DateTime, Utc};

/// The number that stands for no standing.
const NO_STANDING: u8 = 0;

/// All standings; the number kept for one is its place here plus one.
const STANDINGS: [Standing; 7] = [
    Standing::Pending(Tried::Never),
    Standing::Pending(Tried::WillRetry),
    Standing::Pending(Tried::OutcomeUnknown),
    Standing::Delivered,
    Standing::RejectedRecipient,
    Standing::RejectedService,
    Standing::Suppressed,
];

/// The number kept for a standing, and for none.
pub(in crate::domain) const fn to_code(standing: Option<Standing>) -> u8 {
    match standing {
        None => NO_STANDING,
        Some(Standing::Pending(Tried::Never)) => 1,
        Some(Standing::Pending(Tried::WillRetry)) => 2,
        Some(Standing::Pending(Tried::OutcomeUnknown)) => 3,
        Some(Standing::Delivered) => 4,
        Some(Standing::RejectedRecipient) => 5,
        Some(Standing::RejectedService) => 6,
        Some(Standing::Suppressed) => 7,
    }
}

/// The standing of a kept number; nothing where the number is that of none or of no meaning.
pub(in crate::domain) fn from_code(code: u8) -> Option<Standing> {
    STANDINGS.get(usize::from(code).checked_sub(1)?).copied()
}

/// Microseconds since 1970: times as they are kept.
pub(super) const fn micros(at: DateTime<Utc>) -> i64 {
    at.timestamp_micros()
}

/// The attempt that decides where a unit stands: the newest terminal one, else the newest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Deciding {
    /// What it leaves the unit in.
    pub leaves: Standing,
    /// When it started, in microseconds.
    pub at: i64,
}

impl Deciding {
    /// Of two attempts the one of higher rank decides. At equal rank it is that of the higher id.
    pub const fn rank(self) -> (bool, i64) {
        (self.leaves.is_terminal(), self.at)
    }
}

/// The attempt that decides among all of these.
pub(super) fn deciding<'a>(attempts: impl Iterator<Item = &'a AttemptRow>) -> Option<Deciding> {
    let with_id = |row: &'a AttemptRow| (Deciding { leaves: row.leaves, at: micros(row.at) }, &row.attempt);
    let order = |(one, id): &(Deciding, &'a LedgerId)| (one.rank(), *id);
    attempts.map(with_id).max_by(|a, b| order(a).cmp(&order(b))).map(|(deciding, _)| deciding)
}

impl Truth {
    /// Where it leaves its unit: its own standing where that is known, else that of the attempt that decides.
    pub fn standing(&self) -> Standing {
        let by_attempts = || deciding(self.attempts.iter()).map(|deciding| deciding.leaves);
        self.own.or_else(by_attempts).unwrap_or(Standing::Pending(Tried::Never))
    }
}

/// What a further attempt did to a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Folded {
    /// An older or weaker one: nothing.
    Nothing,
    /// It decides now.
    Decides,
    /// It has the rank of the deciding one and says otherwise: the higher id decides, which isn't kept here.
    Tied,
}

/// What is known of a unit from rows that are closed. It is kept for each pending one, so it has to stay small.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Unit {
    /// The due time, in microseconds.
    pub due: i64,
    at: i64,
    /// Its route.
    pub route: RouteNo,
    own: u8,
    by_attempts: u8,
    flags: u8,
}

/// What can be true of a unit besides where it stands.
#[derive(Clone, Copy)]
pub(super) enum Flag {
    /// It is a canary: in no figure.
    Canary = 1,
    /// Two attempts of one rank say different things: a lookup must tell.
    Tied = 2,
    /// The store has it.
    Durable = 4,
    /// It changed in this pass.
    Touched = 8,
}

impl Unit {
    pub const fn new(route: RouteNo, due: i64, own: Option<Standing>) -> Self {
        Self { due, at: 0, route, own: to_code(own), by_attempts: NO_STANDING, flags: 0 }
    }

    pub const fn has(&self, flag: Flag) -> bool {
        self.flags & flag as u8 != 0
    }

    pub const fn set(&mut self, flag: Flag, on: bool) {
        if on {
            self.flags |= flag as u8;
        } else {
            self.flags &= !(flag as u8);
        }
    }

    pub fn own(&self) -> Option<Standing> {
        from_code(self.own)
    }

    pub const fn set_own(&mut self, own: Option<Standing>) {
        self.own = to_code(own);
    }

    /// The attempt that decides, of those that are closed.
    pub fn deciding(&self) -> Option<Deciding> {
        from_code(self.by_attempts).map(|leaves| Deciding { leaves, at: self.at })
    }

    pub fn set_deciding(&mut self, deciding: Option<Deciding>) {
        self.by_attempts = to_code(deciding.map(|deciding| deciding.leaves));
        self.at = deciding.map_or(0, |deciding| deciding.at);
    }

    /// Takes one more attempt. Any order of the same attempts ends alike, and an attempt that comes twice changes nothing.
    pub fn fold(&mut self, new: Deciding) -> Folded {
        match self.deciding() {
            Some(old) if new.rank() < old.rank() || new == old => Folded::Nothing,
            Some(old) if new.rank() == old.rank() => {
                self.set_deciding(Some(new));
                Folded::Tied
            }
            _ => {
                self.set_deciding(Some(new));
                Folded::Decides
            }
        }
    }

    /// Where it stands by what is closed.
    pub fn standing(&self) -> Standing {
        self.standing_with(None)
    }

    /// Where it stands, with the deciding one of the attempts that are open.
    pub fn standing_with(&self, open: Option<Deciding>) -> Standing {
        let newest = match (self.deciding(), open) {
            (Some(closed), Some(open)) if closed.rank() > open.rank() => Some(closed),
            (closed, open) => open.or(closed),
        };
        self.own().or(newest.map(|newest| newest.leaves)).unwrap_or(Standing::Pending(Tried::Never))
    }

    pub const fn flags(&self) -> u8 {
        self.flags
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pending_unit_stays_small() {
        assert!(size_of::<LedgerId>() <= 24, "an id takes {} bytes", size_of::<LedgerId>());
        assert!(size_of::<super::super::key::UnitKey>() <= 24);
        assert!(size_of::<Unit>() <= 24, "a unit takes {} bytes", size_of::<Unit>());
    }

    #[test]
    fn every_standing_has_one_number() {
        for (place, standing) in STANDINGS.iter().enumerate() {
            let code = to_code(Some(*standing));
            assert_eq!(usize::from(code), place + 1);
            assert_eq!(from_code(code), Some(*standing));
        }
        assert_eq!(from_code(to_code(None)), None);
        assert_eq!(from_code(8), None);
    }
}

//! Values over time, in the notation of promtool.

use crate::alerts::number::full;
use std::fmt::Write as _;

/// What a series does for a while.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Seg {
    /// It has this value.
    Is(f64),
    /// It is a time, so many seconds ago.
    Ago(f64),
    /// It grows by so much each step, from 0 on.
    Grows(f64),
    /// It isn't there.
    Absent,
}

/// The steps of a scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// Seconds a step.
    pub step: u32,
    /// How many steps all is well.
    pub before: u32,
    /// How many steps it is not.
    pub during: u32,
    /// How many steps it is well again.
    pub after: u32,
}

impl Pace {
    /// A step a minute: as few as show that it fires and that it is resolved.
    pub const MINUTES: Self = Self { step: 60, before: 10, during: 22, after: 12 };
    /// A step a minute, for what looks back for an hour, or must hold for half of one.
    pub const HOURS: Self = Self { step: 60, before: 60, during: 40, after: 40 };

    /// All steps.
    pub const fn total(&self) -> u32 {
        self.before + self.during + self.after
    }

    /// The last step but one of the bad time, at which an alert must fire.
    pub const fn late(&self) -> u32 {
        self.before + self.during - 2
    }

    /// A step as promtool writes times.
    pub fn time(&self, step: u32) -> String {
        format!("{}s", step * self.step)
    }
}

/// From a step on, up to another one, something else than what is normal.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Phase {
    /// The first step.
    pub from: u32,
    /// The step after the last.
    pub until: u32,
    /// What it does.
    pub seg: Seg,
}

/// The phases, but nothing is there in the gap.
pub fn without(phases: Vec<Phase>, gap: Option<(u32, u32)>) -> Vec<Phase> {
    let Some((from, until)) = gap else { return phases };
    let clipped = phases.into_iter().flat_map(|phase| {
        let before = Phase { until: phase.until.min(from), ..phase };
        let after = Phase { from: phase.from.max(until), ..phase };
        [before, after].into_iter().filter(|phase| phase.from < phase.until)
    });
    clipped.chain([Phase { from, until, seg: Seg::Absent }]).collect()
}

/// The whole track of a series that is as `normal` but in these phases, which don't overlap.
pub fn track(pace: &Pace, normal: Seg, phases: &[Phase]) -> String {
    let mut sorted = phases.to_vec();
    sorted.sort_by_key(|phase| phase.from);
    let mut out = String::new();
    let mut at = 0;
    for phase in sorted {
        write(&mut out, pace, at, phase.from, normal);
        write(&mut out, pace, phase.from, phase.until.min(pace.total()), phase.seg);
        at = phase.until.min(pace.total());
    }
    write(&mut out, pace, at, pace.total(), normal);
    out
}

/// Writing to a string can't fail.
fn write(out: &mut String, pace: &Pace, from: u32, until: u32, seg: Seg) {
    let Some(count) = until.checked_sub(from).filter(|count| *count > 0) else { return };
    if !out.is_empty() {
        out.push(' ');
    }
    let start = f64::from(from * pace.step);
    let _ = match seg {
        Seg::Is(value) => write!(out, "{}+0x{}", full(value), count - 1),
        Seg::Ago(age) => write!(out, "{}+{}x{}", full(start - age), pace.step, count - 1),
        Seg::Grows(by) => write!(out, "0+{}x{}", full(by), count - 1),
        // A failed scrape, or a series that is no longer exported, ends at once.
        Seg::Absent if from > 0 && count > 1 => write!(out, "stale _x{}", count - 1),
        Seg::Absent if from > 0 => write!(out, "stale"),
        Seg::Absent => write!(out, "_x{count}"),
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_track_is_normal_but_in_its_phases() {
        let pace = Pace { step: 60, before: 3, during: 2, after: 1 };
        let phase = |seg| [Phase { from: 3, until: 5, seg }];
        assert_eq!(track(&pace, Seg::Is(0.0), &[]), "0+0x5");
        assert_eq!(track(&pace, Seg::Is(0.0), &phase(Seg::Is(2.5))), "0+0x2 2.5+0x1 0+0x0");
        assert_eq!(track(&pace, Seg::Ago(30.0), &phase(Seg::Absent)), "-30+60x2 stale _x1 270+60x0");
        assert_eq!(track(&pace, Seg::Absent, &phase(Seg::Ago(0.0))), "_x3 180+60x1 stale");
    }

    #[test]
    fn in_a_gap_there_is_nothing() {
        let pace = Pace { step: 60, before: 2, during: 4, after: 1 };
        let phases = vec![Phase { from: 2, until: 6, seg: Seg::Is(2.5) }];
        let track = |phases| track(&pace, Seg::Is(0.0), &without(phases, Some((3, 5))));
        assert_eq!(track(phases), "0+0x1 2.5+0x0 stale _x1 2.5+0x0 0+0x0");
        assert_eq!(track(Vec::new()), "0+0x2 stale _x1 0+0x1");
    }
}

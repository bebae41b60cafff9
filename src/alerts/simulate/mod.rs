//! Canaries as they would go out, and what a rule makes of them: for the figures of `alerts explain` and for the bench.
//!
//! Pure and seeded: the same numbers give the same figures, on every machine. Nothing is simulated of the service but which canaries fail.

mod random;
mod run;
mod slots;

pub use random::Random;
pub use run::{Cadence, Canary, Change, Confirmations, Run};
pub use slots::Slots;

use crate::domain::failure_evidence::{Stream, Weights};
use chrono::DateTime;

/// An instant in milliseconds since 1970, or a time in milliseconds.
pub type Millis = i64;

/// What sees canaries one by one, in the order of their slots, and says when it would page.
pub trait Rule: Clone {
    /// Takes the canary of this slot.
    fn observe(&mut self, slot: Millis, failed: bool);

    /// Whether a page is due.
    fn is_firing(&self) -> bool;

    /// Whether it remembers something: while it does not, a good canary changes nothing.
    fn is_open(&self) -> bool;

    /// Whether confirmations are wished for.
    fn wants_confirmations(&self) -> bool {
        self.is_open()
    }
}

/// The rule of this crate, by the domain's own types.
#[derive(Clone, Copy, Debug)]
pub struct Evidence {
    weights: Weights,
    stream: Stream,
}

impl Evidence {
    /// With nothing known that is bad.
    pub fn new(weights: Weights) -> Self {
        Self { weights, stream: Stream::default() }
    }

    /// How many failures in a row there were to the end.
    pub fn consecutive(&self) -> u32 {
        self.stream.consecutive
    }

    /// Whether the sum is as great as it can be.
    pub fn is_full(&self) -> bool {
        self.stream.value >= self.weights.cap()
    }
}

impl Rule for Evidence {
    fn observe(&mut self, slot: Millis, failed: bool) {
        let slot = DateTime::from_timestamp_millis(slot).unwrap_or_default();
        self.stream.observe(&self.weights, slot, failed);
    }

    fn is_firing(&self) -> bool {
        self.stream.is_sustained(&self.weights)
    }

    fn is_open(&self) -> bool {
        self.stream.value > 0.0
    }
}

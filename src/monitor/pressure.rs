//! Backpressure: while the store takes long to write decisions down, nothing new is planned.
//!
//! What is planned costs the store three writes before it can settle. A store at its limit that is given plans as fast as they come due
//! settles less than it could: at twice its limit, a third. What isn't planned in time is missed, and counted; what is planned gets its verdict.

use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};
use tokio::time::Instant;

/// A write of decisions that takes longer than this waits behind others.
const SLOW: Duration = Duration::from_millis(300);

/// Longest time for which one slow write holds planning back: a disk that is always slow must not end the sending.
const LONGEST: Duration = Duration::from_secs(2);

/// Until when nothing is planned.
#[derive(Debug, Default)]
pub struct Pressure(Mutex<Option<Instant>>);

impl Pressure {
    /// Takes note of how long a write of decisions took.
    pub fn took(&self, elapsed: Duration) {
        let until = (elapsed > SLOW).then(|| Instant::now() + elapsed.min(LONGEST));
        *self.until() = until;
    }

    /// Whether nothing is to be planned now.
    pub fn is_high(&self) -> bool {
        self.until().is_some_and(|until| Instant::now() < until)
    }

    fn until(&self) -> std::sync::MutexGuard<'_, Option<Instant>> {
        // An instant is whole whatever panics.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_slow_write_holds_planning_back_for_as_long_as_it_took_and_never_for_long() {
        let pressure = Pressure::default();
        assert!(!pressure.is_high(), "nothing was written yet");
        pressure.took(SLOW);
        assert!(!pressure.is_high(), "that is how long a write may take");
        for (took, held) in
            [(Duration::from_secs(1), Duration::from_secs(1)), (Duration::from_secs(60), LONGEST)]
        {
            pressure.took(took);
            tokio::time::advance(held - Duration::from_millis(1)).await;
            assert!(pressure.is_high(), "{took:?}");
            tokio::time::advance(Duration::from_millis(1)).await;
            assert!(!pressure.is_high(), "{took:?}");
        }
        pressure.took(Duration::from_secs(1));
        pressure.took(Duration::from_millis(1));
        assert!(!pressure.is_high(), "the next write was quick");
    }
}

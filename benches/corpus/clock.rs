//! Times of recordings.

use super::random::Random;

/// A moment in the year 2026, which goes on.
pub struct Clock {
    milliseconds: usize,
}

impl Clock {
    pub fn new(random: &mut Random) -> Self {
        Self { milliseconds: random.below(300 * 86_400_000) }
    }

    pub fn advance(&mut self, milliseconds: usize) {
        self.milliseconds += milliseconds;
    }

    /// With six digits of the second, the form that run packs hash.
    pub fn text(&self) -> String {
        self.with_fraction(&format!(".{:03}000", self.milliseconds % 1_000))
    }

    /// Without a fraction, as traces want it.
    pub fn whole_seconds(&self) -> String {
        self.with_fraction("")
    }

    fn with_fraction(&self, fraction: &str) -> String {
        let seconds = self.milliseconds / 1_000;
        let (day, hour, minute) = (seconds / 86_400, seconds / 3_600 % 24, seconds / 60 % 60);
        // Months of 28 days are enough for a clock that is never read.
        format!(
            "2026-{:02}-{:02}T{hour:02}:{minute:02}:{:02}{fraction}Z",
            day / 28 % 12 + 1,
            day % 28 + 1,
            seconds % 60
        )
    }
}

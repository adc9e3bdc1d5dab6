//! The time of day, from one place.
//!
//! Everything that records or compares times of day asks [`now`], so that tests can hold on every day: [`fix`] makes the
//! clock of this process stand still. Lengths of time are measured with [`std::time::Instant`] instead.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::SystemTime;

use chrono::{DateTime, Utc};

/// Stands for "not fixed": a time that no [`DateTime`] can have.
const NOT_FIXED: i64 = i64::MIN;

/// Milliseconds since 1970 at which the clock stands still.
static FIXED: AtomicI64 = AtomicI64::new(NOT_FIXED);

/// Returns the current time in UTC: the system's, unless the clock was fixed. A system clock before 1970 gives a time before
/// 1970.
#[must_use]
pub fn now() -> DateTime<Utc> {
    let fixed = DateTime::from_timestamp_millis(FIXED.load(Ordering::Relaxed));
    #[expect(clippy::disallowed_methods, reason = "this is the one place that asks the system")]
    let system = || SystemTime::now().into();
    fixed.unwrap_or_else(system)
}

/// Makes the clock of this process stand still at `time`, to the millisecond, or run again if there is none. For tests only:
/// times that are recorded meanwhile are false.
pub fn fix(time: Option<DateTime<Utc>>) {
    FIXED.store(time.map_or(NOT_FIXED, |time| time.timestamp_millis()), Ordering::Relaxed);
}

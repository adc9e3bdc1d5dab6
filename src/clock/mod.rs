//! The only source of the current time.
//!
//! Code that records or compares times calls [`now`], so that tests do not depend on the date: [`fix`] freezes the
//! clock of this process. Durations are measured with [`std::time::Instant`] instead.

mod parse;

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::SystemTime;

use chrono::{DateTime, Utc};

pub use parse::{ParseTimeError, parse_length, parse_time};

/// The value for "not frozen": a time that no [`DateTime`] can have.
const NOT_FIXED: i64 = i64::MIN;

/// Milliseconds since 1970 at which the clock is frozen.
static FIXED: AtomicI64 = AtomicI64::new(NOT_FIXED);

/// Returns the current time in UTC: the system time, unless the clock is frozen. A system clock before 1970 returns a
/// time before 1970.
#[must_use]
pub fn now() -> DateTime<Utc> {
    let fixed = DateTime::from_timestamp_millis(FIXED.load(Ordering::Relaxed));
    #[expect(clippy::disallowed_methods, reason = "this is the one place that asks the system")]
    let system = || SystemTime::now().into();
    fixed.unwrap_or_else(system)
}

/// Freezes the clock of this process at `time`, to the millisecond, or unfreezes it if `time` is `None`. For tests
/// only: recorded times are false while it is frozen.
pub fn fix(time: Option<DateTime<Utc>>) {
    FIXED.store(time.map_or(NOT_FIXED, |time| time.timestamp_millis()), Ordering::Relaxed);
}

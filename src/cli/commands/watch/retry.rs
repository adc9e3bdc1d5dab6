//! Waiting for temporary errors to pass: a full disk, another process that writes.

use std::time::Duration;

use runvault::storage::StorageError;

use crate::cli::hints;
use crate::cli::output::stdout;

/// The initial and maximum delay between attempts after a full disk or a lock of another process; it doubles each time.
const FIRST_PAUSE: Duration = Duration::from_secs(2);
const LONGEST_PAUSE: Duration = Duration::from_mins(1);

/// The error that currently prevents storing, if any.
#[derive(Default)]
pub(super) struct WatchRetry(Option<StorageOutage>);

struct StorageOutage {
    message: String,
    pause: Duration,
}

impl WatchRetry {
    /// Reports the error, once, and returns how long to wait before the next attempt.
    pub(super) fn waits(&mut self, error: &StorageError) -> Duration {
        let message = hints::with_hint(error);
        let before = self.0.take().filter(|outage| outage.message == message);
        let pause = before.as_ref().map_or(FIRST_PAUSE, |outage| (outage.pause * 2).min(LONGEST_PAUSE));
        if before.is_none() {
            stdout::error(&message);
            stdout::note("retrying until everything is stored; press Ctrl-C to stop");
        }
        self.0 = Some(StorageOutage { message, pause });
        pause
    }

    /// Records that an attempt succeeded.
    pub(super) fn goes_on(&mut self) {
        if self.0.take().is_some() {
            stdout::note("continuing");
        }
    }
}

//! Waiting for what will pass: a full disk, another program that writes.

use std::time::Duration;

use runvault::store::StoreError;

use crate::cli::{hints, output};

/// So long it waits before it tries again what a full disk or another program kept it from, and twice as long each time.
const FIRST_PAUSE: Duration = Duration::from_secs(2);
const LONGEST_PAUSE: Duration = Duration::from_mins(1);

/// Why nothing can be stored at the moment, if that is so.
#[derive(Default)]
pub(super) struct Waiting(Option<Trouble>);

struct Trouble {
    message: String,
    pause: Duration,
}

impl Waiting {
    /// Says what is in the way, once, and gives how long to wait before the next try.
    pub(super) fn waits(&mut self, error: &StoreError) -> Duration {
        let message = hints::with_hint(error);
        let before = self.0.take().filter(|trouble| trouble.message == message);
        let pause = before.as_ref().map_or(FIRST_PAUSE, |trouble| (trouble.pause * 2).min(LONGEST_PAUSE));
        if before.is_none() {
            output::error(&message);
            output::note("retrying until everything is stored; press Ctrl-C to stop");
        }
        self.0 = Some(Trouble { message, pause });
        pause
    }

    /// A try succeeded.
    pub(super) fn goes_on(&mut self) {
        if self.0.take().is_some() {
            output::note("continuing");
        }
    }
}

//! A limit on the number of document values in memory at once.
//!
//! A value takes many times the memory of its text, so documents that are small as files may be large once parsed, and
//! several are parsed at once. A reader reserves room for as many values as its text can have, and waits until it is
//! available.

use std::cell::Cell;
use std::sync::{Condvar, Mutex, PoisonError};

/// The maximum number of values in memory at once, unless a single document has more.
const BUDGET: usize = 4 << 20;

/// Smaller documents, in bytes, are not counted: one per thread is harmless.
const SMALL: usize = 256 << 10;

static RESERVED_VALUES: Mutex<usize> = Mutex::new(0);
static GIVEN_BACK: Condvar = Condvar::new();

thread_local! {
    /// Whether this thread has a reservation: parts of a document are counted with it.
    static HAS_ROOM: Cell<bool> = const { Cell::new(false) };
}

/// A reservation for the values of a document, released on drop.
#[must_use]
pub(super) struct ValueReservation {
    values: usize,
}

impl ValueReservation {
    /// Waits for room for the values of these texts. A document with more values than the budget waits until it is the
    /// only one.
    pub(super) fn take<'t>(texts: impl Iterator<Item = &'t [u8]>) -> Self {
        let values: usize = texts.filter(|text| text.len() >= SMALL).map(most_values).sum();
        let values = values.min(BUDGET);
        if values == 0 || HAS_ROOM.replace(true) {
            return Self { values: 0 };
        }
        let mut reserved = RESERVED_VALUES.lock().unwrap_or_else(PoisonError::into_inner);
        while *reserved + values > BUDGET {
            reserved = GIVEN_BACK.wait(reserved).unwrap_or_else(PoisonError::into_inner);
        }
        *reserved += values;
        Self { values }
    }
}

impl Drop for ValueReservation {
    fn drop(&mut self) {
        if self.values > 0 {
            HAS_ROOM.set(false);
            *RESERVED_VALUES.lock().unwrap_or_else(PoisonError::into_inner) -= self.values;
            GIVEN_BACK.notify_all();
        }
    }
}

/// Returns the maximum number of values that a JSON text can have: the first, and one after each comma, colon and
/// opening bracket. YAML may have more; it has its own, lower limit.
fn most_values(text: &[u8]) -> usize {
    let separators = memchr::memchr3_iter(b',', b':', b'[', text).count();
    separators + memchr::memchr_iter(b'{', text).count() + 1
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::thread;

    use super::*;

    #[test]
    fn large_documents_are_read_one_at_a_time() {
        let text = vec![b','; BUDGET];
        let (reading, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let _room = ValueReservation::take([text.as_slice()].into_iter());
                    // A part of the document needs no reservation of its own.
                    let _part = ValueReservation::take([text.as_slice()].into_iter());
                    most.fetch_max(reading.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                    thread::yield_now();
                    reading.fetch_sub(1, Ordering::SeqCst);
                });
            }
        });
        assert_eq!(most.into_inner(), 1);
    }

    #[test]
    fn no_json_text_has_more_values_than_are_counted() {
        for (text, values) in [("1", 1), ("[]", 1), ("[1,2]", 3), (r#"{"a":{"b":[1]}}"#, 4)] {
            assert!(most_values(text.as_bytes()) >= values, "{text}");
        }
    }
}

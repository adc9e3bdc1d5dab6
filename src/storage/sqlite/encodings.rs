//! A switch for the encodings of the storage, for the bench that measures what each of them saves.
//!
//! It only affects what is written and how mentions are found; every encoding can always be read.

use std::sync::atomic::{AtomicU8, Ordering};

/// An encoding that can be switched off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Encoding {
    /// Digests are stored as bytes beside the text. Without it, there are no deltas either, because similar documents
    /// are found by the stripped digests.
    DigestStripping = 1,
    /// Similar documents are stored as deltas.
    Delta = 2,
    /// Small documents of a kind are compressed with a common dictionary.
    Dictionary = 4,
    /// Mention lists are found through an index. Without it, all of them are read.
    MentionIndex = 8,
}

static OFF: AtomicU8 = AtomicU8::new(0);

/// Switches an encoding off, or all on, in this process.
pub fn switch_off(encoding: Option<Encoding>) {
    OFF.store(encoding.map_or(0, |encoding| encoding as u8), Ordering::Relaxed);
}

impl Encoding {
    pub(super) fn is_off(self) -> bool {
        OFF.load(Ordering::Relaxed) & self as u8 != 0
    }
}

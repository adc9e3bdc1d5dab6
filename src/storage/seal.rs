//! Seals of captures.

use crate::digest::{CaptureHash, CoreHash, Hasher};

/// Returns the seal that binds a capture to its artifact in the vault.
pub(super) fn seal(core: CoreHash, capture: CaptureHash) -> [u8; 16] {
    let mut hasher = Hasher::new();
    hasher.update(core.0.as_bytes());
    hasher.update(capture.0.as_bytes());
    let mut seal = [0; 16];
    seal.iter_mut().zip(hasher.finish().as_bytes()).for_each(|(to, from)| *to = *from);
    seal
}

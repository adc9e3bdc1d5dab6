//! The computation of SHA-256, by the fastest implementation for this processor.
//!
//! `sha2` is used where the processor has instructions for SHA-256, and on platforms for which nothing else is built:
//! it is pure Rust, and as fast as any there. Without these instructions, `ring` is faster, because it has assembly for
//! AVX and NEON: 445 MB/s compared with 380 on a Xeon with AVX2 whose SHA instructions were not used, and 210 compared
//! with 122 on a cloud machine without them. `aws-lc-rs` reached 450 MB/s on the Xeon, but its C library takes five
//! times as long to build.

#![expect(clippy::disallowed_types, reason = "this module belongs to the one place")]

use sha2::{Digest as _, Sha256};

/// A computation over bytes that arrive in pieces.
pub(super) enum Computation {
    Instructions(Sha256),
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    Assembly(ring::digest::Context),
}

impl Computation {
    /// Begins a computation by the fastest implementation.
    pub(super) fn new() -> Self {
        if has_instructions() { Self::Instructions(Sha256::new()) } else { Self::without_instructions() }
    }

    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    fn without_instructions() -> Self {
        Self::Assembly(ring::digest::Context::new(&ring::digest::SHA256))
    }

    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    fn without_instructions() -> Self {
        Self::Instructions(Sha256::new())
    }

    pub(super) fn update(&mut self, bytes: &[u8]) {
        match self {
            Self::Instructions(hasher) => hasher.update(bytes),
            #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
            Self::Assembly(context) => context.update(bytes),
        }
    }

    pub(super) fn finish(self) -> [u8; 32] {
        match self {
            Self::Instructions(hasher) => hasher.finalize().into(),
            #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
            Self::Assembly(context) => {
                let mut digest = [0; 32];
                digest.copy_from_slice(context.finish().as_ref());
                digest
            }
        }
    }
}

/// Returns whether `sha2` finds instructions for SHA-256. The standard library asks the processor once.
#[cfg(target_arch = "x86_64")]
fn has_instructions() -> bool {
    std::is_x86_feature_detected!("sha")
        && std::is_x86_feature_detected!("ssse3")
        && std::is_x86_feature_detected!("sse4.1")
}

/// Returns whether `sha2` finds instructions for SHA-256.
#[cfg(target_arch = "aarch64")]
fn has_instructions() -> bool {
    std::arch::is_aarch64_feature_detected!("sha2")
}

/// Returns true, because nothing else is built for this platform.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn has_instructions() -> bool {
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn in_pieces(mut computation: Computation, pieces: &[Vec<u8>]) -> [u8; 32] {
        for piece in pieces {
            computation.update(piece);
        }
        computation.finish()
    }

    proptest! {
        #[test]
        fn all_implementations_return_the_same_digest(
            pieces in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..300), 0..8),
        ) {
            let expected: [u8; 32] = Sha256::digest(pieces.concat()).into();
            prop_assert_eq!(in_pieces(Computation::Instructions(Sha256::new()), &pieces), expected);
            prop_assert_eq!(in_pieces(Computation::without_instructions(), &pieces), expected);
            prop_assert_eq!(in_pieces(Computation::new(), &pieces), expected);
        }
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn ring_is_used_without_instructions() {
        assert!(matches!(Computation::without_instructions(), Computation::Assembly(_)));
        assert_eq!(matches!(Computation::new(), Computation::Instructions(_)), has_instructions());
    }
}

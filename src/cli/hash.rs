//! Hashes as arguments.

use runvault::digest::{Digest, DigestPrefix};

/// A hash or a prefix of one, for clap.
pub(crate) fn prefix(text: &str) -> Result<DigestPrefix, String> {
    text.parse().map_err(|error: runvault::digest::ParseDigestError| error.to_string())
}

/// The digest of a prompt given as text.
pub(crate) fn of_text(text: &str) -> Digest {
    Digest::of(text.as_bytes())
}

//! The hashed part of each member.

use std::collections::BTreeMap;
use std::io;

use crate::digest::Digest;
use crate::json::Value;
use crate::json::canonical::rfc8785::{self, CanonicalInput};

/// Returns the digest of the canonical form of `value` and a line feed.
///
/// # Errors
/// Returns an error for a number that overflows to infinity, which has no canonical form.
pub(super) fn canonical_hash<'v>(value: impl Into<CanonicalInput<'v>>) -> io::Result<Digest> {
    rfc8785::digest(value, b"\n")
}

/// Returns the canonical bytes whose digest is the core hash of a pack whose members have these `digests`.
pub(super) fn core(digests: &BTreeMap<&'static str, Digest>) -> Vec<u8> {
    rfc8785::object_of_texts(digests.iter().map(|(name, digest)| (*name, digest.to_string())))
}

/// The members of a runner record that are hashed. Others describe a single execution.
pub(super) const RUNNER_CORE: [&str; 11] = [
    "runner_schema_version",
    "runner_id",
    "runner_version",
    "platform",
    "sandbox",
    "limits",
    "commands",
    "write_roots",
    "context",
    "exit",
    "warnings",
];

/// The hashed part of a runner record.
pub(super) struct RunnerCore<'v>(pub(super) &'v Value<'v>);

impl<'v> From<RunnerCore<'v>> for CanonicalInput<'v> {
    fn from(core: RunnerCore<'v>) -> Self {
        let members = RUNNER_CORE.iter().filter_map(|name| Some((*name, Self::Value(core.0.get(name)?))));
        Self::Object(members.collect())
    }
}

//! What is hashed of each member, and how.

use std::collections::BTreeMap;
use std::io;

use crate::canonical::Value;
use crate::canonical::rfc8785::{self, Form};
use crate::digest::Digest;

/// The digest of the canonical form of `value` and a line feed.
///
/// # Errors
/// A number that overflows to infinity has no canonical form.
pub(super) fn canonical_hash<'v>(value: impl Into<Form<'v>>) -> io::Result<Digest> {
    rfc8785::digest(value, b"\n")
}

/// The canonical bytes whose digest is the core hash of a pack whose members have these `digests`.
pub(super) fn core(digests: &BTreeMap<&'static str, Digest>) -> Vec<u8> {
    rfc8785::object_of_texts(digests.iter().map(|(name, digest)| (*name, digest.to_string())))
}

/// The members of a runner record that are hashed. Others tell about one execution only.
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

/// The part of a runner record that is hashed.
pub(super) struct RunnerCore<'v>(pub(super) &'v Value<'v>);

impl<'v> From<RunnerCore<'v>> for Form<'v> {
    fn from(core: RunnerCore<'v>) -> Self {
        let members = RUNNER_CORE.iter().filter_map(|name| Some((*name, Self::Value(core.0.get(name)?))));
        Self::Object(members.collect())
    }
}

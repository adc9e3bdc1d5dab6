//! What is hashed of each member, and how.

use serde::ser::{Serialize, SerializeMap, Serializer};

use crate::canonical::{Value, rfc8785};
use crate::digest::{Digest, Hasher};

/// The digest of the canonical form of `value` and a line feed; nothing if a number has no canonical form.
pub(super) fn canonical_hash(value: &impl Serialize) -> Option<Digest> {
    let mut hasher = Hasher::new();
    rfc8785::write(value, &mut hasher).ok()?;
    hasher.update(b"\n");
    Some(hasher.finish())
}

/// The members of a runner record that are hashed. Others tell about one execution only.
const RUNNER_CORE: [&str; 11] = [
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

impl Serialize for RunnerCore<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for name in RUNNER_CORE {
            if let Some(member) = self.0.get(name) {
                map.serialize_entry(name, member)?;
            }
        }
        map.end()
    }
}

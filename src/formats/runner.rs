//! The runner records of export packs.

/// The members of a runner record that are hashed, in an export pack and by itself. Others describe a single execution.
pub(crate) const RUNNER_CORE: [&str; 11] = [
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

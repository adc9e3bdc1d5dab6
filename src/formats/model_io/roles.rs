//! The roles of the digests in sessions.

use crate::artifact::{Role, group};

pub(super) const PROMPT: Role =
    Role { name: "prompt", group: group::PROMPT, unit: "interaction", relation: None };
pub(super) const RESPONSE: Role =
    Role { name: "response", group: group::RESPONSE, unit: "interaction", relation: None };

/// The locations of digests that are indexed as prompts and responses.
pub(super) const INDEXED: [&str; 2] = ["/interactions/*/prompt_hash", "/interactions/*/response_hash"];

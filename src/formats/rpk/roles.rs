//! The roles of the digests in run packs, and the link that follows from names.

use crate::artifact::{Relation, Role, group};

pub(super) const STEP: Role = Role { name: "step", group: group::STEP, unit: "step", relation: None };
pub(super) const PROMPT: Role = Role { name: "prompt", group: group::PROMPT, unit: "step", relation: None };
pub(super) const RESPONSE: Role =
    Role { name: "response", group: group::RESPONSE, unit: "step", relation: None };

pub(super) const DERIVED_FROM: Relation = Relation { name: "derived-from", dangles: true };

/// The locations of digests that are indexed as the core hash, as step hashes and as prompts.
pub(super) const INDEXED: [&str; 3] =
    ["/checksum", "/payload/run/steps/*/hash", "/payload/run/steps/*/input/prompt_hash"];

//! The roles of the digests in run packs, and the link that follows from names.

use crate::artifact::{Relation, Role, group, relation};

pub(super) const STEP: Role = Role { name: "step", group: group::STEP, unit: "step", relation: None };
pub(super) const PROMPT: Role = Role { name: "prompt", group: group::PROMPT, unit: "step", relation: None };
pub(super) const RESPONSE: Role =
    Role { name: "response", group: group::RESPONSE, unit: "step", relation: None };

/// The part of the run before this one.
pub(super) const PREVIOUS: Role = Role {
    name: "previous",
    group: group::PART,
    unit: "",
    relation: Some(Relation { name: relation::CONTINUES, dangles: true }),
};

/// The location of the core hash of the part before.
pub(super) const PREVIOUS_AT: &str = "/metadata/gateway/previous";

pub(super) const DERIVED_FROM: Relation = Relation { name: "derived-from", dangles: true };

/// The locations of digests that are indexed as the core hash, as that of another part, as step hashes and as prompts.
pub(super) const INDEXED: [&str; 4] =
    ["/checksum", PREVIOUS_AT, "/payload/run/steps/*/hash", "/payload/run/steps/*/input/prompt_hash"];

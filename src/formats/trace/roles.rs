//! The roles of the digests in traces, and the links that follow from them.

use crate::artifact::{REFERS_TO, Relation, Role, group};

pub(super) const RECORD: Role =
    Role { name: "record", group: group::RECORD, unit: "record", relation: Some(EXTENDS) };

/// A trace extends another one whose last record is also one of its own. Most records are not the last record of any
/// trace.
pub(super) const EXTENDS: Relation = Relation { name: "extends", dangles: false };

pub(super) const RECORDS_RUN: Relation = Relation { name: "records-run", dangles: true };

const fn role(name: &'static str, group: &'static str) -> Role {
    Role { name, group, unit: "record", relation: None }
}

/// The role of a content that is not in the trace, and that the vault can have as an artifact of its own.
const fn role_of_content(name: &'static str, group: &'static str) -> Role {
    Role { relation: Some(REFERS_TO), ..role(name, group) }
}

/// The group of the states between steps.
pub(super) const STATES: &str = "state";

/// The group of the problem specification of a run.
pub(super) const PROBLEM_SPEC: &str = "problem_spec";

/// Members of records and results that may be digests, with the roles they are indexed under.
pub(super) const HEADER_ROLES: [(&str, Role); 2] = [
    ("initial_state_hash", role_of_content("initial_state", STATES)),
    ("problem_spec_hash", role_of_content("problem_spec", PROBLEM_SPEC)),
];
pub(super) const STEP_ROLES: [(&str, Role); 2] = [
    ("state_before_hash", role_of_content("state_before", STATES)),
    ("state_after_hash", role_of_content("state_after", STATES)),
];
pub(super) const CONTROL_ROLES: [(&str, Role); 1] = [("state_hash", role_of_content("state", STATES))];
pub(super) const RESULT_ROLES: [(&str, Role); 2] =
    [("input_hash", role_of_content("input", "input")), ("output_hash", role_of_content("output", "output"))];

/// Members of records that contain state hashes.
pub(super) const OF_STATES: [&str; 4] =
    ["initial_state_hash", "state_before_hash", "state_after_hash", "state_hash"];

/// The locations of digests that are indexed under these roles if they are written with the prefix `sha256:`.
pub(super) const INDEXED: [&str; 7] = [
    "/initial_state_hash",
    "/problem_spec_hash",
    "/state_before_hash",
    "/state_after_hash",
    "/state_hash",
    "/result/input_hash",
    "/result/output_hash",
];

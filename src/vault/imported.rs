//! The rules of files of other programs, and what is reported about their values. What reads the files is in another room;
//! the rules are listed with all others.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::validation::{RuleInfo, Severity};

/// A value of a file that was not imported as it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ImportedValue {
    /// What was done.
    pub outcome: ValueOutcome,
    /// The file.
    pub file: String,
    /// The location in the file.
    pub location: String,
    /// The value, and the reason why it is not mapped, or what is recorded instead.
    pub reason: String,
}

/// What was done with a value of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ValueOutcome {
    /// It has no counterpart in an artifact, and was left out.
    NotMapped,
    /// The file does not state it: it is recorded without it, or with another value.
    Assumed,
}

const fn info(id: &'static str, summary: &'static str, why: &'static str) -> RuleInfo {
    RuleInfo { id, severity: Severity::Error, summary, why }
}

/// The rule that the text of a file is well-formed.
pub(crate) const SYNTAX: RuleInfo = info(
    "IM1",
    "A file to import is a well-formed text or archive.",
    "Cassettes are YAML 1.2 or JSON, spans and logs JSON, requests and responses JSON Lines; logs can be zip files. A text \
     that two programs could read differently is not imported: keys are unique, and all bytes are UTF-8.",
);

/// The rule that a file keeps the limits.
pub(crate) const LIMITS: RuleInfo = info(
    "IM2",
    "A file to import keeps the limits of size and depth.",
    "The limits also hold for what is decompressed: archives, and bodies with a content encoding.",
);

/// The rule that a file has the members of its format.
pub(crate) const SHAPE: RuleInfo = info(
    "IM3",
    "A file to import has the members of its format, of the right types.",
    "A file in which a required member is missing or has another type is damaged, or of a version that is not known. \
     Nothing of it is imported. Members that are not known are listed.",
);

/// The rules of files to import.
pub const RULES: [RuleInfo; 3] = [SYNTAX, LIMITS, SHAPE];

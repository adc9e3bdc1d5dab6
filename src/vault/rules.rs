//! Lists rules, among them those of files of other programs, and describes the values that an import leaves out.

use std::convert::Infallible;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{Vault, add, audit, bundle};
use crate::artifact::document;
use crate::formats;
use crate::validation::{RuleInfo, Severity};

/// A request for rules.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RulesRequest {
    /// The id of a rule, ignoring case: only this one.
    pub id: Option<String>,
}

/// Rules.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RulesAnswer {
    /// The rules: those of all documents, of each kind, of vaults, of audits, of bundles and of files of other programs.
    pub rules: Vec<RuleSummary>,
}

/// A rule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RuleSummary {
    /// The id of the kind that the rule is for; `document` for all, `vault` for artifacts added to one, `audit` for audits
    /// of contracts, `bundle` for bundles, `import` for files of other programs.
    pub kind: String,
    /// The id, such as `MI7`.
    pub id: String,
    /// The consequence of breaking it.
    pub severity: Severity,
    /// The requirement, in one line.
    pub summary: String,
    /// The reason, and how to fix a violation.
    pub why: String,
}

impl RulesRequest {
    /// Runs the operation.
    ///
    /// # Errors
    /// None.
    #[expect(clippy::must_use_candidate, reason = "the result must be used")]
    pub fn run(&self, _: &Vault) -> Result<RulesAnswer, Infallible> {
        Ok(self.answer())
    }

    /// Returns the answer, which is the same for every vault.
    #[must_use]
    pub fn answer(&self) -> RulesAnswer {
        let mut rules = all_rules();
        if let Some(id) = &self.id {
            rules.retain(|rule| rule.id.eq_ignore_ascii_case(id));
        }
        RulesAnswer { rules }
    }
}

fn all_rules() -> Vec<RuleSummary> {
    let of = |kind: &'static str| move |rule| RuleSummary::new(kind, rule);
    let mut rules: Vec<RuleSummary> = document::rules().into_iter().map(of("document")).collect();
    for kind in formats::ALL {
        rules.extend(kind.rules().into_iter().map(of(kind.name())));
    }
    rules.extend(add::RULES.into_iter().map(of("vault")));
    rules.extend(audit::RULES.into_iter().map(of("audit")));
    rules.extend(bundle::RULES.into_iter().map(of("bundle")));
    rules.extend(RULES.into_iter().map(of("import")));
    rules
}

impl RuleSummary {
    fn new(kind: &str, rule: RuleInfo) -> Self {
        let RuleInfo { id, severity, summary, why } = rule;
        Self {
            kind: kind.to_owned(),
            id: id.to_owned(),
            severity,
            summary: summary.to_owned(),
            why: why.to_owned(),
        }
    }
}

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

/// The rule that the text of a file is well-formed.
pub(crate) const SYNTAX: RuleInfo = RuleInfo::error(
    "IM1",
    "A file to import is a well-formed text or archive.",
    "Cassettes are YAML 1.2 or JSON, spans and logs JSON, requests and responses JSON Lines; logs can be zip files. A text \
     that two programs could read differently is not imported: keys are unique, and all bytes are UTF-8.",
);

/// The rule that a file keeps the limits.
pub(crate) const LIMITS: RuleInfo = RuleInfo::error(
    "IM2",
    "A file to import keeps the limits of size and depth.",
    "The limits also hold for what is decompressed: archives, and bodies with a content encoding.",
);

/// The rule that a file has the members of its format.
pub(crate) const SHAPE: RuleInfo = RuleInfo::error(
    "IM3",
    "A file to import has the members of its format, of the right types.",
    "A file in which a required member is missing or has another type is damaged, or of a version that is not known. \
     Nothing of it is imported. Members that are not known are listed.",
);

/// The rules of files to import.
pub const RULES: [RuleInfo; 3] = [SYNTAX, LIMITS, SHAPE];

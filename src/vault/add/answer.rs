//! The result of examining and adding a document.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::report::{DocumentOutcome, DocumentResult};
use crate::artifact::Kind;
use crate::digest::{CoreHash, hex};
use crate::secrets::SecretMatch;
use crate::validation::Violation;

/// What was done with a document that was added.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AddedDocument {
    /// What was done.
    pub outcome: DocumentOutcome,
    /// Whether the time at which it was seen was recorded, if it was stored before and was not added again.
    pub recorded: bool,
    /// The document.
    #[serde(flatten)]
    pub document: ExaminedDocument,
}

/// A document that was examined and not added.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CheckedDocument {
    /// Whether it would be admitted.
    pub ok: bool,
    /// The document.
    #[serde(flatten)]
    pub document: ExaminedDocument,
}

/// What was found out about a document.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ExaminedDocument {
    /// The name of the document.
    pub path: String,
    /// The bytes of the name, as hex digits, if it is a path that is not UTF-8.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path_bytes: Option<String>,
    /// The id of its kind, if it was recognized.
    pub kind: Option<String>,
    /// The artifact, unless it was rejected. It is also stated if it was rejected because it was removed before.
    pub core_hash: Option<CoreHash>,
    /// The artifact that the document continues, if it is the rest of one: the stored artifact consists of both.
    pub continues: Option<CoreHash>,
    /// The files beside it that it refers to and that are stored with it.
    pub attachments: Vec<CoreHash>,
    /// What looks like a secret in it, if that was looked for; missing if nothing does.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub secrets: Vec<SecretMatch>,
    /// The result of checking its signature, if it is signed: `verified` or `unchecked`.
    pub signature: Option<String>,
    /// The key id that it states.
    pub key_id: Option<String>,
    /// Its violations, including warnings.
    pub violations: Vec<Violation>,
    /// Number of further violations.
    pub violations_omitted: u64,
}

impl AddedDocument {
    /// Creates the data of an examined document.
    #[must_use]
    pub fn new(examined: &DocumentResult) -> Self {
        let recorded = examined.outcome != DocumentOutcome::PresentUnrecorded;
        Self {
            outcome: if recorded { examined.outcome } else { DocumentOutcome::Present },
            recorded,
            document: ExaminedDocument::new(examined),
        }
    }
}

impl CheckedDocument {
    /// Creates the data of an examined document.
    #[must_use]
    pub fn new(examined: &DocumentResult) -> Self {
        Self { ok: examined.outcome == DocumentOutcome::Verified, document: ExaminedDocument::new(examined) }
    }
}

impl ExaminedDocument {
    fn new(examined: &DocumentResult) -> Self {
        let signature = examined.signature.as_ref();
        Self {
            path: examined.path.clone(),
            path_bytes: examined.path_bytes.as_deref().map(hex),
            kind: examined.kind.map(Kind::name).map(str::to_owned),
            core_hash: examined.core,
            continues: examined.continues,
            attachments: examined.attachments.clone(),
            secrets: examined.secrets.clone(),
            signature: signature.map(|signature| signature.state.name().to_owned()),
            key_id: signature.and_then(|signature| signature.key_id.clone()),
            violations: examined.report.violations().to_vec(),
            violations_omitted: examined.report.omitted() as u64,
        }
    }

    /// Omits violations after the first `most`.
    pub fn limit_violations(&mut self, most: usize) {
        self.violations_omitted += self.violations.len().saturating_sub(most) as u64;
        self.violations.truncate(most);
    }
}

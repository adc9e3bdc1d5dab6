//! Reports about each document.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::examination::{
    ContinuingDocument, Examination, ExaminationResult, ExaminedItem, conflicting, removed,
};
use crate::artifact::{Admitted, Kind, SignatureName};
use crate::digest::CoreHash;
use crate::formats;
use crate::intake::{ArtifactSource, Rejection, SourceError};
use crate::secrets::SecretMatch;
use crate::storage::{Prepared, PutOutcome, PutResult};
use crate::validation::{Report, Violation};
use crate::vault::api::bytes_of;

/// What was done with a document.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DocumentOutcome {
    /// It is a new artifact and was stored.
    Added,
    /// It is a new byte form of an existing artifact and was stored.
    #[serde(rename = "capture")]
    NewCapture,
    /// It was stored before.
    Present,
    /// It was stored before, but its stored bytes were damaged or missing: they were restored from the document.
    Restored,
    /// It was stored before, and not recorded as seen again because another process held the write lock. Answers say so
    /// beside [`Present`](Self::Present).
    #[serde(skip)]
    PresentUnrecorded,
    /// It is a valid artifact; storing was not requested.
    #[serde(skip)]
    Verified,
    /// It breaks rules, or was removed before; nothing was stored.
    Rejected,
    /// It is not an artifact.
    #[default]
    Skipped,
}

/// A document that was examined, with what was found out about it and what was done with it.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
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
    #[schema(value_type = Option<String>)]
    pub signature: Option<SignatureName>,
    /// The key id that it states.
    pub key_id: Option<String>,
    /// Its violations, including warnings.
    pub violations: Vec<Violation>,
    /// Number of further violations.
    pub violations_omitted: u64,
    /// The outcome.
    #[serde(skip)]
    pub outcome: DocumentOutcome,
    /// Its size in bytes; 0 if it was not admitted.
    #[serde(skip)]
    pub size: u64,
    /// Its original, if it was admitted and read from a file or directory.
    #[serde(skip)]
    pub original: Option<ArtifactSource>,
}

/// A receiver of progress events.
pub trait AddMonitor {
    /// Called when the documents read from these locations are durably stored, before the calls of
    /// [`AddMonitor::examined`] for them, which are in the same order. What the vault returns for them has been compared
    /// with them, byte for byte, if [`AddMonitor::removes_originals`].
    fn stored(&mut self, originals: &[&ArtifactSource]) {
        let _ = originals;
    }

    /// Called when the input with this number, from 0, is finished, directly before [`AddMonitor::examined`] or
    /// [`AddMonitor::unreadable`].
    fn done(&mut self, input: usize) {
        let _ = input;
    }

    /// Called when a document is finished and, if it is to be stored, durable. Calls are in the order of the inputs,
    /// except for documents that continue a later one, which come last.
    fn examined(&mut self, examined: &ExaminedDocument);

    /// Called when an input could not be read.
    fn unreadable(&mut self, error: &SourceError);

    /// Returns whether originals are removed once they are [`stored`](AddMonitor::stored), so that the vault has the only
    /// copy. Otherwise, new bytes are not read back.
    fn removes_originals(&self) -> bool {
        false
    }

    /// Called when adding ends with an error, with the counts of what was reported before, all of which is stored.
    fn failed(&mut self, summary: &Summary) {
        let _ = summary;
    }

    /// Returns whether to stop at the first document that breaks rules or cannot be read. Everything before it is
    /// stored, and nothing after it.
    fn stops_at_bad(&self) -> bool {
        false
    }

    /// Returns whether existing artifacts may be reported as [`DocumentOutcome::PresentUnrecorded`] if other processes
    /// prevent writing. Otherwise adding fails in that case, and can be retried.
    fn accepts_unrecorded(&self) -> bool {
        true
    }
}

/// The number of documents by outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// New artifacts.
    pub added: u64,
    /// New byte forms of existing artifacts.
    pub new_captures: u64,
    /// Documents that already existed.
    pub present: u64,
    /// Documents that already existed and whose damaged or missing bytes were restored.
    pub restored: u64,
    /// Documents that already existed and could not be recorded as seen again.
    pub unrecorded: u64,
    /// Valid artifacts, when storing was not requested.
    pub verified: u64,
    /// Documents that break rules or were removed before.
    pub rejected: u64,
    /// Documents that are not artifacts.
    pub skipped: u64,
    /// Inputs that could not be read.
    pub unreadable: u64,
    /// Documents that were not processed because of an earlier failure.
    pub left: u64,
    /// Total size of the artifacts in bytes.
    pub bytes: u64,
}

impl Summary {
    /// Adds a document to the counts.
    pub fn count(&mut self, examined: &ExaminedDocument) {
        self.bytes += examined.size;
        *match examined.outcome {
            DocumentOutcome::Added => &mut self.added,
            DocumentOutcome::NewCapture => &mut self.new_captures,
            DocumentOutcome::Present => &mut self.present,
            DocumentOutcome::Restored => &mut self.restored,
            DocumentOutcome::PresentUnrecorded => &mut self.unrecorded,
            DocumentOutcome::Verified => &mut self.verified,
            DocumentOutcome::Rejected => &mut self.rejected,
            DocumentOutcome::Skipped => &mut self.skipped,
        } += 1;
    }
}

/// A counter that also reports to the monitor.
pub(super) struct AddReporter<'m> {
    pub(super) monitor: &'m mut dyn AddMonitor,
    pub(super) summary: Summary,
}

impl<'m> AddReporter<'m> {
    pub(super) fn new(monitor: &'m mut dyn AddMonitor) -> Self {
        Self { monitor, summary: Summary::default() }
    }

    /// Reports `item`; `admission` applies if it was admitted.
    pub(super) fn report<A: Into<ExaminedDocument>>(
        &mut self,
        number: usize,
        item: ExaminedItem<A>,
        admission: impl FnOnce() -> Result<DocumentOutcome, Report>,
    ) {
        self.monitor.done(number);
        match item {
            Ok(examination) => {
                let examined = examination.into_examined(admission);
                self.summary.count(&examined);
                self.monitor.examined(&examined);
            }
            Err(error) => {
                self.summary.unreadable += 1;
                self.monitor.unreadable(&error);
            }
        }
    }
}

/// Returns the outcome for an admitted artifact, or why it was refused.
pub(super) fn outcome_of(put: PutResult) -> Result<DocumentOutcome, Report> {
    match put.outcome {
        PutOutcome::Added => Ok(DocumentOutcome::Added),
        PutOutcome::NewCapture => Ok(DocumentOutcome::NewCapture),
        PutOutcome::Present => Ok(DocumentOutcome::Present),
        PutOutcome::Restored => Ok(DocumentOutcome::Restored),
        PutOutcome::Refused(tombstones) => Err(removed(put.core, &tombstones)),
        PutOutcome::KindConflict(conflict) => Err(conflicting(put.core, &conflict)),
    }
}

impl ExaminedDocument {
    /// Describes an admitted artifact.
    fn admitted<'a>(admitted: &Admitted, embedded: impl Iterator<Item = &'a Admitted>) -> Self {
        let attachments =
            embedded.filter(|embedded| embedded.kind().info().takes_any_bytes).map(Admitted::core);
        let signature = admitted.signature();
        Self {
            core_hash: Some(admitted.core()),
            attachments: attachments.collect(),
            secrets: admitted.secrets().to_vec(),
            signature: signature.map(|signature| Some(signature.state).into()),
            key_id: signature.and_then(|signature| signature.key_id.clone()),
            size: admitted.size(),
            ..Self::reported(Some(admitted.kind()), admitted.report())
        }
    }

    fn reported(kind: Option<Kind>, report: &Report) -> Self {
        Self {
            kind: kind.map(|kind| kind.name().to_owned()),
            violations: report.violations().to_vec(),
            violations_omitted: report.omitted() as u64,
            ..Self::default()
        }
    }

    /// Returns an admitted artifact as one that was refused.
    fn refused(self, report: &Report) -> Self {
        let Self { kind, core_hash, signature, key_id, .. } = self;
        let outcome = DocumentOutcome::Rejected;
        Self { kind, core_hash, signature, key_id, outcome, ..Self::reported(None, report) }
    }

    /// Returns its kind, if it was recognized.
    #[must_use]
    pub fn known_kind(&self) -> Option<Kind> {
        self.kind.as_deref().and_then(formats::named)
    }

    /// Omits violations after the first `most`.
    pub fn limit_violations(&mut self, most: usize) {
        self.violations_omitted += self.violations.len().saturating_sub(most) as u64;
        self.violations.truncate(most);
    }
}

impl From<Admitted> for ExaminedDocument {
    fn from(admitted: Admitted) -> Self {
        Self::admitted(&admitted, admitted.embedded().iter())
    }
}

impl From<Prepared> for ExaminedDocument {
    fn from(prepared: Prepared) -> Self {
        Self::admitted(prepared.admitted(), prepared.embedded().iter().map(Prepared::admitted))
    }
}

impl<A: Into<ExaminedDocument>> Examination<A> {
    fn into_examined(self, admission: impl FnOnce() -> Result<DocumentOutcome, Report>) -> ExaminedDocument {
        let document = match self.verdict {
            ExaminationResult::Admitted(admitted) => match admission() {
                Ok(outcome) => ExaminedDocument { outcome, ..admitted.into() },
                Err(report) => admitted.into().refused(&report),
            },
            ExaminationResult::Rejected(Rejection { kind, report, .. })
            | ExaminationResult::Rest(ContinuingDocument {
                rejection: Rejection { kind, report, .. }, ..
            }) => ExaminedDocument {
                outcome: DocumentOutcome::Rejected,
                ..ExaminedDocument::reported(kind, &report)
            },
            ExaminationResult::NoArtifact | ExaminationResult::End(_) => ExaminedDocument::default(),
        };
        ExaminedDocument {
            path: self.path.to_string_lossy().into_owned(),
            path_bytes: bytes_of(&self.path),
            continues: self.continues,
            original: self.original,
            ..document
        }
    }
}

/// What was done with a document that was added.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
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
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct CheckedDocument {
    /// Whether it would be admitted.
    pub ok: bool,
    /// The document.
    #[serde(flatten)]
    pub document: ExaminedDocument,
}

impl AddedDocument {
    /// Creates the data of a document.
    #[must_use]
    pub fn new(document: ExaminedDocument) -> Self {
        let recorded = document.outcome != DocumentOutcome::PresentUnrecorded;
        let outcome = if recorded { document.outcome } else { DocumentOutcome::Present };
        Self { outcome, recorded, document }
    }
}

impl CheckedDocument {
    /// Creates the data of a document.
    #[must_use]
    pub fn new(document: ExaminedDocument) -> Self {
        Self { ok: document.outcome == DocumentOutcome::Verified, document }
    }
}

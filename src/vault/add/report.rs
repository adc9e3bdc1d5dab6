//! Reports about each document.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::examination::{
    ContinuingDocument, Examination, ExaminationResult, ExaminedItem, conflicting, removed,
};
use crate::artifact::{Admitted, Kind, Signature};
use crate::digest::{CoreHash, hex};
use crate::intake::{ArtifactSource, Rejection, SourceError};
use crate::secrets::SecretMatch;
use crate::storage::{Prepared, PutOutcome, PutResult};
use crate::validation::{Report, Violation};

/// What was done with a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
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
    Skipped,
}

/// A document and its outcome.
#[derive(Debug)]
pub struct DocumentResult {
    /// The name of the document.
    pub path: String,
    /// The bytes of the name, if it is not UTF-8: `path` then contains replacement characters.
    pub path_bytes: Option<Vec<u8>>,
    /// Its kind, if it was recognized.
    pub kind: Option<Kind>,
    /// The outcome.
    pub outcome: DocumentOutcome,
    /// The core hash of the artifact.
    pub core: Option<CoreHash>,
    /// The artifact that the document continues, if it is the rest of one: the stored artifact consists of both.
    pub continues: Option<CoreHash>,
    /// The files beside it that it refers to and that are stored with it, by core hash.
    pub attachments: Vec<CoreHash>,
    /// Its size in bytes; 0 if it was not admitted.
    pub size: u64,
    /// Its violations, including warnings.
    pub report: Report,
    /// Text that looks like a secret in it, and in the files that are stored with it, if that was to be reported. If it
    /// was rejected for that, they are in the report.
    pub secrets: Vec<SecretMatch>,
    /// The result of checking its signature; `None` if it is not signed or was not admitted.
    pub signature: Option<Signature>,
    /// Its original, if it was admitted and read from a file or directory.
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
    fn examined(&mut self, examined: &DocumentResult);

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
    pub fn count(&mut self, examined: &DocumentResult) {
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
    pub(super) fn report<A: Into<ReportedArtifact>>(
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

/// The reported properties of an artifact.
pub(super) struct ReportedArtifact {
    kind: Kind,
    core: CoreHash,
    attachments: Vec<CoreHash>,
    size: u64,
    report: Report,
    secrets: Vec<SecretMatch>,
    signature: Option<Signature>,
}

impl ReportedArtifact {
    fn new<'a>(admitted: &Admitted, embedded: impl Iterator<Item = &'a Admitted>) -> Self {
        let attachments =
            embedded.filter(|embedded| embedded.kind().info().takes_any_bytes).map(Admitted::core);
        Self {
            kind: admitted.kind(),
            core: admitted.core(),
            attachments: attachments.collect(),
            size: admitted.size(),
            report: admitted.report().clone(),
            secrets: admitted.secrets().to_vec(),
            signature: admitted.signature().cloned(),
        }
    }
}

impl From<Admitted> for ReportedArtifact {
    fn from(admitted: Admitted) -> Self {
        Self::new(&admitted, admitted.embedded().iter())
    }
}

impl From<Prepared> for ReportedArtifact {
    fn from(prepared: Prepared) -> Self {
        Self::new(prepared.admitted(), prepared.embedded().iter().map(Prepared::admitted))
    }
}

impl<A: Into<ReportedArtifact>> Examination<A> {
    fn into_examined(self, admission: impl FnOnce() -> Result<DocumentOutcome, Report>) -> DocumentResult {
        let (path, path_bytes) = match self.path.into_string() {
            Ok(path) => (path, None),
            Err(raw) => (raw.to_string_lossy().into_owned(), Some(raw.into_encoded_bytes())),
        };
        let mut result = DocumentResult {
            path,
            path_bytes,
            kind: None,
            outcome: DocumentOutcome::Skipped,
            core: None,
            continues: self.continues,
            attachments: Vec::new(),
            size: 0,
            report: Report::default(),
            secrets: Vec::new(),
            signature: None,
            original: self.original,
        };
        match self.verdict {
            ExaminationResult::Admitted(admitted) => {
                let ReportedArtifact { kind, core, attachments, size, report, secrets, signature } =
                    admitted.into();
                (result.kind, result.core, result.signature) = (Some(kind), Some(core), signature);
                match admission() {
                    Ok(outcome) => {
                        (result.outcome, result.size, result.report) = (outcome, size, report);
                        (result.attachments, result.secrets) = (attachments, secrets);
                    }
                    Err(report) => {
                        (result.outcome, result.report) = (DocumentOutcome::Rejected, report);
                    }
                }
            }
            ExaminationResult::Rejected(Rejection { kind, report, .. })
            | ExaminationResult::Rest(ContinuingDocument {
                rejection: Rejection { kind, report, .. }, ..
            }) => {
                (result.kind, result.outcome, result.report) = (kind, DocumentOutcome::Rejected, report);
            }
            ExaminationResult::NoArtifact | ExaminationResult::End(_) => {}
        }
        result
    }
}

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

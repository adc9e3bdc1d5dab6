//! Adding through a vault: a single document, or many inputs.

use super::add;
use super::annotations::{CommonAnnotations, SourcePaths};
use super::batch::{Recorded, read_back_stored};
use super::continuation_joiner::joined;
use super::examination::InputResult;
use super::report::{AddMonitor, Summary};
use super::rules::{conflicting, removed, unreadable};
use crate::artifact::Admitted;
use crate::clock;
use crate::intake::{self, DeclaredCapture, ExamineOptions, Inputs};
use crate::storage::{self, ErrorKind, PutOptions, PutOutcome, PutResult, RemovedPolicy, StorageError};
use crate::validation::{Report, Violation};
use crate::vault::handle::Vault;

/// The reason that a document was not added.
#[derive(Debug, thiserror::Error)]
pub enum AddError {
    /// It violates rules.
    #[error("the document was rejected: {}", first_of(.0))]
    Rejected(Report),
    /// A store error: the vault cannot be read or written.
    #[error(transparent)]
    Store(#[from] StorageError),
}

fn first_of(report: &Report) -> String {
    let Some(Violation { rule_id, path, message, .. }) = report.violations().first() else {
        return String::new();
    };
    format!(
        "{path}: {message} (rule {rule_id}); {} violations in total",
        report.violations().len() + report.omitted()
    )
}

impl Vault {
    /// Adds one document. It is durable when this function returns. A continuation of a document in the vault is joined
    /// with that document and added as one.
    ///
    /// # Errors
    /// Returns [`AddError::Rejected`] with all violations, also if the artifact was removed before, and
    /// [`AddError::Store`] if the vault cannot be read or written.
    pub fn add_document(&self, document: Vec<u8>, options: &ExamineOptions) -> Result<PutResult, AddError> {
        let admitted = match intake::examine_document(document, "", options) {
            Ok(admitted) => admitted,
            Err(rejection) => joined(&*self.storage, rejection, options)?
                .map_err(|rejection| AddError::Rejected(rejection.report))?,
        };
        self.add_admitted(admitted, options)
    }

    /// Adds bytes as an attachment.
    #[cfg_attr(
        not(feature = "gateway"),
        expect(dead_code, reason = "only gateways keep bodies as attachments")
    )]
    pub(crate) fn add_attachment(
        &self,
        bytes: Vec<u8>,
        options: &ExamineOptions,
    ) -> Result<PutResult, AddError> {
        let declared = DeclaredCapture::attachment("an attachment".into(), bytes);
        let admitted = intake::examine_declared(declared, options)
            .map_err(|rejection| AddError::Rejected(rejection.report))?;
        self.add_admitted(admitted, options)
    }

    fn add_admitted(&self, admitted: Admitted, options: &ExamineOptions) -> Result<PutResult, AddError> {
        let policy = if options.allow_removed { RemovedPolicy::Readmit } else { RemovedPolicy::Refuse };
        let prepared = self.storage.preparer()?.prepare(admitted);
        let options = PutOptions { policy, at: clock::now(), busy_timeout: storage::BUSY_TIMEOUT };
        let mut stored = self.storage.put(&[&prepared], &options)?;
        let defects = read_back_stored(&*self.storage, &[&prepared], &mut stored, false)?;
        if let Some(defect) = defects.into_iter().flatten().next() {
            return Err(AddError::Rejected(unreadable(&defect)));
        }
        // One outcome for each artifact.
        let put = stored.pop();
        let put = put.ok_or_else(|| StorageError::new(ErrorKind::Database, "the outcome is missing"))?;
        match &put.outcome {
            PutOutcome::Refused(tombstones) => Err(AddError::Rejected(removed(put.core, tombstones))),
            PutOutcome::KindConflict(conflict) => Err(AddError::Rejected(conflicting(put.core, conflict))),
            _ => Ok(put),
        }
    }

    /// Adds every artifact in `inputs`; an invalid one does not stop the others. New captures are stored with the path or
    /// name of their input, unless the options leave it out.
    ///
    /// # Errors
    /// Returns an error if the vault cannot be read or written. Everything already reported to the monitor is stored.
    pub fn add(
        &self,
        inputs: Inputs,
        options: &ExamineOptions,
        monitor: &mut dyn AddMonitor,
    ) -> Result<Summary, StorageError> {
        self.add_items(inputs, options, monitor)
    }

    /// Like [`Vault::add`], for items from another source, such as [`PollingWatcher`](intake::PollingWatcher).
    ///
    /// # Errors
    /// Same as [`Vault::add`].
    pub fn add_items(
        &self,
        items: impl Iterator<Item = InputResult> + Send,
        options: &ExamineOptions,
        monitor: &mut dyn AddMonitor,
    ) -> Result<Summary, StorageError> {
        self.add_annotated(items, options, &CommonAnnotations::NONE, monitor)
    }

    /// Like [`Vault::add_items`], and sets `annotations` on everything that is added or seen again. An artifact has them
    /// when the monitor receives it.
    ///
    /// # Errors
    /// Returns an error of the kind [`Invalid`](crate::storage::ErrorKind::Invalid) if an annotation is not valid or an
    /// artifact would have too many labels; otherwise the same as [`Vault::add`].
    pub fn add_annotated(
        &self,
        items: impl Iterator<Item = InputResult> + Send,
        options: &ExamineOptions,
        annotations: &CommonAnnotations,
        monitor: &mut dyn AddMonitor,
    ) -> Result<Summary, StorageError> {
        let without = options.without_source_path;
        let source_paths = if without { SourcePaths::LeftOut } else { SourcePaths::OfInputs };
        add(&*self.storage, items, options, Recorded { annotations, source_paths }, monitor)
    }
}

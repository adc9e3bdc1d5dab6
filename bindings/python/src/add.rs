//! Adding documents and files.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use pyo3::buffer::PyBuffer;
use pyo3::prelude::*;
use runvault::Vault;
use runvault::formats;
use runvault::intake::{ExamineOptions, Input, Inputs, SourceError};
use runvault::vault::add::{AddMonitor, AddedDocument, CommonAnnotations, DocumentOutcome, ExaminedDocument};

use crate::errors::Failure;
use crate::interrupt::{self, OnInterrupt};

/// A path, or a document.
#[derive(FromPyObject)]
pub(crate) enum Document {
    /// Bytes of a document, and its name.
    Bytes(PyBuffer<u8>, String),
    /// A file or directory.
    Path(PathBuf),
}

/// How documents are examined.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct AddOptions {
    kind: Option<String>,
    allow_removed: bool,
    strict: bool,
    source_path: bool,
}

/// Adds documents, and returns what was done with each, as JSON.
///
/// # Errors
/// Returns an error if the vault cannot be read or written, an input cannot be read, or a signal interrupted it. What was
/// stored before that stays.
pub(crate) fn run(
    py: Python<'_>,
    vault: Arc<Vault>,
    inputs: Vec<Document>,
    (labels, note): (BTreeMap<String, String>, Option<String>),
    options: AddOptions,
) -> PyResult<Vec<String>> {
    let input = |document| match document {
        Document::Path(path) => Ok(Input::Path(path)),
        Document::Bytes(buffer, name) => buffer.to_vec(py).map(|bytes| Input::Document { name, bytes }),
    };
    let inputs: Vec<Input> = inputs.into_iter().map(input).collect::<PyResult<_>>()?;
    let kind = options.kind.map(|name| {
        formats::named(&name).ok_or_else(|| Failure::invalid(format!("there is no kind {name:?}")))
    });
    let kind = kind.transpose()?;
    let examine = ExamineOptions {
        kind,
        allow_removed: options.allow_removed,
        strict: options.strict,
        without_source_path: !options.source_path,
        ..ExamineOptions::default()
    };
    let stop = Arc::new(AtomicBool::new(false));
    let stopped = Arc::clone(&stop);
    let work = move || -> Result<Collected, Failure> {
        let mut collected = Collected::default();
        let inputs = Inputs::new(inputs).with_kind(kind).take_while(|_| !stopped.load(Ordering::Relaxed));
        let annotations = CommonAnnotations { labels, note };
        vault
            .add_annotated(inputs, &examine, &annotations, &mut collected)
            .map_err(|error| Failure::of(&error))?;
        Ok(collected)
    };
    let collected = interrupt::run(py, &OnInterrupt::Complete(stop), work)??;
    match collected.failure {
        Some(failure) => Err(failure.into()),
        None => collected.documents.iter().map(crate::errors::to_json).collect(),
    }
}

/// What was done with the documents.
#[derive(Default)]
struct Collected {
    documents: Vec<AddedDocument>,
    /// The first input that could not be read.
    failure: Option<Failure>,
}

impl AddMonitor for Collected {
    fn examined(&mut self, examined: &ExaminedDocument) {
        if examined.outcome != DocumentOutcome::Skipped {
            self.documents.push(AddedDocument::new(examined.clone()));
        }
    }

    fn unreadable(&mut self, error: &SourceError) {
        self.failure.get_or_insert_with(|| Failure::new("UnreadableError", "io", error.to_string()));
    }
}

//! Documents that others may continue, where none are stored.

use std::collections::HashMap;

use super::continuation_joiner::FirstPart;
use crate::digest::CoreHash;
use crate::intake::{ArtifactSource, DocumentVerdict, ExamineOptions, InputLocation};

/// The documents so far that later ones may continue.
pub(super) struct GrowingDocuments<'o> {
    documents: HashMap<CoreHash, GrowingDocument>,
    options: &'o ExamineOptions,
    /// Maximum total size in bytes of the documents that are kept, because they are not whole files.
    limit: usize,
}

/// The location of a document, or the document.
enum GrowingDocument {
    Place(InputLocation),
    Bytes(Vec<u8>),
}

impl<'o> GrowingDocuments<'o> {
    pub(super) fn new(options: &'o ExamineOptions, limit: usize) -> Self {
        Self { documents: HashMap::new(), options, limit }
    }

    /// Adds a document with its bytes. If it is a whole file, it is read again when it is needed.
    pub(super) fn add(&mut self, core: CoreHash, whole_file: Option<&ArtifactSource>, bytes: &[u8]) {
        let document = if let Some(place) = whole_file.and_then(ArtifactSource::place) {
            GrowingDocument::Place(place)
        } else {
            let Some(rest) = self.limit.checked_sub(bytes.len()) else { return };
            self.limit = rest;
            GrowingDocument::Bytes(bytes.to_vec())
        };
        self.documents.insert(core, document);
    }

    /// Returns the document with this core hash.
    pub(super) fn get(&self, core: CoreHash) -> Option<FirstPart> {
        let bytes = match self.documents.get(&core)? {
            GrowingDocument::Bytes(bytes) => bytes.clone(),
            GrowingDocument::Place(place) => self.read_again(place.clone(), core)?,
        };
        Some(FirstPart::new(core, bytes))
    }

    /// Returns the document at `place` if it still has this core hash.
    fn read_again(&self, place: InputLocation, core: CoreHash) -> Option<Vec<u8>> {
        let (verdict, _) = place.into_file()?.open().examine_in_place(self.options).ok()?;
        match verdict {
            DocumentVerdict::Admitted(admitted) if admitted.core() == core => {
                admitted.members().first().map(|member| member.bytes().to_vec())
            }
            _ => None,
        }
    }
}

//! `verify`, `add --dry-run` and `add` say the same of a document.

use std::cell::RefCell;

use runvault::Vault;
use runvault::digest::CoreHash;
use runvault::intake::{ExamineOptions, Input, Inputs, SourceError};
use runvault::validation::Violation;
use runvault::vault::add::{self, AddMonitor, DocumentOutcome, ExaminedDocument};
use runvault::vault::resolve::ResolveRequest;
use tempfile::TempDir;

use super::repair;

/// The number of documents after which a new vault is used, so that none grows without end.
const DOCUMENTS: usize = 500;

struct Place {
    vault: Vault,
    _directory: TempDir,
    documents: usize,
}

thread_local! {
    static PLACE: RefCell<Option<Place>> = const { RefCell::new(None) };
}

/// What was told of one document.
#[derive(Debug, Default, PartialEq)]
struct ReportedOutcomes {
    kind: Option<String>,
    core: Option<CoreHash>,
    size: u64,
    violations: Vec<Violation>,
    omitted: u64,
    outcome: Option<DocumentOutcome>,
}

impl AddMonitor for ReportedOutcomes {
    fn examined(&mut self, examined: &ExaminedDocument) {
        assert!(self.outcome.is_none(), "one document, one verdict");
        *self = Self {
            kind: examined.kind.clone(),
            core: examined.core_hash,
            size: examined.size,
            violations: examined.violations.clone(),
            omitted: examined.violations_omitted,
            outcome: Some(examined.outcome),
        };
    }

    fn unreadable(&mut self, error: &SourceError) {
        panic!("{error}");
    }
}

fn inputs(document: &[u8]) -> Inputs {
    Inputs::new(vec![Input::Document { name: "x".to_owned(), bytes: document.to_vec() }])
}

pub(super) fn verify_and_add(data: &[u8]) {
    PLACE.with_borrow_mut(|place| {
        if place.as_ref().is_none_or(|place| place.documents >= DOCUMENTS) {
            *place = None;
            let directory = tempfile::tempdir().unwrap();
            let vault = Vault::open_or_create(&directory.path().join("v.vault")).unwrap();
            *place = Some(Place { vault, _directory: directory, documents: 0 });
        }
        let Some(place) = place else { return };
        for document in repair::both(data, repair::recognized) {
            place.documents += 1;
            agree(&place.vault, &document);
        }
    });
}

fn agree(vault: &Vault, document: &[u8]) {
    let options = ExamineOptions::default();
    let (mut verified, mut previewed, mut added) =
        (ReportedOutcomes::default(), ReportedOutcomes::default(), ReportedOutcomes::default());
    add::verify(inputs(document), &options, &mut verified);
    add::dry_run(Some(&*vault.snapshot().unwrap()), inputs(document), &options, &mut previewed).unwrap();
    vault.add(inputs(document), &options, &mut added).unwrap();
    assert_eq!(previewed, added);
    let outcome = added.outcome.take();
    let stored = matches!(
        outcome,
        Some(DocumentOutcome::Added | DocumentOutcome::NewCapture | DocumentOutcome::Present)
    );
    assert_eq!(verified.outcome.take() == Some(DocumentOutcome::Verified), stored);
    assert_eq!(verified, added);
    if let Some(core) = added.core {
        let located = vault.locate(&core.0.into()).unwrap();
        vault.read_core(&located).unwrap();
        if outcome == Some(DocumentOutcome::Added) && added.kind.as_deref() != Some("pack") {
            // A document in another form is an attachment beside the artifact that it implies.
            let original = runvault::digest::Digest::from_content(document);
            let text = original.to_string();
            let original = ResolveRequest { text, any_artifact: true }.locate(vault).unwrap();
            assert_eq!(vault.read(&original).unwrap(), document);
        }
    }
}

//! Comparison of the search index with the documents.

use super::report::FsckReporter;
use crate::storage::check::finding::{Finding, INDEX_DIFFERS, Subject};
use crate::storage::{Capability, ErrorKind, Result, Storage};
use crate::vault::search;

/// Compares the index, if there is one, with the captures that it contains.
pub(super) fn check(storage: &dyn Storage, reporter: &mut FsckReporter<'_>) -> Result<()> {
    if !storage.has(Capability::FullText) {
        return Ok(());
    }
    let differences = match search::compare(storage, &mut |what, done, of| reporter.progress(what, done, of))
    {
        Ok(differences) => differences.unwrap_or_default(),
        // Other findings report the documents themselves.
        Err(error) if error.is_of_damaged_file() || error.kind() == ErrorKind::IndexDamaged => {
            let detail = format!("it cannot be compared with the artifacts: {}", error.cause());
            reporter.add(Finding::new(INDEX_DIFFERS, Subject::Search, detail));
            return Ok(());
        }
        Err(error) => return Err(error),
    };
    if differences.strays > 0 {
        let detail = format!("rows and words that belong to no artifact: {}", differences.strays);
        reporter.add(Finding::new(INDEX_DIFFERS, Subject::Search, detail));
    }
    if differences.unreachable > 0 {
        let detail = format!(
            "pages with words that lookups do not find, and entries that lead to wrong pages: {}",
            differences.unreachable
        );
        reporter.add(Finding::new(INDEX_DIFFERS, Subject::Search, detail));
    }
    if differences.undeletable > 0 {
        let detail = format!("rows whose words would stay after their removal: {}", differences.undeletable);
        reporter.add(Finding::new(INDEX_DIFFERS, Subject::Search, detail));
    }
    for core in differences.artifacts {
        let detail = format!("it does not match the documents of artifact {core}");
        reporter.add(Finding::new(INDEX_DIFFERS, Subject::Search, detail));
    }
    Ok(())
}

/// Rebuilds the index if there is one, complete or not.
pub(super) fn rebuild(storage: &dyn Storage) -> Result<()> {
    if has_index(storage)? {
        search::build(storage, &mut |_| {})?;
    }
    Ok(())
}

/// Returns whether there is any part of an index.
pub(super) fn has_index(storage: &dyn Storage) -> Result<bool> {
    Ok(storage.has(Capability::FullText) && storage.full_text()?.has_index_parts()?)
}

//! Comparison of the catalogs of a vault and its copy.

use super::outcome::{CopyError, CopyProgress};
use crate::digest::CoreHash;
use crate::storage::{ArtifactRecord, CaptureRecord, Filter, Order, Page, Snapshot};

/// The number of artifacts that are compared together.
const PAGE: usize = 500;

/// Compares everything in the catalogs that follows from the journal: artifacts, captures, annotations, manual links,
/// tombstones and the journal's end. Returns false if it was stopped.
pub(super) fn compare(
    source: &dyn Snapshot,
    copy: &dyn Snapshot,
    is_stopped: &dyn Fn() -> bool,
    progress: &mut dyn FnMut(CopyProgress),
) -> Result<bool, CopyError> {
    expect(source.journal_head()? == copy.journal_head()?, || "the ends of the journals differ".to_owned())?;
    let removals = source.tombstones(None, 0, usize::MAX)?;
    expect(removals == copy.tombstones(None, 0, usize::MAX)?, || "the removals differ".to_owned())?;
    let of = source.count(&Filter::default())?;
    expect(of == copy.count(&Filter::default())?, || "the numbers of artifacts differ".to_owned())?;
    let (mut page, mut artifacts) = (Page::first(PAGE), 0);
    loop {
        if is_stopped() {
            return Ok(false);
        }
        let found = source.find(&Filter::default(), Order::Core, &page)?;
        let records: Vec<ArtifactRecord> = found.items.into_iter().map(|hit| hit.artifact).collect();
        compare_artifacts(source, copy, &records)?;
        artifacts += records.len() as u64;
        progress(CopyProgress::Compared { artifacts, of });
        match found.next {
            Some(next) => page = Page { limit: PAGE, after: Some(next) },
            None => return Ok(true),
        }
    }
}

fn compare_artifacts(
    source: &dyn Snapshot,
    copy: &dyn Snapshot,
    records: &[ArtifactRecord],
) -> Result<(), CopyError> {
    let cores: Vec<CoreHash> = records.iter().map(|record| record.core).collect();
    let copied = copy.artifacts(&cores)?;
    let captures = source.captures(&cores)?;
    for ((record, copied), captures) in records.iter().zip(copied).zip(&captures) {
        let core = record.core;
        let Some(copied) = copied else {
            return Err(CopyError::Differs(format!("{core} is not in the copy")));
        };
        // An artifact whose captures were lost and added again may have either time.
        let is_again = captures.iter().any(|capture| capture.added_at == record.added_at);
        let added_at = if is_again { copied.added_at } else { record.added_at };
        // Positions of additions are only comparable within one vault.
        let expected = ArtifactRecord { addition: copied.addition, added_at, ..record.clone() };
        expect(expected == copied, || format!("the kind, the times or the position of {core} differ"))?;
    }
    for ((core, captures), copied) in cores.iter().zip(captures).zip(copy.captures(&cores)?) {
        let is_same = recorded(captures) == recorded(copied);
        expect(is_same, || format!("the captures of {core} differ"))?;
    }
    let annotations = source.annotations(&cores)?.into_iter().zip(copy.annotations(&cores)?);
    for (core, (annotations, copied)) in cores.iter().zip(annotations) {
        expect(annotations == copied, || format!("the tags, notes, pins or labels of {core} differ"))?;
    }
    let links = source.manual_links(&cores)?.into_iter().zip(copy.manual_links(&cores)?);
    for (core, (links, copied)) in cores.iter().zip(links) {
        expect(links == copied, || format!("the manual links of {core} differ"))?;
    }
    Ok(())
}

/// Returns captures without what the program derives from their bytes, in a fixed order.
fn recorded(mut captures: Vec<CaptureRecord>) -> Vec<CaptureRecord> {
    for capture in &mut captures {
        capture.warnings.clear();
    }
    captures.sort_unstable_by_key(|capture| capture.capture);
    captures
}

fn expect(is_same: bool, difference: impl FnOnce() -> String) -> Result<(), CopyError> {
    if is_same { Ok(()) } else { Err(CopyError::Differs(difference())) }
}

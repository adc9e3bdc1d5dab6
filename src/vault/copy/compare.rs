//! Comparison of the catalogs of a vault and its copy.

use std::fmt::Debug;

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
    equal("the end of the journal", &source.journal_head()?, &copy.journal_head()?)?;
    equal("the removals", &source.tombstones(None, 0, usize::MAX)?, &copy.tombstones(None, 0, usize::MAX)?)?;
    let of = source.count(&Filter::default())?;
    equal("the number of artifacts", &of, &copy.count(&Filter::default())?)?;
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
        let Some(copied) = copied else { return Err(differs(record.core, "is not in the copy")) };
        // An artifact whose captures were lost and added again may have either time.
        let is_again = captures.iter().any(|capture| capture.added_at == record.added_at);
        let added_at = if is_again { copied.added_at } else { record.added_at };
        // Positions of additions are only comparable within one vault.
        let expected = ArtifactRecord { addition: copied.addition, added_at, ..record.clone() };
        equal(&record.core.to_string(), &expected, &copied)?;
    }
    for ((core, captures), copied) in cores.iter().zip(captures).zip(copy.captures(&cores)?) {
        equal(&format!("the captures of {core}"), &recorded(captures), &recorded(copied))?;
    }
    let annotations = source.annotations(&cores)?.into_iter().zip(copy.annotations(&cores)?);
    for (core, (annotations, copied)) in cores.iter().zip(annotations) {
        equal(&format!("the annotations of {core}"), &annotations, &copied)?;
    }
    let links = source.manual_links(&cores)?.into_iter().zip(copy.manual_links(&cores)?);
    for (core, (links, copied)) in cores.iter().zip(links) {
        equal(&format!("the links of {core}"), &links, &copied)?;
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

fn differs(core: CoreHash, how: &str) -> CopyError {
    CopyError::Differs(format!("{core} {how}"))
}

fn equal<T: PartialEq + Debug>(what: &str, source: &T, copy: &T) -> Result<(), CopyError> {
    if source == copy {
        return Ok(());
    }
    // Annotations may be long.
    let shown = |value: &T| format!("{value:?}").chars().take(500).collect::<String>();
    Err(CopyError::Differs(format!("{what}: {} there, {} in the copy", shown(source), shown(copy))))
}

//! Copying into an empty vault, which adopts the journal, and the comparison of both catalogs at the end.

use super::outcome::{CopyAnswer, CopyError, CopyMode, CopyProgress, CopyWatch, empty_answer};
use super::source::{CopyEntry, CopyEntryReader, source_path};
use crate::artifact::{AdmitOptions, Admitted, SignaturePolicy};
use crate::digest::CoreHash;
use crate::formats;
use crate::intake::pipeline::{self, PipelineEvent};
use crate::storage::{
    Adoption, AppendedEntry, ArtifactRecord, CaptureRecord, Filter, Head, JournalQuery, Order, Page,
    Prepared, RecordedEntry, Snapshot, StoredMember,
};
use crate::validation::{Report, RuleInfo, Violation};
use crate::vault::Vault;
use crate::vault::fsck::admit_stored;

/// Entries or bytes that are adopted in one transaction.
const BATCH_ENTRIES: usize = 1_000;
const BATCH_BYTES: u64 = 16 << 20;

/// The rule that the bytes of an artifact prove its hashes and its kind.
const IDENTITY: RuleInfo = RuleInfo::error(
    "IDENTITY",
    "The bytes of an artifact have the kind and the hashes that the journal records.",
    "A copy takes nothing over that its bytes do not prove.",
);

/// Copies everything in `source` to `target`, from the last adopted entry on.
pub(super) fn copy(
    source: &mut dyn Snapshot,
    target: &Vault,
    watch: CopyWatch<'_>,
) -> Result<CopyAnswer, CopyError> {
    let (storage, CopyWatch { progress, is_stopped }) = (&*target.storage, watch);
    let begun = storage.begin_adoption()?;
    expect_same_journal(&*source, begun, target)?;
    let head = source.journal_head()?;
    let entries = CopyEntryReader::new(&mut *source, begun.seq + 1, |targets| Ok(vec![true; targets.len()]))?;
    let preparer = storage.preparer()?;
    let answer = empty_answer(CopyMode::Verbatim);
    let mut batch =
        CopyBatch { adoption: storage, progress, of: head.seq, waiting: Vec::new(), bytes: 0, answer };
    let inputs = entries.map(|item| {
        if is_stopped() { Err(CopyInterruption::Stopped) } else { item.map_err(CopyInterruption::Failed) }
    });
    let weigh = |item: Result<CopyEntry, CopyInterruption>| {
        let size = item.as_ref().map_or(0, CopyEntry::size);
        (item, size)
    };
    let work = |item: Result<CopyEntry, CopyInterruption>, _: &dyn Fn(u64)| {
        let CopyEntry { entry, files } = item?;
        let admitted =
            files.map(|files| admit(&entry, &files)).transpose().map_err(CopyInterruption::Failed)?;
        let source_path = source_path(&entry);
        let content = admitted.map(|admitted| {
            let mut content = preparer.prepare(admitted);
            content.set_source_paths(&|_| source_path.clone());
            content
        });
        Ok(PreparedEntry { entry, content })
    };
    let outcome = pipeline::in_order(inputs, weigh, work, |event| match event {
        PipelineEvent::Result(item) => batch.push(item?).map_err(CopyInterruption::Failed),
        PipelineEvent::Idle => Ok(()),
    });
    // What was read before stays copied.
    batch.store()?;
    let CopyBatch { answer, progress, .. } = batch;
    match outcome {
        Err(CopyInterruption::Stopped) => return Ok(answer),
        Err(CopyInterruption::Failed(error)) => return Err(error),
        Ok(()) => {}
    }
    let is_compared = compare_catalogs(&*source, &*storage.snapshot()?, is_stopped, progress)?;
    if is_compared {
        storage.finish_adoption(head)?;
    }
    Ok(CopyAnswer { is_complete: is_compared, ..answer })
}

/// The reason for stopping before the last entry.
enum CopyInterruption {
    /// It was requested.
    Stopped,
    Failed(CopyError),
}

/// Checks that what was adopted before is the beginning of this journal.
fn expect_same_journal(source: &dyn Snapshot, begun: Head, target: &Vault) -> Result<(), CopyError> {
    let entry = source.journal(&JournalQuery::default(), begun.seq, 1)?.pop();
    if begun.seq == 0 || entry.is_some_and(|entry| (entry.seq, entry.chain) == (begun.seq, begun.chain)) {
        return Ok(());
    }
    Err(CopyError::OtherSource(target.path().display().to_string()))
}

/// Admits the files of the capture that an entry adds.
fn admit(entry: &RecordedEntry, files: &[StoredMember]) -> Result<Admitted, CopyError> {
    let (kind, target) = entry.addition().map_or(("", None), |added| (added.kind, Some(added.target)));
    let rejected = |report: Report| match target {
        Some(target) => CopyError::Rejected { core: target.artifact, capture: target.capture, report },
        None => CopyError::Differs(format!("entry {} adds nothing", entry.head().seq)),
    };
    let differs = |message: String| rejected(Violation::new(IDENTITY, "", message).into());
    let Some(known) = formats::named(kind) else {
        return Err(differs(format!("this version of runvault does not know the kind {kind}")));
    };
    // A wrong signature is recorded in the journal, and no reason to lose the artifact.
    let options = AdmitOptions { signature_policy: SignaturePolicy::Record, ..AdmitOptions::default() };
    let admitted = admit_stored(known, known.is_of_directories(), files, options).map_err(rejected)?;
    let found = (admitted.core(), admitted.capture());
    if target.is_none_or(|target| (target.artifact, target.capture) != found) {
        return Err(differs(format!("its bytes are those of {} (capture {})", found.0, found.1)));
    }
    Ok(without_embedded(admitted))
}

/// Returns an artifact without those embedded in it: the journal has entries of their own for them.
fn without_embedded(mut admitted: Admitted) -> Admitted {
    drop(admitted.take_embedded());
    admitted
}

/// An entry, with the artifact that it adds.
struct PreparedEntry {
    entry: RecordedEntry,
    content: Option<Prepared>,
}

/// Entries that are adopted together.
struct CopyBatch<'b> {
    adoption: &'b dyn Adoption,
    progress: &'b mut dyn FnMut(CopyProgress),
    /// The number of entries of the journal.
    of: u64,
    waiting: Vec<PreparedEntry>,
    bytes: u64,
    answer: CopyAnswer,
}

impl CopyBatch<'_> {
    fn push(&mut self, prepared: PreparedEntry) -> Result<(), CopyError> {
        let size = prepared.content.as_ref().map_or(0, |content| content.admitted().size());
        self.bytes += prepared.entry.text().len() as u64 + size;
        self.waiting.push(prepared);
        if self.waiting.len() >= BATCH_ENTRIES || self.bytes >= BATCH_BYTES { self.store() } else { Ok(()) }
    }

    fn store(&mut self) -> Result<(), CopyError> {
        let entries: Vec<AppendedEntry<'_>> = self
            .waiting
            .iter()
            .map(|PreparedEntry { entry, content }| AppendedEntry { entry, content: content.as_ref() })
            .collect();
        if entries.is_empty() {
            return Ok(());
        }
        let head = self.adoption.adopt(&entries)?;
        let added = entries.iter().filter_map(|entry| entry.content);
        for prepared in added {
            self.answer.captures += 1;
            self.answer.bytes += prepared.admitted().size();
        }
        self.waiting.clear();
        self.bytes = 0;
        (self.progress)(CopyProgress::Copied { entries: head.seq, of: self.of });
        Ok(())
    }
}

/// The number of artifacts that are compared together.
const PAGE: usize = 500;

/// Compares everything in the catalogs that follows from the journal: artifacts, captures, annotations, manual links,
/// tombstones and the journal's end. Returns false if it was stopped.
fn compare_catalogs(
    source: &dyn Snapshot,
    copy: &dyn Snapshot,
    is_stopped: &dyn Fn() -> bool,
    progress: &mut dyn FnMut(CopyProgress),
) -> Result<bool, CopyError> {
    expect_same(source.journal_head()? == copy.journal_head()?, || {
        "the ends of the journals differ".to_owned()
    })?;
    let removals = source.tombstones(None, 0, usize::MAX)?;
    expect_same(removals == copy.tombstones(None, 0, usize::MAX)?, || "the removals differ".to_owned())?;
    let of = source.count(&Filter::default())?;
    expect_same(of == copy.count(&Filter::default())?, || "the numbers of artifacts differ".to_owned())?;
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
        expect_same(expected == copied, || format!("the kind, the times or the position of {core} differ"))?;
    }
    for ((core, captures), copied) in cores.iter().zip(captures).zip(copy.captures(&cores)?) {
        let is_same = without_derived(captures) == without_derived(copied);
        expect_same(is_same, || format!("the captures of {core} differ"))?;
    }
    let annotations = source.annotations(&cores)?.into_iter().zip(copy.annotations(&cores)?);
    for (core, (annotations, copied)) in cores.iter().zip(annotations) {
        expect_same(annotations == copied, || format!("the tags, notes, pins or labels of {core} differ"))?;
    }
    let links = source.manual_links(&cores)?.into_iter().zip(copy.manual_links(&cores)?);
    for (core, (links, copied)) in cores.iter().zip(links) {
        expect_same(links == copied, || format!("the manual links of {core} differ"))?;
    }
    Ok(())
}

/// Returns captures without what the program derives from their bytes, in a fixed order.
fn without_derived(mut captures: Vec<CaptureRecord>) -> Vec<CaptureRecord> {
    for capture in &mut captures {
        capture.warnings.clear();
    }
    captures.sort_unstable_by_key(|capture| capture.capture);
    captures
}

fn expect_same(is_same: bool, difference: impl FnOnce() -> String) -> Result<(), CopyError> {
    if is_same { Ok(()) } else { Err(CopyError::Differs(difference())) }
}

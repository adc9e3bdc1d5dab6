//! Copying into a vault with a journal of its own.

use std::collections::HashMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::Mutex;

use super::outcome::{
    CopiedAnnotations, CopyAnswer, CopyError, CopyMode, CopyOptions, CopyProgress, CopyWatch,
    RejectedCapture, empty_answer,
};
use super::source::{CopyEntry, CopyEntryReader, source_path};
use crate::artifact::{AdmitOptions, SignaturePolicy};
use crate::digest::{CaptureHash, CoreHash};
use crate::intake::{self, DeclaredCapture, ExamineOptions, SourceError};
use crate::json::reader::Limits;
use crate::storage::{
    Annotations, CaptureTarget, Filter, ManualLink, Order, Page, Snapshot, SourcePath, Storage, StorageError,
};
use crate::vault::add::{
    self, AddMonitor, CommonAnnotations, DocumentOutcome, ExaminedDocument, Recorded, SourcePaths,
};
use crate::vault::merging::{self, MergeOutcome, MergedAnnotation};

/// Maximum number of rejected captures that are listed.
const LISTED: usize = 10;

/// The number of artifacts whose annotations are merged together.
const PAGE: usize = 500;

/// Adds everything in `source` that `to` does not have.
pub(super) fn copy(
    source: &mut dyn Snapshot,
    path: &Path,
    to: &dyn Storage,
    CopyOptions { allow_removed, without_source_paths }: CopyOptions,
    watch: CopyWatch<'_>,
) -> Result<CopyAnswer, CopyError> {
    let CopyWatch { progress, is_stopped } = watch;
    let (reached, present) = (AtomicU64::new(0), AtomicU64::new(0));
    // Those of the captures that were read, but not added yet.
    let source_paths = Mutex::new(HashMap::new());
    let (is_interrupted, failure) = (AtomicBool::new(false), Mutex::new(None));
    let of = source.journal_head()?.seq;
    let is_missing = |targets: &[CaptureTarget]| {
        let known = to.snapshot()?.captures_with(targets)?;
        present.fetch_add(known.iter().flatten().count() as u64, Ordering::Relaxed);
        Ok(known.iter().map(Option::is_none).collect())
    };
    let items = CopyEntryReader::new(&mut *source, 0, is_missing)?.map_while(|item| {
        if is_stopped() {
            is_interrupted.store(true, Ordering::Relaxed);
            return None;
        }
        match item {
            Ok(item) => {
                reached.store(item.entry.head().seq, Ordering::Relaxed);
                if !without_source_paths {
                    remember(&source_paths, &item);
                }
                Some(to_intake_item(path, item))
            }
            Err(error) => {
                *failure.lock() = Some(error);
                None
            }
        }
    });
    // Artifacts in a vault were within the limits when they were added there.
    let admit = AdmitOptions {
        limits: Limits::most(),
        signature_policy: SignaturePolicy::Record,
        ..AdmitOptions::default()
    };
    let options = ExamineOptions { admit, allow_removed, ..ExamineOptions::default() };
    let answer = empty_answer(CopyMode::Merged);
    let mut adding = CopyAddMonitor { answer, progress, reached: &reached, of };
    let recorded =
        Recorded { annotations: &CommonAnnotations::NONE, source_paths: SourcePaths::Once(&source_paths) };
    add::add(to, items.flatten().map(Ok), &options, recorded, &mut adding)?;
    let CopyAddMonitor { mut answer, progress, .. } = adding;
    answer.present += present.into_inner();
    if let Some(error) = failure.into_inner() {
        return Err(error);
    }
    if is_interrupted.into_inner() {
        return Ok(answer);
    }
    let annotations = merge_annotations(&*source, to, is_stopped, progress)?;
    answer.is_complete = annotations.is_some();
    answer.annotations = annotations.unwrap_or_default();
    Ok(answer)
}

/// Keeps the path of the capture that is added next, if that was recorded.
fn remember(
    paths: &Mutex<HashMap<(CoreHash, CaptureHash), SourcePath>>,
    CopyEntry { entry, files }: &CopyEntry,
) {
    if let (Some(addition), Some(path), true) = (entry.addition(), source_path(entry), files.is_some()) {
        let CaptureTarget { capture, artifact } = addition.target;
        paths.lock().insert((artifact, capture), path);
    }
}

/// Returns the capture that an entry adds, if it is wanted. It is named by the vault and the first digits of its hash.
fn to_intake_item(path: &Path, CopyEntry { entry, files }: CopyEntry) -> Option<intake::InputItem> {
    let (addition, files) = (entry.addition()?, files?);
    let CaptureTarget { capture, artifact } = addition.target;
    let mut name = path.as_os_str().to_owned();
    name.push(format!("#{capture:.12}"));
    let files = files.into_iter().map(|file| (file.name, file.bytes)).collect();
    let kind = addition.kind.to_owned();
    Some(intake::InputItem::Declared(DeclaredCapture { name, kind, core: artifact, capture, files }))
}

/// A monitor that counts what is added.
struct CopyAddMonitor<'a> {
    answer: CopyAnswer,
    progress: &'a mut dyn FnMut(CopyProgress),
    /// The entry that was read last.
    reached: &'a AtomicU64,
    of: u64,
}

impl CopyAddMonitor<'_> {
    fn reject(&mut self, name: &str, reason: String) {
        self.answer.rejected += 1;
        if self.answer.first_rejected.len() < LISTED {
            self.answer.first_rejected.push(RejectedCapture { name: name.to_owned(), reason });
        }
    }
}

impl AddMonitor for CopyAddMonitor<'_> {
    fn examined(&mut self, examined: &ExaminedDocument) {
        match examined.outcome {
            DocumentOutcome::Added | DocumentOutcome::NewCapture => {
                self.answer.captures += 1;
                self.answer.bytes += examined.size;
            }
            DocumentOutcome::Rejected => {
                let first = examined.violations.first().map(ToString::to_string);
                self.reject(&examined.path, first.unwrap_or_default());
            }
            // It came with an artifact that contains it.
            _ => self.answer.present += 1,
        }
        let entries = self.reached.load(Ordering::Relaxed);
        (self.progress)(CopyProgress::Copied { entries, of: self.of });
    }

    fn unreadable(&mut self, error: &SourceError) {
        self.reject(&error.path.to_string_lossy(), error.to_string());
    }

    fn accepts_unrecorded(&self) -> bool {
        false
    }
}

/// Sets the annotations that the vault does not have, unless it has others in their place. Returns `None` if it was stopped.
fn merge_annotations(
    source: &dyn Snapshot,
    to: &dyn Storage,
    is_stopped: &dyn Fn() -> bool,
    progress: &mut dyn FnMut(CopyProgress),
) -> Result<Option<CopiedAnnotations>, CopyError> {
    let of = source.count(&Filter::default())?;
    let (mut counts, mut page, mut artifacts) = (CopiedAnnotations::default(), Page::first(PAGE), 0);
    loop {
        if is_stopped() {
            return Ok(None);
        }
        let found = source.find(&Filter::default(), Order::Core, &page)?;
        let cores: Vec<CoreHash> = found.items.iter().map(|hit| hit.artifact.core).collect();
        merge_page(source, to, &cores, &mut counts)?;
        artifacts += cores.len() as u64;
        progress(CopyProgress::Compared { artifacts, of });
        match found.next {
            Some(next) => page = Page { limit: PAGE, after: Some(next) },
            None => return Ok(Some(counts)),
        }
    }
}

fn merge_page(
    source: &dyn Snapshot,
    to: &dyn Storage,
    cores: &[CoreHash],
    counts: &mut CopiedAnnotations,
) -> Result<(), StorageError> {
    let (annotations, links) = (source.annotations(cores)?, source.manual_links(cores)?);
    let mut merged = Vec::new();
    for ((core, annotations), links) in cores.iter().zip(&annotations).zip(&links) {
        merged.extend(of_artifact(*core, annotations));
        // A link is merged with its source.
        let links = links.iter().filter(|link| link.source == *core);
        merged.extend(links.map(|ManualLink { source, relation, target, note }| MergedAnnotation::Link {
            source: *source,
            relation,
            target: *target,
            note: note.as_deref(),
        }));
    }
    for outcome in merging::merge(to, &merged)? {
        *match outcome {
            MergeOutcome::Set => &mut counts.set,
            MergeOutcome::Present => &mut counts.present,
            _ => &mut counts.kept,
        } += 1;
    }
    Ok(())
}

fn of_artifact(core: CoreHash, annotations: &Annotations) -> impl Iterator<Item = MergedAnnotation<'_>> {
    let Annotations { tags, note, pin, labels } = annotations;
    let tags = tags.iter().map(move |tag| MergedAnnotation::Tag { core, name: &tag.name });
    let note = note.iter().map(move |note| MergedAnnotation::Note { core, text: &note.text });
    let pin = pin.iter().map(move |pin| MergedAnnotation::Pin { core, note: pin.note.as_deref() });
    let labels = labels.iter().map(move |label| MergedAnnotation::Label {
        core,
        key: &label.key,
        value: &label.value,
    });
    tags.chain(note).chain(pin).chain(labels)
}

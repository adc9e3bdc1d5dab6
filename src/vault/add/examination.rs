//! Inputs, and examined documents before they are stored.

use std::ffi::OsString;

use crate::artifact::Admitted;
use crate::digest::CoreHash;
use crate::formats;
use crate::intake::pipeline::{self, PipelineEvent};
use crate::intake::{
    self, ArtifactSource, Continuation, DocumentVerdict, ExamineOptions, InputLocation, Rejection,
    SourceError,
};
use crate::storage::{KindConflict, StorageError, Tombstone};
use crate::validation::{Findings, Report, RuleInfo, Violation};

/// An examined document, with the value made from its admission.
pub(super) struct Examination<A> {
    pub(super) path: OsString,
    pub(super) original: Option<ArtifactSource>,
    pub(super) continues: Option<CoreHash>,
    pub(super) verdict: ExaminationResult<A>,
    /// Whether it represents the end of a directory.
    pub(super) is_end: bool,
}

impl<A> Examination<A> {
    /// Creates an examination; `make` converts an admitted artifact. `items` is set for the end of a directory.
    pub(super) fn new(
        path: OsString,
        items: Option<u64>,
        verdict: DocumentVerdict,
        place: Option<InputLocation>,
        make: &impl Fn(Admitted) -> A,
    ) -> Self {
        let mut original = None;
        let verdict = match verdict {
            DocumentVerdict::Admitted(admitted) => {
                original = ArtifactSource::new(place, &admitted);
                ExaminationResult::Admitted(make(admitted))
            }
            DocumentVerdict::Rejected(mut rejection) => match rejection.continuation.take() {
                Some(continuation) => {
                    ExaminationResult::Rest(ContinuingDocument { place, rejection, continuation })
                }
                None => ExaminationResult::Rejected(rejection),
            },
            DocumentVerdict::NoArtifact => {
                items.map_or(ExaminationResult::NoArtifact, ExaminationResult::End)
            }
        };
        Self { path, original, continues: None, verdict, is_end: items.is_some() }
    }

    /// Creates the examination of a document that is not admitted.
    pub(super) fn rejected(path: OsString, rejection: Rejection) -> Self {
        Self {
            path,
            original: None,
            continues: None,
            verdict: ExaminationResult::Rejected(rejection),
            is_end: false,
        }
    }
}

/// The verdict on a document, with the value made from its admission.
pub(super) enum ExaminationResult<A> {
    Admitted(A),
    Rejected(Rejection),
    /// The rest of a document, which is rejected if its beginning is unknown.
    Rest(ContinuingDocument),
    NoArtifact,
    /// The end of a directory, with the number of items in it.
    End(u64),
}

/// A document that is the rest of another one.
pub(super) struct ContinuingDocument {
    pub(super) place: Option<InputLocation>,
    pub(super) rejection: Rejection,
    pub(super) continuation: Box<Continuation>,
}

/// An examined document, or the error of reading it.
pub(super) type ExaminedItem<A> = std::result::Result<Examination<A>, SourceError>;

/// An input to examine, or the error of reading it.
pub type InputResult = std::result::Result<intake::InputItem, SourceError>;

/// Inputs with a count of those consumed. The end of a directory is not counted.
pub(super) struct CountedInputs<I> {
    pub(super) inputs: I,
    pub(super) count: u64,
}

impl<I: Iterator<Item = InputResult>> Iterator for CountedInputs<I> {
    type Item = InputResult;

    fn next(&mut self) -> Option<InputResult> {
        let next = self.inputs.next();
        self.count += u64::from(next.as_ref().is_some_and(|next| !is_end(next)));
        next
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.inputs.size_hint()
    }
}

fn is_end(found: &InputResult) -> bool {
    matches!(found, Ok(intake::InputItem::End { .. }))
}

pub(super) fn ends_directory<A>(item: &ExaminedItem<A>) -> bool {
    matches!(item, Ok(Examination { is_end: true, .. }))
}

pub(super) fn is_bad<A>(item: &ExaminedItem<A>) -> bool {
    matches!(item, Err(_) | Ok(Examination { verdict: ExaminationResult::Rejected(_), .. }))
}

/// Examines `inputs`. If they are to be stored, the files beside them that they refer to are read too.
pub(super) fn each<A: Send, E>(
    inputs: impl Iterator<Item = InputResult> + Send,
    stores: bool,
    options: &ExamineOptions,
    make: impl Fn(Admitted) -> A + Sync,
    mut consume: impl FnMut(PipelineEvent<ExaminedItem<A>>) -> std::result::Result<(), E>,
) -> std::result::Result<(), E> {
    let open = |item: InputResult| {
        let opened = item.map(|item| (item.name(), item.items(), item.open()));
        let size = opened.as_ref().map_or(0, |(.., opened)| opened.size());
        (opened, size)
    };
    let work = |opened: std::result::Result<(OsString, Option<u64>, intake::OpenedInput), SourceError>,
                room: &dyn Fn(u64)| {
        let (path, items, opened) = opened?;
        let (mut verdict, place) = opened.examine_in_place(options)?;
        if stores {
            intake::attach(&mut verdict, place.as_ref(), options, room);
        }
        Ok(Examination::new(path, items, verdict, place, &make))
    };
    let mut passed_over = 0;
    pipeline::in_order(inputs, open, work, |event| match event {
        PipelineEvent::Idle => consume(PipelineEvent::Idle),
        PipelineEvent::Result(item) => match judge_end(item, &mut passed_over, options) {
            Some(item) => consume(PipelineEvent::Result(item)),
            None => Ok(()),
        },
    })
}

/// Counts in `passed_over` the consecutive items that are not artifacts, and converts the end of a directory with only
/// such items into a rejection. Returns `None` if the directory contained others.
fn judge_end<A>(
    item: ExaminedItem<A>,
    passed_over: &mut u64,
    options: &ExamineOptions,
) -> Option<ExaminedItem<A>> {
    match &item {
        Ok(Examination { verdict: ExaminationResult::NoArtifact, .. }) => *passed_over += 1,
        Ok(Examination { verdict: ExaminationResult::End(items), path, .. }) => {
            if std::mem::take(passed_over) < *items {
                return None;
            }
            let rejected = Examination::rejected(path.clone(), intake::nothing_recognized(options));
            return Some(Ok(Examination { is_end: true, ..rejected }));
        }
        _ => *passed_over = 0,
    }
    Some(item)
}

/// The rule that a removed artifact is not added again.
pub const REMOVED: RuleInfo = RuleInfo::error(
    "REMOVED",
    "An artifact that was removed from a vault is added again only on request.",
    "It was removed for a reason, and files, packs and bundles that still contain it must not undo that silently. \
          The rule also applies to a pack with a session, or any other file, that was removed. If it is \
          allowed, the artifact is stored again; the journal records that and by whom.",
);

/// The rule that a core hash identifies one artifact, of one kind.
pub const OTHER_KIND: RuleInfo = RuleInfo::error(
    "CONFLICT",
    "The core hash of an artifact is not that of a stored artifact of another kind.",
    "The canonical bytes whose SHA-256 is the core hash of an artifact would, as a kind that takes any bytes, be an \
          artifact with the same hash. A hash must not identify two artifacts: of the two, the one that was stored first \
          remains until it is removed. The canonical bytes of a stored artifact can always be computed from it, so they \
          need not be stored again.",
);

/// The rule that the vault returns what is added to it.
pub const UNREADABLE: RuleInfo = RuleInfo::error(
    "UNREADABLE",
    "The vault returns an artifact that is added with every byte.",
    "An artifact that is added again is not stored again, and the bytes that the vault has of it may have been damaged \
          since. They are read back and compared with what is added. If they differ, they are restored from it; if that \
          is not possible, the artifact is rejected and its file is kept, because it may be the only good copy.",
);

/// The rules of adding, which apply in addition to those of the kind.
pub const RULES: [RuleInfo; 3] = [REMOVED, OTHER_KIND, UNREADABLE];

/// Returns the report for an artifact that the vault has and does not return, because of this error.
pub(super) fn unreadable(error: &StorageError) -> Report {
    let message = format!(
        "it is in the vault, but the vault does not return it, and it could not be restored: {error}"
    );
    Violation::new(UNREADABLE, "", message).into()
}

/// Returns the report for an artifact `core` that is rejected because of these tombstones.
pub(super) fn removed(core: CoreHash, tombstones: &[Tombstone]) -> Report {
    let mut findings = Findings::default();
    let mut found = findings.for_rule(REMOVED);
    for tombstone in tombstones {
        let removal = tombstone.removal();
        if tombstone.core == core {
            found.add("", removal);
        } else {
            found.add(
                "",
                format!(
                    "contains {} {}, which was {removal}",
                    formats::bare_noun(&tombstone.kind),
                    tombstone.core
                ),
            );
        }
    }
    findings.into_report()
}

/// Returns the report for an artifact `core` that is rejected because of this conflict.
pub(super) fn conflicting(core: CoreHash, conflict: &KindConflict) -> Report {
    let noun = formats::noun(&conflict.kind);
    let message = if conflict.core == core {
        format!("the vault has an artifact with the same core hash that is {noun}")
    } else {
        format!("it contains {}, which is {noun} in the vault", conflict.core)
    };
    Violation::new(OTHER_KIND, "", message).into()
}

//! Documents that are the rest of a longer one: each is joined to its beginning, which is in the vault or among the
//! documents that are added with it, before or after it. The whole is verified like any other document.

use std::collections::{HashMap, VecDeque};
use std::ffi::OsString;

use super::examination::{ContinuingDocument, Examination, ExaminationResult, ExaminedItem};
use crate::artifact::Admitted;
use crate::digest::{CoreHash, Digest};
use crate::intake::{
    ArtifactSource, Continuation, DocumentVerdict, ExamineOptions, InputLocation, Predecessor, Rejection,
};
use crate::storage::{Result, Snapshot, Storage, StorageError};

/// Maximum total size in bytes of documents kept in memory until their beginning arrives; files beyond that are read
/// again.
const MAX_DEFERRED_BYTES: usize = 64 << 20;

/// The document that another one continues.
pub(super) struct FirstPart {
    core: CoreHash,
    document: Vec<u8>,
}

impl FirstPart {
    pub(super) fn new(core: CoreHash, document: Vec<u8>) -> Self {
        Self { core, document }
    }

    pub(super) fn document(&self) -> &[u8] {
        &self.document
    }
}

/// The destination of documents, which also finds their beginnings.
pub(super) trait DocumentSink<A> {
    /// The error that stops processing.
    type Error: From<StorageError>;

    /// Returns the document that extends to `predecessor` or further.
    fn first_part(&mut self, predecessor: &Predecessor) -> Result<Option<FirstPart>>;

    /// Accepts the next document, with its number among the inputs.
    fn push(&mut self, number: usize, item: ExaminedItem<A>) -> std::result::Result<(), Self::Error>;

    /// Makes everything pushed so far findable by its mentions.
    fn settle(&mut self) -> std::result::Result<(), Self::Error>;
}

/// The state of joining.
pub(super) struct ContinuationJoiner<'o, M> {
    options: &'o ExamineOptions,
    /// Converts an admitted artifact into the type of the target.
    make: M,
    /// Whether a document may wait for a beginning that comes later.
    may_wait: bool,
    waiting: Vec<DeferredContinuation>,
    kept: usize,
}

/// A document whose beginning has not been found yet.
struct DeferredContinuation {
    number: usize,
    path: OsString,
    predecessor: Predecessor,
    held: DeferredContent,
}

enum DeferredContent {
    Rest(ContinuingDocument),
    Place(InputLocation),
}

impl<'o, M> ContinuationJoiner<'o, M> {
    pub(super) fn new(options: &'o ExamineOptions, make: M, may_wait: bool) -> Self {
        Self { options, make, may_wait, waiting: Vec::new(), kept: 0 }
    }

    /// Returns `item` in the form to be pushed, or `None` if it waits for its beginning.
    pub(super) fn take<A>(
        &mut self,
        number: usize,
        item: ExaminedItem<A>,
        target: &mut impl DocumentSink<A>,
    ) -> Result<Option<ExaminedItem<A>>>
    where
        M: Fn(Admitted) -> A,
    {
        let (path, rest) = match item {
            Ok(Examination { path, verdict: ExaminationResult::Rest(rest), .. }) => (path, rest),
            item => return Ok(Some(item)),
        };
        let predecessor = rest.continuation.predecessor();
        if let Some(beginning) = target.first_part(&predecessor)? {
            return Ok(Some(Ok(self.join(path, rest, &beginning).0)));
        }
        if self.may_wait {
            let held = self.hold(rest);
            self.waiting.push(DeferredContinuation { number, path, predecessor, held });
            return Ok(None);
        }
        Ok(Some(Ok(unmatched(path, &rest.continuation))))
    }

    fn hold(&mut self, rest: ContinuingDocument) -> DeferredContent {
        let size = rest.continuation.document().len();
        match &rest.place {
            Some(place) if self.kept + size > MAX_DEFERRED_BYTES => DeferredContent::Place(place.clone()),
            _ => {
                self.kept += size;
                DeferredContent::Rest(rest)
            }
        }
    }

    /// Pushes all waiting documents: joined if their beginning has been found, the others as rejected.
    pub(super) fn finish<A, T: DocumentSink<A>>(mut self, target: &mut T) -> std::result::Result<(), T::Error>
    where
        M: Fn(Admitted) -> A,
    {
        let mut waiting: HashMap<Digest, VecDeque<DeferredContinuation>> = HashMap::new();
        for one in std::mem::take(&mut self.waiting) {
            waiting.entry(one.predecessor.after).or_default().push_back(one);
        }
        let mut goes_on = !waiting.is_empty();
        while goes_on {
            target.settle()?;
            goes_on = false;
            for after in in_order(&waiting) {
                let predecessor =
                    waiting.get(&after).and_then(VecDeque::front).map(|first| first.predecessor);
                let Some(predecessor) = predecessor else { continue };
                if target.first_part(&predecessor)?.is_none() {
                    continue;
                }
                goes_on = true;
                let mut ready = waiting.remove(&after).unwrap_or_default();
                while let Some(next) = ready.pop_front() {
                    let number = next.number;
                    let (item, core) = self.resolve(next, target)?;
                    target.push(number, item)?;
                    // Items that wait for exactly this one need no search.
                    ready.extend(core.and_then(|core| waiting.remove(&core.0)).into_iter().flatten());
                }
            }
        }
        let mut left: Vec<DeferredContinuation> = waiting.into_values().flatten().collect();
        left.sort_unstable_by_key(|left| left.number);
        for left in left {
            let number = left.number;
            let (item, _) = self.resolve(left, target)?;
            target.push(number, item)?;
        }
        Ok(())
    }

    fn resolve<A>(
        &self,
        waiting: DeferredContinuation,
        target: &mut impl DocumentSink<A>,
    ) -> Result<(ExaminedItem<A>, Option<CoreHash>)>
    where
        M: Fn(Admitted) -> A,
    {
        let DeferredContinuation { path, held, .. } = waiting;
        let rest = match held {
            DeferredContent::Rest(rest) => rest,
            DeferredContent::Place(place) => match self.read_again(path.clone(), place) {
                Ok(Examination { verdict: ExaminationResult::Rest(rest), .. }) => rest,
                item => return Ok((item, None)),
            },
        };
        Ok(match target.first_part(&rest.continuation.predecessor())? {
            Some(beginning) => {
                let (examination, core) = self.join(path, rest, &beginning);
                (Ok(examination), core)
            }
            None => (Ok(unmatched(path, &rest.continuation)), None),
        })
    }

    fn read_again<A>(&self, path: OsString, place: InputLocation) -> ExaminedItem<A>
    where
        M: Fn(Admitted) -> A,
    {
        let Some(item) = place.into_file() else {
            return Ok(Examination {
                path,
                original: None,
                continues: None,
                verdict: ExaminationResult::NoArtifact,
                is_end: false,
            });
        };
        let (verdict, place) = item.open().examine_in_place(self.options)?;
        Ok(Examination::new(path, None, verdict, place, &self.make))
    }

    /// Joins `rest` to `beginning`, and returns the result with its core hash.
    fn join<A>(
        &self,
        path: OsString,
        rest: ContinuingDocument,
        beginning: &FirstPart,
    ) -> (Examination<A>, Option<CoreHash>)
    where
        M: Fn(Admitted) -> A,
    {
        let ContinuingDocument { place, continuation, .. } = rest;
        match continuation.admit_after(&beginning.document, &self.options.admit) {
            Ok(admitted) => {
                let original = ArtifactSource::from_rest(place, continuation.document(), &admitted);
                let core = admitted.core();
                let verdict = ExaminationResult::Admitted((self.make)(admitted));
                (
                    Examination { path, original, continues: Some(beginning.core), verdict, is_end: false },
                    Some(core),
                )
            }
            Err(report) => {
                let rejection = Rejection::new(Some(continuation.kind()), report);
                (Examination::rejected(path, rejection), None)
            }
        }
    }
}

/// Returns the awaited digests, in the order of their first waiting document.
fn in_order(waiting: &HashMap<Digest, VecDeque<DeferredContinuation>>) -> Vec<Digest> {
    let first = |(after, all): (&Digest, &VecDeque<DeferredContinuation>)| {
        (all.front().map(|first| first.number), *after)
    };
    let mut order: Vec<_> = waiting.iter().map(first).collect();
    order.sort_unstable();
    order.into_iter().map(|(_, after)| after).collect()
}

fn unmatched<A>(path: OsString, continuation: &Continuation) -> Examination<A> {
    Examination::rejected(path, Rejection::new(Some(continuation.kind()), continuation.unmatched()))
}

/// Returns the document in a vault that extends to `predecessor`: the one that ends there, else the first by core hash
/// of those that extend further.
pub(super) fn in_vault(snapshot: &dyn Snapshot, predecessor: &Predecessor) -> Result<Option<FirstPart>> {
    let is_of_kind = |kind: &str| kind == predecessor.kind.name();
    let exact = snapshot.artifact(CoreHash(predecessor.after))?.filter(|artifact| is_of_kind(&artifact.kind));
    let artifact = if exact.is_some() {
        exact
    } else {
        let mentions = snapshot.mentions_with(predecessor.after, Some(predecessor.group))?.into_iter();
        let mut artifacts =
            mentions.map(|mention| snapshot.expect_artifact(mention.artifact)).collect::<Result<Vec<_>>>()?;
        artifacts.retain(|artifact| is_of_kind(&artifact.kind));
        artifacts.into_iter().min_by_key(|artifact| artifact.core)
    };
    let Some(artifact) = artifact else { return Ok(None) };
    let Some(capture) = snapshot.captures_of(artifact.core)?.into_iter().next() else { return Ok(None) };
    let mut members = snapshot.read_members(artifact.core, capture.capture)?;
    Ok(members.pop().map(|member| FirstPart::new(artifact.core, member.bytes)))
}

/// Joins a rejected document that continues one in the vault to its beginning there, and returns the rejection if that
/// is not possible.
pub(super) fn joined(
    storage: &dyn Storage,
    mut rejection: Rejection,
    options: &ExamineOptions,
) -> Result<std::result::Result<Admitted, Rejection>> {
    let Some(continuation) = rejection.continuation.take() else { return Ok(Err(rejection)) };
    let report = match in_storage(storage, &continuation.predecessor())? {
        Some(beginning) => match continuation.admit_after(beginning.document(), &options.admit) {
            Ok(admitted) => return Ok(Ok(admitted)),
            Err(report) => report,
        },
        None => continuation.unmatched(),
    };
    Ok(Err(Rejection { report, ..rejection }))
}

/// Returns the document in a vault that extends to `predecessor`. A vault that is created by the first addition has
/// none yet.
pub(super) fn in_storage(storage: &dyn Storage, predecessor: &Predecessor) -> Result<Option<FirstPart>> {
    if !storage.is_created() {
        return Ok(None);
    }
    in_vault(&*storage.snapshot()?, predecessor)
}

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

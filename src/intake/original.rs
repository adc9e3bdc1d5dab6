//! The original files of artifacts, their removal after storing, and the files beside them that they refer to.
//!
//! The path is that of a document which anyone may have written. So a file is opened only below the directory that the
//! artifact was read from, component by component and without following links, and it is admitted only if its digest is
//! the one that the artifact states: nothing is stored that the artifact does not identify.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::inputs::InputItem;
use super::tree::{self, FileId, FoundPath, OpenDir, ReopenResult};
use super::verdict::{DocumentVerdict, ExamineOptions, Rejection, SourceError};
use crate::artifact::{AdmitOptions, Admitted, Completeness, FileReference, document};
use crate::digest::{BlobHash, CaptureHash, CoreHash, Digest};
use crate::formats;
use crate::secrets::SecretPolicy;

/// The location and content that an artifact was read from.
#[derive(Clone, Debug)]
pub struct ArtifactSource {
    pub(super) path: PathBuf,
    pub(super) form: SourceForm,
    /// The directory that a file was read from, or the directory itself.
    pub(super) directory: Option<FileId>,
    core: CoreHash,
    pub(super) capture: CaptureHash,
    /// The files of the artifact by name.
    pub(super) members: Vec<(String, BlobHash)>,
    pub(super) completeness: Completeness,
}

/// The form of the original.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SourceForm {
    /// A file that is the only member.
    Document,
    /// An archive of the members, a compressed file, or a document in another form.
    Archive,
    /// A directory that contains the members.
    Directory,
}

/// Options for removing originals.
#[derive(Clone, Debug)]
pub struct MoveOptions {
    /// The options that the documents were examined with.
    pub examine: ExamineOptions,
    /// The time since the last write before a file is removed whose artifact may still grow, such as a trace.
    pub settle_growing: Duration,
}

impl MoveOptions {
    /// The default of [`settle_growing`](Self::settle_growing): 10 minutes.
    pub const SETTLE_GROWING: Duration = Duration::from_mins(10);
}

impl Default for MoveOptions {
    fn default() -> Self {
        Self { examine: ExamineOptions::default(), settle_growing: Self::SETTLE_GROWING }
    }
}

/// The outcome of removing the files that an artifact was read from.
#[derive(Debug, Default)]
pub struct MoveOutcome {
    /// The removed files.
    pub removed: Vec<PathBuf>,
    /// The files that still exist, and why they are kept.
    pub kept: Vec<(PathBuf, KeepReason)>,
    /// The files that could not be removed.
    pub failed: Vec<SourceError>,
}

/// The reason a file is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeepReason {
    /// Its content differs from what was stored.
    Changed,
    /// It is a link: its target may belong to something else.
    Link,
    /// It is not part of the artifact. It was not stored.
    Unexpected,
    /// Its artifact may still grow, and it was written less than [`MoveOptions::settle_growing`] ago.
    MayGrow,
    /// A process has it open for writing.
    InUse,
    /// The directory that it was read from has been replaced, or is reached through a link. It was not touched.
    Replaced,
}

impl KeepReason {
    /// Returns whether the reason is temporary, so that removing the file can be retried later.
    #[must_use]
    pub fn is_for_now(self) -> bool {
        matches!(self, Self::MayGrow | Self::InUse)
    }
}

impl ArtifactSource {
    /// Creates the original that was read at `place`, or `None` if it was not a file or directory.
    pub(crate) fn new(place: Option<InputLocation>, admitted: &Admitted) -> Option<Self> {
        let InputLocation { path, directory, sort, is_packed } = place?;
        let form = match sort {
            LocationType::Directory => SourceForm::Directory,
            _ if is_packed || admitted.is_derived() || admitted.kind().is_of_directories() => {
                SourceForm::Archive
            }
            _ => SourceForm::Document,
        };
        let members = admitted.members().iter().map(|member| (member.name().to_owned(), member.blob()));
        let (core, capture, completeness) = (admitted.core(), admitted.capture(), admitted.completeness());
        Some(Self { path, form, directory, core, capture, members: members.collect(), completeness })
    }

    /// Creates the original for a file with the bytes `rest`, which were stored as the last part of the document
    /// `joined`.
    pub(crate) fn from_rest(place: Option<InputLocation>, rest: &[u8], joined: &Admitted) -> Option<Self> {
        let original = Self::new(place, joined)?;
        let members =
            original.members.into_iter().map(|(name, _)| (name, BlobHash(Digest::from_content(rest))));
        Some(Self { members: members.collect(), ..original })
    }

    /// Returns the path of the file or directory.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the location of the document, for reading it again, or `None` for archives and directories.
    pub(crate) fn place(&self) -> Option<InputLocation> {
        let place = || InputLocation::from_file(self.path.clone(), self.directory, true);
        (self.form == SourceForm::Document).then(place)
    }

    /// Returns the core hash of the stored artifact.
    #[must_use]
    pub fn core(&self) -> CoreHash {
        self.core
    }

    /// Returns the capture hash of the stored byte form.
    #[must_use]
    pub fn capture(&self) -> CaptureHash {
        self.capture
    }
}

impl MoveOutcome {
    /// Returns whether no file of the artifact remains.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.failed.is_empty() && self.kept.iter().all(|(_, why)| *why == KeepReason::Unexpected)
    }

    /// Returns whether all files that remain are kept [for temporary reasons](KeepReason::is_for_now).
    #[must_use]
    pub fn is_for_now(&self) -> bool {
        let mut kept = self.kept.iter().filter(|(_, why)| *why != KeepReason::Unexpected);
        self.failed.is_empty() && !self.is_whole() && kept.all(|(_, why)| why.is_for_now())
    }
}

/// The file or directory that an item was read from.
#[derive(Clone, Debug)]
pub(crate) struct InputLocation {
    path: PathBuf,
    directory: Option<FileId>,
    sort: LocationType,
    /// Whether the bytes of the file are not those of the artifact.
    is_packed: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LocationType {
    NamedFile,
    FoundFile,
    Directory,
}

impl InputLocation {
    pub(super) fn from_file(path: PathBuf, directory: Option<FileId>, named: bool) -> Self {
        let sort = if named { LocationType::NamedFile } else { LocationType::FoundFile };
        Self { path, directory, sort, is_packed: false }
    }

    /// Returns the location of a file that is compressed, or is an archive.
    pub(super) fn packed(self, is_packed: bool) -> Self {
        Self { is_packed, ..self }
    }

    pub(super) fn from_directory(path: PathBuf, directory: Option<FileId>) -> Self {
        Self { path, directory, sort: LocationType::Directory, is_packed: false }
    }

    /// Returns the path.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the directory that the file was opened in, or `None` if it is a directory or this is unknown.
    fn directory_of_file(&self) -> Option<FileId> {
        self.directory.filter(|_| self.sort != LocationType::Directory)
    }

    /// Returns the file, to be read again, or `None` if it is a directory.
    pub(crate) fn into_file(self) -> Option<InputItem> {
        match self.sort {
            LocationType::NamedFile => Some(InputItem::Named(self.path)),
            LocationType::FoundFile => Some(InputItem::Found(FoundPath::again(self.path, self.directory))),
            LocationType::Directory => None,
        }
    }
}

/// Maximum total size of the files that are stored with one artifact, in bytes: they are in memory together.
const MAX_BYTES: u64 = 64 << 20;

/// Adds the files that an admitted artifact refers to, if it was read from a file or directory. Files that are missing,
/// cannot be read or have another digest are left out: the references to them remain unresolved. Calls `room` with the
/// size of each file before it is read. If secrets are refused, an artifact is rejected for one in such a file as well.
pub(crate) fn attach(
    verdict: &mut DocumentVerdict,
    place: Option<&InputLocation>,
    options: &ExamineOptions,
    room: &dyn Fn(u64),
) {
    let (DocumentVerdict::Admitted(admitted), Some(place)) = (&mut *verdict, place) else { return };
    if admitted.draft().files.is_empty() {
        return;
    }
    let kind = formats::of_any_bytes();
    let Ok(directory) = directory(place) else { return };
    let mut left = MAX_BYTES.min(options.admit.limits.bytes);
    let mut known: BTreeSet<_> = admitted.embedded().iter().map(Admitted::core).collect();
    let mut found = Vec::new();
    let mut secrets = Vec::new();
    let policy = options.admit.secrets;
    let report = if policy == SecretPolicy::Refuse { SecretPolicy::Report } else { policy };
    let admit = AdmitOptions { secrets: report, ..options.admit.clone() };
    for reference in &admitted.draft().files {
        let Some(bytes) = read(&directory, reference, left, room) else { continue };
        let file = kind.admit(bytes, &admit).ok();
        let Some(file) = file.filter(|file| file.core().0 == reference.digest) else { continue };
        if known.insert(file.core()) {
            secrets.extend(file.secrets().iter().cloned().map(|found| found.within(reference.path())));
            left -= file.size();
            found.push(file);
        }
    }
    if policy == SecretPolicy::Refuse && !secrets.is_empty() {
        *verdict =
            DocumentVerdict::Rejected(Rejection::new(Some(admitted.kind()), document::secret(&secrets)));
        return;
    }
    admitted.attach(found);
    admitted.add_secrets(secrets);
}

/// Opens the directory that contains the file or directory at `place`. Fails if it is no longer the one in which the
/// file was found.
fn directory(place: &InputLocation) -> io::Result<OpenDir> {
    let parent = tree::parent(place.path());
    match place.directory_of_file() {
        None => OpenDir::open(parent),
        Some(id) => match OpenDir::reopen(parent, id)? {
            ReopenResult::Same(directory) => Ok(directory),
            ReopenResult::Replaced => Err(tree::replaced()),
        },
    }
}

/// Reads the file that a reference names, if it has at most `limit` bytes.
fn read(directory: &OpenDir, reference: &FileReference, limit: u64, room: &dyn Fn(u64)) -> Option<Vec<u8>> {
    let file = open(directory, reference).ok()?;
    let size = file.metadata().ok()?.len();
    if size > limit {
        return None;
    }
    room(size);
    let mut bytes = Vec::with_capacity(usize::try_from(size).ok()?);
    // The file may grow while it is read.
    file.take(limit + 1).read_to_end(&mut bytes).ok()?;
    (bytes.len() as u64 <= limit).then_some(bytes)
}

/// Opens the file that a reference names, without following links.
fn open(directory: &OpenDir, reference: &FileReference) -> io::Result<File> {
    let mut names = reference.components().map(OsStr::new).peekable();
    let mut inner: Option<OpenDir> = None;
    while let Some(name) = names.next() {
        let at = inner.as_ref().unwrap_or(directory);
        if names.peek().is_none() {
            return at.open_file(name);
        }
        inner = Some(at.open_directory(name)?);
    }
    Err(io::ErrorKind::NotFound.into())
}

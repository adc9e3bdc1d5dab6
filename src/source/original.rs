//! Files that artifacts were read from, and removing them once they are stored.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use super::tree::{FileId, FoundPath};
use super::{ExamineOptions, Item, SourceError, removing};
use crate::artifact::{Admitted, Completeness};
use crate::digest::{BlobHash, CaptureHash, CoreHash, Digest};

/// Where an artifact was read from, and what was read there.
#[derive(Clone, Debug)]
pub struct Original {
    pub(super) path: PathBuf,
    pub(super) form: Form,
    /// Of a file the directory it was read from, of a directory itself.
    pub(super) directory: Option<FileId>,
    core: CoreHash,
    pub(super) capture: CaptureHash,
    /// The files of the artifact by name.
    pub(super) members: Vec<(String, BlobHash)>,
    pub(super) completeness: Completeness,
}

/// In which form the artifact was there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// A file with the bytes of the only member.
    Document,
    /// An archive of the members.
    Archive,
    /// A directory with the members in it.
    Directory,
}

/// How files are removed.
#[derive(Clone, Debug)]
pub struct MoveOptions {
    /// How the documents were examined.
    pub examine: ExamineOptions,
    /// How long a file must not have been written whose artifact may still grow, such as a trace.
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

/// What became of the files that an artifact was read from.
#[derive(Debug, Default)]
pub struct Taken {
    /// Those that are gone.
    pub removed: Vec<PathBuf>,
    /// Those that are still there, and why they are kept.
    pub kept: Vec<(PathBuf, Kept)>,
    /// Those that could not be removed.
    pub failed: Vec<SourceError>,
}

/// Why a file is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kept {
    /// It has other bytes than those that were stored.
    Changed,
    /// It is a link: what it leads to may belong to something else.
    Link,
    /// It is not part of the artifact. Nothing of it was stored.
    Stranger,
    /// Its artifact may still grow, and it was written less than [`MoveOptions::settle_growing`] ago.
    MayGrow,
    /// A process holds it open for writing.
    InUse,
    /// The directory that it was read from is another one now, or is reached through a link. What is there was not
    /// touched.
    Replaced,
}

impl Kept {
    /// Whether the reason passes by itself, so that removing the file later is worth another try.
    #[must_use]
    pub fn is_for_now(self) -> bool {
        matches!(self, Self::MayGrow | Self::InUse)
    }
}

impl Original {
    /// Of what was read at `place`; nothing if that was no file.
    pub(crate) fn of(place: Option<Place>, admitted: &Admitted) -> Option<Self> {
        let Place { path, directory, sort } = place?;
        let form = match (sort, admitted.kind().is_of_directories()) {
            (Sort::Directory, _) => Form::Directory,
            (_, true) => Form::Archive,
            (_, false) => Form::Document,
        };
        let members = admitted.members().iter().map(|member| (member.name().to_owned(), member.blob()));
        let (core, capture, completeness) = (admitted.core(), admitted.capture(), admitted.completeness());
        Some(Self { path, form, directory, core, capture, members: members.collect(), completeness })
    }

    /// Of a file with the bytes `rest`, which were stored as the last part of the document `joined`.
    pub(crate) fn of_rest(place: Option<Place>, rest: &[u8], joined: &Admitted) -> Option<Self> {
        let original = Self::of(place, joined)?;
        let members = original.members.into_iter().map(|(name, _)| (name, BlobHash(Digest::of(rest))));
        Some(Self { members: members.collect(), ..original })
    }

    /// The file or directory.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Where the document was read from, to read it again; nothing if it was no file with one.
    pub(crate) fn place(&self) -> Option<Place> {
        let place = || Place::of_file(self.path.clone(), self.directory, true);
        (self.form == Form::Document).then(place)
    }

    /// The artifact that was stored.
    #[must_use]
    pub fn core(&self) -> CoreHash {
        self.core
    }

    /// The byte form that was stored.
    #[must_use]
    pub fn capture(&self) -> CaptureHash {
        self.capture
    }

    /// Removes what was stored, as [`Original::remove_all`] does.
    #[must_use]
    pub fn remove(&self, options: &MoveOptions, now: SystemTime) -> Taken {
        Self::remove_all(&[self], options, now).pop().unwrap_or_default()
    }

    /// Removes what was stored: the files whose bytes are still those that were read, hashed again, and no others. A
    /// directory loses the artifact's files, and goes itself if nothing is left in it. Gives for each of `originals` what
    /// became of its files.
    ///
    /// A file is kept if a process holds it open for writing, where the system can tell, and while its artifact may grow
    /// and it was written less than [`MoveOptions::settle_growing`] before `now`. Everything is done within the directory
    /// that was read: what has its path by now is not touched. Nothing that is put in the place of a file meanwhile is
    /// lost: a file is renamed before it is removed, to `.runvault-` and a number, and renamed back if it is another one.
    #[must_use]
    pub fn remove_all(originals: &[&Self], options: &MoveOptions, now: SystemTime) -> Vec<Taken> {
        removing::remove_all(originals, options, now)
    }
}

impl Taken {
    /// Whether nothing of the artifact is left there.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.failed.is_empty() && self.kept.iter().all(|(_, why)| *why == Kept::Stranger)
    }

    /// Whether all that is left is left [for now](Kept::is_for_now).
    #[must_use]
    pub fn is_for_now(&self) -> bool {
        let mut kept = self.kept.iter().filter(|(_, why)| *why != Kept::Stranger);
        self.failed.is_empty() && !self.is_whole() && kept.all(|(_, why)| why.is_for_now())
    }
}

/// The file or directory that something was read from.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    path: PathBuf,
    directory: Option<FileId>,
    sort: Sort,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sort {
    NamedFile,
    FoundFile,
    Directory,
}

impl Place {
    pub(super) fn of_file(path: PathBuf, directory: Option<FileId>, named: bool) -> Self {
        Self { path, directory, sort: if named { Sort::NamedFile } else { Sort::FoundFile } }
    }

    pub(super) fn of_directory(path: PathBuf, directory: Option<FileId>) -> Self {
        Self { path, directory, sort: Sort::Directory }
    }

    /// The file, to be read again; nothing if it is a directory.
    pub(crate) fn into_file(self) -> Option<Item> {
        match self.sort {
            Sort::NamedFile => Some(Item::Named(self.path)),
            Sort::FoundFile => Some(Item::Found(FoundPath::again(self.path, self.directory))),
            Sort::Directory => None,
        }
    }
}

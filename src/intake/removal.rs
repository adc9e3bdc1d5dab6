//! Removal of original files after storing. See [`ArtifactSource::remove_all`].

use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::fs::{File, TryLockError};
use std::hash::{BuildHasher, Hasher as _, RandomState};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::{Duration, SystemTime};

use super::document::examine_named;
use super::file::OpenFile;
use super::original::{ArtifactSource, KeepReason, MoveOptions, MoveOutcome, SourceForm};
use super::tree::{self, FileId, FileKind, FileState, OpenDir, ReopenResult};
use super::verdict::{DocumentVerdict, SourceError};
use super::writers;
use crate::artifact::Completeness;
use crate::digest::{BlobHash, CaptureHash, Digest};
use crate::files::set_aside;

/// The minimum age at which a file's time is reliable. File system clocks are coarse: for a more recent write, the time
/// does not show whether another one followed.
const LATELY: Duration = Duration::from_secs(1);

/// A file to be removed.
pub(super) struct RemovalCandidate<'o> {
    /// The position of the original that it belongs to.
    pub(super) owner: usize,
    /// The number of the original in the temporary names of its files.
    pub(super) number: u64,
    pub(super) directory: Rc<OpenDir>,
    pub(super) name: OsString,
    pub(super) path: PathBuf,
    pub(super) proof: Proof<'o>,
    /// Its state when it was last examined.
    pub(super) state: FileState,
}

/// The proof that a file is the one that was stored.
#[derive(Clone, Copy)]
pub(super) enum Proof<'o> {
    Bytes(&'o BlobHash),
    /// An archive is not stored itself: its members must still be the same.
    Capture(&'o CaptureHash),
}

/// The result of renaming a file.
pub(super) enum RenameResult<'o> {
    Aside(SetAsideFile<'o>),
    /// It is at this path, and is kept for this reason.
    Kept(PathBuf, KeepReason),
}

/// An error, and the location of the file if that is not its path.
pub(super) type RenameFailure = (Option<PathBuf>, io::Error);

/// A temporarily renamed file.
pub(super) struct SetAsideFile<'o> {
    pub(super) candidate: RemovalCandidate<'o>,
    pub(super) name: OsString,
    /// Its lock. While it is held, other processes do not [recover](set_aside) the file.
    _lock: File,
}

impl<'o> RemovalCandidate<'o> {
    /// Renames the file if it is the one that was stored.
    pub(super) fn set_aside(self, options: &MoveOptions) -> Result<RenameResult<'o>, RenameFailure> {
        let in_place = |error| (None, error);
        let lock = self.directory.open_file(&self.name).map_err(in_place)?;
        if is_locked(&lock) {
            return Ok(RenameResult::Kept(self.path, KeepReason::InUse));
        }
        if !self.is_still(&self.name, options).map_err(in_place)? {
            return Ok(RenameResult::Kept(self.path, KeepReason::Changed));
        }
        // Hashing takes a while for large files, and the file may have been written to in the meantime. The change time
        // differs even if the modification time was reset, or if another process renamed the file.
        let is_untouched = self.state == self.directory.state(&self.name).map_err(in_place)?;
        // A file that takes this name in the meantime must not be lost. No other program knows the new name.
        let name = self.rename().map_err(in_place)?;
        let before = self.state;
        let mut aside = SetAsideFile { candidate: self, name, _lock: lock };
        let path = aside.path();
        let elsewhere = |error| (Some(path.clone()), error);
        let now = aside.candidate.directory.state(&aside.name).map_err(elsewhere)?;
        aside.candidate.state = now;
        let is_certain = cfg!(unix) && is_untouched && is_old(&before);
        let is_same = before.has_same_contents(&now)
            && (is_certain || aside.candidate.is_still(&aside.name, options).map_err(elsewhere)?);
        if is_same {
            return Ok(RenameResult::Aside(aside));
        }
        let path = aside.put_back().map_err(elsewhere)?;
        Ok(RenameResult::Kept(path, KeepReason::Changed))
    }

    /// Gives the file a temporary name, and returns it.
    fn rename(&self) -> io::Result<OsString> {
        let name = set_aside::aside_name(self.number, &self.name);
        match self.directory.rename(&self.name, &name) {
            Ok(()) => return Ok(name),
            Err(error) if error.kind() == ErrorKind::InvalidFilename => {}
            Err(error) => return Err(error),
        }
        let name = set_aside::short_aside_name(self.number);
        self.directory.rename(&self.name, &name)?;
        Ok(name)
    }

    /// Returns whether the file `name` still contains what was stored.
    fn is_still(&self, name: &OsStr, options: &MoveOptions) -> io::Result<bool> {
        let file = self.directory.open_file(name)?;
        match self.proof {
            Proof::Bytes(blob) => Ok(blob.0 == Digest::from_reader(file)?),
            Proof::Capture(capture) => {
                let file = OpenFile::new(file, None)?;
                let verdict = examine_named(&self.path, file, &options.examine)?;
                Ok(matches!(verdict, DocumentVerdict::Admitted(admitted) if admitted.capture() == *capture))
            }
        }
    }
}

impl SetAsideFile<'_> {
    pub(super) fn path(&self) -> PathBuf {
        self.candidate.directory.path().join(&self.name)
    }

    /// Renames the file back, unless its name has been taken, and returns its location.
    fn put_back(&self) -> io::Result<PathBuf> {
        let Self { candidate: RemovalCandidate { directory, name, path, .. }, name: aside, .. } = self;
        match directory.link(aside, name) {
            Ok(()) => directory.remove_file(aside).map(|()| path.clone()),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(self.path()),
            // Used where hard links are not available, and for directories.
            Err(_) if directory.state(name).is_err() => directory.rename(aside, name).map(|()| path.clone()),
            Err(_) => Ok(self.path()),
        }
    }
}

/// Locks the file, and returns whether a process has locked it for its own use. On file systems without locks, it is not
/// locked.
fn is_locked(file: &File) -> bool {
    // On other systems, locks keep processes from reading and writing.
    cfg!(unix) && matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock))
}

/// Returns whether a file was written so long ago that a later write would change its time.
fn is_old(state: &FileState) -> bool {
    state.quiet(tree::now()).is_some_and(|quiet| quiet > LATELY)
}

/// The number of files that are removed at once, if no original has more: detecting files that are open for writing
/// scans all processes. Between the first step and the last, they are open and have another name.
const GROUP: usize = 64;

impl ArtifactSource {
    /// Removes the files whose bytes, hashed again, are still those that were stored, and no others. From a directory,
    /// the artifact's files are removed, then the directory itself if it is empty. Returns the outcome for each of
    /// `originals`.
    ///
    /// A file is kept if a process has it open for writing, where the system can detect this, and while its artifact
    /// may grow and it was written less than [`MoveOptions::settle_growing`] before `now`. All operations take place
    /// within the directory that was read: a directory that replaced it under its path is not touched. A file that is
    /// created in place of another one during the removal is not lost: a file is renamed before it is removed, to
    /// `.runvault-aside-`, a number and its name, and renamed back if it is a different one. If the process is killed,
    /// [`Inputs::recovering`](super::Inputs::recovering) recovers the files.
    #[must_use]
    pub fn remove_all(originals: &[&Self], options: &MoveOptions, now: SystemTime) -> Vec<MoveOutcome> {
        let mut outcomes = Vec::with_capacity(originals.len());
        let mut rest = originals;
        while !rest.is_empty() {
            let (group, others) = rest.split_at(group_size(rest));
            outcomes.extend(RemovalBatch::new(group, options, now).remove());
            rest = others;
        }
        outcomes
    }
}

/// Returns the number of the first originals that have at most [`GROUP`] files together, and at least one.
fn group_size(originals: &[&ArtifactSource]) -> usize {
    let mut files = 0;
    let fits = |original: &&&ArtifactSource| {
        files += if original.form == SourceForm::Archive { 1 } else { original.members.len().max(1) };
        files <= GROUP
    };
    originals.iter().take_while(fits).count().max(1).min(originals.len())
}

/// Originals that are removed together, and the outcome of each so far.
struct RemovalBatch<'o> {
    originals: &'o [&'o ArtifactSource],
    options: &'o MoveOptions,
    now: SystemTime,
    outcomes: Vec<MoveOutcome>,
    /// The directories of those originals that are directories.
    directories: Vec<Option<Rc<OpenDir>>>,
}

impl<'o> RemovalBatch<'o> {
    fn new(originals: &'o [&'o ArtifactSource], options: &'o MoveOptions, now: SystemTime) -> Self {
        let outcomes = originals.iter().map(|_| MoveOutcome::default()).collect();
        Self { originals, options, now, outcomes, directories: originals.iter().map(|_| None).collect() }
    }

    fn remove(mut self) -> Vec<MoveOutcome> {
        let mut candidates = Vec::new();
        for (owner, original) in self.originals.iter().enumerate() {
            if let Err(error) = self.candidates(owner, original, &mut candidates) {
                self.fail(owner, &original.path, error);
            }
        }
        let in_use = writers::among(&candidates.iter().map(|candidate| candidate.state.id).collect());
        let mut aside = Vec::new();
        for candidate in candidates {
            if in_use.contains(&candidate.state.id) {
                self.keep(candidate.owner, candidate.path, KeepReason::InUse);
            } else {
                aside.extend(self.set_aside(candidate));
            }
        }
        // No process opens a file by a name that it does not know, so no new writer can appear from here on.
        let in_use = writers::among(&aside.iter().map(|aside| aside.candidate.state.id).collect());
        aside.retain(|aside| self.is_confirmed(aside, &in_use));
        for files in aside.chunk_by(|one, next| one.candidate.owner == next.candidate.owner) {
            self.remove_files(files);
        }
        for (owner, directory) in std::mem::take(&mut self.directories).into_iter().enumerate() {
            if let Some(directory) = directory {
                self.finish_directory(owner, &directory);
            }
        }
        self.outcomes
    }

    fn note(&mut self, owner: usize, note: impl FnOnce(&mut MoveOutcome)) {
        if let Some(outcome) = self.outcomes.get_mut(owner) {
            note(outcome);
        }
    }

    fn keep(&mut self, owner: usize, path: PathBuf, why: KeepReason) {
        self.note(owner, |outcome| outcome.kept.push((path, why)));
    }

    /// Records a failure. A file that no longer exists is not a failure: its removal was intended.
    fn fail(&mut self, owner: usize, path: &Path, error: io::Error) {
        if error.kind() != ErrorKind::NotFound {
            self.note(owner, |outcome| outcome.failed.push(SourceError::at(path)(error)));
        }
    }

    /// Adds the files of an original that may be removed.
    fn candidates(
        &mut self,
        owner: usize,
        original: &'o ArtifactSource,
        candidates: &mut Vec<RemovalCandidate<'o>>,
    ) -> io::Result<()> {
        let path = original.path.as_path();
        let is_directory = original.form == SourceForm::Directory;
        let at = if is_directory { path } else { tree::parent(path) };
        let directory = match original.directory {
            None => OpenDir::open(at)?,
            Some(id) => match OpenDir::reopen(at, id)? {
                ReopenResult::Same(directory) => directory,
                ReopenResult::Replaced => {
                    self.keep(owner, path.to_owned(), KeepReason::Replaced);
                    return Ok(());
                }
            },
        };
        let directory = Rc::new(directory);
        if is_directory && let Some(free) = self.directories.get_mut(owner) {
            *free = Some(Rc::clone(&directory));
        }
        let number = RandomState::new().build_hasher().finish();
        for (member, blob) in &original.members {
            let (name, path, proof) = match original.form {
                SourceForm::Directory => (OsStr::new(member), path.join(member), Proof::Bytes(blob)),
                SourceForm::Document => {
                    (path.file_name().unwrap_or_default(), path.to_owned(), Proof::Bytes(blob))
                }
                SourceForm::Archive => {
                    let name = path.file_name().unwrap_or_default();
                    (name, path.to_owned(), Proof::Capture(&original.capture))
                }
            };
            match self.candidate(original, &directory, name) {
                Ok(Ok(state)) => {
                    let (directory, name) = (Rc::clone(&directory), name.to_owned());
                    candidates.push(RemovalCandidate { owner, number, directory, name, path, proof, state });
                }
                Ok(Err(why)) => self.keep(owner, path, why),
                Err(error) => self.fail(owner, &path, error),
            }
            if original.form == SourceForm::Archive {
                break;
            }
        }
        Ok(())
    }

    /// Returns the state of the file `name`, or the reason it is kept regardless of its content.
    fn candidate(
        &self,
        original: &ArtifactSource,
        directory: &OpenDir,
        name: &OsStr,
    ) -> io::Result<Result<FileState, KeepReason>> {
        let state = directory.state(name)?;
        // Times in the future are ignored: the file may have just been written.
        let is_quiet = || state.quiet(self.now).unwrap_or_default() >= self.options.settle_growing;
        Ok(match state.kind {
            FileKind::Link => Err(KeepReason::Link),
            // Reading it might never end.
            FileKind::Directory | FileKind::Other => Err(KeepReason::Changed),
            FileKind::File if original.completeness == Completeness::MayGrow && !is_quiet() => {
                Err(KeepReason::MayGrow)
            }
            FileKind::File => Ok(state),
        })
    }

    /// Renames a file to a temporary name if it is the one that was stored.
    fn set_aside(&mut self, candidate: RemovalCandidate<'o>) -> Option<SetAsideFile<'o>> {
        let (owner, path) = (candidate.owner, candidate.path.clone());
        match candidate.set_aside(self.options) {
            Ok(RenameResult::Aside(aside)) => return Some(aside),
            Ok(RenameResult::Kept(path, why)) => self.keep(owner, path, why),
            Err(error) => self.fail(owner, &error.0.unwrap_or(path), error.1),
        }
        None
    }

    /// Returns whether a file that was set aside can be removed. Otherwise renames it back.
    fn is_confirmed(&mut self, aside: &SetAsideFile<'o>, in_use: &HashSet<FileId>) -> bool {
        let SetAsideFile { candidate, name, .. } = aside;
        let why = match candidate.directory.state(name) {
            _ if in_use.contains(&candidate.state.id) => KeepReason::InUse,
            // A process that had it open until now may have written to it.
            Ok(state) if !candidate.state.has_same_contents(&state) => KeepReason::Changed,
            Ok(_) => return true,
            Err(error) => {
                self.fail(candidate.owner, &aside.path(), error);
                return false;
            }
        };
        match aside.put_back() {
            Ok(path) => self.keep(candidate.owner, path, why),
            Err(error) => self.fail(candidate.owner, &aside.path(), error),
        }
        false
    }

    /// Removes the files of one original that were set aside. The first of several is renamed to confirm that all of
    /// them can be removed, and is removed last: if the process is killed, the others are [removed](set_aside) too.
    fn remove_files(&mut self, files: &[SetAsideFile<'o>]) {
        let Some((first, others)) = files.split_first() else { return };
        let RemovalCandidate { number, directory, name, .. } = &first.candidate;
        let confirmed = set_aside::confirmed_name(*number, name);
        let is_renamed = !others.is_empty() && directory.rename(&first.name, &confirmed).is_ok();
        for file in others {
            self.remove_file(&file.candidate, &file.name);
        }
        self.remove_file(&first.candidate, if is_renamed { &confirmed } else { &first.name });
    }

    fn remove_file(&mut self, candidate: &RemovalCandidate<'o>, name: &OsStr) {
        let RemovalCandidate { owner, directory, path, .. } = candidate;
        match directory.remove_file(name) {
            Ok(()) => self.note(*owner, |outcome| outcome.removed.push(path.clone())),
            Err(error) => self.fail(*owner, &directory.path().join(name), error),
        }
    }

    /// Removes a directory without its artifact's files if it is empty.
    fn finish_directory(&mut self, owner: usize, directory: &OpenDir) {
        let entries = match directory.entries(usize::MAX) {
            Ok(entries) => entries,
            Err(error) => return self.fail(owner, directory.path(), error),
        };
        if entries.is_empty() {
            match remove_directory(directory) {
                Ok(true) => self.note(owner, |outcome| outcome.removed.push(directory.path().to_owned())),
                Ok(false) => self.keep(owner, directory.path().to_owned(), KeepReason::Replaced),
                // A new entry may have appeared in it.
                Err(error) if error.kind() == ErrorKind::DirectoryNotEmpty => {}
                Err(error) => self.fail(owner, directory.path(), error),
            }
            return;
        }
        let Some(outcome) = self.outcomes.get_mut(owner) else { return };
        let mut left: Vec<PathBuf> = entries.iter().map(|entry| directory.path().join(&entry.name)).collect();
        left.sort_unstable();
        let known: HashSet<PathBuf> = outcome
            .kept
            .iter()
            .map(|(path, _)| path)
            .chain(outcome.failed.iter().map(|error| &error.path))
            .cloned()
            .collect();
        let unexpected = left.into_iter().filter(|path| !known.contains(path));
        outcome.kept.extend(unexpected.map(|path| (path, KeepReason::Unexpected)));
    }
}

/// Removes an empty directory. Returns false if another one has its path.
fn remove_directory(directory: &OpenDir) -> io::Result<bool> {
    let path = directory.path();
    let Some(name) = path.file_name() else { return std::fs::remove_dir(path).map(|()| true) };
    let parent = OpenDir::open(tree::parent(path))?;
    let state = parent.state(name)?;
    if state.id != directory.id() || state.kind != FileKind::Directory {
        return Ok(false);
    }
    parent.remove_directory(name).map(|()| true)
}

//! Removal of original files after storing. See [`Original::remove_all`].

use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::hash::{BuildHasher, Hasher as _, RandomState};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::{Duration, SystemTime};

use super::file::OpenFile;
use super::original::{Form, KeepReason, MoveOptions, MoveOutcome, Original};
use super::tree::{self, FileId, FileKind, FileState, OpenDir, Reopened};
use super::{SourceError, Verdict, examine_named, writers};
use crate::artifact::Completeness;
use crate::digest::{BlobHash, CaptureHash, Digest};

/// The minimum age at which a file's time is reliable. File system clocks are coarse: for a more recent write, the time
/// does not show whether another one followed.
const LATELY: Duration = Duration::from_secs(1);

/// The number of originals that are removed at once: detecting files that are open for writing scans all processes.
/// Between the first step and the last, their files have another name.
const GROUP: usize = 64;

pub(super) fn remove_all(
    originals: &[&Original],
    options: &MoveOptions,
    now: SystemTime,
) -> Vec<MoveOutcome> {
    let groups = originals.chunks(GROUP);
    groups.flat_map(|group| Group::new(group, options, now).remove()).collect()
}

/// Originals that are removed together, and the outcome of each so far.
struct Group<'o> {
    originals: &'o [&'o Original],
    options: &'o MoveOptions,
    now: SystemTime,
    taken: Vec<MoveOutcome>,
    /// The directories of those originals that are directories.
    directories: Vec<Option<Rc<OpenDir>>>,
}

/// A file to be removed.
struct Candidate<'o> {
    /// The number of the original that it belongs to.
    owner: usize,
    directory: Rc<OpenDir>,
    name: OsString,
    path: PathBuf,
    proof: Proof<'o>,
    /// Its state when it was last examined.
    state: FileState,
}

/// The proof that a file is the one that was stored.
#[derive(Clone, Copy)]
enum Proof<'o> {
    Bytes(&'o BlobHash),
    /// An archive is not stored itself: its members must still be the same.
    Capture(&'o CaptureHash),
}

/// The result of renaming a file.
enum Attempt<'o> {
    Aside(Aside<'o>),
    /// It is not the file that was stored, and is at this path.
    Changed(PathBuf),
}

/// An error, and the location of the file if that is not its path.
type Failure = (Option<PathBuf>, io::Error);

/// A temporarily renamed file.
struct Aside<'o> {
    candidate: Candidate<'o>,
    name: OsString,
}

impl<'o> Group<'o> {
    fn new(originals: &'o [&'o Original], options: &'o MoveOptions, now: SystemTime) -> Self {
        let taken = originals.iter().map(|_| MoveOutcome::default()).collect();
        Self { originals, options, now, taken, directories: originals.iter().map(|_| None).collect() }
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
        for aside in &aside {
            self.finish(aside, &in_use);
        }
        for (owner, directory) in std::mem::take(&mut self.directories).into_iter().enumerate() {
            if let Some(directory) = directory {
                self.finish_directory(owner, &directory);
            }
        }
        self.taken
    }

    fn note(&mut self, owner: usize, note: impl FnOnce(&mut MoveOutcome)) {
        if let Some(taken) = self.taken.get_mut(owner) {
            note(taken);
        }
    }

    fn keep(&mut self, owner: usize, path: PathBuf, why: KeepReason) {
        self.note(owner, |taken| taken.kept.push((path, why)));
    }

    /// Records a failure. A file that no longer exists is not a failure: its removal was intended.
    fn fail(&mut self, owner: usize, path: &Path, error: io::Error) {
        if error.kind() != ErrorKind::NotFound {
            self.note(owner, |taken| taken.failed.push(SourceError::at(path)(error)));
        }
    }

    /// Adds the files of an original that may be removed.
    fn candidates(
        &mut self,
        owner: usize,
        original: &'o Original,
        candidates: &mut Vec<Candidate<'o>>,
    ) -> io::Result<()> {
        let path = original.path.as_path();
        let is_directory = original.form == Form::Directory;
        let at = if is_directory { path } else { tree::parent(path) };
        let directory = match original.directory {
            None => OpenDir::open(at)?,
            Some(id) => match OpenDir::reopen(at, id)? {
                Reopened::Same(directory) => directory,
                Reopened::Replaced => {
                    self.keep(owner, path.to_owned(), KeepReason::Replaced);
                    return Ok(());
                }
            },
        };
        let directory = Rc::new(directory);
        if is_directory && let Some(free) = self.directories.get_mut(owner) {
            *free = Some(Rc::clone(&directory));
        }
        for (member, blob) in &original.members {
            let (name, path, proof) = match original.form {
                Form::Directory => (OsStr::new(member), path.join(member), Proof::Bytes(blob)),
                Form::Document => (path.file_name().unwrap_or_default(), path.to_owned(), Proof::Bytes(blob)),
                Form::Archive => {
                    let name = path.file_name().unwrap_or_default();
                    (name, path.to_owned(), Proof::Capture(&original.capture))
                }
            };
            match self.candidate(original, &directory, name) {
                Ok(Ok(state)) => {
                    let (directory, name) = (Rc::clone(&directory), name.to_owned());
                    candidates.push(Candidate { owner, directory, name, path, proof, state });
                }
                Ok(Err(why)) => self.keep(owner, path, why),
                Err(error) => self.fail(owner, &path, error),
            }
            if original.form == Form::Archive {
                break;
            }
        }
        Ok(())
    }

    /// Returns the state of the file `name`, or the reason it is kept regardless of its content.
    fn candidate(
        &self,
        original: &Original,
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
    fn set_aside(&mut self, candidate: Candidate<'o>) -> Option<Aside<'o>> {
        let (owner, path) = (candidate.owner, candidate.path.clone());
        match candidate.set_aside(self.options) {
            Ok(Attempt::Aside(aside)) => return Some(aside),
            Ok(Attempt::Changed(path)) => self.keep(owner, path, KeepReason::Changed),
            Err(error) => self.fail(owner, &error.0.unwrap_or(path), error.1),
        }
        None
    }

    /// Removes a file that was set aside, or renames it back if it is in use.
    fn finish(&mut self, aside: &Aside<'o>, in_use: &HashSet<FileId>) {
        let Aside { candidate, name } = aside;
        let why = match candidate.directory.state(name) {
            _ if in_use.contains(&candidate.state.id) => KeepReason::InUse,
            // A process that had it open until now may have written to it.
            Ok(state) if !candidate.state.has_same_contents(&state) => KeepReason::Changed,
            Ok(_) => {
                let (owner, path) = (candidate.owner, candidate.path.clone());
                match candidate.directory.remove_file(name) {
                    Ok(()) => self.note(owner, |taken| taken.removed.push(path)),
                    Err(error) => self.fail(owner, &candidate.directory.path().join(name), error),
                }
                return;
            }
            Err(error) => return self.fail(candidate.owner, &candidate.directory.path().join(name), error),
        };
        match aside.put_back() {
            Ok(path) => self.keep(aside.candidate.owner, path, why),
            Err(error) => self.fail(aside.candidate.owner, &aside.path(), error),
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
                Ok(true) => self.note(owner, |taken| taken.removed.push(directory.path().to_owned())),
                Ok(false) => self.keep(owner, directory.path().to_owned(), KeepReason::Replaced),
                // A new entry may have appeared in it.
                Err(error) if error.kind() == ErrorKind::DirectoryNotEmpty => {}
                Err(error) => self.fail(owner, directory.path(), error),
            }
            return;
        }
        let Some(taken) = self.taken.get_mut(owner) else { return };
        let mut left: Vec<PathBuf> = entries.iter().map(|entry| directory.path().join(&entry.name)).collect();
        left.sort();
        let known: HashSet<PathBuf> = taken
            .kept
            .iter()
            .map(|(path, _)| path)
            .chain(taken.failed.iter().map(|error| &error.path))
            .cloned()
            .collect();
        let unexpected = left.into_iter().filter(|path| !known.contains(path));
        taken.kept.extend(unexpected.map(|path| (path, KeepReason::Unexpected)));
    }
}

impl<'o> Candidate<'o> {
    /// Renames the file if it is the one that was stored.
    fn set_aside(self, options: &MoveOptions) -> Result<Attempt<'o>, Failure> {
        let in_place = |error| (None, error);
        if !self.is_still(&self.name, options).map_err(in_place)? {
            return Ok(Attempt::Changed(self.path));
        }
        // Hashing takes a while for large files, and the file may have been written to in the meantime. The change time
        // differs even if the modification time was reset, or if another process renamed the file.
        let is_untouched = self.state == self.directory.state(&self.name).map_err(in_place)?;
        // A file that takes this name in the meantime must not be lost. No other program knows the new name.
        let number = RandomState::new().build_hasher().finish();
        let name = OsString::from(format!(".runvault-{number:016x}"));
        self.directory.rename(&self.name, &name).map_err(in_place)?;
        let before = self.state;
        let mut aside = Aside { candidate: self, name };
        let path = aside.path();
        let elsewhere = |error| (Some(path.clone()), error);
        let now = aside.candidate.directory.state(&aside.name).map_err(elsewhere)?;
        aside.candidate.state = now;
        let is_certain = cfg!(unix) && is_untouched && is_old(&before);
        let is_same = before.has_same_contents(&now)
            && (is_certain || aside.candidate.is_still(&aside.name, options).map_err(elsewhere)?);
        if is_same {
            return Ok(Attempt::Aside(aside));
        }
        aside.put_back().map(Attempt::Changed).map_err(elsewhere)
    }

    /// Returns whether the file `name` still contains what was stored.
    fn is_still(&self, name: &OsStr, options: &MoveOptions) -> io::Result<bool> {
        let file = self.directory.open_file(name)?;
        match self.proof {
            Proof::Bytes(blob) => Ok(blob.0 == Digest::from_reader(file)?),
            Proof::Capture(capture) => {
                let file = OpenFile::new(file, None)?;
                let verdict = examine_named(&self.path, file, &options.examine)?;
                Ok(matches!(verdict, Verdict::Admitted(admitted) if admitted.capture() == *capture))
            }
        }
    }
}

impl Aside<'_> {
    fn path(&self) -> PathBuf {
        self.candidate.directory.path().join(&self.name)
    }

    /// Renames the file back, unless its name has been taken, and returns its location.
    fn put_back(&self) -> io::Result<PathBuf> {
        let Self { candidate: Candidate { directory, name, path, .. }, name: aside } = self;
        match directory.link(aside, name) {
            Ok(()) => directory.remove_file(aside).map(|()| path.clone()),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(self.path()),
            // Used where hard links are not available, and for directories.
            Err(_) if directory.state(name).is_err() => directory.rename(aside, name).map(|()| path.clone()),
            Err(_) => Ok(self.path()),
        }
    }
}

/// Returns whether a file was written so long ago that a later write would change its time.
fn is_old(state: &FileState) -> bool {
    state.quiet(tree::now()).is_some_and(|quiet| quiet > LATELY)
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

//! Removing the files of what is stored. See [`Original::remove_all`].

use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::hash::{BuildHasher, Hasher as _, RandomState};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::{Duration, SystemTime};

use super::file::OpenFile;
use super::original::{Form, Kept, MoveOptions, Original, Taken};
use super::tree::{self, FileId, FileKind, FileState, OpenDir, Reopened};
use super::{SourceError, Verdict, examine_named, writers};
use crate::artifact::Completeness;
use crate::digest::{BlobHash, CaptureHash, Digest};

/// The clocks of file systems are coarse: of what was written so lately, the time does not tell whether it was written again.
const LATELY: Duration = Duration::from_secs(1);

/// Finding out which files are open for writing takes a look at all processes, so it is done for so many originals at
/// once. Between the first step and the last, the files of these have another name.
const GROUP: usize = 64;

pub(super) fn remove_all(originals: &[&Original], options: &MoveOptions, now: SystemTime) -> Vec<Taken> {
    let groups = originals.chunks(GROUP);
    groups.flat_map(|group| Group::of(group, options, now).remove()).collect()
}

/// Originals that are removed together, and what became of each so far.
struct Group<'o> {
    originals: &'o [&'o Original],
    options: &'o MoveOptions,
    now: SystemTime,
    taken: Vec<Taken>,
    /// The directories of those that are directories themselves.
    directories: Vec<Option<Rc<OpenDir>>>,
}

/// A file that is to be removed.
struct Candidate<'o> {
    /// The number of the original that it belongs to.
    owner: usize,
    directory: Rc<OpenDir>,
    name: OsString,
    path: PathBuf,
    proof: Proof<'o>,
    /// How it was when it was looked at last.
    state: FileState,
}

/// What a file must hold to be the one that was stored.
#[derive(Clone, Copy)]
enum Proof<'o> {
    Bytes(&'o BlobHash),
    /// An archive has no bytes of its own in the vault: it counts whether it still holds the same files.
    Capture(&'o CaptureHash),
}

/// What came of renaming a file.
enum Attempt<'o> {
    Aside(Aside<'o>),
    /// It is not the file that was stored, and is at this path.
    Changed(PathBuf),
}

/// A failure, and where the file is if that is not its path.
type Failure = (Option<PathBuf>, io::Error);

/// A file that has another name for the moment.
struct Aside<'o> {
    candidate: Candidate<'o>,
    name: OsString,
}

impl<'o> Group<'o> {
    fn of(originals: &'o [&'o Original], options: &'o MoveOptions, now: SystemTime) -> Self {
        let taken = originals.iter().map(|_| Taken::default()).collect();
        Self { originals, options, now, taken, directories: originals.iter().map(|_| None).collect() }
    }

    fn remove(mut self) -> Vec<Taken> {
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
                self.keep(candidate.owner, candidate.path, Kept::InUse);
            } else {
                aside.extend(self.set_aside(candidate));
            }
        }
        // Nothing opens a file by a name that it does not know, so from here on there is no new writer.
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

    fn note(&mut self, owner: usize, note: impl FnOnce(&mut Taken)) {
        if let Some(taken) = self.taken.get_mut(owner) {
            note(taken);
        }
    }

    fn keep(&mut self, owner: usize, path: PathBuf, why: Kept) {
        self.note(owner, |taken| taken.kept.push((path, why)));
    }

    /// Takes note of a failure. What is gone already is no failure: whoever removed it wanted the same.
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
                    self.keep(owner, path.to_owned(), Kept::Replaced);
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

    /// How the file `name` is, or why it is kept whatever is in it.
    fn candidate(
        &self,
        original: &Original,
        directory: &OpenDir,
        name: &OsStr,
    ) -> io::Result<Result<FileState, Kept>> {
        let state = directory.state(name)?;
        // Times in the future say nothing: it may have been written just now.
        let is_quiet = || state.quiet(self.now).unwrap_or_default() >= self.options.settle_growing;
        Ok(match state.kind {
            FileKind::Link => Err(Kept::Link),
            // It may never end when it is read.
            FileKind::Directory | FileKind::Other => Err(Kept::Changed),
            FileKind::File if original.completeness == Completeness::MayGrow && !is_quiet() => {
                Err(Kept::MayGrow)
            }
            FileKind::File => Ok(state),
        })
    }

    /// Gives a file a name that no other program knows, if it is the one that was stored.
    fn set_aside(&mut self, candidate: Candidate<'o>) -> Option<Aside<'o>> {
        let (owner, path) = (candidate.owner, candidate.path.clone());
        match candidate.set_aside(self.options) {
            Ok(Attempt::Aside(aside)) => return Some(aside),
            Ok(Attempt::Changed(path)) => self.keep(owner, path, Kept::Changed),
            Err(error) => self.fail(owner, &error.0.unwrap_or(path), error.1),
        }
        None
    }

    /// Removes a file that was set aside, or gives it its name again if it is in use.
    fn finish(&mut self, aside: &Aside<'o>, in_use: &HashSet<FileId>) {
        let Aside { candidate, name } = aside;
        let why = match candidate.directory.state(name) {
            _ if in_use.contains(&candidate.state.id) => Kept::InUse,
            // Whoever had it open until just now may have written.
            Ok(state) if !candidate.state.has_same_contents(&state) => Kept::Changed,
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

    /// Removes a directory that lost the files of its artifact, if nothing else is in it.
    fn finish_directory(&mut self, owner: usize, directory: &OpenDir) {
        let entries = match directory.entries(usize::MAX) {
            Ok(entries) => entries,
            Err(error) => return self.fail(owner, directory.path(), error),
        };
        if entries.is_empty() {
            match remove_directory(directory) {
                Ok(true) => self.note(owner, |taken| taken.removed.push(directory.path().to_owned())),
                Ok(false) => self.keep(owner, directory.path().to_owned(), Kept::Replaced),
                // Something may have appeared in it just now.
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
        let strangers = left.into_iter().filter(|path| !known.contains(path));
        taken.kept.extend(strangers.map(|path| (path, Kept::Stranger)));
    }
}

impl<'o> Candidate<'o> {
    /// Renames the file if it is the one that was stored.
    fn set_aside(self, options: &MoveOptions) -> Result<Attempt<'o>, Failure> {
        let in_place = |error| (None, error);
        if !self.is_still(&self.name, options).map_err(in_place)? {
            return Ok(Attempt::Changed(self.path));
        }
        // Hashing takes a while for large files, and somebody may have written meanwhile. The time of a change differs
        // even if the time of writing was set, and when another process renames the file.
        let is_untouched = self.state == self.directory.state(&self.name).map_err(in_place)?;
        // Whatever gets the name of this file just now must not be lost. No other program knows the new name.
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

    /// Whether the file called `name` holds what was stored.
    fn is_still(&self, name: &OsStr, options: &MoveOptions) -> io::Result<bool> {
        let file = self.directory.open_file(name)?;
        match self.proof {
            Proof::Bytes(blob) => Ok(blob.0 == Digest::of_reader(file)?),
            Proof::Capture(capture) => {
                let file = OpenFile::of(file, None)?;
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

    /// Gives the file its name again, unless that was given to another one meanwhile; gives where it is then.
    fn put_back(&self) -> io::Result<PathBuf> {
        let Self { candidate: Candidate { directory, name, path, .. }, name: aside } = self;
        match directory.link(aside, name) {
            Ok(()) => directory.remove_file(aside).map(|()| path.clone()),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(self.path()),
            // Where there are no hard links, and for directories.
            Err(_) if directory.state(name).is_err() => directory.rename(aside, name).map(|()| path.clone()),
            Err(_) => Ok(self.path()),
        }
    }
}

/// Whether a file was written so long ago that a file system would show if it was written since.
fn is_old(state: &FileState) -> bool {
    state.quiet(tree::now()).is_some_and(|quiet| quiet > LATELY)
}

/// Removes an empty directory; false if another one has its path.
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

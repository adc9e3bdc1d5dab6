//! Files that are to be removed, and their temporary names until then.

use std::ffi::{OsStr, OsString};
use std::fs::{File, TryLockError};
use std::io::{self, ErrorKind};
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;

use super::document::examine_named;
use super::file::OpenFile;
use super::original::{KeepReason, MoveOptions};
use super::tree::{self, FileState, OpenDir};
use super::verdict::DocumentVerdict;
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
    pub(super) fn put_back(&self) -> io::Result<PathBuf> {
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

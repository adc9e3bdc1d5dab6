//! Files that artifacts were read from, and taking them away once they are stored.

use std::fs::{self, File, Metadata};
use std::hash::{BuildHasher, Hasher as _, RandomState};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use super::{ExamineOptions, Item, SourceError, Verdict, examine};
use crate::artifact::Admitted;
use crate::clock;
use crate::digest::{BlobHash, CaptureHash, Digest};

/// The clocks of file systems are coarse: of what was written so lately, the time does not tell whether it was written again.
const LATELY: Duration = Duration::from_secs(1);

/// Where an artifact was read from, and what was read there.
#[derive(Clone, Debug)]
pub struct Original {
    path: PathBuf,
    form: Form,
    capture: CaptureHash,
    /// The files of the artifact by name.
    members: Vec<(String, BlobHash)>,
}

/// In which form the artifact was there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// A file with the bytes of the only member.
    Document,
    /// An archive of the members.
    Archive,
    /// A directory with the members in it.
    Directory,
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
    /// It is a link: what it leads to may be somebody else's.
    Link,
    /// It is not part of the artifact. Nothing of it was stored.
    Stranger,
}

impl Original {
    /// Of what was read from `item`; nothing if that was no file.
    pub(crate) fn of(place: Option<Place>, admitted: &Admitted) -> Option<Self> {
        let Place { path, is_directory } = place?;
        let form = match (is_directory, admitted.kind().is_of_directories()) {
            (true, _) => Form::Directory,
            (false, true) => Form::Archive,
            (false, false) => Form::Document,
        };
        let members = admitted.members().iter().map(|member| (member.name().to_owned(), member.blob()));
        Some(Self { path, form, capture: admitted.capture(), members: members.collect() })
    }

    /// The file or directory.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Removes what was stored: the files whose bytes are still those that were read, hashed again, and no others. A
    /// directory loses the artifact's files, and goes itself if nothing is left in it. Nothing that somebody puts in the place
    /// of a file meanwhile is lost: a file is moved aside before it is removed, as `.runvault-` and a number, and back if it
    /// is another one. `options` are those that it was examined with.
    #[must_use]
    pub fn remove(&self, options: &ExamineOptions) -> Taken {
        let mut taken = Taken::default();
        match self.form {
            Form::Document => {
                let members = self.members.iter();
                members.for_each(|(_, blob)| taken.take(&self.path, |path| Ok(blob.0 == digest_of(path)?)));
            }
            // An archive has no bytes of its own in the vault: it counts whether it still holds the same files.
            Form::Archive => taken.take(&self.path, |path| self.is_still(path, options)),
            Form::Directory => self.remove_directory(&mut taken),
        }
        taken
    }

    fn is_still(&self, path: &Path, options: &ExamineOptions) -> io::Result<bool> {
        let verdict = examine(Item::Named(path.to_owned()), options).map_err(|error| error.source)?;
        Ok(matches!(verdict, Verdict::Admitted(admitted) if admitted.capture() == self.capture))
    }

    fn remove_directory(&self, taken: &mut Taken) {
        for (name, blob) in &self.members {
            taken.take(&self.path.join(name), |path| Ok(blob.0 == digest_of(path)?));
        }
        match left_in(&self.path) {
            Ok(left) if left.is_empty() => match fs::remove_dir(&self.path) {
                Ok(()) => taken.removed.push(self.path.clone()),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                // Something may have appeared in it just now.
                Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => {}
                Err(error) => taken.failed.push(SourceError::at(&self.path)(error)),
            },
            Ok(left) => {
                let is_known = |path: &PathBuf| {
                    let failed = taken.failed.iter().map(|error| &error.path);
                    taken.kept.iter().map(|(path, _)| path).chain(failed).any(|known| known == path)
                };
                let strangers: Vec<PathBuf> = left.into_iter().filter(|path| !is_known(path)).collect();
                taken.kept.extend(strangers.into_iter().map(|path| (path, Kept::Stranger)));
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => taken.failed.push(SourceError::at(&self.path)(error)),
        }
    }
}

impl Taken {
    /// Whether nothing of the artifact is left there.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.failed.is_empty() && self.kept.iter().all(|(_, why)| *why == Kept::Stranger)
    }

    /// Removes a file of which `is_still` says that it is what was stored.
    fn take(&mut self, path: &Path, is_still: impl Fn(&Path) -> io::Result<bool>) {
        match take(path, is_still) {
            Ok(Left::Nothing) => self.removed.push(path.to_owned()),
            Ok(Left::Kept(path, why)) => self.kept.push((path, why)),
            // Whoever removed it wanted the same.
            Err(error) if error.source.kind() == io::ErrorKind::NotFound => {}
            Err(error) => self.failed.push(error),
        }
    }
}

/// What is left of a file.
enum Left {
    Nothing,
    Kept(PathBuf, Kept),
}

fn take(path: &Path, is_still: impl Fn(&Path) -> io::Result<bool>) -> Result<Left, SourceError> {
    let at = SourceError::at;
    let kept = |why| Ok(Left::Kept(path.to_owned(), why));
    let before = fs::symlink_metadata(path).map_err(at(path))?;
    if before.is_symlink() {
        return kept(Kept::Link);
    }
    // Something else has the name now; it may never end when it is read.
    if !before.is_file() || !is_still(path).map_err(at(path))? {
        return kept(Kept::Changed);
    }
    // Hashing takes a while for large files, and somebody may have written meanwhile.
    let is_untouched = is_untouched(&before, &fs::symlink_metadata(path).map_err(at(path))?);
    // Whoever gives the name to another file just now must not lose that one. No other program knows the new name.
    let aside = path.with_file_name(format!(".runvault-{:016x}", RandomState::new().build_hasher().finish()));
    fs::rename(path, &aside).map_err(at(path))?;
    if is_the_same(&before, is_untouched, &aside, is_still).map_err(at(&aside))? {
        fs::remove_file(&aside).map_err(at(&aside))?;
        return Ok(Left::Nothing);
    }
    Ok(Left::Kept(put_back(&aside, path).map_err(at(&aside))?, Kept::Changed))
}

/// Whether what was moved aside is the file that was looked at `before`.
fn is_the_same(
    before: &Metadata,
    is_untouched: bool,
    aside: &Path,
    is_still: impl Fn(&Path) -> io::Result<bool>,
) -> io::Result<bool> {
    let now = fs::symlink_metadata(aside)?;
    let age = SystemTime::from(clock::now()).duration_since(before.modified()?).unwrap_or_default();
    if !now.is_file() || !looks_the_same(before, &now)? {
        return Ok(false);
    }
    Ok(cfg!(unix) && is_untouched && age > LATELY || is_still(aside)?)
}

/// Whether nobody wrote a file or put another one in its place, as far as the system knows.
fn is_untouched(before: &Metadata, now: &Metadata) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        // That changes even if somebody sets the time of writing, and when another process moves the file aside.
        let changed = |file: &Metadata| (file.ctime(), file.ctime_nsec());
        if changed(before) != changed(now) {
            return false;
        }
    }
    looks_the_same(before, now).unwrap_or_default()
}

fn looks_the_same(before: &Metadata, now: &Metadata) -> io::Result<bool> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        if (before.dev(), before.ino()) != (now.dev(), now.ino()) {
            return Ok(false);
        }
    }
    Ok(before.len() == now.len() && before.modified()? == now.modified()?)
}

/// Gives a file its name again, unless somebody gave that to another one meanwhile; gives where it is then.
fn put_back(aside: &Path, path: &Path) -> io::Result<PathBuf> {
    match fs::hard_link(aside, path) {
        Ok(()) => fs::remove_file(aside).map(|()| path.to_owned()),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(aside.to_owned()),
        // Where there are no hard links, and for directories.
        Err(_) if fs::symlink_metadata(path).is_err() => fs::rename(aside, path).map(|()| path.to_owned()),
        Err(_) => Ok(aside.to_owned()),
    }
}

fn digest_of(path: &Path) -> io::Result<Digest> {
    Digest::of_reader(File::open(path)?)
}

/// What is in a directory, by name.
fn left_in(path: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = fs::read_dir(path)?.map(|entry| entry.map(|entry| entry.path()));
    let mut left = entries.collect::<io::Result<Vec<_>>>()?;
    left.sort();
    Ok(left)
}

/// The file or directory that an item stands for.
pub(crate) struct Place {
    path: PathBuf,
    is_directory: bool,
}

impl Item {
    /// The file or directory that it stands for, if it is one that can be read.
    pub(crate) fn place(&self) -> Option<Place> {
        match self {
            Self::Named(path) | Self::Found(path) => Some(Place { path: path.clone(), is_directory: false }),
            Self::Directory { path, .. } => Some(Place { path: path.clone(), is_directory: true }),
            Self::NotAFile(_) | Self::End { .. } | Self::Document { .. } | Self::Stated(_) => None,
        }
    }
}

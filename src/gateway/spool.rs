//! The calls of a run that is not finished, on disk: a file in a directory, to which each call is appended and synced. A
//! process locks one file of its own for all of them, so that those of processes that ended are taken over by the next one.

use std::borrow::Cow;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use crate::calls::request_store::RequestStore;
use crate::calls::run::{CallRecord, RunHead};
use crate::calls::spool_file::{self, ENDING, OWNER_ENDING, SPANS_ENDING, SpoolContent, SpoolRecord};
use crate::files;

/// The ending that earlier builds used, which lock each file.
const EARLIER_ENDING: &str = "calls";
/// What is added to the names of files that are not read again by themselves.
const ASIDE: [&str; 2] = [DAMAGED, UNSTORED];
pub(super) const DAMAGED: &str = "damaged";
pub(super) const UNSTORED: &str = "unstored";

/// Number of bytes that are written at a time: most lines are written at once.
const BUFFER: usize = 1 << 20;

/// The directory of the files of runs.
#[derive(Debug)]
pub(super) struct SpoolDirectory {
    path: PathBuf,
    /// The file that this process locks, once it records a run.
    owner: Mutex<Option<LockedFile>>,
}

/// A file that this process locks as long as it is open. It is removed when it is dropped.
#[derive(Debug)]
pub(super) struct LockedFile {
    path: PathBuf,
    pub(super) file: File,
}

impl LockedFile {
    /// Creates a file in a directory, which is created, too, with a name that no other file has.
    pub(super) fn create(directory: &Path, ending: &str) -> io::Result<Self> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        files::create_dir_all(directory).map_err(naming(directory))?;
        loop {
            let number = NUMBER.fetch_add(1, Ordering::Relaxed);
            let path = directory.join(format!("{}-{number}.{ending}", std::process::id()));
            match options().create_new(true).open(&path) {
                // A process that looks for files that were left can have it for a moment, and removes it.
                Ok(file) if file.try_lock().is_ok() && path.exists() => return Ok(Self { path, file }),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(naming(&path)(error)),
            }
        }
    }
}

impl Drop for LockedFile {
    fn drop(&mut self) {
        // One that is left is removed by the next process.
        let _ = fs::remove_file(&self.path);
    }
}

impl SpoolDirectory {
    pub(super) fn new(path: PathBuf) -> Self {
        Self { path, owner: Mutex::new(None) }
    }

    /// Returns the beginning of the names of the files of this process, for which it locks a file.
    fn owner(&self) -> io::Result<String> {
        let mut owner = self.owner.lock();
        if owner.is_none() {
            *owner = Some(LockedFile::create(&self.path, OWNER_ENDING)?);
        }
        let name = owner.as_ref().and_then(|owner| owner.path.file_stem()).unwrap_or_default();
        Ok(name.to_string_lossy().into_owned())
    }

    /// Returns the paths of the files of runs, sorted: those to be taken over, and those that were set aside.
    pub(super) fn files(&self) -> io::Result<(Vec<PathBuf>, Vec<PathBuf>)> {
        let (aside, others): (Vec<PathBuf>, Vec<PathBuf>) =
            self.paths()?.into_iter().partition(|path| self.is_aside(path));
        Ok((others.into_iter().filter(|path| is_run(path)).collect(), aside))
    }

    /// Returns whether a file was set aside.
    pub(super) fn is_aside(&self, path: &Path) -> bool {
        let ending = path.extension().map(|ending| ending.to_string_lossy()).unwrap_or_default();
        let word = ending.split('-').next().unwrap_or_default();
        path.parent() == Some(&self.path) && ASIDE.contains(&word) && is_run(&path.with_extension(""))
    }

    /// Returns the paths in the directory, sorted; none if it does not exist.
    fn paths(&self) -> io::Result<Vec<PathBuf>> {
        let entries = match fs::read_dir(&self.path) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(naming(&self.path)(error)),
        };
        let paths = entries.map(|entry| entry.map(|entry| entry.path())).collect::<io::Result<Vec<_>>>();
        let mut paths = paths.map_err(naming(&self.path))?;
        paths.sort_unstable();
        Ok(paths)
    }

    /// Removes the files that processes locked which have ended.
    pub(super) fn remove_owners(&self) -> io::Result<()> {
        for path in self.paths()? {
            if path.extension().is_some_and(|ending| ending == OWNER_ENDING) {
                let file = options().open(&path).ok();
                if file.is_some_and(|file| file.try_lock().is_ok()) {
                    // Another process can have removed it.
                    let _ = fs::remove_file(&path);
                }
            }
        }
        Ok(())
    }
}

/// Opens the file of a run that no process works on. Returns `None` if a process does, or has finished the run in the
/// meantime.
pub(super) fn left_behind(path: PathBuf) -> io::Result<Option<LeftSpool>> {
    let mut owner = None;
    if path.extension().is_some_and(|ending| ending == ENDING || ending == SPANS_ENDING) {
        let owner_path = spool_file::owner_of(&path);
        match options().open(&owner_path) {
            Ok(file) if file.try_lock().is_ok() => owner = Some(file),
            Ok(_) => return Ok(None),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(naming(&owner_path)(error)),
        }
    }
    let file = match options().open(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(naming(&path)(error)),
    };
    if file.try_lock().is_err() || !path.exists() {
        return Ok(None);
    }
    let spool = Spool { path, length: 0, head: None, requests: RequestStore::default() };
    Ok(Some(LeftSpool { spool, _locks: (owner, file) }))
}

/// The file of a run that no process works on, locked.
#[derive(Debug)]
pub(super) struct LeftSpool {
    pub(super) spool: Spool,
    _locks: (Option<File>, File),
}

/// The file of a run.
#[derive(Debug)]
pub(super) struct Spool {
    path: PathBuf,
    /// The length of what was written and synced.
    length: u64,
    /// The labels and the name of the run that were written last.
    head: Option<RunHead>,
    /// The last requests that were written.
    requests: RequestStore,
}

impl Spool {
    /// Creates the file of a run, and the directory if it does not exist.
    ///
    /// # Errors
    /// All errors of this type name the file or the directory.
    pub(super) fn create(directory: &SpoolDirectory, head: &RunHead) -> io::Result<Self> {
        Self::create_with(directory, head, ENDING)
    }

    /// Creates the file of a trace.
    pub(super) fn create_for_spans(directory: &SpoolDirectory, head: &RunHead) -> io::Result<Self> {
        Self::create_with(directory, head, SPANS_ENDING)
    }

    fn create_with(directory: &SpoolDirectory, head: &RunHead, ending: &str) -> io::Result<Self> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let owner = directory.owner()?;
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = directory.path.join(format!("{owner}-{number}.{ending}"));
        options().create_new(true).open(&path).map_err(naming(&path))?;
        let mut spool = Self { path, length: 0, head: None, requests: RequestStore::default() };
        spool.update(head)?;
        files::sync_directory(&directory.path).map_err(naming(&directory.path))?;
        Ok(spool)
    }

    /// Appends a call. It survives a crash when this function returns.
    pub(super) fn append(&mut self, call: CallRecord) -> io::Result<()> {
        let (call, request) = self.requests.store(call).map_err(io::Error::other)?;
        self.write(&SpoolRecord::StoredCall(Box::new(Cow::Owned(call))))?;
        self.requests.add(request);
        Ok(())
    }

    /// Records the labels and the name that a run has now, if they have changed.
    pub(super) fn update(&mut self, head: &RunHead) -> io::Result<()> {
        if self.head.as_ref() != Some(head) {
            self.write(&SpoolRecord::Run(Cow::Borrowed(head)))?;
            self.head = Some(head.clone());
        }
        Ok(())
    }

    /// Appends lines. They survive a crash when this function returns.
    pub(super) fn append_lines(&mut self, lines: &[u8]) -> io::Result<()> {
        self.write_with(|writer| writer.write_all(lines)).map_err(naming(&self.path))
    }

    fn write(&mut self, line: &SpoolRecord<'_>) -> io::Result<()> {
        let written = self.write_with(|writer| {
            serde_json::to_writer(&mut *writer, line)?;
            writer.write_all(b"\n")
        });
        written.map_err(naming(&self.path))
    }

    fn write_with(&mut self, write: impl FnOnce(&mut BufWriter<&File>) -> io::Result<()>) -> io::Result<()> {
        // It is not kept open: there can be many runs.
        let file = options().open(&self.path)?;
        // A write that failed, such as on a full disk, may have left a part of a line.
        if file.metadata()?.len() != self.length {
            file.set_len(self.length)?;
        }
        // A line can have as many bytes as an answer.
        let mut writer = BufWriter::with_capacity(BUFFER, &file);
        write(&mut writer)?;
        writer.flush()?;
        drop(writer);
        file.sync_data()?;
        self.length = file.metadata()?.len();
        Ok(())
    }

    /// Forgets the requests that later ones can be differences from, which take as much memory as they have bytes.
    pub(super) fn forget_requests(&mut self) {
        self.requests = RequestStore::default();
    }

    /// Returns the path of the file.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Removes the file, once its calls are in the vault.
    pub(super) fn remove(&self) -> io::Result<()> {
        fs::remove_file(&self.path).map_err(naming(&self.path))
    }

    /// Gives the file a name under which it is not read again by itself, which ends with `why`, and returns its new path.
    pub(super) fn set_aside(&self, why: &str) -> io::Result<PathBuf> {
        let named = |ending: &str| {
            let mut name = self.path.as_os_str().to_owned();
            name.push(ending);
            PathBuf::from(name)
        };
        let (mut unused, mut number) = (named(&format!(".{why}")), 0);
        while unused.exists() {
            number += 1;
            unused = named(&format!(".{why}-{number}"));
        }
        fs::rename(&self.path, &unused).map_err(naming(&self.path))?;
        Ok(unused)
    }

    /// Returns whether it is the file of a trace, also if it was set aside.
    pub(super) fn has_spans(&self) -> bool {
        self.path
            .file_name()
            .is_some_and(|name| name.to_string_lossy().split('.').any(|part| part == SPANS_ENDING))
    }

    /// Reads the file of a trace.
    pub(super) fn read_spans(&self) -> io::Result<(Option<RunHead>, Vec<u8>)> {
        spool_file::read_spans(&self.path).map_err(naming(&self.path))
    }

    /// Reads the file. A last line that is not complete was not acknowledged.
    pub(super) fn read(&self) -> io::Result<SpoolContent> {
        spool_file::read(&self.path).map_err(naming(&self.path))
    }
}

/// Returns whether a file has the name of one with a run.
fn is_run(path: &Path) -> bool {
    let ending = path.extension().map(|ending| ending.to_string_lossy()).unwrap_or_default();
    [ENDING, SPANS_ENDING, EARLIER_ENDING].contains(&&*ending)
}

/// Returns a function that names `path` in the message of an error.
fn naming(path: &Path) -> impl Fn(io::Error) -> io::Error {
    move |error| io::Error::new(error.kind(), format!("{}: {}", path.display(), files::describe(&error)))
}

fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).append(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        // Prompts and answers are for the user alone, as they are in the vault.
        options.mode(0o600);
    }
    options
}

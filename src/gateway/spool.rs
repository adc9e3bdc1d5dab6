//! The calls of a run that is not finished, on disk: a file in a directory, to which each call is appended and synced. A
//! process locks one file of its own for all of them, so that those of processes that ended are taken over by the next one.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Serialize};

use crate::calls::call::{CallRecord, StoredCall};
use crate::calls::request_store::RequestStore;
use crate::calls::run::RunHead;
use crate::files;

/// The ending of the names of the files of runs.
const ENDING: &str = "run";
/// The ending that earlier builds used, which lock each file.
const EARLIER_ENDING: &str = "calls";
/// The ending of the names of the files that processes lock.
const OWNER_ENDING: &str = "owner";
/// What is added to the names of files that are not read again by themselves.
const ASIDE: [&str; 2] = [DAMAGED, UNSTORED];
pub(super) const DAMAGED: &str = "damaged";
pub(super) const UNSTORED: &str = "unstored";

/// Number of bytes that are written at a time: most lines are written at once.
const BUFFER: usize = 1 << 20;

/// A line of a file.
#[derive(Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
enum SpoolRecord<'l> {
    Run(Cow<'l, RunHead>),
    /// A call of an earlier build.
    Call(Box<CallRecord>),
    StoredCall(Box<Cow<'l, StoredCall>>),
}

/// The lines of a file that can be read.
#[derive(Debug, Default)]
pub(super) struct SpoolContent {
    /// Missing if the process ended while it created the file, or if the line is damaged.
    pub(super) head: Option<RunHead>,
    pub(super) calls: Vec<StoredCall>,
    /// The first damage.
    pub(super) damage: Option<String>,
}

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
        let mut owner = self.owner.lock().unwrap_or_else(PoisonError::into_inner);
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

    /// Opens the file of a run that no process works on. Returns `None` if a process does, or has finished the run in the
    /// meantime.
    pub(super) fn left_behind(&self, path: PathBuf) -> io::Result<Option<LeftSpool>> {
        let mut owner = None;
        if path.extension().is_some_and(|ending| ending == ENDING) {
            let stem = path.file_stem().unwrap_or_default().to_string_lossy();
            let name = stem.rsplit_once('-').map_or(&*stem, |(owner, _)| owner);
            let owner_path = self.path.join(format!("{name}.{OWNER_ENDING}"));
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
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let owner = directory.owner()?;
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = directory.path.join(format!("{owner}-{number}.{ENDING}"));
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

    fn write(&mut self, line: &SpoolRecord<'_>) -> io::Result<()> {
        self.write_line(line).map_err(naming(&self.path))
    }

    fn write_line(&mut self, line: &SpoolRecord<'_>) -> io::Result<()> {
        // It is not kept open: there can be many runs.
        let file = options().open(&self.path)?;
        // A write that failed, such as on a full disk, may have left a part of a line.
        if file.metadata()?.len() != self.length {
            file.set_len(self.length)?;
        }
        // A line can have as many bytes as an answer.
        let mut writer = BufWriter::with_capacity(BUFFER, &file);
        serde_json::to_writer(&mut writer, line)?;
        writer.write_all(b"\n")?;
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

    /// Reads the file. A last line that is not complete was not acknowledged.
    pub(super) fn read(&self) -> io::Result<SpoolContent> {
        read_lines(&self.path).map_err(naming(&self.path))
    }
}

/// Returns whether a file has the name of one with a run.
fn is_run(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ending == ENDING || ending == EARLIER_ENDING)
}

/// Returns the id of the run that a line of a file states, or `None` if it is another line.
pub(super) fn run_id(line: &[u8]) -> Option<String> {
    if !line.starts_with(b"{\"run\":") {
        return None;
    }
    match serde_json::from_slice(line) {
        Ok(SpoolRecord::Run(run)) => Some(run.id.clone()),
        _ => None,
    }
}

/// Reads to the end of a line, which can have as many bytes as an answer.
struct LineReader<'r> {
    reader: &'r mut BufReader<File>,
    /// Whether the end was read, and not only that of the file.
    has_ended: bool,
}

impl Read for LineReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.has_ended {
            return Ok(0);
        }
        let available = self.reader.fill_buf()?;
        let available = available.get(..buffer.len()).unwrap_or(available);
        let end = memchr::memchr(b'\n', available);
        let (line, _) = available.split_at(end.unwrap_or(available.len()));
        buffer.iter_mut().zip(line).for_each(|(to, from)| *to = *from);
        let read = line.len();
        self.reader.consume(read + usize::from(end.is_some()));
        self.has_ended = end.is_some();
        Ok(read)
    }
}

fn read_lines(path: &Path) -> io::Result<SpoolContent> {
    let mut reader = BufReader::new(File::open(path)?);
    let mut content = SpoolContent::default();
    let mut earlier = RequestStore::default();
    let mut known = HashSet::new();
    for number in 1.. {
        let mut line = LineReader { reader: &mut reader, has_ended: false };
        let record = serde_json::from_reader(&mut line);
        io::copy(&mut line, &mut io::sink())?;
        if !line.has_ended {
            break;
        }
        let damage = match record {
            Ok(SpoolRecord::Run(run)) => {
                content.head = Some(run.into_owned());
                continue;
            }
            Ok(SpoolRecord::Call(call)) => match earlier.store(*call) {
                Ok((call, request)) => {
                    earlier.add(request);
                    content.calls.push(call);
                    continue;
                }
                Err(error) => error.to_string(),
            },
            Ok(SpoolRecord::StoredCall(call)) if call.bases().all(|base| known.contains(&base)) => {
                known.insert(call.number);
                content.calls.push(call.into_owned());
                continue;
            }
            Ok(SpoolRecord::StoredCall(_)) => "it is a difference from a line that is damaged".to_owned(),
            Err(error) => error.to_string(),
        };
        content.damage.get_or_insert_with(|| format!("line {number} is damaged: {damage}"));
    }
    if content.head.is_none() && !content.calls.is_empty() {
        content.damage.get_or_insert_with(|| "there is no line with the run".to_owned());
    }
    Ok(content)
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

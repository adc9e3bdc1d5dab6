//! The calls of a run that is not finished, on disk: a file in a directory, locked by its process, to which each call is
//! appended and synced. The files of processes that ended are taken over by the next one.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use serde::{Deserialize, Serialize};

use crate::calls::call::CallRecord;
use crate::calls::head::RunHead;
use crate::files;

/// The ending of the names of the files.
const ENDING: &str = "calls";

/// A line of a file.
#[derive(Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
enum SpoolRecord<'l> {
    Run(std::borrow::Cow<'l, RunHead>),
    Call(std::borrow::Cow<'l, CallRecord>),
}

/// The file of a run.
#[derive(Debug)]
pub(super) struct Spool {
    path: PathBuf,
    file: File,
    /// The length of what was written and synced.
    length: u64,
}

impl Spool {
    /// Creates the file of a run, and the directory if it does not exist.
    ///
    /// # Errors
    /// All errors of this type name the file or the directory.
    pub(super) fn create(directory: &Path, head: &RunHead) -> io::Result<Self> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        files::create_dir_all(directory).map_err(naming(directory))?;
        let mut file = loop {
            let number = NUMBER.fetch_add(1, Ordering::Relaxed);
            let path = directory.join(format!("{}-{number}.{ENDING}", std::process::id()));
            match options().create_new(true).open(&path) {
                Ok(file) => break Self { path, file, length: 0 },
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(naming(&path)(error)),
            }
        };
        file.file.try_lock().map_err(io::Error::from).map_err(naming(&file.path))?;
        file.write(&SpoolRecord::Run(std::borrow::Cow::Borrowed(head)))?;
        files::sync_directory(directory).map_err(naming(directory))?;
        Ok(file)
    }

    /// Appends a call. It survives a crash when this function returns.
    pub(super) fn append(&mut self, call: &CallRecord) -> io::Result<()> {
        self.write(&SpoolRecord::Call(std::borrow::Cow::Borrowed(call)))
    }

    /// Records the labels and the name that a run has now.
    pub(super) fn update(&mut self, head: &RunHead) -> io::Result<()> {
        self.write(&SpoolRecord::Run(std::borrow::Cow::Borrowed(head)))
    }

    fn write(&mut self, line: &SpoolRecord<'_>) -> io::Result<()> {
        let written = self.write_line(line);
        written.map_err(naming(&self.path))
    }

    fn write_line(&mut self, line: &SpoolRecord<'_>) -> io::Result<()> {
        let mut text = serde_json::to_vec(line)?;
        text.push(b'\n');
        // A write that failed, such as on a full disk, may have left a part of a line.
        if self.file.metadata()?.len() != self.length {
            self.file.set_len(self.length)?;
        }
        self.file.write_all(&text)?;
        self.file.sync_data()?;
        self.length += text.len() as u64;
        Ok(())
    }

    /// Returns the path of the file.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Removes the file, once its calls are in the vault.
    pub(super) fn remove(self) -> io::Result<()> {
        fs::remove_file(&self.path).map_err(naming(&self.path))
    }

    /// Returns the runs in `directory` that no process works on, and locks them.
    pub(super) fn left_behind(directory: &Path) -> io::Result<Vec<(Self, RunHead, Vec<CallRecord>)>> {
        let entries = match fs::read_dir(directory) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(naming(directory)(error)),
        };
        let mut paths = Vec::new();
        for entry in entries {
            let path = entry.map_err(naming(directory))?.path();
            if path.extension().is_some_and(|ending| ending == ENDING) {
                paths.push(path);
            }
        }
        paths.sort_unstable();
        let mut found = Vec::new();
        for path in paths {
            let file = match options().open(&path) {
                Ok(file) => file,
                // Its process finished it in the meantime.
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => return Err(naming(&path)(error)),
            };
            if file.try_lock().is_err() || !path.exists() {
                continue;
            }
            let mut spool = Self { path, file, length: 0 };
            match spool.read().map_err(naming(&spool.path))? {
                Some((head, calls)) => found.push((spool, head, calls)),
                // Nothing was recorded: the process ended while it created the file.
                None => spool.remove()?,
            }
        }
        Ok(found)
    }

    /// Reads the file. A line that is not complete was not acknowledged.
    fn read(&mut self) -> io::Result<Option<(RunHead, Vec<CallRecord>)>> {
        let mut reader = BufReader::new(File::open(&self.path)?);
        let (mut head, mut calls) = (None, Vec::new());
        let mut line = Vec::new();
        for number in 1.. {
            line.clear();
            reader.read_until(b'\n', &mut line)?;
            if line.last() != Some(&b'\n') {
                break;
            }
            self.length += line.len() as u64;
            match serde_json::from_slice(&line) {
                Ok(SpoolRecord::Run(run)) => head = Some(run.into_owned()),
                Ok(SpoolRecord::Call(call)) => calls.push(call.into_owned()),
                Err(error) => {
                    let message = format!("line {number} is damaged: {error}");
                    return Err(io::Error::new(io::ErrorKind::InvalidData, message));
                }
            }
        }
        Ok(head.map(|head| (head, calls)))
    }
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

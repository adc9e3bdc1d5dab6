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
    Call(Box<std::borrow::Cow<'l, CallRecord>>),
}

/// The lines of a file that can be read.
#[derive(Debug, Default)]
pub(super) struct SpoolContent {
    /// Missing if the process ended while it created the file, or if the line is damaged.
    pub(super) head: Option<RunHead>,
    pub(super) calls: Vec<CallRecord>,
    /// The first damage.
    pub(super) damage: Option<String>,
}

/// The file of a run.
#[derive(Debug)]
pub(super) struct Spool {
    path: PathBuf,
    file: File,
    /// The length of what was written and synced.
    length: u64,
    /// The labels and the name of the run that were written last.
    head: Option<RunHead>,
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
                Ok(file) => break Self { path, file, length: 0, head: None },
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(naming(&path)(error)),
            }
        };
        file.file.try_lock().map_err(io::Error::from).map_err(naming(&file.path))?;
        file.update(head)?;
        files::sync_directory(directory).map_err(naming(directory))?;
        Ok(file)
    }

    /// Appends a call. It survives a crash when this function returns.
    pub(super) fn append(&mut self, call: &CallRecord) -> io::Result<()> {
        self.write(&SpoolRecord::Call(Box::new(std::borrow::Cow::Borrowed(call))))
    }

    /// Records the labels and the name that a run has now, if they have changed.
    pub(super) fn update(&mut self, head: &RunHead) -> io::Result<()> {
        if self.head.as_ref() != Some(head) {
            self.write(&SpoolRecord::Run(std::borrow::Cow::Borrowed(head)))?;
            self.head = Some(head.clone());
        }
        Ok(())
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
    pub(super) fn remove(&self) -> io::Result<()> {
        fs::remove_file(&self.path).map_err(naming(&self.path))
    }

    /// Gives the file a name under which it is not read again, and returns its new path.
    pub(super) fn set_aside(&self) -> io::Result<PathBuf> {
        let named = |ending: &str| {
            let mut name = self.path.as_os_str().to_owned();
            name.push(ending);
            PathBuf::from(name)
        };
        let (mut unused, mut number) = (named(".damaged"), 0);
        while unused.exists() {
            number += 1;
            unused = named(&format!(".damaged-{number}"));
        }
        fs::rename(&self.path, &unused).map_err(naming(&self.path))?;
        Ok(unused)
    }

    /// Returns the paths of the files in `directory`, sorted.
    pub(super) fn paths(directory: &Path) -> io::Result<Vec<PathBuf>> {
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
        Ok(paths)
    }

    /// Opens the file of a run that no process works on, and locks it. Returns `None` if a process does, or has finished
    /// the run in the meantime.
    pub(super) fn left_behind(path: PathBuf) -> io::Result<Option<Self>> {
        let file = match options().open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(naming(&path)(error)),
        };
        if file.try_lock().is_err() || !path.exists() {
            return Ok(None);
        }
        Ok(Some(Self { path, file, length: 0, head: None }))
    }

    /// Reads the file. A last line that is not complete was not acknowledged.
    pub(super) fn read(&mut self) -> io::Result<SpoolContent> {
        self.read_lines().map_err(naming(&self.path))
    }

    fn read_lines(&mut self) -> io::Result<SpoolContent> {
        let mut reader = BufReader::new(File::open(&self.path)?);
        let mut content = SpoolContent::default();
        let mut line = Vec::new();
        for number in 1.. {
            line.clear();
            reader.read_until(b'\n', &mut line)?;
            if line.last() != Some(&b'\n') {
                break;
            }
            self.length += line.len() as u64;
            match serde_json::from_slice(&line) {
                Ok(SpoolRecord::Run(run)) => content.head = Some(run.into_owned()),
                Ok(SpoolRecord::Call(call)) => content.calls.push(call.into_owned()),
                Err(error) => {
                    content.damage.get_or_insert_with(|| format!("line {number} is damaged: {error}"));
                }
            }
        }
        if content.head.is_none() && !content.calls.is_empty() {
            content.damage.get_or_insert_with(|| "there is no line with the run".to_owned());
        }
        Ok(content)
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

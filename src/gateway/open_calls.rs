//! The calls that are being answered, on disk: a file for each process, which it locks, with a line for the beginning and
//! the end of each call. A process that is killed leaves the calls that were not complete, so that the next one can name them.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use chrono::{DateTime, Utc};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use super::spool::LockedFile;

/// The ending of the names of the files.
const ENDING: &str = "open";

/// A call that is being answered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct OpenCallRecord {
    pub(super) provider: String,
    /// The path, as it is stored.
    pub(super) path: String,
    pub(super) requested_at: DateTime<Utc>,
}

/// A line of a file.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum JournalLine {
    Begun(u64, OpenCallRecord),
    Ended(u64),
}

/// The calls that this process is answering.
#[derive(Debug)]
pub(super) struct OpenCallJournal {
    directory: PathBuf,
    state: Mutex<OpenCallList>,
}

#[derive(Debug, Default)]
struct OpenCallList {
    /// It exists once a call was forwarded.
    file: Option<LockedFile>,
    next: u64,
    open: u64,
}

/// A call in the journal, until it is dropped.
pub(super) struct OpenCallEntry {
    journal: Arc<OpenCallJournal>,
    number: u64,
}

impl OpenCallJournal {
    pub(super) fn new(directory: &Path) -> Arc<Self> {
        Arc::new(Self { directory: directory.to_owned(), state: Mutex::default() })
    }

    /// Adds a call. It is not synced: a process that is killed leaves it, too.
    pub(super) fn begin(self: &Arc<Self>, call: OpenCallRecord) -> io::Result<OpenCallEntry> {
        let mut state = self.state.lock();
        let number = state.next;
        if state.file.is_none() {
            state.file = Some(LockedFile::create(&self.directory, ENDING)?);
        }
        state.write(&JournalLine::Begun(number, call))?;
        state.next += 1;
        state.open += 1;
        drop(state);
        Ok(OpenCallEntry { journal: Arc::clone(self), number })
    }
}

impl OpenCallList {
    fn write(&mut self, line: &JournalLine) -> io::Result<()> {
        let Some(LockedFile { file, .. }) = &mut self.file else { return Ok(()) };
        file.write_all(format!("{}\n", serde_json::to_string(line)?).as_bytes())
    }
}

impl Drop for OpenCallEntry {
    fn drop(&mut self) {
        let mut state = self.journal.state.lock();
        state.open -= 1;
        // A line that cannot be written only makes the next start name a call that is complete.
        let _ = match &state.file {
            Some(LockedFile { file, .. }) if state.open == 0 => file.set_len(0),
            _ => state.write(&JournalLine::Ended(self.number)),
        };
    }
}

/// Removes the files of processes that were killed, and returns the calls that were not complete.
pub(super) fn take_left_behind(directory: &Path) -> io::Result<Vec<OpenCallRecord>> {
    let entries = match fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut calls = Vec::new();
    for entry in entries {
        let path = entry?.path();
        if path.extension().is_none_or(|ending| ending != ENDING) {
            continue;
        }
        let Ok(mut file) = File::open(&path) else { continue };
        if file.try_lock().is_ok() {
            let mut text = Vec::new();
            file.read_to_end(&mut text)?;
            calls.extend(open_calls(&text));
            fs::remove_file(&path)?;
        }
    }
    Ok(calls)
}

/// Returns the calls that have begun and not ended. A last line that is not complete is left out.
fn open_calls(text: &[u8]) -> Vec<OpenCallRecord> {
    let mut open = BTreeMap::new();
    for line in text.split(|byte| *byte == b'\n') {
        match serde_json::from_slice(line) {
            Ok(JournalLine::Begun(number, call)) => drop(open.insert(number, call)),
            Ok(JournalLine::Ended(number)) => drop(open.remove(&number)),
            Err(_) => {}
        }
    }
    open.into_values().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(path: &str) -> OpenCallRecord {
        let path = path.to_owned();
        OpenCallRecord { provider: "openai".to_owned(), path, requested_at: DateTime::UNIX_EPOCH }
    }

    #[test]
    fn calls_that_were_not_complete_are_left_by_a_process_that_is_killed() {
        let directory = tempfile::tempdir().unwrap();
        let journal = OpenCallJournal::new(directory.path());
        let first = journal.begin(call("/first")).unwrap();
        let second = journal.begin(call("/second")).unwrap();
        drop(first);
        let path = fs::read_dir(directory.path()).unwrap().next().unwrap().unwrap().path();
        let text = fs::read(&path).unwrap();
        // A process that runs keeps its file.
        assert_eq!(take_left_behind(directory.path()).unwrap(), []);
        drop(second);
        assert_eq!(fs::read(&path).unwrap(), b"");
        drop(journal);
        assert!(!path.exists());
        fs::write(&path, &text).unwrap();
        assert_eq!(take_left_behind(directory.path()).unwrap(), [call("/second")]);
        assert_eq!(take_left_behind(directory.path()).unwrap(), []);
    }
}

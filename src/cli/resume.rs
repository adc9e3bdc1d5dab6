//! A file that says how far a check came, so that the next one goes on there.

use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use runvault::digest::CoreHash;
use runvault::files::{self, WriteOptions};
use serde::{Deserialize, Serialize};

use super::exit::Failure;

/// The file is written so often at most.
const EVERY: Duration = Duration::from_secs(1);

/// How far a check came.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Position {
    /// What was asked for; another question cannot go on there.
    pub(crate) asked: String,
    /// The last artifact that was checked.
    pub(crate) after: Option<CoreHash>,
    /// How many artifacts were checked, and how many findings were told.
    pub(crate) artifacts: u64,
    pub(crate) findings: u64,
}

/// The file, and what to write into it next.
pub(crate) struct Resume {
    path: PathBuf,
    /// Whose files it must not be.
    vault: PathBuf,
    pub(crate) position: Position,
    written: Instant,
}

impl Resume {
    /// Where the check that `asked` the same and wrote to `path` came to, or the beginning if there is no such file.
    pub(crate) fn open(path: &Path, asked: &str, vault: &Path) -> Result<Self, Failure> {
        let failed = |error: &dyn std::fmt::Display| {
            Failure::CouldNotRun(format!("cannot go on from {}: {error}", path.display()))
        };
        if files::is_of_vault(path, vault) {
            return Err(failed(&"this is the vault itself, or one of its files (-wal, -shm, -journal)"));
        }
        let position = match std::fs::read(path) {
            Ok(bytes) => serde_json::from_slice(&bytes).map_err(|error| {
                failed(&format!("it is not what a check wrote ({error}); remove it to begin anew"))
            })?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Position { asked: asked.to_owned(), ..Position::default() }
            }
            Err(error) => return Err(failed(&error)),
        };
        if position.asked != asked {
            let message =
                format!("it is of a check of other things ({}); remove it to begin anew", position.asked);
            return Err(failed(&message));
        }
        Ok(Self { path: path.to_owned(), vault: vault.to_owned(), position, written: Instant::now() })
    }

    /// Notes that everything up to this artifact was checked and told.
    pub(crate) fn checked(&mut self, core: CoreHash) -> io::Result<()> {
        self.position.after = Some(core);
        self.position.artifacts += 1;
        if self.written.elapsed() < EVERY {
            return Ok(());
        }
        self.written = Instant::now();
        self.write()
    }

    /// Writes the file in one step: whoever reads it finds the whole of it.
    pub(crate) fn write(&self) -> io::Result<()> {
        let bytes = serde_json::to_vec(&self.position)?;
        let options = WriteOptions { replace: true, vault: Some(&self.vault), ..WriteOptions::default() };
        files::write(&self.path, &options, &bytes).map_err(io::Error::other)
    }

    /// There is nothing to go on with.
    pub(crate) fn done(self) {
        // It may never have been written.
        let _ = std::fs::remove_file(&self.path);
    }
}

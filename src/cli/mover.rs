//! Taking files away once they are stored, as `--move` asks for.

use runvault::ingest::{Examined, Outcome};
use runvault::source::{ExamineOptions, Kept, Taken};

use super::escape::escaped;
use super::exit::Status;
use super::output;

/// Removes the files of what is in the vault, and says which it cannot.
pub(crate) struct Mover {
    /// As the documents were examined.
    options: ExamineOptions,
    /// How many documents are gone from where they were.
    pub(crate) moved: u64,
    /// How many are still there, whole or in part, though they are stored.
    pub(crate) kept: u64,
    /// How many files could not be removed.
    pub(crate) failed: u64,
}

impl Mover {
    pub(crate) fn new(options: ExamineOptions) -> Self {
        Self { options, moved: 0, kept: 0, failed: 0 }
    }

    /// How it ended: a file that could not be removed is one that somebody has to look at, one that is kept is an answer.
    pub(crate) fn status(&self) -> Status {
        match self {
            Self { failed: 1.., .. } => Status::Incomplete,
            Self { kept: 1.., .. } => Status::No,
            _ => Status::Done,
        }
    }

    /// Removes the files of a document if it is in the vault now, and tells whether it did; nothing if it is not.
    pub(crate) fn take(&mut self, examined: &Examined) -> Option<bool> {
        let is_stored = matches!(examined.outcome, Outcome::Added | Outcome::NewCapture | Outcome::Present);
        let original = examined.original.as_ref().filter(|_| is_stored)?;
        let taken = original.remove(&self.options);
        self.failed += taken.failed.len() as u64;
        if taken.is_whole() {
            self.moved += 1;
        } else {
            self.kept += 1;
        }
        tell(&taken);
        Some(taken.is_whole())
    }
}

fn tell(taken: &Taken) {
    for (path, why) in &taken.kept {
        let path = path.to_string_lossy();
        output::note(&format!("kept {}: {}", escaped(&path), reason(*why)));
    }
    for error in &taken.failed {
        output::error(&format!("cannot remove {error}; what it holds is in the vault"));
    }
}

fn reason(why: Kept) -> &'static str {
    match why {
        Kept::Changed => "it changed after it was read; what it was is in the vault",
        Kept::Link => "it is a link; what it leads to is in the vault",
        Kept::Stranger => "it is not part of the pack, and is not in the vault",
    }
}

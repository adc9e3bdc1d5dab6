//! `runvault note`

mod remove;
mod set;
mod show;

use runvault::storage::ArtifactRecord;

use crate::cli::output::exit::CommandError;

super::verbs! {
    /// Set, show or remove an artifact's note
    ///
    /// An artifact has at most one note. Hashes do not change. "show" prints the note, "find --note TEXT" searches notes,
    /// and the journal keeps every text, including those of removed notes.
    Set(set), Show(show), Remove(remove)
}

fn has_none(artifact: &ArtifactRecord) -> CommandError {
    let core = artifact.core;
    CommandError::No(format!("{core} has no note; \"runvault note set {core:.12} TEXT\" writes one"))
}

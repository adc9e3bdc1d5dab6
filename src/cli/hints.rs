//! The next step after an error of the library, which knows no commands.

use std::error::Error;

use runvault::LookupError;
use runvault::search::SearchError;
use runvault::sql::SqlError;
use runvault::store::{BackupError, StoreError};

/// The message of `error`, and the command that helps, if one does.
pub(crate) fn with_hint(error: &(dyn Error + 'static)) -> String {
    match hint(error) {
        Some(hint) => format!("{error}; {hint}"),
        None => error.to_string(),
    }
}

/// What to do about `error`, or about the error of the store that it passes on.
fn hint(error: &(dyn Error + 'static)) -> Option<&'static str> {
    if let Some(error) = error.downcast_ref() {
        return for_store(error);
    }
    if let Some(error) = error.downcast_ref() {
        return for_lookup(error);
    }
    match error.downcast_ref() {
        Some(SearchError::NoIndex) => return Some("\"runvault search --build\" makes one"),
        Some(SearchError::Differs { .. }) => {
            return Some(
                "\"runvault search --build\" rebuilds the index, \"runvault fsck\" checks the vault",
            );
        }
        Some(SearchError::Store(error)) => return for_store(error),
        None => {}
    }
    match error.downcast_ref() {
        Some(SqlError::Exists { .. }) => return Some("use --force to replace it"),
        Some(SqlError::Store(error)) => return for_store(error),
        _ => {}
    }
    match error.downcast_ref() {
        Some(BackupError::Exists { .. }) => Some("use --force to replace it"),
        Some(BackupError::Store(error)) => for_store(error),
        _ => None,
    }
}

fn for_store(error: &StoreError) -> Option<&'static str> {
    Some(match error {
        StoreError::Missing { .. } => {
            "\"runvault init\" creates one, and so does \"runvault add --create\" with what it stores"
        }
        StoreError::Older { .. } => "\"runvault upgrade\" does that, and keeps a copy",
        StoreError::Damaged { .. } => {
            "\"runvault fsck --repair --from PATH\" restores them if PATH is another vault or a directory that has them"
        }
        StoreError::Pinned { .. } => "\"runvault unpin\" allows it to be removed",
        StoreError::Corrupt { .. } => {
            "\"runvault fsck\" says what and \"runvault fsck --repair\" repairs what it can, otherwise restore it from a \
             backup"
        }
        StoreError::Index { .. } => "\"runvault reindex\" rebuilds it from the artifacts",
        StoreError::HardLinks { .. } => {
            "\"find DIR -samefile PATH\" lists the names; remove all but one while no program uses the vault, or copy the \
             file and name the copy"
        }
        _ => return None,
    })
}

fn for_lookup(error: &LookupError) -> Option<&'static str> {
    Some(match error {
        LookupError::NotFound(_) => "\"runvault find\" lists what there is",
        LookupError::NoSuchTag(_) => "\"runvault tags\" lists the tags",
        LookupError::NotItsCapture { .. } => "\"runvault show\" lists them",
        LookupError::SeveralMembers { .. } => "--member NAME gives one of them, -o all of them",
        LookupError::NoRecording { .. } => {
            "sessions and runs do, and \"runvault links\" shows which belong to it"
        }
        LookupError::Store(error) => return for_store(error),
        _ => return None,
    })
}

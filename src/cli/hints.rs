//! Hints for errors of the library, which has no knowledge of commands.

use std::error::Error;

use runvault::LookupError;
use runvault::storage::{BackupError, ErrorKind, StorageError};
use runvault::vault::search::SearchError;
use runvault::vault::sql::SqlError;

/// Returns the message of `error`, with the command that helps, if there is one.
pub(crate) fn with_hint(error: &(dyn Error + 'static)) -> String {
    match hint(error) {
        Some(hint) => format!("{error}; {hint}"),
        None => error.to_string(),
    }
}

/// Returns a hint for `error`, or for the store error that it wraps.
fn hint(error: &(dyn Error + 'static)) -> Option<&'static str> {
    if let Some(error) = error.downcast_ref() {
        return for_store(error);
    }
    if let Some(error) = error.downcast_ref() {
        return for_lookup(error);
    }
    match error.downcast_ref() {
        Some(SearchError::NoIndex) => return Some("\"runvault search --build\" builds one"),
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

fn for_store(error: &StorageError) -> Option<&'static str> {
    Some(match error.kind() {
        ErrorKind::Missing => "\"runvault init\" or \"runvault add --create\" creates one",
        ErrorKind::Older => "\"runvault upgrade\" upgrades it and keeps a copy",
        ErrorKind::Damaged => {
            "\"runvault fsck --repair --from PATH\" restores them if PATH is another vault or a directory that has them"
        }
        ErrorKind::Pinned => "\"runvault unpin\" allows it to be removed",
        ErrorKind::VaultDamaged => {
            "\"runvault fsck\" shows details and \"runvault fsck --repair\" repairs what it can; otherwise restore it from a \
             backup"
        }
        ErrorKind::IndexDamaged => "\"runvault reindex\" rebuilds it from the artifacts",
        ErrorKind::HardLinks => {
            "\"find DIR -samefile PATH\" lists the names; remove all but one while no program uses the vault, or copy the \
             file and name the copy"
        }
        _ => return None,
    })
}

fn for_lookup(error: &LookupError) -> Option<&'static str> {
    Some(match error {
        LookupError::NotFound(_) => "\"runvault find\" lists the artifacts",
        LookupError::NoSuchTag(_) => "\"runvault tags\" lists the tags",
        LookupError::CaptureNotFound { .. } => "\"runvault show\" lists its captures",
        LookupError::SeveralMembers { .. } => "--member NAME writes one of them, -o all of them",
        LookupError::NoRecording { .. } => {
            "sessions and runs do; \"runvault links\" lists those linked to it"
        }
        LookupError::Store(error) => return for_store(error),
        _ => return None,
    })
}

//! Errors of object storage.
//!
//! What servers answer and where requests went can contain keys and signatures, so messages have none of it: they name
//! the object, and say in our words what failed.

use std::error::Error as _;
use std::io;

use object_store::Error;
use object_store::client::{HttpError, HttpErrorKind};

use crate::files;
use crate::storage::{ErrorKind, StorageError};

/// Returns the storage error for an error of `key` in the store with this name.
pub(super) fn failure(store: &str, key: &str, error: &Error) -> StorageError {
    let (kind, reason) = described(error);
    let message =
        if key.is_empty() { format!("{store}: {reason}") } else { format!("{store}: {key}: {reason}") };
    StorageError::new(kind, message).with_source(reason)
}

/// Returns whether the same request may succeed later.
pub(super) fn is_transient(error: &Error) -> bool {
    match error {
        Error::Generic { .. } => status(error).is_none_or(|status| {
            // A request that is not valid, such as for a part that an object does not have, stays so.
            !(400..500).contains(&status) || [408, 429].contains(&status)
        }),
        Error::JoinError { .. } => true,
        _ => false,
    }
}

fn described(error: &Error) -> (ErrorKind, String) {
    let (kind, reason) = match error {
        Error::NotFound { .. } => (ErrorKind::Missing, "the object or its bucket does not exist"),
        Error::AlreadyExists { .. } => (ErrorKind::Exists, "the object exists already"),
        Error::PermissionDenied { .. } => (ErrorKind::Connection, "access is denied"),
        Error::Unauthenticated { .. } => (ErrorKind::Connection, "the credentials are not accepted"),
        Error::NotSupported { .. } | Error::NotImplemented { .. } => {
            (ErrorKind::Unsupported, "the object storage does not support this")
        }
        _ => return described_cause(error),
    };
    (kind, reason.to_owned())
}

/// Returns the kind and the reason that the causes of an error state.
fn described_cause(error: &Error) -> (ErrorKind, String) {
    let mut cause = error.source();
    while let Some(error) = cause {
        if let Some(error) = error.downcast_ref::<HttpError>() {
            let reason = match error.kind() {
                HttpErrorKind::Connect => "the server cannot be reached",
                HttpErrorKind::Timeout => "the server did not answer in time",
                HttpErrorKind::Interrupted => "the connection was lost",
                _ => "the request failed",
            };
            return (ErrorKind::Connection, reason.to_owned());
        }
        if let Some(error) = error.downcast_ref::<io::Error>() {
            let is_full = [io::ErrorKind::StorageFull, io::ErrorKind::QuotaExceeded].contains(&error.kind());
            let kind = if is_full { ErrorKind::Full } else { ErrorKind::Io };
            return (kind, files::describe(error));
        }
        cause = error.source();
    }
    let reason = status(error).map_or_else(
        || "the request failed".to_owned(),
        |status| format!("the server answered with the status {status}"),
    );
    (ErrorKind::Connection, reason)
}

/// Returns the number of the status that the text of an error names. The type that has it is not public.
fn status(error: &Error) -> Option<u16> {
    let text = error.to_string();
    let (_, after) = text.split_once("status code: ")?;
    after.get(..3)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_have_no_part_of_what_a_server_answered() {
        let text = "Server returned non-2xx status code: 503 Service Unavailable: <Key>s3cret</Key>";
        let error = Error::Generic { store: "S3", source: text.into() };
        let failed = failure("s3://runs", "blobs/x", &error);
        assert_eq!(failed.to_string(), "s3://runs: blobs/x: the server answered with the status 503");
        assert!(!format!("{failed:?}").contains("s3cret"));
        assert_eq!(failed.kind(), ErrorKind::Connection);
        assert!(is_transient(&error));
        for (status, is_expected) in [(416, false), (400, false), (408, true), (429, true), (500, true)] {
            let text = format!("Server returned non-2xx status code: {status} x");
            let error = Error::Generic { store: "S3", source: text.into() };
            assert_eq!(is_transient(&error), is_expected, "{status}");
        }
        let full = io::Error::from(io::ErrorKind::StorageFull);
        let error = Error::Generic { store: "LocalFileSystem", source: full.into() };
        assert!(matches!(described_cause(&error), (ErrorKind::Full, _)));
    }
}

//! Errors of the server and of connections as storage errors.

use std::error::Error as _;
use std::fmt;
use std::sync::Arc;

use postgres::Error;
use postgres::error::{DbError, SqlState};

use super::connecting::ConnectionFailure;
use crate::storage::{ErrorKind, StorageError};

/// An error of a statement, of a connection or of what they return.
#[derive(Debug)]
pub(in crate::storage) enum PostgresError {
    /// The server or the connection reports it.
    Server(Arc<Error>),
    /// The server did not answer.
    Silent(ConnectionFailure),
    /// It is a storage error already.
    Storage(StorageError),
}

/// A result within the engine. The vault's address is added to errors where they leave it.
pub(super) type PostgresResult<T> = std::result::Result<T, PostgresError>;

impl From<Error> for PostgresError {
    fn from(error: Error) -> Self {
        Self::Server(Arc::new(error))
    }
}

impl From<ConnectionFailure> for PostgresError {
    fn from(failure: ConnectionFailure) -> Self {
        match failure {
            ConnectionFailure::Reported(error) => Self::Server(error),
            ConnectionFailure::Silent(_) => Self::Silent(failure),
        }
    }
}

impl From<StorageError> for PostgresError {
    fn from(error: StorageError) -> Self {
        Self::Storage(error)
    }
}

impl PostgresError {
    /// Creates the failure for stored values that cannot be what was written.
    pub(super) fn damaged(what: impl fmt::Display) -> Self {
        Self::Storage(StorageError::new(ErrorKind::VaultDamaged, format!("the vault is damaged: {what}")))
    }

    /// Returns whether the connection was lost, so that it is unknown whether the last statement took effect.
    pub(super) fn is_disconnection(&self) -> bool {
        let Self::Server(error) = self else { return false };
        match error.code() {
            Some(code) => {
                let closing = [
                    SqlState::ADMIN_SHUTDOWN,
                    SqlState::CRASH_SHUTDOWN,
                    SqlState::CANNOT_CONNECT_NOW,
                    SqlState::IDLE_IN_TRANSACTION_SESSION_TIMEOUT,
                ];
                closing.contains(code) || code.code().starts_with("08")
            }
            None => error.is_closed() || is_io(error),
        }
    }

    /// Returns whether tables or rows are not what was written, so that other parts of the vault may be intact.
    pub(super) fn is_damage(&self) -> bool {
        match self {
            Self::Server(error) => {
                let is_lost = error.code() == Some(&SqlState::UNDEFINED_FILE);
                is_lost || matches!(described(error).0, ErrorKind::VaultDamaged | ErrorKind::Database)
            }
            Self::Storage(error) => {
                matches!(error.kind(), ErrorKind::VaultDamaged | ErrorKind::Damaged | ErrorKind::Database)
            }
            Self::Silent(_) => false,
        }
    }

    /// Returns whether the same statements may succeed when they are run again from the beginning.
    pub(super) fn can_be_retried(&self) -> bool {
        let Self::Server(error) = self else { return false };
        let is_conflict = error.code().is_some_and(|code| {
            [SqlState::T_R_SERIALIZATION_FAILURE, SqlState::T_R_DEADLOCK_DETECTED].contains(code)
        });
        is_conflict || self.is_disconnection() || self.is_about_preparation()
    }

    /// Returns whether the server does not have a prepared statement of this connection, or has another one of its name.
    pub(super) fn is_about_preparation(&self) -> bool {
        let states = [SqlState::INVALID_SQL_STATEMENT_NAME, SqlState::DUPLICATE_PSTATEMENT];
        states.iter().any(|state| self.has_state(state))
    }

    /// Returns what the server reports.
    pub(super) fn reported(&self) -> Option<&DbError> {
        let Self::Server(error) = self else { return None };
        error.as_db_error()
    }

    /// Returns whether the server reports this state.
    pub(super) fn has_state(&self, state: &SqlState) -> bool {
        matches!(self, Self::Server(error) if error.code() == Some(state))
    }

    /// Returns the storage error for this failure in the vault at the address `vault`, which has no password.
    pub(super) fn at(self, vault: &str) -> StorageError {
        match self {
            Self::Storage(error) => error,
            Self::Silent(failure) => {
                StorageError::new(ErrorKind::Connection, format!("{vault}: {failure}")).with_source(failure)
            }
            Self::Server(error) => {
                let (kind, text) = described(&error);
                StorageError::new(kind, format!("{vault}: {text}")).with_source(text)
            }
        }
    }
}

/// Returns whether reading from or writing to the connection failed.
fn is_io(error: &Error) -> bool {
    let mut cause = error.source();
    while let Some(error) = cause {
        if error.is::<std::io::Error>() {
            return true;
        }
        cause = error.source();
    }
    false
}

/// The most likely reason that a prepared statement is not there.
const POOLER: &str = "; if a pooler assigns connections per transaction, add prepared_statements=false to the address of the vault";

/// The beginning of the message for a database that does not exist.
const NO_DATABASE: &str = "the server has no such database: ";

/// The beginning of the message for a lock that others hold for too long.
const IN_USE: &str = "the vault is in use by another process: ";

/// Returns the kind of an error and its description.
fn described(error: &Error) -> (ErrorKind, String) {
    if let Some(reported) = error.as_db_error() {
        let detail = reported.detail().map(|detail| format!(" ({detail})")).unwrap_or_default();
        let states = [&SqlState::INVALID_SQL_STATEMENT_NAME, &SqlState::DUPLICATE_PSTATEMENT];
        let about_pooler = if states.contains(&reported.code()) { POOLER } else { "" };
        let about_state = if *reported.code() == SqlState::INVALID_CATALOG_NAME {
            NO_DATABASE
        } else if *reported.code() == SqlState::LOCK_NOT_AVAILABLE {
            IN_USE
        } else {
            ""
        };
        let text = format!("{about_state}{}{detail}{about_pooler}", reported.message());
        return (kind(reported.code()), text);
    }
    let cause = error.source().map(|cause| format!(": {cause}")).unwrap_or_default();
    let kind = if error.is_closed() || is_io(error) { ErrorKind::Connection } else { ErrorKind::Database };
    (kind, format!("{error}{cause}").replace(&format!("{cause}{cause}"), &cause))
}

/// Returns the kind for a state that the server reports.
fn kind(state: &SqlState) -> ErrorKind {
    if *state == SqlState::DISK_FULL {
        return ErrorKind::Full;
    }
    if *state == SqlState::INVALID_CATALOG_NAME {
        return ErrorKind::NoDatabase;
    }
    let busy = [
        SqlState::LOCK_NOT_AVAILABLE,
        SqlState::T_R_SERIALIZATION_FAILURE,
        SqlState::T_R_DEADLOCK_DETECTED,
        SqlState::QUERY_CANCELED,
        SqlState::OUT_OF_MEMORY,
        SqlState::TOO_MANY_CONNECTIONS,
    ];
    if busy.contains(state) {
        return ErrorKind::Busy;
    }
    match state.code().get(..2) {
        _ if [SqlState::READ_ONLY_SQL_TRANSACTION, SqlState::INSUFFICIENT_PRIVILEGE].contains(state) => {
            ErrorKind::ReadOnly
        }
        Some("08" | "28" | "57") => ErrorKind::Connection,
        Some("58") => ErrorKind::Device,
        Some("XX") => ErrorKind::VaultDamaged,
        _ => ErrorKind::Database,
    }
}

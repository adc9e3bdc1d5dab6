//! The tables of a vault, and their versions.

use postgres::error::SqlState;
use postgres::types::Type;

use super::columns::value;
use super::error::{Failure, Outcome};
use super::pool::Server;
use crate::storage::{ErrorKind, Result, StorageError};

/// The migrations, the first of which creates version 1. Released ones are never edited.
const MIGRATIONS: [&str; 3] = [
    include_str!("../../../migrations/postgres/0001_vault.sql"),
    include_str!("../../../migrations/postgres/0002_source_path.sql"),
    include_str!("../../../migrations/postgres/0003_objects.sql"),
];

/// What to do if there is no vault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CreatePolicy {
    /// That is an error.
    Open,
    /// One is created; that there is one is an error.
    Create,
    /// One is created.
    OpenOrCreate,
}

/// The object storage of a new vault.
#[derive(Clone, Debug)]
pub(super) struct NewBlobStore {
    /// The number of the vault.
    pub(super) vault: [u8; 16],
    pub(super) url: String,
}

/// Returns whether the server has a vault of any version.
#[cfg(feature = "objects")]
pub(super) fn exists(server: &Server) -> Outcome<bool> {
    version(server).map(|version| version.is_some())
}

/// Checks that the server has a vault of the current version, or creates one, with `blobs` as its object storage.
///
/// # Errors
/// Returns an error of the kind `Missing`, `Exists`, `Newer` or `NotAVault` if what the policy expects is not there.
pub(super) fn prepare(server: &Server, policy: CreatePolicy, blobs: Option<&NewBlobStore>) -> Result<()> {
    let failed = |failure: Failure| failure.at(server.name());
    let found = version(server).map_err(failed)?;
    match (found, policy) {
        (None, CreatePolicy::Open) => Err(missing(server)),
        (Some(_), CreatePolicy::Create) => {
            Err(StorageError::new(ErrorKind::Exists, format!("{} already exists", server.name())))
        }
        (Some(version), _) => expect_current(server, version),
        (None, _) => {
            let created = create(server, blobs).map_err(failed)?;
            if !created && policy == CreatePolicy::Create {
                return Err(StorageError::new(
                    ErrorKind::Exists,
                    format!("{} already exists", server.name()),
                ));
            }
            version(server)
                .map_err(failed)?
                .map_or_else(|| Err(missing(server)), |found| expect_current(server, found))
        }
    }
}

fn missing(server: &Server) -> StorageError {
    StorageError::new(ErrorKind::Missing, format!("there is no vault at {}", server.name()))
}

fn expect_current(server: &Server, version: i32) -> Result<()> {
    let current = i32::try_from(MIGRATIONS.len()).unwrap_or(i32::MAX);
    if version > current {
        let message = format!(
            "{} has schema version {version}, but this version of runvault supports versions up to {current}; use a newer \
             runvault",
            server.name()
        );
        return Err(StorageError::new(ErrorKind::Newer, message));
    }
    if version < current {
        let message = format!(
            "{} was written by an older version of runvault (schema version {version}) and must be upgraded first",
            server.name()
        );
        return Err(StorageError::new(ErrorKind::Older, message));
    }
    Ok(())
}

/// Returns the version of the vault, or `None` if there is none.
fn version(server: &Server) -> Outcome<Option<i32>> {
    let mut client = server.lease()?;
    let sql = format!("SELECT version FROM \"{}\".vault", server.schema());
    match client.query_typed(&sql, &[]) {
        Ok(rows) => rows.first().map(|row| value(row, 0)).transpose(),
        Err(error) => {
            let is_missing = [SqlState::UNDEFINED_TABLE, SqlState::INVALID_SCHEMA_NAME];
            if error.code().is_some_and(|code| is_missing.contains(code)) {
                Ok(None)
            } else {
                Err(error.into())
            }
        }
    }
}

/// Creates the vault. Returns false if another process did.
fn create(server: &Server, blobs: Option<&NewBlobStore>) -> Outcome<bool> {
    loop {
        match try_to_create(server, blobs) {
            // Two processes created the same table at the same time: one of them waits for the other now.
            Err(failure)
                if failure.can_be_retried()
                    || failure.has_state(&SqlState::UNIQUE_VIOLATION)
                    || failure.has_state(&SqlState::DUPLICATE_SCHEMA)
                    || failure.has_state(&SqlState::DUPLICATE_TABLE) => {}
            outcome => return outcome,
        }
    }
}

fn try_to_create(server: &Server, blobs: Option<&NewBlobStore>) -> Outcome<bool> {
    let mut client = server.lease()?;
    expect_utf8(&mut client)?;
    let schema = server.schema();
    // The row is the lock of everything that changes the schema, and is there before anything else is.
    client.batch_execute(&format!(
        "CREATE SCHEMA IF NOT EXISTS \"{schema}\";
         CREATE TABLE IF NOT EXISTS \"{schema}\".vault (id smallint PRIMARY KEY CHECK (id = 1), version integer NOT NULL)"
    ))?;
    let mut transaction = client.transaction()?;
    transaction.batch_execute(&format!(
        "SET LOCAL search_path TO \"{schema}\"; INSERT INTO vault (id, version) VALUES (1, 0) ON CONFLICT DO NOTHING"
    ))?;
    let row = transaction.query_typed_one("SELECT version FROM vault WHERE id = 1 FOR UPDATE", &[])?;
    let found: i32 = value(&row, 0)?;
    let missing = MIGRATIONS.iter().skip(usize::try_from(found).unwrap_or(0));
    let mut version = found;
    for migration in missing {
        transaction.batch_execute(migration)?;
        version += 1;
    }
    transaction.execute_typed("UPDATE vault SET version = $1", &[(&version, Type::INT4)])?;
    if let Some(NewBlobStore { vault, url }) = blobs.filter(|_| found == 0) {
        let sql = "INSERT INTO blob_store (id, vault, url, is_claimed) VALUES (1, $1, $2, false)";
        transaction.execute_typed(sql, &[(&&vault[..], Type::BYTEA), (url, Type::TEXT)])?;
    }
    transaction.commit()?;
    Ok(found == 0)
}

/// Checks that the database can store any text.
fn expect_utf8(client: &mut postgres::Client) -> Outcome<()> {
    let row = client.query_typed_one("SELECT current_setting('server_encoding')", &[])?;
    let encoding: String = value(&row, 0)?;
    if encoding == "UTF8" {
        return Ok(());
    }
    let message = format!("the database has the encoding {encoding}, but a vault needs UTF8");
    Err(StorageError::new(ErrorKind::NotAVault, message).into())
}

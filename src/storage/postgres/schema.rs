//! The tables of a vault, and their versions.

use std::time::{Duration, Instant};

use postgres::error::{DbError, SqlState};
use postgres::types::Type;

use super::error::{PostgresError, PostgresResult};
use super::parameters::value;
use super::pool::PostgresServer;
use crate::storage::{BUSY_TIMEOUT, CreationPolicy, ErrorKind, Result, StorageError};

/// The schema of a vault.
pub(super) const VAULT: &str = include_str!("../../../migrations/postgres/0001_vault.sql");

/// The schema version that this program writes.
const VERSION: i64 = 1;

/// How often creating a vault is tried if its tables are there already: another process may create it at the same time.
const CREATE_ATTEMPTS: u32 = 10;

/// The object storage of a new vault.
#[derive(Clone, Debug)]
pub(super) struct NewBlobStore {
    /// The number of the vault.
    pub(super) vault: [u8; 16],
    pub(super) url: String,
}

/// Returns whether the server has a vault of any version.
#[cfg(feature = "objects")]
pub(super) fn exists(server: &PostgresServer) -> PostgresResult<bool> {
    version(server).map(|version| version.is_some())
}

/// Checks that the server has a vault of the current version, or creates one, with `blobs` as its object storage.
///
/// # Errors
/// Returns an error of the kind `Missing`, `Exists`, `Newer` or `NotAVault` if what `creation` requires is not there.
pub(super) fn prepare(
    server: &PostgresServer,
    creation: CreationPolicy,
    blobs: Option<&NewBlobStore>,
) -> Result<()> {
    let failed = |failure: PostgresError| failure.at(server.name());
    let found = version(server).map_err(failed)?;
    match (found, creation) {
        (None, CreationPolicy::Never) => Err(missing(server)),
        (Some(_), CreationPolicy::New) => {
            Err(StorageError::new(ErrorKind::Exists, format!("{} already exists", server.name())))
        }
        (Some(version), _) => expect_current(server.name(), version),
        (None, _) => {
            let created = create(server, creation, blobs).map_err(failed)?;
            if !created && creation == CreationPolicy::New {
                return Err(StorageError::new(
                    ErrorKind::Exists,
                    format!("{} already exists", server.name()),
                ));
            }
            version(server)
                .map_err(failed)?
                .map_or_else(|| Err(missing(server)), |found| expect_current(server.name(), found))
        }
    }
}

fn missing(server: &PostgresServer) -> StorageError {
    StorageError::new(ErrorKind::Missing, format!("there is no vault at {}", server.name()))
}

/// Checks that the vault `name` has the version that this program writes. Every transaction does, because another program
/// may change the schema at any time.
///
/// # Errors
/// Returns an error of the kind `Newer`, or `NotAVault` if it is no version of a vault.
pub(super) fn expect_current(name: &str, version: i64) -> Result<()> {
    match version {
        VERSION => Ok(()),
        ..VERSION => {
            let message = format!("{name} is no vault: it has no schema version; it is damaged");
            Err(StorageError::new(ErrorKind::NotAVault, message))
        }
        _ => {
            let message = format!(
                "{name} has schema version {version}, but this version of runvault supports versions up to {VERSION}; use a \
                 newer runvault"
            );
            Err(StorageError::new(ErrorKind::Newer, message))
        }
    }
}

/// The columns in which builds before the first release have the versions of their schemas.
const EARLIER: [&str; 2] = ["version", "schema_version"];

/// Returns the error for a vault of a build before the first release, if the server has one.
fn earlier(server: &PostgresServer) -> PostgresResult<Option<StorageError>> {
    for column in EARLIER {
        let sql = format!("SELECT {column}::bigint FROM \"{}\".vault", server.schema());
        match server.lease()?.query_typed(&sql, &[]) {
            Ok(rows) => {
                let version: i64 = rows.first().map_or(Ok(0), |row| value(row, 0))?;
                let message = format!("{} {}", server.name(), StorageError::earlier_build(version));
                return Ok(Some(StorageError::new(ErrorKind::Older, message)));
            }
            Err(error) if error.code() == Some(&SqlState::UNDEFINED_COLUMN) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(None)
}

/// Returns the version of the vault, or `None` if there is none.
fn version(server: &PostgresServer) -> PostgresResult<Option<i64>> {
    let mut client = server.lease()?;
    let sql = format!("SELECT format_version::bigint FROM \"{}\".vault", server.schema());
    match client.query_typed(&sql, &[]) {
        Ok(rows) => rows.first().map(|row| value(row, 0)).transpose(),
        Err(error) if error.code() == Some(&SqlState::UNDEFINED_COLUMN) => {
            drop(client);
            earlier(server)?.map_or_else(|| Err(error.into()), |earlier| Err(earlier.into()))
        }
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
fn create(
    server: &PostgresServer,
    creation: CreationPolicy,
    blobs: Option<&NewBlobStore>,
) -> PostgresResult<bool> {
    let begun = Instant::now();
    let mut attempts = 0;
    loop {
        attempts += 1;
        match try_to_create(server, creation, blobs) {
            Err(failure) if failure.can_be_retried() && begun.elapsed() < BUSY_TIMEOUT => {}
            // Two processes created the same table at the same time: one of them waits for the other now.
            Err(failure) if is_in_the_way(&failure) && attempts < CREATE_ATTEMPTS => {}
            Err(failure) if is_in_the_way(&failure) => return Err(occupied(server, &failure).into()),
            outcome => return outcome,
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Returns whether something that the vault needs is there already.
fn is_in_the_way(failure: &PostgresError) -> bool {
    let states = [SqlState::UNIQUE_VIOLATION, SqlState::DUPLICATE_SCHEMA, SqlState::DUPLICATE_TABLE];
    states.iter().any(|state| failure.has_state(state))
}

/// Returns the error for a schema that has relations with the names of a vault's tables, but no vault.
fn occupied(server: &PostgresServer, failure: &PostgresError) -> StorageError {
    let reported = failure.reported().map(DbError::message).unwrap_or_default();
    let message = format!(
        "{}: no vault can be created in the schema \"{}\": {reported}",
        server.name(),
        server.schema()
    );
    StorageError::new(ErrorKind::NotAVault, message)
}

fn try_to_create(
    server: &PostgresServer,
    creation: CreationPolicy,
    blobs: Option<&NewBlobStore>,
) -> PostgresResult<bool> {
    let mut client = server.lease()?;
    expect_utf8(&mut client)?;
    let schema = server.schema();
    // One transaction, so that nothing remains if a relation is in the way. The row is the lock of everything that changes
    // the schema.
    let mut transaction = client.transaction()?;
    transaction.batch_execute(&format!(
        "CREATE SCHEMA IF NOT EXISTS \"{schema}\";
         CREATE TABLE IF NOT EXISTS \"{schema}\".vault (id smallint PRIMARY KEY CHECK (id = 1), format_version integer NOT NULL);
         SET LOCAL search_path TO \"{schema}\"; INSERT INTO vault (id, format_version) VALUES (1, 0) ON CONFLICT DO NOTHING"
    ))?;
    let row = transaction
        .query_typed_one("SELECT format_version::bigint FROM vault WHERE id = 1 FOR UPDATE", &[])?;
    let found: i64 = value(&row, 0)?;
    if found == 0 {
        transaction.batch_execute(VAULT)?;
        transaction.execute_typed("UPDATE vault SET format_version = $1", &[(&VERSION, Type::INT8)])?;
        // What becomes a copy must not be taken for a vault before.
        if creation == CreationPolicy::ForCopy {
            transaction.execute_typed("UPDATE head SET is_incomplete = true WHERE id = 1", &[])?;
        }
        if let Some(NewBlobStore { vault, url }) = blobs {
            let sql = "INSERT INTO blob_store (id, vault, url, is_claimed) VALUES (1, $1, $2, false)";
            transaction.execute_typed(sql, &[(&&vault[..], Type::BYTEA), (url, Type::TEXT)])?;
        }
        transaction.commit()?;
    }
    Ok(found == 0)
}

/// Checks that the database can store any text.
fn expect_utf8(client: &mut postgres::Client) -> PostgresResult<()> {
    let row = client.query_typed_one("SELECT current_setting('server_encoding')", &[])?;
    let encoding: String = value(&row, 0)?;
    if encoding == "UTF8" {
        return Ok(());
    }
    let message = format!("the database has the encoding {encoding}, but a vault needs UTF8");
    Err(StorageError::new(ErrorKind::NotAVault, message).into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::conformance::postgres::Schema;
    use crate::storage::postgres::address::PostgresAddress;
    use crate::storage::postgres::journal::PostgresJournalWriter;
    use crate::storage::postgres::session::DatabaseTransaction;

    fn server(schema: &Schema) -> PostgresServer {
        PostgresServer::connect(&PostgresAddress::parse(&schema.address()).unwrap()).unwrap()
    }

    fn is_newer<T>(outcome: PostgresResult<T>) -> bool {
        matches!(outcome, Err(PostgresError::Storage(error)) if error.kind() == ErrorKind::Newer)
    }

    #[test]
    fn a_relation_with_the_name_of_a_table_is_reported_and_nothing_is_created() {
        for sql in ["CREATE TABLE tag (x integer)", "CREATE VIEW tag AS SELECT 1 AS x"] {
            let Some(schema) = Schema::new() else { return };
            let name = schema.name();
            schema
                .client()
                .batch_execute(&format!("CREATE SCHEMA {name}; SET search_path TO {name}; {sql}"))
                .unwrap();
            let error = prepare(&server(&schema), CreationPolicy::IfMissing, None).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::NotAVault);
            let expected = format!("in the schema \"{name}\": relation \"tag\" already exists");
            assert!(error.to_string().ends_with(&expected), "{error}");
            let sql = "SELECT relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = $1";
            assert_eq!(schema.client().query(sql, &[&name]).unwrap().len(), 1);
        }
    }

    #[test]
    fn a_vault_without_its_row_is_not_created_again() {
        let Some(schema) = Schema::new() else { return };
        prepare(&server(&schema), CreationPolicy::New, None).unwrap();
        schema.client().batch_execute("DELETE FROM vault").unwrap();
        let error = prepare(&server(&schema), CreationPolicy::New, None).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotAVault);
        assert!(error.to_string().ends_with("already exists"), "{error}");
    }

    #[test]
    fn several_processes_create_a_vault_once() {
        let Some(schema) = Schema::new() else { return };
        std::thread::scope(|scope| {
            let create = || create(&server(&schema), CreationPolicy::New, None).unwrap();
            let running: Vec<_> = (0..6).map(|_| scope.spawn(create)).collect();
            let created = running.into_iter().filter_map(|thread| thread.join().unwrap().then_some(()));
            assert_eq!(created.count(), 1);
        });
    }

    #[test]
    fn a_vault_of_a_newer_program_is_not_used() {
        let Some(schema) = Schema::new() else { return };
        let server = server(&schema);
        prepare(&server, CreationPolicy::New, None).unwrap();
        let writing = DatabaseTransaction::to_write(&server, BUSY_TIMEOUT).unwrap();
        schema.client().batch_execute("UPDATE vault SET format_version = format_version + 1").unwrap();
        assert!(is_newer(PostgresJournalWriter::lock(&writing, None, chrono::DateTime::UNIX_EPOCH)));
        assert!(is_newer(DatabaseTransaction::to_write(&server, BUSY_TIMEOUT)));
        assert!(is_newer(DatabaseTransaction::to_read(&server)));
        let error = prepare(&server, CreationPolicy::IfMissing, None).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Newer);
        assert!(
            error.to_string().contains("schema version 2") && error.to_string().contains("up to 1"),
            "{error}"
        );
    }

    #[test]
    fn a_vault_of_an_earlier_build_is_refused_naming_its_version() {
        let Some(schema) = Schema::new() else { return };
        let name = schema.name();
        for column in EARLIER {
            let earlier = format!(
                "DROP SCHEMA IF EXISTS {name} CASCADE; CREATE SCHEMA {name};
                 CREATE TABLE {name}.vault (id smallint, {column} integer); INSERT INTO {name}.vault VALUES (1, 7)"
            );
            schema.client().batch_execute(&earlier).unwrap();
            for policy in [CreationPolicy::Never, CreationPolicy::IfMissing] {
                let error = prepare(&server(&schema), policy, None).unwrap_err();
                assert_eq!(error.kind(), ErrorKind::Older);
                assert!(error.to_string().contains("schema version 7"), "{error}");
            }
        }
    }
}

//! The tables of a vault, and their versions.

use std::time::{Duration, Instant};

use postgres::Transaction;
use postgres::error::{DbError, SqlState};
use postgres::types::Type;

use super::columns::value;
use super::error::{PostgresError, PostgresResult};
use super::pool::PostgresServer;
use crate::storage::{BUSY_TIMEOUT, ErrorKind, Result, StorageError};

/// The migrations, the first of which creates version 1. Released ones are never edited.
pub(super) const MIGRATIONS: [&str; 7] = [
    include_str!("../../../migrations/postgres/0001_vault.sql"),
    include_str!("../../../migrations/postgres/0002_source_path.sql"),
    include_str!("../../../migrations/postgres/0003_objects.sql"),
    include_str!("../../../migrations/postgres/0004_search.sql"),
    include_str!("../../../migrations/postgres/0005_views.sql"),
    include_str!("../../../migrations/postgres/0006_copy.sql"),
    include_str!("../../../migrations/postgres/0007_mention_index.sql"),
];

/// How often creating a vault is tried if its tables are there already: another process may create it at the same time.
const CREATE_ATTEMPTS: u32 = 10;

/// The policy if there is no vault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PostgresCreatePolicy {
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
pub(super) fn exists(server: &PostgresServer) -> PostgresResult<bool> {
    version(server).map(|version| version.is_some())
}

/// Checks that the server has a vault of the current version, or creates one, with `blobs` as its object storage.
///
/// # Errors
/// Returns an error of the kind `Missing`, `Exists`, `Newer` or `NotAVault` if what the policy expects is not there.
pub(super) fn prepare(
    server: &PostgresServer,
    policy: PostgresCreatePolicy,
    blobs: Option<&NewBlobStore>,
) -> Result<()> {
    let failed = |failure: PostgresError| failure.at(server.name());
    let found = version(server).map_err(failed)?;
    match (found, policy) {
        (None, PostgresCreatePolicy::Open) => Err(missing(server)),
        (Some(_), PostgresCreatePolicy::Create) => {
            Err(StorageError::new(ErrorKind::Exists, format!("{} already exists", server.name())))
        }
        (Some(version), _) => expect_current(server.name(), version),
        (None, _) => {
            let created = create(server, blobs).map_err(failed)?;
            if !created && policy == PostgresCreatePolicy::Create {
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

/// Returns the version that this program writes.
pub(super) fn current() -> i32 {
    latest(&MIGRATIONS)
}

fn latest(migrations: &[&str]) -> i32 {
    i32::try_from(migrations.len()).unwrap_or(i32::MAX)
}

/// Checks that the vault `name` has the version that this program writes. Every transaction does, because another program
/// may upgrade the vault at any time.
///
/// # Errors
/// Returns an error of the kind `Newer` or `Older`.
pub(super) fn expect_current(name: &str, version: i32) -> Result<()> {
    let current = current();
    if version > current {
        return Err(newer(name, version, current));
    }
    if version < current {
        let message = format!(
            "{name} was written by an older version of runvault (schema version {version}, the current one is {current}) and \
             must be upgraded first"
        );
        return Err(StorageError::new(ErrorKind::Older, message));
    }
    Ok(())
}

fn newer(name: &str, version: i32, current: i32) -> StorageError {
    let message = format!(
        "{name} has schema version {version}, but this version of runvault supports versions up to {current}; use a newer \
         runvault"
    );
    StorageError::new(ErrorKind::Newer, message)
}

/// Applies the migrations that the vault does not have yet, in one transaction. Several processes can do this at once: they
/// wait for each other and for writers. Returns the former version.
///
/// # Errors
/// Returns an error of the kind `Missing` if there is no vault, `Newer` if a newer program made it, and `Busy` if others do
/// not finish in time.
pub(super) fn upgrade(server: &PostgresServer) -> Result<i32> {
    upgrade_with(server, &MIGRATIONS)
}

fn upgrade_with(server: &PostgresServer, migrations: &[&str]) -> Result<i32> {
    let failed = |failure: PostgresError| failure.at(server.name());
    let begun = Instant::now();
    let current = latest(migrations);
    let mut found = version(server).map_err(failed)?.ok_or_else(|| missing(server))?;
    while found < current {
        match try_to_upgrade(server, migrations) {
            Err(failure) if failure.can_be_retried() && begun.elapsed() < BUSY_TIMEOUT => {
                std::thread::sleep(Duration::from_millis(20));
            }
            Err(failure) => return Err(failed(failure)),
            Ok(former) if former <= current => return Ok(former),
            Ok(former) => found = former,
        }
    }
    if found > current { Err(newer(server.name(), found, current)) } else { Ok(found) }
}

fn try_to_upgrade(server: &PostgresServer, migrations: &[&str]) -> PostgresResult<i32> {
    let mut client = server.lease()?;
    let mut transaction = client.transaction()?;
    transaction.batch_execute(&format!(
        "SET LOCAL search_path TO \"{}\"; SET LOCAL lock_timeout = '{}ms'",
        server.schema(),
        BUSY_TIMEOUT.as_millis()
    ))?;
    // Writers lock the same rows, so that each of them writes before the upgrade or finds out about it.
    let sql =
        "SELECT v.version FROM head h, vault v WHERE h.id = 1 AND v.id = 1 FOR UPDATE OF h FOR UPDATE OF v";
    let found = value(&transaction.query_typed_one(sql, &[])?, 0)?;
    if found < latest(migrations) {
        apply(&mut transaction, migrations, found)?;
        transaction.commit()?;
    }
    Ok(found)
}

/// Applies the migrations after version `from`, and sets the version.
fn apply(transaction: &mut Transaction<'_>, migrations: &[&str], from: i32) -> PostgresResult<()> {
    for migration in migrations.iter().skip(usize::try_from(from).unwrap_or(0)) {
        transaction.batch_execute(migration)?;
    }
    transaction.execute_typed("UPDATE vault SET version = $1", &[(&latest(migrations), Type::INT4)])?;
    Ok(())
}

/// Returns the version of the vault, or `None` if there is none.
fn version(server: &PostgresServer) -> PostgresResult<Option<i32>> {
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
fn create(server: &PostgresServer, blobs: Option<&NewBlobStore>) -> PostgresResult<bool> {
    let begun = Instant::now();
    let mut attempts = 0;
    loop {
        attempts += 1;
        match try_to_create(server, blobs) {
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

fn try_to_create(server: &PostgresServer, blobs: Option<&NewBlobStore>) -> PostgresResult<bool> {
    let mut client = server.lease()?;
    expect_utf8(&mut client)?;
    let schema = server.schema();
    // One transaction, so that nothing remains if a relation is in the way. The row is the lock of everything that changes
    // the schema.
    let mut transaction = client.transaction()?;
    transaction.batch_execute(&format!(
        "CREATE SCHEMA IF NOT EXISTS \"{schema}\";
         CREATE TABLE IF NOT EXISTS \"{schema}\".vault (id smallint PRIMARY KEY CHECK (id = 1), version integer NOT NULL);
         SET LOCAL search_path TO \"{schema}\"; INSERT INTO vault (id, version) VALUES (1, 0) ON CONFLICT DO NOTHING"
    ))?;
    let row = transaction.query_typed_one("SELECT version FROM vault WHERE id = 1 FOR UPDATE", &[])?;
    let found: i32 = value(&row, 0)?;
    if found == 0 {
        apply(&mut transaction, &MIGRATIONS, 0)?;
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

    /// A migration to the version after the last one that this program has.
    const NEXT: &str = "CREATE TABLE next (x integer); INSERT INTO next SELECT count(*) FROM journal";

    fn with_next(next: &'static str) -> Vec<&'static str> {
        MIGRATIONS.into_iter().chain([next]).collect()
    }

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
            let error = prepare(&server(&schema), PostgresCreatePolicy::OpenOrCreate, None).unwrap_err();
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
        prepare(&server(&schema), PostgresCreatePolicy::Create, None).unwrap();
        schema.client().batch_execute("DELETE FROM vault").unwrap();
        let error = prepare(&server(&schema), PostgresCreatePolicy::Create, None).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotAVault);
        assert!(error.to_string().ends_with("already exists"), "{error}");
    }

    #[test]
    fn several_processes_create_a_vault_once() {
        let Some(schema) = Schema::new() else { return };
        std::thread::scope(|scope| {
            let create = || create(&server(&schema), None).unwrap();
            let running: Vec<_> = (0..6).map(|_| scope.spawn(create)).collect();
            let created = running.into_iter().filter_map(|thread| thread.join().unwrap().then_some(()));
            assert_eq!(created.count(), 1);
        });
    }

    #[test]
    fn several_processes_upgrade_a_vault_once() {
        let Some(schema) = Schema::new() else { return };
        prepare(&server(&schema), PostgresCreatePolicy::Create, None).unwrap();
        let former: Vec<i32> = std::thread::scope(|scope| {
            let upgrade = || upgrade_with(&server(&schema), &with_next(NEXT)).unwrap();
            let running: Vec<_> = (0..6).map(|_| scope.spawn(upgrade)).collect();
            running.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert_eq!(former.iter().filter(|former| **former == current()).count(), 1, "{former:?}");
        assert!(former.iter().all(|former| [current(), current() + 1].contains(former)), "{former:?}");
        let rows = schema.client().query("SELECT x FROM next", &[]).unwrap();
        assert_eq!(rows.len(), 1);
    }

    #[test]
    fn a_vault_that_was_upgraded_is_not_used_by_older_programs() {
        let Some(schema) = Schema::new() else { return };
        let server = server(&schema);
        prepare(&server, PostgresCreatePolicy::Create, None).unwrap();
        let writing = DatabaseTransaction::to_write(&server, BUSY_TIMEOUT).unwrap();
        assert_eq!(upgrade_with(&server, &with_next(NEXT)).unwrap(), current());
        assert!(is_newer(PostgresJournalWriter::lock(&writing, None, chrono::DateTime::UNIX_EPOCH)));
        assert!(is_newer(DatabaseTransaction::to_write(&server, BUSY_TIMEOUT)));
        assert!(is_newer(DatabaseTransaction::to_read(&server)));
        for outcome in
            [prepare(&server, PostgresCreatePolicy::OpenOrCreate, None), upgrade(&server).map(drop)]
        {
            let error = outcome.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Newer);
            assert!(error.to_string().contains(&format!("supports versions up to {}", current())), "{error}");
        }
    }

    #[test]
    fn writers_and_upgrades_wait_for_each_other() {
        let Some(schema) = Schema::new() else { return };
        let server = server(&schema);
        prepare(&server, PostgresCreatePolicy::Create, None).unwrap();
        let writing = DatabaseTransaction::to_write(&server, BUSY_TIMEOUT).unwrap();
        PostgresJournalWriter::lock(&writing, None, chrono::DateTime::UNIX_EPOCH).unwrap();
        let insert = "INSERT INTO journal VALUES (1, 0, 'x', 'x', decode(repeat('00', 32), 'hex'))";
        writing.execute(insert, &[]).unwrap();
        std::thread::scope(|scope| {
            let upgrade = scope.spawn(|| upgrade_with(&server, &with_next(NEXT)));
            let blocked = "SELECT 1 FROM pg_stat_activity a, pg_locks l
                            WHERE l.pid = a.pid AND NOT l.granted AND a.query LIKE '%FOR UPDATE OF v%'";
            let mut client = schema.client();
            while client.query(blocked, &[]).unwrap().is_empty() {
                std::thread::yield_now();
            }
            writing.commit().unwrap();
            assert_eq!(upgrade.join().unwrap().unwrap(), current());
        });
        let seen: i32 = schema.client().query_one("SELECT x FROM next", &[]).unwrap().get(0);
        assert_eq!(seen, 1);
    }

    #[test]
    fn an_upgrade_that_fails_changes_nothing() {
        let Some(schema) = Schema::new() else { return };
        let server = server(&schema);
        assert_eq!(upgrade(&server).unwrap_err().kind(), ErrorKind::Missing);
        prepare(&server, PostgresCreatePolicy::Create, None).unwrap();
        upgrade_with(&server, &with_next("CREATE TABLE next (x integer); SELECT 1 / 0")).unwrap_err();
        assert_eq!(version(&server).unwrap(), Some(current()));
        assert!(schema.client().query("SELECT x FROM next", &[]).is_err());
    }

    #[test]
    fn a_vault_of_an_older_program_is_refused_until_it_is_upgraded() {
        let Some(schema) = Schema::new() else { return };
        let server = server(&schema);
        prepare(&server, PostgresCreatePolicy::Create, None).unwrap();
        schema.client().batch_execute("UPDATE vault SET version = version - 1").unwrap();
        for policy in [PostgresCreatePolicy::Open, PostgresCreatePolicy::OpenOrCreate] {
            let error = prepare(&server, policy, None).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Older);
            let versions = format!("(schema version {}, the current one is {})", current() - 1, current());
            assert!(error.to_string().contains(&versions), "{error}");
        }
    }
}

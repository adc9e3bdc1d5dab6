//! The schema of vaults: creating it, and rejecting vaults of other versions.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Instant;

use rusqlite::{Connection, ErrorCode, OpenFlags, TransactionBehavior, ffi};
use rusqlite_migration::{M, Migrations};

use super::connection::{self, BUSY_TIMEOUT};
use super::{Result, StorageError};
use crate::storage::views::is_plain;
use crate::storage::{CreationPolicy, recorded};

/// The schema of the search index.
pub(super) const SEARCH: &str = include_str!("../../../migrations/sqlite/search.sql");

/// The query whether there is any part of a search index, complete or not.
pub(super) const HAS_SEARCH_TABLES: &str = "SELECT EXISTS (SELECT 1 FROM sqlite_schema
     WHERE name IN ('search_state', 'search_capture', 'search_text') OR name GLOB 'search_text_*')";

/// The page size in bytes. Measured with documents of a few kilobytes: vaults are as small as with 16 KiB and smaller than
/// with 4 KiB, and a single addition, which writes some 20 pages twice, takes nine tenths of the time that it takes with 16.
const PAGE_SIZE: u32 = 8_192;

/// The id that the schema writes into the header of every vault: "rvdb".
const VAULT_ID: i64 = 0x7276_6462;

/// The id of a vault that is an incomplete copy of another one: "rvdc". Programs that do not know it do not take the file
/// for a vault.
const INCOMPLETE_ID: i64 = 0x7276_6463;

/// The ids of vaults and incomplete copies of builds before the first release, whose schemas have versions of their own:
/// "runv", "runc", "rvlt", "rvlc", "rvvt", "rvvc", "rvar" and "rvac".
const EARLIER_IDS: [i64; 8] =
    [0x7275_6e76, 0x7275_6e63, 0x7276_6c74, 0x7276_6c63, 0x7276_7674, 0x7276_7663, 0x7276_6172, 0x7276_6163];

/// The schema of a vault.
const VAULT: &str = include_str!("../../../migrations/sqlite/0001_vault.sql");

/// The migrations, the first of which creates version 1.
const MIGRATIONS: Migrations<'static> = Migrations::from_slice(STEPS);

const STEPS: &[M<'static>] = &[M::up(VAULT)];

/// The schema version that this program writes.
const VERSION: i64 = 1;

/// Checks that the file at `path`, to which `connection` is, is a vault of this program's schema, or makes an empty file one
/// if `creation` allows that. Only for a copy may it be an incomplete one.
pub(super) fn prepare(connection: &mut Connection, path: &Path, creation: CreationPolicy) -> Result<()> {
    let failed = |source| StorageError::from_sqlite(path, source);
    let not_a_vault = |reason: &str| StorageError::not_a_vault(path, reason);
    let mut state = VaultFileState::load(connection).map_err(failed)?;
    if state == VaultFileState::Empty && creation != CreationPolicy::Never {
        let created = begin(connection).and_then(|()| create_for(connection, creation));
        state = VaultFileState::load(connection).map_err(failed)?;
        // Another process may have created it in the meantime.
        if state == VaultFileState::Empty {
            created.map_err(failed)?;
        }
    }
    match state {
        VaultFileState::Incomplete { version } if creation == CreationPolicy::ForCopy => {
            expect_current(connection, path, version)
        }
        VaultFileState::Incomplete { .. } => Err(recorded::incomplete(path.display())),
        VaultFileState::Vault { version } => expect_current(connection, path, version),
        VaultFileState::Earlier { version } => Err(StorageError::older(path, version)),
        VaultFileState::Empty => Err(not_a_vault("it is empty")),
        VaultFileState::Foreign => Err(not_a_vault("it is a database of another program")),
    }
}

fn expect_current(connection: &Connection, path: &Path, version: i64) -> Result<()> {
    match version {
        VERSION => expect_tables(connection).map_err(|source| StorageError::from_sqlite(path, source)),
        ..VERSION => Err(StorageError::not_a_vault(path, "it has no schema version; it is damaged")),
        _ => Err(StorageError::newer(path, version, VERSION)),
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum VaultFileState {
    Empty,
    Vault {
        version: i64,
    },
    Incomplete {
        version: i64,
    },
    /// A vault of a build before the first release.
    Earlier {
        version: i64,
    },
    Foreign,
}

impl VaultFileState {
    fn load(connection: &Connection) -> rusqlite::Result<Self> {
        // In one transaction: another process may be creating the vault.
        let transaction = connection.unchecked_transaction()?;
        let number = |sql: &str| transaction.query_row(sql, [], |row| row.get::<_, i64>(0));
        let version = number("PRAGMA user_version")?;
        Ok(match number("PRAGMA application_id")? {
            VAULT_ID => Self::Vault { version },
            INCOMPLETE_ID => Self::Incomplete { version },
            id if EARLIER_IDS.contains(&id) => Self::Earlier { version },
            0 if version == 0 && number("SELECT count(*) FROM sqlite_schema")? == 0 => Self::Empty,
            _ => Self::Foreign,
        })
    }
}

/// Every table, index and view of a vault by its name, with its type, its table and its definition.
pub(super) type SchemaObjects = BTreeMap<String, (String, String, Option<String>)>;

/// Returns the schema objects of a vault.
pub(super) fn objects(connection: &Connection) -> rusqlite::Result<SchemaObjects> {
    let mut statement = connection.prepare("SELECT name, type, tbl_name, sql FROM sqlite_schema")?;
    let objects =
        statement.query_map([], |row| Ok((row.get(0)?, (row.get(1)?, row.get(2)?, row.get(3)?))))?;
    objects.collect()
}

/// Returns the schema objects that a vault should have, from a temporary database created for this. `path` is the vault
/// that errors name.
pub(super) fn expected(path: &Path) -> Result<SchemaObjects> {
    let failed = |source| StorageError::from_sqlite(path, source);
    // An unnamed database: SQLite keeps it private and deletes it.
    let mut connection = Connection::open_with_flags("", OpenFlags::default()).map_err(failed)?;
    create(&mut connection).and_then(|()| objects(&connection)).map_err(failed)
}

/// Returns an error if a view has the name of a table. The query of a view may never end, and every vault stores its
/// data in tables.
fn expect_tables(connection: &Connection) -> rusqlite::Result<()> {
    let mut statement = connection.prepare("SELECT name FROM sqlite_schema WHERE type = 'view'")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let name = row.get_ref(0)?.as_str()?;
        // Most vaults have only these, and searching the definitions takes longer than all the rest of this.
        if !is_plain(name) && tables().any(|table| table == name) {
            return Err(damaged(format!("{name} is a view instead of a table")));
        }
    }
    Ok(())
}

/// Returns the names of the tables that a vault has.
fn tables() -> impl Iterator<Item = &'static str> {
    let definitions = [VAULT, SEARCH].into_iter().flat_map(|text| text.split("CREATE TABLE ").skip(1));
    definitions.filter_map(|definition| definition.split(' ').next())
}

/// Returns an error if a view whose name `is_required` is not defined as in the schema. A view defined by another
/// program may return anything, or never end.
pub(super) fn expect_views(
    connection: &Connection,
    is_required: impl Fn(&str) -> bool,
) -> rusqlite::Result<()> {
    let is_known = |sql: Option<&str>| sql.is_some_and(|sql| VAULT.contains(sql));
    for (name, sql) in views(connection)? {
        if is_required(&name) && !is_known(sql.as_deref()) {
            return Err(damaged(format!("the view {name} differs from the definition in this program")));
        }
    }
    Ok(())
}

/// Like [`expect_views`], for the view that returns the texts of the journal's entries.
pub(super) fn expect_journal_view(connection: &Connection) -> rusqlite::Result<()> {
    expect_views(connection, |name| name == "journal_entries")
}

fn views(connection: &Connection) -> rusqlite::Result<Vec<(String, Option<String>)>> {
    connection
        .prepare_cached("SELECT name, sql FROM sqlite_schema WHERE type = 'view'")?
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect()
}

fn damaged(message: String) -> rusqlite::Error {
    rusqlite::Error::SqliteFailure(ffi::Error::new(ffi::SQLITE_CORRUPT), Some(message))
}

/// Returns the tables of a search index, which a vault may also have.
pub(super) fn expected_for_search(path: &Path) -> Result<SchemaObjects> {
    let made = || {
        let connection = Connection::open_with_flags("", OpenFlags::default())?;
        connection.pragma_update(None, "foreign_keys", false)?;
        connection.execute_batch(SEARCH)?;
        objects(&connection)
    };
    made().map_err(|source| StorageError::from_sqlite(path, source))
}

/// Sets properties of the file itself that cannot be changed later.
fn begin(connection: &Connection) -> rusqlite::Result<()> {
    connection.execute_batch(&format!("PRAGMA page_size = {PAGE_SIZE}"))?;
    // If two processes do this at once, SQLite fails one of them without waiting.
    let deadline = Instant::now() + BUSY_TIMEOUT;
    loop {
        match connection.query_row("PRAGMA journal_mode = WAL", [], |row| row.get::<_, String>(0)) {
            Err(error)
                if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy)
                    && Instant::now() < deadline =>
            {
                std::thread::sleep(std::time::Duration::from_millis(5));
            }
            outcome => return outcome.map(drop),
        }
    }
}

/// Creates a vault of the current schema in an empty file, which no other process uses, so that all of it is in the file.
pub(super) fn create_alone(connection: &mut Connection, creation: CreationPolicy) -> rusqlite::Result<()> {
    begin(connection)?;
    create_for(connection, creation)?;
    if connection::empty_log(connection)? {
        return Ok(());
    }
    Err(rusqlite::Error::SqliteFailure(ffi::Error::new(ffi::SQLITE_BUSY), None))
}

/// Creates the schema in an empty database, and marks it if it is to become a copy, which must not be taken for a vault
/// before.
fn create_for(connection: &mut Connection, creation: CreationPolicy) -> rusqlite::Result<()> {
    create(connection)?;
    if creation == CreationPolicy::ForCopy { mark_incomplete(connection, true) } else { Ok(()) }
}

/// Creates the schema in an empty database.
pub(super) fn create(connection: &mut Connection) -> rusqlite::Result<()> {
    connection.set_transaction_behavior(TransactionBehavior::Immediate);
    let outcome = MIGRATIONS.to_latest(connection);
    connection.set_transaction_behavior(TransactionBehavior::Deferred);
    outcome.map_err(|error| match error {
        rusqlite_migration::Error::RusqliteError { err, .. } => err,
        error => rusqlite::Error::SqliteFailure(ffi::Error::new(ffi::SQLITE_ERROR), Some(error.to_string())),
    })
}

/// Makes a change of the schema by its table, for what SQLite cannot read and therefore not drop.
pub(super) fn change_by_table(
    connection: &Connection,
    change: impl FnOnce() -> rusqlite::Result<()>,
) -> rusqlite::Result<()> {
    connection.execute_batch("PRAGMA writable_schema = ON")?;
    let changed = change();
    connection.execute_batch("PRAGMA writable_schema = RESET")?;
    changed
}

/// Returns a name as it is written in SQL.
pub(super) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// Returns whether the vault is marked as an incomplete copy.
pub(super) fn is_incomplete(connection: &Connection) -> rusqlite::Result<bool> {
    let id: i64 = connection.prepare_cached("PRAGMA application_id")?.query_row([], |row| row.get(0))?;
    Ok(id == INCOMPLETE_ID)
}

/// Marks the vault as an incomplete copy, or as complete.
pub(super) fn mark_incomplete(connection: &Connection, is_incomplete: bool) -> rusqlite::Result<()> {
    connection.pragma_update(None, "application_id", if is_incomplete { INCOMPLETE_ID } else { VAULT_ID })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::ErrorKind;

    fn fresh(directory: &tempfile::TempDir) -> (std::path::PathBuf, Connection) {
        let path = directory.path().join("v.vault");
        connection::create_file(&path).unwrap();
        let connection = connection::connect(&path).unwrap();
        (path, connection)
    }

    #[test]
    fn the_schema_is_valid_and_has_the_version() {
        MIGRATIONS.validate().unwrap();
        let mut connection = Connection::open_with_flags("", OpenFlags::default()).unwrap();
        create(&mut connection).unwrap();
        let number = |sql: &str| connection.query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap();
        assert_eq!(number("PRAGMA user_version"), VERSION);
        assert_eq!(number("PRAGMA application_id"), VAULT_ID);
    }

    #[test]
    fn no_table_has_the_name_of_a_view() {
        let expected = expected(Path::new("v")).unwrap();
        for (name, (kind, ..)) in &expected {
            assert_eq!(is_plain(name), kind == "view", "{name}");
        }
        assert!(tables().all(|table| !is_plain(table)));
    }

    #[test]
    fn a_vault_of_an_earlier_build_is_refused_naming_its_version_and_is_not_changed() {
        let directory = tempfile::tempdir().unwrap();
        let (path, mut connection) = fresh(&directory);
        for id in EARLIER_IDS {
            let earlier = format!("PRAGMA application_id = {id}; PRAGMA user_version = 8");
            connection.execute_batch(&earlier).unwrap();
            let before = std::fs::read(&path).unwrap();
            for policy in [CreationPolicy::Never, CreationPolicy::IfMissing, CreationPolicy::ForCopy] {
                let error = prepare(&mut connection, &path, policy).unwrap_err();
                assert_eq!(error.kind(), ErrorKind::Older);
                assert!(error.to_string().contains("schema version 8"), "{error}");
            }
            assert!(std::fs::read(&path).unwrap() == before);
        }
    }

    #[test]
    fn a_newer_vault_is_refused_naming_both_versions() {
        let directory = tempfile::tempdir().unwrap();
        let (path, mut connection) = fresh(&directory);
        prepare(&mut connection, &path, CreationPolicy::IfMissing).unwrap();
        connection.pragma_update(None, "user_version", VERSION + 1).unwrap();
        let message = prepare(&mut connection, &path, CreationPolicy::IfMissing).unwrap_err().to_string();
        assert!(message.contains("schema version 2") && message.contains("up to 1"), "{message}");
    }

    #[test]
    fn other_databases_are_left_alone() {
        let directory = tempfile::tempdir().unwrap();
        let (path, mut connection) = fresh(&directory);
        connection.execute_batch("CREATE TABLE theirs (x)").unwrap();
        let refused = prepare(&mut connection, &path, CreationPolicy::IfMissing);
        assert!(refused.is_err_and(|error| error.kind() == ErrorKind::NotAVault));
    }
}

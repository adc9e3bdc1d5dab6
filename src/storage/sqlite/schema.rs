//! Schema versions: creating vaults, rejecting newer ones, migrating older ones.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Instant;

use rusqlite::{Connection, ErrorCode, OpenFlags, Transaction, TransactionBehavior, ffi};
use rusqlite_migration::{HookResult, M, Migrations};

use super::application_id;
use super::connection::{self, BUSY_TIMEOUT, secure_delete};
use super::copy;
use super::derived;
use super::dictionaries::{self, DecompressionDictionaryCache};
use super::lists::MentionListReader;
use super::packed;
use super::payload::PayloadReader;
use super::staging::{CreateDatabaseError, StagedDatabase};
use super::unresolved;
use super::{Result, StorageError};
use crate::storage::recorded;
use crate::storage::views::is_plain;

/// The schema of the search index.
pub(super) const SEARCH: &str = include_str!("../../../migrations/search.sql");

/// The page size in bytes. Measured with documents of a few kilobytes: vaults are as small as with 16 KiB and smaller than
/// with 4 KiB, and a single addition, which writes some 20 pages twice, takes nine tenths of the time that it takes with 16.
const PAGE_SIZE: u32 = 8_192;

/// The schema version that this program writes.
pub(super) const VERSION: u32 = 8;

/// The SQL of each schema version, in order.
const MIGRATIONS: [&str; VERSION as usize] = [
    include_str!("../../../migrations/0001_vault.sql"),
    include_str!("../../../migrations/0002_packed.sql"),
    include_str!("../../../migrations/0003_everyday.sql"),
    include_str!("../../../migrations/0004_seen.sql"),
    include_str!("../../../migrations/0005_numbers.sql"),
    include_str!("../../../migrations/0006_labels.sql"),
    include_str!("../../../migrations/0007_source_path.sql"),
    include_str!("../../../migrations/0008_unresolved.sql"),
];

/// The tables, indexes and views that the migrations make, written by a test: new vaults have had no other schema, and
/// running all migrations takes five times as long.
const SCHEMA: &str = include_str!("../../../migrations/schema.sql");

fn steps() -> Vec<M<'static>> {
    let [vault, packed, everyday, seen, numbers, labels, source_path, unresolved] = MIGRATIONS;
    vec![
        M::up(vault),
        M::up_with_hook(packed, packed::pack_mentions),
        M::up(everyday),
        M::up_with_hook(seen, complete_0004),
        M::up(numbers),
        M::up(labels),
        M::up(source_path),
        M::up_with_hook(unresolved, complete_0008),
    ]
}

/// Completes the migration to the fourth schema with what SQL cannot express.
fn complete_0004(transaction: &Transaction<'_>) -> HookResult {
    derived::begin(transaction)?;
    Ok(dictionaries::seal_stored(transaction)?)
}

/// Fills the table of the eighth schema.
fn complete_0008(transaction: &Transaction<'_>) -> HookResult {
    let payloads =
        PayloadReader { connection: transaction, readers: &DecompressionDictionaryCache::default() };
    Ok(unresolved::rebuild(MentionListReader { payloads })?)
}

/// The changes that are allowed to make a file usable as a vault.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum CreatePolicy {
    /// None: it must be a vault of the current schema.
    Open,
    /// An empty file becomes a vault.
    Create,
    /// A vault of an older schema is migrated to the current one.
    Upgrade,
    /// As for `Create`, and it may be an incomplete copy of another vault.
    Copy,
}

/// Makes the file at `path`, to which `connection` is, a vault of the current schema, by the changes that `policy` allows.
pub(super) fn prepare(connection: &mut Connection, path: &Path, policy: CreatePolicy) -> Result<()> {
    apply(connection, path, &steps(), policy)?;
    if policy == CreatePolicy::Upgrade { Ok(()) } else { derived::expect_current(connection, path) }
}

/// Returns the schema version of the vault at `path`.
pub(super) fn version(path: &Path) -> Result<i64> {
    let connection = connection::connect(path).map_err(|source| StorageError::from_sqlite(path, source))?;
    match VaultFileState::load(&connection).map_err(|source| StorageError::from_sqlite(path, source))? {
        VaultFileState::Vault { version } => Ok(version),
        VaultFileState::Empty => Err(StorageError::not_a_vault(path, "it is empty")),
        VaultFileState::Incomplete { .. } => Err(recorded::incomplete(path.display())),
        VaultFileState::Foreign => {
            Err(StorageError::not_a_vault(path, "it is a database of another program"))
        }
    }
}

fn apply(connection: &mut Connection, path: &Path, steps: &[M<'_>], policy: CreatePolicy) -> Result<()> {
    let not_a_vault = |reason: &str| StorageError::not_a_vault(path, reason);
    let latest = i64::try_from(steps.len()).unwrap_or(i64::MAX);
    let state = VaultFileState::load(connection).map_err(|source| StorageError::from_sqlite(path, source))?;
    let state = match state {
        VaultFileState::Incomplete { version } if policy == CreatePolicy::Copy => {
            VaultFileState::Vault { version }
        }
        state => state,
    };
    match state {
        VaultFileState::Incomplete { .. } => return Err(recorded::incomplete(path.display())),
        VaultFileState::Vault { version } if version == latest => {
            return expect_tables(connection).map_err(|source| StorageError::from_sqlite(path, source));
        }
        VaultFileState::Vault { version } if version > latest => {
            return Err(StorageError::newer(path, version, latest));
        }
        VaultFileState::Vault { version: ..1 } => {
            return Err(not_a_vault("it has no schema version; it is damaged"));
        }
        VaultFileState::Vault { version } if policy != CreatePolicy::Upgrade => {
            let found = format!("schema version {version}, the current one is {latest}");
            return Err(StorageError::older(path, found));
        }
        VaultFileState::Vault { version } => back_up(connection, path, version)?,
        VaultFileState::Empty if !matches!(policy, CreatePolicy::Create | CreatePolicy::Copy) => {
            return Err(not_a_vault("it is empty"));
        }
        VaultFileState::Empty => {
            let created = begin(connection).and_then(|()| create(connection));
            if created.map_err(|source| StorageError::from_sqlite(path, source))? {
                return Ok(());
            }
            // Another process has created it in the meantime.
            return apply(connection, path, steps, policy);
        }
        VaultFileState::Foreign => return Err(not_a_vault("it is a database of another program")),
    }
    migrate(connection, path, steps, latest)
}

fn migrate(connection: &mut Connection, path: &Path, steps: &[M<'_>], latest: i64) -> Result<()> {
    let failed = |source| StorageError::from_sqlite(path, source);
    // Tables are recreated under the names of old ones that other tables refer to.
    connection.pragma_update(None, "foreign_keys", false).map_err(failed)?;
    // Content that is removed later must not remain in the pages of old tables.
    secure_delete(connection, true).map_err(failed)?;
    connection.set_transaction_behavior(TransactionBehavior::Immediate);
    let outcome = Migrations::new(steps.to_vec()).to_latest(connection);
    connection.set_transaction_behavior(TransactionBehavior::Deferred);
    secure_delete(connection, false).map_err(failed)?;
    connection.pragma_update(None, "foreign_keys", true).map_err(failed)?;
    let is_latest = |state| matches!(state, VaultFileState::Vault { version } if version == latest);
    match outcome {
        Ok(()) => Ok(()),
        // Another process may have done the same in the meantime.
        Err(_) if VaultFileState::load(connection).is_ok_and(is_latest) => Ok(()),
        Err(rusqlite_migration::Error::RusqliteError { err, .. }) => {
            Err(StorageError::from_sqlite(path, err))
        }
        Err(error) => Err(StorageError::migration(path, error)),
    }
}

enum VaultFileState {
    Empty,
    Vault { version: i64 },
    Incomplete { version: i64 },
    Foreign,
}

impl VaultFileState {
    fn load(connection: &Connection) -> rusqlite::Result<Self> {
        // In one transaction: another process may be creating the vault.
        Self::in_transaction(&connection.unchecked_transaction()?)
    }

    fn in_transaction(transaction: &Transaction<'_>) -> rusqlite::Result<Self> {
        let number = |sql: &str| transaction.query_row(sql, [], |row| row.get::<_, i64>(0));
        let version = number("PRAGMA user_version")?;
        Ok(match number("PRAGMA application_id")? {
            application_id::VAULT => Self::Vault { version },
            application_id::INCOMPLETE => Self::Incomplete { version },
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
    create(&mut connection).and_then(|_| objects(&connection)).map_err(failed)
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

/// Returns the names of the tables that a vault has or had.
fn tables() -> impl Iterator<Item = &'static str> {
    let definitions =
        MIGRATIONS.into_iter().chain([SEARCH]).flat_map(|text| text.split("CREATE TABLE ").skip(1));
    definitions.filter_map(|definition| definition.split(' ').next())
}

/// Returns an error if a view whose name `is_required` is not defined as in the migrations. A view defined by another
/// program may return anything, or never end.
pub(super) fn expect_views(
    connection: &Connection,
    is_required: impl Fn(&str) -> bool,
) -> rusqlite::Result<()> {
    let is_known =
        |sql: Option<&str>| sql.is_some_and(|sql| MIGRATIONS.iter().any(|text| text.contains(sql)));
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
pub(super) fn create_alone(connection: &mut Connection) -> rusqlite::Result<()> {
    begin(connection)?;
    create(connection)?;
    if connection::empty_log(connection)? {
        return Ok(());
    }
    Err(rusqlite::Error::SqliteFailure(ffi::Error::new(ffi::SQLITE_BUSY), None))
}

/// Creates the current schema in an empty database. Returns false, and changes nothing, if it is not empty.
fn create(connection: &mut Connection) -> rusqlite::Result<bool> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    if !matches!(VaultFileState::in_transaction(&transaction)?, VaultFileState::Empty) {
        return Ok(false);
    }
    transaction.execute_batch(SCHEMA)?;
    derived::finish(&transaction)?;
    application_id::mark(&transaction, false)?;
    transaction.pragma_update(None, "user_version", VERSION)?;
    transaction.commit().map(|()| true)
}

/// Returns the path of the copy that is kept before the schema changes from `version`.
pub(super) fn copy_path(path: &Path, version: i64) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".schema-{version}"));
    name.into()
}

/// Copies the vault to a file beside it. The copy gets its name only when all of it is on disk.
fn back_up(connection: &Connection, path: &Path, version: i64) -> Result<()> {
    let copy = copy_path(path, version);
    if copy.exists() {
        return Ok(());
    }
    let made = StagedDatabase::at(&copy, path, false).and_then(|place| {
        copy::copy(connection, (place.temp_path(), &copy), &mut |_| {})?;
        place.finish()
    });
    match made {
        // Another process may have done the same in the meantime.
        Ok(_) | Err(CreateDatabaseError::Exists(_)) => Ok(()),
        Err(CreateDatabaseError::Store(error)) => Err(error),
        Err(CreateDatabaseError::Refused { path, reason }) => {
            Err(StorageError::migration(&path, format_args!("cannot keep a copy there: {reason}")))
        }
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::ErrorKind;

    fn with_a_next_one() -> Vec<M<'static>> {
        let mut steps = steps();
        steps.push(M::up("CREATE TABLE next (x)"));
        steps
    }

    fn fresh(directory: &tempfile::TempDir) -> (PathBuf, Connection) {
        let path = directory.path().join("v.vault");
        connection::create_file(&path).unwrap();
        let connection = connection::connect(&path).unwrap();
        (path, connection)
    }

    #[test]
    fn steps_are_valid() {
        Migrations::new(steps()).validate().unwrap();
        assert_eq!(steps().len(), VERSION as usize);
    }

    /// Returns everything in a new vault: its schema, the numbers in its header, and the version of derived data.
    fn contents(connection: &Connection) -> (SchemaObjects, [i64; 2], Vec<(i64, i64)>) {
        let number = |sql: &str| connection.query_row(sql, [], |row| row.get(0)).unwrap();
        let mut rows = connection.prepare("SELECT id, version FROM derived").unwrap();
        let rows = rows.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
        let header = ["PRAGMA application_id", "PRAGMA user_version"].map(number);
        (objects(connection).unwrap(), header, rows.map(|row| row.unwrap()).collect())
    }

    #[test]
    fn a_new_vault_is_what_the_migrations_make() {
        let directory = tempfile::tempdir().unwrap();
        let (_, mut migrated) = fresh(&directory);
        migrated.pragma_update(None, "foreign_keys", false).unwrap();
        Migrations::new(steps()).to_latest(&mut migrated).unwrap();
        let mut definitions = migrated
            .prepare("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL AND name <> 'sqlite_sequence' ORDER BY rowid")
            .unwrap();
        let definitions = definitions.query_map([], |row| Ok(row.get::<_, String>(0)? + ";\n")).unwrap();
        let head = "-- The schema of new vaults, which a test makes of the migrations: UPDATE_DOCS=1 cargo test --lib schema\n";
        let schema = head.to_owned() + &definitions.collect::<rusqlite::Result<String>>().unwrap();
        if std::env::var_os("UPDATE_DOCS").is_some() {
            let path = concat!(env!("CARGO_MANIFEST_DIR"), "/migrations/schema.sql");
            std::fs::write(path, &schema).unwrap();
            return;
        }
        assert_eq!(schema, SCHEMA);
        let mut created = Connection::open_with_flags("", OpenFlags::default()).unwrap();
        assert!(create(&mut created).unwrap());
        assert_eq!(contents(&created), contents(&migrated));
        for (table, _) in contents(&created).0.into_iter().filter(|(_, (kind, ..))| kind == "table") {
            let rows: i64 =
                migrated.query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get(0)).unwrap();
            assert_eq!(rows, i64::from(table == "derived"), "{table}");
        }
        assert!(!create(&mut created).unwrap());
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
    fn an_older_vault_is_migrated_after_a_copy_was_kept() {
        let directory = tempfile::tempdir().unwrap();
        let (path, mut connection) = fresh(&directory);
        apply(&mut connection, &path, &steps(), CreatePolicy::Create).unwrap();
        connection.execute("INSERT INTO kind (name) VALUES ('old')", []).unwrap();
        let longer = with_a_next_one();
        for policy in [CreatePolicy::Open, CreatePolicy::Create] {
            let refused = apply(&mut connection, &path, &longer, policy);
            assert!(refused.is_err_and(|error| error.kind() == ErrorKind::Older));
        }
        apply(&mut connection, &path, &longer, CreatePolicy::Upgrade).unwrap();
        assert_eq!(connection.query_row("SELECT count(*) FROM next", [], |row| row.get::<_, i64>(0)), Ok(0));
        let copy = connection::connect(&copy_path(&path, i64::from(VERSION))).unwrap();
        assert_eq!(copy.query_row("SELECT name FROM kind", [], |row| row.get(0)), Ok("old".to_owned()));
        assert!(copy.execute("SELECT count(*) FROM next", []).is_err());
    }

    #[test]
    fn a_newer_vault_is_refused_naming_both_versions() {
        let directory = tempfile::tempdir().unwrap();
        let (path, mut connection) = fresh(&directory);
        apply(&mut connection, &path, &steps(), CreatePolicy::Create).unwrap();
        apply(&mut connection, &path, &with_a_next_one(), CreatePolicy::Upgrade).unwrap();
        let message = apply(&mut connection, &path, &steps(), CreatePolicy::Create).unwrap_err().to_string();
        assert!(message.contains("schema version 9") && message.contains("up to 8"), "{message}");
    }

    #[test]
    fn other_databases_are_left_alone() {
        let directory = tempfile::tempdir().unwrap();
        let (path, mut connection) = fresh(&directory);
        connection.execute_batch("CREATE TABLE theirs (x)").unwrap();
        let refused = apply(&mut connection, &path, &steps(), CreatePolicy::Create);
        assert!(refused.is_err_and(|error| error.kind() == ErrorKind::NotAVault));
    }
}

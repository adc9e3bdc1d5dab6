//! A new file in the place of a damaged one, with all rows that can be read.
//!
//! The damaged file is first copied beside the vault, and stays there. The rows are read from the copy, and written to a file
//! with the schema of this program, so that its tables and indexes are sound. Then its pages become those of the vault, in one
//! transaction of SQLite's backup interface, which also `VACUUM` uses. That takes the write lock before the copy is made. So
//! nothing is lost that others write, they can read until the end, and an interruption changes nothing.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::backup::{Backup, StepResult};
use rusqlite::types::{FromSql, ToSqlOutput, ValueRef};
use rusqlite::{Connection, Error, ErrorCode, OpenFlags, Row, Statement, ffi, params_from_iter};

use crate::files::{self, ReplacePolicy, StagingDir};
use crate::storage::check::{Repair, Subject};
use crate::storage::sqlite::connection::{self, BUSY_TIMEOUT};
use crate::storage::sqlite::error::is_damage;
use crate::storage::sqlite::{Result, StorageError, Store, backup, schema, write_lock};

impl Store {
    /// Puts a new file with all rows that can be read in the place of the vault's.
    ///
    /// # Errors
    /// Returns an error if the vault cannot be read or written. It is then as before.
    pub(super) fn rewrite(&self) -> Result<Vec<Repair>> {
        let failed = |error| StorageError::from_sqlite(&self.path, error);
        let mut to = self.connection()?;
        to.busy_timeout(Duration::ZERO).map_err(failed)?;
        let exchanged = self.exchange(&mut to);
        to.busy_timeout(BUSY_TIMEOUT).map_err(failed)?;
        let (kept, incomplete) = exchanged?;
        let kept = kept.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let repair = |subject, did| Repair { subject, did };
        let left_out = |table| repair(Subject::Table(table), Repair::LEFT_OUT);
        let mut repaired = vec![repair(Subject::File("database".to_owned()), "written again from its rows")];
        repaired.push(repair(Subject::File(kept), "kept: it is the damaged file"));
        repaired.extend(incomplete.into_iter().map(left_out));
        Ok(repaired)
    }

    /// Writes through the connection `to`, which does not wait for locks. Returns the path of the damaged file, and the names of
    /// the tables of which rows were left out.
    fn exchange(&self, to: &mut Connection) -> Result<(PathBuf, Vec<String>)> {
        let failed = |error| StorageError::from_sqlite(&self.path, error);
        let real = connection::real(&self.path);
        let staging = StagingDir::new_in(files::parent(&real)).map_err(|error| self.io(error))?;
        let vault = self.connection()?;
        let new = create(&staging.path("new"), &vault).map_err(failed)?;
        let copying = Backup::new(&new, to).map_err(failed)?;
        // The first page takes the write lock. Pages that change later are copied again.
        write_lock::in_turn(&vault, BUSY_TIMEOUT, || step(&copying, 1)).map_err(failed)?;
        let kept = self.keep(&vault, &staging)?;
        let filled = fill(&kept, &new).and_then(|incomplete| {
            while step(&copying, PAGES)? == StepResult::More {}
            Ok(incomplete)
        });
        if filled.is_err() {
            fs::remove_file(&kept).map_err(|error| self.io(error))?;
        }
        Ok((kept, filled.map_err(failed)?))
    }

    /// Copies the vault, as it is, to a file beside it.
    fn keep(&self, vault: &Connection, staging: &StagingDir) -> Result<PathBuf> {
        let copy = staging.path("old");
        backup::copy(vault, &copy, &self.path, &mut |_| {})?;
        let real = connection::real(&self.path);
        let names = (1_u32..).map(|number| connection::sibling_path(&real, &format!(".damaged-{number}")));
        let is_free = |path: &PathBuf| fs::symlink_metadata(path).is_err();
        let kept = names.into_iter().find(is_free).unwrap_or_default();
        let synced = File::open(&copy).and_then(|file| file.sync_all());
        let placed = synced.and_then(|()| files::place(staging, &copy, &kept, ReplacePolicy::Never));
        placed.map_err(|error| self.io(error)).map(|()| kept)
    }

    fn io(&self, source: io::Error) -> StorageError {
        StorageError::io(&self.path, source)
    }
}

/// Number of pages that are copied at once.
const PAGES: i32 = 1024;

/// Copies some pages.
fn step(copying: &Backup<'_, '_>, pages: i32) -> rusqlite::Result<StepResult> {
    match copying.step(pages)? {
        step @ (StepResult::Done | StepResult::More) => Ok(step),
        _ => Err(Error::SqliteFailure(ffi::Error::new(ffi::SQLITE_BUSY), None)),
    }
}

/// Creates an empty vault with pages of the size that `vault` has: that of a vault cannot be changed while it is open.
fn create(path: &Path, vault: &Connection) -> rusqlite::Result<Connection> {
    let mut new = Connection::open_with_flags(path, OpenFlags::default())?;
    let size: i64 = vault.query_row("PRAGMA page_size", [], |row| row.get(0))?;
    new.execute_batch(&format!(
        "PRAGMA page_size = {size}; PRAGMA journal_mode = MEMORY; PRAGMA synchronous = OFF; PRAGMA foreign_keys = OFF"
    ))?;
    schema::create(&mut new)?;
    Ok(new)
}

/// Fills the empty vault `to` with the rows of the one at `from`. Returns the names of the tables of which some were left out.
fn fill(from: &Path, to: &Connection) -> rusqlite::Result<Vec<String>> {
    let from = connection::open_alone(from)?;
    connection::configure(&from)?;
    let transaction = to.unchecked_transaction()?;
    let mut incomplete = Vec::new();
    let tables =
        "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT GLOB 'sqlite_*' ORDER BY name";
    for table in column::<String>(&transaction, tables)? {
        if !TableCopy::begin(&from, &transaction, &table)?.run()? {
            incomplete.push(table);
        }
    }
    if from.query_row(schema::HAS_SEARCH_TABLES, [], |row| row.get(0))? {
        // They are filled when the documents are indexed again.
        transaction.execute_batch(schema::SEARCH)?;
    }
    transaction.commit()?;
    Ok(incomplete)
}

fn column<T: FromSql>(connection: &Connection, sql: &str) -> rusqlite::Result<Vec<T>> {
    connection.prepare(sql)?.query_map([], |row| row.get(0))?.collect()
}

/// The copying of a table.
struct TableCopy<'c> {
    from: &'c Connection,
    insert: Statement<'c>,
    /// The query, without its order.
    select: String,
    /// The types of the columns.
    types: Vec<String>,
    has_row_ids: bool,
    /// Whether rows stay that the schema does not permit, such as those with texts that are not UTF-8: nothing else proves what
    /// they have.
    is_evidence: bool,
    is_whole: bool,
}

impl<'c> TableCopy<'c> {
    fn begin(from: &'c Connection, to: &'c Connection, table: &str) -> rusqlite::Result<Self> {
        let of = |what: &str| format!("SELECT {what} FROM pragma_table_info('{table}') ORDER BY cid");
        let (names, types) = (column::<String>(to, &of("name"))?, column(to, &of("type"))?);
        // In brackets, a column that is missing is an error, and no text.
        let listed = names.iter().map(|name| format!("[{name}]")).collect::<Vec<_>>().join(", ");
        let values = (1..=names.len()).map(|number| format!("?{number}")).collect::<Vec<_>>().join(", ");
        let is_evidence = ["dictionary", "journal", "payload"].contains(&table);
        to.pragma_update(None, "ignore_check_constraints", is_evidence)?;
        let has_row_ids = to.prepare(&format!("SELECT rowid FROM {table}")).is_ok();
        let (id, condition) = if has_row_ids { ("rowid", "rowid > ?1") } else { ("0", "?1 IS NOT NULL") };
        Ok(Self {
            from,
            insert: to.prepare(&format!("INSERT OR IGNORE INTO {table} ({listed}) VALUES ({values})"))?,
            select: format!("SELECT {id}, {listed} FROM {table} NOT INDEXED WHERE {condition}"),
            types,
            has_row_ids,
            is_evidence,
            is_whole: true,
        })
    }

    /// Copies the rows. Returns whether these are all.
    fn run(mut self) -> rusqlite::Result<bool> {
        let Some(mut last) = self.copy("", i64::MIN)? else { return Ok(self.is_whole) };
        self.is_whole = false;
        if self.has_row_ids {
            // From the end to the last damage, and between the first and the last one.
            self.copy("ORDER BY rowid DESC", last)?;
            let mut skipped = 1_i64;
            while skipped < i64::MAX / 2 {
                let after = last.max(0).saturating_add(skipped);
                match self.copy("", after)? {
                    None => break,
                    Some(read) if read > after => (last, skipped) = (read, 1),
                    Some(_) => skipped *= 2,
                }
            }
        }
        Ok(false)
    }

    /// Copies the rows after the one with the number `after`. If damage ends this, returns the number of the last one.
    fn copy(&mut self, order: &str, after: i64) -> rusqlite::Result<Option<i64>> {
        let mut last = after;
        let from = self.from;
        let mut rows = match from.prepare(&format!("{} {order}", self.select)) {
            Ok(statement) => statement,
            Err(error) if is_damage(&error) => return Ok(Some(last)),
            Err(error) => return Err(error),
        };
        let mut rows = rows.query([after])?;
        loop {
            match rows.next() {
                Ok(Some(row)) => {
                    last = row.get(0)?;
                    self.is_whole &= self.insert(row)?;
                }
                Ok(None) => return Ok(None),
                Err(error) if is_damage(&error) => return Ok(Some(last)),
                Err(error) => return Err(error),
            }
        }
    }

    /// Inserts a row with values of the types of its columns. Returns whether the schema permits it.
    fn insert(&mut self, row: &Row<'_>) -> rusqlite::Result<bool> {
        let mut values = Vec::with_capacity(self.types.len());
        for (at, of) in (1..).zip(&self.types) {
            // In the file, both types differ in one bit. Whether the bytes are the right ones is checked as for every value.
            let value = match (of.as_str(), row.get_ref(at)?) {
                ("TEXT", ValueRef::Blob(bytes)) => ValueRef::Text(bytes),
                ("BLOB", ValueRef::Text(bytes)) => ValueRef::Blob(bytes),
                (_, value) => value,
            };
            if let (ValueRef::Text(bytes), false) = (value, self.is_evidence)
                && std::str::from_utf8(bytes).is_err()
            {
                return Ok(false);
            }
            values.push(ToSqlOutput::Borrowed(value));
        }
        match self.insert.execute(params_from_iter(values)) {
            Err(error) if error.sqlite_error_code() == Some(ErrorCode::ConstraintViolation) => Ok(false),
            inserted => Ok(inserted? > 0),
        }
    }
}

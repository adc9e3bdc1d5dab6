//! Checks that do not read stored content, and findings about the files of a vault: who can write them, and damaged write-
//! ahead logs.
//!
//! If a page number in the file was changed, two tables can have the same page. Writing to one of them then overwrites rows
//! of the other, so nothing may be written to such a file.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};

use rusqlite::{ErrorCode, Row};

use super::FileInspection;
use crate::storage::check::IntegrityLevel;
use crate::storage::check::finding::{
    DAMAGED_BYTES, DIFFERENT_ROW, FILE_DAMAGED, Finding, INSECURE_PERMISSIONS, LOG_DAMAGED, MISSING_BYTES,
    PAGE_SHARED, SCHEMA_DIFFERS, SURPLUS_ROW, Subject,
};
use crate::storage::interface::LogDamage;
use crate::storage::sql::{self, Dialect, Question, QuestionSubject};
use crate::storage::sqlite::connection::{log_of, real};
use crate::storage::sqlite::error::is_damage;
use crate::storage::sqlite::rows::MAX_ROW;
use crate::storage::sqlite::store::Store;
use crate::storage::sqlite::{dictionaries, schema, wal};
use crate::storage::{Result, StorageError};

/// Maximum number of lines of SQLite's integrity check that become findings; a damaged file can produce any number.
const LINES: usize = 100;

/// The query for blobs that no capture and no other blob needs.
pub(in crate::storage) const UNREFERENCED: &str = "SELECT b.id, b.digest FROM blob b
     WHERE b.id NOT IN (SELECT blob FROM capture)
       AND b.id NOT IN (SELECT blob FROM member)
       AND b.id NOT IN (SELECT base FROM payload WHERE base IS NOT NULL)
     ORDER BY b.digest";

/// Condition for payloads with digests that their encoding does not use. The numbers are those of `sqlite::payload`.
pub(in crate::storage) const SURPLUS_DIGESTS: &str = "(encoding IN (0, 1, 4) AND digests IS NOT NULL)";

/// Condition for payloads with a dictionary that their encoding does not use.
pub(in crate::storage) const SURPLUS_DICTIONARY: &str = "(encoding IN (0, 3, 4) AND dictionary IS NOT NULL)";

/// Condition for payloads with a base that their encoding does not use.
pub(in crate::storage) const SURPLUS_BASE: &str = "(encoding IN (0, 1, 2) AND base IS NOT NULL)";

/// Returns the condition for rows in SQLite's table of last numbers that no addition of a dictionary leaves.
pub(in crate::storage) fn wrong_last_number() -> String {
    format!(
        "(name IS NOT 'dictionary' OR typeof(seq) <> 'integer'
          OR seq NOT BETWEEN (SELECT coalesce(max(id), 0) FROM dictionary) AND {MAX_ROW})"
    )
}

impl FileInspection<'_> {
    /// Checks SQLite's own structures, the schema and the search index.
    pub(super) fn integrity(&self, integrity: IntegrityLevel) -> Result<Vec<Finding>> {
        let pragma = match integrity {
            IntegrityLevel::Quick => "quick_check",
            IntegrityLevel::Full => "integrity_check",
        };
        let file = || Subject::File("database".to_owned());
        let mut findings = Vec::new();
        let mut lines = Vec::new();
        for part in self.checkable(LINES, &mut findings)? {
            self.look(file(), &mut findings, || {
                let mut statement = self.connection.prepare(&format!("PRAGMA {pragma}({part})"))?;
                let mut rows = statement.query([])?;
                while let Some(row) = rows.next()? {
                    lines.push(row.get::<_, String>(0)?);
                }
                Ok(())
            })?;
        }
        lines.retain(|line| line != "ok");
        if lines.is_empty() && findings.is_empty() {
            lines = self.unreachable()?;
        }
        let is_damaged = !lines.is_empty() || !findings.is_empty();
        findings.extend(lines.into_iter().map(|line| {
            Self::of_shared_page(&line)
                .or_else(|| Self::of_search_index(&line))
                .unwrap_or_else(|| Finding::new(FILE_DAMAGED, file(), line))
        }));
        // The lines above may be too few, or about single tables.
        if is_damaged && !findings.iter().any(|finding| finding.info == PAGE_SHARED) {
            findings.extend(self.shared_page()?);
        }
        self.schema(&mut findings)?;
        self.search_index(&mut findings)?;
        Ok(findings)
    }

    /// Reads all pages of every table and index, and returns a line for each table or index that cannot be read.
    /// SQLite's own check accepts an interior page without cells.
    fn unreachable(&self) -> Result<Vec<String>> {
        let failed = |error| StorageError::from_sqlite(self.path, error);
        let sql = "SELECT type, name, tbl_name, sql FROM sqlite_schema
                    WHERE type IN ('table', 'index') AND rootpage > 0 ORDER BY name";
        let read = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?));
        let found =
            || self.connection.prepare(sql)?.query_map([], read)?.collect::<rusqlite::Result<Vec<_>>>();
        let found: Vec<(String, String, String, Option<String>)> = match found() {
            Err(error) if is_damage(&error) => return Ok(vec![error.to_string()]),
            found => found.map_err(failed)?,
        };
        let mut lines = Vec::new();
        for (sort, name, table, definition) in found {
            let through = if sort == "table" {
                "NOT INDEXED".to_owned()
            } else {
                // SQLite uses a partial index only for a query with the same condition.
                let rows = definition.as_deref().and_then(|sql| sql.split_once(" WHERE "));
                let rows = rows.map(|(_, rows)| format!(" WHERE {rows}")).unwrap_or_default();
                format!("INDEXED BY {}{rows}", schema::quoted(&name))
            };
            let sql = format!("SELECT count(*) FROM {} {through}", schema::quoted(&table));
            match self.connection.query_row(&sql, [], |row| row.get::<_, i64>(0)) {
                Err(error) if error.sqlite_error_code() == Some(ErrorCode::DatabaseCorrupt) => {
                    lines.push(format!("{sort} {name}: {error}"));
                }
                // For example, no query can use an index created by another program.
                Err(error) if is_damage(&error) => {}
                counted => drop(counted.map_err(failed)?),
            }
        }
        Ok(lines)
    }

    /// Finds tables, indexes and views that differ from those of the schema. SQLite accepts any that it can read.
    fn schema(&self, findings: &mut Vec<Finding>) -> Result<()> {
        let expected = schema::expected(self.path)?;
        let mut found = BTreeMap::new();
        self.look(Subject::Table("sqlite_schema".to_owned()), findings, || {
            found = schema::objects(&self.connection)?;
            Ok(())
        })?;
        self.search_schema(&mut found, findings)?;
        let names: BTreeSet<&String> = expected.keys().chain(found.keys()).collect();
        for name in names {
            let detail = match (expected.get(name), found.get(name)) {
                (Some(expected), Some(found)) if expected == found => continue,
                (Some(_), Some(_)) => "it is defined differently",
                (Some(_), None) => "it is missing",
                (None, _) => "it is not part of the vault's schema",
            };
            findings.push(Finding::new(SCHEMA_DIFFERS, Subject::Table(name.clone()), detail));
        }
        Ok(())
    }

    /// Finds rows about stored bytes that contradict each other, and rows that refer to missing ones.
    pub(super) fn structure(&self, findings: &mut Vec<Finding>) -> Result<()> {
        sql::ask(self, &questions(), findings)?;
        self.dictionaries(findings)
    }

    fn dictionaries(&self, findings: &mut Vec<Finding>) -> Result<()> {
        let subject = || Subject::Table("dictionary".to_owned());
        let damaged =
            self.look(subject(), findings, || dictionaries::damaged(&self.connection))?.unwrap_or_default();
        let finding = |(id, defect)| Finding::new(DAMAGED_BYTES, subject(), format!("row {id}: {defect}"));
        findings.extend(damaged.into_iter().map(finding));
        Ok(())
    }
}

fn questions() -> Vec<Question> {
    use QuestionSubject::{AnyTable, Blob, Table};
    // Not through indexes of blobs, which may be what is wrong.
    let of_blobs = |select: &str| format!("SELECT {select} FROM blob NOT INDEXED");
    vec![
        Question::new(
            SURPLUS_ROW,
            AnyTable,
            "{} of its rows refer to rows of {} that do not exist",
            "SELECT \"table\", count(*), coalesce(parent, '') FROM pragma_foreign_key_check GROUP BY 1, 3 ORDER BY 1, 3",
        ),
        Question::new(
            DIFFERENT_ROW,
            Table("blob"),
            "{} is the number of a row",
            of_blobs("id") + &format!(" WHERE id NOT BETWEEN 1 AND {MAX_ROW} ORDER BY id"),
        ),
        Question::new(
            SURPLUS_ROW,
            Blob,
            "blob: it is there more than once",
            of_blobs("digest") + " GROUP BY digest HAVING count(*) > 1 ORDER BY digest",
        ),
        Question::new(
            SURPLUS_ROW,
            Blob,
            "blob: no capture has it",
            UNREFERENCED.replace("b.id, b.digest", "b.digest"),
        ),
        Question::new(
            MISSING_BYTES,
            Blob,
            "payload: there is none",
            of_blobs("digest") + " WHERE id NOT IN (SELECT blob FROM payload) ORDER BY digest",
        ),
        Question::new(
            DAMAGED_BYTES,
            Blob,
            "payload: its delta base is not stored whole or not recorded",
            "SELECT b.digest FROM payload p JOIN blob b ON b.id = p.blob LEFT JOIN payload w ON w.blob = p.base
              WHERE p.encoding IN (3, 4) AND (w.blob IS NULL OR w.encoding IN (3, 4)) ORDER BY b.digest",
        ),
        Question::new(
            DIFFERENT_ROW,
            Blob,
            "payload: its encoding does not use its digests, dictionary or base",
            format!(
                "SELECT b.digest FROM payload p JOIN blob b ON b.id = p.blob
                  WHERE {SURPLUS_DIGESTS} OR {SURPLUS_DICTIONARY} OR {SURPLUS_BASE} ORDER BY b.digest"
            ),
        ),
        Question::new(
            DIFFERENT_ROW,
            Table("sqlite_sequence"),
            "the last number of {} is not {}",
            format!(
                "SELECT quote(name), quote(seq) FROM sqlite_sequence WHERE {} ORDER BY rowid",
                wrong_last_number()
            ),
        ),
        Question::new(
            SURPLUS_ROW,
            Table("attribute_value"),
            "{} of its rows are values that no artifact has",
            format!("SELECT count(*) FROM attribute_value WHERE {} HAVING count(*) > 0", sql::UNUSED_VALUE),
        ),
        sql::wrong_creation_times(Dialect::Sqlite),
    ]
}

/// The part of a line of SQLite's integrity check that reports a page with two uses.
const SECOND_USE: &str = "2nd reference to page";

/// Checks everything: SQLite stops after this number of lines, and other damage comes first.
const QUICK_CHECK: &str = "PRAGMA quick_check(1000000)";

impl FileInspection<'_> {
    /// Returns a finding for a line of SQLite's integrity check, if it reports a page that is used twice.
    fn of_shared_page(line: &str) -> Option<Finding> {
        line.contains(SECOND_USE)
            .then(|| Finding::new(PAGE_SHARED, Subject::File("database".to_owned()), line))
    }

    /// Returns a finding about a page that several tables or indexes use, or one of them several times. If there is one,
    /// writing can overwrite data that is intact.
    pub(in crate::storage::sqlite) fn shared_page(&self) -> Result<Option<Finding>> {
        let line = match self.second_use() {
            // SQLite checks no table if it cannot open the search index.
            Err(error) if is_damage(&error) => self.second_use_in_tables(),
            line => line,
        };
        match line {
            // What cannot be read cannot be written.
            Err(error) if is_damage(&error) => Ok(None),
            line => {
                let line = line.map_err(|error| StorageError::from_sqlite(self.path, error))?;
                Ok(line.as_deref().and_then(Self::of_shared_page))
            }
        }
    }

    fn second_use(&self) -> rusqlite::Result<Option<String>> {
        let mut statement = self.connection.prepare(QUICK_CHECK)?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let text = row.get_ref(0)?.as_str()?;
            if let Some(line) = text.lines().find(|line| line.contains(SECOND_USE)) {
                return Ok(Some(line.to_owned()));
            }
        }
        Ok(None)
    }

    /// The same for the pages of tables and indexes, without those that no table uses.
    fn second_use_in_tables(&self) -> rusqlite::Result<Option<String>> {
        let mut statement = self.connection.prepare("SELECT name, pageno FROM dbstat")?;
        let mut rows = statement.query([])?;
        let mut used: HashMap<i64, String> = HashMap::new();
        while let Some(row) = rows.next()? {
            let (name, page): (String, i64) = (row.get(0)?, row.get(1)?);
            // The first page with two uses ends this, also if pages refer to each other in a circle.
            if let Some(first) = used.get(&page) {
                return Ok(Some(format!("{name}: {SECOND_USE} {page}, which {first} uses")));
            }
            used.insert(page, name);
        }
        Ok(None)
    }
}

/// The write permissions of group and others.
const OTHERS: u32 = 0o022;

impl FileInspection<'_> {
    /// Returns findings about the permissions of the vault's files.
    #[must_use]
    pub(super) fn permissions(&self) -> Vec<Finding> {
        let files = files(self.path).into_iter();
        let open = files.filter_map(|file| Some((mode(&file).filter(|mode| mode & OTHERS != 0)?, file)));
        // The other files inherit their permissions from the first when they are created.
        let open = open.take(1);
        let finding = |(mode, file): (u32, PathBuf)| {
            // Only the file name: reports are compared between machines.
            let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
            Finding::new(
                INSECURE_PERMISSIONS,
                Subject::File(name),
                format!("its mode is {:04o}", mode & 0o7777),
            )
        };
        open.map(finding).collect()
    }
}

fn files(path: &Path) -> Vec<PathBuf> {
    let with = |ending: &str| {
        let mut name = path.as_os_str().to_owned();
        name.push(ending);
        PathBuf::from(name)
    };
    ["", "-wal", "-shm"].map(with).into()
}

#[cfg(unix)]
fn mode(path: &Path) -> Option<u32> {
    std::os::unix::fs::MetadataExt::mode(&std::fs::metadata(path).ok()?).into()
}

#[cfg(not(unix))]
fn mode(_: &Path) -> Option<u32> {
    None
}

/// Restricts write permission for the vault's files to the owner.
#[cfg(unix)]
pub(in crate::storage) fn restrict_permissions(path: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    for file in files(path) {
        if let Some(mode) = mode(&file).filter(|mode| mode & OTHERS != 0) {
            std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode & 0o7777 & !OTHERS))?;
        }
    }
    Ok(())
}

/// Restricts write permission for the vault's files to the owner.
#[cfg(not(unix))]
pub(in crate::storage) fn restrict_permissions(_: &Path) -> std::io::Result<()> {
    Ok(())
}

impl Store {
    /// Reports damaged logs that were copied, or that could not be copied.
    ///
    /// # Errors
    /// Returns an error if the directory or a copy cannot be read.
    pub(in crate::storage::sqlite) fn check_logs(&self) -> Result<Vec<Finding>> {
        let vault = real(&self.path);
        let copied = wal::damage_of_copies(&vault).map_err(|source| StorageError::io(&vault, source))?;
        let without_copy = self.log_damage.as_deref().filter(|damage| damage.copy.is_none());
        Ok(without_copy.into_iter().chain(&copied).map(|damage| finding(&vault, damage)).collect())
    }
}

fn finding(vault: &Path, damage: &LogDamage) -> Finding {
    // Only file names: reports are compared between machines.
    let name = |path: &Path| PathBuf::from(path.file_name().unwrap_or_default());
    let copy = damage.copy.as_deref().map(name);
    let subject = copy.clone().unwrap_or_else(|| name(&log_of(vault))).to_string_lossy().into_owned();
    Finding::new(LOG_DAMAGED, Subject::File(subject), LogDamage { copy, ..damage.clone() }.to_string())
}

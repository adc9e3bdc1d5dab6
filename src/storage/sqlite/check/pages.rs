//! Pages of the file that are used more than once.
//!
//! If a page number in the file was changed, two tables can have the same page. Writing to one of them then overwrites
//! rows of the other, so nothing may be written to such a file.

use std::collections::HashMap;

use super::FileInspection;
use crate::storage::check::finding::{Finding, PAGE_SHARED, Subject};
use crate::storage::sqlite::error::is_damage;
use crate::storage::sqlite::store::Store;
use crate::storage::sqlite::{Result, StorageError};

/// The part of a line of SQLite's integrity check that reports a page with two uses.
const SECOND_USE: &str = "2nd reference to page";

/// Checks everything: SQLite stops after this number of lines, and other damage comes first.
const QUICK_CHECK: &str = "PRAGMA quick_check(1000000)";

impl Store {
    /// Finds a page that several tables or indexes use, or one of them several times. If there is one, writing can
    /// overwrite data that is intact.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read for a reason other than damage.
    pub fn check_pages(&self) -> Result<Option<Finding>> {
        self.inspect()?.shared_page()
    }
}

impl FileInspection<'_> {
    /// Returns a finding for a line of SQLite's integrity check, if it reports a page that is used twice.
    pub(super) fn of_shared_page(line: &str) -> Option<Finding> {
        line.contains(SECOND_USE)
            .then(|| Finding::new(PAGE_SHARED, Subject::File("database".to_owned()), line))
    }

    /// Returns a finding about a page that is used twice, if there is one.
    pub(super) fn shared_page(&self) -> Result<Option<Finding>> {
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

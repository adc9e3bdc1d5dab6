//! The search index, checked without its documents.

use std::collections::BTreeMap;

use super::FileInspection;
use crate::storage::check::finding::{Finding, INDEX_DIFFERS, Subject};
use crate::storage::sql::{self, Question};
use crate::storage::sqlite::{Result, schema, search};

/// The prefix of the names of the search index's tables in the output of SQLite's integrity check.
const TABLES: &str = "search_";

impl FileInspection<'_> {
    /// Returns a finding for a line of SQLite's integrity check, if the line is about the search index.
    pub(super) fn of_search_index(line: &str) -> Option<Finding> {
        line.contains(TABLES).then(|| Finding::new(INDEX_DIFFERS, Subject::Search, line))
    }

    /// Returns the arguments for SQLite's integrity check: a number of lines, to check everything; or single tables, if
    /// the search index cannot be opened, which would abort the check.
    pub(super) fn checkable(&self, lines: usize, findings: &mut Vec<Finding>) -> Result<Vec<String>> {
        let opened = self.look_at_search(findings, || {
            let is_there = self.connection.prepare("SELECT 1 FROM sqlite_schema WHERE name = 'search_text'");
            if is_there?.exists([])? {
                self.connection.prepare("SELECT 1 FROM search_text LIMIT 0")?.exists([])?;
            }
            Ok(())
        })?;
        let mut parts = Vec::new();
        if opened.is_none() {
            let sql = "SELECT format('%Q', name) FROM sqlite_schema WHERE type = 'table' AND name NOT GLOB 'search_*'";
            self.look(Subject::Table("sqlite_schema".to_owned()), findings, || {
                let mut names = self.connection.prepare(sql)?;
                parts = names.query_map([], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?;
                Ok(())
            })?;
        }
        if parts.is_empty() {
            parts.push(lines.to_string());
        }
        Ok(parts)
    }

    /// Returns the result of `look`, like [`FileInspection::look`], but reports damage as a finding about the search index.
    fn look_at_search<T>(
        &self,
        findings: &mut Vec<Finding>,
        look: impl FnOnce() -> rusqlite::Result<T>,
    ) -> Result<Option<T>> {
        let mut found = Vec::new();
        let seen = self.look(Subject::Search, &mut found, look)?;
        findings.extend(found.into_iter().map(|finding| Finding { info: INDEX_DIFFERS, ..finding }));
        Ok(seen)
    }

    /// Compares the tables of the index with those expected, either all or none, and removes them from `found`. The tables
    /// of an index of another version are not compared: it is rebuilt before it is searched.
    pub(super) fn search_schema(
        &self,
        found: &mut schema::SchemaObjects,
        findings: &mut Vec<Finding>,
    ) -> Result<()> {
        let expected = schema::expected_for_search(self.path)?;
        let found: BTreeMap<_, _> = found.extract_if(.., |name, _| expected.contains_key(name)).collect();
        if found.is_empty() || found == expected || search::has_other_version(&self.connection) {
            return Ok(());
        }
        for (name, object) in &expected {
            let detail = match found.get(name) {
                Some(found) if found == object => continue,
                Some(_) => "is defined differently",
                None => "is missing",
            };
            findings.push(Finding::new(INDEX_DIFFERS, Subject::Search, format!("{name} {detail}")));
        }
        Ok(())
    }

    /// Checks that the recorded state of the index agrees with its rows.
    pub(super) fn search_index(&self, findings: &mut Vec<Finding>) -> Result<()> {
        if !search::exists(&self.connection).unwrap_or_default() {
            return Ok(());
        }
        let mut found = Vec::new();
        sql::ask(self, &questions(), &mut found)?;
        findings.extend(found.into_iter().map(|finding| Finding { info: INDEX_DIFFERS, ..finding }));
        let has_right_totals =
            self.look_at_search(findings, || search::has_right_totals(&self.connection))?;
        if has_right_totals == Some(false) {
            let detail = "the totals used for ranking do not match its rows";
            findings.push(Finding::new(INDEX_DIFFERS, Subject::Search, detail));
        }
        Ok(())
    }
}

fn questions() -> [Question; 5] {
    [
        Question::of_search(
            "states other than one: {}",
            "(SELECT count(*) AS states FROM search_state) WHERE states <> 1",
        ),
        Question::of_search(
            "captures recorded as indexed that do not exist yet: {}",
            "search_state WHERE capture > (SELECT coalesce(max(id), 0) FROM capture)",
        ),
        Question::of_search(
            "captures recorded as indexed that are missing: {}",
            "capture c JOIN search_state s ON c.id <= s.capture
              WHERE c.id NOT IN (SELECT capture FROM search_capture)",
        ),
        Question::of_search(
            "captures indexed but not recorded as indexed: {}",
            "search_capture c LEFT JOIN search_state s ON c.capture <= s.capture
              WHERE s.id IS NULL OR c.first + max(c.passages, 1) > s.next",
        ),
        // FTS5 compares them with words, which are no texts.
        Question::of_search(
            "entries by which words are found that have another type: {}",
            "search_text_idx WHERE typeof(term) <> 'blob' OR typeof(pgno) <> 'integer'",
        ),
    ]
}

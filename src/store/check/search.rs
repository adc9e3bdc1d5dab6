//! The search index, without the documents.

use std::collections::BTreeMap;

use super::Inspection;
use super::finding::{Finding, SEARCH_DAMAGED, SEARCH_DIFFERS, Subject};
use crate::store::{Result, schema, search};

/// How SQLite's own check calls what belongs to the index.
const TABLES: &str = "search_";

impl Inspection<'_> {
    /// A finding for a line of SQLite's own check, if the line is about the search index.
    pub(super) fn of_search_index(line: &str) -> Option<Finding> {
        line.contains(TABLES).then(|| Finding::new(SEARCH_DAMAGED, Subject::Search, line))
    }

    /// What SQLite's own check can be asked for: all, and then for so many lines; or single tables, if the search index
    /// cannot be opened, which would end the check.
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

    /// As [`Inspection::look`]; that it cannot be read is a matter of the index and of nothing else.
    fn look_at_search<T>(
        &self,
        findings: &mut Vec<Finding>,
        look: impl FnOnce() -> rusqlite::Result<T>,
    ) -> Result<Option<T>> {
        let mut found = Vec::new();
        let seen = self.look(Subject::Search, &mut found, look)?;
        findings.extend(found.into_iter().map(|finding| Finding { info: SEARCH_DAMAGED, ..finding }));
        Ok(seen)
    }

    /// Holds the tables of the index, all of them or none, against those that there should be, and takes them out of
    /// `found`.
    pub(super) fn search_schema(
        &self,
        found: &mut schema::Objects,
        findings: &mut Vec<Finding>,
    ) -> Result<()> {
        let expected = schema::expected_for_search(self.path)?;
        let found: BTreeMap<_, _> = found.extract_if(.., |name, _| expected.contains_key(name)).collect();
        if found.is_empty() || found == expected {
            return Ok(());
        }
        for (name, object) in &expected {
            let detail = match found.get(name) {
                Some(found) if found == object => continue,
                Some(_) => "is defined otherwise",
                None => "is missing",
            };
            findings.push(Finding::new(SEARCH_DAMAGED, Subject::Search, format!("{name} {detail}")));
        }
        Ok(())
    }

    /// Whether the index says that it has what it has.
    pub(super) fn search_index(&self, findings: &mut Vec<Finding>) -> Result<()> {
        if !search::exists(&self.connection).unwrap_or_default() {
            return Ok(());
        }
        let mut found = Vec::new();
        self.look_at_search(findings, || {
            for (sql, detail) in QUESTIONS {
                let count: i64 = self.connection.prepare(sql)?.query_row([], |row| row.get(0))?;
                if count > 0 {
                    found.push(Finding::new(SEARCH_DIFFERS, Subject::Search, format!("{detail}: {count}")));
                }
            }
            if !search::has_right_totals(&self.connection)? {
                let detail = "the totals by which matches are ranked are not those of its rows";
                found.push(Finding::new(SEARCH_DIFFERS, Subject::Search, detail));
            }
            Ok(())
        })?;
        findings.append(&mut found);
        Ok(())
    }
}

/// What there must be none of.
const QUESTIONS: &[(&str, &str)] = &[
    ("SELECT count(*) <> 1 FROM search_state", "states other than one"),
    (
        "SELECT count(*) FROM search_state WHERE capture > (SELECT coalesce(max(id), 0) FROM capture)",
        "captures that it says it has and that are not there yet",
    ),
    (
        "SELECT count(*) FROM capture c JOIN search_state s ON c.id <= s.capture
          WHERE c.id NOT IN (SELECT capture FROM search_capture)",
        "captures that it lacks",
    ),
    (
        "SELECT count(*) FROM search_capture c LEFT JOIN search_state s ON c.capture <= s.capture
          WHERE s.id IS NULL OR c.first + max(c.passages, 1) > s.next",
        "captures that it does not know it has",
    ),
];

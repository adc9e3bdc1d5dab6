//! Comparison of the mention index, and of the table of unresolved references, with the lists that they follow from, and of
//! the search index with itself.

use std::collections::BTreeMap;

use super::FileInspection;
use crate::storage::check::compare::IndexFingerprint;
use crate::storage::check::finding::{
    Finding, FindingInfo, INDEX_DIFFERS, MISSING_ROW, SURPLUS_ROW, Subject,
};
use crate::storage::check::{CaptureId, CheckedArtifact, Inspection as _};
use crate::storage::sql::{self, Question};
use crate::storage::sqlite::mention_index::{self, MentionIndexReader};
use crate::storage::sqlite::rows::MAX_ROW;
use crate::storage::sqlite::unresolved::ReferenceReader;
use crate::storage::sqlite::{Result, schema, search};

/// Keys with at least this many captures are read once, and this many of them are remembered.
const FREQUENT: usize = 1_000;
const KEYS: usize = 32;

impl FileInspection<'_> {
    /// Adds a finding if the artifact's captures mention digests that are missing from the mention index.
    pub(super) fn unlisted_mentions(
        &self,
        artifact: &CheckedArtifact,
        findings: &mut Vec<Finding>,
    ) -> Result<()> {
        let captures = self.capture_ids(artifact, findings)?;
        let mut unlisted = 0;
        let subject = || Subject::Artifact(artifact.core);
        self.look(subject(), findings, || {
            for CaptureId(capture) in captures {
                for key in self.keys(capture)? {
                    unlisted += u64::from(!self.is_listed(key, capture)?);
                }
            }
            Ok(())
        })?;
        if unlisted > 0 {
            findings.push(Finding::new(
                INDEX_DIFFERS,
                subject(),
                format!("{unlisted} of the digests it mentions"),
            ));
        }
        Ok(())
    }

    /// Returns whether the mention index has a capture with a key.
    fn is_listed(&self, key: u64, capture: i64) -> rusqlite::Result<bool> {
        let frequent = &mut *self.frequent.borrow_mut();
        if let Some(captures) = frequent.get(&key) {
            return Ok(captures.binary_search(&capture).is_ok());
        }
        let index = if let Some(index) = self.index.get() {
            index
        } else {
            let loaded = MentionIndexReader::load(&self.connection)?;
            self.index.get_or_init(|| loaded)
        };
        let captures = index.captures(&self.connection, key)?;
        let is_listed = captures.binary_search(&capture).is_ok();
        if captures.len() >= FREQUENT {
            if frequent.len() >= KEYS {
                frequent.clear();
            }
            frequent.insert(key, captures);
        }
        Ok(is_listed)
    }

    /// Returns the keys of the digests that a capture mentions, without duplicates.
    pub(super) fn keys(&self, capture: i64) -> rusqlite::Result<Vec<u64>> {
        let mut keys: Vec<u64> = self
            .lists()
            .for_capture(capture)?
            .iter()
            .map(|mention| mention_index::key(&mention.digest))
            .collect();
        keys.sort_unstable();
        keys.dedup();
        Ok(keys)
    }

    /// Checks that the segments can be read and are sorted.
    pub(super) fn order_of_mentions(&self) -> Result<Vec<Finding>> {
        let mut findings = Vec::new();
        self.segments(&mut findings, |_, _| ())?;
        Ok(findings)
    }

    /// Checks that the segments can be read and are sorted, and whether they have exactly one entry for every digest
    /// that a capture mentions. If the returned flag is false, [`Inspection::unlisted`](crate::storage::check::Inspection::unlisted) should be called for every
    /// artifact.
    pub(super) fn compare_mentions(&self) -> Result<(Vec<Finding>, bool)> {
        let mut findings = Vec::new();
        let mut captures: Vec<i64> = Vec::new();
        let mut listed = IndexFingerprint::default();
        let table = |name: &str| Subject::Table(name.to_owned());
        self.look(table("capture"), &mut findings, || {
            let mut statement = self.connection.prepare("SELECT id FROM capture NOT INDEXED ORDER BY id")?;
            let mut rows = statement.query([])?;
            while let Some(row) = rows.next()? {
                captures.push(row.get(0)?);
            }
            Ok(())
        })?;
        let mut unread = 0;
        self.look(table("mention_list"), &mut findings, || {
            let mut statement =
                self.connection.prepare("SELECT capture FROM mention_list ORDER BY capture")?;
            let mut rows = statement.query([])?;
            while let Some(row) = rows.next()? {
                let capture: i64 = row.get(0)?;
                // An unreadable list is a finding about its artifact.
                match self.keys(capture) {
                    Ok(keys) if captures.binary_search(&capture).is_ok() => {
                        for key in keys {
                            listed.add(key, capture, 0);
                        }
                    }
                    Ok(_) => {}
                    Err(_) => unread += 1,
                }
            }
            Ok(())
        })?;
        let mut indexed = IndexFingerprint::default();
        self.segments(&mut findings, |key, capture| {
            // Entries of missing captures do no harm.
            if captures.binary_search(&capture).is_ok() {
                indexed.add(key, capture, 0);
            }
        })?;
        let surplus = indexed.count().saturating_sub(listed.count());
        if surplus > 0 && unread == 0 {
            findings.push(Finding::new(SURPLUS_ROW, Subject::Mentions, format!("{surplus} entries")));
        }
        self.unresolved_references(&mut findings)?;
        Ok((findings, indexed == listed))
    }

    fn segments(&self, findings: &mut Vec<Finding>, mut visit: impl FnMut(u64, i64)) -> Result<()> {
        let mut problems = Vec::new();
        self.look(Subject::Mentions, findings, || {
            problems = mention_index::check(&self.connection, |(key, capture)| visit(key, capture))?;
            Ok(())
        })?;
        let finding = |problem| Finding::new(INDEX_DIFFERS, Subject::Mentions, problem);
        findings.extend(problems.into_iter().map(finding));
        Ok(())
    }
}

/// Numbers of rows: those that should be in the table and are not, those that should and are, and all that are.
#[derive(Default)]
struct UnresolvedRowCounts {
    missing: u64,
    present: u64,
    all: u64,
    /// Whether a list cannot be read, so that nothing says which rows it should have.
    is_unknown: bool,
}

impl FileInspection<'_> {
    /// Adds a finding if the table lacks references to artifacts that the vault does not have, and one if it has others.
    pub(super) fn unresolved_references(&self, findings: &mut Vec<Finding>) -> Result<()> {
        let subject = || Subject::Table("unresolved_reference".to_owned());
        let mut rows = UnresolvedRowCounts::default();
        self.look(subject(), findings, || {
            rows = self.compare_references()?;
            Ok(())
        })?;
        let mut add = |info: FindingInfo, count: u64| {
            if count > 0 {
                let rows = if count == 1 { "row" } else { "rows" };
                findings.push(Finding::new(info, subject(), format!("{count} {rows}")));
            }
        };
        add(MISSING_ROW, rows.missing);
        let surplus = if rows.is_unknown { 0 } else { rows.all.saturating_sub(rows.present) };
        add(SURPLUS_ROW, surplus);
        Ok(())
    }

    fn compare_references(&self) -> rusqlite::Result<UnresolvedRowCounts> {
        let references = ReferenceReader::new(self.lists())?;
        let mut stored =
            self.connection.prepare("SELECT 1 FROM unresolved_reference WHERE key = ?1 AND capture = ?2")?;
        let all = "SELECT count(*) FROM unresolved_reference";
        let mut rows = UnresolvedRowCounts {
            all: self.connection.query_row(all, [], |row| row.get(0))?,
            ..UnresolvedRowCounts::default()
        };
        let mut captures = self.connection.prepare("SELECT capture FROM mention_list ORDER BY capture")?;
        let mut captures = captures.query([])?;
        while let Some(row) = captures.next()? {
            let capture: i64 = row.get(0)?;
            let Some(keys) = references.unresolved(capture, |_| true)? else {
                // It is a finding about its artifact.
                rows.is_unknown = true;
                continue;
            };
            for key in keys {
                let is_stored = stored.exists((key, capture))?;
                rows.present += u64::from(is_stored);
                rows.missing += u64::from(!is_stored);
            }
        }
        Ok(rows)
    }
}

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
            let sql = "SELECT format('%Q', name) FROM sqlite_schema WHERE type = 'table' AND rootpage > 0";
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

fn questions() -> [Question; 6] {
    [
        Question::of_search(
            "states other than one: {}",
            "(SELECT count(*) AS states FROM search_state) WHERE states <> 1",
        ),
        Question::of_search(
            "next numbers that no capture leads to: {}",
            &format!("search_state WHERE next NOT BETWEEN 1 AND {MAX_ROW}"),
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

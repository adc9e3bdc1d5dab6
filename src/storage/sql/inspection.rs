//! Checks of tables that do not trust their rows.

use std::ops::RangeInclusive;

use super::journal::{stored_entries, stored_entry};
use super::stored::seal;
use super::{
    DamagedValue, Dialect, SqlRow, SqlValue, TOMBSTONE, differently_derived, journaled_row, journaled_rows,
    tombstone,
};
use crate::artifact::CREATED_AT;
use crate::digest::{BlobHash, CaptureHash, CoreHash, Digest, hex};
use crate::storage::Result;
use crate::storage::catalog::Row;
use crate::storage::check::finding::{
    DIFFERENT_ROW, Finding, FindingInfo, INDEX_DIFFERS, SURPLUS_ROW, Subject,
};
use crate::storage::check::{
    CatalogInspection, EntrySelection, JournalRow, JournaledTable, KindFacts, UnreadRows,
};

/// A check of a database.
pub(in crate::storage) trait SqlInspection {
    /// What the database writes differently.
    const DIALECT: Dialect;

    /// Passes each row of a query to `take`, also after a row that it cannot read. Returns false and adds findings about
    /// `subject` if there was one, or if reading ended early because of damage.
    fn query(
        &self,
        sql: &str,
        subject: &Subject,
        findings: &mut Vec<Finding>,
        take: &mut dyn FnMut(&SqlRow) -> std::result::Result<(), DamagedValue>,
    ) -> Result<bool>;

    /// Checks that the texts of journal entries are read as the schema says. Returns false and adds a finding about `subject` if
    /// they are not.
    fn expect_journal_texts(&self, subject: &Subject, findings: &mut Vec<Finding>) -> Result<bool> {
        let _ = (subject, findings);
        Ok(true)
    }
}

impl<I: SqlInspection> CatalogInspection for I {
    fn kinds(&self, findings: &mut Vec<Finding>) -> Result<Vec<KindFacts>> {
        let mut kinds = Vec::new();
        let columns = I::DIALECT.form_of_kinds();
        let sql = format!("SELECT name, stated_by, {columns} FROM kind ORDER BY name");
        self.query(&sql, &Subject::Table("kind".to_owned()), findings, &mut |row| {
            kinds.push(KindFacts {
                name: row.text(0)?,
                inverse_relation: row.optional_text(1)?,
                is_directory: row.flag(2)?,
                member: row.optional_text(3)?,
            });
            Ok(())
        })?;
        Ok(kinds)
    }

    fn journal(
        &self,
        selection: &EntrySelection,
        take: &mut dyn FnMut(JournalRow<'_>),
        findings: &mut Vec<Finding>,
    ) -> Result<bool> {
        let subject = Subject::Table("journal".to_owned());
        if !self.expect_journal_texts(&subject, findings)? {
            return Ok(false);
        }
        self.query(&stored_entries(I::DIALECT, selection), &subject, findings, &mut |row| {
            take(stored_entry(row)?);
            Ok(())
        })
    }

    /// The index by which they are found may be incomplete.
    fn artifacts_between(
        &self,
        range: &RangeInclusive<Digest>,
        take: &mut dyn FnMut(Row),
        findings: &mut Vec<Finding>,
    ) -> Result<()> {
        let (table, subject) = (JournaledTable::Artifact, Subject::Table("artifact".to_owned()));
        let sql = journaled_rows(I::DIALECT, table, Some(range)).replace("NOT INDEXED", "");
        let mut take = |row: &SqlRow| take_journaled(table, row, take, &mut Vec::new());
        self.query(&sql, &subject, findings, &mut take).map(drop)
    }

    fn unreferenced_blobs(&self, findings: &mut Vec<Finding>) -> Result<Vec<BlobHash>> {
        let mut blobs = Vec::new();
        let sql = blobs_without_captures(I::DIALECT, true);
        self.query(&sql, &Subject::Table("blob".to_owned()), findings, &mut |row| {
            blobs.push(BlobHash(row.digest(0)?));
            Ok(())
        })?;
        Ok(blobs)
    }

    fn sealed(&self, core: CoreHash) -> Result<Vec<CaptureHash>> {
        let mut sealed = Vec::new();
        let sql = format!("SELECT {}, c.seal FROM {}", I::DIALECT.capture_hash(), I::DIALECT.captures());
        // A row that cannot be read does not have the seal.
        self.query(&sql, &Subject::Table("capture".to_owned()), &mut Vec::new(), &mut |row| {
            let capture = row.capture(0)?;
            if row.bytes(1)? == seal(core, capture) {
                sealed.push(capture);
            }
            Ok(())
        })?;
        Ok(sealed)
    }
}

/// A query of which each row is a finding.
#[derive(Clone, Debug)]
pub(in crate::storage) struct Question {
    info: FindingInfo,
    about: QuestionSubject,
    /// The detail, in which `{}` stands for the value of the next column.
    detail: &'static str,
    sql: String,
}

/// The subject of the findings of a question.
#[derive(Clone, Copy, Debug)]
pub(in crate::storage) enum QuestionSubject {
    /// A blob, whose hash is in the first column.
    Blob,
    /// An artifact, whose core hash is in the first column.
    Artifact,
    /// A table, whose name is in the first column.
    AnyTable,
    Table(&'static str),
    Search,
}

impl QuestionSubject {
    /// Returns the subject of the finding that the query failed.
    fn of_all(self) -> Subject {
        match self {
            Self::Blob => Subject::Table("blob".to_owned()),
            Self::Artifact => Subject::Table("artifact".to_owned()),
            Self::AnyTable => Subject::Table("schema".to_owned()),
            Self::Table(name) => Subject::Table(name.to_owned()),
            Self::Search => Subject::Search,
        }
    }
}

impl Question {
    pub(in crate::storage) fn new(
        info: FindingInfo,
        about: QuestionSubject,
        detail: &'static str,
        sql: impl Into<String>,
    ) -> Self {
        Self { info, about, detail, sql: sql.into() }
    }

    /// Creates a question about the search index whose query counts what should not be there.
    pub(in crate::storage) fn of_search(detail: &'static str, counted: &str) -> Self {
        let sql = format!("SELECT count(*) FROM {counted} HAVING count(*) > 0");
        Self::new(INDEX_DIFFERS, QuestionSubject::Search, detail, sql)
    }

    fn finding(&self, row: &SqlRow) -> std::result::Result<Finding, DamagedValue> {
        let (subject, first) = match self.about {
            QuestionSubject::Blob => (Subject::Blob(BlobHash(row.digest(0)?)), 1),
            QuestionSubject::Artifact => (Subject::Artifact(row.core(0)?), 1),
            QuestionSubject::AnyTable => (Subject::Table(row.text(0)?), 1),
            QuestionSubject::Table(_) | QuestionSubject::Search => (self.about.of_all(), 0),
        };
        let values = row.0.iter().skip(first).map(|value| match value {
            SqlValue::Null => "nothing".to_owned(),
            SqlValue::Integer(number) => number.to_string(),
            SqlValue::Text(text) => text.clone(),
            SqlValue::Bytes(bytes) => hex(bytes),
        });
        let detail = values.fold(self.detail.to_owned(), |detail, value| detail.replacen("{}", &value, 1));
        Ok(Finding::new(self.info, subject, detail))
    }
}

/// Returns the question for artifacts whose creation time is not the one that they state.
pub(in crate::storage) fn wrong_creation_times(dialect: Dialect) -> Question {
    // Not through indexes of artifacts, which may be what is wrong.
    let without_index = if dialect == Dialect::Sqlite { "NOT INDEXED" } else { "" };
    let sql = format!(
        "SELECT a.core FROM artifact a {without_index} LEFT JOIN
           (SELECT a.id, max(t.number) AS number FROM artifact a {}
             WHERE t.name = '{CREATED_AT}' GROUP BY a.id) n ON n.id = a.id
          WHERE a.created_at IS DISTINCT FROM n.number ORDER BY a.core",
        dialect.attributes()
    );
    let detail = "artifact: created_at does not match its attributes";
    Question::new(DIFFERENT_ROW, QuestionSubject::Artifact, detail, sql)
}

/// Adds the findings that questions give.
pub(in crate::storage) fn ask(
    inspection: &impl SqlInspection,
    questions: &[Question],
    findings: &mut Vec<Finding>,
) -> Result<()> {
    for question in questions {
        let mut found = Vec::new();
        inspection.query(&question.sql, &question.about.of_all(), findings, &mut |row| {
            found.push(question.finding(row)?);
            Ok(())
        })?;
        findings.append(&mut found);
    }
    Ok(())
}

/// Passes the rows of a table that follows from the journal, or those of artifacts with core hashes in a range, to `take`, those
/// that can be read.
pub(in crate::storage) fn journaled_rows_of<I: SqlInspection>(
    inspection: &I,
    table: JournaledTable,
    of: Option<&RangeInclusive<Digest>>,
    take: &mut dyn FnMut(Row),
    findings: &mut Vec<Finding>,
) -> Result<UnreadRows> {
    let mut different = Vec::new();
    let (sql, subject) = (journaled_rows(I::DIALECT, table, of), Subject::Table(table.name().to_owned()));
    let is_whole = inspection
        .query(&sql, &subject, findings, &mut |row| take_journaled(table, row, take, &mut different))?;
    findings.append(&mut different);
    Ok(UnreadRows { numbers: Vec::new(), are_incomplete: !is_whole })
}

/// Passes a row of [`journaled_rows`] to `take`, and adds a finding if what is derived from its other columns differs.
pub(in crate::storage) fn take_journaled(
    table: JournaledTable,
    row: &SqlRow,
    take: &mut dyn FnMut(Row),
    different: &mut Vec<Finding>,
) -> std::result::Result<(), DamagedValue> {
    if let Some(stored) = journaled_row(table, row)? {
        different.extend(differently_derived(&stored, row));
        take(stored);
    }
    Ok(())
}

/// Returns the query for blobs `b` that no capture needs, of an artifact that there is if `of_artifacts`.
pub(in crate::storage) fn blobs_without_captures(dialect: Dialect, of_artifacts: bool) -> String {
    let owner = if of_artifacts { "JOIN artifact a ON a.id = c.artifact" } else { "" };
    let (blob, column) = (dialect.key_of_blob(), dialect.blob_of_capture());
    format!(
        "SELECT b.digest FROM blob b
          WHERE NOT EXISTS (SELECT 1 FROM capture c {owner} WHERE c.{column} = b.{blob})
            AND NOT EXISTS (SELECT 1 FROM member m JOIN capture c ON c.id = m.capture {owner} WHERE m.blob = b.{blob})
            AND {} ORDER BY b.digest",
        dialect.is_kept_blob()
    )
}

/// Finds the artifacts that are recorded as removed and whose bytes are still in the vault.
pub(in crate::storage) fn undeleted_artifacts<I: SqlInspection>(
    inspection: &I,
    findings: &mut Vec<Finding>,
) -> Result<()> {
    let (blob, column) = (I::DIALECT.key_of_blob(), I::DIALECT.blob_of_capture());
    let sql = format!(
        "SELECT {TOMBSTONE}, k.name, a.core
           FROM (SELECT t.*, coalesce((SELECT min(c.artifact) FROM capture c WHERE c.{column} = b.{blob}),
                                      (SELECT min(c.artifact) FROM member m JOIN capture c ON c.id = m.capture
                                        WHERE m.blob = b.{blob})) AS owner
                   FROM tombstone t JOIN blob b ON {} AND {}) t
           LEFT JOIN artifact a ON a.id = t.owner LEFT JOIN kind k ON k.id = a.kind
          WHERE NOT {} ORDER BY t.core, t.digest, t.entry",
        I::DIALECT.same_digest("b.digest", "t.digest"),
        I::DIALECT.is_kept_blob(),
        I::DIALECT.is_stored("t.core"),
    );
    let mut found: Vec<Finding> = Vec::new();
    inspection.query(&sql, &Subject::Table("tombstone".to_owned()), findings, &mut |row| {
        let removed = tombstone(row)?;
        let place = match row.optional_text(9)? {
            Some(kind) => format!("its bytes are in {kind} {}", row.core(10)?),
            None => "its bytes are in the vault, but no artifact has them".to_owned(),
        };
        let detail = format!("tombstone: {}; {place}", removed.removal());
        found.push(Finding::new(SURPLUS_ROW, Subject::Artifact(removed.core), detail));
        Ok(())
    })?;
    found.dedup_by(|one, other| one.subject == other.subject);
    findings.append(&mut found);
    Ok(())
}

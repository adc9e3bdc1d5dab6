//! Artifacts and their attributes.

use super::journal::tombstones_beginning;
use super::statistics::statistics;
use super::value::{ARTIFACT, SqlRow};
use super::{SqlResult, SqlSession, SqlSnapshot, annotations, in_order, read_rows, read_rows_of};
use crate::digest::{CoreHash, DigestPrefix};
use crate::storage::interface::{
    Annotations, ArtifactQueries, ArtifactRecord, AttributeRecord, CaptureTarget, LabelKey, LabelValue,
    ManualLink, Resolution, Statistics,
};
use crate::storage::{Result, TimeBasis};

/// Returns the artifacts with these core hashes.
pub(in crate::storage) fn artifacts<S: SqlSession>(
    session: &S,
    of: &[CoreHash],
) -> SqlResult<Vec<Option<ArtifactRecord>>, S> {
    let artifacts = S::DIALECT.artifacts("?1");
    let sql = format!("SELECT {ARTIFACT} FROM {artifacts} JOIN kind k ON k.id = a.kind");
    let found = read_rows(session, &sql, &[of.into()], SqlRow::artifact)?;
    let found = found.into_iter().map(|artifact| (artifact.core, Some(artifact)));
    Ok(in_order(of, &found.collect()))
}

/// Returns the attributes of each artifact that have a name, sorted by value.
pub(in crate::storage) fn attributes_named<S: SqlSession>(
    session: &S,
    of: &[CoreHash],
    name: &str,
) -> SqlResult<Vec<Vec<AttributeRecord>>, S> {
    attributes_where(session, of, Some(name))
}

fn attributes_where<S: SqlSession>(
    session: &S,
    of: &[CoreHash],
    name: Option<&str>,
) -> SqlResult<Vec<Vec<AttributeRecord>>, S> {
    let (condition, name) = match name {
        Some(name) => ("WHERE t.name = ?2", vec![name.into()]),
        None => ("", Vec::new()),
    };
    let sql = format!(
        "SELECT DISTINCT a.core, t.name, t.value, t.number FROM {} {} {condition} ORDER BY 1, 2, 3",
        S::DIALECT.artifacts("?1"),
        S::DIALECT.attributes()
    );
    read_rows_of(session, &sql, (of, &name), |row| {
        Ok(AttributeRecord { name: row.text(1)?, value: row.text(2)?, number: row.optional_integer(3)? })
    })
}

impl<S: SqlSnapshot> ArtifactQueries for S {
    fn artifacts(&self, of: &[CoreHash]) -> Result<Vec<Option<ArtifactRecord>>> {
        self.answer(artifacts(self.session(), of))
    }

    fn kinds_with_group(&self, group: &str) -> Result<Vec<String>> {
        let sql = "SELECT DISTINCT k.name FROM kind k JOIN role r ON r.kind = k.id WHERE r.role_group = ?1 ORDER BY k.name";
        self.read_rows(sql, &[group.into()], |row| row.text(0))
    }

    fn attributes(&self, of: &[CoreHash]) -> Result<Vec<Vec<AttributeRecord>>> {
        self.answer(attributes_where(self.session(), of, None))
    }

    fn attribute_names(&self) -> Result<Vec<String>> {
        // Skips from one name to the next: there may be millions of values.
        let values = S::Session::DIALECT.values_of_attributes();
        let sql = format!(
            "WITH RECURSIVE names (name) AS (
               SELECT (SELECT v.name FROM {values} v ORDER BY v.name LIMIT 1)
               UNION ALL
               SELECT (SELECT v.name FROM {values} v WHERE v.name > n.name ORDER BY v.name LIMIT 1)
                 FROM names n WHERE n.name IS NOT NULL)
             SELECT name FROM names WHERE name IS NOT NULL"
        );
        self.read_rows(&sql, &[], |row| row.text(0))
    }

    fn attribute_values(&self, name: &str, text: &str, limit: usize) -> Result<Vec<String>> {
        let dialect = S::Session::DIALECT;
        let sql = format!(
            "SELECT DISTINCT v.value FROM {} v WHERE v.name = ?1 AND {} ORDER BY v.value LIMIT ?3",
            dialect.values_of_attributes(),
            dialect.can_begin_with("v.value", "?2")
        );
        let mut values =
            self.read_rows(&sql, &[name.into(), text.into(), limit.into()], |row| row.text(0))?;
        values.retain(|value| value.starts_with(text));
        Ok(values)
    }

    fn annotations(&self, of: &[CoreHash]) -> Result<Vec<Annotations>> {
        self.answer(annotations::annotations(self.session(), of))
    }

    fn manual_links(&self, of: &[CoreHash]) -> Result<Vec<Vec<ManualLink>>> {
        self.answer(annotations::manual_links(self.session(), of))
    }

    fn tagged(&self, names: &[String]) -> Result<Vec<Option<CoreHash>>> {
        self.answer(annotations::tagged(self.session(), names))
    }

    fn label_keys(&self) -> Result<Vec<LabelKey>> {
        self.answer(annotations::label_keys(self.session()))
    }

    fn label_values(&self, key: &str, text: &str, limit: usize) -> Result<Vec<LabelValue>> {
        self.answer(annotations::label_values(self.session(), key, text, limit))
    }

    /// Tombstones are looked for if there is nothing else.
    fn resolve(&self, prefix: &DigestPrefix, limit: usize) -> Result<Resolution> {
        let dialect = S::Session::DIALECT;
        let (low, high) = prefix.range();
        let range = [(&low).into(), (&high).into(), limit.into()];
        let is_within = dialect.is_between("a.core", "?1", "?2");
        let sql = format!("SELECT a.core FROM artifact a WHERE {is_within} ORDER BY a.core LIMIT ?3");
        let artifacts = self.read_rows(&sql, &range, |row| row.core(0))?;
        let hash = dialect.capture_hash();
        let sql = format!(
            "SELECT {hash}, a.core FROM {} JOIN artifact a ON a.id = c.artifact WHERE {} ORDER BY 1, 2 LIMIT ?3",
            dialect.captures(),
            dialect.is_between(hash, "?1", "?2")
        );
        let captures = self.read_rows(&sql, &range, |row| {
            Ok(CaptureTarget { capture: row.capture(0)?, artifact: row.core(1)? })
        })?;
        let mut tombstones = Vec::new();
        if artifacts.is_empty() && captures.is_empty() {
            tombstones = self.answer(tombstones_beginning(self.session(), prefix, limit))?;
        }
        Ok(Resolution { artifacts, captures, tombstones })
    }

    fn statistics(&self, by: TimeBasis) -> Result<Statistics> {
        self.answer(statistics(self.session(), by))
    }
}

//! Artifacts, attributes and annotations.

use std::collections::HashMap;

use super::journal::{TOMBSTONE, tombstone};
use crate::digest::{CoreHash, DigestPrefix};
use crate::storage::interface::{
    Annotations, ArtifactRecord, AttributeRecord, CaptureTarget, Label, Note, Pin, Resolution, Tag,
};
use crate::storage::postgres::columns::{capture, core, limit as limit_of, optional_text, text, time, value};
use crate::storage::postgres::error::PostgresResult;
use crate::storage::postgres::parameter::Parameter;
use crate::storage::postgres::text::to_stored;
use crate::storage::postgres::view::{ARTIFACT, PostgresSnapshot, in_order, texts};

impl PostgresSnapshot<'_> {
    pub(in crate::storage::postgres) fn artifacts(
        &self,
        of: &[CoreHash],
    ) -> PostgresResult<Vec<Option<ArtifactRecord>>> {
        let sql = format!("SELECT {ARTIFACT} FROM artifact a WHERE a.core = ANY($1)");
        let rows = self.session.rows(&sql, &[&of])?;
        let mut found = HashMap::new();
        for row in &rows {
            let artifact = self.artifact_record(row, 0)?;
            found.insert(artifact.core, Some(artifact));
        }
        Ok(in_order(of, &found))
    }

    pub(super) fn attributes(&self, of: &[CoreHash]) -> PostgresResult<Vec<Vec<AttributeRecord>>> {
        let sql = "SELECT DISTINCT a.core, t.name, t.value, t.number FROM artifact a JOIN attribute t ON t.artifact = a.id
                    WHERE a.core = ANY($1) ORDER BY a.core, t.name, t.value, t.number NULLS FIRST";
        let mut found: HashMap<CoreHash, Vec<AttributeRecord>> = HashMap::new();
        for row in self.session.rows(sql, &[&of])? {
            let attribute =
                AttributeRecord { name: text(&row, 1)?, value: text(&row, 2)?, number: value(&row, 3)? };
            found.entry(core(&row, 0)?).or_default().push(attribute);
        }
        Ok(in_order(of, &found))
    }

    /// Returns the tags, notes, pins and labels of artifacts.
    pub(super) fn annotations(&self, of: &[CoreHash]) -> PostgresResult<Vec<Annotations>> {
        let sql = "SELECT a.core, 0, t.name, t.at, NULL AS value FROM artifact a JOIN tag t ON t.artifact = a.id WHERE a.core = ANY($1)
                   UNION ALL
                   SELECT a.core, 1, n.text, n.at, NULL FROM artifact a JOIN note n ON n.artifact = a.id WHERE a.core = ANY($1)
                   UNION ALL
                   SELECT a.core, 2, p.note, p.at, NULL FROM artifact a JOIN pin p ON p.artifact = a.id WHERE a.core = ANY($1)
                   UNION ALL
                   SELECT a.core, 3, l.key, l.at, l.value FROM artifact a JOIN label l ON l.artifact = a.id WHERE a.core = ANY($1)
                   ORDER BY 1, 2, 3";
        let mut found: HashMap<CoreHash, Annotations> = HashMap::new();
        for row in self.session.rows(sql, &[&of])? {
            let annotations = found.entry(core(&row, 0)?).or_default();
            let at = time(&row, 3)?;
            match value::<i32>(&row, 1)? {
                0 => annotations.tags.push(Tag { name: text(&row, 2)?, at }),
                1 => annotations.note = Some(Note { text: text(&row, 2)?, at }),
                2 => annotations.pin = Some(Pin { note: optional_text(&row, 2)?, at }),
                _ => annotations.labels.push(Label { key: text(&row, 2)?, value: text(&row, 4)?, at }),
            }
        }
        Ok(in_order(of, &found))
    }

    pub(super) fn resolve(&self, prefix: &DigestPrefix, limit: usize) -> PostgresResult<Resolution> {
        let (low, high) = prefix.range();
        let parameters: [&dyn Parameter; 3] = [&low, &high, &limit_of(limit)];
        let sql = "SELECT core FROM artifact WHERE core BETWEEN $1 AND $2 ORDER BY core LIMIT $3";
        let rows = self.session.rows(sql, &parameters)?;
        let artifacts: Vec<CoreHash> = rows.iter().map(|row| core(row, 0)).collect::<PostgresResult<_>>()?;
        let sql = "SELECT c.digest, a.core FROM capture c JOIN artifact a ON a.id = c.artifact
                    WHERE c.digest BETWEEN $1 AND $2 ORDER BY c.digest, a.core LIMIT $3";
        let rows = self.session.rows(sql, &parameters)?;
        let target = |row| Ok(CaptureTarget { capture: capture(row, 0)?, artifact: core(row, 1)? });
        let captures: Vec<CaptureTarget> = rows.iter().map(target).collect::<PostgresResult<_>>()?;
        let mut tombstones = Vec::new();
        if artifacts.is_empty() && captures.is_empty() {
            // Several removed artifacts may have had a capture with the same hash: the last removal counts.
            let sql = format!(
                "SELECT * FROM
                   (SELECT DISTINCT ON (t.digest) {TOMBSTONE} FROM tombstone t WHERE t.digest BETWEEN $1 AND $2
                     ORDER BY t.digest, t.entry DESC) t
                  ORDER BY t.entry DESC, t.digest LIMIT $3"
            );
            let rows = self.session.rows(&sql, &parameters)?;
            tombstones = rows.iter().map(tombstone).collect::<PostgresResult<_>>()?;
        }
        Ok(Resolution { artifacts, captures, tombstones })
    }

    pub(super) fn tagged(&self, names: &[String]) -> PostgresResult<Vec<Option<CoreHash>>> {
        let sql =
            "SELECT t.name, a.core FROM tag t JOIN artifact a ON a.id = t.artifact WHERE t.name = ANY($1)";
        let stored: Vec<_> = names.iter().map(|name| to_stored(name)).collect();
        let mut found = HashMap::new();
        for row in self.session.rows(sql, &[&stored])? {
            found.insert(text(&row, 0)?, Some(core(&row, 1)?));
        }
        Ok(in_order(names, &found))
    }

    pub(super) fn attribute_names(&self) -> PostgresResult<Vec<String>> {
        texts(&self.session.rows("SELECT DISTINCT name FROM attribute ORDER BY name", &[])?, 0)
    }

    pub(super) fn attribute_values(
        &self,
        name: &str,
        start: &str,
        limit: usize,
    ) -> PostgresResult<Vec<String>> {
        let sql = "SELECT DISTINCT value FROM attribute
                    WHERE name = $1 AND left(value, 200) >= left($2, 200) AND starts_with(value, $2)
                    ORDER BY value LIMIT $3";
        texts(&self.session.rows(sql, &[&to_stored(name), &to_stored(start), &limit_of(limit)])?, 0)
    }
}

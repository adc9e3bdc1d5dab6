//! The facts by which an artifact can be found, read from the index.

use std::collections::BTreeMap;
use std::sync::Arc;

use rusqlite::Row;

use super::FileInspection;
use crate::storage::check::CheckedArtifact;
use crate::storage::check::facts::{
    ArtifactFacts, AttributeFact, MentionFact, NameFact, ReferenceFact, RoleFact,
};
use crate::storage::check::finding::{Finding, INDEX_DIFFERS, Subject};
use crate::storage::sqlite::lists::MentionRow;
use crate::storage::sqlite::{Result, mention_index};

/// Keys with at least this many captures are read once, and this many of them are remembered.
const FREQUENT: usize = 1_000;
const KEYS: usize = 8;

impl FileInspection<'_> {
    /// Returns the indexed facts of an artifact, or `None` and a finding if they cannot be read.
    pub(super) fn indexed_facts(
        &self,
        artifact: &CheckedArtifact,
        findings: &mut Vec<Finding>,
    ) -> Result<Option<ArtifactFacts>> {
        let id = artifact.id;
        let attribute =
            |row: &Row<'_>| Ok(AttributeFact { name: row.get(0)?, value: row.get(1)?, number: row.get(2)? });
        let reference = |row: &Row<'_>| {
            Ok(ReferenceFact { relation: row.get(0)?, handle: row.get(1)?, dangles: row.get(2)? })
        };
        self.look(Subject::Artifact(artifact.core), findings, || {
            Ok(ArtifactFacts {
                mentions: self.mentions(id)?,
                attributes: self.all(
                    "SELECT v.name, v.value, v.number FROM attribute a JOIN attribute_value v ON v.id = a.value
                      WHERE a.artifact = ?1",
                    id,
                    attribute,
                )?,
                names: self
                    .all("SELECT handle FROM identity WHERE artifact = ?1", id, |row| row.get(0).map(NameFact))?,
                references: self.all(
                    "SELECT relation, handle, dangles FROM name_mention WHERE artifact = ?1",
                    id,
                    reference,
                )?,
            })
        })
    }

    /// Adds a finding if the artifact's captures mention digests that are missing from the mention index.
    pub(super) fn unlisted_mentions(
        &self,
        artifact: &CheckedArtifact,
        findings: &mut Vec<Finding>,
    ) -> Result<()> {
        let mut unlisted = 0;
        let subject = || Subject::Artifact(artifact.core);
        self.look(subject(), findings, || {
            for capture in
                self.all("SELECT id FROM capture WHERE artifact = ?1", artifact.id, |row| row.get(0))?
            {
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
        let captures = mention_index::captures(&self.connection, key)?;
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

    fn mentions(&self, artifact: i64) -> rusqlite::Result<Vec<MentionFact>> {
        let mut roles: BTreeMap<i64, Arc<RoleFact>> = BTreeMap::new();
        let mut mentions = Vec::new();
        for MentionRow { role, place, digest } in self.lists().for_artifact(artifact)? {
            let role = if let Some(known) = roles.get(&role) {
                known.clone()
            } else {
                let fact = Arc::new(self.role(role)?);
                roles.insert(role, fact.clone());
                fact
            };
            mentions.push(MentionFact { role, place, digest });
        }
        Ok(mentions)
    }

    fn role(&self, id: i64) -> rusqlite::Result<RoleFact> {
        let sql = "SELECT k.name, r.name, r.role_group, r.unit, r.relation, r.dangles
                     FROM role r LEFT JOIN kind k ON k.id = r.kind WHERE r.id = ?1";
        let role = self.connection.prepare_cached(sql)?.query_row([id], |row| {
            Ok(RoleFact {
                kind: row.get::<_, Option<String>>(0)?.unwrap_or_default(),
                name: row.get(1)?,
                group: row.get(2)?,
                unit: row.get(3)?,
                relation: row.get(4)?,
                dangles: row.get(5)?,
            })
        });
        match role {
            Err(rusqlite::Error::QueryReturnedNoRows) => Ok(RoleFact {
                kind: String::new(),
                name: format!("role {id}, which does not exist,"),
                group: String::new(),
                unit: String::new(),
                relation: None,
                dangles: false,
            }),
            role => role,
        }
    }

    fn all<T>(
        &self,
        sql: &str,
        id: i64,
        read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
    ) -> rusqlite::Result<Vec<T>> {
        self.connection.prepare_cached(sql)?.query_map([id], read)?.collect()
    }
}

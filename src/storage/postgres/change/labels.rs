//! Setting and removing labels.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::PostgresTransaction;
use crate::digest::CoreHash;
use crate::storage::StorageError;
use crate::storage::interface::{ArtifactQueries as _, Label};
use crate::storage::journal::JournalEvent;
use crate::storage::labels::{LabelChange, LabeledArtifacts};
use crate::storage::postgres::error::PostgresResult;
use crate::storage::postgres::text::to_stored;

impl PostgresTransaction<'_> {
    /// Returns the labels of artifacts, all of which must be stored.
    fn labeled(&self, cores: &[CoreHash]) -> PostgresResult<LabeledArtifacts> {
        let stored = self.view.artifacts(cores)?;
        let annotations = self.view.annotations(cores)?;
        let known = cores.iter().zip(stored).zip(annotations);
        let mut known: HashMap<CoreHash, Vec<Label>> = known
            .filter_map(|((core, stored), annotations)| stored.map(|_| (*core, annotations.labels)))
            .collect();
        Ok(LabeledArtifacts::read(cores, |core| known.remove(&core).ok_or_else(|| StorageError::gone(core)))?)
    }

    pub(super) fn set_labels(
        &mut self,
        cores: &[CoreHash],
        labels: &BTreeMap<String, String>,
    ) -> PostgresResult<bool> {
        let changes = self.labeled(cores)?.set(labels)?;
        for LabelChange { cores, change } in &changes {
            let keys: Vec<_> = change.keys().map(|key| to_stored(key)).collect();
            let values: Vec<_> = change.values().map(|value| to_stored(value)).collect();
            self.session().execute(
                "INSERT INTO label (artifact, key, value, at)
                 SELECT a.id, n.key, n.value, $4 FROM artifact a, unnest($2::text[], $3::text[]) AS n (key, value)
                  WHERE a.core = ANY($1)
                 ON CONFLICT (artifact, key) DO UPDATE SET value = excluded.value, at = excluded.at",
                &[&cores, &keys, &values, &self.at()],
            )?;
            self.record(&JournalEvent::Label { cores, labels: change })?;
        }
        Ok(!changes.is_empty())
    }

    pub(super) fn remove_labels(
        &mut self,
        cores: &[CoreHash],
        keys: &BTreeSet<String>,
    ) -> PostgresResult<bool> {
        let changes = self.labeled(cores)?.remove(keys);
        for LabelChange { cores, change } in &changes {
            let keys: Vec<_> = change.iter().map(|key| to_stored(key)).collect();
            self.session().execute(
                "DELETE FROM label l USING artifact a WHERE a.id = l.artifact AND a.core = ANY($1) AND l.key = ANY($2)",
                &[&cores, &keys],
            )?;
            self.record(&JournalEvent::Unlabel { cores, keys: change })?;
        }
        Ok(!changes.is_empty())
    }
}

//! Adoption of journal entries that add captures, with everything that follows from them.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::blobs::{Blobs, reprieve};
use super::rows::BatchRows;
use super::state::{BatchArtifact, BatchCapture, BatchState, RowChange};
use super::writer::{arrival, created_at};
use crate::artifact::{Signature, SignatureState};
use crate::digest::BlobHash;
use crate::storage::interface::AdoptedEntry;
use crate::storage::postgres::error::PostgresResult;
use crate::storage::postgres::journal::PostgresJournalWriter;
use crate::storage::postgres::names::{NameCache, NameRegistry};
use crate::storage::postgres::session::DatabaseTransaction;
use crate::storage::postgres::text::to_stored;
use crate::storage::{Prepared, RecordedEntry, entry};

/// Adopts entries each of which adds a capture, records the signature of one of them, or changes nothing but the journal. No
/// capture is added twice. `bytes` has the bytes of all of them. Returns the names that the vault has then.
pub(in crate::storage::postgres) fn adopt_additions(
    session: &DatabaseTransaction<'_>,
    cache: &NameCache,
    recorder: &mut PostgresJournalWriter,
    (entries, bytes): (&[&AdoptedEntry<'_>], &mut Blobs<'_>),
) -> PostgresResult<Arc<NameRegistry>> {
    let batch: Vec<&Prepared> = entries.iter().filter_map(|entry| entry.content).collect();
    let names = NameRegistry::with_all(cache.get(), session, &batch)?;
    let state = BatchState::load(session, cache, &batch)?;
    let (rows, blobs) = (BatchRows::default(), BTreeSet::new());
    let mut adopting = AdoptionBatch { session, names: &names, state, rows, blobs };
    for AdoptedEntry { entry, content } in entries {
        recorder.adopt(entry)?;
        adopting.adopt(entry, *content)?;
    }
    bytes.send(session, &adopting.blobs)?;
    reprieve(session, &adopting.blobs)?;
    adopting.rows.write(session, &adopting.state)?;
    recorder.flush(session)?;
    Ok(names)
}

/// The changes made by a sequence of entries.
struct AdoptionBatch<'a> {
    session: &'a DatabaseTransaction<'a>,
    names: &'a NameRegistry,
    state: BatchState,
    rows: BatchRows,
    /// The blobs of new captures.
    blobs: BTreeSet<BlobHash>,
}

impl AdoptionBatch<'_> {
    fn adopt(&mut self, entry: &RecordedEntry, content: Option<&Prepared>) -> PostgresResult<()> {
        match &entry.change {
            entry::EntryChange::Add { core, .. } => {
                // Earlier versions wrote no entry for undoing a removal.
                self.rows.readmitted.push(*core);
                content.map_or(Ok(()), |prepared| self.add(entry, prepared))
            }
            entry::EntryChange::Signature { capture, core, key_id, state } => {
                if let Some(stored) = self.state.captures.get_mut(&(*core, *capture)) {
                    let state = SignatureState::named(state);
                    stored.signature = state.map(|state| Signature { state, key_id: key_id.clone() });
                    stored.change.update();
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn add(&mut self, entry: &RecordedEntry, prepared: &Prepared) -> PostgresResult<()> {
        let admitted = prepared.admitted();
        let (core, capture, at) = (admitted.core(), admitted.capture(), entry.at.timestamp_millis());
        let (arrival, created_at) = (arrival(entry.record.seq, 0), created_at(admitted));
        if let Some(known) = self.state.artifacts.get_mut(&core) {
            (known.seen_at, known.arrival) = (at, arrival);
            known.created_at = known.created_at.max(created_at);
            known.change.update();
        } else {
            let (id, kind) = (self.state.next_artifact(), admitted.kind());
            let (added_at, seen_at, change) = (at, at, RowChange::New);
            let kind_name = kind.name().to_owned();
            let stored =
                BatchArtifact { id, kind: kind_name, added_at, seen_at, arrival, created_at, change };
            self.state.artifacts.insert(core, stored);
            self.rows.artifacts.push((core, self.names.kind_id(kind)));
        }
        if let Some(known) = self.state.captures.get_mut(&(core, capture)) {
            // A capture that is added again had been lost.
            (known.seen_at, known.signature) = (at, None);
            known.change.update();
            let source_path = prepared.source_path().map(to_stored);
            let sql = "UPDATE capture SET added_at = $2, source_path = $3 WHERE id = $1";
            return self.session.execute(sql, &[&known.id, &at, &source_path]).map(drop);
        }
        let id = self.state.next_capture();
        let stored = BatchCapture { id, seen_at: at, signature: None, change: RowChange::New };
        self.state.captures.insert((core, capture), stored);
        let artifact = self.state.artifacts.get(&core).map_or(0, |stored| stored.id);
        self.rows.add_capture((artifact, id), prepared, Some(self.names))?;
        self.blobs.extend(admitted.members().iter().map(crate::artifact::Member::blob));
        Ok(())
    }
}

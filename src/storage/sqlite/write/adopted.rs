//! Adoption of journal entries of another vault, with everything that follows from them.

use rusqlite::Params;

use super::SqliteWriter;
use crate::artifact::Signature;
use crate::artifact::SignatureState;
use crate::digest::{CaptureHash, CoreHash};
use crate::storage::entry::EntryChange;
use crate::storage::interface::AdoptedEntry;
use crate::storage::sqlite::ids::{artifact_id, blob_id, capture_id};
use crate::storage::sqlite::journal::arrival;
use crate::storage::sqlite::manual_links::changed;
use crate::storage::sqlite::{labels, signatures, tombstones};
use crate::storage::{ManualLinkKey, Prepared};

const DELETE_PIN: &str = "DELETE FROM pin WHERE artifact = ?1";

impl SqliteWriter<'_> {
    /// Adopts an entry that has been checked to follow the last one and that removes nothing.
    pub(super) fn adopt(
        &mut self,
        AdoptedEntry { entry, content }: &AdoptedEntry<'_>,
    ) -> rusqlite::Result<()> {
        self.journal.begin_adopted(entry)?;
        let at = entry.at.timestamp_millis();
        match &entry.change {
            EntryChange::Add { core, .. } => {
                // Earlier versions wrote no entry for undoing a removal.
                self.take_back(*core)?;
                if let Some(prepared) = content {
                    self.adopt_addition(prepared)?;
                }
            }
            EntryChange::AllowRemoved { core } => self.take_back(*core)?,
            EntryChange::Seen { captures, cores } => self.adopt_sightings(captures, cores)?,
            EntryChange::Signature { capture, core, key_id, state } => {
                let capture = capture_id(self.transaction, *core, *capture)?;
                if let (Some(capture), Some(state)) = (capture, SignatureState::named(state)) {
                    signatures::store(
                        self.transaction,
                        capture,
                        &Signature { state, key_id: key_id.clone() },
                    )?;
                }
            }
            EntryChange::Tag { core, name } => {
                self.run("DELETE FROM tag WHERE name = ?1", [name])?;
                if let Some(id) = artifact_id(self.transaction, *core)? {
                    self.run("INSERT INTO tag (name, artifact, at) VALUES (?1, ?2, ?3)", (name, id, at))?;
                }
            }
            EntryChange::Untag { name } => self.run("DELETE FROM tag WHERE name = ?1", [name])?,
            EntryChange::Note { core, note } => {
                let insert = "INSERT INTO note (artifact, text, at) VALUES (?1, ?2, ?3)";
                let (text, delete) = (note.as_deref(), "DELETE FROM note WHERE artifact = ?1");
                self.replace(*core, delete, text.and(Some(insert)), (text, at))?;
            }
            EntryChange::Pin { core, note } => {
                let insert = "INSERT INTO pin (artifact, note, at) VALUES (?1, ?2, ?3)";
                self.replace(*core, DELETE_PIN, Some(insert), (note.as_deref(), at))?;
            }
            EntryChange::Unpin { core } => self.replace(*core, DELETE_PIN, None, (None, at))?,
            EntryChange::Label { cores, labels } => {
                for id in self.ids(cores)? {
                    for (key, value) in labels {
                        labels::put(self.transaction, id, (key, value), at)?;
                    }
                }
            }
            EntryChange::Unlabel { cores, keys } => {
                for id in self.ids(cores)? {
                    keys.iter().try_for_each(|key| labels::delete(self.transaction, id, key))?;
                }
            }
            EntryChange::Link { note, relation, source, target } => {
                let link = ManualLinkKey { source: *source, relation, target: *target };
                self.adopt_link(link, Some((note.as_deref(), at)))?;
            }
            EntryChange::Unlink { relation, source, target } => {
                self.adopt_link(ManualLinkKey { source: *source, relation, target: *target }, None)?;
            }
            EntryChange::Remove { .. }
            | EntryChange::Gc {}
            | EntryChange::Reindex {}
            | EntryChange::Repair {} => {}
        }
        self.journal.adopt(self.transaction, entry)
    }

    fn run(&self, sql: &str, parameters: impl Params) -> rusqlite::Result<()> {
        changed(self.transaction, sql, parameters).map(drop)
    }

    fn ids(&self, cores: &[CoreHash]) -> rusqlite::Result<Vec<i64>> {
        cores.iter().filter_map(|core| artifact_id(self.transaction, *core).transpose()).collect()
    }

    fn take_back(&mut self, core: CoreHash) -> rusqlite::Result<()> {
        if tombstones::exist(self.transaction)? {
            self.tombstones.delete(self.transaction, core)?;
        }
        Ok(())
    }

    fn adopt_addition(&mut self, prepared: &Prepared) -> rusqlite::Result<()> {
        let admitted = prepared.admitted();
        let (core, capture, entry) = (admitted.core(), admitted.capture(), self.journal.seq());
        if let Some(id) = capture_id(self.transaction, core, capture)? {
            // It had been lost.
            let at = self.journal.at().timestamp_millis();
            signatures::forget(self.transaction, id)?;
            let source_entry = prepared.source_path().map(|_| entry);
            let sql = "UPDATE capture SET added_at = ?2, seen_at = ?2, source_entry = ?3 WHERE id = ?1";
            self.run(sql, (id, at, source_entry))?;
            if let Some(artifact) = artifact_id(self.transaction, core)? {
                self.arrived(artifact, arrival(entry, 0))?;
            }
            return Ok(());
        }
        let known = match admitted.members() {
            [only] => blob_id(self.transaction, only.blob())?,
            _ => None,
        };
        let kind = self.kind(admitted.kind())?;
        self.store(prepared, kind, known, entry).map(drop)
    }

    fn adopt_sightings(&self, captures: &[CaptureHash], cores: &[CoreHash]) -> rusqlite::Result<()> {
        let (entry, at) = (self.journal.seq(), self.journal.at().timestamp_millis());
        for (position, (capture, core)) in (0..).zip(captures.iter().zip(cores)) {
            let Some(id) = capture_id(self.transaction, *core, *capture)? else { continue };
            self.run("UPDATE capture SET seen_at = ?2 WHERE id = ?1", (id, at))?;
            if let Some(artifact) = artifact_id(self.transaction, *core)? {
                self.arrived(artifact, arrival(entry, position))?;
            }
        }
        Ok(())
    }

    /// Deletes the row of an artifact, and inserts one with this text and time if `insert` is given.
    fn replace(
        &self,
        core: CoreHash,
        delete: &str,
        insert: Option<&str>,
        (text, at): (Option<&str>, i64),
    ) -> rusqlite::Result<()> {
        let Some(id) = artifact_id(self.transaction, core)? else { return Ok(()) };
        self.run(delete, [id])?;
        insert.map_or(Ok(()), |sql| self.run(sql, (id, text, at)))
    }

    /// Replaces a manual link by one with this note and time, or deletes it.
    fn adopt_link(&self, link: ManualLinkKey<'_>, news: Option<(Option<&str>, i64)>) -> rusqlite::Result<()> {
        let ends = (artifact_id(self.transaction, link.source)?, artifact_id(self.transaction, link.target)?);
        let (Some(source), Some(target)) = ends else { return Ok(()) };
        let key = (source, link.relation, target);
        self.run("DELETE FROM link WHERE source = ?1 AND relation = ?2 AND target = ?3", key)?;
        let Some((note, at)) = news else { return Ok(()) };
        let sql = "INSERT INTO link (source, relation, target, note, stated_at) VALUES (?1, ?2, ?3, ?4, ?5)";
        self.run(sql, (source, link.relation, target, note, at))
    }
}

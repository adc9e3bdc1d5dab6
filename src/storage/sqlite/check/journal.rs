//! Checks of the journal: its chain, and its agreement with the catalog.

use rusqlite::{OptionalExtension, Row};

use super::FileInspection;
use super::replay::{entry, replay};
use crate::artifact::{Signature, SignatureState};
use crate::digest::{CoreHash, Digest};
use crate::storage::Result;
use crate::storage::check::comparison::signature_facts;
use crate::storage::check::finding::{Finding, Subject};
use crate::storage::check::journal::JournalReader;
use crate::storage::check::journal_state::{JournalReplay, JournalState};
use crate::storage::check::{CatalogCounts, RecordedCapture, RecordedSignatures};

impl JournalReader for FileInspection<'_> {
    fn replay(&self, since: Option<Digest>, findings: &mut Vec<Finding>) -> Result<Option<JournalReplay>> {
        self.look(journal(), findings, || replay(&self.connection, since))
    }

    fn compare_catalog(
        &self,
        state: &mut JournalState,
        findings: &mut Vec<Finding>,
    ) -> Result<CatalogCounts> {
        Self::compare_catalog(self, state, findings)
    }

    fn recorded_captures(
        &self,
        state: &JournalState,
        findings: &mut Vec<Finding>,
    ) -> Result<Vec<RecordedCapture>> {
        let mut captures = Vec::new();
        self.look(journal(), findings, || {
            let mut statement = self.connection.prepare(
                "SELECT core, capture, kind, source_path FROM journal WHERE seq = ?1 AND core IS NOT NULL",
            )?;
            for entries in state.captures() {
                let recorded = |row: &Row<'_>| {
                    let (core, capture) = (row.get(0)?, row.get(1)?);
                    Ok(RecordedCapture { core, capture, kind: row.get(2)?, source_path: row.get(3)? })
                };
                captures.extend(statement.query_row([entries.added], recorded).optional()?);
            }
            Ok(())
        })?;
        captures.sort_unstable();
        Ok(captures)
    }
}

impl FileInspection<'_> {
    /// Returns the added captures that the journal, or a seal, proves to have `digest` or to belong to the artifact with
    /// this core hash, in the order in which they were added.
    pub(super) fn recorded_with(&self, digest: Digest) -> Result<Vec<RecordedCapture>> {
        let recorded = self.look(journal(), &mut Vec::new(), || {
            let sql = "SELECT core, capture, kind, source_path, max(seq) FROM journal
                        WHERE (capture = ?1 OR core = ?1) AND core IS NOT NULL
                        GROUP BY core, capture ORDER BY min(seq)";
            let mut statement = self.connection.prepare(sql)?;
            let recorded = |row: &Row<'_>| {
                let (core, capture) = (row.get(0)?, row.get(1)?);
                Ok(RecordedCapture { core, capture, kind: row.get(2)?, source_path: row.get(3)? })
            };
            statement.query_map([digest.as_bytes()], recorded)?.collect::<rusqlite::Result<Vec<_>>>()
        })?;
        let mut recorded = recorded.unwrap_or_default();
        for capture in self.sealed_for(CoreHash(digest))? {
            if !recorded.iter().any(|recorded| recorded.key() == (CoreHash(digest), capture)) {
                recorded.push(RecordedCapture {
                    core: CoreHash(digest),
                    capture,
                    kind: None,
                    source_path: None,
                });
            }
        }
        Ok(recorded)
    }

    /// Returns the signature states of captures that the journal records. Returns an empty map if its chain is broken
    /// or it contains entries that this program does not understand.
    pub(super) fn recorded_signatures(&self) -> Result<RecordedSignatures> {
        let replay = self.replay(None, &mut Vec::new())?.filter(JournalReplay::is_proven);
        let recorded = self.look(journal(), &mut Vec::new(), || {
            let mut recorded = RecordedSignatures::default();
            for (key, seq) in replay.iter().flat_map(|replay| &replay.state.signatures) {
                let entry = entry(&self.connection, *seq)?;
                let Some((state, key_id)) = entry.as_ref().and_then(signature_facts) else { continue };
                let state = SignatureState::named(&state);
                recorded.extend(state.map(|state| (*key, Signature { state, key_id })));
            }
            Ok(recorded)
        })?;
        Ok(recorded.unwrap_or_default())
    }
}

fn journal() -> Subject {
    Subject::Table("journal".to_owned())
}

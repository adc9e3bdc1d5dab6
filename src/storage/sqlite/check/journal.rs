//! Checks of the journal: its chain, and its agreement with the catalog.

use rusqlite::{OptionalExtension, Row};

use super::FileInspection;
use super::replay::{entry, replay};
use crate::artifact::{Signature, SignatureState};
use crate::digest::{CaptureHash, Digest};
use crate::storage::check::finding::{
    CAPTURE_LOST, ENTRY_UNKNOWN, Finding, JOURNAL_BROKEN, Subject, TIME_DIFFERS,
};
use crate::storage::check::journal_state::{Change, Entry, EntryDefect, JournalState, Replay, TombstoneKey};
use crate::storage::check::{
    CatalogCounts, JournalInspection, RecordedCapture, RecordedSignatures, Removals,
};
use crate::storage::{JournalCheck, Result};

impl FileInspection<'_> {
    /// Computes the chain of the journal, looks for the entry whose chain value is `since`, and compares the journal
    /// with everything in the catalog that follows from it, in both directions. No stored bytes are read.
    ///
    /// # Errors
    /// Returns an error if the vault cannot be read for a reason other than damage.
    pub(in crate::storage::sqlite) fn journal(&self, since: Option<Digest>) -> Result<JournalInspection> {
        let mut findings = Vec::new();
        let Some(Replay { mut state, check, defects }) = self.replay(since, &mut findings)? else {
            let (chain, counts) = (JournalCheck::begin(since), CatalogCounts::default());
            return Ok(JournalInspection { chain, counts, findings });
        };
        findings.extend(defects.into_iter().map(|(seq, defect)| for_entry(seq, defect)));
        let counts = self.compare_catalog(&mut state, &mut findings)?;
        for lost in self.recorded_captures(&state, &mut findings)? {
            let kind = lost.kind.as_deref().unwrap_or("unknown");
            let detail = format!("of artifact {}, kind {kind}", lost.core);
            findings.push(Finding::new(CAPTURE_LOST, Subject::Capture(lost.capture), detail));
        }
        Ok(JournalInspection { chain: check, counts, findings })
    }

    /// Returns the captures that should be in the vault according to the journal and are missing.
    ///
    /// # Errors
    /// Returns an error if the vault cannot be read for a reason other than damage.
    pub(super) fn lost_captures(&self) -> Result<Vec<RecordedCapture>> {
        let mut findings = Vec::new();
        let Some(Replay { mut state, .. }) = self.replay(None, &mut findings)? else { return Ok(Vec::new()) };
        self.compare_catalog(&mut state, &mut findings)?;
        self.recorded_captures(&state, &mut findings)
    }

    /// Returns the added captures with this hash that the journal records: one per artifact, sorted by core hash.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read.
    pub(super) fn recorded_with_hash(&self, capture: CaptureHash) -> Result<Vec<RecordedCapture>> {
        let recorded = self.look(journal(), &mut Vec::new(), || {
            let sql = "SELECT j.core, k.name, j.source_path, max(j.seq)
                         FROM journal j LEFT JOIN kind k ON k.id = j.kind
                        WHERE j.capture = ?1 AND j.core IS NOT NULL GROUP BY j.core ORDER BY j.core";
            let mut statement = self.connection.prepare(sql)?;
            let recorded = |row: &Row<'_>| {
                let (core, kind, source_path) = (row.get(0)?, row.get(1)?, row.get(2)?);
                Ok(RecordedCapture { core, capture, kind, source_path })
            };
            statement.query_map([capture.0.as_bytes()], recorded)?.collect()
        })?;
        Ok(recorded.unwrap_or_default())
    }

    /// Returns the signature states of captures that the journal records. Returns an empty map if its chain is broken
    /// or it contains entries that this program does not understand.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read.
    pub(super) fn recorded_signatures(&self) -> Result<RecordedSignatures> {
        let replay = self.replay(None, &mut Vec::new())?.filter(Replay::is_proven);
        let recorded = self.look(journal(), &mut Vec::new(), || {
            let mut recorded = RecordedSignatures::default();
            for (key, seq) in replay.iter().flat_map(|replay| &replay.state.signatures) {
                if let Some((Entry { change: Change::Signature { state, key_id, .. }, .. }, _)) =
                    entry(&self.connection, *seq)?
                {
                    let state = SignatureState::named(&state);
                    recorded.extend(state.map(|state| (*key, Signature { state, key_id })));
                }
            }
            Ok(recorded)
        })?;
        Ok(recorded.unwrap_or_default())
    }

    /// The removals that the journal records.
    ///
    /// # Errors
    /// Returns an error if the vault cannot be read for a reason other than damage.
    pub(super) fn removals(&self) -> Result<Removals> {
        let replay = self.replay(None, &mut Vec::new())?;
        let tombstones = replay.map(|replay| replay.state.tombstones).unwrap_or_default();
        Ok(Removals(tombstones.into_keys().map(|(digest, _): TombstoneKey| digest).collect()))
    }

    fn replay(&self, since: Option<Digest>, findings: &mut Vec<Finding>) -> Result<Option<Replay>> {
        self.look(journal(), findings, || replay(&self.connection, since))
    }

    /// Returns the captures that remain in `state`, with what the journal records about them.
    fn recorded_captures(
        &self,
        state: &JournalState,
        findings: &mut Vec<Finding>,
    ) -> Result<Vec<RecordedCapture>> {
        let mut captures = Vec::new();
        self.look(journal(), findings, || {
            let mut statement = self.connection.prepare(
                "SELECT j.core, j.capture, k.name, j.source_path FROM journal j LEFT JOIN kind k ON k.id = j.kind
                  WHERE j.seq = ?1 AND j.core IS NOT NULL",
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

fn journal() -> Subject {
    Subject::Table("journal".to_owned())
}

fn for_entry(seq: i64, defect: EntryDefect) -> Finding {
    let (info, detail) = match defect {
        EntryDefect::Chain(detail) => (JOURNAL_BROKEN, detail),
        EntryDefect::Unknown(detail) => (ENTRY_UNKNOWN, detail),
        EntryDefect::Time => (TIME_DIFFERS, "its time differs from that in its text".to_owned()),
    };
    Finding::new(info, Subject::Entry(seq), detail)
}

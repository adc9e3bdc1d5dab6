//! Checks of the journal: its chain, and its agreement with the catalog.

use std::collections::BTreeSet;

use serde::Deserialize;

use super::{DatabaseInspection, LARGE_ROWS, ROWS, read_all, table};
use crate::artifact::{Signature, SignatureState};
use crate::digest::{CoreHash, Digest};
use crate::storage::Result;
use crate::storage::check::comparison::signature_facts;
use crate::storage::check::finding::{ENTRY_DIFFERS, Finding, JOURNAL_BROKEN, Subject};
use crate::storage::check::journal::JournalReader;
use crate::storage::check::journal_state::{JournalReplay, JournalRow, JournalState};
use crate::storage::check::{CatalogCounts, RecordedCapture, RecordedSignatures};
use crate::storage::entry::{Entry, EntryText};
use crate::storage::postgres::columns::{digest, text, value};
use crate::storage::postgres::error::PostgresResult;

/// The action in an entry's text.
#[derive(Deserialize)]
struct EntryActionField {
    action: String,
}

/// The recorded end of the journal.
#[derive(PartialEq, Eq)]
struct JournalEndRow {
    id: i16,
    seq: i64,
    at: Option<i64>,
    chain: Digest,
}

impl JournalReader for DatabaseInspection<'_> {
    /// Also compares what is stored beside the texts with them.
    fn replay(&self, since: Option<Digest>, findings: &mut Vec<Finding>) -> Result<Option<JournalReplay>> {
        let mut replay = JournalReplay::begin(since);
        let mut found = Vec::new();
        let mut at = None;
        let read = self.look(table("journal"), findings, || {
            let sql = "SELECT seq, at, action, entry, chain FROM journal ORDER BY seq";
            self.scan(sql, LARGE_ROWS, &mut |rows| {
                for row in rows {
                    let (seq, text) = (value(row, 0)?, text(row, 3).ok());
                    at = value(row, 1)?;
                    // Whatever is no chain value is not the right one.
                    let chain = digest(row, 4).unwrap_or(Digest::from_bytes([0; 32]));
                    replay.take(&JournalRow { seq, text: text.as_deref(), chain, at, added: None }, since);
                    found.extend(compare_action(seq, value(row, 2)?, text.as_deref()));
                }
                Ok(())
            })
        })?;
        findings.append(&mut found);
        if read.is_none() {
            return Ok(None);
        }
        let head = replay.check.head;
        self.compare_head(
            &JournalEndRow { id: 1, seq: head.seq.cast_signed(), at, chain: head.chain },
            findings,
        )?;
        Ok(Some(replay))
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
        let seqs: Vec<i64> = state.captures().map(|entries| entries.added).collect();
        let mut captures = Vec::new();
        self.look(table("journal"), findings, || {
            for seqs in seqs.chunks(ROWS) {
                captures.extend(self.entries(seqs.to_vec())?.into_values().filter_map(recorded_capture));
            }
            Ok(())
        })?;
        captures.sort_unstable();
        Ok(captures)
    }
}

impl DatabaseInspection<'_> {
    /// Returns the added captures that the journal, or a seal, proves to have `digest` or to belong to the artifact with
    /// this core hash, in the order in which they were added.
    pub(super) fn recorded_with(&self, digest: Digest) -> Result<Vec<RecordedCapture>> {
        let mut found = Vec::new();
        self.look(table("journal"), &mut Vec::new(), || {
            let sql = format!(
                "SELECT seq FROM journal WHERE action = 'add' AND position('{digest}' IN entry) > 0
                  ORDER BY seq"
            );
            self.scan(&sql, ROWS, &mut |rows| {
                let seqs = rows.iter().map(|row| value(row, 0)).collect::<PostgresResult<_>>()?;
                let mut entries: Vec<_> = self.entries(seqs)?.into_iter().collect();
                entries.sort_unstable_by_key(|(seq, _)| *seq);
                let recorded = entries.into_iter().filter_map(|(_, entry)| recorded_capture(entry));
                found.extend(
                    recorded.filter(|recorded| recorded.capture.0 == digest || recorded.core.0 == digest),
                );
                Ok(())
            })
        })?;
        for capture in self.sealed_for(CoreHash(digest))? {
            if !found.iter().any(|recorded| recorded.key() == (CoreHash(digest), capture)) {
                found.push(RecordedCapture {
                    core: CoreHash(digest),
                    capture,
                    kind: None,
                    source_path: None,
                });
            }
        }
        let mut known = BTreeSet::new();
        found.retain(|recorded| known.insert(recorded.key()));
        Ok(found)
    }

    /// Returns the signature states of captures that the journal records. Returns an empty map if its chain is broken
    /// or it contains entries that this program does not understand.
    pub(super) fn recorded_signatures(&self) -> Result<RecordedSignatures> {
        let replay = self.replay(None, &mut Vec::new())?.filter(JournalReplay::is_proven);
        let keys: Vec<_> = replay.into_iter().flat_map(|replay| replay.state.signatures).collect();
        let mut signatures = RecordedSignatures::default();
        self.look(table("journal"), &mut Vec::new(), || {
            for keys in keys.chunks(ROWS) {
                let entries = self.entries(keys.iter().map(|(_, seq)| *seq).collect())?;
                for (key, seq) in keys {
                    let Some((state, key_id)) = entries.get(seq).and_then(signature_facts) else { continue };
                    let state = SignatureState::named(&state);
                    signatures.extend(state.map(|state| (*key, Signature { state, key_id })));
                }
            }
            Ok(())
        })?;
        Ok(signatures)
    }

    /// Compares the recorded end of the journal with its last entry.
    fn compare_head(&self, last: &JournalEndRow, findings: &mut Vec<Finding>) -> Result<()> {
        let mut heads = Vec::new();
        let mut found = Vec::new();
        let read = self.look(table("head"), findings, || {
            self.scan("SELECT seq, at, chain, id FROM head", ROWS, &mut |rows| {
                heads.extend(read_all(rows, &table("head"), &mut found, |row| {
                    Ok(JournalEndRow {
                        id: value(row, 3)?,
                        seq: value(row, 0)?,
                        at: value(row, 1)?,
                        chain: digest(row, 2)?,
                    })
                }));
                Ok(())
            })
        })?;
        findings.append(&mut found);
        if read.is_some() && !matches!(&heads[..], [only] if only == last) {
            let detail = format!("it does not name entry {}, the last one", last.seq);
            findings.push(Finding::new(JOURNAL_BROKEN, table("head"), detail));
        }
        Ok(())
    }
}

/// Returns the capture that an entry adds, if it adds one.
fn recorded_capture(entry: EntryText) -> Option<RecordedCapture> {
    match entry.change {
        Entry::Add { capture, core, kind, source_path, .. } => {
            Some(RecordedCapture { core, capture, kind: Some(kind), source_path })
        }
        _ => None,
    }
}

/// Returns the action in the text of an entry.
pub(in crate::storage::postgres) fn written_action(text: &str) -> Option<String> {
    serde_json::from_str(text).ok().map(|EntryActionField { action }| action)
}

/// Compares the action that is stored beside an entry with the one in its text.
fn compare_action(seq: i64, stored: &str, text: Option<&str>) -> Option<Finding> {
    (written_action(text?)? != stored).then(|| {
        let detail = "the action stored beside its text is another one";
        Finding::new(ENTRY_DIFFERS, Subject::Entry(seq), detail)
    })
}

//! Questions of checks and repairs about the journal, answered from what an engine reads.

use super::finding::{
    CAPTURE_LOST, ENTRY_UNKNOWN, Finding, JOURNAL_BROKEN, Subject, TIME_DIFFERS, UNREADABLE,
};
use super::journal_state::{EntryDefect, JournalReplay, JournalState};
use super::{CatalogCounts, JournalInspection, RecordedCapture, Removals};
use crate::digest::Digest;
use crate::storage::{JournalCheck, Result};

/// Reading the journal and the tables that follow from it.
///
/// Methods return an error if the vault cannot be read for a reason other than damage.
pub(in crate::storage) trait JournalReader {
    /// Reads the whole journal, computes its chain and looks for the entry whose chain value is `since`. Returns `None`
    /// and a finding if it cannot be read.
    fn replay(&self, since: Option<Digest>, findings: &mut Vec<Finding>) -> Result<Option<JournalReplay>>;

    /// Compares the tables that follow from the journal with `state`, and removes the matches from `state`. The
    /// captures that remain in it are lost.
    fn compare_catalog(&self, state: &mut JournalState, findings: &mut Vec<Finding>)
    -> Result<CatalogCounts>;

    /// Returns the captures that remain in `state`, with what the journal records about them, in their order.
    fn recorded_captures(
        &self,
        state: &JournalState,
        findings: &mut Vec<Finding>,
    ) -> Result<Vec<RecordedCapture>>;

    /// See [`Inspection::journal`](super::Inspection::journal).
    fn inspect_journal(&self, since: Option<Digest>) -> Result<JournalInspection> {
        let mut findings = Vec::new();
        let Some(JournalReplay { mut state, check, defects }) = self.replay(since, &mut findings)? else {
            let (chain, counts) = (JournalCheck::begin(since), CatalogCounts::default());
            return Ok(JournalInspection { chain, counts, findings });
        };
        findings.extend(defects.into_iter().map(|(seq, defect)| for_entry(seq, defect)));
        let counts = self.compare_catalog(&mut state, &mut findings)?;
        let lost = self.recorded_captures(&state, &mut findings)?;
        if state.has_unread_captures && !lost.is_empty() {
            let detail = match lost.len() {
                1 => "1 capture in the journal is not in the rows that can be read".to_owned(),
                count => format!("{count} captures in the journal are not in the rows that can be read"),
            };
            findings.push(Finding::new(UNREADABLE, Subject::Table("capture".to_owned()), detail));
            return Ok(JournalInspection { chain: check, counts, findings });
        }
        for lost in lost {
            let kind = lost.kind.as_deref().unwrap_or("unknown");
            let detail = format!("of artifact {}, kind {kind}", lost.core);
            findings.push(Finding::new(CAPTURE_LOST, Subject::Capture(lost.capture), detail));
        }
        Ok(JournalInspection { chain: check, counts, findings })
    }

    /// See [`Inspection::lost_captures`](super::Inspection::lost_captures).
    fn captures_lost(&self) -> Result<Vec<RecordedCapture>> {
        let mut findings = Vec::new();
        let Some(JournalReplay { mut state, .. }) = self.replay(None, &mut findings)? else {
            return Ok(Vec::new());
        };
        self.compare_catalog(&mut state, &mut findings)?;
        self.recorded_captures(&state, &mut findings)
    }

    /// See [`Inspection::removals`](super::Inspection::removals).
    fn recorded_removals(&self) -> Result<Removals> {
        let replay = self.replay(None, &mut Vec::new())?;
        let tombstones = replay.map(|replay| replay.state.tombstones).unwrap_or_default();
        Ok(Removals(tombstones.into_keys().map(|(digest, _)| digest).collect()))
    }
}

fn for_entry(seq: i64, defect: EntryDefect) -> Finding {
    let (info, detail) = match defect {
        EntryDefect::Chain(detail) => (JOURNAL_BROKEN, detail),
        EntryDefect::Unknown(detail) => (ENTRY_UNKNOWN, detail),
        EntryDefect::Time => (TIME_DIFFERS, "its time differs from that in its text".to_owned()),
    };
    Finding::new(info, Subject::Entry(seq), detail)
}

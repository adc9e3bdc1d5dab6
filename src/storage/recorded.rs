//! Entries of a journal, read from their text.

use std::borrow::Cow;

use chrono::{DateTime, Utc};

use super::entry::{Entry, EntryText};
use super::interface::{AppendedEntry, CaptureTarget, JournalRecord};
use super::journal::{Head, JournalWriter, next};
use super::{Actor, ErrorKind, Result, StorageError};
use crate::digest::{CaptureHash, CoreHash};

/// A journal entry whose text was read: what it records, when, and by whom.
#[derive(Clone, Debug)]
pub struct RecordedEntry {
    pub(super) record: JournalRecord,
    pub(super) at: DateTime<Utc>,
    pub(super) actor: Option<String>,
    pub(super) action: Cow<'static, str>,
    pub(super) change: Entry,
    /// Whether this program wrote the text.
    is_own: bool,
}

/// An addition that an entry records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordedAddition<'e> {
    /// The capture.
    pub target: CaptureTarget,
    /// The name of the kind of the artifact.
    pub kind: &'e str,
    /// The size of the capture in bytes.
    pub size: u64,
    /// The path that the capture was read from, if that was recorded.
    pub source_path: Option<&'e str>,
}

impl RecordedEntry {
    /// Reads the text of an entry.
    ///
    /// # Errors
    /// Returns an error of the kind [`VaultDamaged`](ErrorKind::VaultDamaged) if it is damaged. An entry with an action that
    /// this program does not know is none of that.
    pub fn parse(record: JournalRecord) -> Result<Self> {
        let seq = record.seq;
        let defect = |error: &dyn std::fmt::Display| {
            let message = format!("entry {seq} of the journal cannot be read: {error}");
            StorageError::new(ErrorKind::VaultDamaged, message)
        };
        let entry = EntryText::parse(&record.entry).map_err(|error| defect(&error))?;
        let at = entry.at().map_err(|error| defect(&error))?;
        let action = match entry.change.action() {
            Some(action) => action.into(),
            None => EntryText::action(&record.entry).map_err(|error| defect(&error))?.into(),
        };
        // Vaults keep milliseconds. What the chain goes over counts, not what else is stored of the entry.
        let at = DateTime::from_timestamp_millis(at.timestamp_millis()).unwrap_or(at);
        Ok(Self {
            record: JournalRecord { at, ..record },
            at,
            actor: entry.actor,
            action,
            change: entry.change,
            is_own: false,
        })
    }

    /// Returns its number and its chain value.
    #[must_use]
    pub fn head(&self) -> Head {
        Head { seq: self.record.seq, chain: self.record.chain }
    }

    /// Returns its text.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.record.entry
    }

    /// Returns the addition that it records, if it records one.
    #[must_use]
    pub fn addition(&self) -> Option<RecordedAddition<'_>> {
        match &self.change {
            Entry::Add { capture, core, kind, size, source_path } => {
                let target = CaptureTarget { capture: *capture, artifact: *core };
                Some(RecordedAddition { target, kind, size: *size, source_path: source_path.as_deref() })
            }
            _ => None,
        }
    }

    /// Returns the captures whose removal it records.
    pub fn removed(&self) -> impl Iterator<Item = CaptureTarget> {
        let (captures, artifact) = match &self.change {
            Entry::Remove { captures, core, .. } => (captures.as_slice(), Some(*core)),
            _ => (&[][..], None),
        };
        let target =
            |(capture, artifact): (&CaptureHash, CoreHash)| CaptureTarget { capture: *capture, artifact };
        captures.iter().zip(artifact.into_iter().cycle()).map(target)
    }

    /// Returns whether its text is the one that a vault writes for such an addition.
    pub(super) fn is_in_written_form(&self) -> bool {
        if !matches!(self.change, Entry::Add { .. }) {
            return false;
        }
        if self.is_own {
            return true;
        }
        let Ok(actor) = self.actor.as_deref().map(Actor::new).transpose() else { return false };
        let mut writer = JournalWriter::new(self.head(), None, actor.as_ref(), self.at);
        writer.append(&self.change).is_ok_and(|text| text == self.record.entry)
    }
}

impl JournalWriter {
    /// Extends the chain by an entry, and returns it.
    ///
    /// # Errors
    /// Returns an error if the entry has no text.
    pub(super) fn record(&mut self, entry: Entry) -> Result<RecordedEntry> {
        let text = self.append(&entry).map_err(|error| {
            StorageError::new(ErrorKind::Database, "a journal entry cannot be written").with_source(error)
        })?;
        let (Head { seq, chain }, at) = (self.head(), self.at());
        let record = JournalRecord { seq, at, entry: text, chain };
        let actor = self.actor().map(|actor| actor.name().to_owned());
        let action = entry.action().unwrap_or_default().into();
        Ok(RecordedEntry { record, at, actor, action, change: entry, is_own: true })
    }
}

/// Checks that entries continue the journal that ends at `head`, and that the artifacts with them are those that they
/// record, with the same paths. Returns the last one.
///
/// # Errors
/// Returns an error of the kind `Invalid` if an entry does not follow the one before it or has another artifact, and one of
/// the kind `Unsupported` if it records the removal of a part of an artifact.
pub(super) fn check(head: Head, entries: &[AppendedEntry<'_>]) -> Result<Head> {
    let mut head = head;
    for AppendedEntry { entry, content } in entries {
        let seq = entry.record.seq;
        check_next(head, entry)?;
        if matches!(entry.change, Entry::Remove { left: 1.., .. }) {
            return Err(StorageError::unsupported(format_args!(
                "entry {seq}, which removes a part of an artifact"
            )));
        }
        if let Some(prepared) = content {
            let (admitted, source_path) = (prepared.admitted(), prepared.source_path());
            let target = CaptureTarget { capture: admitted.capture(), artifact: admitted.core() };
            let (kind, size) = (admitted.kind().name(), admitted.size());
            let found = RecordedAddition { target, kind, size, source_path };
            if entry.addition() != Some(found) {
                return Err(StorageError::invalid(format!(
                    "entry {seq} records another artifact than {}, or another path",
                    target.artifact
                )));
            }
        }
        head = entry.head();
    }
    Ok(head)
}

/// Checks that an entry follows the last entry of a journal.
///
/// # Errors
/// Returns an error of the kind `Invalid` if it does not.
pub(super) fn check_next(last: Head, entry: &RecordedEntry) -> Result<()> {
    let record = &entry.record;
    if record.seq == last.seq + 1 && next(&last.chain, &record.entry) == record.chain {
        return Ok(());
    }
    let message = format!("entry {} does not continue the journal after entry {}", record.seq, last.seq);
    Err(StorageError::invalid(message))
}

/// Returns the error for adopting a journal in a vault that has one.
pub(super) fn not_empty() -> StorageError {
    StorageError::invalid("only an empty vault can adopt the journal of another one")
}

/// Returns the error for using a vault that is an incomplete copy.
pub(super) fn incomplete(vault: impl std::fmt::Display) -> StorageError {
    let message = format!("{vault} is an incomplete copy of another vault; complete the copy or delete it");
    StorageError::new(ErrorKind::Incomplete, message)
}

/// Returns the error for adopting entries, or completing a copy, in a vault that is not an incomplete copy that ends
/// where it should.
pub(super) fn not_begun() -> StorageError {
    StorageError::invalid("the vault is not the copy that was begun")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::digest::Digest;
    use crate::storage::journal::tests::examples;

    #[test]
    fn every_entry_that_is_written_can_be_read() {
        for (text, _) in examples() {
            let chain = Digest::from_bytes([0; 32]);
            let record = JournalRecord { seq: 1, at: DateTime::UNIX_EPOCH, entry: text.clone(), chain };
            let read = RecordedEntry::parse(record).unwrap();
            assert!(text.starts_with(&format!(r#"{{"action":"{}","#, read.action)), "{text}");
        }
    }
}

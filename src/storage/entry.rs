//! What the text of a journal entry says.
//!
//! A new event gets a variant in [`EntryChange`]. An action without one is a defect: what is not understood can neither
//! be compared with the catalog nor copied.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, Utc};
use serde::Deserialize;

use crate::digest::{CaptureHash, CoreHash};

/// The text of an entry.
#[derive(Debug, Deserialize)]
pub(super) struct EntryText {
    at: String,
    pub(super) actor: Option<String>,
    #[serde(flatten)]
    pub(super) change: EntryChange,
}

/// The change of an entry.
#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "action", rename_all = "kebab-case")]
pub(super) enum EntryChange {
    Add {
        capture: CaptureHash,
        core: CoreHash,
        kind: String,
        size: u64,
        source_path: Option<String>,
    },
    /// Existing captures were added again.
    Seen {
        captures: Vec<CaptureHash>,
        /// The artifact of each capture, in the same order.
        cores: Vec<CoreHash>,
    },
    /// The known signature state of a capture changed.
    Signature {
        capture: CaptureHash,
        core: CoreHash,
        key_id: Option<String>,
        state: String,
    },
    Link {
        note: Option<String>,
        relation: String,
        source: CoreHash,
        target: CoreHash,
    },
    Unlink {
        relation: String,
        source: CoreHash,
        target: CoreHash,
    },
    Tag {
        core: CoreHash,
        name: String,
    },
    Untag {
        name: String,
    },
    Pin {
        core: CoreHash,
        note: Option<String>,
    },
    Unpin {
        core: CoreHash,
    },
    Note {
        core: CoreHash,
        /// The text; `None` if the note was removed.
        note: Option<String>,
    },
    /// Labels were set on artifacts.
    Label {
        cores: Vec<CoreHash>,
        labels: BTreeMap<String, String>,
    },
    /// The labels with these keys were removed from artifacts.
    Unlabel {
        cores: Vec<CoreHash>,
        keys: BTreeSet<String>,
    },
    Remove {
        captures: Vec<CaptureHash>,
        core: CoreHash,
        kind: String,
        /// Number of remaining captures of the artifact.
        left: u64,
        reason: Option<String>,
        size: u64,
    },
    /// A removed artifact may be added again.
    AllowRemoved {
        core: CoreHash,
    },
    /// No change to anything that the journal determines.
    Gc {},
    Reindex {},
    /// A repair, which restores what the journal or the stored bytes prove.
    Repair {},
}

impl EntryText {
    /// Parses the text of an entry. Members that no change has are ignored.
    pub(super) fn parse(text: &str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(text)
    }

    /// Returns the artifact that the entry removed, if any.
    pub(super) fn removed(&self) -> Option<CoreHash> {
        match &self.change {
            EntryChange::Remove { core, .. } => Some(*core),
            _ => None,
        }
    }

    /// Returns its time.
    ///
    /// # Errors
    /// Returns an error if its text is not a valid time.
    pub(super) fn at(&self) -> Result<DateTime<Utc>, chrono::ParseError> {
        DateTime::parse_from_rfc3339(&self.at).map(|at| at.to_utc())
    }

    /// Returns its time in milliseconds since 1970, or `None` if it is not a valid time.
    pub(super) fn milliseconds(&self) -> Option<i64> {
        self.at().ok().map(|at| at.timestamp_millis())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::journal::tests::examples;

    #[test]
    fn every_entry_that_is_written_can_be_read() {
        for (text, _) in examples() {
            assert!(EntryText::parse(&text).is_ok_and(|entry| entry.at().is_ok()), "{text}");
        }
    }

    #[test]
    fn an_unknown_action_is_an_error() {
        let entry = r#"{"action":"invent","at":"2026-01-01T00:00:00.000Z","x":1}"#;
        let error = EntryText::parse(entry).unwrap_err().to_string();
        assert!(error.contains("invent"), "{error}");
        assert!(EntryText::parse("").is_err() && EntryText::parse("[]").is_err());
    }
}

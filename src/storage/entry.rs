//! The entries of the journal, as they are written and read.
//!
//! A new event gets a variant in [`Entry`]. An entry with another action, of a later program, is kept and copied as it is;
//! what follows from it is not known, so that it is a finding of checks.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::digest::{CaptureHash, CoreHash};

/// The text of an entry.
#[derive(Debug, Deserialize)]
pub(super) struct EntryText {
    at: String,
    pub(super) actor: Option<String>,
    #[serde(flatten)]
    pub(super) change: Entry,
}

/// An event that the journal records.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "action", rename_all = "kebab-case")]
pub(super) enum Entry {
    Add {
        capture: CaptureHash,
        core: CoreHash,
        kind: String,
        size: u64,
        #[serde(default, skip_serializing_if = "Option::is_none")]
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
        #[serde(default, skip_serializing_if = "Option::is_none")]
        key_id: Option<String>,
        state: String,
    },
    Link {
        #[serde(default, skip_serializing_if = "Option::is_none")]
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
        core: CoreHash,
        name: String,
    },
    Pin {
        core: CoreHash,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        note: Option<String>,
    },
    Unpin {
        core: CoreHash,
    },
    Note {
        core: CoreHash,
        /// The text; `None` if the note was removed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
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
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
        size: u64,
    },
    /// A removed artifact may be added again.
    AllowRemoved {
        core: CoreHash,
        kind: String,
    },
    /// Space was reclaimed.
    Gc {
        blobs: u64,
        bytes_after: u64,
        bytes_before: u64,
        dictionaries: u64,
        recompressed: u64,
    },
    /// The index was rebuilt from the stored bytes of `indexed` artifacts.
    Reindex {
        indexed: u64,
        not_admitted: u64,
    },
    /// A repair was made, which restores what the journal or the stored bytes prove; `did` describes what was done to
    /// `subject`.
    Repair {
        did: String,
        subject: String,
    },
    /// An entry with an action that this program does not know. Only its text says what it records.
    #[serde(other)]
    Unknown,
}

impl Entry {
    /// Returns the action; `None` if only the text of the entry says it.
    pub(super) fn action(&self) -> Option<&'static str> {
        Some(match self {
            Self::Add { .. } => "add",
            Self::Seen { .. } => "seen",
            Self::Signature { .. } => "signature",
            Self::Link { .. } => "link",
            Self::Unlink { .. } => "unlink",
            Self::Tag { .. } => "tag",
            Self::Untag { .. } => "untag",
            Self::Pin { .. } => "pin",
            Self::Unpin { .. } => "unpin",
            Self::Note { .. } => "note",
            Self::Label { .. } => "label",
            Self::Unlabel { .. } => "unlabel",
            Self::Remove { .. } => "remove",
            Self::AllowRemoved { .. } => "allow-removed",
            Self::Gc { .. } => "gc",
            Self::Reindex { .. } => "reindex",
            Self::Repair { .. } => "repair",
            Self::Unknown => return None,
        })
    }

    /// Returns the text of an entry with this content: its RFC 8785 form, so that any program can read and check it.
    pub(super) fn text(&self, actor: Option<&str>, at: &str) -> serde_json::Result<String> {
        let common = actor.map(|actor| ("actor", actor)).into_iter().chain([("at", at)]);
        let mut members: BTreeMap<String, serde_json::Value> =
            common.map(|(name, value)| (name.to_owned(), value.into())).collect();
        if let serde_json::Value::Object(own) = serde_json::to_value(self)? {
            members.extend(own);
        }
        // serde_json writes strings and numbers as RFC 8785 does.
        serde_json::to_string(&members)
    }
}

impl EntryText {
    /// Parses the text of an entry. Members that no change has are ignored.
    pub(super) fn parse(text: &str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(text)
    }

    /// Returns the action that the text of an entry states.
    ///
    /// # Errors
    /// Returns an error if the text is not that of an entry.
    pub(super) fn action(text: &str) -> Result<String, serde_json::Error> {
        #[derive(Deserialize)]
        struct Action {
            action: String,
        }
        serde_json::from_str(text).map(|Action { action }| action)
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
    fn an_unknown_action_is_read_and_what_is_no_entry_is_an_error() {
        let entry = EntryText::parse(r#"{"action":"invent","at":"2026-01-01T00:00:00.000Z","x":1}"#).unwrap();
        assert_eq!((entry.change, entry.at), (Entry::Unknown, "2026-01-01T00:00:00.000Z".to_owned()));
        for text in ["", "[]", r#"{"at":"2026-01-01T00:00:00.000Z"}"#, r#"{"action":"tag","at":"x"}"#] {
            assert!(EntryText::parse(text).is_err(), "{text}");
        }
    }
}

//! A fork: two histories of one run that differ.

use crate::artifact::group;
use crate::digest::Digest;
use crate::storage::ArtifactRecord;

/// The groups of records and steps.
pub(super) const RECORD: &str = group::RECORD;
pub(super) const STEP: &str = group::STEP;

/// Two different histories of one run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fork {
    /// The header or run id that identifies them as histories of one run.
    pub(crate) shared: HistoryIdentity,
    /// The index of the first record or step that differs, from 0.
    pub(crate) index: usize,
    /// Both artifacts, with the hash of their record or step at that index.
    pub(crate) sides: [(ArtifactRecord, Digest); 2],
}

/// The common identity of the histories of one run.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum HistoryIdentity {
    /// The hash of the header of two traces.
    Header(Digest),
    /// The run id of two run packs.
    RunId(String),
}

impl HistoryIdentity {
    /// Returns the unit of the histories: `record` or `step`.
    #[must_use]
    pub(crate) fn unit(&self) -> &'static str {
        match self {
            Self::Header(_) => RECORD,
            Self::RunId(_) => STEP,
        }
    }
}

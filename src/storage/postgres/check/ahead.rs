//! Artifacts that were read ahead of their check.

use std::collections::{HashMap, HashSet};

use postgres::Row;

use crate::digest::BlobHash;
use crate::storage::postgres::bytes::BlobExamination;

/// The tables that have rows of artifacts.
#[derive(Clone, Copy)]
pub(super) enum ArtifactTable {
    Captures,
    Members,
    Lists,
    Attributes,
    Identities,
    References,
    Edges,
}

/// The rows of a table by artifact, or what is damaged.
pub(super) type RowsByArtifact = std::result::Result<HashMap<i64, Vec<Row>>, String>;

/// The rows and blobs that were read ahead.
#[derive(Default)]
pub(super) struct InspectionPrefetch {
    pub(super) artifacts: HashSet<i64>,
    /// In the order of [`ArtifactTable`].
    pub(super) parts: Vec<RowsByArtifact>,
    pub(super) blobs: HashMap<BlobHash, BlobExamination>,
}

impl InspectionPrefetch {
    /// Returns the rows of an artifact, or what is damaged.
    pub(super) fn rows(&self, part: ArtifactTable, artifact: i64) -> std::result::Result<&[Row], String> {
        match self.parts.get(part as usize) {
            Some(Ok(rows)) => Ok(rows.get(&artifact).map_or(&[], Vec::as_slice)),
            Some(Err(damage)) => Err(damage.clone()),
            None => Ok(&[]),
        }
    }

    /// Returns a blob, if it was read.
    pub(super) fn blob(&self, blob: BlobHash) -> Option<&BlobExamination> {
        self.blobs.get(&blob)
    }

    pub(super) fn is_damaged(&self) -> bool {
        self.parts.iter().any(std::result::Result::is_err)
    }

    /// Drops the rows of an artifact.
    pub(super) fn forget(&mut self, artifact: i64) {
        for rows in self.parts.iter_mut().flatten() {
            rows.remove(&artifact);
        }
    }
}

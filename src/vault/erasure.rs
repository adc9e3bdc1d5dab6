//! The remains of removed artifacts.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::api::PathName;
use super::handle::Vault;
use crate::storage::{Erasure, Maintenance, Remnant};

/// What remains of removed artifacts in the vault's files and beside them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ErasureSummary {
    /// Whether no byte of them is left in the vault's files, except bytes that other artifacts contain too.
    pub complete: bool,
    /// The parts of the vault's files that contain, or may contain, their bytes until space is reclaimed; empty if the
    /// erasure is complete.
    pub remnants: Vec<RemnantSummary>,
    /// Copies beside the vault that contain, or may contain, their bytes.
    pub copies: Vec<VaultCopy>,
}

/// A part of the vault's files that may still contain removed bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "part", rename_all = "kebab-case")]
pub enum RemnantSummary {
    /// The pages of a file that is too large to be rewritten after every removal.
    LargeFile {
        /// The size in bytes up to which files are rewritten.
        limit: u64,
    },
    /// The pages of the file, which could not be rewritten.
    File {
        /// The reason.
        reason: String,
    },
    /// The dictionaries with which documents of some kinds are compressed.
    Dictionaries {
        /// The ids of the kinds.
        kinds: Vec<String>,
    },
    /// The write-ahead log, because others were still reading from it.
    Log,
    /// The files of a database server: dead rows until they are vacuumed, the write-ahead log, replicas and backups.
    /// Reclaiming space does not remove them.
    Database,
    /// Object storage: the bytes stay for a day, longer while their pack has other blobs, and in versions of objects that
    /// the storage keeps.
    Objects,
}

/// A copy beside the vault.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct VaultCopy {
    /// Its file.
    #[serde(flatten)]
    pub file: PathName,
    /// What it is a copy of.
    pub of: CopyOrigin,
}

/// The original of a copy beside the vault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CopyOrigin {
    /// A damaged write-ahead log.
    Log,
}

impl ErasureSummary {
    /// Describes an erasure in a vault.
    pub(super) fn new(vault: &Vault, erasure: Erasure) -> Self {
        let complete = erasure.is_complete();
        let remnants = erasure.remnants.into_iter().map(RemnantSummary::from).collect();
        Self { complete, remnants, copies: copies(vault.storage.maintenance()) }
    }
}

fn copies(maintenance: &dyn Maintenance) -> Vec<VaultCopy> {
    // The removal is done: it does not fail if the directory cannot be listed.
    let logs = maintenance.log_copies().unwrap_or_default();
    let copy = |path: &PathBuf| VaultCopy { file: path.as_path().into(), of: CopyOrigin::Log };
    logs.iter().map(copy).collect()
}

impl From<Remnant> for RemnantSummary {
    fn from(remnant: Remnant) -> Self {
        match remnant {
            Remnant::LargeFile => Self::LargeFile { limit: Erasure::REWRITTEN },
            Remnant::NotRewritten(reason) => Self::File { reason },
            Remnant::Dictionaries(kinds) => Self::Dictionaries { kinds },
            Remnant::Log => Self::Log,
            Remnant::Database => Self::Database,
            Remnant::Objects => Self::Objects,
        }
    }
}

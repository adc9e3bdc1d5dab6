//! Options of a check.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::artifact::{KeyRing, Kind};
use crate::digest::{CoreHash, Digest};

/// The depth of the check.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Depth {
    /// The file, its tables and the journal. Reads no stored bytes.
    Quick,
    /// A sample of the artifacts, as in a full check, and nothing else.
    Sample(Sample),
    /// Everything.
    #[default]
    Full,
}

/// A selection of artifacts to check.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = ArtifactSample)]
pub struct Sample {
    /// Percentage of the artifacts.
    pub percent: f64,
    /// The seed, which determines the selected artifacts of a vault.
    #[serde(default)]
    pub seed: u64,
}

impl Sample {
    /// Returns whether it contains an artifact.
    pub(in crate::vault) fn has(&self, core: CoreHash) -> bool {
        let mut bytes = self.seed.to_le_bytes().to_vec();
        bytes.extend(core.0.as_bytes());
        #[expect(clippy::cast_precision_loss, reason = "an approximate share is sufficient")]
        let share = Digest::from_content(&bytes).key().cast_unsigned() as f64 / u64::MAX as f64;
        share * 100.0 < self.percent
    }
}

/// Options of a check.
#[derive(Clone, Debug, Default)]
pub struct FsckOptions {
    /// The depth of the check.
    pub depth: Depth,
    /// Check only artifacts of this kind. Checks that are not about artifacts are not affected.
    pub kind: Option<Kind>,
    /// Continue after the artifact with this core hash, where another check ended. Checks that precede the artifacts
    /// are skipped.
    pub after: Option<CoreHash>,
    /// Keys for checking signatures; signatures without a key are only compared with their recorded state.
    pub keys: KeyRing,
}

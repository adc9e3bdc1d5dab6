//! Options of a check.

use std::ops::RangeInclusive;

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
        self.ranges().iter().any(|range| range.contains(&core.0))
    }

    /// Returns the core hashes of its parts. Core hashes are evenly distributed, so a part between two
    /// of them is a sample, of which only the rows have to be read. The seed says where it begins; after the highest core hash
    /// it goes on with the lowest.
    pub(in crate::vault) fn ranges(&self) -> Vec<RangeInclusive<Digest>> {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "an approximate share is sufficient"
        )]
        let length = (self.percent / 100.0 * 2_f64.powi(64)).clamp(0.0, 2_f64.powi(64)) as u128;
        let begin = u128::from(Digest::from_content(&self.seed.to_le_bytes()).key().cast_unsigned());
        let all = 1 << 64;
        let digest = |key: u128, rest: u8| {
            let mut bytes = [rest; 32];
            bytes.iter_mut().zip(key.to_be_bytes().into_iter().skip(8)).for_each(|(to, from)| *to = from);
            Digest::from_bytes(bytes)
        };
        let part = |first: u128, end: u128| digest(first, 0)..=digest(end - 1, u8::MAX);
        match begin + length {
            _ if length == 0 => Vec::new(),
            end if end <= all => vec![part(begin, end)],
            end => vec![part(0, end - all), part(begin, all)],
        }
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

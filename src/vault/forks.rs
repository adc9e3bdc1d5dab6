//! Lists forks: different histories of one run.

use std::collections::{HashMap, HashSet};

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::Vault;
use super::query::{self, Fork, HistoryIdentity};
use super::resolve::{LookupError, document, with_preferred_capture};
use super::unequal_runs::{UnequalRuns, unequal_runs};
use crate::digest::{CoreHash, Digest};
use crate::formats;
use crate::storage::{ArtifactRecord, Snapshot, StorageError};

/// A request for the pairs of traces and run packs that are different histories of one run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ForksRequest {
    /// Maximum number of pairs; unlimited if there is none.
    pub limit: Option<u64>,
    /// The end of the previous page; the first page if there is none.
    pub after: Option<ForksCursor>,
}

/// Pairs of artifacts that fork.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ForksAnswer {
    /// The pairs: traces first, by what they share and their core hashes; last those of equal inputs.
    pub forks: Vec<ForkSummary>,
    /// The end of this page; `None` if it is the last one.
    pub next: Option<ForksCursor>,
    /// Number of all pairs. Run packs that share two run ids count twice.
    pub count: u64,
}

/// A pair of artifacts that fork.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(untagged)]
pub enum ForkSummary {
    /// Two traces.
    Traces {
        /// The digest of the header that they share.
        header: Digest,
        /// The number of the first record in which they differ, from 0.
        record: usize,
        /// Both traces.
        traces: [ForkedTrace; 2],
    },
    /// Two traces with equal inputs and other names, whose format demands that they have equal records.
    Inputs {
        /// The digest of the inputs that they share.
        inputs: Digest,
        /// The number of the first record in which they differ, from 0.
        record: usize,
        /// Both traces.
        traces: [ForkedTrace; 2],
    },
    /// Two run packs.
    Runs {
        /// The run id that they share.
        run_id: String,
        /// The number of the first step in which they differ, from 0.
        step: usize,
        /// Both run packs.
        runs: [ForkedRun; 2],
    },
}

/// A trace that forks from another one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ForkedTrace {
    /// Its core hash.
    pub core_hash: CoreHash,
    /// The id of its kind.
    pub kind: String,
    /// The digest of the record.
    pub record_hash: Digest,
    /// The record as it is written, if it was requested.
    pub says: Option<String>,
}

/// A run pack that forks from another one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ForkedRun {
    /// Its core hash.
    pub core_hash: CoreHash,
    /// The id of its kind.
    pub kind: String,
    /// The digest of the step.
    pub step_hash: Digest,
    /// The step as it is written, without white space, if it was requested.
    pub says: Option<String>,
}

/// The end of a page: the pair after which the next one begins. It stays valid if artifacts are added or removed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ForksCursor {
    /// The digest of the header that the pair shares, if they are traces.
    pub header: Option<Digest>,
    /// The run id that the pair shares, if they are run packs.
    pub run_id: Option<String>,
    /// The digest of the inputs that the pair shares, if they are traces with other headers.
    #[serde(default)]
    pub inputs: Option<Digest>,
    /// The core hashes.
    pub artifacts: [CoreHash; 2],
}

impl ForksRequest {
    /// Runs the operation.
    ///
    /// # Errors
    /// Returns [`LookupError::Store`] if the vault cannot be read or a document in it is damaged, and
    /// [`LookupError::SeveralMembers`] if an artifact is not a single document.
    pub fn run(&self, vault: &Vault) -> Result<ForksAnswer, LookupError> {
        let mut forks = Vec::new();
        let answer = self.visit::<LookupError>(vault, &mut |fork| {
            forks.push(fork);
            Ok(())
        })?;
        Ok(ForksAnswer { forks, ..answer })
    }

    /// Runs the request, and passes the pairs to `visit` one at a time, because there may be very many. The answer contains
    /// everything else.
    ///
    /// # Errors
    /// Same as [`ForksRequest::run`], and any error that `visit` returns.
    pub fn visit<E: From<LookupError>>(
        &self,
        vault: &Vault,
        visit: &mut dyn FnMut(ForkSummary) -> Result<(), E>,
    ) -> Result<ForksAnswer, E> {
        let snapshot = vault.snapshot().map_err(LookupError::from)?;
        let forks = query::forks(&*snapshot).map_err(LookupError::from)?;
        let mut quotes = ForkTextCache { snapshot: &*snapshot, known: HashMap::new(), bytes: 0 };
        let unequal = unequal_runs(&*snapshot).map_err(E::from)?;
        let count = forks.count() + unequal.len() as u64;
        let after = self.after.clone().map(ForksCursor::into_position).unwrap_or_default();
        let of_histories = forks.after(after.history).filter(|_| after.inputs.is_none());
        let of_inputs = unequal.into_iter().filter(|pair| Some(pair.position()) > after.inputs);
        let mut pairs =
            of_histories.map(ForkPair::Histories).chain(of_inputs.map(ForkPair::Inputs)).peekable();
        let (mut left, mut last) = (self.limit.unwrap_or(u64::MAX), None);
        while let Some(pair) = pairs.next_if(|_| left > 0) {
            left -= 1;
            visit(quotes.quoted(&pair)?)?;
            last = Some(pair);
        }
        let next = last.filter(|_| pairs.peek().is_some()).map(ForksCursor::from);
        Ok(ForksAnswer { forks: Vec::new(), next, count })
    }
}

/// A pair of artifacts that fork.
enum ForkPair {
    /// Histories of one run.
    Histories(Fork),
    /// Runs of equal inputs.
    Inputs(UnequalRuns),
}

/// A cache of records and steps. Pairs of one artifact mostly differ in the same one.
struct ForkTextCache<'s> {
    snapshot: &'s dyn Snapshot,
    known: HashMap<(CoreHash, usize), Option<String>>,
    bytes: usize,
}

impl ForkTextCache<'_> {
    /// The maximum number of bytes in the cache.
    const MAX_CACHED_BYTES: usize = 16 << 20;

    /// Returns a fork with the texts of the records or steps in which the artifacts differ.
    fn quoted(&mut self, pair: &ForkPair) -> Result<ForkSummary, LookupError> {
        let (index, sides) = match pair {
            ForkPair::Histories(fork) => (fork.index, &fork.sides),
            ForkPair::Inputs(unequal) => (unequal.index, &unequal.sides),
        };
        let [(one, _), (other, _)] = sides;
        let says = [self.quote(one, index)?, self.quote(other, index)?];
        Ok(match pair {
            ForkPair::Histories(fork) => ForkSummary::new(fork, says),
            ForkPair::Inputs(UnequalRuns { inputs, index, sides }) => {
                let traces = ForkedTrace::both(sides, says);
                ForkSummary::Inputs { inputs: *inputs, record: *index, traces }
            }
        })
    }

    fn quote(&mut self, artifact: &ArtifactRecord, index: usize) -> Result<Option<String>, LookupError> {
        let key = (artifact.core, index);
        if let Some(known) = self.known.get(&key) {
            return Ok(known.clone());
        }
        let text = quoted_part(self.snapshot, artifact, index)?;
        let size = size_of_val(&key) + text.as_ref().map_or(0, String::len);
        if self.bytes + size > Self::MAX_CACHED_BYTES {
            (self.known, self.bytes) = (HashMap::new(), 0);
        }
        self.bytes += size;
        self.known.insert(key, text.clone());
        Ok(text)
    }
}

/// Returns the text of an artifact's step or record `index`, exactly as written; `None` if its kind has no such parts.
fn quoted_part(
    snapshot: &dyn Snapshot,
    artifact: &ArtifactRecord,
    index: usize,
) -> Result<Option<String>, LookupError> {
    let Some(kind) = formats::named(&artifact.kind) else { return Ok(None) };
    let located = with_preferred_capture(snapshot, artifact)?;
    Ok(kind.quote(&document(snapshot, &located)?, index))
}

impl ForkSummary {
    /// Describes a fork with the texts of the records or steps in which the artifacts differ.
    pub(super) fn new(fork: &Fork, says: [Option<String>; 2]) -> Self {
        match &fork.shared {
            HistoryIdentity::Header(header) => Self::Traces {
                header: *header,
                record: fork.index,
                traces: ForkedTrace::both(&fork.sides, says),
            },
            HistoryIdentity::RunId(run_id) => Self::Runs {
                run_id: run_id.clone(),
                step: fork.index,
                runs: ForkedTrace::both(&fork.sides, says).map(|side| {
                    let ForkedTrace { core_hash, kind, record_hash: step_hash, says } = side;
                    ForkedRun { core_hash, kind, step_hash, says }
                }),
            },
        }
    }
}

impl ForkedTrace {
    fn both(sides: &[(ArtifactRecord, Digest); 2], says: [Option<String>; 2]) -> [Self; 2] {
        let [one, other] = sides.each_ref();
        let [says, other_says] = says;
        [(one, says), (other, other_says)].map(|((side, record_hash), says)| Self {
            core_hash: side.core,
            kind: side.kind.clone(),
            record_hash: *record_hash,
            says,
        })
    }
}

/// The position after which pairs are listed.
#[derive(Default)]
struct ForksPosition {
    history: Option<(HistoryIdentity, [CoreHash; 2])>,
    inputs: Option<(Digest, [CoreHash; 2])>,
}

impl ForksCursor {
    /// Returns the position in the order of the pairs.
    fn into_position(self) -> ForksPosition {
        let artifacts = self.artifacts;
        let shared = self.header.map(HistoryIdentity::Header).or(self.run_id.map(HistoryIdentity::RunId));
        ForksPosition {
            history: shared.map(|shared| (shared, artifacts)),
            inputs: self.inputs.map(|inputs| (inputs, artifacts)),
        }
    }
}

impl From<ForkPair> for ForksCursor {
    fn from(pair: ForkPair) -> Self {
        let none = |artifacts| Self { header: None, run_id: None, inputs: None, artifacts };
        match pair {
            ForkPair::Inputs(unequal) => {
                let (inputs, artifacts) = unequal.position();
                Self { inputs: Some(inputs), ..none(artifacts) }
            }
            ForkPair::Histories(Fork { shared, sides, .. }) => {
                let none = none(sides.map(|(side, _)| side.core));
                match shared {
                    HistoryIdentity::Header(header) => Self { header: Some(header), ..none },
                    HistoryIdentity::RunId(run_id) => Self { run_id: Some(run_id), ..none },
                }
            }
        }
    }
}

/// A request for the forks of some artifacts, without the texts of their records and steps.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ForksOfRequest {
    /// The artifacts. Those that are not in the vault are ignored.
    pub artifacts: Vec<CoreHash>,
    /// Maximum number of pairs; unlimited if there is none.
    pub limit: Option<u64>,
    /// Maximum number of comparisons of two artifacts; unlimited if there is none.
    pub comparisons: Option<u64>,
}

/// The forks of some artifacts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ForksOfAnswer {
    /// The pairs, each once, in the order of the requested artifacts, which are the first of their pairs.
    pub forks: Vec<ForkSummary>,
    /// Whether there are more than the limit.
    pub is_more: bool,
    /// Whether there were enough comparisons for all artifacts.
    pub is_complete: bool,
}

impl ForksOfRequest {
    /// Runs the operation.
    ///
    /// # Errors
    /// Returns an error if the vault cannot be read.
    pub fn run(&self, vault: &Vault) -> Result<ForksOfAnswer, StorageError> {
        let snapshot = vault.snapshot()?;
        let count = |count: Option<u64>| {
            count.map_or(usize::MAX, |count| usize::try_from(count).unwrap_or(usize::MAX))
        };
        let (limit, mut left) = (count(self.limit), count(self.comparisons));
        let mut answer = ForksOfAnswer { is_complete: true, ..ForksOfAnswer::default() };
        let mut known = HashSet::new();
        for core in &self.artifacts {
            let Some(artifact) = snapshot.artifact(*core)? else { continue };
            let (forks, compared) = query::forks_of(&*snapshot, &artifact, left)?;
            left -= compared;
            for fork in forks {
                let mut pair = fork.sides.each_ref().map(|(side, _)| side.core);
                pair.sort_unstable();
                if !known.insert(pair) {
                    continue;
                }
                if answer.forks.len() == limit {
                    return Ok(ForksOfAnswer { is_more: true, ..answer });
                }
                answer.forks.push(ForkSummary::new(&fork, [None, None]));
            }
            if left == 0 {
                return Ok(ForksOfAnswer { is_complete: false, ..answer });
            }
        }
        Ok(answer)
    }
}

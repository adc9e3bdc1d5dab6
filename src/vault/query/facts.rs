//! The facts that links are derived from, read for many artifacts at a time.

use std::collections::{BTreeSet, HashMap};

use super::exchanges::{ExchangeCache, Exchanges};
use super::forks;
use super::histories::{Histories, HistoryIdentity};
use crate::digest::CoreHash;
use crate::storage::interface::{NameUse, Neighbors, NeighborsQuery};
use crate::storage::{ArtifactRecord, Result, Snapshot, StorageError};

/// Maximum number of artifacts that are read at a time, and of the mentions that they are expected to have.
const MOST_ARTIFACTS: usize = 256;
const MOST_MENTIONS: usize = 1 << 19;

/// Maximum number of cached values.
const MOST_CACHED: usize = 1 << 20;

/// Number of artifacts that use a name from which on they are not read again for each batch.
const MANY: usize = 100;

/// Reads what links are derived from, and remembers what artifacts share: very many may share an exchange, a name or a
/// header, and a traversal reaches each of them. Each batch takes a fixed number of queries.
#[derive(Default)]
pub(super) struct LinkReader {
    /// Those of the last batch.
    facts: HashMap<CoreHash, LinkFacts>,
    artifacts: HashMap<CoreHash, ArtifactRecord>,
    uses: HashMap<String, NameUse>,
    /// The names that many artifacts use.
    popular: BTreeSet<String>,
    exchanges: ExchangeCache,
    histories: HashMap<HistoryIdentity, Histories>,
    histories_size: usize,
    /// The most mentions that the artifacts of a batch had on average.
    mentions: usize,
}

/// The facts to read in addition to references and names.
#[derive(Clone, Copy)]
pub(super) struct LinkFactSelection {
    pub(super) exchanges: bool,
    pub(super) histories: bool,
}

/// The facts that the links of an artifact are derived from.
pub(super) struct LinkFacts {
    pub(super) neighbors: Neighbors,
    pub(super) exchanges: Exchanges,
    /// The headers and run ids that it shares with other histories of its run.
    pub(super) shared: Vec<HistoryIdentity>,
}

impl LinkReader {
    /// Returns how many artifacts to read at a time.
    pub(super) fn batch(&self) -> usize {
        (MOST_MENTIONS / self.mentions.max(1)).clamp(1, MOST_ARTIFACTS)
    }

    /// Reads what the links of artifacts are derived from, instead of those read before.
    pub(super) fn read(
        &mut self,
        snapshot: &dyn Snapshot,
        of: &[CoreHash],
        selection: LinkFactSelection,
    ) -> Result<()> {
        self.forget();
        let groups: &[&str] = if selection.exchanges { &Exchanges::GROUPS } else { &[] };
        let query = NeighborsQuery { of, groups, namesakes: selection.histories, known: &self.popular };
        let found = snapshot.neighborhood(&query)?;
        self.artifacts.extend(found.artifacts);
        let popular = found.uses.iter().filter(|(_, uses)| number_of_users(uses) >= MANY);
        self.popular.extend(popular.map(|(name, _)| name.clone()));
        self.uses.extend(found.uses);
        let mentions: usize = found.neighbors.values().flat_map(|one| &one.mentions).map(Vec::len).sum();
        self.mentions = self.mentions.max(mentions / found.neighbors.len().max(1));
        let responses = found.neighbors.iter().flat_map(|(core, neighbors)| {
            let kind = kind_of(&self.artifacts, core);
            neighbors.mentions.get(1).into_iter().flatten().map(move |response| (kind, response))
        });
        self.exchanges.learn_responses(snapshot, responses)?;
        for (core, mut neighbors) in found.neighbors {
            let mut mentions = std::mem::take(&mut neighbors.mentions).into_iter();
            let [prompts, responses] = [(); 2].map(|()| mentions.next().unwrap_or_default());
            let kind = kind_of(&self.artifacts, &core);
            let exchanges = self.exchanges.of_artifact(kind, &prompts, &responses);
            self.facts.insert(core, LinkFacts { neighbors, exchanges, shared: Vec::new() });
        }
        self.learn_exchanges(snapshot)?;
        self.read_histories(snapshot)
    }

    /// Forgets the last batch, and everything if that is too much. Artifacts read together share most of it, others little.
    fn forget(&mut self) {
        self.facts.clear();
        let users: usize = self.uses.values().map(number_of_users).sum();
        let size = self.artifacts.len() + self.exchanges.size() + self.histories_size + users;
        if size > MOST_CACHED {
            *self = Self { mentions: self.mentions, ..Self::default() };
        }
        self.uses.retain(|name, _| self.popular.contains(name));
    }

    fn learn_exchanges(&mut self, snapshot: &dyn Snapshot) -> Result<()> {
        let all = self.facts.iter().map(|(core, facts)| (kind_of(&self.artifacts, core), &facts.exchanges));
        let all: Vec<_> = all.collect();
        let sharers = self.exchanges.learn(snapshot, &all)?;
        self.artifacts.extend(sharers.into_iter().map(|artifact| (artifact.core, artifact)));
        Ok(())
    }

    fn read_histories(&mut self, snapshot: &dyn Snapshot) -> Result<()> {
        let with_namesake = self.facts.iter().filter(|(_, facts)| facts.neighbors.has_namesake);
        let (cores, of): (Vec<CoreHash>, Vec<_>) = with_namesake
            .filter_map(|(core, facts)| Some((*core, (self.artifacts.get(core)?, &facts.neighbors.names))))
            .unzip();
        let all = forks::shared_by(snapshot, &of)?;
        let mut unknown: BTreeSet<HistoryIdentity> = BTreeSet::new();
        for (core, shared) in cores.iter().zip(all) {
            unknown.extend(shared.iter().filter(|shared| !self.histories.contains_key(shared)).cloned());
            if let Some(facts) = self.facts.get_mut(core) {
                facts.shared = shared;
            }
        }
        let unknown: Vec<HistoryIdentity> = unknown.into_iter().collect();
        for histories in forks::histories_of(snapshot, &unknown)? {
            self.histories_size += histories.len();
            self.histories.insert(histories.shared().clone(), histories);
        }
        Ok(())
    }

    /// Returns whether an artifact is in the last batch.
    pub(super) fn has(&self, artifact: CoreHash) -> bool {
        self.facts.contains_key(&artifact)
    }

    /// Returns what the links of an artifact of the last batch are derived from.
    ///
    /// # Errors
    /// Returns an error of the kind `Gone` if it is not stored.
    pub(super) fn facts(&self, artifact: CoreHash) -> Result<&LinkFacts> {
        self.facts.get(&artifact).ok_or_else(|| StorageError::gone(artifact))
    }

    /// Returns an artifact of the last batch, or one at the other end of its links.
    ///
    /// # Errors
    /// Returns an error of the kind `Gone` if it is not stored.
    pub(super) fn artifact(&self, core: CoreHash) -> Result<&ArtifactRecord> {
        self.artifacts.get(&core).ok_or_else(|| StorageError::gone(core))
    }

    /// Returns the artifacts that use a name of the last batch.
    pub(super) fn uses(&self, name: &str) -> Option<&NameUse> {
        self.uses.get(name)
    }

    /// Returns the artifacts that have exchanges of the last batch.
    pub(super) fn exchanges(&self) -> &ExchangeCache {
        &self.exchanges
    }

    /// Returns the histories that share what artifacts of the last batch share with others.
    pub(super) fn histories(&self, shared: &HistoryIdentity) -> Option<&Histories> {
        self.histories.get(shared)
    }
}

/// Returns the kind of an artifact that was read.
fn kind_of<'a>(artifacts: &'a HashMap<CoreHash, ArtifactRecord>, core: &CoreHash) -> &'a str {
    artifacts.get(core).map_or("", |artifact| &artifact.kind)
}

fn number_of_users(uses: &NameUse) -> usize {
    uses.identified.len() + uses.referring.len()
}

//! Selection of artifacts to export.

use serde::{Deserialize, Serialize};

use crate::digest::CoreHash;
use crate::storage::{ArtifactRecord, Filter, Order, Page, Result, Snapshot, TimeBasis};
use crate::vault::Vault;
use crate::vault::find::ArtifactFilter;
use crate::vault::query;

/// A selection of artifacts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ArtifactSelection {
    /// The core hashes of artifacts; if there are none, all artifacts that match the filter.
    pub artifacts: Vec<CoreHash>,
    /// The filter, which does not apply to `artifacts`. An empty filter selects all artifacts.
    pub filter: ArtifactFilter,
    /// Which linked artifacts are selected too.
    pub links: LinkScope,
    /// Whether coincident links are followed as well, if all links are.
    pub coincident: bool,
}

/// Which artifacts are selected because of links.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LinkScope {
    /// None.
    #[default]
    None,
    /// The sessions, traces, run packs and export packs of the same run, and what all of these state, by hashes, names and
    /// manual links; never what only states one of them too.
    Stated,
    /// Everything that can be reached along links, derived or manual, in either direction.
    All,
}

impl ArtifactSelection {
    /// Returns the selected artifacts: those that are named in their order, those of a filter in the order in which they
    /// were last seen, newest first, and with links by core hash, each once.
    pub(super) fn records(&self, snapshot: &dyn Snapshot) -> Result<Vec<ArtifactRecord>> {
        let selected = if self.artifacts.is_empty() {
            let order = Order::Newest(TimeBasis::LastSeen);
            let hits = snapshot.find(&Filter::from(&self.filter), order, &Page::all())?.items;
            hits.into_iter().map(|hit| hit.artifact).collect()
        } else {
            snapshot.expect_artifacts(&self.artifacts)?
        };
        match self.links {
            LinkScope::None => Ok(selected),
            LinkScope::Stated => query::stated(snapshot, &selected),
            LinkScope::All => query::reachable(snapshot, selected, self.coincident),
        }
    }
}

impl Vault {
    /// Returns the core hashes of the selected artifacts: those that are named in their order, those of a filter in the
    /// order in which they were last seen, newest first, and with links by core hash, each once.
    ///
    /// # Errors
    /// Returns an error of the kind [`Gone`](crate::storage::ErrorKind::Gone) if an artifact that is named is not in the
    /// vault, and another one if the vault cannot be read.
    pub fn select(&self, selection: &ArtifactSelection) -> Result<Vec<CoreHash>> {
        let artifacts = selection.records(&*self.snapshot()?)?;
        Ok(artifacts.into_iter().map(|artifact| artifact.core).collect())
    }
}

//! Mentions of digests.

use std::collections::{BTreeMap, BTreeSet};

use super::super::state::{MemoryArtifact, MemoryState};
use super::{MemorySnapshot, each};
use crate::artifact::{self, ArtifactLocation};
use crate::digest::{CoreHash, Digest, DigestPrefix};
use crate::storage::Result;
use crate::storage::interface::{MentionQueries, MentionRecord, sort_mentions, sort_mentions_by_artifact};

/// Returns the mention of an artifact in the form of the interface.
pub(super) fn record(artifact: CoreHash, mention: &artifact::Mention) -> MentionRecord {
    MentionRecord {
        artifact,
        role: mention.role.name.into(),
        unit: mention.role.unit.into(),
        place: mention.place.clone(),
        digest: mention.digest,
    }
}

/// Returns the mentions of an artifact, in any role or in those of one group.
fn in_group<'a>(
    artifact: &'a MemoryArtifact,
    group: Option<&str>,
) -> impl Iterator<Item = &'a artifact::Mention> {
    artifact
        .mentions()
        .into_iter()
        .filter(move |mention| group.is_none_or(|group| mention.role.group == group))
}

impl MentionQueries for MemorySnapshot {
    fn mentions(&self, of: &[CoreHash], group: Option<&str>) -> Result<Vec<Vec<MentionRecord>>> {
        Ok(each(of, |core| {
            let Some(artifact) = self.0.artifact(core) else { return Vec::new() };
            let mut mentions: Vec<_> =
                in_group(artifact, group).map(|mention| record(core, mention)).collect();
            sort_mentions(&mut mentions);
            mentions
        }))
    }

    fn mentioning(&self, digests: &[Digest], group: Option<&str>) -> Result<Vec<Vec<MentionRecord>>> {
        Ok(each(digests, |digest| {
            let mut found = Vec::new();
            for artifact in self.0.all() {
                let mentions = in_group(artifact, group).filter(|mention| mention.digest == digest);
                found.extend(mentions.map(|mention| record(artifact.core, mention)));
            }
            sort_mentions_by_artifact(&mut found);
            found
        }))
    }

    fn candidates(&self, digests: &[Digest], kinds: &[String]) -> Result<Vec<Vec<CoreHash>>> {
        Ok(each(digests, |digest| {
            let artifacts = self.0.all().filter(|artifact| {
                kinds.iter().any(|kind| kind == artifact.kind.name())
                    && artifact.mentions().iter().any(|mention| mention.digest == digest)
            });
            artifacts.map(|artifact| artifact.core).collect()
        }))
    }

    fn mentioned_with_prefix(
        &self,
        prefix: &DigestPrefix,
        group: Option<&str>,
        limit: usize,
    ) -> Result<Vec<Digest>> {
        let all = self.0.all();
        let digests = all.flat_map(|artifact| in_group(artifact, group).map(|mention| mention.digest));
        let digests: BTreeSet<Digest> = digests.filter(|digest| prefix.matches(digest)).collect();
        Ok(digests.into_iter().take(limit).collect())
    }

    fn shared_first_mentions(&self, group: &str) -> Result<Vec<Digest>> {
        let mut artifacts: BTreeMap<Digest, BTreeSet<CoreHash>> = BTreeMap::new();
        for artifact in self.0.all() {
            let first =
                in_group(artifact, Some(group)).filter(|mention| mention.place == ArtifactLocation::Index(0));
            for mention in first {
                artifacts.entry(mention.digest).or_default().insert(artifact.core);
            }
        }
        let shared = artifacts.into_iter().filter(|(_, artifacts)| artifacts.len() > 1);
        Ok(shared.map(|(digest, _)| digest).collect())
    }
}

impl MemoryState {
    pub(super) fn kinds_with_group(&self, group: &str) -> BTreeSet<&'static str> {
        let artifacts = self.all().filter(|artifact| in_group(artifact, Some(group)).next().is_some());
        artifacts.map(|artifact| artifact.kind.name()).collect()
    }
}

//! Mentions of digests.

use std::collections::{BTreeMap, BTreeSet};

use super::super::state::{MemoryArtifact, MemoryState};
use crate::artifact::{self, ArtifactLocation};
use crate::digest::{CoreHash, Digest, DigestPrefix};
use crate::storage::RoleCount;
use crate::storage::interface::{MentionRecord, sort_mentions, sort_mentions_by_artifact};

/// Returns the mention of an artifact in the form of the interface.
pub(super) fn record(artifact: CoreHash, mention: &artifact::Mention) -> MentionRecord {
    MentionRecord {
        artifact,
        role: mention.role.name.to_owned(),
        unit: mention.role.unit.to_owned(),
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

impl MemoryState {
    pub(super) fn mentions_of(&self, core: CoreHash, group: Option<&str>) -> Vec<MentionRecord> {
        let Some(artifact) = self.artifact(core) else { return Vec::new() };
        let mut mentions: Vec<_> = in_group(artifact, group).map(|mention| record(core, mention)).collect();
        sort_mentions(&mut mentions);
        mentions
    }

    pub(super) fn mention_counts(&self, core: CoreHash) -> Vec<RoleCount> {
        let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
        let Some(artifact) = self.artifact(core) else { return Vec::new() };
        for mention in artifact.mentions() {
            *counts.entry(mention.role.name).or_default() += 1;
        }
        let count = |(role, count): (&str, u64)| RoleCount { role: role.to_owned(), count };
        counts.into_iter().map(count).collect()
    }

    pub(super) fn mentioning(&self, digest: Digest, group: Option<&str>) -> Vec<MentionRecord> {
        let mut found = Vec::new();
        for artifact in self.all() {
            let mentions = in_group(artifact, group).filter(|mention| mention.digest == digest);
            found.extend(mentions.map(|mention| record(artifact.core, mention)));
        }
        sort_mentions_by_artifact(&mut found);
        found
    }

    pub(super) fn candidates(&self, digest: Digest, kinds: &[String]) -> Vec<CoreHash> {
        let artifacts = self.all().filter(|artifact| {
            kinds.iter().any(|kind| kind == artifact.kind.name())
                && artifact.mentions().iter().any(|mention| mention.digest == digest)
        });
        artifacts.map(|artifact| artifact.core).collect()
    }

    pub(super) fn kinds_with_group(&self, group: &str) -> BTreeSet<&'static str> {
        let artifacts = self.all().filter(|artifact| in_group(artifact, Some(group)).next().is_some());
        artifacts.map(|artifact| artifact.kind.name()).collect()
    }

    pub(super) fn mentioned_with_prefix(
        &self,
        prefix: &DigestPrefix,
        group: Option<&str>,
        limit: usize,
    ) -> Vec<Digest> {
        let digests = self.all().flat_map(|artifact| in_group(artifact, group).map(|mention| mention.digest));
        let digests: BTreeSet<Digest> = digests.filter(|digest| prefix.matches(digest)).collect();
        digests.into_iter().take(limit).collect()
    }

    pub(super) fn shared_first_mentions(&self, group: &str) -> Vec<Digest> {
        let mut artifacts: BTreeMap<Digest, BTreeSet<CoreHash>> = BTreeMap::new();
        for artifact in self.all() {
            let first =
                in_group(artifact, Some(group)).filter(|mention| mention.place == ArtifactLocation::Index(0));
            for mention in first {
                artifacts.entry(mention.digest).or_default().insert(artifact.core);
            }
        }
        let shared = artifacts.into_iter().filter(|(_, artifacts)| artifacts.len() > 1);
        shared.map(|(digest, _)| digest).collect()
    }
}

//! Reads for a single key, and of everything of one sort, made of the batched ones.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use chrono::{DateTime, Utc};

use super::query::count_targets;
use super::{
    Annotations, ArtifactRecord, AttributeRecord, CaptureRecord, CaptureTarget, Condition, Containment,
    Filter, ManualLink, MentionRecord, NameUse, Names, Order, Page, RoleCount, Snapshot, StoredMember, Tag,
    UnresolvedReference, UnresolvedTarget,
};
use crate::artifact::{Admitted, is_manifest};
use crate::digest::{CaptureHash, CoreHash, Digest};
use crate::storage::policy::preference;
use crate::storage::prepared::removal_digests;
use crate::storage::{ErrorKind, PayloadDefect, Result, StorageError, TimeBasis, Tombstone};

/// Returns the only value of a batch of one.
fn only<T>(batch: Vec<T>) -> Result<T> {
    let missing = || StorageError::new(ErrorKind::Database, "the answer for a key is missing");
    batch.into_iter().next().ok_or_else(missing)
}

#[expect(clippy::missing_errors_doc, reason = "the errors are those of the trait")]
impl dyn Snapshot + '_ {
    /// Returns the artifact with this core hash.
    pub fn artifact(&self, core: CoreHash) -> Result<Option<ArtifactRecord>> {
        self.artifacts(&[core]).and_then(only)
    }

    /// Returns the artifact with this core hash, or an error of the kind `Gone` if it is not stored.
    pub fn expect_artifact(&self, core: CoreHash) -> Result<ArtifactRecord> {
        self.artifact(core)?.ok_or_else(|| StorageError::gone(core))
    }

    /// Returns the artifacts with these core hashes, or an error of the kind `Gone` if one is not stored.
    pub fn expect_artifacts(&self, of: &[CoreHash]) -> Result<Vec<ArtifactRecord>> {
        let stored = of.iter().zip(self.artifacts(of)?);
        stored.map(|(core, artifact)| artifact.ok_or_else(|| StorageError::gone(*core))).collect()
    }

    /// Returns the artifacts with these core hashes that are stored.
    pub fn stored_artifacts(&self, of: &[CoreHash]) -> Result<Vec<ArtifactRecord>> {
        Ok(self.artifacts(of)?.into_iter().flatten().collect())
    }

    /// Returns all artifacts, or those of one kind, by core hash.
    pub fn all_artifacts(&self, kind: Option<&str>) -> Result<Vec<ArtifactRecord>> {
        let filter = Filter { kinds: kind.map(str::to_owned).into_iter().collect(), ..Filter::default() };
        let hits = self.find(&filter, Order::Core, &Page::all())?.items.into_iter();
        Ok(hits.map(|hit| hit.artifact).collect())
    }

    /// Returns the artifacts that satisfy a condition, with their annotations, by core hash.
    pub fn annotated(&self, condition: Condition) -> Result<Vec<(ArtifactRecord, Annotations)>> {
        let hits = self.find(&condition.into(), Order::Core, &Page::all())?.items.into_iter();
        let artifacts: Vec<ArtifactRecord> = hits.map(|hit| hit.artifact).collect();
        let cores: Vec<CoreHash> = artifacts.iter().map(|artifact| artifact.core).collect();
        Ok(artifacts.into_iter().zip(self.annotations(&cores)?).collect())
    }

    /// Returns all tags with their artifacts, by name.
    pub fn tags(&self) -> Result<Vec<(Tag, ArtifactRecord)>> {
        let mut tags = Vec::new();
        for (artifact, annotations) in self.annotated(Condition::Tagged { name: None })? {
            tags.extend(annotations.tags.into_iter().map(|tag| (tag, artifact.clone())));
        }
        tags.sort_unstable_by(|(one, _), (other, _)| one.name.cmp(&other.name));
        Ok(tags)
    }

    /// Returns the captures of an artifact in the order in which they were added.
    pub fn captures_of(&self, core: CoreHash) -> Result<Vec<CaptureRecord>> {
        self.captures(&[core]).and_then(only)
    }

    /// Returns a capture of an artifact.
    pub fn capture(&self, core: CoreHash, capture: CaptureHash) -> Result<Option<CaptureRecord>> {
        self.captures_with(&[CaptureTarget { capture, artifact: core }]).and_then(only)
    }

    /// Returns the preferred capture of each artifact: the one of the lowest [`preference`], and of those the one that was
    /// added first.
    pub fn preferred_captures(&self, of: &[CoreHash]) -> Result<Vec<Option<CaptureRecord>>> {
        let preferred = |captures: Vec<CaptureRecord>| {
            captures.into_iter().min_by_key(|capture| preference(capture.signature.as_ref()))
        };
        Ok(self.captures(of)?.into_iter().map(preferred).collect())
    }

    /// Returns the preferred capture of an artifact.
    pub fn preferred_capture(&self, core: CoreHash) -> Result<Option<CaptureRecord>> {
        self.preferred_captures(&[core]).and_then(only)
    }

    /// Returns the members of a capture with their bytes, sorted by name. Every byte is hashed again, and so are the
    /// bindings of the bytes to the capture and of the capture to its artifact.
    pub fn read_members(&self, core: CoreHash, capture: CaptureHash) -> Result<Vec<StoredMember>> {
        let members = self.members(core, capture)?.into_iter();
        let read = |member: super::MemberRecord| {
            let bytes = self.read(core, capture, member.blob)?;
            // The vault has another kind than the one with which the artifact was stored.
            if member.blob.0 == capture.0 && is_manifest(core, &bytes) {
                return Err(StorageError::damaged(core, capture, PayloadDefect::NotItsOwn));
            }
            Ok(StoredMember { bytes, name: member.name })
        };
        members.map(read).collect()
    }

    /// Returns the attributes of an artifact, sorted by name and value.
    pub fn attributes_of(&self, core: CoreHash) -> Result<Vec<AttributeRecord>> {
        self.attributes(&[core]).and_then(only)
    }

    /// Returns the largest number of an attribute of an artifact, or `None` if it has none.
    pub fn number_of(&self, core: CoreHash, name: &str) -> Result<Option<i64>> {
        let attributes = self.attributes_of(core)?;
        let named = attributes.iter().filter(|attribute| attribute.name == name);
        Ok(named.filter_map(|attribute| attribute.number).max())
    }

    /// Returns a time of an artifact, or `None` if it does not state it.
    pub fn time_of(&self, artifact: &ArtifactRecord, basis: TimeBasis) -> Result<Option<DateTime<Utc>>> {
        match basis {
            TimeBasis::FirstSeen => Ok(Some(artifact.added_at)),
            TimeBasis::LastSeen => Ok(Some(artifact.seen_at)),
            TimeBasis::Created | TimeBasis::Finished => {
                Ok(declared_time(&self.attributes_of(artifact.core)?, basis))
            }
        }
    }

    /// Returns the tags, the note, the pin and the labels of an artifact.
    pub fn annotations_of(&self, core: CoreHash) -> Result<Annotations> {
        self.annotations(&[core]).and_then(only)
    }

    /// Returns the artifact with a tag.
    pub fn with_tag(&self, name: &str) -> Result<Option<CoreHash>> {
        self.tagged(&[name.to_owned()]).and_then(only)
    }

    /// Returns the mentions of an artifact in the roles of one group.
    pub fn mentions_of(&self, core: CoreHash, group: &str) -> Result<Vec<MentionRecord>> {
        self.mentions(&[core], Some(group)).and_then(only)
    }

    /// Returns the number of mentions of each artifact by role, sorted by role.
    pub fn mention_counts(&self, of: &[CoreHash]) -> Result<Vec<Vec<RoleCount>>> {
        let counts = |mentions: Vec<MentionRecord>| {
            let mut counts: BTreeMap<Arc<str>, u64> = BTreeMap::new();
            for mention in mentions {
                *counts.entry(mention.role).or_default() += 1;
            }
            counts.into_iter().map(|(role, count)| RoleCount { role: role.to_string(), count }).collect()
        };
        Ok(self.mentions(of, None)?.into_iter().map(counts).collect())
    }

    /// Returns the mentions of a digest, in any role or in those of one group.
    pub fn mentions_with(&self, digest: Digest, group: Option<&str>) -> Result<Vec<MentionRecord>> {
        self.mentioning(&[digest], group).and_then(only)
    }

    /// Returns those of `among` that another one of them refers to by `relation`, which holds only between artifacts with the
    /// same value of `attribute`.
    pub fn related_among(
        &self,
        among: &[CoreHash],
        relation: &str,
        attribute: &str,
    ) -> Result<BTreeSet<CoreHash>> {
        let filter = Filter { among: Some(among.to_vec()), ..Filter::default() };
        self.related_to_matching(among, &filter, relation, attribute)
    }

    /// Returns the names that an artifact has and refers to.
    pub fn names_of(&self, core: CoreHash) -> Result<Names> {
        self.names(&[core]).and_then(only)
    }

    /// Returns the artifacts that use a name.
    pub fn uses_of(&self, name: &str) -> Result<NameUse> {
        self.named(&[name.to_owned()]).and_then(only)
    }

    /// Returns the manual links from and to an artifact.
    pub fn manual_links_of(&self, core: CoreHash) -> Result<Vec<ManualLink>> {
        self.manual_links(&[core]).and_then(only)
    }

    /// Returns the other artifacts that contain each artifact, by core hash.
    pub fn containers(&self, of: &[CoreHash], by: Containment) -> Result<Vec<Vec<CoreHash>>> {
        let mut all = self.stated_containers(of)?;
        if by == Containment::Bytes {
            all.iter_mut().zip(self.artifacts_with_bytes(of)?).for_each(|(one, more)| one.extend(more));
        }
        Ok(all.into_iter().map(Vec::from_iter).collect())
    }

    /// Returns the other artifacts that contain an artifact.
    pub fn containers_of(&self, core: CoreHash, by: Containment) -> Result<Vec<CoreHash>> {
        self.containers(&[core], by).and_then(only)
    }

    /// Returns all references to the first `limit` digests and names after `after` that the vault does not have: digests
    /// before names, each sorted by target, artifact and place.
    pub fn unresolved(
        &self,
        after: Option<&UnresolvedTarget>,
        limit: usize,
    ) -> Result<Vec<UnresolvedReference>> {
        let (mut references, name) = match after {
            Some(UnresolvedTarget::Name(name)) => (Vec::new(), Some(name.as_str())),
            Some(UnresolvedTarget::Digest(digest)) => (self.missing_digests(Some(*digest), limit)?, None),
            None => (self.missing_digests(None, limit)?, None),
        };
        let left = limit - count_targets(&references);
        if left > 0 {
            references.append(&mut self.missing_names(name, left)?);
        }
        Ok(references)
    }

    /// Returns the tombstones of an admitted artifact and of everything in it, one for each artifact, by core hash.
    pub fn tombstones_of(&self, admitted: &Admitted) -> Result<Vec<Tombstone>> {
        self.tombstones_with(&[&removal_digests(admitted)]).and_then(only)
    }
}

/// Returns the creation time that an artifact with these attributes states.
#[must_use]
pub fn created_at(attributes: &[AttributeRecord]) -> Option<DateTime<Utc>> {
    declared_time(attributes, TimeBasis::Created)
}

/// Returns a time that an artifact with these attributes states: the latest of those that its captures state. An invalid
/// value is damage, which a check reports.
#[must_use]
pub fn declared_time(attributes: &[AttributeRecord], basis: TimeBasis) -> Option<DateTime<Utc>> {
    let name = basis.attribute()?;
    let times = attributes.iter().filter(|attribute| attribute.name == name);
    let text = times.map(|attribute| attribute.value.as_str()).max()?;
    DateTime::parse_from_rfc3339(text).ok().map(|time| time.to_utc())
}

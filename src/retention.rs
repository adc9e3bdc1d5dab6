//! Which artifacts to keep, by rules.
//!
//! The rules are those that users of backup programs know: an artifact is kept if any rule says so. Every kind counts for
//! itself. What is pinned is kept, and what something else that is kept links to.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, Duration, Utc};

use crate::query::{self, Link, LinkTarget};
use crate::store::{ArtifactId, ArtifactRow, Result, Snapshot};

/// Rules of what to keep.
#[derive(Clone, Debug, Default)]
pub struct Policy {
    /// Keep the newest so many of each kind.
    pub keep_last: Option<usize>,
    /// Keep what was added within this time before the newest of its kind.
    pub keep_within: Option<Duration>,
    /// Keep what has one of these tags. A `*` at the end stands for anything.
    pub keep_tags: Vec<String>,
    /// Look at artifacts of these kinds; of all if none is named. Others are kept and not spoken of.
    pub kinds: Vec<String>,
    /// Remove even what something else that is kept links to. What has its bytes in something that is kept stays all the same.
    pub ignores_links: bool,
}

/// Why an artifact is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    /// It is among the newest.
    Last,
    /// It is new enough.
    Within,
    /// It has this tag.
    Tag(String),
    /// It is pinned.
    Pinned,
    /// Something that is kept has its bytes, as a pack has those of its session: they would not be gone.
    Contained(Box<ArtifactRow>),
    /// Something that is kept links to it.
    Linked(Box<Link>),
}

/// What becomes of an artifact.
#[derive(Clone, Debug)]
pub struct Decision {
    /// The artifact.
    pub artifact: ArtifactRow,
    /// The size of its captures in bytes.
    pub size: u64,
    /// Why it is kept; it is to be removed if there is no reason.
    pub reasons: Vec<Reason>,
}

impl Decision {
    /// Whether it is kept.
    #[must_use]
    pub fn is_kept(&self) -> bool {
        !self.reasons.is_empty()
    }
}

/// What `policy` says of every artifact of the kinds that it is about, by kind, newest first.
///
/// # Errors
/// What the database says.
pub fn plan(snapshot: &Snapshot<'_>, policy: &Policy) -> Result<Vec<Decision>> {
    let mut by_kind: BTreeMap<String, Vec<ArtifactRow>> = BTreeMap::new();
    for artifact in snapshot.artifacts(None)? {
        if policy.kinds.is_empty() || policy.kinds.contains(&artifact.kind) {
            by_kind.entry(artifact.kind.clone()).or_default().push(artifact);
        }
    }
    let mut decisions = Vec::new();
    for artifacts in by_kind.values_mut() {
        artifacts.sort_by(|one, other| (other.added_at, one.core).cmp(&(one.added_at, other.core)));
        let newest = artifacts.first().map(|artifact| artifact.added_at);
        for (age, artifact) in artifacts.iter().enumerate() {
            let reasons = policy.reasons(snapshot, artifact, age, newest)?;
            let size = snapshot.captures(artifact.id)?.iter().map(|capture| capture.size).sum();
            decisions.push(Decision { artifact: artifact.clone(), size, reasons });
        }
    }
    keep_held(snapshot, &mut decisions, policy.ignores_links)?;
    Ok(decisions)
}

impl Policy {
    /// Whether there is a rule that keeps anything.
    #[must_use]
    pub fn keeps_something(&self) -> bool {
        self.keep_last.is_some() || self.keep_within.is_some() || !self.keep_tags.is_empty()
    }

    /// Why to keep the artifact before which `age` newer ones were added.
    fn reasons(
        &self,
        snapshot: &Snapshot<'_>,
        artifact: &ArtifactRow,
        age: usize,
        newest: Option<DateTime<Utc>>,
    ) -> Result<Vec<Reason>> {
        let mut reasons = Vec::new();
        if self.keep_last.is_some_and(|last| age < last) {
            reasons.push(Reason::Last);
        }
        let since =
            newest.zip(self.keep_within).and_then(|(newest, within)| newest.checked_sub_signed(within));
        if since.is_some_and(|since| artifact.added_at >= since) {
            reasons.push(Reason::Within);
        }
        for tag in snapshot.tags(Some(artifact.id))? {
            if self.keep_tags.iter().any(|pattern| matches(pattern, &tag.name)) {
                reasons.push(Reason::Tag(tag.name));
            }
        }
        if snapshot.pin_of(artifact.id)?.is_some() {
            reasons.push(Reason::Pinned);
        }
        Ok(reasons)
    }
}

fn matches(pattern: &str, tag: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(beginning) => tag.starts_with(beginning),
        None => tag == pattern,
    }
}

/// Keeps what something that is kept has the bytes of or links to, until nothing more is kept for that.
fn keep_held(snapshot: &Snapshot<'_>, decisions: &mut [Decision], ignores_links: bool) -> Result<()> {
    let mut removed: BTreeSet<ArtifactId> = decisions
        .iter()
        .filter(|decision| !decision.is_kept())
        .map(|decision| decision.artifact.id)
        .collect();
    let mut holders: BTreeMap<ArtifactId, Vec<Reason>> = BTreeMap::new();
    for decision in decisions.iter().filter(|decision| !decision.is_kept()) {
        holders.insert(decision.artifact.id, holding(snapshot, &decision.artifact, ignores_links)?);
    }
    loop {
        let before = removed.len();
        for decision in decisions.iter_mut().filter(|decision| !decision.is_kept()) {
            let reasons = holders.get(&decision.artifact.id).map(Vec::as_slice).unwrap_or_default();
            if let Some(reason) = reasons.iter().find(|reason| is_kept(reason, &removed)) {
                removed.remove(&decision.artifact.id);
                decision.reasons.push(reason.clone());
            }
        }
        if removed.len() == before {
            return Ok(());
        }
    }
}

/// What would keep an artifact if it is kept itself.
fn holding(snapshot: &Snapshot<'_>, artifact: &ArtifactRow, ignores_links: bool) -> Result<Vec<Reason>> {
    let containers = snapshot.holders_of_bytes(artifact.id)?.into_iter();
    let mut reasons: Vec<Reason> =
        containers.map(|container| Reason::Contained(Box::new(container))).collect();
    if !ignores_links {
        let links = query::holders(snapshot, artifact)?.into_iter();
        reasons.extend(links.map(|link| Reason::Linked(Box::new(link))));
    }
    Ok(reasons)
}

/// Whether the artifact that holds another one for this reason stays.
fn is_kept(reason: &Reason, removed: &BTreeSet<ArtifactId>) -> bool {
    let holder = match reason {
        Reason::Contained(container) => Some(container.id),
        Reason::Linked(link) => match &link.target {
            LinkTarget::Artifact(artifact) => Some(artifact.id),
            _ => None,
        },
        _ => None,
    };
    holder.is_some_and(|holder| !removed.contains(&holder))
}

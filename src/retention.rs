//! Which artifacts to keep, by rules.
//!
//! The rules are those of backup programs: artifacts are divided into groups, and an artifact is kept if any rule says so
//! within its group. What is pinned is kept, and what something else that is kept contains or links to.

mod held;
mod pattern;
mod period;

use std::collections::BTreeMap;

use chrono::{DateTime, Duration, Utc};

use crate::query::Link;
use crate::store::{ArtifactRow, Chronology, Head, Result, Snapshot, TimeBasis};

pub use pattern::{PatternError, TagPattern};
pub use period::{Period, Span};

use period::Choice;

/// Rules of what to keep.
#[derive(Clone, Debug)]
pub struct Policy {
    /// Keep this many of the newest of each group.
    pub keep_last: Option<usize>,
    /// Keep what is of a time within this length before now. If that cannot be computed, everything is.
    pub keep_within: Option<Duration>,
    /// Keep the newest of each of this many last periods of which there are any, and the oldest of a group as long as there
    /// are fewer.
    pub keep_periods: Vec<(Period, usize)>,
    /// Keep what has a tag that matches one of these.
    pub keep_tags: Vec<TagPattern>,
    /// The time that counts. What has no such time is kept.
    pub by: TimeBasis,
    /// What artifacts of one group have in common. Without any, all artifacts are one group.
    pub group_by: Vec<GroupKey>,
    /// Look at artifacts of these kinds; of all if none is named. Others are kept and are not in the plan.
    pub kinds: Vec<String>,
    /// Remove even what something else that is kept links to. What has its bytes in something that is kept stays all the same.
    pub ignores_links: bool,
}

impl Default for Policy {
    /// A policy without rules, which goes by the time when artifacts were last seen, with a group for each kind.
    fn default() -> Self {
        Self {
            keep_last: None,
            keep_within: None,
            keep_periods: Vec::new(),
            keep_tags: Vec::new(),
            by: TimeBasis::default(),
            group_by: vec![GroupKey::Kind],
            kinds: Vec::new(),
            ignores_links: false,
        }
    }
}

/// What artifacts of one group have in common.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GroupKey {
    /// Their kind.
    Kind,
    /// All values of the attribute of this name, or that they have none.
    Attribute(String),
}

/// Which group an artifact is in: for each key of the policy its name and the values.
pub type Group = Vec<(String, Vec<String>)>;

/// Why an artifact is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    /// It is among so many of the newest.
    Last(usize),
    /// It is of a time within this length before now.
    Within(Duration),
    /// It is the newest of this span.
    Newest(Span),
    /// It is the oldest of its group, and there are fewer spans than are to be kept.
    Oldest(Span),
    /// It has a tag that matches.
    Tag {
        /// The rule.
        pattern: TagPattern,
        /// The tag.
        tag: String,
    },
    /// It is pinned.
    Pinned,
    /// The policy goes by a time that it does not have: it states no time of creation.
    Undated,
    /// Something that is kept has its bytes, as a pack has those of its session: they would not be gone.
    Contained(Box<ArtifactRow>),
    /// Something that is kept links to it.
    Linked(Box<Link>),
}

/// Why a rule does not keep an artifact.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Miss {
    /// It is not among so many of the newest.
    Last(usize),
    /// It is older than this.
    Within(Duration),
    /// A newer one of this span is kept.
    Superseded(Span),
    /// It is older than so many periods of which one is kept.
    TooOld(Period, usize),
    /// It has no tag that matches.
    Tag,
}

/// What becomes of an artifact.
#[derive(Clone, Debug)]
pub struct Decision {
    /// The artifact.
    pub artifact: ArtifactRow,
    /// The group that it was judged in.
    pub group: Group,
    /// The time that counts, if it has one.
    pub at: Option<DateTime<Utc>>,
    /// The size of its captures in bytes.
    pub size: u64,
    /// Why it is kept; it is to be removed if there is no reason.
    pub reasons: Vec<Reason>,
    /// Why rules do not keep it.
    pub misses: Vec<Miss>,
}

impl Decision {
    /// Whether it is kept.
    #[must_use]
    pub fn is_kept(&self) -> bool {
        !self.reasons.is_empty()
    }
}

/// What a policy says of every artifact of the kinds that it is about.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The policy.
    pub policy: Policy,
    /// When it was made. Ages are counted from then.
    pub now: DateTime<Utc>,
    /// The journal's head then.
    pub head: Head,
    /// The decisions, by group, newest first.
    pub decisions: Vec<Decision>,
}

/// How many artifacts of a kind would be removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Share {
    /// The kind.
    pub kind: String,
    /// How many would be removed.
    pub removed: u64,
    /// How many there are.
    pub total: u64,
}

impl Plan {
    /// Applies `policy` to the artifacts of a snapshot at the time `now`.
    ///
    /// # Errors
    /// Returns an error if the database cannot be read.
    pub fn new(snapshot: &Snapshot<'_>, policy: Policy, now: DateTime<Utc>) -> Result<Self> {
        let times = snapshot.chronology(policy.by)?;
        let mut groups: BTreeMap<Group, Vec<ArtifactRow>> = BTreeMap::new();
        for artifact in snapshot.artifacts(None)? {
            if policy.kinds.is_empty() || policy.kinds.contains(&artifact.kind) {
                groups.entry(group(snapshot, &policy, &artifact)?).or_default().push(artifact);
            }
        }
        let mut decisions = Vec::new();
        for (group, mut artifacts) in groups {
            artifacts.sort_by(|one, other| times.newest_first(one, other));
            decide(snapshot, (&policy, now), &times, (group, artifacts), &mut decisions)?;
        }
        held::keep_held(snapshot, &mut decisions, policy.ignores_links)?;
        Ok(Self { policy, now, head: snapshot.journal_head()?, decisions })
    }

    /// The artifacts that would be removed.
    pub fn removed(&self) -> impl Iterator<Item = &Decision> {
        self.decisions.iter().filter(|decision| !decision.is_kept())
    }

    /// How many artifacts of each kind would be removed, by kind.
    #[must_use]
    pub fn shares(&self) -> Vec<Share> {
        let mut shares: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
        for decision in &self.decisions {
            let (removed, total) = shares.entry(&decision.artifact.kind).or_default();
            *removed += u64::from(!decision.is_kept());
            *total += 1;
        }
        let share = |(kind, (removed, total)): (&str, _)| Share { kind: kind.to_owned(), removed, total };
        shares.into_iter().map(share).collect()
    }
}

/// The group that an artifact is in.
fn group(snapshot: &Snapshot<'_>, policy: &Policy, artifact: &ArtifactRow) -> Result<Group> {
    let has_attributes = policy.group_by.iter().any(|key| *key != GroupKey::Kind);
    let attributes = if has_attributes { snapshot.attributes(artifact.id)? } else { Vec::new() };
    let values = |key: &GroupKey| match key {
        GroupKey::Kind => ("kind".to_owned(), vec![artifact.kind.clone()]),
        GroupKey::Attribute(name) => {
            let values = attributes.iter().filter(|(other, _)| other == name);
            (name.clone(), values.map(|(_, value)| value.clone()).collect())
        }
    };
    Ok(policy.group_by.iter().map(values).collect())
}

/// Decides on the artifacts of a group, which are newest first.
fn decide(
    snapshot: &Snapshot<'_>,
    (policy, now): (&Policy, DateTime<Utc>),
    times: &Chronology,
    (group, artifacts): (Group, Vec<ArtifactRow>),
    decisions: &mut Vec<Decision>,
) -> Result<()> {
    let dated: Vec<DateTime<Utc>> = artifacts.iter().filter_map(|artifact| times.time(artifact)).collect();
    // Those without a time come last.
    let mut verdicts = policy.by_time(&dated, now).into_iter();
    for artifact in artifacts {
        let at = times.time(&artifact);
        let undated = || Verdict { reasons: vec![Reason::Undated], misses: Vec::new() };
        let Verdict { mut reasons, mut misses } = verdicts.next().unwrap_or_else(undated);
        let tagged = policy.by_tag(snapshot, &artifact)?;
        if tagged.is_empty() && !policy.keep_tags.is_empty() {
            misses.push(Miss::Tag);
        }
        reasons.extend(tagged);
        if snapshot.pin_of(artifact.id)?.is_some() {
            reasons.push(Reason::Pinned);
        }
        let size = snapshot.captures(artifact.id)?.iter().map(|capture| capture.size).sum();
        decisions.push(Decision { artifact, group: group.clone(), at, size, reasons, misses });
    }
    Ok(())
}

/// What the rules for times say of an artifact.
#[derive(Clone, Default)]
struct Verdict {
    reasons: Vec<Reason>,
    misses: Vec<Miss>,
}

impl Verdict {
    fn add(&mut self, is_kept: bool, reason: Reason, miss: Miss) {
        if is_kept { self.reasons.push(reason) } else { self.misses.push(miss) }
    }
}

impl Policy {
    /// Whether a rule can keep anything. A policy that keeps the last 0 says that nothing is to be kept, and counts as one.
    #[must_use]
    pub fn keeps_something(&self) -> bool {
        self.keep_last.is_some()
            || self.keep_within.is_some_and(|within| within > Duration::zero())
            || self.keep_periods.iter().any(|(_, count)| *count > 0)
            || !self.keep_tags.is_empty()
    }

    /// What the rules for times say of the artifacts of a group that have these times, newest first.
    fn by_time(&self, times: &[DateTime<Utc>], now: DateTime<Utc>) -> Vec<Verdict> {
        let mut verdicts = vec![Verdict::default(); times.len()];
        if let Some(last) = self.keep_last {
            for (age, verdict) in verdicts.iter_mut().enumerate() {
                verdict.add(age < last, Reason::Last(last), Miss::Last(last));
            }
        }
        if let Some(within) = self.keep_within {
            // What is before all time has everything after it.
            let since = now.checked_sub_signed(within);
            for (verdict, time) in verdicts.iter_mut().zip(times) {
                let is_kept = since.is_none_or(|since| *time >= since);
                verdict.add(is_kept, Reason::Within(within), Miss::Within(within));
            }
        }
        for (period, count) in &self.keep_periods {
            for (verdict, choice) in verdicts.iter_mut().zip(period.choose(times, *count)) {
                match choice {
                    Choice::Newest(span) => verdict.reasons.push(Reason::Newest(span)),
                    Choice::Oldest(span) => verdict.reasons.push(Reason::Oldest(span)),
                    Choice::Superseded(span) => verdict.misses.push(Miss::Superseded(span)),
                    Choice::TooOld => verdict.misses.push(Miss::TooOld(*period, *count)),
                }
            }
        }
        verdicts
    }

    /// Why its tags keep an artifact.
    pub(crate) fn by_tag(&self, snapshot: &Snapshot<'_>, artifact: &ArtifactRow) -> Result<Vec<Reason>> {
        if self.keep_tags.is_empty() {
            return Ok(Vec::new());
        }
        let reason = |tag: String| {
            let pattern = self.keep_tags.iter().find(|pattern| pattern.matches(&tag))?.clone();
            Some(Reason::Tag { pattern, tag })
        };
        Ok(snapshot.tags(Some(artifact.id))?.into_iter().filter_map(|tag| reason(tag.name)).collect())
    }
}

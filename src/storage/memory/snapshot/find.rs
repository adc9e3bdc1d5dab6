//! Filters, orders and pages.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, NaiveDate, Utc};

use super::super::state::{MemoryArtifact, MemoryState};
use super::MemorySnapshot;
use super::references::record;
use crate::digest::CoreHash;
use crate::storage::interface::{
    Condition, Cursor, Filter, FindQueries, Hit, HitPage, Match, Order, Page, ValueCount, ValueCounts,
    sort_mentions_by_artifact,
};
use crate::storage::{Result, TimeBasis};

/// The key by which results are ordered. What an order does not compare is the same in all keys. `None` comes before
/// any time, so that reversed it comes last.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct SortKey {
    kind: Option<String>,
    time: Reverse<Option<DateTime<Utc>>>,
    number: Reverse<Option<i64>>,
    position: Reverse<u64>,
    core: CoreHash,
}

impl SortKey {
    /// Returns the key of the item that `cursor` describes.
    fn new(order: Order, cursor: &Cursor) -> Self {
        let Cursor { kind, time, number, position, core } = cursor.clone();
        let (no_time, no_number) = (Reverse(None), Reverse(None));
        let (kind, time, number, position) = match order {
            Order::Newest(TimeBasis::LastSeen) => (None, no_time, no_number, position),
            Order::Newest(_) => (None, Reverse(time), no_number, position),
            Order::Largest(_) => (None, no_time, Reverse(number), position),
            Order::Core => (None, no_time, no_number, 0),
            Order::Kind => (kind, no_time, no_number, position),
        };
        Self { kind, time, number, position: Reverse(position), core }
    }
}

/// Returns the cursor that describes an artifact.
fn cursor(artifact: &MemoryArtifact, order: Order) -> Cursor {
    let core = artifact.core;
    match order {
        Order::Newest(basis) => {
            let is_addition = basis == TimeBasis::FirstSeen;
            let position = if is_addition { artifact.addition } else { artifact.arrival };
            Cursor { kind: None, time: artifact.time(basis), number: None, position, core }
        }
        Order::Largest(name) => {
            Cursor { kind: None, time: None, number: artifact.number(name), position: artifact.arrival, core }
        }
        Order::Core => Cursor { kind: None, time: None, number: None, position: 0, core },
        Order::Kind => {
            let kind = Some(artifact.kind.name().to_owned());
            Cursor { kind, time: None, number: None, position: artifact.arrival, core }
        }
    }
}

impl FindQueries for MemorySnapshot {
    fn find(&self, filter: &Filter, order: Order, page: &Page) -> Result<HitPage<Hit>> {
        let after = page.after.as_ref().map(|after| SortKey::new(order, after));
        let found = self.0.matching(filter).into_iter().map(|(artifact, matches)| {
            let cursor = cursor(artifact, order);
            let hit = Hit { artifact: artifact.record(), matches };
            (SortKey::new(order, &cursor), cursor, hit)
        });
        let mut found: Vec<_> = found.filter(|(key, ..)| Some(key) > after.as_ref()).collect();
        found.sort_by(|(one, ..), (other, ..)| one.cmp(other));
        let is_more = found.len() > page.limit;
        found.truncate(page.limit);
        let next = found.last().filter(|_| is_more).map(|(_, cursor, _)| cursor.clone());
        Ok(HitPage { items: found.into_iter().map(|(_, _, hit)| hit).collect(), next })
    }

    fn count(&self, filter: &Filter) -> Result<u64> {
        Ok(self.0.matching(filter).len() as u64)
    }

    fn count_by_day(&self, filter: &Filter, by: TimeBasis) -> Result<Vec<(NaiveDate, u64)>> {
        let mut counts: BTreeMap<NaiveDate, u64> = BTreeMap::new();
        for (artifact, _) in self.0.matching(filter) {
            if let Some(at) = artifact.time(by) {
                *counts.entry(at.date_naive()).or_default() += 1;
            }
        }
        Ok(counts.into_iter().collect())
    }

    fn count_by_value(&self, filter: &Filter, attributes: &[String]) -> Result<ValueCounts> {
        let (mut of_attributes, mut labels) = (BTreeMap::new(), BTreeMap::new());
        for (artifact, _) in self.0.matching(filter) {
            for attribute in artifact.attributes().into_iter().filter(|it| attributes.contains(&it.name)) {
                *of_attributes.entry((attribute.name.clone(), attribute.value.clone())).or_default() += 1;
            }
            for label in self.0.labels_of(artifact.core) {
                *labels.entry((label.key, label.value)).or_default() += 1;
            }
        }
        let count = |((name, value), artifacts)| ValueCount { name, value, artifacts };
        Ok(ValueCounts {
            attributes: of_attributes.into_iter().map(count).collect(),
            labels: labels.into_iter().map(count).collect(),
        })
    }

    fn not_alone(&self, filter: &Filter, containers: &[String]) -> Result<Vec<CoreHash>> {
        let is_container =
            |artifact: &MemoryArtifact| containers.iter().any(|kind| kind == artifact.kind.name());
        let has_containers = self.0.all().any(is_container);
        let is_related = |artifact: &MemoryArtifact| {
            let names: BTreeSet<String> = artifact.names_used().collect();
            let mut others = self.0.all().filter(|other| other.core != artifact.core);
            is_container(artifact)
                || has_containers && artifact.identified_by().len() != 1
                || others.any(|other| other.names_used().any(|name| names.contains(&name)))
        };
        let matching = self.0.matching(filter).into_iter().filter(|(artifact, _)| is_related(artifact));
        Ok(matching.map(|(artifact, _)| artifact.core).collect())
    }
}

impl MemoryState {
    /// Returns all artifacts that match, by core hash, with their matches.
    pub(super) fn matching(&self, filter: &Filter) -> Vec<(&MemoryArtifact, Vec<Match>)> {
        let artifacts = self.all().filter(|artifact| {
            (filter.kinds.is_empty() || filter.kinds.iter().any(|kind| kind == artifact.kind.name()))
                && filter.period.is_none_or(|period| artifact.is_within(&period))
                && filter.digits.as_ref().is_none_or(|digits| artifact.core.0.hex().starts_with(digits))
                && filter.among.as_ref().is_none_or(|among| among.contains(&artifact.core))
        });
        let matches = |artifact| Some((artifact, self.matches_of_all(artifact, filter)?));
        artifacts.filter_map(matches).collect()
    }

    /// Returns the matches of an artifact, or `None` if it does not match one of the conditions.
    fn matches_of_all(&self, artifact: &MemoryArtifact, filter: &Filter) -> Option<Vec<Match>> {
        let mut all = Vec::new();
        for condition in &filter.conditions {
            let mut found: Vec<Match> = Vec::new();
            if filter.through_members {
                let is_part =
                    |other: &&MemoryArtifact| other.core == artifact.core || artifact.contains(other.core);
                self.all().filter(is_part).for_each(|part| found.append(&mut self.matches(part, condition)));
            } else {
                found.append(&mut self.matches(artifact, condition));
            }
            if found.is_empty() {
                return None;
            }
            all.append(&mut found);
        }
        Some(all)
    }

    /// Returns the matches of an artifact itself.
    fn matches(&self, artifact: &MemoryArtifact, condition: &Condition) -> Vec<Match> {
        match condition {
            Condition::Mention { group, digest } => {
                let mut mentions = artifact.mentions().into_iter().collect::<Vec<_>>();
                mentions.retain(|mention| mention.digest == *digest);
                mentions.retain(|mention| group.as_deref().is_none_or(|group| mention.role.group == group));
                let mut mentions: Vec<_> =
                    mentions.into_iter().map(|mention| record(artifact.core, mention)).collect();
                sort_mentions_by_artifact(&mut mentions);
                mentions.into_iter().map(Match::Mention).collect()
            }
            Condition::About { digest } => {
                let has_capture = || artifact.captures.iter().any(|capture| capture.capture.0 == *digest);
                let is_own = artifact.core.0 == *digest || has_capture();
                let mention = Condition::Mention { group: None, digest: *digest };
                let own = is_own.then_some(Match::Hash(*digest)).into_iter();
                own.chain(self.matches(artifact, &mention)).collect()
            }
            Condition::AttributeLike { .. } | Condition::Attribute { .. } | Condition::Range { .. } => {
                condition.matches_of_attributes(artifact.attributes().into_iter().cloned().collect())
            }
            Condition::Signature { .. } => {
                let captures = artifact.captures.iter().map(|capture| capture.record(artifact.core));
                condition.matches_of_captures(captures.collect())
            }
            Condition::Note { .. }
            | Condition::Tagged { .. }
            | Condition::Label { .. }
            | Condition::LabelLike { .. }
            | Condition::Pinned => condition.matches_of_annotations(self.annotations_of(artifact.core)),
        }
    }
}

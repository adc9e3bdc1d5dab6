//! Filters, orders and pages.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, NaiveDate, Utc};

use super::super::state::{MemoryArtifact, MemoryState};
use super::MemorySnapshot;
use super::mentions::record;
use crate::artifact::AttributeInfo;
use crate::digest::CoreHash;
use crate::storage::interface::{
    Condition, Cursor, Filter, FindQueries, Hit, HitPage, Match, Order, Page, RunCounts, RunValueCount,
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

    fn count_runs(&self, filter: &Filter, attributes: &[String], limit: usize) -> Result<RunCounts> {
        let matching: Vec<(&MemoryArtifact, CoreHash)> = self
            .0
            .matching(filter)
            .into_iter()
            .map(|(artifact, _)| (artifact, self.0.run_of(artifact)))
            .collect();
        let different = |runs: &mut dyn Iterator<Item = CoreHash>| runs.collect::<BTreeSet<_>>().len() as u64;
        let with_errors = |is_counted: fn(i64) -> bool| {
            let states = |artifact: &MemoryArtifact| {
                let attributes = artifact.attributes();
                let mut errors = attributes.iter().filter(|it| it.name == AttributeInfo::ERRORS.name);
                errors.any(|errors| errors.number.is_some_and(is_counted))
            };
            different(&mut matching.iter().filter(|(artifact, _)| states(artifact)).map(|(_, run)| *run))
        };
        let attribute = |artifact: &MemoryArtifact| -> Vec<(String, String)> {
            let all =
                artifact.attributes().into_iter().filter(|attribute| attributes.contains(&attribute.name));
            all.map(|attribute| (attribute.name.clone(), attribute.value.clone())).collect()
        };
        let label = |artifact: &MemoryArtifact| -> Vec<(String, String)> {
            self.0.labels_of(artifact.core).into_iter().map(|label| (label.key, label.value)).collect()
        };
        let mut counts = RunCounts {
            runs: different(&mut matching.iter().map(|(_, run)| *run)),
            failures: with_errors(|errors| errors > 0),
            successes: with_errors(|errors| errors == 0),
            attributes: values_of_runs(&matching, &attribute),
            labels: values_of_runs(&matching, &label),
        };
        counts.sort();
        let mut of_name: BTreeMap<String, usize> = BTreeMap::new();
        counts.attributes.retain(|count| {
            let place = of_name.entry(count.name.clone()).or_default();
            *place += 1;
            *place <= limit
        });
        counts.labels.truncate(limit);
        Ok(counts)
    }
}

/// Returns the number of runs with each of the pairs of their artifacts.
fn values_of_runs(
    matching: &[(&MemoryArtifact, CoreHash)],
    pairs: &dyn Fn(&MemoryArtifact) -> Vec<(String, String)>,
) -> Vec<RunValueCount> {
    let mut runs: BTreeMap<(String, String), BTreeSet<CoreHash>> = BTreeMap::new();
    for (artifact, run) in matching {
        for pair in pairs(artifact) {
            runs.entry(pair).or_default().insert(*run);
        }
    }
    let count = |((name, value), runs): ((String, String), BTreeSet<CoreHash>)| RunValueCount {
        name,
        value,
        runs: runs.len() as u64,
    };
    runs.into_iter().map(count).collect()
}

impl MemoryState {
    /// Returns the first artifact with the name of an artifact, or with one that it refers to, or itself.
    fn run_of(&self, artifact: &MemoryArtifact) -> CoreHash {
        let first = |names: &[&str]| {
            let named = self.all().filter(|other| names.iter().any(|name| other.has_name(name)));
            named.map(|other| other.core).min()
        };
        let own: Vec<&str> = artifact.identified_by().into_iter().collect();
        let references = artifact.refers_to();
        let others: Vec<&str> = references.iter().map(|mention| mention.handle.as_str()).collect();
        first(&own).or_else(|| first(&others)).unwrap_or(artifact.core)
    }

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

//! Filters, orders and pages.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use chrono::{DateTime, Utc};

use super::super::state::{MemoryArtifact, MemoryState};
use super::mentions::record;
use crate::artifact::SignatureName;
use crate::digest::CoreHash;
use crate::storage::TimeBasis;
use crate::storage::interface::{
    AttributeRecord, Condition, Cursor, Filter, Hit, HitPage, Match, Order, Page, matches_pattern,
    sort_mentions_by_artifact,
};

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

impl MemoryState {
    /// Returns a page of the artifacts that match.
    pub(super) fn find(&self, filter: &Filter, order: Order, page: &Page) -> HitPage<Hit> {
        let after = page.after.as_ref().map(|after| SortKey::new(order, after));
        let found = self.matching(filter).into_iter().map(|(artifact, matches)| {
            let cursor = cursor(artifact, order);
            let hit = Hit { artifact: artifact.record(), matches };
            (SortKey::new(order, &cursor), cursor, hit)
        });
        let mut found: Vec<_> = found.filter(|(key, ..)| Some(key) > after.as_ref()).collect();
        found.sort_by(|(one, ..), (other, ..)| one.cmp(other));
        let is_more = found.len() > page.limit;
        found.truncate(page.limit);
        let next = found.last().filter(|_| is_more).map(|(_, cursor, _)| cursor.clone());
        HitPage { items: found.into_iter().map(|(_, _, hit)| hit).collect(), next }
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
            for other in self.all() {
                let is_member = filter.through_members && artifact.contains(other.core);
                if other.core == artifact.core || is_member {
                    found.append(&mut self.matches(other, condition));
                }
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
            Condition::AttributeLike { name, pattern } => {
                let attributes = artifact.attributes().into_iter().filter(|known| known.name == *name);
                let values: BTreeSet<String> = attributes.map(|known| known.value.clone()).collect();
                let values = values.into_iter().filter(|value| matches_pattern(pattern, value));
                values.map(|value| Match::Attribute { name: name.clone(), value }).collect()
            }
            Condition::Attribute { name, value } => {
                let is_match = artifact.has_attribute(name, value);
                let matched = || Match::Attribute { name: name.clone(), value: value.clone() };
                is_match.then(matched).into_iter().collect()
            }
            Condition::Range { name, least, most } => {
                let attributes = artifact.attributes().into_iter().filter(|known| known.name == *name);
                let is_within = |number: i64| {
                    least.is_none_or(|least| number >= least) && most.is_none_or(|most| number <= most)
                };
                let within = attributes.filter(|known| known.number.is_some_and(is_within));
                let mut within: Vec<_> = within.collect();
                within.sort_unstable_by_key(|known| known.number);
                let matched = |known: &AttributeRecord| Match::Attribute {
                    name: known.name.clone(),
                    value: known.value.clone(),
                };
                within.into_iter().map(matched).collect()
            }
            Condition::Signature { state: SignatureName::Unsigned, .. } => {
                let is_match = artifact.captures.iter().any(|capture| capture.signature.is_none());
                is_match.then_some(Match::Unsigned).into_iter().collect()
            }
            Condition::Signature { state, key_id } => {
                let captures = artifact.captures.iter().filter_map(|capture| {
                    let signature = capture.signature.clone()?;
                    let is_match = SignatureName::from(Some(signature.state)) == *state
                        && (key_id.is_none() || signature.key_id == *key_id);
                    is_match.then_some(Match::Signature { capture: capture.capture, signature })
                });
                captures.collect()
            }
            Condition::Note { text } => {
                let note = self.notes.get(&artifact.core).map(|note| note.text.clone());
                let note = note.filter(|note| note.to_lowercase().contains(&text.to_lowercase()));
                note.map(Match::Note).into_iter().collect()
            }
            Condition::Tagged { name } => {
                let tags = self.tags_of(artifact.core).into_iter().map(|tag| tag.name);
                tags.filter(|tag| name.as_ref().is_none_or(|name| name == tag)).map(Match::Tag).collect()
            }
            Condition::Label { key, value } => {
                let labels = self.labels_of(artifact.core).into_iter().filter(|label| label.key == *key);
                let labels = labels.filter(|label| value.as_ref().is_none_or(|value| *value == label.value));
                labels.map(|label| Match::Label { key: label.key, value: label.value }).collect()
            }
            Condition::LabelLike { key, pattern } => {
                let labels = self.labels_of(artifact.core).into_iter().filter(|label| label.key == *key);
                let labels = labels.filter(|label| matches_pattern(pattern, &label.value));
                labels.map(|label| Match::Label { key: label.key, value: label.value }).collect()
            }
            Condition::Pinned => {
                self.pins.contains_key(&artifact.core).then_some(Match::Pinned).into_iter().collect()
            }
        }
    }
}

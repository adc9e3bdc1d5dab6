//! Filters, orders and pages, the matches of what is recorded about an artifact, and the order of the lists that engines
//! return: all of them give the same answers.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::records::{
    Annotations, ArtifactRecord, AttributeRecord, CaptureRecord, MentionRecord, ReferenceEdge,
    UnresolvedReference, UnresolvedTarget,
};
use crate::artifact::{Signature, SignatureName};
use crate::digest::{CaptureHash, CoreHash, Digest};
use crate::storage::TimeBasis;

/// The direction of an edge, seen from an artifact.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Direction {
    /// From the artifact to another.
    Out,
    /// From another to the artifact.
    In,
}

/// A filter of artifacts. Everything given must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// The names of the kinds; any if empty.
    pub kinds: Vec<String>,
    /// The conditions.
    pub conditions: Vec<Condition>,
    /// Whether an artifact also matches a condition if an artifact that it contains does, such as the session of a
    /// pack.
    pub through_members: bool,
    /// The period of one of the artifact's times. Artifacts without that time do not match.
    pub period: Option<TimePeriod>,
    /// The digits with which the core hash begins, in lowercase.
    pub digits: Option<String>,
    /// The only artifacts that can match; any if `None`.
    pub among: Option<Vec<CoreHash>>,
}

/// A period of one of the times of an artifact.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimePeriod {
    /// The time.
    pub basis: TimeBasis,
    /// The beginning, inclusive.
    pub since: Option<DateTime<Utc>>,
    /// The end, exclusive.
    pub until: Option<DateTime<Utc>>,
}

/// A condition on artifacts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = FindCondition)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub enum Condition {
    /// The artifact mentions this digest.
    Mention {
        /// The group of the role, such as `prompt`; any if there is none.
        group: Option<String>,
        /// The digest.
        digest: Digest,
    },
    /// The artifact has this core hash or a capture with this hash, or mentions it in any role.
    About {
        /// The hash.
        digest: Digest,
    },
    /// The artifact has this attribute.
    Attribute {
        /// The name.
        name: String,
        /// The value.
        value: String,
    },
    /// The artifact has this attribute, with a value that matches a pattern.
    AttributeLike {
        /// The name.
        name: String,
        /// The pattern, in which `*` stands for any text, also none.
        pattern: String,
    },
    /// The artifact has this attribute, with a value in this range. Numbers are in the unit of the attribute:
    /// milliseconds of durations, milliseconds since 1970 of times, millionths of amounts.
    Range {
        /// The name.
        name: String,
        /// The smallest number; any if there is none.
        least: Option<i64>,
        /// The largest number; any if there is none.
        most: Option<i64>,
    },
    /// The artifact has a capture whose signature has this state.
    Signature {
        /// The state.
        state: SignatureName,
        /// The key id that the capture states; any if there is none.
        key_id: Option<String>,
    },
    /// The artifact has a note that contains this text, ignoring case.
    Note {
        /// The text; every note contains an empty text.
        text: String,
    },
    /// The artifact has a tag.
    Tagged {
        /// The tag; any if there is none.
        name: Option<String>,
    },
    /// The artifact is pinned.
    Pinned,
    /// The artifact has a label.
    Label {
        /// The key.
        key: String,
        /// The value; any if there is none.
        value: Option<String>,
    },
    /// The artifact has a label with a value that matches a pattern.
    LabelLike {
        /// The key.
        key: String,
        /// The pattern, in which `*` stands for any text, also none.
        pattern: String,
    },
}

/// Returns whether a text matches a pattern, in which `*` stands for any text, also none.
#[must_use]
pub fn matches_pattern(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = parts.next().and_then(|first| text.strip_prefix(first)) else { return false };
    let mut parts: Vec<&str> = parts.collect();
    let Some(last) = parts.pop() else { return rest.is_empty() };
    for part in parts {
        let Some((_, after)) = rest.split_once(part) else { return false };
        rest = after;
    }
    rest.ends_with(last)
}

/// A matching artifact.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hit {
    /// The artifact.
    pub artifact: ArtifactRecord,
    /// The matches, in the order of the conditions; those of one condition by artifact (which may be a member), role
    /// and place.
    pub matches: Vec<Match>,
}

/// A match of a condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Match {
    /// A mention.
    Mention(MentionRecord),
    /// The core hash, or the hash of a capture.
    Hash(Digest),
    /// An attribute.
    Attribute {
        /// The name.
        name: String,
        /// The value.
        value: String,
    },
    /// A signed capture.
    Signature {
        /// The capture.
        capture: CaptureHash,
        /// The state of its signature.
        signature: Signature,
    },
    /// The artifact has an unsigned capture.
    Unsigned,
    /// The full text of the note.
    Note(String),
    /// A tag.
    Tag(String),
    /// The artifact is pinned.
    Pinned,
    /// A label.
    Label {
        /// The key.
        key: String,
        /// The value.
        value: String,
    },
}

/// The order of results. It is total: equal keys are ordered as documented, and last by core hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Newest first by this time, those without it last. Equal times are ordered by the journal, later first: by first
    /// addition for [`TimeBasis::FirstSeen`], by arrival otherwise. For [`TimeBasis::LastSeen`] arrival alone decides.
    Newest(TimeBasis),
    /// By the number of this attribute, the largest first, and artifacts without it last. Of several numbers of an
    /// artifact, the largest counts. Equal numbers are ordered by arrival, later first.
    Largest(&'static str),
    /// By core hash.
    Core,
    /// By kind, then by arrival, newest first.
    Kind,
}

impl Default for Order {
    /// Returns the order of the journal, newest first.
    fn default() -> Self {
        Self::Newest(TimeBasis::LastSeen)
    }
}

impl From<Condition> for Filter {
    /// Returns the filter of this condition only.
    fn from(condition: Condition) -> Self {
        Self { conditions: vec![condition], ..Self::default() }
    }
}

/// A part of a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// Maximum number of items.
    pub limit: usize,
    /// The item after which the page begins; the first page if `None`.
    pub after: Option<Cursor>,
}

impl Page {
    /// Returns the first page of up to `limit` items.
    #[must_use]
    pub fn first(limit: usize) -> Self {
        Self { limit, after: None }
    }

    /// Returns a page of all items.
    #[must_use]
    pub fn all() -> Self {
        Self::first(usize::MAX)
    }
}

/// The end of a page: where the next one begins. It stays valid if artifacts are added or removed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = FindCursor)]
#[serde(deny_unknown_fields)]
pub struct Cursor {
    /// The kind, if the order is by kind.
    pub kind: Option<String>,
    /// The time, if the order is by a time and the artifact has it.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub time: Option<DateTime<Utc>>,
    /// The number, if the order is by an attribute and the artifact has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub number: Option<i64>,
    /// The position among equals.
    // It is 0 if the order is by core hash.
    pub position: u64,
    /// The core hash.
    #[serde(rename = "core_hash")]
    pub core: CoreHash,
}

/// A page of a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HitPage<T> {
    /// The items.
    pub items: Vec<T>,
    /// Where the next page begins; `None` if this is the last.
    pub next: Option<Cursor>,
}

/// The numbers of artifacts with each of some values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ValueCounts {
    /// Of attributes, sorted by name and value.
    pub attributes: Vec<ValueCount>,
    /// Of labels, sorted by key and value.
    pub labels: Vec<ValueCount>,
}

/// The number of artifacts with a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ValueCount {
    /// The name of the attribute, or the key of the label.
    pub name: String,
    /// The value.
    pub value: String,
    /// Number of artifacts.
    pub artifacts: u64,
}

impl Condition {
    /// Returns the match of every artifact that matches the condition by itself, if all have the same one.
    pub(in crate::storage) fn certain_match(&self) -> Option<Match> {
        match self {
            Self::Attribute { name, value } => {
                Some(Match::Attribute { name: name.clone(), value: value.clone() })
            }
            Self::Label { key, value: Some(value) } => {
                Some(Match::Label { key: key.clone(), value: value.clone() })
            }
            Self::Tagged { name: Some(name) } => Some(Match::Tag(name.clone())),
            Self::Pinned => Some(Match::Pinned),
            Self::Signature { state: SignatureName::Unsigned, .. } => Some(Match::Unsigned),
            _ => None,
        }
    }

    /// Returns how the tags, the note, the pin and the labels of an artifact match the condition.
    pub(in crate::storage) fn matches_of_annotations(&self, of: Annotations) -> Vec<Match> {
        let labels = |of: Annotations, wanted: &str, is_match: &dyn Fn(&str) -> bool| {
            let labels = of.labels.into_iter().filter(|label| label.key == wanted && is_match(&label.value));
            labels.map(|label| Match::Label { key: label.key, value: label.value }).collect()
        };
        match self {
            Self::Note { text } => {
                let folded = text.to_lowercase();
                let note = of.note.filter(|note| note.text.to_lowercase().contains(&folded));
                note.map(|note| Match::Note(note.text)).into_iter().collect()
            }
            Self::Tagged { name } => {
                let tags = of.tags.into_iter().map(|tag| tag.name);
                tags.filter(|tag| name.as_ref().is_none_or(|name| name == tag)).map(Match::Tag).collect()
            }
            Self::Pinned => of.pin.map(|_| Match::Pinned).into_iter().collect(),
            Self::Label { key, value } => {
                labels(of, key, &|found| value.as_ref().is_none_or(|value| value == found))
            }
            Self::LabelLike { key, pattern } => labels(of, key, &|found| matches_pattern(pattern, found)),
            _ => Vec::new(),
        }
    }

    /// Returns how the attributes of an artifact, which are sorted by name and value, match the condition.
    pub(in crate::storage) fn matches_of_attributes(&self, mut of: Vec<AttributeRecord>) -> Vec<Match> {
        match self {
            Self::Attribute { name, value } => {
                of.retain(|found| found.name == *name && found.value == *value);
                of.truncate(1);
            }
            Self::AttributeLike { name, pattern } => {
                of.retain(|found| found.name == *name && matches_pattern(pattern, &found.value));
                of.dedup_by(|one, other| one.value == other.value);
            }
            Self::Range { name, least, most } => {
                let is_within = |number: i64| {
                    least.is_none_or(|least| number >= least) && most.is_none_or(|most| number <= most)
                };
                of.retain(|found| found.name == *name && found.number.is_some_and(is_within));
                of.sort_by_key(|found| found.number);
            }
            _ => of.clear(),
        }
        of.into_iter().map(|found| Match::Attribute { name: found.name, value: found.value }).collect()
    }

    /// Returns how the signatures of the captures of an artifact match the condition.
    pub(in crate::storage) fn matches_of_captures(&self, of: Vec<CaptureRecord>) -> Vec<Match> {
        let Self::Signature { state, key_id } = self else { return Vec::new() };
        let mut matches: Vec<Match> = Vec::new();
        for CaptureRecord { capture, signature, .. } in of {
            if *state != SignatureName::from(signature.as_ref().map(|signature| signature.state)) {
                continue;
            }
            match signature {
                Some(signature) if key_id.is_none() || signature.key_id == *key_id => {
                    matches.push(Match::Signature { capture, signature });
                }
                None if matches.is_empty() => matches.push(Match::Unsigned),
                _ => {}
            }
        }
        matches
    }
}

/// Sorts the mentions of one artifact by place, role and digest.
pub(in crate::storage) fn sort_mentions(mentions: &mut [MentionRecord]) {
    mentions.sort_by(|one, other| {
        (&one.place, &one.role, one.digest).cmp(&(&other.place, &other.role, other.digest))
    });
}

/// Sorts the mentions of one digest by artifact, role and place.
pub(in crate::storage) fn sort_mentions_by_artifact(mentions: &mut [MentionRecord]) {
    mentions.sort_by(|one, other| {
        (one.artifact, &one.role, &one.place).cmp(&(other.artifact, &other.role, &other.place))
    });
}

/// Sorts the references from one artifact, or to it, by relation, the artifact at the other end, place and role.
pub(in crate::storage) fn sort_references(edges: &mut [ReferenceEdge], direction: Direction) {
    edges.sort_by(|one, other| {
        let end = |edge: &ReferenceEdge| match direction {
            Direction::Out => edge.mention.digest,
            Direction::In => edge.mention.artifact.0,
        };
        let ends = end(one).cmp(&end(other));
        let places =
            (&one.mention.place, &one.mention.role).cmp(&(&other.mention.place, &other.mention.role));
        one.relation.cmp(&other.relation).then(ends).then(places)
    });
}

/// Sorts references by what is missing, the referring artifact, place, role and relation.
pub(in crate::storage) fn sort_unresolved(references: &mut [UnresolvedReference]) {
    references.sort_by(|one, other| {
        (&one.missing, one.artifact, &one.place, &one.role, &one.relation).cmp(&(
            &other.missing,
            other.artifact,
            &other.place,
            &other.role,
            &other.relation,
        ))
    });
}

/// Returns the references of `sorted` to its first `limit` targets after `after`.
pub(in crate::storage) fn page_of_unresolved(
    mut sorted: Vec<UnresolvedReference>,
    after: Option<&UnresolvedTarget>,
    limit: usize,
) -> Vec<UnresolvedReference> {
    sorted.retain(|reference| after.is_none_or(|after| reference.missing > *after));
    let length = sorted.chunk_by(is_of_same_target).take(limit).map(<[_]>::len).sum();
    sorted.truncate(length);
    sorted
}

/// Returns the number of targets of sorted references.
pub(in crate::storage) fn count_targets(sorted: &[UnresolvedReference]) -> usize {
    sorted.chunk_by(is_of_same_target).count()
}

fn is_of_same_target(one: &UnresolvedReference, other: &UnresolvedReference) -> bool {
    one.missing == other.missing
}

#[cfg(test)]
mod tests {
    use super::matches_pattern;

    #[test]
    fn stars_stand_for_any_text() {
        for (pattern, matching, others) in [
            ("a", &["a"][..], &["", "aa", "b"][..]),
            ("*", &["", "a"], &[]),
            ("a*", &["a", "ab"], &["ba", ""]),
            ("*a", &["a", "ba", "aa"], &["ab"]),
            ("*é*", &["é", "aéb"], &["e"]),
            ("a*b*c", &["abc", "a-b-b-c"], &["ac", "abcd"]),
            ("a*a", &["aa", "aba"], &["a"]),
            ("%_", &["%_"], &["ab"]),
        ] {
            assert!(matching.iter().all(|text| matches_pattern(pattern, text)), "{pattern}");
            assert!(!others.iter().any(|text| matches_pattern(pattern, text)), "{pattern}");
        }
    }
}

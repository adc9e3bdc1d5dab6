//! Differences between two artifacts of a kind.
//!
//! A kind divides its artifacts into parts ([`Part`]), with an identity and less specific keys. This module aligns
//! them: first by identity, then by key, so that a part inserted in the middle does not make all later parts different.
//! Time and memory grow about linearly with the artifacts.
//!
//! ```
//! use runvault::artifact::MemberBytes;
//! use runvault::json::reader::Limits;
//! use runvault::formats;
//! use runvault::vault::diff;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let kind = formats::named("model_io").ok_or("no such kind")?;
//! let document = std::fs::read("examples/session.json")?;
//! let edited = String::from_utf8(document.clone())?.replace("\"bug\"", "\"question\"");
//! let parts = |bytes| kind.parts(&[MemberBytes { name: "model_io.json", bytes }]);
//! let diff = diff::compare(parts(&document)?, parts(edited.as_bytes())?);
//! let first = diff.changes(false).next().ok_or("they are the same")?;
//! assert_eq!(first.place(), "interaction 1");
//! assert_eq!(first.says, "same prompt, different response");
//! # Ok(())
//! # }
//! ```

mod align;
mod conversation;
mod request;
mod values;

use std::collections::{HashMap, HashSet};

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::artifact::Part;
use crate::digest::Digest;
use crate::json::{Value, pointer};

use align::align;

pub use align::{TextDiffSpan, words};
pub use conversation::{
    ComparedContent, ComparedMessage, ComparedPrompt, MessageComparison, compare_messages, compare_prompts,
};
pub use request::{
    ArtifactComparison, ComparedArtifact, ComparedSide, DiffAnswer, DiffExtent, DiffRequest, Side,
};
pub use values::ChangedValue;

/// The alignment of two artifacts.
#[derive(Debug)]
pub struct Diff<'d> {
    one: Vec<Part<'d>>,
    other: Vec<Part<'d>>,
    edits: Vec<PartEdit>,
}

/// The edit that produced a part, with the indices of the parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PartEdit {
    Same(usize, usize),
    Changed(usize, usize),
    Moved(usize, usize),
    Removed(usize),
    Inserted(usize),
}

/// The type of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum ChangeType {
    /// In both, with different content.
    Changed,
    /// In both, in different positions.
    Moved,
    /// Only in the first.
    Removed,
    /// Only in the second.
    Inserted,
    /// In both, with differences only in ephemeral values and in what the canonical form ignores.
    Ephemeral,
    /// In both, with differences only in what the canonical form ignores: line ends, digits of numbers, the order of
    /// some lists, depending on the kind.
    Spelling,
}

/// A difference between two artifacts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PartChange {
    /// The type.
    pub change: ChangeType,
    /// The part in the first artifact.
    pub one: Option<String>,
    /// The part in the second artifact.
    pub other: Option<String>,
    /// A description of the difference; empty if the type describes it.
    pub says: String,
    /// The values that differ; the whole part if only one of the artifacts has it.
    pub values: Vec<ChangedValue>,
}

impl PartChange {
    /// Returns the name of the part in the first artifact, or in the second if the first does not have it.
    #[must_use]
    pub fn place(&self) -> &str {
        self.one.as_deref().or(self.other.as_deref()).unwrap_or_default()
    }
}

/// Number of parts by type of change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Counts {
    /// In both and equal, or with only ephemeral differences.
    pub same: usize,
    /// In both, with different content.
    pub changed: usize,
    /// In both, in different positions.
    pub moved: usize,
    /// Only in the first, unless entirely ephemeral.
    pub removed: usize,
    /// Only in the second, unless entirely ephemeral.
    pub inserted: usize,
}

/// The digests by which a part is aligned.
#[derive(Clone, Copy, Debug)]
struct PartDigests {
    /// Parts with the same identity are equal.
    identity: Digest,
    /// Keys of parts that differ, the more specific one first.
    keys: [Digest; 2],
}

impl PartDigests {
    fn of_parts(parts: &[Part<'_>]) -> Vec<Self> {
        parts.iter().map(|part| Self { identity: part.identity, keys: part.keys }).collect()
    }
}

/// Aligns two lists of parts.
#[must_use]
pub fn compare<'d>(one: Vec<Part<'d>>, other: Vec<Part<'d>>) -> Diff<'d> {
    let edits = align_parts(&PartDigests::of_parts(&one), &PartDigests::of_parts(&other));
    Diff { one, other, edits }
}

/// Returns the edits that turn one list of parts into the other, in the order of both.
fn align_parts(one: &[PartDigests], other: &[PartDigests]) -> Vec<PartEdit> {
    let identities = |parts: &[PartDigests]| parts.iter().map(|part| part.identity).collect::<Vec<_>>();
    let mut pairs = align(&identities(one), &identities(other));
    let moved = moved(one, other, &pairs);
    for narrowness in 0..2 {
        let key = |part: &PartDigests| part.keys.get(narrowness).copied().unwrap_or(part.identity);
        pairs = between(one, other, pairs, &moved, key);
    }
    edits(one, other, &pairs, &moved)
}

/// The indices of the parts that are in both but out of order.
#[derive(Default)]
struct MovedParts {
    from: HashSet<usize>,
    /// Index in the first, by index in the second.
    to: HashMap<usize, usize>,
}

fn moved(one: &[PartDigests], other: &[PartDigests], pairs: &[(usize, usize)]) -> MovedParts {
    let in_one: HashSet<usize> = pairs.iter().map(|pair| pair.0).collect();
    let in_other: HashSet<usize> = pairs.iter().map(|pair| pair.1).collect();
    let mut waiting: HashMap<Digest, Vec<usize>> = HashMap::new();
    for (index, part) in one.iter().enumerate().rev().filter(|(index, _)| !in_one.contains(index)) {
        waiting.entry(part.identity).or_default().push(index);
    }
    let mut moved = MovedParts::default();
    for (place, part) in other.iter().enumerate().filter(|(place, _)| !in_other.contains(place)) {
        if let Some(index) = waiting.get_mut(&part.identity).and_then(Vec::pop) {
            moved.from.insert(index);
            moved.to.insert(place, index);
        }
    }
    moved
}

/// Adds the pairs with equal keys among the parts between the existing `pairs`.
fn between(
    one: &[PartDigests],
    other: &[PartDigests],
    pairs: Vec<(usize, usize)>,
    moved: &MovedParts,
    key: impl Fn(&PartDigests) -> Digest,
) -> Vec<(usize, usize)> {
    let mut all = Vec::with_capacity(pairs.len());
    let mut begin = (0, 0);
    for end in pairs.into_iter().chain([(one.len(), other.len())]) {
        let left: Vec<usize> = (begin.0..end.0).filter(|index| !moved.from.contains(index)).collect();
        let right: Vec<usize> = (begin.1..end.1).filter(|place| !moved.to.contains_key(place)).collect();
        let keys = |parts: &[PartDigests], indices: &[usize]| -> Vec<Digest> {
            indices.iter().filter_map(|index| parts.get(*index).map(&key)).collect()
        };
        let found = align(&keys(one, &left), &keys(other, &right)).into_iter();
        all.extend(found.filter_map(|(index, place)| Some((*left.get(index)?, *right.get(place)?))));
        if end.0 < one.len() && end.1 < other.len() {
            all.push(end);
        }
        begin = (end.0 + 1, end.1 + 1);
    }
    all
}

/// Returns the edits in the order of both artifacts: removed parts before the parts that replace them.
fn edits(
    one: &[PartDigests],
    other: &[PartDigests],
    pairs: &[(usize, usize)],
    moved: &MovedParts,
) -> Vec<PartEdit> {
    let mut edits = Vec::with_capacity(one.len().max(other.len()));
    let mut begin = (0, 0);
    for end in pairs.iter().copied().chain([(one.len(), other.len())]) {
        edits.extend((begin.0..end.0).filter(|index| !moved.from.contains(index)).map(PartEdit::Removed));
        edits.extend((begin.1..end.1).map(|place| match moved.to.get(&place) {
            Some(index) => PartEdit::Moved(*index, place),
            None => PartEdit::Inserted(place),
        }));
        if let (Some(part), Some(counterpart)) = (one.get(end.0), other.get(end.1)) {
            let is_same = part.identity == counterpart.identity;
            edits.push(if is_same { PartEdit::Same(end.0, end.1) } else { PartEdit::Changed(end.0, end.1) });
        }
        begin = (end.0 + 1, end.1 + 1);
    }
    edits
}

impl Diff<'_> {
    /// Returns the number of equal and of different parts.
    #[must_use]
    pub fn counts(&self) -> Counts {
        let mut counts = Counts::default();
        for edit in self.edits.iter().filter(|edit| !self.is_ephemeral(**edit)) {
            *match edit {
                PartEdit::Same(..) => &mut counts.same,
                PartEdit::Changed(..) => &mut counts.changed,
                PartEdit::Moved(..) => &mut counts.moved,
                PartEdit::Removed(_) => &mut counts.removed,
                PartEdit::Inserted(_) => &mut counts.inserted,
            } += 1;
        }
        counts
    }

    /// Returns the differences in the order of the artifacts; the first is where they diverge. Ephemeral differences,
    /// and those with the same canonical form, are omitted unless `all`. Values are compared one part at a time, as the
    /// iterator advances.
    pub fn changes(&self, all: bool) -> impl Iterator<Item = PartChange> {
        self.edits.iter().filter_map(move |edit| self.change(*edit, all))
    }

    /// Returns whether only one of the artifacts has the part, and all of it is ephemeral.
    fn is_ephemeral(&self, edit: PartEdit) -> bool {
        let part = match edit {
            PartEdit::Removed(index) => self.one.get(index),
            PartEdit::Inserted(place) => self.other.get(place),
            PartEdit::Same(..) | PartEdit::Changed(..) | PartEdit::Moved(..) => None,
        };
        part.is_some_and(|part| (part.sort.is_ephemeral)(&[]))
    }

    fn change(&self, edit: PartEdit, all: bool) -> Option<PartChange> {
        if !all && self.is_ephemeral(edit) {
            return None;
        }
        let (sort, one, other) = match edit {
            PartEdit::Same(_, _) if !all => return None,
            PartEdit::Same(one, other) => (ChangeType::Ephemeral, Some(one), Some(other)),
            PartEdit::Changed(one, other) => (ChangeType::Changed, Some(one), Some(other)),
            PartEdit::Moved(one, other) => (ChangeType::Moved, Some(one), Some(other)),
            PartEdit::Removed(one) => (ChangeType::Removed, Some(one), None),
            PartEdit::Inserted(other) => (ChangeType::Inserted, None, Some(other)),
        };
        let (one, other) = (one.and_then(|at| self.one.get(at)), other.and_then(|at| self.other.get(at)));
        let (says, values) = match (sort, one, other) {
            (ChangeType::Changed | ChangeType::Ephemeral, Some(one), Some(other)) => {
                describe(one, other, all)
            }
            (ChangeType::Moved, Some(one), Some(other)) if all => {
                (String::new(), describe(one, other, all).1)
            }
            (ChangeType::Removed, Some(part), _) => {
                (String::new(), vec![values::whole(Some(&shown(part, all)), None)])
            }
            (ChangeType::Inserted, _, Some(part)) => {
                (String::new(), vec![values::whole(None, Some(&shown(part, all)))])
            }
            _ => (String::new(), Vec::new()),
        };
        if sort == ChangeType::Ephemeral && values.is_empty() {
            return None;
        }
        let is_spelling = sort == ChangeType::Ephemeral && values.iter().all(|value| value.spelling);
        let sort = if is_spelling { ChangeType::Spelling } else { sort };
        let (one, other) = (one.map(|part| part.label.clone()), other.map(|part| part.label.clone()));
        Some(PartChange { change: sort, one, other, says, values })
    }
}

/// Maximum number of members named in a description.
const MAX_NAMES: usize = 8;

/// Returns the value of a part, with ephemeral members if `all`.
fn shown<'d>(part: &Part<'d>, all: bool) -> Value<'d> {
    let value = part.value();
    if all { value.into_owned() } else { part.sort.lasting(&value) }
}

/// Returns the differences between two parts, as a description and as values.
fn describe(one: &Part<'_>, other: &Part<'_>, all: bool) -> (String, Vec<ChangedValue>) {
    let (old, new) = (one.value(), other.value());
    let values = values::compare(&old, &new, one.sort, all);
    let is_counting = |value: &&ChangedValue| !value.ephemeral && !value.spelling;
    let counting = values.iter().filter(|value| is_counting(value) || one.identity == other.identity);
    // Changes of other values than objects are not in members.
    let counting = counting.filter(|_| old.as_object().is_some());
    let members: Vec<_> = counting.filter_map(|value| pointer::tokens(&value.pointer).next()).collect();
    let mut names: Vec<&str> = members.iter().map(|name| &**name).collect();
    // Changes of the same member are adjacent.
    names.dedup();
    if names.len() > MAX_NAMES {
        names.truncate(MAX_NAMES);
        names.push("…");
    }
    let says = if one.identity == other.identity {
        let what =
            match (values.iter().any(|value| value.spelling), values.iter().all(|value| value.spelling)) {
                (_, true) => "only the spelling differs",
                (true, false) => "only the spelling and ephemeral values differ",
                (false, false) => "only ephemeral values differ",
            };
        format!("{what}: {}", names.join(", "))
    } else {
        (one.sort.describe)(&old, &new, &names)
    };
    (says, values)
}

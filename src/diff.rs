//! What is different between two artifacts of a kind.
//!
//! A kind says what its artifacts consist of ([`Part`]), which parts are the same, and which are the same place. Here they
//! are aligned: by identity first, then by place, so that what was inserted in the middle does not make everything after
//! it different. Time and memory grow about as the artifacts do.
//!
//! ```
//! use runvault::artifact::MemberBytes;
//! use runvault::canonical::reader::Limits;
//! use runvault::{diff, kinds};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let kind = kinds::named("model_io").ok_or("no such kind")?;
//! let document = std::fs::read("examples/session.json")?;
//! let edited = String::from_utf8(document.clone())?.replace("\"bug\"", "\"question\"");
//! let parts = |bytes| kind.parts(&[MemberBytes { name: "model_io.json", bytes }], &Limits::default());
//! let diff = diff::compare(parts(&document)?, parts(edited.as_bytes())?);
//! let first = diff.changes(false).next().ok_or("they are the same")?;
//! assert_eq!(first.place(), "interaction 1");
//! assert_eq!(first.says, "same prompt, different response");
//! # Ok(())
//! # }
//! ```

mod align;
mod values;
mod words;

use std::collections::{HashMap, HashSet};

use crate::artifact::Part;
use crate::canonical::Value;
use crate::digest::Digest;

use align::align;

pub use values::ValueChange;
pub use words::{Span, words};

/// Two artifacts, aligned.
#[derive(Debug)]
pub struct Diff<'d> {
    one: Vec<Part<'d>>,
    other: Vec<Part<'d>>,
    edits: Vec<Edit>,
}

/// What became of a part, or where one comes from, by their indices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Edit {
    Same(usize, usize),
    Changed(usize, usize),
    Moved(usize, usize),
    Removed(usize),
    Inserted(usize),
}

/// What happened to a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Sort {
    /// It is in both, and differs.
    Changed,
    /// It is in both, and stands elsewhere.
    Moved,
    /// It is only in the first.
    Removed,
    /// It is only in the second.
    Inserted,
    /// It is in both, and differs in nothing but what is ephemeral, and in what the canonical form does not have.
    Ephemeral,
    /// It is in both, and differs in nothing but what the canonical form does not have: line ends, digits of numbers, the
    /// order of some lists, as the kind has it.
    Spelling,
}

/// A difference.
#[derive(Clone, Debug)]
pub struct Change<'c> {
    /// What happened.
    pub sort: Sort,
    /// The part in the first artifact.
    pub one: Option<&'c str>,
    /// The part in the second artifact.
    pub other: Option<&'c str>,
    /// What is different, in words; empty if the sort says it.
    pub says: String,
    /// The values that differ; of a part that only one of the two has, the whole of it.
    pub values: Vec<ValueChange>,
}

impl Change<'_> {
    /// What people call the part: its name in the first artifact, or in the second if the first does not have it.
    #[must_use]
    pub fn place(&self) -> &str {
        self.one.or(self.other).unwrap_or_default()
    }
}

/// How many parts there are of each sort.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// In both, and the same. Those that differ in what is ephemeral are among them.
    pub same: usize,
    /// In both, and different.
    pub changed: usize,
    /// In both, elsewhere.
    pub moved: usize,
    /// Only in the first, unless all of it is ephemeral.
    pub removed: usize,
    /// Only in the second, unless all of it is ephemeral.
    pub inserted: usize,
}

/// Aligns two lists of parts.
#[must_use]
pub fn compare<'d>(one: Vec<Part<'d>>, other: Vec<Part<'d>>) -> Diff<'d> {
    let mut pairs = align(&digests(&one, |part| part.identity), &digests(&other, |part| part.identity));
    let moved = moved(&one, &other, &pairs);
    for narrowness in 0..2 {
        let key = |part: &Part<'_>| part.keys.get(narrowness).copied().unwrap_or(part.identity);
        pairs = between(&one, &other, pairs, &moved, key);
    }
    let edits = edits(&one, &other, &pairs, &moved);
    Diff { one, other, edits }
}

fn digests(parts: &[Part<'_>], digest: impl Fn(&Part<'_>) -> Digest) -> Vec<Digest> {
    parts.iter().map(digest).collect()
}

/// The parts that are in both but out of order, by their indices.
#[derive(Default)]
struct Moved {
    from: HashSet<usize>,
    /// By the index in the second, that in the first.
    to: HashMap<usize, usize>,
}

fn moved(one: &[Part<'_>], other: &[Part<'_>], pairs: &[(usize, usize)]) -> Moved {
    let in_one: HashSet<usize> = pairs.iter().map(|pair| pair.0).collect();
    let in_other: HashSet<usize> = pairs.iter().map(|pair| pair.1).collect();
    let mut waiting: HashMap<Digest, Vec<usize>> = HashMap::new();
    for (index, part) in one.iter().enumerate().rev().filter(|(index, _)| !in_one.contains(index)) {
        waiting.entry(part.identity).or_default().push(index);
    }
    let mut moved = Moved::default();
    for (place, part) in other.iter().enumerate().filter(|(place, _)| !in_other.contains(place)) {
        if let Some(index) = waiting.get_mut(&part.identity).and_then(Vec::pop) {
            moved.from.insert(index);
            moved.to.insert(place, index);
        }
    }
    moved
}

/// Adds to `pairs` those that the key finds among the parts between them.
fn between(
    one: &[Part<'_>],
    other: &[Part<'_>],
    pairs: Vec<(usize, usize)>,
    moved: &Moved,
    key: impl Fn(&Part<'_>) -> Digest,
) -> Vec<(usize, usize)> {
    let mut all = Vec::with_capacity(pairs.len());
    let mut begin = (0, 0);
    for end in pairs.into_iter().chain([(one.len(), other.len())]) {
        let left: Vec<usize> = (begin.0..end.0).filter(|index| !moved.from.contains(index)).collect();
        let right: Vec<usize> = (begin.1..end.1).filter(|place| !moved.to.contains_key(place)).collect();
        let keys = |parts: &[Part<'_>], indices: &[usize]| -> Vec<Digest> {
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

/// What happened, in the order of both: what was removed comes before what stands in its place.
fn edits(one: &[Part<'_>], other: &[Part<'_>], pairs: &[(usize, usize)], moved: &Moved) -> Vec<Edit> {
    let mut edits = Vec::with_capacity(one.len().max(other.len()));
    let mut begin = (0, 0);
    for end in pairs.iter().copied().chain([(one.len(), other.len())]) {
        edits.extend((begin.0..end.0).filter(|index| !moved.from.contains(index)).map(Edit::Removed));
        edits.extend((begin.1..end.1).map(|place| match moved.to.get(&place) {
            Some(index) => Edit::Moved(*index, place),
            None => Edit::Inserted(place),
        }));
        if let (Some(part), Some(counterpart)) = (one.get(end.0), other.get(end.1)) {
            let is_same = part.identity == counterpart.identity;
            edits.push(if is_same { Edit::Same(end.0, end.1) } else { Edit::Changed(end.0, end.1) });
        }
        begin = (end.0 + 1, end.1 + 1);
    }
    edits
}

impl Diff<'_> {
    /// How many parts are the same, and how many are not.
    #[must_use]
    pub fn counts(&self) -> Counts {
        let mut counts = Counts::default();
        for edit in self.edits.iter().filter(|edit| !self.is_ephemeral(**edit)) {
            *match edit {
                Edit::Same(..) => &mut counts.same,
                Edit::Changed(..) => &mut counts.changed,
                Edit::Moved(..) => &mut counts.moved,
                Edit::Removed(_) => &mut counts.removed,
                Edit::Inserted(_) => &mut counts.inserted,
            } += 1;
        }
        counts
    }

    /// The differences in the order of the artifacts; the first is where they diverge. What is ephemeral, and what has the same
    /// canonical form, is left out unless `all`. Values are compared one part at a time, when the iterator comes to it.
    pub fn changes(&self, all: bool) -> impl Iterator<Item = Change<'_>> {
        self.edits.iter().filter_map(move |edit| self.change(*edit, all))
    }

    /// Whether only one of the two has the part, and nothing of it counts.
    fn is_ephemeral(&self, edit: Edit) -> bool {
        let part = match edit {
            Edit::Removed(index) => self.one.get(index),
            Edit::Inserted(place) => self.other.get(place),
            Edit::Same(..) | Edit::Changed(..) | Edit::Moved(..) => None,
        };
        part.is_some_and(|part| (part.sort.is_ephemeral)(&[]))
    }

    fn change(&self, edit: Edit, all: bool) -> Option<Change<'_>> {
        if !all && self.is_ephemeral(edit) {
            return None;
        }
        let (sort, one, other) = match edit {
            Edit::Same(_, _) if !all => return None,
            Edit::Same(one, other) => (Sort::Ephemeral, Some(one), Some(other)),
            Edit::Changed(one, other) => (Sort::Changed, Some(one), Some(other)),
            Edit::Moved(one, other) => (Sort::Moved, Some(one), Some(other)),
            Edit::Removed(one) => (Sort::Removed, Some(one), None),
            Edit::Inserted(other) => (Sort::Inserted, None, Some(other)),
        };
        let (one, other) = (one.and_then(|at| self.one.get(at)), other.and_then(|at| self.other.get(at)));
        let (says, values) = match (sort, one, other) {
            (Sort::Changed | Sort::Ephemeral, Some(one), Some(other)) => told(one, other, all),
            (Sort::Moved, Some(one), Some(other)) if all => (String::new(), told(one, other, all).1),
            (Sort::Removed, Some(part), _) => {
                (String::new(), vec![values::whole(Some(&shown(part, all)), None)])
            }
            (Sort::Inserted, _, Some(part)) => {
                (String::new(), vec![values::whole(None, Some(&shown(part, all)))])
            }
            _ => (String::new(), Vec::new()),
        };
        if sort == Sort::Ephemeral && values.is_empty() {
            return None;
        }
        let is_spelling = sort == Sort::Ephemeral && values.iter().all(|value| value.is_spelling);
        let sort = if is_spelling { Sort::Spelling } else { sort };
        let (one, other) = (one.map(|part| part.label.as_str()), other.map(|part| part.label.as_str()));
        Some(Change { sort, one, other, says, values })
    }
}

/// So many members are named in words.
const MAX_NAMES: usize = 8;

/// What a part says, with what is ephemeral if `all`.
fn shown<'d>(part: &Part<'d>, all: bool) -> Value<'d> {
    let value = part.value();
    if all { value.into_owned() } else { part.sort.lasting(&value) }
}

/// What is different between two parts, in words and in values.
fn told(one: &Part<'_>, other: &Part<'_>, all: bool) -> (String, Vec<ValueChange>) {
    let (old, new) = (one.value(), other.value());
    let values = values::compare(&old, &new, one.sort, all);
    let is_counting = |value: &&ValueChange| !value.is_ephemeral && !value.is_spelling;
    let counting = values.iter().filter(|value| is_counting(value) || one.identity == other.identity);
    let mut names: Vec<&str> = counting.filter_map(|value| value.member.as_deref()).collect();
    // The changes of one member stand together.
    names.dedup();
    if names.len() > MAX_NAMES {
        names.truncate(MAX_NAMES);
        names.push("…");
    }
    let says = if one.identity == other.identity {
        let what = match (
            values.iter().any(|value| value.is_spelling),
            values.iter().all(|value| value.is_spelling),
        ) {
            (_, true) => "only the spelling differs",
            (true, false) => "only the spelling and what is ephemeral differ",
            (false, false) => "only what is ephemeral differs",
        };
        format!("{what}: {}", names.join(", "))
    } else {
        (one.sort.tell)(&old, &new, &names)
    };
    (says, values)
}

//! Differences between two values: what is in the other one already is left out, and stated as ranges of it.
//!
//! Elements of arrays, members of objects and bytes of strings are taken over in ranges. What remains is a value of the
//! same form without them, so that it can be read by itself: of a list of messages, the new ones.

use std::borrow::Cow;
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use serde::{Deserialize, Serialize};

use super::{Number, Object, Value, pointer};

/// Number of members of an object that are looked for one after the other.
const FEW_MEMBERS: usize = 16;

/// Fewest bytes that a range replaces: it has about half as many itself. With a long location, it replaces as many as that
/// has, so that locations have no more bytes together than what they replace.
const MIN_BYTES: usize = 64;

/// The parts of an array, an object or a string that are taken from another value.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Splice {
    /// The location in the value, as a JSON Pointer, after the splices before this one.
    pub(crate) at: String,
    /// The location in the other value, as a JSON Pointer.
    pub(crate) from: String,
    /// The ranges, in their order.
    pub(crate) ranges: Vec<SpliceRange>,
}

/// Elements, members, or bytes of UTF-8.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "[usize; 3]", into = "[usize; 3]")]
pub(crate) struct SpliceRange {
    /// The position of the first in the complete array, object or string.
    pub(crate) at: usize,
    /// The position of the first in the other one.
    pub(crate) from: usize,
    pub(crate) count: usize,
}

impl From<[usize; 3]> for SpliceRange {
    fn from([at, from, count]: [usize; 3]) -> Self {
        Self { at, from, count }
    }
}

impl From<SpliceRange> for [usize; 3] {
    fn from(SpliceRange { at, from, count }: SpliceRange) -> Self {
        [at, from, count]
    }
}

impl Splice {
    /// Returns the splice as JSON: `at`, `from` and `ranges`.
    pub(crate) fn to_value(&self) -> Value<'static> {
        let number = |number: usize| Value::Number(Number::from_literal(number.to_string()));
        let text = |text: &str| Value::String(Cow::Owned(text.to_owned()));
        let range = |range: &SpliceRange| Value::Array(<[usize; 3]>::from(*range).map(number).into());
        let ranges = Value::Array(self.ranges.iter().map(range).collect());
        let members = [("at", text(&self.at)), ("from", text(&self.from)), ("ranges", ranges)];
        Value::Object(Object::from_members(
            members.into_iter().map(|(name, value)| (Cow::Borrowed(name), value)).collect(),
        ))
    }

    /// Returns the splices in a list of what [`Splice::to_value`] returns, or `None` if it is none.
    pub(crate) fn list(value: &Value<'_>) -> Option<Vec<Self>> {
        value.as_array()?.iter().map(Self::from_value).collect()
    }

    fn from_value(value: &Value<'_>) -> Option<Self> {
        let text = |name| value.get(name).and_then(Value::as_str).map(str::to_owned);
        let number = |value: &Value<'_>| value.as_number()?.literal().parse().ok();
        let range = |range: &Value<'_>| match range.as_array()? {
            [at, from, count] => Some([number(at)?, number(from)?, number(count)?].into()),
            _ => None,
        };
        let ranges = value.get("ranges")?.as_array()?.iter().map(range).collect::<Option<_>>()?;
        Some(Self { at: text("at")?, from: text("from")?, ranges })
    }
}

/// The difference of a value from another one.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ValueDifference {
    /// The value without what is taken from the other one.
    pub(crate) rest: Value<'static>,
    /// What is taken from it: first parts of texts, then elements and members, of each location before those inside it.
    pub(crate) splices: Vec<Splice>,
}

/// Returns the difference of `value` from `base`. All members of `value` itself remain, although parts of them may not.
pub(crate) fn difference(base: &Value<'_>, value: &Value<'_>) -> ValueDifference {
    let mut comparison = Comparison::default();
    let rest = match (base, value) {
        (Value::Object(base), Value::Object(value)) => {
            let old = finder(base, value.iter().len());
            let members = value.iter().map(|(name, member)| {
                (Cow::Owned(name.to_owned()), comparison.member(old(name), name, member))
            });
            Value::Object(Object::from_members(members.collect()))
        }
        _ => comparison.rest(base, value),
    };
    let Comparison { mut texts, splices, .. } = comparison;
    texts.extend(splices);
    ValueDifference { rest, splices: texts }
}

/// Returns a function that finds the members of an object by their names, of which `count` are looked for. To look for many
/// one after the other would take their number times that of all.
fn finder<'b, 'v>(base: &'b Object<'v>, count: usize) -> impl Fn(&str) -> Option<&'b Value<'v>> {
    let by_name: HashMap<&str, &Value<'_>> =
        if count > FEW_MEMBERS { base.iter().collect() } else { HashMap::new() };
    move |name| if by_name.is_empty() { base.get(name) } else { by_name.get(name).copied() }
}

/// A location in three values, as JSON Pointers.
#[derive(Clone, Debug, Default)]
struct ComparedLocation {
    complete: String,
    base: String,
    rest: String,
}

/// The splices so far, and the location that is compared.
#[derive(Default)]
struct Comparison {
    at: ComparedLocation,
    texts: Vec<Splice>,
    splices: Vec<Splice>,
}

impl Comparison {
    /// Returns what remains of a value inside the current location. `enter` adds its name or index to the location.
    fn inside(
        &mut self,
        base: &Value<'_>,
        value: &Value<'_>,
        enter: impl FnOnce(&mut ComparedLocation),
    ) -> Value<'static> {
        let ends = [self.at.complete.len(), self.at.base.len(), self.at.rest.len()];
        enter(&mut self.at);
        let rest = self.rest(base, value);
        let ComparedLocation { complete, base, rest: at_rest } = &mut self.at;
        for (pointer, end) in [complete, base, at_rest].into_iter().zip(ends) {
            pointer.truncate(end);
        }
        rest
    }

    /// Returns what remains of the member `name` of an object.
    fn member(&mut self, old: Option<&Value<'_>>, name: &str, member: &Value<'_>) -> Value<'static> {
        let Some(old) = old else { return member.to_owned_value() };
        self.inside(old, member, |at| {
            for pointer in [&mut at.complete, &mut at.base, &mut at.rest] {
                pointer::push(pointer, name);
            }
        })
    }

    fn rest(&mut self, base: &Value<'_>, value: &Value<'_>) -> Value<'static> {
        match (base, value) {
            (Value::String(base), Value::String(text)) => {
                Value::String(Cow::Owned(self.rest_of_text(base, text)))
            }
            (Value::Array(base), Value::Array(value)) => {
                let left = self.unshared(&items(base.iter()), &items(value.iter()));
                let left = left.into_iter().enumerate().filter_map(|(position, index)| {
                    let element = value.get(index)?;
                    let Some(old) = base.get(index) else { return Some(element.to_owned_value()) };
                    Some(self.inside(old, element, |at| {
                        pointer::push_index(&mut at.complete, index);
                        pointer::push_index(&mut at.base, index);
                        pointer::push_index(&mut at.rest, position);
                    }))
                });
                Value::Array(left.collect())
            }
            (Value::Object(base), Value::Object(value)) => {
                let members = items(value.iter());
                let left = self.unshared(&items(base.iter()), &members);
                let old = finder(base, left.len());
                let left = left.into_iter().filter_map(|index| {
                    let (name, member) = *members.get(index)?;
                    Some((Cow::Owned(name.to_owned()), self.member(old(name), name, member)))
                });
                Value::Object(Object::from_members(left.collect()))
            }
            _ => value.to_owned_value(),
        }
    }

    fn rest_of_text(&mut self, base: &str, text: &str) -> String {
        let mut ranges = shared_text(base, text);
        if ranges.iter().map(|range| range.count).sum::<usize>() < self.at.rest.len() {
            ranges.clear();
        }
        let mut left = String::new();
        let mut end = 0;
        for range in &ranges {
            left.extend(text.get(end..range.at));
            end = range.at + range.count;
        }
        left.extend(text.get(end..));
        if !ranges.is_empty() {
            self.texts.push(Splice { at: self.at.rest.clone(), from: self.at.base.clone(), ranges });
        }
        left
    }

    /// Adds the splice of the items that both have, and returns the positions of the others.
    fn unshared<T: Item>(&mut self, base: &[T], value: &[T]) -> Vec<usize> {
        let mut ranges = shared_items(base, value);
        let of = |range: &SpliceRange| value.iter().skip(range.at).take(range.count);
        let location = self.at.complete.len();
        if location > MIN_BYTES
            && ranges.iter().flat_map(of).map(|item| item.size()).sum::<usize>() < location
        {
            ranges.clear();
        }
        let left = outside(&ranges, value.len());
        if !ranges.is_empty() {
            self.splices.push(Splice { at: self.at.complete.clone(), from: self.at.base.clone(), ranges });
        }
        left
    }
}

fn items<T>(items: impl Iterator<Item = T>) -> Vec<T> {
    items.collect()
}

/// An element of an array, or a member of an object.
trait Item: PartialEq + Copy {
    /// Returns about how many bytes it has as JSON.
    fn size(self) -> usize;

    /// Returns a number that is the same for equal items.
    fn fingerprint(self) -> u64;
}

impl Item for &Value<'_> {
    fn size(self) -> usize {
        match self {
            Value::Null | Value::Bool(_) => 5,
            Value::Number(number) => number.literal().len() + 1,
            Value::String(text) => text.len() + 3,
            Value::Array(elements) => 2 + elements.iter().map(Item::size).sum::<usize>(),
            Value::Object(members) => 2 + members.iter().map(Item::size).sum::<usize>(),
        }
    }

    fn fingerprint(self) -> u64 {
        let mut hasher = DefaultHasher::new();
        hash(self, &mut hasher);
        hasher.finish()
    }
}

/// Hashes a value without its text, which can be as long as a request.
fn hash(value: &Value<'_>, hasher: &mut DefaultHasher) {
    std::mem::discriminant(value).hash(hasher);
    match value {
        Value::Null => {}
        Value::Bool(value) => value.hash(hasher),
        Value::Number(number) => number.literal().hash(hasher),
        Value::String(text) => text.hash(hasher),
        Value::Array(elements) => {
            elements.len().hash(hasher);
            for element in elements {
                hash(element, hasher);
            }
        }
        Value::Object(members) => {
            members.iter().len().hash(hasher);
            for (name, member) in members.iter() {
                name.hash(hasher);
                hash(member, hasher);
            }
        }
    }
}

impl Item for (&str, &Value<'_>) {
    fn size(self) -> usize {
        self.0.len() + 4 + self.1.size()
    }

    fn fingerprint(self) -> u64 {
        let mut hasher = DefaultHasher::new();
        (self.0, self.1.fingerprint()).hash(&mut hasher);
        hasher.finish()
    }
}

/// Returns the ranges of items that both lists have.
fn shared_items<T: Item>(base: &[T], new: &[T]) -> Vec<SpliceRange> {
    let equal = |(one, other): &(&T, &T)| one == other;
    let prefix = base.iter().zip(new).take_while(equal).count();
    let (old_left, new_left) = (base.split_at(prefix).1, new.split_at(prefix).1);
    let suffix = old_left.iter().rev().zip(new_left.iter().rev()).take_while(equal).count();
    let old_middle = old_left.split_at(old_left.len() - suffix).0;
    let new_middle = new_left.split_at(new_left.len() - suffix).0;
    let mut ranges = vec![SpliceRange { at: 0, from: 0, count: prefix }];
    ranges.extend(moved(old_middle, new_middle).into_iter().map(|range| SpliceRange {
        at: range.at + prefix,
        from: range.from + prefix,
        ..range
    }));
    ranges.push(SpliceRange { at: new.len() - suffix, from: base.len() - suffix, count: suffix });
    let size = |range: &SpliceRange| {
        new.iter().skip(range.at).take(range.count).map(|item| item.size()).sum::<usize>()
    };
    ranges.retain(|range| size(range) >= MIN_BYTES);
    ranges
}

/// Returns the ranges of items of `new` that are elsewhere in `base`.
fn moved<T: Item>(base: &[T], new: &[T]) -> Vec<SpliceRange> {
    let mut ranges: Vec<SpliceRange> = Vec::new();
    if base.is_empty() || new.is_empty() {
        return ranges;
    }
    let positions: HashMap<u64, usize> =
        base.iter().enumerate().rev().map(|(index, item)| (item.fingerprint(), index)).collect();
    for (at, item) in new.iter().enumerate() {
        let is_at = |from: usize| base.get(from).is_some_and(|old| old == item);
        if let Some(last) = ranges.last_mut()
            && last.at + last.count == at
            && is_at(last.from + last.count)
        {
            last.count += 1;
            continue;
        }
        let known = positions.get(&item.fingerprint()).copied();
        ranges.extend(known.filter(|from| is_at(*from)).map(|from| SpliceRange { at, from, count: 1 }));
    }
    ranges
}

/// Returns the ranges of bytes with which both texts begin and end.
fn shared_text(base: &str, new: &str) -> Vec<SpliceRange> {
    let equal = |(one, other): &(u8, u8)| one == other;
    let mut prefix = base.bytes().zip(new.bytes()).take_while(equal).count();
    while !new.is_char_boundary(prefix) || !base.is_char_boundary(prefix) {
        prefix -= 1;
    }
    let left = base.len().min(new.len()) - prefix;
    let mut suffix = base.bytes().rev().zip(new.bytes().rev()).take(left).take_while(equal).count();
    while !new.is_char_boundary(new.len() - suffix) || !base.is_char_boundary(base.len() - suffix) {
        suffix -= 1;
    }
    let mut ranges = vec![
        SpliceRange { at: 0, from: 0, count: prefix },
        SpliceRange { at: new.len() - suffix, from: base.len() - suffix, count: suffix },
    ];
    ranges.retain(|range| range.count >= MIN_BYTES);
    ranges
}

/// Returns the positions up to `count` that are in no range.
fn outside(ranges: &[SpliceRange], count: usize) -> Vec<usize> {
    let starts = std::iter::once(0).chain(ranges.iter().map(|range| range.at + range.count));
    let ends = ranges.iter().map(|range| range.at).chain([count]);
    starts.zip(ends).flat_map(|(start, end)| start..end).collect()
}

/// Most that a restored value may have, counted as [`weight`] does: a small document could otherwise stand for values of
/// any size.
const MAX_WEIGHT: usize = 512 << 20;

/// Returns the value of which `rest` and `splices` are the difference from `base`. Returns `None` if they are not a
/// difference from it, or stand for a value that is too large.
pub(crate) fn restore(base: &Value<'_>, rest: &Value<'_>, splices: &[Splice]) -> Option<Value<'static>> {
    let mut value = rest.to_owned_value();
    let mut left = MAX_WEIGHT;
    for splice in splices {
        let from = base.at_pointer(&splice.from)?;
        fill(value.at_pointer_mut(&splice.at)?, from, &splice.ranges, &mut left)?;
    }
    Some(value)
}

/// Does the same with a value that is not needed any more: long lists are moved from it, where nothing else is taken from
/// what is moved.
pub(crate) fn restore_from(
    mut base: Value<'static>,
    rest: &Value<'_>,
    splices: &[Splice],
) -> Option<Value<'static>> {
    let mut value = rest.to_owned_value();
    let mut left = MAX_WEIGHT;
    for (index, splice) in splices.iter().enumerate() {
        let at = value.at_pointer_mut(&splice.at)?;
        let is_apart =
            |later: &Splice| !later.from.starts_with(&splice.from) && !splice.from.starts_with(&later.from);
        let is_last = splices.iter().skip(index + 1).all(is_apart);
        match (at, base.at_pointer_mut(&splice.from)?) {
            (Value::Array(elements), Value::Array(base)) if is_last && are_disjoint(&splice.ranges) => {
                let moved =
                    |index: usize| base.get_mut(index).map(|element| std::mem::replace(element, Value::Null));
                *elements = filled(std::mem::take(elements), &splice.ranges, moved)?;
            }
            (at, base) => fill(at, base, &splice.ranges, &mut left)?,
        }
    }
    Some(value)
}

/// Returns whether ranges take nothing twice, and take it in its order.
fn are_disjoint(ranges: &[SpliceRange]) -> bool {
    ranges.is_sorted_by(|one, next| one.from.checked_add(one.count).is_some_and(|end| end <= next.from))
}

/// Adds the parts of texts that splices take from `base` to the texts of `rest` that have others. Texts of which nothing
/// else remains stay empty.
pub(crate) fn restore_texts(base: &Value<'_>, rest: &mut Value<'_>, splices: &[Splice]) -> Option<()> {
    let mut left = MAX_WEIGHT;
    for splice in splices {
        let Some(Value::String(text)) = rest.at_pointer_mut(&splice.at) else { return Some(()) };
        if !text.is_empty() {
            let base = base.at_pointer(&splice.from)?.as_str()?;
            *text = Cow::Owned(filled_text(text, base, &splice.ranges, &mut left)?);
        }
    }
    Some(())
}

/// Returns whether a difference has texts that [`restore_texts`] changes.
pub(crate) fn has_partial_texts(rest: &Value<'_>, splices: &[Splice]) -> bool {
    let text = |splice: &Splice| rest.at_pointer(&splice.at).and_then(Value::as_str);
    splices.iter().map_while(text).any(|text| !text.is_empty())
}

/// Returns the bytes of the texts, names and numbers of a value, and 16 for each value.
pub(crate) fn weight(value: &Value<'_>) -> usize {
    16 + match value {
        Value::Null | Value::Bool(_) => 0,
        Value::Number(number) => number.literal().len(),
        Value::String(text) => text.len(),
        Value::Array(elements) => elements.iter().map(weight).sum(),
        Value::Object(members) => members.iter().map(|(name, value)| name.len() + weight(value)).sum(),
    }
}

/// Adds the ranges of `base` to a value.
fn fill(
    value: &mut Value<'static>,
    base: &Value<'_>,
    ranges: &[SpliceRange],
    left: &mut usize,
) -> Option<()> {
    match (value, base) {
        (Value::String(text), Value::String(base)) => {
            *text = Cow::Owned(filled_text(text, base, ranges, left)?);
        }
        (Value::Array(elements), Value::Array(base)) => {
            let owned = |index: usize| {
                let element = base.get(index)?;
                *left = left.checked_sub(weight(element))?;
                Some(element.to_owned_value())
            };
            *elements = filled(std::mem::take(elements), ranges, owned)?;
        }
        (Value::Object(object), Value::Object(base)) => {
            let items = items(base.iter());
            let owned = |index: usize| {
                let (name, member) = items.get(index)?;
                *left = left.checked_sub(name.len() + weight(member))?;
                Some((Cow::Owned((*name).to_owned()), member.to_owned_value()))
            };
            let members = std::mem::take(object).into_members();
            *object = Object::from_members(filled(members, ranges, owned)?);
        }
        _ => return None,
    }
    Some(())
}

fn filled_text(rest: &str, base: &str, ranges: &[SpliceRange], left: &mut usize) -> Option<String> {
    let mut complete = String::new();
    let mut rest = rest;
    for range in ranges {
        let (before, after) = rest.split_at_checked(range.at.checked_sub(complete.len())?)?;
        complete.push_str(before);
        *left = left.checked_sub(range.count)?;
        complete.push_str(base.get(range.from..range.from.checked_add(range.count)?)?);
        rest = after;
    }
    complete.push_str(rest);
    Some(complete)
}

/// Adds ranges of items, which `item` returns by their positions, to those that remain.
fn filled<T>(
    rest: Vec<T>,
    ranges: &[SpliceRange],
    mut item: impl FnMut(usize) -> Option<T>,
) -> Option<Vec<T>> {
    let mut complete = Vec::new();
    let mut rest = rest.into_iter();
    for range in ranges {
        let missing = range.at.checked_sub(complete.len())?;
        let before = complete.len();
        complete.extend(rest.by_ref().take(missing));
        if complete.len() - before < missing {
            return None;
        }
        for index in range.from..range.from.checked_add(range.count)? {
            complete.push(item(index)?);
        }
    }
    complete.extend(rest);
    Some(complete)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::json::compact;
    use crate::json::reader::{self, Limits};

    fn read(text: &str) -> Value<'_> {
        reader::read(text.as_bytes(), &Limits::default()).unwrap()
    }

    /// Returns what remains of a value, after checking that the value can be restored.
    fn rest(base: &str, value: &str) -> String {
        let (base, value) = (read(base), read(value));
        let ValueDifference { rest, splices } = difference(&base, &value);
        let restored = restore(&base, &rest, &splices).unwrap();
        assert_eq!(compact::text(&restored), compact::text(&value));
        let moved = restore_from(base.into_owned_value(), &rest, &splices).unwrap();
        assert_eq!(compact::text(&moved), compact::text(&value));
        compact::text(&rest)
    }

    fn message(text: &str) -> String {
        format!(r#"{{"role":"user","content":"{}"}}"#, text.repeat(40))
    }

    #[test]
    fn repeated_messages_are_left_out() {
        let [one, two, three] = ["one", "two", "three"].map(message);
        let old = format!(r#"{{"model":"m","messages":[{one},{two}],"tools":[{one}]}}"#);
        let new = format!(r#"{{"messages":[{one},{two},{three}],"model":"m","tools":[{one}]}}"#);
        assert_eq!(rest(&old, &new), format!(r#"{{"messages":[{three}],"model":"m","tools":[]}}"#));
        // The first messages are often dropped or summarized.
        let shifted = format!(r#"{{"messages":["summary",{two},{three}]}}"#);
        assert_eq!(rest(&new, &shifted), r#"{"messages":["summary"]}"#);
        let marked = format!(r#"{{"messages":[{one},{},{three}]}}"#, two.replace('}', r#","cache":1}"#));
        assert_eq!(rest(&new, &marked), r#"{"messages":[{"cache":1}]}"#);
    }

    #[test]
    fn texts_that_grow_are_continued() {
        let long = "\u{e4}".repeat(50);
        assert_eq!(rest(&format!(r#"["{long}"]"#), &format!(r#"["{long}\u00eb."]"#)), r#"["ë."]"#);
        assert_eq!(rest(r#""short""#, r#""short.""#), r#""short.""#);
        assert_eq!(rest("1", r#"{"a":[]}"#), r#"{"a":[]}"#);
    }

    #[test]
    fn locations_have_no_more_bytes_than_what_they_replace() {
        let name = "n".repeat(200);
        let texts = |end: &str, length: usize| {
            let texts = (0..50).map(|text| format!("\"{text}{}{end}\"", "x".repeat(length)));
            format!(r#"{{"{name}":[{}]}}"#, texts.collect::<Vec<_>>().join(","))
        };
        for (length, expected) in [(100, 0), (300, 50)] {
            let (base, value) = (texts("a", length), texts("b", length));
            rest(&base, &value);
            assert_eq!(difference(&read(&base), &read(&value)).splices.len(), expected);
        }
        let many = |last: &str| format!(r#"{{"{name}":[{}{last}]}}"#, "1,".repeat(200));
        for last in ["2", "\"2\""] {
            rest(&many("1"), &many(last));
        }
    }

    #[test]
    fn members_of_large_objects_are_compared_by_their_names() {
        let long = "x".repeat(80);
        let members = |end: &str, names: std::ops::Range<usize>| {
            let members =
                names.map(|name| format!(r#""m{name}":"{long}{end}""#)).collect::<Vec<_>>().join(",");
            (format!(r#"{{"a":{{{members}}}}}"#), format!("{{{members}}}"))
        };
        let ((one, first), (other, second)) = (members("a", 0..40), members("b", 5..60));
        for (base, value) in [(one, other), (first, second)] {
            rest(&base, &value);
            assert_eq!(difference(&read(&base), &read(&value)).splices.len(), 35);
        }
    }

    #[test]
    fn parts_of_texts_are_restored_alone() {
        let long = "x".repeat(80);
        let (base, value) = (
            format!(r#"{{"a":["{long}"],"b":"{long}"}}"#),
            format!(r#"{{"a":[1,["{long}"]],"b":"{long}y"}}"#),
        );
        let (base, value) = (read(&base), read(&value));
        let ValueDifference { mut rest, splices } = difference(&base, &value);
        assert!(has_partial_texts(&rest, &splices));
        restore_texts(&base, &mut rest, &splices).unwrap();
        assert_eq!(rest.get("b"), value.get("b"));
        let listed = Value::Array(splices.iter().map(Splice::to_value).collect());
        assert_eq!(Splice::list(&listed), Some(splices));
    }

    #[test]
    fn what_is_no_difference_is_not_restored() {
        let base = read(r#"{"a":["x","y"],"b":"text"}"#);
        let at = |at: &str, from: &str, range: [usize; 3]| {
            let [at_, from_, count] = range;
            let range = SpliceRange { at: at_, from: from_, count };
            let splice = Splice { at: at.to_owned(), from: from.to_owned(), ranges: vec![range] };
            restore(&base, &read(r#"{"a":[],"b":"\u00e4"}"#), &[splice]).map(|value| compact::text(&value))
        };
        assert_eq!(at("/a", "/a", [0, 1, 1]).as_deref(), Some(r#"{"a":["y"],"b":"ä"}"#));
        assert_eq!(at("/b", "/b", [2, 0, 4]).as_deref(), Some(r#"{"a":[],"b":"ätext"}"#));
        for (one, other, range) in [
            ("/a", "/a", [1, 0, 1]),
            ("/a", "/a", [0, 1, 2]),
            ("/a", "/a", [0, usize::MAX, 2]),
            ("/a", "/b", [0, 0, 1]),
            ("/c", "/a", [0, 0, 1]),
            ("/b", "/b", [1, 0, 1]),
        ] {
            assert_eq!(at(one, other, range), None, "{one} {other} {range:?}");
        }
    }

    proptest! {
        #[test]
        fn every_value_is_restored(base in any_value(), value in any_value()) {
            rest(&base, &value);
        }
    }

    fn any_value() -> impl Strategy<Value = String> {
        let leaf = prop_oneof![
            Just("null".to_owned()),
            "[a-c]{0,3}".prop_map(|text| format!("\"{}\"", text.repeat(40))),
            (0..3_u8).prop_map(|number| number.to_string()),
        ];
        leaf.prop_recursive(4, 40, 6, |inner| {
            let object =
                proptest::collection::btree_map("[a-d~/]{1,2}", inner.clone(), 0..5).prop_map(|members| {
                    let members: Vec<String> =
                        members.iter().map(|(name, value)| format!("\"{name}\":{value}")).collect();
                    format!("{{{}}}", members.join(","))
                });
            let array = proptest::collection::vec(inner, 0..6)
                .prop_map(|elements| format!("[{}]", elements.join(",")));
            prop_oneof![object, array]
        })
    }
}

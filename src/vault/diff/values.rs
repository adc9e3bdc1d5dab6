//! Differences between two JSON values.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use super::align::align;
use crate::artifact::PartKind;
use crate::digest::Digest;
use crate::json::pointer::{self, Token};
use crate::json::{Object, Value};

/// A difference between two values.
#[derive(Clone, Debug)]
pub struct ValueChange {
    /// The location as a JSON Pointer; array elements have their old index, inserted ones their new index.
    pub pointer: String,
    /// The old value; `None` if it was added.
    pub old: Option<Value<'static>>,
    /// The new value; `None` if it was removed.
    pub new: Option<Value<'static>>,
    /// Whether it varies between identical runs.
    pub is_ephemeral: bool,
    /// Whether both have the same canonical form, such as texts that differ in their line ends.
    pub is_spelling: bool,
    /// The top-level member that contains it.
    pub(super) member: Option<String>,
}

/// Returns the differences between two values of a part of this kind, in the order of the first. Ephemeral differences,
/// and those that the canonical form ignores, are omitted unless `all`.
pub(super) fn compare(one: &Value<'_>, other: &Value<'_>, sort: &PartKind, all: bool) -> Vec<ValueChange> {
    let mut comparison = ValueComparison { sort, all, at: Vec::new(), changes: Vec::new() };
    comparison.values(one, other);
    comparison.changes
}

/// Returns a value that only one artifact has as a single change.
pub(super) fn whole(old: Option<&Value<'_>>, new: Option<&Value<'_>>) -> ValueChange {
    let (old, new) = (old.map(Value::to_owned_value), new.map(Value::to_owned_value));
    ValueChange { pointer: String::new(), old, new, is_ephemeral: false, is_spelling: false, member: None }
}

struct ValueComparison<'s, 'v> {
    sort: &'s PartKind,
    all: bool,
    at: Vec<Token<'v>>,
    changes: Vec<ValueChange>,
}

impl<'v> ValueComparison<'_, 'v> {
    fn values(&mut self, one: &'v Value<'_>, other: &'v Value<'_>) {
        if !self.all && (self.sort.is_ephemeral)(&self.at) {
            return;
        }
        match (one, other) {
            (Value::Object(one), Value::Object(other)) => self.objects(one, other),
            (Value::Array(elements), Value::Array(others)) => {
                if !self.is_same(elements, others) {
                    self.arrays(elements, others);
                } else if self.all && elements != others {
                    self.spelled_arrays(one, other);
                }
            }
            _ if self.sort.is_same(self.name(), one, other) => {
                if self.all && one != other {
                    self.spelling(one, other);
                }
            }
            _ => self.change(Some(one), Some(other)),
        }
    }

    /// Compares lists with the same canonical form: the elements may be spelled differently, or be in another order.
    fn spelled_arrays(&mut self, one: &'v Value<'_>, other: &'v Value<'_>) {
        let (Some(elements), Some(others)) = (one.as_array(), other.as_array()) else { return };
        let mut pairs = elements.iter().zip(others);
        let is_in_order =
            elements.len() == others.len() && pairs.all(|(one, other)| self.sort.is_same("", one, other));
        if !is_in_order {
            return self.spelling(one, other);
        }
        for (index, (element, other)) in elements.iter().zip(others).enumerate() {
            self.at.push(Token::Index(index));
            self.values(element, other);
            self.at.pop();
        }
    }

    fn spelling(&mut self, one: &Value<'_>, other: &Value<'_>) {
        self.change(Some(one), Some(other));
        if let Some(change) = self.changes.last_mut() {
            change.is_spelling = true;
        }
    }

    /// Returns whether the lists are equal, which may be independent of order.
    fn is_same(&self, one: &[Value<'_>], other: &[Value<'_>]) -> bool {
        self.sort.is_same(self.name(), &Value::Array(one.to_vec()), &Value::Array(other.to_vec()))
    }

    /// Returns the name of the innermost member that contains the values.
    fn name(&self) -> &'v str {
        match self.at.last() {
            Some(Token::Name(name)) => name,
            Some(Token::Index(_)) | None => "",
        }
    }

    fn objects(&mut self, one: &'v Object<'_>, other: &'v Object<'_>) {
        // Objects may have very many members, and each lookup is linear.
        let others: HashMap<&str, &'v Value<'_>> = other.iter().collect();
        let names: HashSet<&str> = one.iter().map(|(name, _)| name).collect();
        for (name, value) in one.iter() {
            self.at.push(Token::Name(name));
            match others.get(name) {
                Some(other) => self.values(value, other),
                None => self.change(Some(value), None),
            }
            self.at.pop();
        }
        for (name, value) in other.iter().filter(|(name, _)| !names.contains(name)) {
            self.at.push(Token::Name(name));
            self.change(None, Some(value));
            self.at.pop();
        }
    }

    fn arrays(&mut self, one: &'v [Value<'_>], other: &'v [Value<'_>]) {
        let digests = |list: &[Value<'_>]| -> Vec<Digest> {
            list.iter().map(|element| self.sort.digest(element)).collect()
        };
        let pairs = align(&digests(one), &digests(other));
        let mut begin = (0, 0);
        for end in pairs.into_iter().chain([(one.len(), other.len())]) {
            self.elements(one, begin.0..end.0, other, begin.1..end.1);
            if let (true, Some(element), Some(other)) = (self.all, one.get(end.0), other.get(end.1)) {
                self.at.push(Token::Index(end.0));
                self.values(element, other);
                self.at.pop();
            }
            begin = (end.0 + 1, end.1 + 1);
        }
    }

    /// Compares unaligned elements: as many as there are on both sides are paired in order.
    fn elements(
        &mut self,
        one: &'v [Value<'_>],
        of_one: Range<usize>,
        other: &'v [Value<'_>],
        of_other: Range<usize>,
    ) {
        for offset in 0..of_one.len().max(of_other.len()) {
            let (at, other_at) = (of_one.start + offset, of_other.start + offset);
            let old = one.get(at).filter(|_| at < of_one.end);
            let new = other.get(other_at).filter(|_| other_at < of_other.end);
            self.at.push(Token::Index(if old.is_some() { at } else { other_at }));
            match (old, new) {
                (Some(old), Some(new)) => self.values(old, new),
                (old, new) => self.change(old, new),
            }
            self.at.pop();
        }
    }

    fn change(&mut self, old: Option<&Value<'_>>, new: Option<&Value<'_>>) {
        // Values within an ephemeral value are ephemeral.
        let is_ephemeral = (0..=self.at.len())
            .any(|length| self.at.get(..length).is_some_and(|at| (self.sort.is_ephemeral)(at)));
        if is_ephemeral && !self.all {
            return;
        }
        let member = match self.at.first() {
            Some(Token::Name(name)) => Some((*name).to_owned()),
            Some(Token::Index(_)) | None => None,
        };
        self.changes.push(ValueChange {
            pointer: pointer::format(&self.at),
            old: old.map(Value::to_owned_value),
            new: new.map(Value::to_owned_value),
            is_ephemeral,
            is_spelling: false,
            member,
        });
    }
}

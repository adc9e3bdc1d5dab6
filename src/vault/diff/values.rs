//! Differences between two JSON values.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use serde::{Deserialize, Deserializer, Serialize};
use utoipa::ToSchema;

use super::align::align;
use crate::artifact::PartKind;
use crate::digest::Digest;
use crate::json::pointer::{self, Token};
use crate::json::{Object, Value};
use crate::vault::api::JsonValue;

/// A difference between two values.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ChangedValue {
    /// The location as a JSON Pointer into the part; elements of arrays have their old index, inserted ones their new index.
    pub pointer: String,
    /// Whether it varies between identical runs.
    pub ephemeral: bool,
    /// Whether both have the same canonical form.
    pub spelling: bool,
    /// The old value, unless it was added.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = JsonValue, required = false)]
    pub old: Option<JsonValue>,
    /// The new value, unless it was removed.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = JsonValue, required = false)]
    pub new: Option<JsonValue>,
}

/// Reads a value that is present, which may be `null`.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<JsonValue>, D::Error> {
    JsonValue::deserialize(deserializer).map(Some)
}

/// Returns the differences between two values of a part of this kind, in the order of the first. Ephemeral differences,
/// and those that the canonical form ignores, are omitted unless `all`.
pub(super) fn compare(one: &Value<'_>, other: &Value<'_>, sort: &PartKind, all: bool) -> Vec<ChangedValue> {
    let mut comparison = ValueComparison { sort, all, at: Vec::new(), changes: Vec::new() };
    comparison.values(one, other);
    comparison.changes
}

/// Returns a value that only one artifact has as a single change.
pub(super) fn whole(old: Option<&Value<'_>>, new: Option<&Value<'_>>) -> ChangedValue {
    ChangedValue {
        pointer: String::new(),
        ephemeral: false,
        spelling: false,
        old: old.map(json_value),
        new: new.map(json_value),
    }
}

fn json_value(value: &Value<'_>) -> JsonValue {
    JsonValue(value.to_owned_value())
}

struct ValueComparison<'s, 'v> {
    sort: &'s PartKind,
    all: bool,
    at: Vec<Token<'v>>,
    changes: Vec<ChangedValue>,
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
            change.spelling = true;
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
        let ephemeral = (0..=self.at.len())
            .any(|length| self.at.get(..length).is_some_and(|at| (self.sort.is_ephemeral)(at)));
        if ephemeral && !self.all {
            return;
        }
        self.changes.push(ChangedValue {
            pointer: pointer::format(&self.at),
            ephemeral,
            spelling: false,
            old: old.map(json_value),
            new: new.map(json_value),
        });
    }
}

//! Upper bounds of the work of validating with a JSON Schema, computed in advance: schema parts may be applied to one
//! value repeatedly, through references without limit.

use std::collections::HashMap;

use serde_json::{Map, Value as Json};

/// Maximum number of values in a schema, and maximum depth of its text.
const MAX_VALUES: usize = 10_000;
const MAX_DEPTH: usize = 100;

/// Maximum characters of a message.
const MAX_MESSAGE: usize = 300;

/// Keywords with subschemas for the value itself or its names, and below those with subschemas for nested values.
const SAME_VALUE: [&str; 10] = [
    "allOf",
    "anyOf",
    "dependencies",
    "dependentSchemas",
    "else",
    "if",
    "not",
    "oneOf",
    "propertyNames",
    "then",
];
const INNER_VALUE: [&str; 7] = [
    "additionalItems",
    "additionalProperties",
    "contains",
    "items",
    "patternProperties",
    "prefixItems",
    "properties",
];

/// Keywords whose subschemas are members of an object.
const BY_NAME: [&str; 4] = ["dependencies", "dependentSchemas", "patternProperties", "properties"];

/// Keywords whose work cannot be bounded, or that change the meaning of references.
const NOT_USED: [&str; 4] = ["$dynamicRef", "$recursiveRef", "unevaluatedItems", "unevaluatedProperties"];

/// The reason that a schema is not used, or a payload not checked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum SchemaCheckError {
    #[error("the schema is too large or too deep")]
    SchemaTooLarge,
    #[error("the schema uses {0}, which is not checked")]
    NotUsed(String),
    #[error("the schema refers to {0}, which is not in it")]
    Reference(String),
    #[error("the schema refers to itself in an endless loop")]
    Circle,
    #[error("it is not a JSON Schema: {0}")]
    NotASchema(String),
    #[error("the payload is too large or too deep")]
    PayloadTooLarge,
}

/// The subschemas of a schema, and which of them are applied to the same value or to a nested one.
pub(super) struct SchemaWork {
    /// Work per byte of the values at each level of a payload.
    by_level: Vec<u64>,
    longest: usize,
}

#[derive(Default)]
struct SubschemaWork {
    /// Work per byte of a value: one, plus that of patterns and lists.
    weight: u64,
    same: Vec<usize>,
    inner: Vec<usize>,
}

/// Objects of the schema by memory address: names may be long, and pointers composed of them longer.
type SubschemaNumbers<'j> = HashMap<*const Json, usize>;

impl SchemaWork {
    pub(super) fn new(schema: &Json) -> Result<Self, SchemaCheckError> {
        let (mut objects, mut values) = (Vec::new(), 0);
        collect(schema, 0, &mut values, &mut objects)?;
        let numbers: SubschemaNumbers<'_> = objects
            .iter()
            .enumerate()
            .map(|(number, object)| (std::ptr::from_ref(*object), number))
            .collect();
        let mut parts = Vec::new();
        for (number, object) in objects.iter().enumerate() {
            parts.push(part(object, number == 0, schema, &numbers)?);
        }
        let order = order(&parts)?;
        Ok(Self { by_level: by_level(&parts, &order), longest: longest(&parts, &order) })
    }

    /// Returns the work for a payload whose values have these sizes at each level.
    pub(super) fn for_levels(&self, levels: &[u64]) -> u64 {
        let works = levels.iter().zip(&self.by_level).map(|(size, work)| size.saturating_mul(*work));
        works.fold(0, u64::saturating_add)
    }

    /// Returns the length of the longest chain of parts that are applied to the same value.
    pub(super) fn longest(&self) -> usize {
        self.longest
    }
}

/// Truncates a message, which quotes the invalid value.
pub(super) fn shortened(text: &str) -> String {
    match text.char_indices().nth(MAX_MESSAGE) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

fn collect<'j>(
    value: &'j Json,
    depth: usize,
    values: &mut usize,
    objects: &mut Vec<&'j Json>,
) -> Result<(), SchemaCheckError> {
    *values += 1;
    if *values > MAX_VALUES || depth > MAX_DEPTH {
        return Err(SchemaCheckError::SchemaTooLarge);
    }
    match value {
        Json::Object(members) => {
            objects.push(value);
            members.values().try_for_each(|member| collect(member, depth + 1, values, objects))
        }
        Json::Array(elements) => {
            elements.iter().try_for_each(|element| collect(element, depth + 1, values, objects))
        }
        _ => Ok(()),
    }
}

fn part(
    object: &Json,
    is_root: bool,
    root: &Json,
    numbers: &SubschemaNumbers<'_>,
) -> Result<SubschemaWork, SchemaCheckError> {
    let mut part = SubschemaWork { weight: 1, ..SubschemaWork::default() };
    for (name, value) in object.as_object().into_iter().flat_map(Map::iter) {
        let changes_base = !is_root && matches!(name.as_str(), "$id" | "id") && value.is_string();
        if NOT_USED.contains(&name.as_str()) || changes_base {
            return Err(SchemaCheckError::NotUsed(name.clone()));
        }
        let is_inner = INNER_VALUE.contains(&name.as_str());
        let applied = if name == "$ref" && value.is_string() {
            vec![referred(value.as_str().unwrap_or_default(), root)?]
        } else if is_inner || SAME_VALUE.contains(&name.as_str()) {
            schemas_of(name, value)
        } else {
            let is_applied_elsewhere = matches!(name.as_str(), "$defs" | "definitions");
            part.weight = part.weight.saturating_add(if is_applied_elsewhere { 0 } else { size(value) });
            continue;
        };
        // Lists of names, and the schemas `true` and `false`, have no number.
        let others = applied.iter().filter(|schema| !schema.is_object()).map(|schema| size(schema)).sum();
        part.weight = part.weight.saturating_add(others);
        let numbered = applied.iter().filter_map(|schema| numbers.get(&std::ptr::from_ref(*schema)));
        if is_inner {
            part.inner.extend(numbered);
        } else {
            part.same.extend(numbered);
        }
        if name == "patternProperties" {
            let patterns = value.as_object().into_iter().flat_map(Map::keys);
            part.weight += patterns.map(|pattern| pattern.len() as u64).sum::<u64>();
        }
    }
    Ok(part)
}

/// Returns the subschemas of a keyword.
fn schemas_of<'j>(name: &str, value: &'j Json) -> Vec<&'j Json> {
    match value {
        Json::Object(members) if BY_NAME.contains(&name) => members.values().collect(),
        Json::Array(schemas) => schemas.iter().collect(),
        schema => vec![schema],
    }
}

/// Resolves a reference within the schema.
pub(super) fn referred<'j>(reference: &str, root: &'j Json) -> Result<&'j Json, SchemaCheckError> {
    let pointer = reference.strip_prefix('#').filter(|pointer| !pointer.contains('%'));
    let target = pointer.and_then(|pointer| root.pointer(pointer));
    target.ok_or_else(|| SchemaCheckError::Reference(shortened(reference)))
}

/// Returns the number of values plus the bytes of texts in `value`.
fn size(value: &Json) -> u64 {
    1 + match value {
        Json::String(text) => text.len() as u64,
        Json::Array(elements) => elements.iter().map(size).sum(),
        Json::Object(members) => members.iter().map(|(name, member)| name.len() as u64 + size(member)).sum(),
        Json::Null | Json::Bool(_) | Json::Number(_) => 0,
    }
}

/// Returns a topological order of the parts: each comes after those that apply it to the same value.
fn order(parts: &[SubschemaWork]) -> Result<Vec<usize>, SchemaCheckError> {
    let mut applied_by = vec![0_usize; parts.len()];
    for target in parts.iter().flat_map(|part| &part.same) {
        applied_by.get_mut(*target).into_iter().for_each(|count| *count += 1);
    }
    let mut ready: Vec<usize> = (0..parts.len()).filter(|part| applied_by.get(*part) == Some(&0)).collect();
    let mut order = Vec::new();
    while let Some(number) = ready.pop() {
        order.push(number);
        for target in parts.get(number).into_iter().flat_map(|part| &part.same) {
            let Some(count) = applied_by.get_mut(*target) else { continue };
            *count -= 1;
            if *count == 0 {
                ready.push(*target);
            }
        }
    }
    if order.len() == parts.len() { Ok(order) } else { Err(SchemaCheckError::Circle) }
}

/// Returns the number of times that the parts are applied at each level, weighted.
fn by_level(parts: &[SubschemaWork], order: &[usize]) -> Vec<u64> {
    let mut applied = vec![0_u64; parts.len()];
    applied.first_mut().into_iter().for_each(|root| *root = 1);
    let mut levels = Vec::new();
    for _ in 0..MAX_DEPTH {
        let mut inner = vec![0_u64; parts.len()];
        let mut work = 0_u64;
        for number in order {
            let (Some(part), Some(times)) = (parts.get(*number), applied.get(*number).copied()) else {
                continue;
            };
            work = work.saturating_add(times.saturating_mul(part.weight));
            part.same.iter().for_each(|target| add(&mut applied, *target, times));
            part.inner.iter().for_each(|target| add(&mut inner, *target, times));
        }
        levels.push(work);
        applied = inner;
    }
    levels
}

fn add(counts: &mut [u64], index: usize, times: u64) {
    counts.get_mut(index).into_iter().for_each(|count| *count = count.saturating_add(times));
}

fn longest(parts: &[SubschemaWork], order: &[usize]) -> usize {
    let mut lengths = vec![0_usize; parts.len()];
    for number in order {
        let length = lengths.get(*number).copied().unwrap_or_default() + 1;
        for target in parts.get(*number).into_iter().flat_map(|part| &part.same) {
            lengths.get_mut(*target).into_iter().for_each(|known| *known = length.max(*known));
        }
    }
    lengths.into_iter().max().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn work_doubles_where_references_double() {
        let doubling = |count: usize| {
            let mut defs = Map::new();
            for index in 0..count {
                let next = json!({"$ref": format!("#/$defs/a{}", index + 1)});
                defs.insert(format!("a{index}"), json!({"allOf": [next.clone(), next]}));
            }
            defs.insert(format!("a{count}"), json!({"type": "object"}));
            SchemaWork::new(&json!({"$ref": "#/$defs/a0", "$defs": defs})).unwrap()
        };
        let works = [10, 11, 12].map(|count| doubling(count).for_levels(&[1]));
        assert!(works[1] > 2 * works[0] && works[2] > 2 * works[1] - 100, "{works:?}");
        assert_eq!(doubling(200).for_levels(&[1]), u64::MAX);
        assert_eq!(doubling(10).longest(), 21);
    }

    #[test]
    fn work_grows_with_the_levels_of_a_payload() {
        let branch = json!({"properties": {"x": {"$ref": "#"}}});
        let tree = SchemaWork::new(&json!({"anyOf": [branch.clone(), branch]})).unwrap();
        let works = [1, 2, 3].map(|levels| tree.for_levels(&vec![1; levels]));
        assert!(works[1] > 2 * works[0] && works[2] > 2 * works[1], "{works:?}");
        assert_eq!(tree.for_levels(&[1; 100]), u64::MAX);
        let list = SchemaWork::new(&json!({"properties": {"x": {"$ref": "#"}}})).unwrap();
        assert!(list.for_levels(&[1; 100]) < 1_000, "a list is not a tree");
    }

    #[test]
    fn booleans_and_lists_of_names_are_work() {
        let names: Vec<String> = (0..500).map(|number| format!("n{number}")).collect();
        for schema in [
            json!({"anyOf": vec![false; 1_000]}),
            json!({"items": {"oneOf": vec![true; 1_000]}}),
            json!({"dependencies": {"a": names}}),
        ] {
            assert!(SchemaWork::new(&schema).unwrap().for_levels(&[1, 1]) > 1_000, "{schema}");
        }
    }

    #[test]
    fn circles_are_found_where_they_are_without_end() {
        assert!(matches!(SchemaWork::new(&json!({"allOf": [{"$ref": "#"}]})), Err(SchemaCheckError::Circle)));
        assert!(SchemaWork::new(&json!({"items": {"$ref": "#"}})).is_ok());
    }
}

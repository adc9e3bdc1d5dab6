//! Bounded validation with JSON Schemas from untrusted contracts: nothing is fetched, and no schema or payload can make
//! a check slow or deeply recursive.

use std::collections::HashSet;

use serde_json::Value as Json;

use super::schema_check::{SchemaViolation, first_violation};
use super::schema_rules::SchemaRules;
use super::schema_work::{SchemaCheckError, SchemaWork};

/// Maximum nesting depth of a payload.
const MAX_DEPTH: usize = 100;

/// Maximum size of a payload: the bytes of its strings and names, plus the number of its values, as in `measure`.
const MAX_PAYLOAD: u64 = 1 << 20;

/// Maximum nesting of the schema parts that may be applied to nested values.
const MAX_NESTING: usize = 300;

/// A schema whose validation is bounded.
pub(super) struct PayloadSchema {
    rules: SchemaRules,
    work: SchemaWork,
}

impl PayloadSchema {
    pub(super) fn new(json: &Json) -> Result<Self, SchemaCheckError> {
        let work = SchemaWork::new(json)?;
        Ok(Self { rules: SchemaRules::new(json)?, work })
    }

    /// Returns the maximum number of comparisons for checking `payload`.
    pub(super) fn work(&self, payload: &Json) -> Result<u64, SchemaCheckError> {
        let mut levels = Vec::new();
        measure(payload, 0, &mut levels)?;
        if levels.iter().sum::<u64>() > MAX_PAYLOAD || levels.len() * (self.work.longest() + 1) > MAX_NESTING
        {
            return Err(SchemaCheckError::PayloadTooLarge);
        }
        Ok(self.work.for_levels(&levels))
    }

    /// Returns a violation of the schema by `payload`, if any. Violations by values that `is_redacted` recognizes as
    /// omitted are returned only if there are no others.
    pub(super) fn violation(
        &self,
        payload: &Json,
        is_redacted: &dyn Fn(&str) -> bool,
    ) -> Option<SchemaViolation> {
        let mut redacted = HashSet::new();
        collect_redacted(payload, is_redacted, &mut redacted);
        let is_certain = |value: &Json| !redacted.contains(&std::ptr::from_ref(value));
        let certain = first_violation(&self.rules, payload, &is_certain);
        if certain.is_some() || redacted.is_empty() {
            return certain;
        }
        let first = first_violation(&self.rules, payload, &|_| true)?;
        Some(SchemaViolation { is_redacted: true, ..first })
    }
}

/// Collects the addresses of the redacted values, and of those that contain one. Returns whether `value` is among them.
fn collect_redacted(
    value: &Json,
    is_redacted: &dyn Fn(&str) -> bool,
    redacted: &mut HashSet<*const Json>,
) -> bool {
    let mut count = |values: &mut dyn Iterator<Item = &Json>| {
        values.filter(|value| collect_redacted(value, is_redacted, redacted)).count()
    };
    let has_redacted = match value {
        Json::String(text) => is_redacted(text),
        Json::Array(elements) => count(&mut elements.iter()) > 0,
        Json::Object(members) => count(&mut members.values()) > 0,
        Json::Null | Json::Bool(_) | Json::Number(_) => false,
    };
    if has_redacted {
        redacted.insert(std::ptr::from_ref(value));
    }
    has_redacted
}

/// Adds up the sizes of the values at each level.
fn measure(value: &Json, level: usize, levels: &mut Vec<u64>) -> Result<(), SchemaCheckError> {
    if level >= MAX_DEPTH {
        return Err(SchemaCheckError::PayloadTooLarge);
    }
    if levels.len() <= level {
        levels.push(0);
    }
    let size = match value {
        Json::String(text) => text.len(),
        Json::Array(elements) => elements.len(),
        Json::Object(members) => members.keys().map(|name| name.len() + 1).sum(),
        Json::Null | Json::Bool(_) | Json::Number(_) => 0,
    };
    if let Some(sum) = levels.get_mut(level) {
        *sum = sum.saturating_add(1 + size as u64);
    }
    match value {
        Json::Array(elements) => elements.iter().try_for_each(|element| measure(element, level + 1, levels)),
        Json::Object(members) => members.values().try_for_each(|member| measure(member, level + 1, levels)),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(schema: &Json, payload: &Json) -> Result<Option<String>, SchemaCheckError> {
        let schema = PayloadSchema::new(schema)?;
        schema.work(payload)?;
        let violation = schema.violation(payload, &|text| text == "[REDACTED]");
        Ok(violation.map(|violation| {
            format!(
                "{} {}{}",
                violation.at,
                violation.message,
                if violation.is_redacted { " (redacted)" } else { "" }
            )
        }))
    }

    #[test]
    fn payloads_are_held_to_schemas() {
        let schema = json!({"type": "object", "required": ["label"], "additionalProperties": false,
            "properties": {"label": {"enum": ["bug"]}, "n": {"$ref": "#/$defs/small"}, "s": {"pattern": "^a+$"}},
            "$defs": {"small": {"maximum": 3}}});
        for (payload, expected) in [
            (json!({"label": "bug", "n": 3, "s": "aa"}), None),
            (json!({"label": "x"}), Some("/label \"x\" is not one of \"bug\"")),
            (json!({"label": "bug", "n": 4}), Some("/n 4 is greater than the maximum of 3")),
            (json!({}), Some(" \"label\" is a required property")),
            (json!({"label": "[REDACTED]"}), Some("/label \"[REDACTED]\" is not one of \"bug\" (redacted)")),
            (json!({"label": "[REDACTED]", "n": 4}), Some("/n 4 is greater than the maximum of 3")),
        ] {
            assert_eq!(check(&schema, &payload).unwrap().as_deref(), expected, "{payload}");
        }
    }

    #[test]
    fn what_is_not_in_the_schema_is_never_fetched() {
        for reference in
            ["http://example.com/x.json", "file:///etc/passwd", "other.json", "#anchor", "#/nowhere"]
        {
            let refused = check(&json!({"$ref": reference}), &json!(1));
            assert_eq!(refused, Err(SchemaCheckError::Reference(reference.to_owned())));
        }
        let other_draft = check(&json!({"$schema": "http://example.com/draft"}), &json!(1));
        assert!(matches!(other_draft, Err(SchemaCheckError::NotASchema(_))), "{other_draft:?}");
    }

    #[test]
    fn schemas_that_cannot_be_bounded_are_refused() {
        assert_eq!(check(&json!({"$ref": "#"}), &json!(1)), Err(SchemaCheckError::Circle));
        assert!(matches!(
            check(&json!({"unevaluatedProperties": false}), &json!(1)),
            Err(SchemaCheckError::NotUsed(_))
        ));
        assert!(matches!(
            check(&json!({"allOf": [{"$id": "x"}]}), &json!(1)),
            Err(SchemaCheckError::NotUsed(_))
        ));
        assert!(matches!(check(&json!({"type": "strng"}), &json!(1)), Err(SchemaCheckError::NotASchema(_))));
        assert!(matches!(
            check(&json!({"pattern": "(?=x)"}), &json!(1)),
            Err(SchemaCheckError::NotASchema(_))
        ));
        assert!(matches!(
            check(&json!({"pattern": "((a{100}){100}){100}"}), &json!(1)),
            Err(SchemaCheckError::NotASchema(_))
        ));
        let many: Vec<u32> = (0..10_001).collect();
        assert_eq!(check(&json!({"enum": many}), &json!(1)), Err(SchemaCheckError::SchemaTooLarge));
        let deep = (0..101).fold(json!({}), |inner, _| json!({"not": inner}));
        assert_eq!(check(&deep, &json!(1)), Err(SchemaCheckError::SchemaTooLarge));
    }

    #[test]
    fn payloads_that_cannot_be_bounded_are_refused() {
        let recursive = json!({"properties": {"x": {"$ref": "#"}}});
        let deep = |levels| (0..levels).fold(json!({}), |inner, _| json!({"x": inner}));
        assert_eq!(check(&recursive, &deep(90)), Ok(None));
        assert_eq!(check(&recursive, &deep(100)), Err(SchemaCheckError::PayloadTooLarge));
        let long = "x".repeat(1 << 20);
        assert_eq!(
            check(&json!({"pattern": "^(x+)+$"}), &json!(long)),
            Err(SchemaCheckError::PayloadTooLarge)
        );
        assert!(check(&json!({"pattern": "^(x+)+y$"}), &json!("x".repeat(1 << 19))).unwrap().is_some());
    }

    /// The deepest permitted check, on a thread with a small stack.
    #[test]
    fn the_deepest_check_fits_a_small_stack() {
        let nested = (0..96).fold(json!({"type": "object"}), |inner, _| json!({"not": inner}));
        let mut links = (0..48).fold(json!({}), |mut links, index| {
            links[format!("a{index}")] = json!({"allOf": [{"$ref": format!("#/$defs/a{}", index + 1)}]});
            links
        });
        links["a48"] = json!({"properties": {"x": {"$ref": "#/$defs/a0"}}});
        let linked = json!({"$ref": "#/$defs/a0", "$defs": links});
        let payload = json!({"x": {"x": {}}});
        let checked = std::thread::Builder::new().stack_size(2 << 20).spawn(move || {
            for schema in [nested, linked] {
                assert_eq!(check(&schema, &payload), Ok(None));
                assert_eq!(
                    check(&schema, &json!({"x": {"x": {"x": {}}}})),
                    Err(SchemaCheckError::PayloadTooLarge)
                );
            }
        });
        checked.unwrap().join().unwrap();
    }

    #[test]
    fn schemas_are_built_however_long_their_references_are() {
        const LINKS: usize = 2_400;
        let mut links = (0..LINKS).fold(json!({}), |mut links, index| {
            links[format!("a{index}")] =
                json!({"properties": {"x": {"$ref": format!("#/$defs/a{}", index + 1)}}});
            links
        });
        links[format!("a{LINKS}")] = json!({});
        assert_eq!(check(&json!({"$ref": "#/$defs/a0", "$defs": links}), &json!({"x": {"x": {}}})), Ok(None));
    }
}

//! AU10 and AU11: bounded validation of payloads against JSON Schemas from untrusted contracts: nothing is fetched, and no
//! schema or payload can make a check slow or deeply recursive.

use std::collections::{BTreeMap, HashMap, HashSet};

use serde_json::Value as Json;

use super::refs::{SCHEMAS, UNCHECKED, is_reading};
use super::run::ResolvedContent;
use super::schema_check::{SchemaViolation, first_violation};
use super::schema_rules::SchemaRules;
use super::schema_work::{SchemaCheckError, SchemaWork};
use super::sources::at_pointer;
use crate::artifact::{RunCall, RunCallResult};
use crate::digest::Digest;
use crate::formats::{self, ContractTerms, IoRef, SchemaSource};
use crate::json::Value;
use crate::json::reader::{self, Limits, excerpt};
use crate::validation::Findings;

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

/// Placeholders that recorders write for omitted values.
const REDACTED: [&str; 2] = ["[REDACTED]", "<omitted by policy>"];

/// Maximum work of all checks of one audit, in comparisons of a value with a part of a schema.
const MAX_WORK: u64 = 50_000_000;

/// The schemas of a contract, and the results of validating payloads.
pub(super) struct PayloadValidator<'t> {
    terms: &'t ContractTerms,
    /// The bytes of schemas that the contract references by digest.
    held: HashMap<Digest, ResolvedContent>,
    schemas: HashMap<usize, Result<PayloadSchema, String>>,
    work_left: u64,
    findings: Findings,
    /// Unchecked payloads by ref and reason: their number, and the first location.
    unchecked: BTreeMap<(usize, String), (u64, String)>,
}

/// Returns the digests of the schemas that a contract references.
pub(super) fn schema_digests(terms: &ContractTerms) -> impl Iterator<Item = Digest> {
    terms.io_refs.iter().filter_map(|io_ref| match &io_ref.schema {
        SchemaSource::Named(name) => digest_and_pointer(name).map(|(digest, _)| digest),
        SchemaSource::Inline(_) => None,
    })
}

/// Splits `sha256:…` or `sha256:…#/pointer` into its parts.
fn digest_and_pointer(name: &str) -> Option<(Digest, &str)> {
    let (digest, pointer) = name.split_once('#').unwrap_or((name, ""));
    Some((Digest::parse_prefixed(digest)?, pointer))
}

impl<'t> PayloadValidator<'t> {
    /// Creates the checker. `held` contains the bytes of the schemas [`named`] by digest, as far as they are available.
    pub(super) fn new(terms: &'t ContractTerms, held: HashMap<Digest, ResolvedContent>) -> Self {
        Self {
            terms,
            held,
            schemas: HashMap::new(),
            work_left: MAX_WORK,
            findings: Findings::default(),
            unchecked: BTreeMap::new(),
        }
    }

    /// Validates the payloads of the ref with this number: the arguments if the ref is written, the result if the ref
    /// or the call is read-only.
    pub(super) fn check(&mut self, index: usize, call: &RunCall<'_, '_>) {
        let Some(io_ref) = self.terms.io_refs.get(index) else { return };
        let reads =
            call.names.mode.map_or(io_ref.mode == "read", |mode| io_ref.mode == "read" || is_reading(mode));
        let (place, payloads) = match &call.answer {
            RunCallResult::Result { place, value } if reads => (place, results(value)),
            _ if reads => return,
            _ => (&call.place, call.arguments.as_deref().into_iter().collect()),
        };
        if payloads.is_empty() {
            return;
        }
        if let Err(why) = self.hold(index, io_ref, place, &payloads) {
            self.unchecked.entry((index, why)).or_insert_with(|| (0, place.clone())).0 += 1;
        }
    }

    /// Reports the violations of the first of `payloads` unless one of them is valid: recorders wrap results.
    fn hold(
        &mut self,
        index: usize,
        io_ref: &IoRef,
        place: &str,
        payloads: &[&Value<'_>],
    ) -> Result<(), String> {
        let held = &self.held;
        let schema = self.schemas.entry(index).or_insert_with(|| schema_of(io_ref, held));
        let schema = schema.as_ref().map_err(Clone::clone)?;
        let mut first = None;
        for payload in payloads {
            let payload = to_json(payload).ok_or("the payload has numbers that cannot be compared")?;
            let work = schema.work(&payload).map_err(|refusal| refusal.to_string())?;
            self.work_left = self
                .work_left
                .checked_sub(work)
                .ok_or("the payloads of the run are too many or too large")?;
            match schema.violation(&payload, &is_redacted) {
                None => return Ok(()),
                Some(violation) => first = first.or(Some(violation)),
            }
        }
        let Some(violation) = first else { return Ok(()) };
        if violation.is_redacted {
            return Err("the recorder omitted data that the schema describes".to_owned());
        }
        let at = if violation.at.is_empty() { String::new() } else { format!("{}: ", violation.at) };
        let message = format!("payload of {}: {at}{}", excerpt(&io_ref.name), violation.message);
        self.findings.for_rule(SCHEMAS).add(place, message);
        Ok(())
    }

    /// Reports the violations, and the payloads that could not be checked.
    pub(super) fn report(self, findings: &mut Findings) {
        for ((index, why), (count, place)) in self.unchecked {
            let name = self.terms.io_refs.get(index).map(|io_ref| excerpt(&io_ref.name)).unwrap_or_default();
            let payloads = if count == 1 { "1 payload".to_owned() } else { format!("{count} payloads") };
            findings
                .for_rule(UNCHECKED)
                .add(place, format!("{payloads} of {name} not checked against the schema: {why}"));
        }
        for violation in self.findings.into_report().violations() {
            findings.for_rule(SCHEMAS).add(violation.path.as_str(), violation.message.as_str());
        }
    }
}

/// Returns the schema of a ref, or the reason that there is none to use.
fn schema_of(io_ref: &IoRef, held: &HashMap<Digest, ResolvedContent>) -> Result<PayloadSchema, String> {
    let json = match &io_ref.schema {
        SchemaSource::Inline(value) => to_json(in_json_schema(value)?),
        SchemaSource::Named(name) => {
            let Some((digest, pointer)) = digest_and_pointer(name) else {
                return Err(format!(
                    "{} is a path, but the vault stores schemas only by digest",
                    excerpt(name)
                ));
            };
            let held = held.get(&digest).ok_or_else(|| format!("the vault does not have {digest}"))?;
            let value = reader::read(&held.bytes, &Limits::most());
            let value = value.map_err(|error| format!("{digest} is not JSON: {error}"))?;
            let found =
                at_pointer(&value, pointer).filter(|_| pointer.is_empty() || pointer.starts_with('/'));
            let found = found.ok_or_else(|| format!("{digest} has no value at {}", excerpt(pointer)))?;
            to_json(in_json_schema(found)?)
        }
    };
    let json = json.ok_or("the schema has numbers that cannot be compared")?;
    PayloadSchema::new(&json).map_err(|refusal: SchemaCheckError| refusal.to_string())
}

/// Returns the schema, unless it is in another language than JSON Schema.
fn in_json_schema<'v, 'd>(schema: &'v Value<'d>) -> Result<&'v Value<'d>, String> {
    match formats::foreign_language(schema) {
        Some(language) => Err(format!("the schema is {language}")),
        None => Ok(schema),
    }
}

/// Returns the candidates for the result within a recorder's wrapping: the whole value, and the members that contain
/// the tool's result.
fn results<'v, 'd>(value: &'v Value<'d>) -> Vec<&'v Value<'d>> {
    let inner = ["result", "body", "event"].into_iter().filter_map(|name| value.get(name));
    inner.chain([value]).collect()
}

fn is_redacted(text: &str) -> bool {
    REDACTED.iter().any(|mark| text.contains(mark))
}

/// Converts `value` for the validator; `None` if a number is out of its range.
fn to_json(value: &Value<'_>) -> Option<Json> {
    Some(match value {
        Value::Null => Json::Null,
        Value::Bool(truth) => Json::Bool(*truth),
        Value::Number(number) => {
            let integer = || number.literal().parse::<u64>().ok().map(Json::from);
            let exact = number.as_i64().map(Json::from).or_else(integer);
            let double = || serde_json::Number::from_f64(number.as_f64()).map(Json::Number);
            if number.is_integer() { exact? } else { double()? }
        }
        Value::String(text) => Json::String(text.clone().into_owned()),
        Value::Array(elements) => Json::Array(elements.iter().map(to_json).collect::<Option<_>>()?),
        Value::Object(object) => {
            let members = object.iter().map(|(name, member)| Some((name.to_owned(), to_json(member)?)));
            Json::Object(members.collect::<Option<_>>()?)
        }
    })
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

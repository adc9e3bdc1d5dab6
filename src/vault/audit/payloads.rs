//! AU10 and AU11: validation of payloads against the schemas of their targets.

use std::collections::{BTreeMap, HashMap};

use serde_json::Value as Json;

use super::refs::{SCHEMAS, UNCHECKED, is_reading};
use super::run::ResolvedContent;
use super::schema::PayloadSchema;
use super::schema_work::SchemaCheckError;
use super::sources::at_pointer;
use crate::artifact::{RunCall, RunCallResult};
use crate::digest::Digest;
use crate::formats::{self, ContractTerms, IoRef, SchemaSource};
use crate::json::Value;
use crate::json::reader::{self, Limits, excerpt};
use crate::validation::Findings;

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

//! AU10 and AU11: payloads held to the schemas of their targets.

use std::collections::{BTreeMap, HashMap};

use serde_json::Value as Json;

use super::schema::Schema;
use super::schema_work::Refusal;
use super::{Held, IoRef, SCHEMAS, SchemaSource, Terms, UNCHECKED};
use crate::artifact::{Answer, Call};
use crate::canonical::Value;
use crate::canonical::reader::{self, Limits, excerpt};
use crate::digest::Digest;
use crate::verify::Findings;

use super::refs::is_reading;
use super::sources::at_pointer;

/// What recorders write in place of what they leave out.
const REDACTED: [&str; 2] = ["[REDACTED]", "<omitted by policy>"];

/// The work of all checks of one audit, in comparisons of a value with a part of a schema.
const MAX_WORK: u64 = 50_000_000;

/// The schemas of a contract, and what was found with them.
pub(super) struct Payloads<'t> {
    terms: &'t Terms,
    /// The bytes of schemas that the contract names by their digests.
    held: HashMap<Digest, Held>,
    schemas: HashMap<usize, Result<Schema, String>>,
    work_left: u64,
    findings: Findings,
    /// Payloads that were not checked, by ref and reason: how many, and where first.
    unchecked: BTreeMap<(usize, String), (u64, String)>,
}

/// The digests by which a contract names its schemas.
pub(super) fn named(terms: &Terms) -> impl Iterator<Item = Digest> {
    terms.io_refs.iter().filter_map(|io_ref| match &io_ref.schema {
        SchemaSource::Named(name) => digest_and_pointer(name).map(|(digest, _)| digest),
        SchemaSource::Inline(_) => None,
    })
}

/// The parts of `sha256:…` or `sha256:…#/pointer`.
fn digest_and_pointer(name: &str) -> Option<(Digest, &str)> {
    let (digest, pointer) = name.split_once('#').unwrap_or((name, ""));
    Some((Digest::stated(digest)?, pointer))
}

impl<'t> Payloads<'t> {
    /// `held` has the bytes of the schemas that are [`named`] by their digests, as far as there are any.
    pub(super) fn new(terms: &'t Terms, held: HashMap<Digest, Held>) -> Self {
        Self {
            terms,
            held,
            schemas: HashMap::new(),
            work_left: MAX_WORK,
            findings: Findings::default(),
            unchecked: BTreeMap::new(),
        }
    }

    /// Holds what flowed through the ref with this number to its schema: what a call sent where the ref is written, what
    /// came back where the ref or the call only reads.
    pub(super) fn check(&mut self, index: usize, call: &Call<'_, '_>) {
        let Some(io_ref) = self.terms.io_refs.get(index) else { return };
        let reads =
            call.names.mode.map_or(io_ref.mode == "read", |mode| io_ref.mode == "read" || is_reading(mode));
        let (place, payloads) = match &call.answer {
            Answer::Result { place, value } if reads => (place, results(value)),
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

    /// Reports what is wrong with the first of `payloads` unless one of them is good: recorders wrap what came back.
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
            return Err("the recorder left out what the schema describes".to_owned());
        }
        let at = if violation.at.is_empty() { String::new() } else { format!("{}: ", violation.at) };
        let message = format!("what {} was given: {at}{}", excerpt(&io_ref.name), violation.message);
        self.findings.of(SCHEMAS).add(place, message);
        Ok(())
    }

    /// Reports what was found, and what could not be looked at.
    pub(super) fn report(self, findings: &mut Findings) {
        for ((index, why), (count, place)) in self.unchecked {
            let name = self.terms.io_refs.get(index).map(|io_ref| excerpt(&io_ref.name)).unwrap_or_default();
            let payloads = if count == 1 { "1 payload".to_owned() } else { format!("{count} payloads") };
            findings.of(UNCHECKED).add(place, format!("{payloads} of {name} not held to the schema: {why}"));
        }
        for violation in self.findings.into_report().violations() {
            findings.of(SCHEMAS).add(violation.path.as_str(), violation.message.as_str());
        }
    }
}

/// The schema of a ref, or why there is none to be used.
fn schema_of(io_ref: &IoRef, held: &HashMap<Digest, Held>) -> Result<Schema, String> {
    let json = match &io_ref.schema {
        SchemaSource::Inline(value) => to_json(value),
        SchemaSource::Named(name) => {
            let Some((digest, pointer)) = digest_and_pointer(name) else {
                return Err(format!(
                    "{} is a path, and the vault keeps schemas by their digests only",
                    excerpt(name)
                ));
            };
            let held = held.get(&digest).ok_or_else(|| format!("the vault does not have {digest}"))?;
            let value = reader::read(&held.bytes, &Limits::most());
            let value = value.map_err(|error| format!("{digest} is not JSON: {error}"))?;
            let found =
                at_pointer(&value, pointer).filter(|_| pointer.is_empty() || pointer.starts_with('/'));
            to_json(found.ok_or_else(|| format!("{digest} has nothing at {}", excerpt(pointer)))?)
        }
    };
    let json = json.ok_or("the schema has numbers that cannot be compared")?;
    Schema::new(&json).map_err(|refusal: Refusal| refusal.to_string())
}

/// What came back, as recorders wrap it: the whole result, and the members that hold what the tool gave.
fn results<'v, 'd>(value: &'v Value<'d>) -> Vec<&'v Value<'d>> {
    let inner = ["result", "body", "event"].into_iter().filter_map(|name| value.get(name));
    inner.chain([value]).collect()
}

fn is_redacted(text: &str) -> bool {
    REDACTED.iter().any(|mark| text.contains(mark))
}

/// `value` for the validator; nothing if a number is beyond what it can hold.
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

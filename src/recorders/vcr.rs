//! Cassettes of VCR.py: `docs/import.md`, "VCR.py".

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};

use chrono::{DateTime, Utc};

use super::binary::{DecodingBudget, base64};
use super::exchange::{ImportedExchange, ImportedRequest, ImportedResponse, ImportedRun, ImportedRuns};
use super::reading::{Fault, LocatedValue, RecorderResult, parse_time};
use crate::conversation::response::RetryHeaders;
use crate::json::members::at;
use crate::json::reader::{self, Limits};
use crate::json::{Value, compact};
use crate::yaml::{self, BINARY, YamlSchema};

/// The members of the document, of an interaction, of a request and of a response.
const DOCUMENT: &[&str] = &["interactions", "version"];
const INTERACTION: &[&str] = &["request", "response", "recorded_at"];
const REQUEST: &[&str] = &["method", "uri", "body", PARSED, "headers"];
const RESPONSE: &[&str] =
    &["status", "status_code", "body", PARSED, "content", "headers", "http_version", "protocol", "url"];

/// The member with a body that is JSON, as a structure: several test suites write cassettes in this way.
const PARSED: &str = "parsed_body";

/// The other headers that are mapped, and those that only describe how a body was sent.
const HEADERS: &[&str] = &[
    "content-type",
    "content-encoding",
    "date",
    "accept",
    "accept-encoding",
    "connection",
    "content-length",
    "host",
    "transfer-encoding",
];

/// Reads a cassette.
pub(super) fn read(bytes: &[u8], limits: &Limits) -> RecorderResult<ImportedRuns> {
    let value = document(bytes, YamlSchema::Text, limits)?;
    let root = LocatedValue::new(&value, "");
    if let Some(version) = root.member("version") {
        let number = version.integer()?;
        if number != 1 {
            return Err(version.fault(format!("version {number} of VCR.py cassettes is not supported")));
        }
    }
    let mut cassette = Cassette {
        budget: DecodingBudget::new(limits.bytes),
        structures: structures(&value, bytes, limits),
        headers: BTreeSet::new(),
        unmapped: Vec::new(),
    };
    cassette.others(&root, DOCUMENT);
    let mut exchanges = Vec::new();
    for interaction in root.required("interactions")?.elements()? {
        exchanges.push((0, cassette.interaction(&interaction)?));
    }
    let Cassette { headers, mut unmapped, .. } = cassette;
    if !headers.is_empty() {
        let names = headers.into_iter().collect::<Vec<_>>().join(", ");
        unmapped.push(("interactions".to_owned(), format!("these headers are not mapped: {names}")));
    }
    let unmapped = unmapped.into_iter().map(|(location, reason)| (0, location, reason)).collect();
    Ok(ImportedRuns { runs: vec![ImportedRun { exchanges, ..ImportedRun::default() }], unmapped })
}

/// Reads the document as JSON or YAML.
fn document<'b>(bytes: &'b [u8], schema: YamlSchema, limits: &Limits) -> RecorderResult<Value<'b>> {
    let text = reader::utf8(bytes, limits).map_err(|error| Fault::of_text(&error, 1))?;
    let json = text.trim_start().starts_with('{').then(|| reader::read(bytes, limits));
    match json {
        Some(Ok(document)) => Ok(document),
        // A flow mapping of YAML begins like an object. If it is neither, it is most likely damaged JSON.
        Some(Err(json)) => yaml::read(text, schema, limits).map_err(|_| Fault::of_text(&json, 1)),
        None => yaml::read(text, schema, limits).map_err(|error| Fault::of_text(&error, 1)),
    }
}

/// Returns the bodies that are structures, by location: VCR.py writes those that aiohttp sends as JSON in this way, and their
/// scalars have types.
fn structures(root: &Value<'_>, bytes: &[u8], limits: &Limits) -> HashMap<String, Vec<u8>> {
    let has_structure = bodies(root).any(|(_, body)| is_structure(body));
    let typed = if has_structure { document(bytes, YamlSchema::Written, limits).ok() } else { None };
    let bodies = typed.iter().flat_map(bodies).filter(|(_, body)| is_structure(body));
    bodies.map(|(location, body)| (location, compact::text(body).into_bytes())).collect()
}

/// Returns the bodies that can be structures, with their locations.
fn bodies<'v>(root: &'v Value<'v>) -> impl Iterator<Item = (String, &'v Value<'v>)> {
    let interactions = root.get("interactions").and_then(Value::as_array).unwrap_or_default().iter();
    interactions.enumerate().flat_map(|(index, one)| {
        let places = [["request", "body"], ["request", PARSED], ["response", PARSED]];
        places.into_iter().filter_map(move |[message, member]| {
            Some((format!("interactions[{index}].{message}.{member}"), at(one, &[message, member])?))
        })
    })
}

/// Returns whether a body is neither text nor bytes, nor a list of those.
fn is_structure(body: &Value<'_>) -> bool {
    match body {
        Value::Object(_) => body.get(BINARY).is_none() && body.get("string").is_none(),
        Value::Array(parts) => parts.iter().any(is_structure),
        _ => false,
    }
}

struct Cassette {
    budget: DecodingBudget,
    /// The bodies that are structures, as JSON.
    structures: HashMap<String, Vec<u8>>,
    /// The names of headers that are not mapped.
    headers: BTreeSet<String>,
    unmapped: Vec<(String, String)>,
}

/// A body, as a cassette states it.
enum RecordedBody {
    Missing,
    Bytes(Vec<u8>),
    /// Neither text nor bytes, nor JSON.
    Structure,
}

/// The headers of a message that are mapped.
#[derive(Default)]
struct Headers {
    content_type: Option<String>,
    content_encoding: String,
    retry: RetryHeaders,
    date: Option<DateTime<Utc>>,
}

impl Cassette {
    /// Lists members that are not known.
    fn others(&mut self, node: &LocatedValue<'_>, known: &[&str]) {
        for name in node.others(known) {
            let location = if node.location.is_empty() { "the document" } else { &node.location };
            self.unmapped
                .push((location.to_owned(), format!("the member {} is not mapped", reader::excerpt(name))));
        }
    }

    fn interaction(&mut self, node: &LocatedValue<'_>) -> RecorderResult<ImportedExchange> {
        self.others(node, INTERACTION);
        let (request, response) = (node.required("request")?, node.required("response")?);
        request.object()?;
        response.object()?;
        self.others(&request, REQUEST);
        self.others(&response, RESPONSE);
        let headers = self.headers(&request)?;
        let method = request.required("method")?.text()?.to_owned();
        let url = request.required("uri")?.text()?.to_owned();
        let location = node.location.clone();
        let body = self.body(&request, &["body", PARSED])?;
        let (body, request_error) = match self.plain(body, &headers, &location)? {
            Ok(body) => (body.unwrap_or_default(), None),
            Err(reason) => (Vec::new(), Some(format!("the body of the request: {reason}"))),
        };
        let request = ImportedRequest::Http { method, url, body };
        let headers = self.headers(&response)?;
        let status = match (response.member("status"), response.member("status_code")) {
            (Some(status), _) => status.required("code")?.status()?,
            (None, Some(status)) => status.status()?,
            (None, None) => return Err(response.fault("the required member status is missing")),
        };
        let at = node.member("recorded_at").and_then(|time| time.time()).or(headers.date);
        let body = self.body(&response, &["body", "content", PARSED])?;
        let body = self.plain(body, &headers, &location)?;
        let Headers { content_type, retry, .. } = headers;
        let reply = match (request_error, body) {
            (Some(reason), _) => ImportedResponse::Unmapped(reason),
            (None, Err(reason)) => ImportedResponse::Unmapped(format!("the body of the response: {reason}")),
            (None, Ok(None)) => ImportedResponse::without_body(status, content_type, retry),
            (None, Ok(Some(body))) => ImportedResponse::Answer { status, content_type, retry, body },
        };
        Ok(ImportedExchange { location, request, reply, at, latency_ms: None })
    }

    /// Returns the body in the first of these members that has one.
    fn body(&mut self, message: &LocatedValue<'_>, members: &[&str]) -> RecorderResult<RecordedBody> {
        let Some(body) = members.iter().find_map(|name| message.member(name)) else {
            return Ok(RecordedBody::Missing);
        };
        if let Some(structure) = self.structures.remove(&body.location) {
            return Ok(RecordedBody::Bytes(structure));
        }
        if body.value.get("string").is_some_and(Value::is_null) {
            return Ok(RecordedBody::Missing);
        }
        Ok(bytes(&body)?.map_or(RecordedBody::Structure, RecordedBody::Bytes))
    }

    /// Returns a body without its content encoding; `None` if the cassette states none. The inner error says why it cannot be
    /// decoded.
    fn plain(
        &mut self,
        body: RecordedBody,
        headers: &Headers,
        location: &str,
    ) -> RecorderResult<Result<Option<Vec<u8>>, String>> {
        Ok(match body {
            RecordedBody::Missing => Ok(None),
            RecordedBody::Bytes(body) => {
                self.budget.decoded(body, &headers.content_encoding, location)?.map(Some)
            }
            RecordedBody::Structure => Err("it is a structure, not the text that was sent".to_owned()),
        })
    }

    fn headers(&mut self, message: &LocatedValue<'_>) -> RecorderResult<Headers> {
        let mut headers = Headers::default();
        let Some(header_member) = message.member("headers") else { return Ok(headers) };
        for (name, value) in header_member.members()? {
            let name = name.to_ascii_lowercase();
            let text = first(&value)?;
            match name.as_str() {
                "content-type" => headers.content_type = text,
                "content-encoding" => headers.content_encoding = text.unwrap_or_default(),
                "date" => headers.date = text.as_deref().and_then(parse_time),
                other => {
                    if !headers.retry.set(other, text) && !HEADERS.contains(&other) {
                        self.headers.insert(name);
                    }
                }
            }
        }
        Ok(headers)
    }
}

/// Returns the first value of a header.
fn first(value: &LocatedValue<'_>) -> RecorderResult<Option<String>> {
    let text = |value: &LocatedValue<'_>| match value.value {
        Value::Number(number) => Ok(number.literal().to_owned()),
        Value::Object(_) => {
            bytes(value).map(|bytes| String::from_utf8_lossy(&bytes.unwrap_or_default()).into_owned())
        }
        _ => value.text().map(str::to_owned),
    };
    match value.value {
        Value::Array(_) => value.elements()?.next().map(|value| text(&value)).transpose(),
        _ => text(value).map(Some),
    }
}

/// Returns the bytes of a body: a string, bytes in Base64, an object with one of them, or a list of parts. Returns `None`
/// if it is something else.
fn bytes(body: &LocatedValue<'_>) -> RecorderResult<Option<Vec<u8>>> {
    Ok(match body.value {
        Value::Null => Some(Vec::new()),
        Value::String(text) => Some(Cow::clone(text).into_owned().into_bytes()),
        Value::Object(_) => match (body.member(BINARY), body.member("string")) {
            (Some(binary), _) => {
                let decoded = base64(binary.text()?);
                Some(decoded.ok_or_else(|| body.fault("the Base64 of !!binary is damaged"))?)
            }
            (None, Some(string)) => bytes(&string)?,
            (None, None) => body.value.get("string").map(|_| Vec::new()),
        },
        Value::Array(_) => {
            let mut all = Some(Vec::new());
            for part in body.elements()? {
                match (&mut all, bytes(&part)?) {
                    (Some(all), Some(part)) => all.extend(part),
                    _ => all = None,
                }
            }
            all
        }
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recording(text: &str) -> ImportedRuns {
        read(text.as_bytes(), &Limits::default()).unwrap_or_else(|fault| panic!("{}", fault.in_file("c")))
    }

    fn fault(text: &str) -> String {
        read(text.as_bytes(), &Limits::default()).unwrap_err().in_file("c").to_string()
    }

    const CASSETTE: &str = "interactions:
- request:
    body: '{\"model\":\"m\",\"messages\":[]}'
    headers:
      authorization: [Bearer secret]
      X-Stainless: [a]
    method: POST
    uri: https://api.openai.com/v1/chat/completions
  response:
    body: {string: !!binary 'eyJhIjoxfQ=='}
    headers:
      Content-Type: [application/json]
      Date: ['Thu, 01 Jan 1970 00:01:00 GMT']
    status: {code: 200, message: OK}
version: 1
";

    #[test]
    fn interactions_are_exchanges() {
        let ImportedRuns { mut runs, unmapped } = recording(CASSETTE);
        let (_, exchange) = runs.remove(0).exchanges.remove(0);
        let ImportedRequest::Http { method, url, body } = &exchange.request else { panic!("{exchange:?}") };
        assert_eq!((method.as_str(), url.as_str()), ("POST", "https://api.openai.com/v1/chat/completions"));
        assert_eq!(body, br#"{"model":"m","messages":[]}"#);
        let ImportedResponse::Answer { status, content_type, body, .. } = &exchange.reply else {
            panic!("{exchange:?}")
        };
        assert_eq!(
            (*status, content_type.as_deref(), body.as_slice()),
            (200, Some("application/json"), &b"{\"a\":1}"[..])
        );
        assert_eq!(exchange.at.unwrap().timestamp(), 60);
        let names = "these headers are not mapped: authorization, x-stainless".to_owned();
        assert_eq!(unmapped, [(0, "interactions".to_owned(), names)]);
    }

    #[test]
    fn bodies_that_are_mappings_are_json() {
        let body = r#"body: {a: 1, b: 1.0e-05, c: true, d: null, e: '1', f: 1e5, g: 0o17, h: "on", j: 1e+5, i: [-2, x y, 2+2]}"#;
        let text = CASSETTE.replace(r#"body: '{"model":"m","messages":[]}'"#, body);
        let exchange = recording(&text).runs.remove(0).exchanges.remove(0).1;
        let ImportedRequest::Http { body, .. } = exchange.request else { panic!("{exchange:?}") };
        let expected = r#"{"a":1,"b":1.0e-05,"c":true,"d":null,"e":"1","f":"1e5","g":"0o17","h":"on","j":"1e+5","i":[-2,"x y","2+2"]}"#;
        assert_eq!(String::from_utf8(body).unwrap(), expected);

        let json = r#"{"version":1,"interactions":[{"request":{"method":"POST","uri":"/v1/messages","body":{"a":[1,"1",null]}},
            "response":{"status":{"code":200},"body":{"string":"{}"}}}]}"#;
        let exchange = recording(json).runs.remove(0).exchanges.remove(0).1;
        let ImportedRequest::Http { body, .. } = exchange.request else { panic!("{exchange:?}") };
        assert_eq!(String::from_utf8(body).unwrap(), r#"{"a":[1,"1",null]}"#);
    }

    fn reply(text: &str) -> ImportedResponse {
        recording(text).runs.remove(0).exchanges.remove(0).1.reply
    }

    #[test]
    fn a_response_without_a_body_is_not_an_empty_answer() {
        let body = "    body: {string: !!binary 'eyJhIjoxfQ=='}\n";
        for without in ["", "    body: null\n", "    body: {string: null}\n", "    content: null\n"] {
            let text = CASSETTE.replace(body, without);
            assert!(
                matches!(reply(&text), ImportedResponse::Unmapped(why) if why.contains("does not state the body")),
                "{without}"
            );
            let failed = reply(&text.replace("code: 200", "code: 503"));
            assert!(matches!(failed, ImportedResponse::Answer { status: 503, .. }), "{failed:?}");
        }
    }

    #[test]
    fn parsed_bodies_are_json() {
        let text = CASSETTE
            .replace(
                r#"body: '{"model":"m","messages":[]}'"#,
                "parsed_body: {model: m, n: 1, x: [true, '2']}",
            )
            .replace(
                "body: {string: !!binary 'eyJhIjoxfQ=='}",
                "parsed_body: {created: 17, a: 0.5, b: null, c: yes it is}",
            );
        let exchange = recording(&text).runs.remove(0).exchanges.remove(0).1;
        let ImportedRequest::Http { body, .. } = exchange.request else { panic!() };
        assert_eq!(String::from_utf8(body).unwrap(), r#"{"model":"m","n":1,"x":[true,"2"]}"#);
        let ImportedResponse::Answer { body, .. } = exchange.reply else { panic!() };
        assert_eq!(String::from_utf8(body).unwrap(), r#"{"created":17,"a":0.5,"b":null,"c":"yes it is"}"#);
    }

    #[test]
    fn cassettes_that_the_program_loads_are_read() {
        let indented = CASSETTE.replace(
            r#"body: '{"model":"m","messages":[]}'"#,
            "body: '{\"model\":\"m\",\n    \"messages\":[]}'",
        );
        let key = "? !!python/object/apply:multidict._multidict.istr\n      - Accept\n      : [a]";
        let keyed = CASSETTE.replace("X-Stainless: [a]", key);
        let versioned = format!("%YAML 1.1\n---\n{CASSETTE}");
        for text in [indented, keyed, versioned, CASSETTE.replace("version: 1\n", "")] {
            let exchange = recording(&text).runs.remove(0).exchanges.remove(0).1;
            let ImportedRequest::Http { body, .. } = exchange.request else { panic!() };
            let body = String::from_utf8(body).unwrap().replace(' ', "");
            assert_eq!(body, r#"{"model":"m","messages":[]}"#, "{text}");
        }
    }

    #[test]
    fn defects_name_their_location_and_rule() {
        for (from, to, expected) in [
            (
                "version: 1",
                "version: 2",
                "c: version: version 2 of VCR.py cassettes is not supported (rule IM3)",
            ),
            (
                "    method: POST\n",
                "",
                "c: interactions[0].request: the required member method is missing (rule IM3)",
            ),
            (
                "code: 200",
                "code: 20",
                "c: interactions[0].response.status.code: 20 is not a status of HTTP (rule IM3)",
            ),
            (
                "eyJhIjoxfQ==",
                "eyJhIjoxfQ=",
                "c: interactions[0].response.body.string: the Base64 of !!binary is damaged (rule IM3)",
            ),
            (
                "  response:\n",
                "  response: []\n  other:\n",
                "c: interactions[0].response: must be an object, is an array (rule IM3)",
            ),
            (
                "version: 1",
                "version: 1\nversion: 1",
                "c: line 16 column 1: the mapping already has a key \"version\" (rule IM1)",
            ),
        ] {
            assert!(CASSETTE.contains(from));
            assert_eq!(fault(&CASSETTE.replace(from, to)), expected);
        }
    }
}

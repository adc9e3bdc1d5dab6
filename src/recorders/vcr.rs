//! Cassettes of VCR.py: `docs/import.md`, "VCR.py".

use std::collections::HashMap;

use super::cassette::{CassetteReader, RecordedBody, RecordedInteraction};
use super::exchange::{ImportedExchange, ImportedRuns};
use super::reading::{Fault, LocatedValue, RecorderResult};
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
    let mut cassette = VcrCassette {
        reader: CassetteReader::new(limits.bytes),
        structures: structures(&value, bytes, limits),
    };
    cassette.reader.others(&root, DOCUMENT);
    let mut exchanges = Vec::new();
    for interaction in root.required("interactions")?.elements()? {
        exchanges.push(cassette.interaction(&interaction)?);
    }
    Ok(cassette.reader.into_runs(exchanges, "interactions"))
}

/// Reads the document as JSON or YAML.
pub(super) fn document<'b>(
    bytes: &'b [u8],
    schema: YamlSchema,
    limits: &Limits,
) -> RecorderResult<Value<'b>> {
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

struct VcrCassette {
    reader: CassetteReader,
    /// The bodies that are structures, as JSON.
    structures: HashMap<String, Vec<u8>>,
}

impl VcrCassette {
    fn interaction(&mut self, node: &LocatedValue<'_>) -> RecorderResult<ImportedExchange> {
        self.reader.others(node, INTERACTION);
        let (request, response) = (node.required("request")?, node.required("response")?);
        request.object()?;
        response.object()?;
        self.reader.others(&request, REQUEST);
        self.reader.others(&response, RESPONSE);
        let status = match (response.member("status"), response.member("status_code")) {
            (Some(status), _) => status.required("code")?.status()?,
            (None, Some(status)) => status.status()?,
            (None, None) => return Err(response.fault("the required member status is missing")),
        };
        let interaction = RecordedInteraction {
            location: node.location.clone(),
            method: request.required("method")?.text()?.to_owned(),
            url: request.required("uri")?.text()?.to_owned(),
            request: (self.reader.headers(&request)?, self.body(&request, &["body", PARSED])?),
            status,
            response: (self.reader.headers(&response)?, self.body(&response, &["body", "content", PARSED])?),
            at: node.member("recorded_at").and_then(|time| time.time()),
            latency_ms: None,
        };
        self.reader.exchange(interaction)
    }

    /// Returns the body in the first of these members that has one.
    fn body(&mut self, message: &LocatedValue<'_>, members: &[&str]) -> RecorderResult<RecordedBody> {
        let Some(body) = members.iter().find_map(|name| message.member(name)) else {
            return Ok(RecordedBody::Missing);
        };
        match self.structures.remove(&body.location) {
            Some(structure) => Ok(RecordedBody::Bytes(structure)),
            None => RecordedBody::read(&body),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recorders::exchange::{ImportedRequest, ImportedResponse};

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

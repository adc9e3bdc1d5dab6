//! Cassettes of go-vcr: `docs/import.md`, "go-vcr".

use super::cassette::{CassetteReader, RecordedBody, RecordedInteraction};
use super::exchange::ImportedRuns;
use super::reading::{LocatedValue, RecorderResult};
use super::vcr::document;
use crate::json::reader::Limits;
use crate::yaml::YamlSchema;

/// The versions of cassettes, of which version 3 and later of the program write the last.
const VERSIONS: [u64; 2] = [1, 2];

/// The members of the document, of an interaction, and of messages. Many repeat what others state.
const DOCUMENT: &[&str] = &["interactions", "version"];
const INTERACTION: &[&str] = &["id", "request", "response"];
const REQUEST: &[&str] = &[
    "body",
    "content_length",
    "form",
    "headers",
    "host",
    "method",
    "proto",
    "proto_major",
    "proto_minor",
    "remote_addr",
    "request_uri",
    "trailer",
    "transfer_encoding",
    "url",
];
const RESPONSE: &[&str] = &[
    "body",
    "code",
    "content_length",
    "duration",
    "headers",
    "proto",
    "proto_major",
    "proto_minor",
    "status",
    "trailer",
    "transfer_encoding",
    "uncompressed",
];

/// Reads a cassette.
pub(super) fn read(bytes: &[u8], limits: &Limits) -> RecorderResult<ImportedRuns> {
    let value = document(bytes, YamlSchema::Text, limits)?;
    let root = LocatedValue::new(&value, "");
    if let Some(version) = root.member("version") {
        let number = version.integer()?;
        if !VERSIONS.contains(&number) {
            return Err(version.fault(format!("version {number} of go-vcr cassettes is not supported")));
        }
    }
    let mut reader = CassetteReader::new(limits.bytes);
    reader.others(&root, DOCUMENT);
    let mut exchanges = Vec::new();
    for node in root.required("interactions")?.elements()? {
        let (request, response) = (node.required("request")?, node.required("response")?);
        for (node, known) in [(&node, INTERACTION), (&request, REQUEST), (&response, RESPONSE)] {
            node.object()?;
            reader.others(node, known);
        }
        let body = |message: &LocatedValue<'_>| {
            message.member("body").map_or(Ok(RecordedBody::Missing), |body| RecordedBody::read(&body))
        };
        let interaction = RecordedInteraction {
            location: node.location.clone(),
            method: request.required("method")?.text()?.to_owned(),
            url: request.required("url")?.text()?.to_owned(),
            request: (reader.headers(&request)?, body(&request)?),
            status: response.required("code")?.status()?,
            response: (reader.headers(&response)?, body(&response)?),
            at: None,
            latency_ms: response.member("duration").and_then(|took| milliseconds(took.value.as_str()?)),
        };
        exchanges.push(reader.exchange(interaction)?);
    }
    Ok(reader.into_runs(exchanges, "interactions"))
}

/// Returns the milliseconds of a duration in the form of Go, such as `1m2.5s`, rounded.
fn milliseconds(duration: &str) -> Option<u64> {
    let (mut total, mut rest) = (0.0, duration);
    while !rest.is_empty() {
        let unit = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (number, after) = rest.split_at(unit);
        let end = after.find(|c: char| c.is_ascii_digit()).unwrap_or(after.len());
        let (unit, after) = after.split_at(end);
        let factor = match unit {
            "h" => 3_600_000.0,
            "m" => 60_000.0,
            "s" => 1_000.0,
            "ms" => 1.0,
            "us" | "\u{b5}s" | "\u{3bc}s" => 1e-3,
            "ns" => 1e-6,
            _ => return None,
        };
        total += number.parse::<f64>().ok()? * factor;
        rest = after;
    }
    format!("{total:.0}").parse().ok().filter(|_| !duration.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_rounded_to_milliseconds() {
        for (duration, expected) in [
            ("1.6ms", Some(2)),
            ("850.2ms", Some(850)),
            ("1m2.5s", Some(62_500)),
            ("1h0m0.001s", Some(3_600_001)),
            ("123\u{b5}s", Some(0)),
            ("0s", Some(0)),
            ("", None),
            ("5", None),
            ("1d", None),
            ("s", None),
        ] {
            assert_eq!(milliseconds(duration), expected, "{duration}");
        }
    }

    #[test]
    fn other_versions_are_refused() {
        let error = read(b"version: 3\ninteractions: []\n", &Limits::default()).unwrap_err();
        assert_eq!(
            error.in_file("c").to_string(),
            "c: version: version 3 of go-vcr cassettes is not supported (rule IM3)"
        );
    }
}

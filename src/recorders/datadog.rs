//! Cassettes of the test agent of Datadog, which have one call each: `docs/import.md`, "Datadog".

use super::binary::base64;
use super::cassette::{CassetteReader, RecordedBody, RecordedInteraction};
use super::exchange::ImportedRuns;
use super::reading::{Fault, LocatedValue, RecorderResult};
use crate::json::reader::{self, Limits};

/// The members of the document, of a request and of a response.
const DOCUMENT: &[&str] = &["request", "response"];
const REQUEST: &[&str] = &["method", "url", "headers", "body"];
const RESPONSE: &[&str] = &["status", "headers", "body"];

/// What is before a body that is not text.
const BASE64: &str = "base64:";

/// Reads a cassette.
pub(super) fn read(bytes: &[u8], limits: &Limits) -> RecorderResult<ImportedRuns> {
    let value = reader::read(bytes, limits).map_err(|error| Fault::of_text(&error, 1))?;
    let root = LocatedValue::new(&value, "");
    let (request, response) = (root.required("request")?, root.required("response")?);
    let mut reader = CassetteReader::new(limits.bytes);
    for (node, known) in [(&root, DOCUMENT), (&request, REQUEST), (&response, RESPONSE)] {
        node.object()?;
        reader.others(node, known);
    }
    let interaction = RecordedInteraction {
        location: "the document".to_owned(),
        method: request.required("method")?.text()?.to_owned(),
        url: request.required("url")?.text()?.to_owned(),
        request: (reader.headers(&request)?, body(&request)?),
        status: response.required("status")?.required("code")?.status()?,
        response: (reader.headers(&response)?, body(&response)?),
        at: None,
        latency_ms: None,
    };
    let exchange = reader.exchange(interaction)?;
    Ok(reader.into_runs(vec![exchange], "the document"))
}

fn body(message: &LocatedValue<'_>) -> RecorderResult<RecordedBody> {
    let Some(body) = message.member("body") else { return Ok(RecordedBody::Missing) };
    let said = body.text()?;
    let bytes = match said.strip_prefix(BASE64) {
        Some(digits) => base64(digits).ok_or_else(|| body.fault("the Base64 is damaged"))?,
        None => said.as_bytes().to_vec(),
    };
    Ok(RecordedBody::Bytes(bytes))
}

//! HTTP archives (HAR), as browsers and proxies write them, and the recordings of Polly.JS, which have the same form:
//! `docs/import.md`, "HTTP archives".

use super::binary::base64;
use super::cassette::{CassetteReader, RecordedBody, RecordedInteraction};
use super::exchange::{ImportedExchange, ImportedResponse, ImportedRuns};
use super::reading::{Fault, LocatedValue, RecorderResult};
use crate::json::reader::{self, Limits};

/// Reads an archive. Members that are not read describe how messages were sent, pages, or programs.
pub(super) fn read(bytes: &[u8], limits: &Limits) -> RecorderResult<ImportedRuns> {
    let value = reader::read(bytes, limits).map_err(|error| Fault::of_text(&error, 1))?;
    let root = LocatedValue::new(&value, "");
    let mut reader = CassetteReader::new(limits.bytes);
    let mut exchanges = Vec::new();
    for entry in root.required("log")?.required("entries")?.elements()? {
        exchanges.push(entry_exchange(&mut reader, &entry)?);
    }
    // Browsers and proxies write pages one after the other, and requests as they end.
    exchanges.sort_by_key(|exchange: &ImportedExchange| exchange.at);
    Ok(reader.into_runs(exchanges, "log.entries"))
}

fn entry_exchange(reader: &mut CassetteReader, entry: &LocatedValue<'_>) -> RecorderResult<ImportedExchange> {
    let (request, response) = (entry.required("request")?, entry.required("response")?);
    let status = response.required("status")?;
    // A request that was not answered has the status zero, and browsers say why.
    let is_answered = status.integer()? != 0;
    let interaction = RecordedInteraction {
        location: entry.location.clone(),
        method: request.required("method")?.text()?.to_owned(),
        url: request.required("url")?.text()?.to_owned(),
        request: (reader.headers(&request)?, body(request.member("postData").as_ref())?),
        status: if is_answered { status.status()? } else { 0 },
        response: (reader.headers(&response)?, body(response.member("content").as_ref())?),
        at: entry.member("startedDateTime").and_then(|time| time.time()),
        latency_ms: entry.member("time").and_then(|time| time.rounded()),
    };
    let mut exchange = reader.exchange(interaction)?;
    if !is_answered {
        let why =
            [&response, entry].into_iter().find_map(|node| node.member("_error")?.value.as_non_empty_str());
        exchange.reply = ImportedResponse::Failed(why.unwrap_or("the request was not answered").to_owned());
    }
    Ok(exchange)
}

/// Returns the body of a message: a text, or bytes in Base64.
fn body(content: Option<&LocatedValue<'_>>) -> RecorderResult<RecordedBody> {
    let Some(text) = content.and_then(|content| content.member("text")) else {
        return Ok(RecordedBody::Missing);
    };
    let encoding = content.and_then(|content| content.member("encoding"));
    let bytes = match encoding.as_ref().and_then(|encoding| encoding.value.as_str()) {
        Some("base64") => base64(text.text()?).ok_or_else(|| text.fault("the Base64 is damaged"))?,
        _ => text.text()?.as_bytes().to_vec(),
    };
    Ok(RecordedBody::Bytes(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recorders::exchange::ImportedRequest;

    fn archive(entry: &str) -> ImportedExchange {
        let text = format!(r#"{{"log":{{"version":"1.2","entries":[{entry}]}}}}"#);
        let mut read = read(text.as_bytes(), &Limits::default()).unwrap_or_else(|fault| panic!("{fault:?}"));
        read.runs.remove(0).exchanges.remove(0).1
    }

    const ENTRY: &str = r#"{"startedDateTime":"2026-11-01T10:00:00.5Z","time":12.6,
        "request":{"method":"POST","url":"https://api.openai.com/v1/chat/completions","headers":[{"name":":authority","value":"x"}],
            "postData":{"mimeType":"application/json","text":"{\"model\":\"m\"}"}},
        "response":{"status":200,"headers":[{"name":"Content-Type","value":"application/json"}],
            "content":{"size":2,"text":"e30=","encoding":"base64"}}}"#;

    #[test]
    fn entries_are_exchanges() {
        let exchange = archive(ENTRY);
        let ImportedRequest::Http { body, .. } = &exchange.request else { panic!("{exchange:?}") };
        assert_eq!(body, br#"{"model":"m"}"#);
        assert_eq!(exchange.latency_ms, Some(13));
        assert_eq!(exchange.at.unwrap().timestamp_subsec_millis(), 500);
        assert!(
            matches!(&exchange.reply, ImportedResponse::Answer { status: 200, body, .. } if body == b"{}")
        );
    }

    #[test]
    fn requests_that_were_not_answered_have_failed() {
        let entry = ENTRY.replace("\"status\":200", "\"status\":0,\"_error\":\"net::ERR_ABORTED\"");
        assert!(matches!(archive(&entry).reply, ImportedResponse::Failed(why) if why == "net::ERR_ABORTED"));
        let unsaved = ENTRY.replace(",\"text\":\"e30=\"", "");
        let reply = archive(&unsaved).reply;
        assert!(matches!(reply, ImportedResponse::Unmapped(why) if why.contains("does not state the body")));
    }
}

//! Formats of recorded calls that are recognized and not read.

use super::documents::documents;
use crate::calls::values::at;
use crate::json::Value;
use crate::json::reader::{self, Limits};

/// Returns whether a line of a text begins with a word.
type LineTest<'t> = dyn Fn(&str) -> bool + 't;

/// A format that is not read.
struct ForeignFormat {
    /// What a file of it is.
    name: &'static str,
    is_document: fn(&Value<'_>) -> bool,
    /// Returns whether the lines of a text in YAML, without white space at their beginning, are of the format.
    is_yaml: fn(&LineTest<'_>) -> bool,
}

/// The formats, those with more properties first.
const FORMATS: &[ForeignFormat] = &[
    ForeignFormat {
        name: "a cassette of go-vcr",
        is_document: |document| {
            let has = |name: &str| at(document, &["interactions", "0", "request", name]).is_some();
            has("url") && !has("uri")
        },
        is_yaml: |has| has("interactions:") && has("url:") && !has("uri:"),
    },
    ForeignFormat {
        name: "a cassette of Ruby VCR",
        is_document: |document| document.get("http_interactions").is_some(),
        is_yaml: |has| has("http_interactions:"),
    },
    ForeignFormat {
        name: "a recording of Polly.JS",
        is_document: |document| {
            let creator = at(document, &["log", "creator", "name"]).and_then(Value::as_str);
            at(document, &["log", "_recordingName"]).is_some()
                || creator.is_some_and(|name| name.starts_with("Polly"))
        },
        is_yaml: |_| false,
    },
    ForeignFormat {
        name: "an HTTP archive (HAR)",
        is_document: |document| at(document, &["log", "entries"]).is_some(),
        is_yaml: |_| false,
    },
    ForeignFormat {
        name: "a cassette of Datadog's test agent",
        is_document: |document| {
            at(document, &["response", "status", "code"]).is_some()
                && at(document, &["request", "url"]).is_some()
        },
        is_yaml: |_| false,
    },
    ForeignFormat {
        name: "spans of Datadog LLM Observability",
        is_document: |document| {
            let event = document.as_array().map_or(document, |events| events.first().unwrap_or(document));
            event.get("_dd.stage").is_some()
                || at(event, &["data", "attributes", "ml_app"]).is_some()
                || at(event, &["spans", "0", "meta", "kind"]).is_some()
                || at(event, &["spans", "0", "meta", "span.kind"]).is_some()
        },
        is_yaml: |_| false,
    },
    ForeignFormat {
        name: "a fixture of nock",
        is_document: |document| {
            let has = |name: &str| at(document, &["0", name]).is_some();
            has("scope") && has("method") && has("path") && has("status")
        },
        is_yaml: |_| false,
    },
];

/// Returns what a file is, if it has one of the formats.
pub(super) fn recognize(bytes: &[u8]) -> Option<&'static str> {
    let text = reader::lossy(bytes);
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    if text.trim_start().starts_with(['{', '[']) {
        let documents = documents(bytes, &Limits::most()).ok()?;
        return documents.first().and_then(|(_, document)| of_document(document));
    }
    let has = |start: &str| text.lines().any(|line| line.trim_start_matches([' ', '-']).starts_with(start));
    FORMATS.iter().find(|format| (format.is_yaml)(&has)).map(|format| format.name)
}

/// Returns what a document is, if it has one of the formats.
pub(super) fn of_document(document: &Value<'_>) -> Option<&'static str> {
    FORMATS.iter().find(|format| (format.is_document)(document)).map(|format| format.name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recorders::RecorderFormat;

    #[test]
    fn other_formats_are_recognized_and_not_read() {
        for (text, expected) in [
            (
                r#"{"version":2,"interactions":[{"request":{"url":"u"},"response":{}}]}"#,
                "a cassette of go-vcr",
            ),
            ("---\nversion: 1\ninteractions:\n- request:\n    body: x\n    url: u\n", "a cassette of go-vcr"),
            (r#"{"http_interactions":[],"recorded_with":"VCR 6.0.0"}"#, "a cassette of Ruby VCR"),
            (
                "---\nhttp_interactions:\n- request:\n    uri: u\nrecorded_with: VCR 6.0.0\n",
                "a cassette of Ruby VCR",
            ),
            (
                r#"{"log":{"version":"1.2","creator":{"name":"WebInspector"},"entries":[]}}"#,
                "an HTTP archive (HAR)",
            ),
            (
                r#"{"log":{"_recordingName":"x","creator":{"name":"Polly.JS"},"entries":[]}}"#,
                "a recording of Polly.JS",
            ),
            (
                r#"{"request":{"method":"POST","url":"u","body":"{}"},"response":{"status":{"code":200},"body":"{}"}}"#,
                "a cassette of Datadog's test agent",
            ),
            (r#"[{"_dd.stage":"raw","spans":[]}]"#, "spans of Datadog LLM Observability"),
            (
                r#"[{"scope":"https://api.openai.com:443","method":"POST","path":"/v1/x","status":200}]"#,
                "a fixture of nock",
            ),
        ] {
            assert_eq!(recognize(text.as_bytes()), Some(expected), "{text}");
            assert_eq!(RecorderFormat::recognize(text.as_bytes()), None, "{text}");
        }
        for text in ["interactions:\n- request:\n    uri: u\n  response:\n    url: u\n", "{}", "[1]", "x", ""]
        {
            assert_eq!(recognize(text.as_bytes()), None, "{text}");
        }
    }
}

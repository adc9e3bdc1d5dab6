//! The formats, and their recognition by content.

use super::binary::{self, GZIP, ZSTD};
use super::reading::documents;
use super::{jsonl, otel};
use crate::artifact::Recognition;
use crate::formats::{self, KernelRecording};
use crate::json::Value;
use crate::json::members::at;
use crate::json::reader::{self, Limits, has_key};

/// A format of recorded calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RecorderFormat {
    /// A cassette of VCR.py, as YAML or JSON.
    Vcr,
    /// A log of Inspect, as JSON or a zip file.
    Inspect,
    /// Spans of OpenTelemetry, as OTLP writes them in JSON or Protocol Buffers.
    Otel,
    /// A cassette of go-vcr, as YAML.
    GoVcr,
    /// An HTTP archive of a browser or a proxy, or a recording of Polly.JS.
    Har,
    /// A cassette of the test agent of Datadog.
    Datadog,
    /// Requests and responses of `OpenAI` as JSON Lines: input and output of its batch API, and lines with both.
    Jsonl,
    /// A recording of context-engine-kernel: that of its recorder, or the log of its harness.
    Kernel,
}

impl RecorderFormat {
    /// Returns the name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Vcr => "vcr",
            Self::Inspect => "inspect",
            Self::Otel => "otel",
            Self::GoVcr => "go-vcr",
            Self::Har => "har",
            Self::Datadog => "datadog",
            Self::Jsonl => "jsonl",
            Self::Kernel => KernelRecording::FORMAT,
        }
    }

    /// Returns what a file is, and what to do, if it is recognized and cannot be read: a text in UTF-16, damaged gzip data, or a
    /// recording in a format of another program that is not read.
    #[must_use]
    pub fn unsupported(bytes: &[u8]) -> Option<String> {
        let is_utf_16 =
            [&b"\xff\xfe"[..], b"\xfe\xff", b"{\0", b"\0{"].iter().any(|mark| bytes.starts_with(mark));
        if is_utf_16 {
            return Some("the text is not UTF-8, but UTF-16; save it as UTF-8".to_owned());
        }
        if let Err(fault) = binary::unpacked(bytes, Limits::MAX_BYTES) {
            return Some(fault.message);
        }
        let KnownForm { name, format: None, .. } = known_form(bytes)? else { return None };
        Some(format!(
            "{name}, a format that is not supported; write its requests and responses as JSON Lines, or record the calls \
             again"
        ))
    }

    /// Returns whether a file that begins with `head` can be a recording: a text, a zip or gzip file, or messages of Protocol
    /// Buffers. Bundles are none of these.
    #[must_use]
    pub fn can_begin(head: &[u8]) -> bool {
        let is_text = !head.contains(&0) && !head.starts_with(ZSTD);
        let packed = [&b"PK\x03\x04"[..], GZIP];
        is_text
            || packed.iter().any(|magic| head.starts_with(magic))
            || otel::can_begin(head)
            || Self::unsupported(head).is_some()
    }

    /// Returns the format of a file, by its content, or `None` if it has none of these. A file of a format may still be
    /// damaged. It can be compressed with gzip.
    #[must_use]
    pub fn recognize(bytes: &[u8]) -> Option<Self> {
        match binary::unpacked(bytes, Limits::MAX_BYTES) {
            Ok(plain) => Self::of_plain(plain.as_deref().unwrap_or(bytes)),
            Err(_) => None,
        }
    }

    fn of_plain(bytes: &[u8]) -> Option<Self> {
        if bytes.starts_with(b"PK\x03\x04") {
            // The names of files are in the text of the archive.
            let names: [&[u8]; 2] = [b"_journal/start.json", b"header.json"];
            let has = |name: &&[u8]| memchr::memmem::find(bytes, name).is_some();
            return names.iter().any(has).then_some(Self::Inspect);
        }
        if otel::is_binary(bytes) {
            return Some(Self::Otel);
        }
        let text = reader::lossy(bytes);
        let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
        if !text.trim_start().starts_with(['{', '[']) {
            return match known_form(bytes) {
                Some(known) => known.format,
                None => is_cassette(text).then_some(Self::Vcr),
            };
        }
        if KernelRecording::recognizes(bytes) {
            return Some(Self::Kernel);
        }
        if matches!(formats::recognize(bytes), Some((_, Recognition::Surely))) {
            return None;
        }
        match documents(bytes, &Limits::most()) {
            Ok(documents) => documents.first().and_then(|(_, document)| of_document(document)),
            Err(_) => of_fragment(text),
        }
    }
}

/// Returns whether a text has the members of a cassette, at the beginning of lines.
fn is_cassette(text: &str) -> bool {
    let has = |name: &str| {
        text.lines()
            .any(|line| line.strip_prefix(name).is_some_and(|rest| rest.trim_start().starts_with(':')))
    };
    // It is usually the first member, so that a part of the text is enough.
    text.starts_with("interactions:") || has("interactions") && has("version")
}

/// Returns the format of a text that cannot be read.
fn of_fragment(text: &str) -> Option<RecorderFormat> {
    let has = |name: &str| has_key(text, name);
    if has("interactions") && has("version") {
        Some(RecorderFormat::Vcr)
    } else if has("resourceSpans") {
        Some(RecorderFormat::Otel)
    } else if has("eval") && has("status") && has("samples") {
        Some(RecorderFormat::Inspect)
    } else if has("custom_id") || has("request") && has("response") {
        Some(RecorderFormat::Jsonl)
    } else {
        None
    }
}

fn of_document(document: &Value<'_>) -> Option<RecorderFormat> {
    if let Some(known) = known_form_of_document(document) {
        return known.format;
    }
    let has = |name: &str| document.get(name).is_some();
    // VCR.py also reads cassettes that state no version.
    if has("interactions") && (has("version") || at(document, &["interactions", "0", "request"]).is_some()) {
        Some(RecorderFormat::Vcr)
    } else if has("resourceSpans") || has("resourceLogs") {
        Some(RecorderFormat::Otel)
    } else if has("eval") && has("status") && has("version") {
        Some(RecorderFormat::Inspect)
    } else if jsonl::is_line(document) {
        Some(RecorderFormat::Jsonl)
    } else {
        None
    }
}

/// Returns whether a line of a text begins with a word.
type LineTest<'t> = dyn Fn(&str) -> bool + 't;

/// A form of recordings of HTTP.
struct KnownForm {
    /// What a file of it is.
    name: &'static str,
    /// The format, if it is read.
    format: Option<RecorderFormat>,
    is_document: fn(&Value<'_>) -> bool,
    /// Returns whether the lines of a text in YAML, without white space at their beginning, are of the format.
    is_yaml: fn(&LineTest<'_>) -> bool,
}

/// The forms, those with more properties first.
const FORMS: &[KnownForm] = &[
    KnownForm {
        name: "a cassette of go-vcr",
        format: Some(RecorderFormat::GoVcr),
        is_document: |document| {
            let has = |name: &str| at(document, &["interactions", "0", "request", name]).is_some();
            has("url") && !has("uri")
        },
        is_yaml: |has| has("interactions:") && has("url:") && !has("uri:"),
    },
    KnownForm {
        name: "a cassette of Ruby VCR",
        format: None,
        is_document: |document| document.get("http_interactions").is_some(),
        is_yaml: |has| has("http_interactions:"),
    },
    KnownForm {
        name: "a recording of Polly.JS",
        format: Some(RecorderFormat::Har),
        is_document: |document| {
            let creator = at(document, &["log", "creator", "name"]).and_then(Value::as_str);
            at(document, &["log", "_recordingName"]).is_some()
                || creator.is_some_and(|name| name.starts_with("Polly"))
        },
        is_yaml: |_| false,
    },
    KnownForm {
        name: "an HTTP archive (HAR)",
        format: Some(RecorderFormat::Har),
        is_document: |document| at(document, &["log", "entries"]).is_some(),
        is_yaml: |_| false,
    },
    KnownForm {
        name: "a cassette of Datadog's test agent",
        format: Some(RecorderFormat::Datadog),
        is_document: |document| {
            at(document, &["response", "status", "code"]).is_some()
                && at(document, &["request", "url"]).is_some()
        },
        is_yaml: |_| false,
    },
    KnownForm {
        name: "spans of Datadog LLM Observability",
        format: None,
        is_document: |document| {
            let event = document.as_array().map_or(document, |events| events.first().unwrap_or(document));
            event.get("_dd.stage").is_some()
                || at(event, &["data", "attributes", "ml_app"]).is_some()
                || at(event, &["spans", "0", "meta", "kind"]).is_some()
                || at(event, &["spans", "0", "meta", "span.kind"]).is_some()
        },
        is_yaml: |_| false,
    },
    KnownForm {
        name: "a fixture of nock",
        format: None,
        is_document: |document| {
            let has = |name: &str| at(document, &["0", name]).is_some();
            has("scope") && has("method") && has("path") && has("status")
        },
        is_yaml: |_| false,
    },
];

/// Returns the form of a file, if it has one of these.
fn known_form(bytes: &[u8]) -> Option<&'static KnownForm> {
    let text = reader::lossy(bytes);
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    if text.trim_start().starts_with(['{', '[']) {
        let documents = documents(bytes, &Limits::most()).ok()?;
        return documents.first().and_then(|(_, document)| known_form_of_document(document));
    }
    let has = |start: &str| text.lines().any(|line| line.trim_start_matches([' ', '-']).starts_with(start));
    FORMS.iter().find(|form| (form.is_yaml)(&has))
}

/// Returns the form of a document, if it has one of these.
fn known_form_of_document(document: &Value<'_>) -> Option<&'static KnownForm> {
    FORMS.iter().find(|form| (form.is_document)(document))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_recognized_by_content() {
        for (text, format) in [
            ("interactions: []\nversion: 1\n", Some(RecorderFormat::Vcr)),
            ("{\"version\":1,\"interactions\":[]}", Some(RecorderFormat::Vcr)),
            (
                "{\"custom_id\":\"a\",\"method\":\"POST\",\"url\":\"/v1/responses\",\"body\":{}}\n",
                Some(RecorderFormat::Jsonl),
            ),
            (
                "{\"request\":{},\"response\":{}}\n{\"request\":{},\"response\":{}}\n",
                Some(RecorderFormat::Jsonl),
            ),
            ("{\"resourceSpans\":[]}\n{\"resourceSpans\":[]}\n", Some(RecorderFormat::Otel)),
            ("{\"version\":2,\"status\":\"success\",\"eval\":{}}", Some(RecorderFormat::Inspect)),
            ("{\"resourceSpans\":[}", Some(RecorderFormat::Otel)),
            ("[{\"model\":\"m\"},{\"object\":\"chat.completion\"}]\n", Some(RecorderFormat::Jsonl)),
            ("{\"interactions\":[],\"adapter_id\":\"a\"}", None),
            ("contract: interactions:\n", None),
            ("{\"a\":1}", None),
            ("", None),
        ] {
            assert_eq!(RecorderFormat::recognize(text.as_bytes()), format, "{text}");
        }
    }

    #[test]
    fn recordings_of_http_are_recognized() {
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
            let known = known_form(text.as_bytes()).unwrap_or_else(|| panic!("{text}"));
            assert_eq!(known.name, expected, "{text}");
            assert_eq!(RecorderFormat::recognize(text.as_bytes()), known.format, "{text}");
        }
        for text in ["interactions:\n- request:\n    uri: u\n  response:\n    url: u\n", "{}", "[1]", "x", ""]
        {
            assert!(known_form(text.as_bytes()).is_none(), "{text}");
        }
    }
}

//! The formats, and their recognition by content.

use super::documents::documents;
use super::{foreign, jsonl};
use crate::artifact::Recognition;
use crate::calls::values::at;
use crate::formats;
use crate::json::Value;
use crate::json::reader::{self, Limits, has_key};

/// A format of recorded calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RecorderFormat {
    /// A cassette of VCR.py, as YAML or JSON.
    Vcr,
    /// A log of Inspect, as JSON or a zip file.
    Inspect,
    /// Spans of OpenTelemetry, as OTLP writes them in JSON.
    Otel,
    /// Requests and responses of `OpenAI` as JSON Lines: input and output of its batch API, and lines with both.
    Jsonl,
}

impl RecorderFormat {
    /// Returns the name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Vcr => "vcr",
            Self::Inspect => "inspect",
            Self::Otel => "otel",
            Self::Jsonl => "jsonl",
        }
    }

    /// Returns what a file is, and what to do, if it is recognized and not supported: a text in UTF-16, or a recording in a
    /// format of another program that is not read.
    #[must_use]
    pub fn unsupported(bytes: &[u8]) -> Option<String> {
        let is_utf_16 =
            [&b"\xff\xfe"[..], b"\xfe\xff", b"{\0", b"\0{"].iter().any(|mark| bytes.starts_with(mark));
        if is_utf_16 {
            return Some("the text is not UTF-8, but UTF-16; save it as UTF-8".to_owned());
        }
        let name = foreign::recognize(bytes)?;
        Some(format!(
            "{name}, a format that is not supported; write its requests and responses as JSON Lines, or record the calls \
             again"
        ))
    }

    /// Returns the format of a file, by its content, or `None` if it has none of these. A file of a format may still be
    /// damaged.
    #[must_use]
    pub fn recognize(bytes: &[u8]) -> Option<Self> {
        if bytes.starts_with(b"PK\x03\x04") {
            // The names of files are in the text of the archive.
            let names: [&[u8]; 2] = [b"_journal/start.json", b"header.json"];
            let has = |name: &&[u8]| memchr::memmem::find(bytes, name).is_some();
            return names.iter().any(has).then_some(Self::Inspect);
        }
        let text = reader::lossy(bytes);
        let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
        if !text.trim_start().starts_with(['{', '[']) {
            return (is_cassette(text) && foreign::recognize(bytes).is_none()).then_some(Self::Vcr);
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
    if foreign::of_document(document).is_some() {
        return None;
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
}

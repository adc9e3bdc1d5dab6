//! The recordings of context-engine-kernel, of which sessions are made: `docs/formats.md`, "Recordings of
//! context-engine-kernel".
//!
//! Its recorder writes a `RecordingSession` of version 1.0, its harness a log with an interaction in each line. Neither is
//! a session of the specification, but each has what one consists of, and the hashes by which it can be verified.

use std::borrow::Cow;
use std::collections::BTreeSet;

use crate::artifact::document;
use crate::digest::Digest;
use crate::json::members::{integer, object, text};
use crate::json::reader::{self, Limits, MemberNames, ReadError, excerpt};
use crate::json::{Value, compact};
use crate::validation::{Findings, Report, RuleInfo};

/// The adapter that sessions state which are made of files of other programs, with the version of their profile.
pub const IMPORT_ADAPTER: &str = "runvault-import/1";

/// What the recorder writes in place of a prompt that it was told to leave out.
const REDACTED: &str = "[REDACTED]";

const SHAPE: RuleInfo = RuleInfo::error(
    "KR1",
    "A recording of context-engine-kernel has the members of its form.",
    "A RecordingSession has format_version 1.0, model_id, and interactions, each with sequence, prompt_hash, prompt and \
     result.content; a line of a harness log has sequence, request_sha256, model_id, raw_response and response_sha256. \
     Hashes are 64 lowercase hex digits. A file without one of them was changed, or is of a version that is not known.",
);
const SEQUENCE: RuleInfo = RuleInfo::error(
    "KR2",
    "Interaction n of a recording has the sequence n.",
    "The recorder counts interactions from 0. A gap or a repetition means that interactions are missing, were moved, or \
     are of several runs: restore the file, or split it.",
);
const PROMPT: RuleInfo = RuleInfo::error(
    "KR3",
    "The prompt_hash of a recording is the SHA-256 of the prompt, unless the prompt is [REDACTED].",
    "A replay finds the response by this hash. A prompt that does not have it was changed after it was recorded, and \
     nothing says which of the two is right. Of a prompt that the recorder left out, only the hash is known.",
);
const RESPONSE: RuleInfo = RuleInfo::error(
    "KR4",
    "The response_sha256 of a line is the SHA-256 of its raw_response.",
    "This proves that a response was not changed after it was recorded. The hash covers the UTF-8 bytes of the unescaped \
     text, with nothing added.",
);

/// The rules of recordings.
pub(super) const RULES: [RuleInfo; 4] = [SHAPE, SEQUENCE, PROMPT, RESPONSE];

/// A verified recording.
#[derive(Clone, Debug, Default)]
pub struct KernelRecording {
    models: BTreeSet<String>,
    runs: BTreeSet<String>,
    started_at: Option<String>,
    ended_at: Option<String>,
    interactions: Vec<KernelInteraction>,
}

#[derive(Clone, Debug)]
struct KernelInteraction {
    prompt: Digest,
    response: String,
    /// What is stated of it and not hashed.
    measures: Vec<(&'static str, Value<'static>)>,
}

/// Returns whether the root object of a document, or of its first line, has the members of a recording, valid or not.
pub(super) fn is_recording(names: &mut MemberNames<'_>) -> bool {
    let mut has_all = |of_form: &[&str]| of_form.iter().all(|name| names.has(name));
    has_all(&["format_version", "started_at", "model_id", "interactions"]) || has_all(LINE)
}

/// The members that only lines of a harness log have.
const LINE: &[&str] = &["request_sha256", "raw_response", "response_sha256"];

impl KernelRecording {
    /// The name of the format.
    pub const FORMAT: &str = "context-engine-kernel";

    /// Returns whether a document is intended to be such a recording, valid or not.
    #[must_use]
    pub fn recognizes(document: &[u8]) -> bool {
        is_recording(&mut MemberNames::new(&reader::lossy(document)))
    }

    /// Reads and verifies a recording.
    ///
    /// # Errors
    /// Returns the violations of [the rules](super::ModelIo).
    pub fn read(document: &[u8], limits: &Limits) -> Result<Self, Report> {
        let mut reading = Reading::default();
        let text = reader::lossy(document);
        let mut names = MemberNames::new(&text);
        let is_log = LINE.iter().all(|name| names.has(name));
        if is_log {
            reading.log(document, limits);
        } else {
            match reader::read(document, limits) {
                Ok(root) => reading.session(&root),
                Err(error) => document::report(&error, &mut reading.findings),
            }
        }
        let Reading { recording, findings, .. } = reading;
        if findings.has_errors() { Err(findings.into_report()) } else { Ok(recording) }
    }

    /// Returns the number of interactions.
    #[must_use]
    pub fn interactions(&self) -> usize {
        self.interactions.len()
    }

    /// Returns the recording with other responses.
    ///
    /// # Errors
    /// Returns the error of `change`.
    pub fn with_responses<E>(mut self, change: impl Fn(&str) -> Result<Cow<'_, str>, E>) -> Result<Self, E> {
        for interaction in &mut self.interactions {
            interaction.response = change(&interaction.response)?.into_owned();
        }
        Ok(self)
    }

    /// Returns the session as JSON: the same for the same recording. `original` is the digest of the file that it was read
    /// from.
    #[must_use]
    pub fn session(&self, original: Digest) -> Vec<u8> {
        let interactions = self.interactions.iter().zip(0..).map(|(interaction, index)| {
            let KernelInteraction { prompt, response, measures } = interaction;
            let hashed = [
                ("i", integer(index)),
                ("prompt_hash", text(prompt.to_string())),
                ("response_hash", text(Digest::from_content(response.as_bytes()).to_string())),
                ("response_content", text(response.as_str())),
            ];
            object(hashed.into_iter().chain(measures.iter().cloned()))
        });
        let interactions = interactions.collect();
        let models: Vec<&str> = self.models.iter().map(String::as_str).collect();
        let mut members = vec![
            ("model_io_schema_version", text("1.0.0")),
            ("adapter_id", text(IMPORT_ADAPTER)),
            ("model_id", text(models.join(","))),
            ("mode", text("record")),
            ("interactions", Value::Array(interactions)),
        ];
        // What is not hashed. Interactions of several runs are of none.
        let run = self.runs.first().filter(|_| self.runs.len() == 1);
        let stated = [
            ("run_id", run),
            ("created_at_utc", self.started_at.as_ref()),
            ("ended_at_utc", self.ended_at.as_ref()),
        ];
        members.extend(stated.into_iter().filter_map(|(name, value)| Some((name, text(value?.as_str())))));
        let originals = Value::Array(vec![text(original.to_string())]);
        let import = [("format", text(Self::FORMAT)), ("originals", originals), ("profile", integer(1))];
        members.push(("import", object(import)));
        compact::text(&object(members)).into_bytes()
    }
}

/// A recording as far as it was read, and the rules that it breaks.
#[derive(Default)]
struct Reading {
    recording: KernelRecording,
    /// Number of interactions, with those that have a defect.
    seen: u64,
    findings: Findings,
}

impl Reading {
    /// Reads a `RecordingSession`.
    fn session(&mut self, root: &Value<'_>) {
        let version = self.text(root, "$", "format_version");
        if let Some(version) = version.filter(|version| *version != "1.0") {
            let message = format!("{} is not a known version, which is 1.0", excerpt(version));
            self.findings.for_rule(SHAPE).add("$.format_version", message);
        }
        let model = self.text(root, "$", "model_id").map(str::to_owned);
        self.recording.models.extend(model);
        let time = |name: &str| root.get(name).and_then(Value::as_str).map(str::to_owned);
        (self.recording.started_at, self.recording.ended_at) = (time("started_at"), time("ended_at"));
        let Some(interactions) = root.get("interactions").and_then(Value::as_array) else {
            return self.findings.for_rule(SHAPE).add("$.interactions", "must be an array");
        };
        for (index, interaction) in interactions.iter().enumerate() {
            self.recorded(interaction, &format!("$.interactions[{index}]"));
        }
    }

    /// Reads an interaction of a `RecordingSession`.
    fn recorded(&mut self, interaction: &Value<'_>, at: &str) {
        self.sequence(interaction, at);
        let declared = self.digest(interaction, at, "prompt_hash");
        let prompt = self.text(interaction, at, "prompt");
        let result = interaction.get("result").unwrap_or(&Value::Null);
        let response = self.text(result, &format!("{at}.result"), "content");
        let run =
            interaction.get("context").and_then(|context| context.get("run_id")).and_then(Value::as_str);
        self.recording.runs.extend(run.map(str::to_owned));
        let (Some(declared), Some(prompt), Some(response)) = (declared, prompt, response) else { return };
        let actual = Digest::from_content(prompt.as_bytes());
        if declared != actual && prompt != REDACTED {
            let message = format!("is not the hash of prompt, which is {}", actual.hex());
            return self.findings.for_rule(PROMPT).add(format!("{at}.prompt_hash"), message);
        }
        let names = ["tokens_input", "tokens_output", "latency_ms"];
        let measures = names.map(|name| (name, result.get(name)));
        self.push(declared, response, measures);
    }

    /// Reads a harness log.
    fn log(&mut self, document: &[u8], limits: &Limits) {
        if document.len() as u64 > limits.bytes {
            return self.findings.add(document::larger_than(limits.bytes));
        }
        for (line, number) in document.split(|byte| *byte == b'\n').zip(1..) {
            if line.trim_ascii().is_empty() {
                continue;
            }
            match reader::read(line, limits) {
                Ok(entry) => self.logged(&entry, &format!("line {number} $")),
                Err(error) => {
                    return document::report(
                        &ReadError { line: error.line + number - 1, ..error },
                        &mut self.findings,
                    );
                }
            }
        }
    }

    /// Reads a line of a harness log.
    fn logged(&mut self, entry: &Value<'_>, at: &str) {
        self.sequence(entry, at);
        let model = self.text(entry, at, "model_id").map(str::to_owned);
        self.recording.models.extend(model);
        let prompt = self.digest(entry, at, "request_sha256");
        let declared = self.digest(entry, at, "response_sha256");
        let response = self.text(entry, at, "raw_response");
        if self.recording.started_at.is_none() {
            self.recording.started_at = entry.get("timestamp").and_then(Value::as_str).map(str::to_owned);
        }
        let (Some(prompt), Some(declared), Some(response)) = (prompt, declared, response) else { return };
        let actual = Digest::from_content(response.as_bytes());
        if declared != actual {
            let message = format!("is not the hash of raw_response, which is {}", actual.hex());
            return self.findings.for_rule(RESPONSE).add(format!("{at}.response_sha256"), message);
        }
        let tokens = |name: &str| entry.get("tokens").and_then(|tokens| tokens.get(name));
        let measures = [
            ("tokens_input", tokens("input")),
            ("tokens_output", tokens("output")),
            ("latency_ms", entry.get("latency_ms")),
        ];
        self.push(prompt, response, measures);
    }

    fn push(&mut self, prompt: Digest, response: &str, measures: [(&'static str, Option<&Value<'_>>); 3]) {
        let numbers = measures.into_iter().filter_map(|(name, value)| Some((name, value?)));
        let numbers = numbers.filter(|(_, value)| value.as_number().is_some());
        let measures = numbers.map(|(name, value)| (name, value.to_owned_value())).collect();
        self.recording.interactions.push(KernelInteraction {
            prompt,
            response: response.to_owned(),
            measures,
        });
    }

    /// Checks that an interaction is the next one. Those with a defect are counted, too.
    fn sequence(&mut self, interaction: &Value<'_>, at: &str) {
        let expected = self.seen.to_string();
        self.seen += 1;
        let is_next = interaction
            .get("sequence")
            .and_then(Value::as_number)
            .is_some_and(|number| number.literal() == expected);
        if !is_next {
            let message = format!("must be {expected}, the number of the interactions before it");
            self.findings.for_rule(SEQUENCE).add(format!("{at}.sequence"), message);
        }
    }

    fn text<'v>(&mut self, value: &'v Value<'_>, at: &str, name: &str) -> Option<&'v str> {
        let found = value.get(name).and_then(Value::as_str);
        if found.is_none() {
            self.findings.for_rule(SHAPE).add(format!("{at}.{name}"), "must be a string");
        }
        found
    }

    fn digest(&mut self, value: &Value<'_>, at: &str, name: &str) -> Option<Digest> {
        let hex = self.text(value, at, name)?;
        let digest = Digest::parse_hex(hex);
        if digest.is_none() {
            self.findings.for_rule(SHAPE).add(format!("{at}.{name}"), "must be 64 lowercase hex digits");
        }
        digest
    }
}

//! Logs of Inspect: `docs/import.md`, "Inspect".

mod gemini;
mod media;
mod pools;

use std::borrow::Cow;
use std::io::Cursor;

use chrono::{DateTime, Utc};

use super::exchange::{
    ApiExchange, ImportedExchange, ImportedRequest, ImportedResponse, ImportedRun, ImportedRuns,
};
use super::reading::{Fault, LIMITS, LocatedValue, RecorderResult, SHAPE, SYNTAX};
use crate::calls::target::ApiTarget;
use crate::conversation::providers::chat::{Chat, ChatChoice, TokenCounts, message, tool, tool_call};
use crate::intake::archive::{self, ArchiveError, ArchiveFormat};
use crate::json::members::{text, word};
use crate::json::reader::{self, Limit, Limits};
use crate::json::{Object, Value};
use gemini::GeminiCall;
use media::RestoredMedia;
use pools::{ReferenceBudget, SamplePools};

/// The end of the names of the files in an archive that are read.
const ENDING: &str = ".json";

/// The directory in an archive with the samples.
const SAMPLES: &str = "samples/";

/// The type of the parts of messages with what a model thought.
const REASONING: &str = "reasoning";

/// The reason for which a log without samples has no runs.
const NO_SAMPLES: &str = "the log has no samples";

/// The options of a model that are members of requests.
const OPTIONS: &[(&str, &str)] = &[
    ("temperature", "temperature"),
    ("top_p", "top_p"),
    ("top_k", "top_k"),
    ("max_tokens", "max_tokens"),
    ("seed", "seed"),
    ("stop_seqs", "stop"),
    ("frequency_penalty", "frequency_penalty"),
    ("presence_penalty", "presence_penalty"),
    ("num_choices", "n"),
];

/// The options that say how the client sends requests, and are not in them.
const CLIENT_OPTIONS: &[&str] = &[
    "adaptive_connections",
    "attempt_timeout",
    "batch",
    "cache",
    "max_connections",
    "max_retries",
    "timeout",
];

/// Reads a log: JSON, or a zip file.
pub(super) fn read(bytes: &[u8], limits: &Limits) -> RecorderResult<ImportedRuns> {
    if bytes.starts_with(b"PK") { read_zip(bytes, limits) } else { read_json(bytes, limits) }
}

fn read_json(bytes: &[u8], limits: &Limits) -> RecorderResult<ImportedRuns> {
    let mut recording = ImportedRuns::default();
    let mut budget = ReferenceBudget::new(limits);
    let bytes = without_nan(bytes);
    let root = reader::read(&bytes, limits).map_err(|error| Fault::of_text(&error, 1))?;
    let root = LocatedValue::new(&root, "");
    let header = InspectLogHeader::read(&root)?;
    match root.member("samples") {
        Some(samples) => {
            samples.elements()?.try_for_each(|sample| header.sample(&sample, &mut budget, &mut recording))?;
        }
        None => list(&mut recording, "the document", NO_SAMPLES),
    }
    Ok(recording)
}

fn read_zip(bytes: &[u8], limits: &Limits) -> RecorderResult<ImportedRuns> {
    let bounds = archive::ArchiveLimits { bytes: limits.bytes, entries: limits.entries };
    // All files with the samples are read, so that none is left out without being listed.
    let is_wanted = |name: &str| name.ends_with(ENDING) || name.starts_with(SAMPLES);
    let files = archive::read_files(ArchiveFormat::Zip, Cursor::new(bytes), &is_wanted, bounds);
    let files = files.map_err(|error| {
        let message = error.to_string();
        match error {
            ArchiveError::Broken(_) => Fault::new(SYNTAX, "the archive", message),
            ArchiveError::TooLarge(_) => Fault::beyond(Limit::Bytes, "the archive", message),
            _ => Fault::new(LIMITS, "the archive", message),
        }
    })?;
    let find = |name: &str| files.iter().find(|(path, _)| path == name);
    let Some((name, header)) = find("header.json").or_else(|| find("_journal/start.json")) else {
        return Err(Fault::new(SHAPE, "the archive", "the required file header.json is missing"));
    };
    let header = without_nan(header);
    let root = reader::read(&header, limits).map_err(|error| Fault::of_text(&error, 1).inside(name))?;
    let header = InspectLogHeader::read(&LocatedValue::new(&root, "")).map_err(|fault| fault.inside(name))?;
    let mut samples: Vec<_> = files.iter().filter(|(path, _)| path.starts_with(SAMPLES)).collect();
    let is_divided = |path: &str| {
        path.strip_prefix(SAMPLES).is_some_and(|name| name.contains('/') && !is_of_one_sample(name))
    };
    if let Some((path, _)) = samples.iter().find(|(path, _)| is_divided(path)) {
        let message = "the samples are divided into several files, as in version 3 of the format, which is not supported";
        return Err(Fault::new(SHAPE, path.as_str(), message));
    }
    samples.sort_unstable();
    let mut recording = ImportedRuns::default();
    let mut budget = ReferenceBudget::new(limits);
    if samples.is_empty() {
        list(&mut recording, "the archive", NO_SAMPLES);
    }
    for (path, sample) in samples {
        if !path.ends_with(ENDING) {
            list(&mut recording, path.as_str(), "the file is not a sample: its name does not end with .json");
            continue;
        }
        let sample = without_nan(sample);
        let sample = reader::read(&sample, limits).map_err(|error| Fault::of_text(&error, 1).inside(path))?;
        header.sample(&LocatedValue::new(&sample, path.as_str()), &mut budget, &mut recording)?;
    }
    Ok(recording)
}

/// Returns whether this is the name of the file of a sample: its id, which can contain slashes, and the number of its
/// epoch.
fn is_of_one_sample(name: &str) -> bool {
    let numbered = name.strip_suffix(ENDING).and_then(|name| name.rsplit_once("_epoch_"));
    numbered.is_some_and(|(_, epoch)| !epoch.is_empty() && epoch.bytes().all(|digit| digit.is_ascii_digit()))
}

fn list(recording: &mut ImportedRuns, location: impl Into<String>, reason: impl Into<String>) {
    recording.unmapped.push((0, location.into(), reason.into()));
}

/// The properties that all samples of a log share.
struct InspectLogHeader {
    run: String,
    task: String,
}

impl InspectLogHeader {
    fn read(root: &LocatedValue<'_>) -> RecorderResult<Self> {
        if let Some(version) = root.member("version") {
            let number = version.integer()?;
            if !(1..=2).contains(&number) {
                return Err(version.fault(format!("version {number} of Inspect logs is not supported")));
            }
        }
        let eval = root.required("eval")?;
        let run = eval.member("run_id").or_else(|| eval.member("eval_id"));
        let run = run.map_or(Ok(String::new()), |run| run.text().map(str::to_owned))?;
        Ok(Self { run, task: eval.required("task")?.text()?.to_owned() })
    }

    /// Reads a sample, whose calls are a run.
    fn sample(
        &self,
        sample: &LocatedValue<'_>,
        budget: &mut ReferenceBudget,
        recording: &mut ImportedRuns,
    ) -> RecorderResult<()> {
        let id = sample.required("id")?;
        let id = match id.value {
            Value::String(text) => text.clone().into_owned(),
            _ => id.integer()?.to_string(),
        };
        let epoch = sample.member("epoch").map_or(Ok(1), |epoch| epoch.integer())?;
        let exchanges = SamplePools::new(sample, budget).exchanges(sample, recording)?;
        if exchanges.is_empty() {
            list(recording, sample.location.clone(), "the sample has no events of a model");
            return Ok(());
        }
        for name in ["scores", "error", "score"] {
            let is_empty =
                |value: &Value<'_>| value.as_object().is_some_and(|scores| scores.iter().len() == 0);
            if let Some(member) = sample.member(name).filter(|member| !is_empty(member.value)) {
                list(recording, member.location, "it is not mapped: run packs have no place for it");
            }
        }
        let name = Some(format!("{id}-{epoch}"));
        let details = vec![
            ("epoch", text(epoch.to_string())),
            ("eval_run", text(self.run.clone())),
            ("sample", text(id)),
            ("task", text(self.task.clone())),
        ];
        recording.runs.push(ImportedRun { name, details, exchanges, ..ImportedRun::default() });
        Ok(())
    }
}

impl SamplePools<'_> {
    /// Reads the model events of a sample.
    fn exchanges(
        mut self,
        sample: &LocatedValue<'_>,
        recording: &mut ImportedRuns,
    ) -> RecorderResult<Vec<(usize, ImportedExchange)>> {
        let mut exchanges = Vec::new();
        let mut before = None;
        // Until 2024, they were in a transcript.
        let events = sample.member("events").or_else(|| sample.member("transcript")?.member("events"));
        for event in events.iter().flat_map(LocatedValue::elements).flatten() {
            if event.member("event").and_then(|kind| kind.value.as_str()) == Some("model") {
                self.budget.next_event();
                let mut exchange = self.exchange(&event, recording)?;
                if let Some(rest) = exchange.repeat(&mut before) {
                    self.budget.keep(rest, &event.location)?;
                }
                exchanges.push((0, exchange));
            }
        }
        for key in self.missing {
            list(recording, sample.location.clone(), format!("the attachment {key} is not in the log"));
        }
        Ok(exchanges)
    }

    /// Reads a model event.
    fn exchange(
        &mut self,
        event: &LocatedValue<'_>,
        recording: &mut ImportedRuns,
    ) -> RecorderResult<ImportedExchange> {
        let at = event.member("timestamp").and_then(|time| time.time());
        let completed = event.member("completed").and_then(|time| time.time());
        let latency = at.zip(completed).map(|(at, completed)| (completed - at).num_milliseconds());
        let latency_ms = latency.and_then(|latency| u64::try_from(latency).ok());
        let failure = event.member("error").and_then(|error| error.value.as_str().map(str::to_owned));
        let (request, reply) = if let Some(raw) = self.raw(event, recording)? {
            raw
        } else {
            let chat = self.chat(event, completed, recording)?;
            let ApiExchange { request, reply, unmapped } = ApiExchange::new(&chat);
            if chat.messages.iter().any(is_failed) && !has_failed_result(&request) {
                list(recording, event.location.clone(), ERROR_AS_RESULT);
            }
            for reason in unmapped {
                list(recording, event.location.clone(), reason);
            }
            // A call that failed, or had not ended when the log was written, has no choices.
            let reply =
                if chat.choices.is_empty() { ImportedResponse::Failed(why_none(event)) } else { reply };
            (request, reply)
        };
        let reply = failure.map_or(reply, ImportedResponse::Failed);
        Ok(ImportedExchange { location: event.location.clone(), request, reply, at, latency_ms })
    }

    /// Returns what was sent and received, if the log has it and the form is that of an API that is known.
    fn raw(
        &mut self,
        event: &LocatedValue<'_>,
        recording: &mut ImportedRuns,
    ) -> RecorderResult<Option<(ImportedRequest, ImportedResponse)>> {
        let Some(call) = event.member("call") else { return Ok(None) };
        let (Some(request), Some(response)) = (call.member("request"), call.member("response")) else {
            return Ok(None);
        };
        let mut members = Vec::new();
        for (name, value) in request.members()? {
            members.push((Cow::Owned(name.to_owned()), self.resolved(value.value)?));
        }
        if let (Some(refs), Some(key)) = (call.member("call_refs"), call.member("call_key")) {
            let key = key.text()?;
            members.retain(|(name, _)| name != key);
            members.push((Cow::Owned(key.to_owned()), Value::Array(self.referred(self.calls, &refs)?)));
        }
        let body = Value::Object(Object::from_members(members));
        let response = self.resolved(response.value)?;
        let model = event.member("model").and_then(|model| model.value.as_str()).unwrap_or_default();
        if let Some(GeminiCall { target, request, response, others }) =
            GeminiCall::read(model, &body, &response)
        {
            for name in others {
                list(recording, call.location.clone(), format!("the member {name} is not mapped"));
            }
            let body = self.with_media(event, request, recording)?;
            return Ok(Some((ImportedRequest::Json { target, body }, ImportedResponse::json(&response))));
        }
        // Other APIs are stated in the form of Inspect.
        let is_known = response.get("object").or_else(|| response.get("type")).is_some();
        let target = ApiTarget::from_bodies(&body, Some(&response)).filter(|_| is_known);
        let Some(target) = target else { return Ok(None) };
        let body = self.with_media(event, body, recording)?;
        Ok(Some((ImportedRequest::Json { target, body }, ImportedResponse::json(&response))))
    }

    /// Returns the body of a request with the media that Inspect removed from it. Those that are not in the log are listed.
    fn with_media(
        &mut self,
        event: &LocatedValue<'_>,
        body: Value<'static>,
        recording: &mut ImportedRuns,
    ) -> RecorderResult<Value<'static>> {
        if !media::is_removed_from(&body) {
            return Ok(body);
        }
        let RestoredMedia { value, is_complete } = media::restored(body, &self.input(event)?);
        if !is_complete {
            list(recording, event.location.clone(), media::NOT_IN_LOG);
        }
        Ok(value)
    }

    /// Returns what Inspect states in its own form.
    fn chat(
        &mut self,
        event: &LocatedValue<'_>,
        ended_at: Option<DateTime<Utc>>,
        recording: &mut ImportedRuns,
    ) -> RecorderResult<Chat> {
        let model = event.required("model")?.text()?;
        let (provider, model) = model.split_once('/').unwrap_or(("inspect", model));
        let mut chat =
            Chat { provider: provider.to_owned(), model: model.to_owned(), ended_at, ..Chat::default() };
        let input = self.input(event)?;
        let (mut has_all_media, mut is_thought) = (true, input.iter().any(has_reasoning));
        for (index, one) in input.into_iter().enumerate() {
            let RestoredMedia { value, is_complete } = media::restored(one, &[]);
            has_all_media &= is_complete;
            let node = LocatedValue::new(&value, format!("{}.input[{index}]", event.location));
            chat.messages.push(in_chat(&node)?);
        }
        if !has_all_media {
            list(recording, event.location.clone(), media::NOT_IN_LOG);
        }
        if let Some(config) = event.member("config") {
            add_options(&mut chat, &config, recording);
        }
        add_tools(&mut chat, event, recording)?;
        let output = event.required("output")?;
        chat.response_model =
            output.member("model").and_then(|model| model.value.as_str().map(str::to_owned));
        for choice in output.list("choices") {
            let resolved = self.resolved(choice.required("message")?.value)?;
            is_thought |= has_reasoning(&resolved);
            let message = in_chat(&LocatedValue::new(&resolved, format!("{}.message", choice.location)))?;
            let reason = choice.member("stop_reason").map_or(Ok("stop"), |reason| reason.text())?;
            let finish_reason = if reason == "max_tokens" { "length" } else { reason }.to_owned();
            chat.choices.push(ChatChoice { message, finish_reason });
        }
        if is_thought {
            list(recording, event.location.clone(), NO_REASONING);
        }
        if let Some(usage) = output.member("usage") {
            let tokens = |name| usage.member(name).map(|tokens| tokens.integer()).transpose();
            chat.usage = TokenCounts { input: tokens("input_tokens")?, output: tokens("output_tokens")? };
        }
        Ok(chat)
    }

    /// Returns the messages that were sent.
    fn input(&mut self, event: &LocatedValue<'_>) -> RecorderResult<Vec<Value<'static>>> {
        let mut input = Vec::new();
        if let Some(stated) = event.member("input") {
            for message in stated.elements()? {
                input.push(self.resolved(message.value)?);
            }
        }
        if let Some(refs) = event.member("input_refs") {
            input.extend(self.referred(self.messages, &refs)?);
        }
        Ok(input)
    }
}

fn add_options(chat: &mut Chat, config: &LocatedValue<'_>, recording: &mut ImportedRuns) {
    let option =
        |(name, member): &(&str, &'static str)| Some((*member, config.member(name)?.value.to_owned_value()));
    chat.members.extend(OPTIONS.iter().filter_map(option));
    let known: Vec<_> = OPTIONS.iter().map(|(name, _)| *name).chain(CLIENT_OPTIONS.iter().copied()).collect();
    for name in config.others(&known) {
        let reason = format!("the member {} is not mapped", reader::excerpt(name));
        list(recording, config.location.clone(), reason);
    }
}

fn add_tools(chat: &mut Chat, event: &LocatedValue<'_>, recording: &mut ImportedRuns) -> RecorderResult<()> {
    let tools = event
        .member("tools")
        .map_or(Ok(Vec::new()), |tools| tools.elements()?.map(|one| tool_of(&one)).collect())?;
    // Inspect states this member without tools as well, and clients then do not send it.
    let is_default = |choice: &LocatedValue<'_>| match choice.value.as_str() {
        Some("auto") => true,
        Some("none") => tools.is_empty(),
        _ => false,
    };
    if let Some(choice) = event.member("tool_choice").filter(|choice| !is_default(choice)) {
        list(recording, choice.location, "it is not mapped");
    }
    if !tools.is_empty() {
        chat.members.push(("tools", Value::Array(tools)));
    }
    Ok(())
}

/// Returns a text in which the numbers that Python writes and JSON does not have are null: Inspect writes them for scores that
/// were not given.
fn without_nan(bytes: &[u8]) -> Cow<'_, [u8]> {
    const NUMBERS: [&[u8]; 3] = [b"NaN", b"-Infinity", b"Infinity"];
    if !NUMBERS.iter().any(|number| memchr::memmem::find(bytes, number).is_some()) {
        return Cow::Borrowed(bytes);
    }
    let mut written = Vec::with_capacity(bytes.len() + bytes.len() / 8);
    let (mut is_in_string, mut rest) = (false, bytes);
    while let [first, after @ ..] = rest {
        let number = NUMBERS.iter().find(|number| !is_in_string && rest.starts_with(number));
        if let Some(number) = number {
            written.extend(b"null");
            rest = rest.get(number.len()..).unwrap_or_default();
            continue;
        }
        written.push(*first);
        rest = after;
        match first {
            b'"' => is_in_string = !is_in_string,
            b'\\' if is_in_string => {
                written.extend(after.first());
                rest = after.get(1..).unwrap_or_default();
            }
            _ => {}
        }
    }
    Cow::Owned(written)
}

/// The reasons for which parts of messages in the form of Inspect are listed.
const NO_REASONING: &str = "what the model thought is not mapped: only the original has it";
const ERROR_AS_RESULT: &str =
    "the error of a tool is mapped as its result: the form of the API does not mark it";

/// Returns whether a message has what a model thought.
fn has_reasoning(message: &Value<'_>) -> bool {
    let parts = message.get("content").and_then(Value::as_array).unwrap_or_default();
    parts.iter().any(|part| word(part, "type") == Some(REASONING))
}

/// Returns whether a message in the form of chat completions is the result of a tool that failed.
fn is_failed(message: &Value<'_>) -> bool {
    message.get("is_error").is_some()
}

/// Returns whether a request has such a message, as those in the form of chat completions have.
fn has_failed_result(request: &ImportedRequest) -> bool {
    let ImportedRequest::Json { body, .. } = request else { return false };
    body.get("messages").and_then(Value::as_array).unwrap_or_default().iter().any(is_failed)
}

/// Returns why an event has no response.
fn why_none(event: &LocatedValue<'_>) -> String {
    let error = event.member("output").and_then(|output| output.member("error"));
    let error = error.and_then(|error| error.value.as_str().map(str::to_owned));
    error.unwrap_or_else(|| "the event has no response".to_owned())
}

/// Returns the content of a message: a text, or parts that are not all texts.
fn said(content: &LocatedValue<'_>) -> RecorderResult<Value<'static>> {
    if let Value::String(_) = content.value {
        return Ok(content.value.to_owned_value());
    }
    let parts = content.elements()?.filter_map(|part| {
        // What the model thought is not part of what it is asked next.
        let kind = word(part.value, "type");
        (kind != Some(REASONING)).then(|| part.value.to_owned_value())
    });
    let parts: Vec<_> = parts.collect();
    let texts: Option<String> = parts.iter().map(|part| word(part, "text")).collect();
    Ok(texts.map_or(Value::Array(parts), text))
}

/// Returns a message of Inspect as one of a chat.
fn in_chat(node: &LocatedValue<'_>) -> RecorderResult<Value<'static>> {
    let role = node.required("role")?.text()?;
    let content = node.member("content").map_or(Ok(text("")), |content| said(&content))?;
    let mut calls = Vec::new();
    for call in node.list("tool_calls") {
        let arguments = call.member("arguments").map_or(&Value::Null, |arguments| arguments.value);
        calls.push(tool_call(call.required("id")?.text()?, call.required("function")?.text()?, arguments));
    }
    let id = node.member("tool_call_id").map(|id| id.text()).transpose()?;
    // A model is sent the error of a tool in place of its result.
    let Some(error) = node.member("error").and_then(|error| error.member("message")) else {
        return Ok(message(role, content, calls, id));
    };
    let mut failed = message(role, text(error.text()?.to_owned()), calls, id);
    if let Value::Object(members) = &mut failed {
        members.push("is_error".into(), Value::Bool(true));
    }
    Ok(failed)
}

fn tool_of(node: &LocatedValue<'_>) -> RecorderResult<Value<'static>> {
    let description = node.member("description").map(|description| description.text()).transpose()?;
    let parameters = node.member("parameters");
    Ok(tool(
        node.required("name")?.text()?,
        description,
        parameters.as_ref().map(|parameters| parameters.value),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::artifact::MemberBytes;
    use crate::json::compact;

    #[test]
    fn references_to_pools_are_resolved() {
        let log = r#"{"version":2,"eval":{"task":"t","run_id":"r","model":"openai/m"},"samples":[{"id":1,"epoch":2,
            "attachments":{"abc":"a long text"},"events_data":{"messages":[{"role":"system","content":"be short"},
            {"role":"user","content":"attachment://abc"}],"calls":[]},"scores":{"x":{}},"events":[{"event":"state"},
            {"event":"model","timestamp":"1970-01-01T00:00:01Z","completed":"1970-01-01T00:00:03Z","model":"openai/m",
            "input":[],"input_refs":[[0,2]],"tools":[],"config":{"temperature":0.0},"output":{"model":"m","choices":[
            {"message":{"role":"assistant","content":[{"type":"reasoning","reasoning":"?"},{"type":"text","text":"yes"}]},
            "stop_reason":"stop"}]}}]}]}"#;
        let mut recording =
            read(log.as_bytes(), &Limits::default()).unwrap_or_else(|fault| panic!("{}", fault.in_file("l")));
        let run = &mut recording.runs[0];
        assert_eq!(run.name.as_deref(), Some("1-2"));
        let (_, mut exchange) = run.exchanges.remove(0);
        exchange.restore(&mut None);
        let ImportedRequest::Json { body, .. } = &exchange.request else { panic!() };
        assert_eq!(
            compact::text(body),
            r#"{"model":"m","messages":[{"role":"system","content":"be short"},{"role":"user","content":"a long text"}],"temperature":0.0}"#
        );
        assert_eq!((exchange.latency_ms, exchange.location.as_str()), (Some(2_000), "samples[0].events[1]"));
        let reasons: Vec<_> = recording.unmapped.iter().map(|(_, _, reason)| reason.as_str()).collect();
        assert_eq!(reasons, [NO_REASONING, "it is not mapped: run packs have no place for it"]);
        let wrong = log.replace("[[0,2]]", "[[0,3]]");
        let fault = read(wrong.as_bytes(), &Limits::default()).unwrap_err().in_file("l").to_string();
        assert_eq!(
            fault,
            "l: samples[0].events[1].input_refs[0]: the range is not one of the messages that events_data has (rule IM3)"
        );
    }

    #[test]
    fn numbers_that_json_does_not_have_are_null() {
        for (text, expected) in [
            (r#"{"a":NaN,"b":[-Infinity,Infinity]}"#, r#"{"a":null,"b":[null,null]}"#),
            (r#"{"NaN":"\"NaN\\","a":NaN}"#, r#"{"NaN":"\"NaN\\","a":null}"#),
            (r#""Infinity""#, r#""Infinity""#),
        ] {
            assert_eq!(String::from_utf8_lossy(&without_nan(text.as_bytes())), expected);
        }
        let log = log("", &format!(r#""input":[],{ANSWER}"#))
            .replace(r#""id":1,"#, r#""id":1,"scores":{"a":NaN},"#);
        assert!(read(log.as_bytes(), &Limits::default()).is_ok());
    }

    #[test]
    fn events_in_a_transcript_are_read() {
        let log = log("", &format!(r#""input":[{{"role":"user","content":"tc://k"}}],{ANSWER}"#));
        let log = log.replace(r#""events":["#, r#""transcript":{"content":{"k":"a long text"},"events":["#);
        let (exchange, listed) = imported(&log.replace("]}]}", "]}}]}"));
        let ImportedRequest::Json { body, .. } = &exchange.request else { panic!() };
        assert!(compact::text(body).contains("a long text"), "{listed:?}");
        assert_eq!(exchange.location, "samples[0].transcript.events[0]");
    }

    #[test]
    fn no_file_of_an_archive_is_left_out_silently() {
        let header = MemberBytes { name: "header.json", bytes: br#"{"version":2,"eval":{"task":"t"}}"# };
        let sample =
            format!(r#"{{"id":"a/b","events":[{{"event":"model","model":"m","input":[],{ANSWER}}}]}}"#);
        let sample = MemberBytes { name: "samples/a/b_epoch_1.json", bytes: sample.as_bytes() };
        let other = MemberBytes { name: "samples/1_epoch_1.zst", bytes: b"x" };
        for (members, names, listed) in [
            (&[header][..], &[][..], &["the archive: the log has no samples"][..]),
            (
                &[header, sample, other],
                &["a/b-1"],
                &["samples/1_epoch_1.zst: the file is not a sample: its name does not end with .json"],
            ),
        ] {
            let mut zip = Vec::new();
            archive::write(ArchiveFormat::Zip, members, &mut zip).unwrap();
            let recording =
                read(&zip, &Limits::default()).unwrap_or_else(|fault| panic!("{}", fault.in_file("l")));
            let found: Vec<_> = recording.runs.iter().filter_map(|run| run.name.as_deref()).collect();
            let unmapped: Vec<_> =
                recording.unmapped.iter().map(|(_, at, why)| format!("{at}: {why}")).collect();
            assert_eq!(found, names);
            assert_eq!(unmapped, listed);
        }
    }

    #[test]
    fn unknown_versions_are_rejected() {
        let log = log("", &format!(r#""input":[],{ANSWER}"#)).replace(r#""version":2"#, r#""version":3"#);
        let fault = read(log.as_bytes(), &Limits::default()).unwrap_err().in_file("l").to_string();
        assert_eq!(fault, "l: version: version 3 of Inspect logs is not supported (rule IM3)");
    }

    /// Returns a log of a sample with an attachment and an event with these members.
    fn log(attachment: &str, members: &str) -> String {
        let event = format!(r#"{{"event":"model","model":"openai/m",{members}}}"#);
        format!(
            r#"{{"version":2,"eval":{{"task":"t"}},"samples":[{{"id":1,"attachments":{{"a":"{attachment}"}},
            "events_data":{{"messages":[{{"role":"user","content":"hi"}},{{"role":"user","content":"?"}}]}},"events":[{event}]}}]}}"#
        )
    }

    fn imported(log: &str) -> (ImportedExchange, Vec<String>) {
        let mut recording =
            read(log.as_bytes(), &Limits::default()).unwrap_or_else(|fault| panic!("{}", fault.in_file("l")));
        let listed = recording.unmapped.iter().map(|(_, at, why)| format!("{at}: {why}")).collect();
        let mut exchange = recording.runs.remove(0).exchanges.remove(0).1;
        exchange.restore(&mut None);
        (exchange, listed)
    }

    const ANSWER: &str = r#""output":{"choices":[{"message":{"role":"assistant","content":"yes"}}]}"#;

    #[test]
    fn what_references_add_is_limited() {
        let limits = Limits { bytes: 4_000, values: 200, ..Limits::default() };
        let attached = |count| {
            let messages = vec![r#"{"role":"user","content":"attachment://a"}"#; count];
            log(&"x".repeat(1_500), &format!(r#""input":[{}],{ANSWER}"#, messages.join(",")))
        };
        let referred =
            |count| log("", &format!(r#""input_refs":[{}],{ANSWER}"#, vec!["[0,2]"; count].join(",")));
        for (fitting, excessive, message) in [
            (attached(2), attached(3), "its references expand to more than 4000 bytes"),
            (referred(33), referred(34), "its references expand to more than 200 values"),
        ] {
            assert!(read(fitting.as_bytes(), &limits).is_ok());
            let fault = read(excessive.as_bytes(), &limits).unwrap_err().in_file("l");
            assert_eq!((fault.rule.as_ref(), fault.message.as_str()), ("IM2", message));
        }
    }

    #[test]
    fn events_without_a_response_are_failed_calls() {
        for (output, reason) in [
            (r#"{"choices":[],"error":"content filter"}"#, "content filter"),
            (r#"{"choices":[]},"pending":true"#, "the event has no response"),
        ] {
            let (exchange, listed) = imported(&log("", &format!(r#""input":[],"output":{output}"#)));
            assert!(
                matches!(&exchange.reply, ImportedResponse::Failed(why) if why == reason),
                "{exchange:?}"
            );
            assert_eq!(listed, Vec::<String>::new());
        }
    }

    #[test]
    fn media_that_inspect_removes_from_requests_are_restored() {
        let call = r#""call":{"request":{"model":"m","messages":[{"role":"user","content":[{"type":"image_url",
            "image_url":{"url":"<base64-data-removed>"}}]}]},"response":{"object":"chat.completion"}}"#;
        let image = |url: &str| format!(r#"[{{"type":"image","image":"{url}"}}]"#);
        let members = |url: &str, call: &str| {
            let message = format!(r#"{{"role":"user","content":{}}}"#, image(url));
            format!(r#""input":[{message}],{call},{ANSWER}"#)
        };
        let listed_media = vec![format!("samples[0].events[0]: {}", media::NOT_IN_LOG)];
        let no_call = r#""call":null"#;
        for (url, call, sent, listed) in [
            ("attachment://a", call, r#""image_url":{"url":"data:image/png;base64,YQ=="}"#, vec![]),
            ("<base64-data-removed>", call, r#""image_url":{}"#, listed_media.clone()),
            ("attachment://a", no_call, r#""image":"data:image/png;base64,YQ==""#, vec![]),
            ("<base64-data-removed>", no_call, r#""content":[{"type":"image"}]"#, listed_media),
        ] {
            let log = log("data:image/png;base64,YQ==", &members(url, call));
            let (exchange, found) = imported(&log);
            let ImportedRequest::Json { body, .. } = &exchange.request else { panic!() };
            let body = compact::text(body);
            assert!(body.contains(sent) && !body.contains("removed"), "{body}");
            assert!(listed.iter().all(|one| found.contains(one)), "{found:?}");
            assert_eq!(found.is_empty(), listed.is_empty(), "{found:?}");
        }
    }

    #[test]
    fn calls_of_gemini_are_read_as_they_were_sent() {
        let call = r#""call":{"request":{"contents":[{"parts":[{"functionResponse":{"name":"w","response":
            {"error":"broken"}}},{"inline_data":{"data":"<base64-data-removed>","mime_type":"image/png"}}],"role":"user"}]},
            "response":{"candidates":[{"content":{"parts":[{"text":"so?","thought":true},{"text":"yes"}]}}],
            "sdkHttpResponse":{"headers":{"set-cookie":"key"}}}}"#;
        let input = r#""input":[{"role":"user","content":[{"type":"image","image":"attachment://a"}]}]"#;
        let log = log("data:image/png;base64,YQ==", &format!("{input},{call},{ANSWER}"));
        let (exchange, listed) = imported(&log.replace("openai/m", "google/gemini-x"));
        let ImportedRequest::Json { target, body } = &exchange.request else { panic!() };
        assert_eq!((target.provider.as_str(), target.endpoint.name), ("gemini", "generateContent"));
        let body = compact::text(body);
        assert!(
            body.contains(r#""response":{"error":"broken"}"#) && body.contains(r#""data":"YQ==""#),
            "{body}"
        );
        let ImportedResponse::Answer { body, .. } = &exchange.reply else { panic!() };
        let answer = String::from_utf8_lossy(body);
        assert!(answer.contains(r#""thought":true"#) && !answer.contains("set-cookie"), "{answer}");
        assert_eq!(listed, ["samples[0].events[0].call: the member sdkHttpResponse is not mapped"]);
    }

    #[test]
    fn what_the_form_of_an_api_lacks_is_listed() {
        let input = r#""input":[{"role":"assistant","content":[{"type":"reasoning","reasoning":"so?"}],"tool_calls":
            [{"id":"1","function":"w","arguments":{}}]},{"role":"tool","tool_call_id":"1","content":"",
            "error":{"type":"unknown","message":"broken"}}]"#;
        let log = log("", &format!("{input},{ANSWER}"));
        let [reasoning, error] =
            [NO_REASONING, ERROR_AS_RESULT].map(|reason| format!("samples[0].events[0]: {reason}"));
        for (model, expected) in
            [("openai/m", vec![reasoning.clone()]), ("google/gemini-x", vec![reasoning, error])]
        {
            assert_eq!(imported(&log.replace("openai/m", model)).1, expected);
        }
    }

    #[test]
    fn other_options_and_missing_attachments_are_listed() {
        let members = r#""input":[{"role":"user","content":"attachment://b"}],"tool_choice":"any","config":{"top_k":5,
            "max_retries":1,"logit_bias":{"1":2},"extra_headers":{"x":"key"},"seed":null}"#;
        let (exchange, listed) = imported(&log("", &format!("{members},{ANSWER}")));
        let ImportedRequest::Json { body, .. } = &exchange.request else { panic!() };
        assert_eq!(
            compact::text(body),
            r#"{"model":"m","messages":[{"role":"user","content":"attachment://b"}],"top_k":5}"#
        );
        assert_eq!(
            listed,
            [
                "samples[0].events[0].config: the member \"logit_bias\" is not mapped",
                "samples[0].events[0].config: the member \"extra_headers\" is not mapped",
                "samples[0].events[0].tool_choice: it is not mapped",
                "samples[0]: the attachment \"b\" is not in the log",
            ]
        );
    }
}

//! Logs of Inspect: `docs/import.md`, "Inspect".

use std::borrow::Cow;
use std::io::Cursor;

use chrono::{DateTime, Utc};

use super::chat::{Chat, ChatChoice, message, tool, tool_call};
use super::error::{Fault, LIMITS, RecorderResult, SHAPE, SYNTAX};
use super::exchange::{ImportedExchange, ImportedRequest, ImportedResponse};
use super::forms::{ApiExchange, formed};
use super::node::LocatedValue;
use super::recording::{ImportedRun, ImportedRuns};
use super::target::ApiTarget;
use crate::calls::values::text;
use crate::intake::archive::{self, ArchiveError, ArchiveFormat};
use crate::json::reader::{self, Limits};
use crate::json::{Object, Value};

/// The prefix of the strings that refer to long texts.
const ATTACHMENT: &str = "attachment://";

/// The end of the names of the files in an archive that are read.
const ENDING: &str = ".json";

/// The options of a model that are members of requests.
const OPTIONS: &[(&str, &str)] = &[
    ("temperature", "temperature"),
    ("top_p", "top_p"),
    ("max_tokens", "max_tokens"),
    ("seed", "seed"),
    ("stop_seqs", "stop"),
    ("frequency_penalty", "frequency_penalty"),
    ("presence_penalty", "presence_penalty"),
    ("num_choices", "n"),
];

/// Reads a log: JSON, or a zip file.
pub(super) fn read(bytes: &[u8], limits: &Limits) -> RecorderResult<ImportedRuns> {
    let mut recording = ImportedRuns::default();
    if !bytes.starts_with(b"PK") {
        let root = reader::read(bytes, limits).map_err(|error| Fault::of_text(&error, 1))?;
        let root = LocatedValue::new(&root, "");
        let header = InspectLogHeader::read(&root)?;
        match root.member("samples") {
            Some(samples) => {
                samples.elements()?.try_for_each(|sample| header.sample(&sample, &mut recording))?;
            }
            None => list(&mut recording, "the document", "the log has no samples"),
        }
        return Ok(recording);
    }
    let bounds = archive::ArchiveLimits { bytes: limits.bytes, entries: limits.entries };
    let files =
        archive::read_files(ArchiveFormat::Zip, Cursor::new(bytes), &|name| name.ends_with(ENDING), bounds);
    let files = files.map_err(|error| {
        let rule = if matches!(error, ArchiveError::Broken(_)) { SYNTAX } else { LIMITS };
        Fault::new(rule, "the archive", error.to_string())
    })?;
    let find = |name: &str| files.iter().find(|(path, _)| path == name);
    let Some((name, header)) = find("header.json").or_else(|| find("_journal/start.json")) else {
        return Err(Fault::new(SHAPE, "the archive", "the required file header.json is missing"));
    };
    let root = reader::read(header, limits).map_err(|error| Fault::of_text(&error, 1).inside(name))?;
    let header = InspectLogHeader::read(&LocatedValue::new(&root, "")).map_err(|fault| fault.inside(name))?;
    let mut samples: Vec<_> = files.iter().filter(|(path, _)| path.starts_with("samples/")).collect();
    samples.sort_unstable();
    for (path, sample) in samples {
        let sample = reader::read(sample, limits).map_err(|error| Fault::of_text(&error, 1).inside(path))?;
        header.sample(&LocatedValue::new(&sample, path.as_str()), &mut recording)?;
    }
    Ok(recording)
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
        let eval = root.required("eval")?;
        let run = eval.member("run_id").or_else(|| eval.member("eval_id"));
        let run = run.map_or(Ok(String::new()), |run| run.text().map(str::to_owned))?;
        Ok(Self { run, task: eval.required("task")?.text()?.to_owned() })
    }

    /// Reads a sample, whose calls are a run.
    fn sample(&self, sample: &LocatedValue<'_>, recording: &mut ImportedRuns) -> RecorderResult<()> {
        let id = sample.required("id")?;
        let id = match id.value {
            Value::String(text) => text.clone().into_owned(),
            _ => id.integer()?.to_string(),
        };
        let epoch = sample.member("epoch").map_or(Ok(1), |epoch| epoch.integer())?;
        let pools = SamplePools::new(sample);
        let mut exchanges = Vec::new();
        for event in sample.member("events").iter().flat_map(LocatedValue::elements).flatten() {
            if event.member("event").and_then(|kind| kind.value.as_str()) == Some("model") {
                exchanges.push((0, pools.exchange(&event, recording)?));
            }
        }
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
        recording.runs.push(ImportedRun { name, details, exchanges });
        Ok(())
    }
}

/// The values that the events of a sample refer to.
struct SamplePools<'v> {
    attachments: Option<&'v Object<'v>>,
    messages: &'v [Value<'v>],
    calls: &'v [Value<'v>],
}

impl<'v> SamplePools<'v> {
    fn new(sample: &LocatedValue<'v>) -> Self {
        let data = sample.value.get("events_data");
        let pool = |name| data.and_then(|data| data.get(name)).and_then(Value::as_array).unwrap_or_default();
        let attachments = sample.value.get("attachments").and_then(Value::as_object);
        Self { attachments, messages: pool("messages"), calls: pool("calls") }
    }

    /// Returns a value with the texts that it refers to.
    fn resolved(&self, value: &Value<'_>) -> Value<'static> {
        match value {
            Value::String(text) => {
                let key = text.strip_prefix(ATTACHMENT);
                let found = key.and_then(|key| self.attachments?.get(key)).and_then(Value::as_str);
                Value::String(Cow::Owned(found.unwrap_or(text).to_owned()))
            }
            Value::Array(elements) => Value::Array(elements.iter().map(|one| self.resolved(one)).collect()),
            Value::Object(members) => Value::Object(Object::from_members(
                members
                    .iter()
                    .map(|(name, value)| (Cow::Owned(name.to_owned()), self.resolved(value)))
                    .collect(),
            )),
            other => other.to_owned_value(),
        }
    }

    /// Returns the elements of a pool that a list of ranges refers to.
    fn referred(&self, pool: &[Value<'_>], ranges: &LocatedValue<'_>) -> RecorderResult<Vec<Value<'static>>> {
        let mut found = Vec::new();
        for range in ranges.elements()? {
            let mut ends = range.elements()?;
            let (Some(start), Some(end)) = (ends.next(), ends.next()) else {
                return Err(range.fault("a range has a start and an end"));
            };
            let index = |node: &LocatedValue<'_>| {
                Ok::<_, Fault>(usize::try_from(node.integer()?).unwrap_or(usize::MAX))
            };
            let Some(elements) = pool.get(index(&start)?..index(&end)?) else {
                return Err(range.fault("the range is not one of the messages that events_data has"));
            };
            found.extend(elements.iter().map(|element| self.resolved(element)));
            if found.len() > pool.len().saturating_mul(4).max(1_000) {
                return Err(range.fault("the ranges repeat messages too often"));
            }
        }
        Ok(found)
    }

    fn exchange(
        &self,
        event: &LocatedValue<'_>,
        recording: &mut ImportedRuns,
    ) -> RecorderResult<ImportedExchange> {
        let at = event.member("timestamp").and_then(|time| time.time());
        let completed = event.member("completed").and_then(|time| time.time());
        let latency = at.zip(completed).map(|(at, completed)| (completed - at).num_milliseconds());
        let latency_ms = latency.and_then(|latency| u64::try_from(latency).ok()).unwrap_or(0);
        let failure = event.member("error").and_then(|error| error.value.as_str().map(str::to_owned));
        let (request, reply) = if let Some(raw) = self.raw(event, recording)? {
            raw
        } else {
            let ApiExchange { request, reply, unmapped } = formed(&self.chat(event, completed)?);
            for reason in unmapped {
                list(recording, event.location.clone(), reason);
            }
            (request, reply)
        };
        let reply = failure.map_or(reply, ImportedResponse::Failed);
        Ok(ImportedExchange { location: event.location.clone(), request, reply, at, latency_ms })
    }

    /// Returns what was sent and received, if the log has it and the form is that of an API that is known.
    fn raw(
        &self,
        event: &LocatedValue<'_>,
        recording: &mut ImportedRuns,
    ) -> RecorderResult<Option<(ImportedRequest, ImportedResponse)>> {
        let Some(call) = event.member("call") else { return Ok(None) };
        let (Some(request), Some(response)) = (call.member("request"), call.member("response")) else {
            return Ok(None);
        };
        let mut members = Vec::new();
        for (name, value) in request.members()? {
            // Headers may contain keys.
            if name == "extra_headers" {
                list(recording, value.location, "headers are not mapped");
            } else {
                members.push((Cow::Owned(name.to_owned()), self.resolved(value.value)));
            }
        }
        if let (Some(refs), Some(key)) = (call.member("call_refs"), call.member("call_key")) {
            let key = key.text()?;
            members.retain(|(name, _)| name != key);
            members.push((Cow::Owned(key.to_owned()), Value::Array(self.referred(self.calls, &refs)?)));
        }
        let body = Value::Object(Object::from_members(members));
        let response = self.resolved(response.value);
        // Other APIs are stated in the form of Inspect.
        let is_known = response.get("object").or_else(|| response.get("type")).is_some();
        let target = ApiTarget::from_bodies(&body, Some(&response)).filter(|_| is_known);
        Ok(target
            .map(|target| (ImportedRequest::Json { target, body }, ImportedResponse::json(200, &response))))
    }

    /// Returns what Inspect states in its own form.
    fn chat(&self, event: &LocatedValue<'_>, ended_at: Option<DateTime<Utc>>) -> RecorderResult<Chat> {
        let model = event.required("model")?.text()?;
        let (provider, model) = model.split_once('/').unwrap_or(("inspect", model));
        let mut input: Vec<Value<'static>> = Vec::new();
        if let Some(input_member) = event.member("input") {
            input.extend(input_member.elements()?.map(|message| self.resolved(message.value)));
        }
        if let Some(refs) = event.member("input_refs") {
            input.extend(self.referred(self.messages, &refs)?);
        }
        let mut chat =
            Chat { provider: provider.to_owned(), model: model.to_owned(), ended_at, ..Chat::default() };
        for (index, one) in input.iter().enumerate() {
            chat.messages
                .push(in_chat(&LocatedValue::new(one, format!("{}.input[{index}]", event.location)))?);
        }
        if let Some(config) = event.member("config") {
            let option = |(name, member): &(&str, &'static str)| {
                Some((*member, config.member(name)?.value.to_owned_value()))
            };
            chat.members.extend(OPTIONS.iter().filter_map(option));
        }
        let tools = event
            .member("tools")
            .map_or(Ok(Vec::new()), |tools| tools.elements()?.map(|one| tool_of(&one)).collect())?;
        if !tools.is_empty() {
            chat.members.push(("tools", Value::Array(tools)));
        }
        let output = event.required("output")?;
        chat.response_model =
            output.member("model").and_then(|model| model.value.as_str().map(str::to_owned));
        for choice in output.member("choices").iter().flat_map(LocatedValue::elements).flatten() {
            let resolved = self.resolved(choice.required("message")?.value);
            let message = in_chat(&LocatedValue::new(&resolved, format!("{}.message", choice.location)))?;
            let reason = choice.member("stop_reason").map_or(Ok("stop"), |reason| reason.text())?;
            let finish_reason = if reason == "max_tokens" { "length" } else { reason }.to_owned();
            chat.choices.push(ChatChoice { message, finish_reason });
        }
        if let Some(usage) = output.member("usage") {
            let tokens = |name| usage.member(name).map_or(Ok(0), |tokens| tokens.integer());
            chat.usage = Some((tokens("input_tokens")?, tokens("output_tokens")?));
        }
        Ok(chat)
    }
}

/// Returns the content of a message: a text, or parts that are not all texts.
fn said(content: &LocatedValue<'_>) -> RecorderResult<Value<'static>> {
    if let Value::String(_) = content.value {
        return Ok(content.value.to_owned_value());
    }
    let parts = content.elements()?.filter_map(|part| {
        // What the model thought is not part of what it is asked next.
        let kind = part.value.get("type").and_then(Value::as_str);
        (kind != Some("reasoning")).then(|| part.value.to_owned_value())
    });
    let parts: Vec<_> = parts.collect();
    let texts: Option<String> = parts.iter().map(|part| part.get("text").and_then(Value::as_str)).collect();
    Ok(texts.map_or(Value::Array(parts), text))
}

/// Returns a message of Inspect as one of a chat.
fn in_chat(node: &LocatedValue<'_>) -> RecorderResult<Value<'static>> {
    let role = node.required("role")?.text()?;
    let content = node.member("content").map_or(Ok(text("")), |content| said(&content))?;
    let mut calls = Vec::new();
    for call in node.member("tool_calls").iter().flat_map(LocatedValue::elements).flatten() {
        let arguments = call.member("arguments").map_or(&Value::Null, |arguments| arguments.value);
        calls.push(tool_call(call.required("id")?.text()?, call.required("function")?.text()?, arguments));
    }
    let id = node.member("tool_call_id").map(|id| id.text()).transpose()?;
    Ok(message(role, content, calls, id))
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
        let recording =
            read(log.as_bytes(), &Limits::default()).unwrap_or_else(|fault| panic!("{}", fault.in_file("l")));
        let run = &recording.runs[0];
        assert_eq!(run.name.as_deref(), Some("1-2"));
        let (_, exchange) = &run.exchanges[0];
        let ImportedRequest::Json { body, .. } = &exchange.request else { panic!() };
        assert_eq!(
            compact::text(body),
            r#"{"model":"m","messages":[{"role":"system","content":"be short"},{"role":"user","content":"a long text"}],"temperature":0.0}"#
        );
        assert_eq!((exchange.latency_ms, exchange.location.as_str()), (2_000, "samples[0].events[1]"));
        assert_eq!(recording.unmapped.len(), 1);
        let wrong = log.replace("[[0,2]]", "[[0,3]]");
        let fault = read(wrong.as_bytes(), &Limits::default()).unwrap_err().in_file("l").to_string();
        assert_eq!(
            fault,
            "l: samples[0].events[1].input_refs[0]: the range is not one of the messages that events_data has (rule IM3)"
        );
    }
}

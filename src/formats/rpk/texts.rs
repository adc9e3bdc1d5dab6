//! Extraction of prompts and responses from steps, in the shapes of [`SHAPES`].
//!
//! A step contains a body, such as the `payload` that ReplayKit's listener records of a request. In a body, texts are
//! at the locations that the provider's API defines.

use std::collections::HashSet;

use crate::json::Value;

/// The locations of texts in the bodies of an API or a recorder. Each location is a JSON Pointer into the body in which
/// `*` matches every element of a list.
///
/// A string at a location is a text; in a list, every string and every member `text` of its objects is one. Empty texts
/// are skipped.
pub struct ProviderShape {
    /// The name of the API or recorder.
    pub name: &'static str,
    /// The locations of instructions that apply to the whole request.
    pub instructions: &'static [&'static str],
    /// The locations of prompts in requests, the newest text last.
    pub prompts: &'static [&'static str],
    /// The locations of the responses.
    pub responses: &'static [&'static str],
}

/// All supported shapes. Every body is searched for all of them: recorders do not state which one they use.
pub const SHAPES: &[ProviderShape] = &[
    ProviderShape {
        name: "plain texts",
        instructions: &["/system", "/instructions"],
        prompts: &["", "/text", "/content", "/rendered", "/rendered_prompt", "/prompt"],
        responses: &[
            "",
            "/text",
            "/content",
            "/response",
            "/completion",
            "/result",
            "/answer",
            "/output",
            "/message",
            "/message/content",
        ],
    },
    ProviderShape {
        name: "ReplayKit listener",
        instructions: &[],
        prompts: &[],
        responses: &["/assembled_text"],
    },
    ProviderShape {
        name: "OpenAI completions",
        instructions: &[],
        prompts: &["/prompt"],
        responses: &["/choices/*/text"],
    },
    ProviderShape {
        name: "OpenAI chat completions",
        instructions: &[],
        prompts: &["/messages/*/content"],
        responses: &["/choices/*/message/content"],
    },
    ProviderShape {
        name: "OpenAI responses",
        instructions: &["/instructions"],
        prompts: &["/input", "/input/*/content"],
        responses: &["/output_text", "/output/*/content"],
    },
    ProviderShape {
        name: "Anthropic messages",
        instructions: &["/system"],
        prompts: &["/messages/*/content"],
        responses: &["/content"],
    },
    ProviderShape {
        name: "Gemini generateContent",
        instructions: &[
            "/systemInstruction",
            "/systemInstruction/parts",
            "/system_instruction",
            "/system_instruction/parts",
        ],
        prompts: &["/contents", "/contents/parts", "/contents/*/parts"],
        responses: &["/candidates/*/content/parts"],
    },
];

/// The role of the texts in a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepTextRole {
    /// Prompts.
    Prompts,
    /// Responses.
    Responses,
}

/// The locations of bodies by step type: JSON Pointers into the step.
pub const BODIES: &[(&str, StepTextRole, &[&str])] = &[
    ("prompt.render", StepTextRole::Prompts, &["/output"]),
    ("model.request", StepTextRole::Prompts, &["/input", "/input/input", "/input/payload"]),
    ("model.response", StepTextRole::Responses, &["/output", "/output/output"]),
    ("output.final", StepTextRole::Responses, &["/output"]),
];

/// In prompts, objects whose member `role` is one of these repeat texts that are not part of the request.
pub const ROLES_NOT_ASKED: &[&str] = &["assistant", "model", "tool", "function"];

/// Objects whose member `type` is one of these are neither prompts nor responses: reasoning of models, and results of
/// tools.
pub const TYPES_PASSED_OVER: &[&str] = &[
    "reasoning",
    "reasoning_text",
    "thinking",
    "redacted_thinking",
    "function_call_output",
    "computer_call_output",
    "code_interpreter_call_output",
    "tool_result",
    "tool_response",
    "mcp_result",
];

/// Returns the unique texts that `step` contains in one role, in the order of their last occurrence. Instructions
/// precede prompts, so that the last text is the final prompt of the step.
pub(super) fn carried<'v>(step: &'v Value<'v>, carries: StepTextRole) -> Vec<&'v str> {
    let step_type = step.get("type").and_then(Value::as_str);
    let of_type = BODIES.iter().filter(|(name, what, _)| Some(*name) == step_type && *what == carries);
    let bodies = of_type.flat_map(|(_, _, bodies)| *bodies).filter_map(|pointer| find(step, pointer));
    let bodies: Vec<&Value<'_>> = bodies.collect();
    let sorts: &[fn(&ProviderShape) -> &'static [&'static str]] = match carries {
        StepTextRole::Prompts => &[|shape| shape.instructions, |shape| shape.prompts],
        StepTextRole::Responses => &[|shape| shape.responses],
    };
    let mut texts = Vec::new();
    for places in sorts {
        for body in &bodies {
            for pointer in SHAPES.iter().flat_map(places) {
                select(body, pointer, carries, &mut texts);
            }
        }
    }
    last_of_each(texts)
}

/// Returns the value at a pointer without `*`.
pub(super) fn find<'v>(value: &'v Value<'v>, pointer: &str) -> Option<&'v Value<'v>> {
    pointer.split('/').skip(1).try_fold(value, |value, name| value.get(name))
}

fn select<'v>(value: &'v Value<'v>, pointer: &str, carries: StepTextRole, texts: &mut Vec<&'v str>) {
    if is_passed_over(value, carries) {
        return;
    }
    let Some(rest) = pointer.strip_prefix('/') else {
        return collect(value, carries, texts);
    };
    let (token, rest) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    match (token, value) {
        ("*", Value::Array(elements)) => {
            for element in elements {
                select(element, rest, carries, texts);
            }
        }
        (name, Value::Object(object)) => {
            if let Some(member) = object.get(name) {
                select(member, rest, carries, texts);
            }
        }
        _ => {}
    }
}

/// Collects the texts at a location.
fn collect<'v>(value: &'v Value<'v>, carries: StepTextRole, texts: &mut Vec<&'v str>) {
    match value {
        Value::String(text) => texts.push(text),
        Value::Array(parts) => {
            let parts = parts.iter().filter(|part| !is_passed_over(part, carries));
            texts.extend(parts.filter_map(|part| part.get("text").unwrap_or(part).as_str()));
        }
        _ => {}
    }
}

fn is_passed_over(value: &Value<'_>, carries: StepTextRole) -> bool {
    let is_one_of = |name: &str, listed: &[&str]| {
        value.get(name).and_then(Value::as_str).is_some_and(|word| listed.contains(&word))
    };
    let is_thought = matches!(value.get("thought"), Some(Value::Bool(true)));
    is_thought
        || is_one_of("type", TYPES_PASSED_OVER)
        || (carries == StepTextRole::Prompts && is_one_of("role", ROLES_NOT_ASKED))
}

/// Returns the unique non-empty texts, in the order of their last occurrence.
fn last_of_each(mut texts: Vec<&str>) -> Vec<&str> {
    let mut seen = HashSet::new();
    texts.reverse();
    texts.retain(|text| !text.is_empty() && seen.insert(*text));
    texts.reverse();
    texts
}

#[cfg(test)]
mod tests {
    use serde_json::{Value as Json, json};

    use super::*;
    use crate::json::reader::{self, Limits};

    fn texts(step: &Json, carries: StepTextRole) -> Vec<String> {
        let text = step.to_string();
        let value = reader::read(text.as_bytes(), &Limits::default()).unwrap();
        carried(&value, carries).into_iter().map(str::to_owned).collect()
    }

    /// Returns the prompts that the listener records for a request with this payload.
    fn prompts_of_request(provider: &str, path: &str, payload: &Json) -> Vec<String> {
        let step = json!({
            "type": "model.request",
            "input": {
                "provider": provider, "path": path, "query": {}, "request_id": format!("{provider}-request-000001"),
                "model": "m", "stream": false, "headers": {"accept": "*/*"}, "payload": payload,
            },
            "output": {"status": "captured"},
            "metadata": {"provider": provider, "path": path, "capture_mode": "passive"},
        });
        texts(&step, StepTextRole::Prompts)
    }

    /// Returns the responses that the listener records for this body.
    fn responses_of(body: &Json, assembled: &str) -> Vec<String> {
        let step = json!({
            "type": "model.response", "input": {"request_id": "r"}, "metadata": {},
            "output": {"status_code": 200, "output": body, "assembled_text": assembled, "error": null,
                "stream": {"enabled": false, "events": [], "completion_state": "not_streaming"}},
        });
        texts(&step, StepTextRole::Responses)
    }

    #[test]
    fn openai_chat_completions_are_read() {
        let payload = json!({"model": "m", "messages": [
            {"role": "developer", "content": "be brief"},
            {"role": "user", "content": "first"},
            {"role": "assistant", "content": "an earlier answer", "tool_calls": []},
            {"role": "tool", "tool_call_id": "c", "content": "42"},
            {"role": "user", "content": [{"type": "text", "text": "second"},
                {"type": "image_url", "image_url": {"url": "x"}}]},
        ]});
        let prompts = prompts_of_request("openai", "/v1/chat/completions", &payload);
        assert_eq!(prompts, ["be brief", "first", "second"]);
        let body = json!({"object": "chat.completion", "choices": [
            {"message": {"role": "assistant", "content": "answer"}}]});
        assert_eq!(responses_of(&body, "answer"), ["answer"]);
    }

    #[test]
    fn openai_responses_are_read() {
        let payload = json!({"model": "m", "instructions": "be brief", "input": [
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "first"}]},
            {"type": "reasoning", "content": [{"type": "reasoning_text", "text": "hm"}], "summary": []},
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "said"}]},
            {"type": "function_call", "call_id": "c", "name": "shell", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "c", "output": "42"},
            {"type": "tool_result", "content": "43"},
            {"role": "user", "content": "second"},
        ]});
        assert_eq!(prompts_of_request("openai", "/v1/responses", &payload), ["be brief", "first", "second"]);
        let plain = json!({"model": "m", "input": "asked", "instructions": "be brief"});
        assert_eq!(prompts_of_request("openai", "/responses", &plain), ["be brief", "asked"]);
        let body = json!({"object": "response", "output": [
            {"type": "reasoning", "content": [{"type": "reasoning_text", "text": "hm"}]},
            {"type": "function_call", "name": "shell", "arguments": "{}"},
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "answer"}]},
        ]});
        // The listener does not assemble responses for this API.
        assert_eq!(responses_of(&body, ""), ["answer"]);
    }

    #[test]
    fn anthropic_messages_are_read() {
        let payload = json!({"model": "m", "max_tokens": 9, "messages": [
            {"role": "user", "content": "first"},
            {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "shell", "input": {}}]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "t", "content": "42"},
                {"type": "text", "text": "second", "cache_control": {"type": "ephemeral"}},
            ]},
        ], "system": [{"type": "text", "text": "be brief"}, {"type": "text", "text": "be kind"}]});
        let prompts = prompts_of_request("anthropic", "/v1/messages", &payload);
        assert_eq!(prompts, ["be brief", "be kind", "first", "second"]);
        let plain = json!({"system": "be brief", "messages": [{"role": "user", "content": "asked"}]});
        assert_eq!(prompts_of_request("anthropic", "/v1/messages", &plain), ["be brief", "asked"]);
        let body = json!({"type": "message", "role": "assistant", "content": [
            {"type": "thinking", "thinking": "hm", "signature": "s"},
            {"type": "text", "text": "one "},
            {"type": "tool_use", "id": "t", "name": "shell", "input": {"text": "no"}},
            {"type": "text", "text": "two"},
        ]});
        assert_eq!(responses_of(&body, "one two"), ["one two", "one ", "two"]);
    }

    #[test]
    fn gemini_contents_are_read() {
        let payload = json!({
            "systemInstruction": {"parts": [{"text": "be brief"}]},
            "contents": [
                {"role": "user", "parts": [{"text": "first"}, {"inlineData": {"mimeType": "image/png", "data": "x"}}]},
                {"role": "model", "parts": [{"text": "said"}, {"functionCall": {"name": "shell", "args": {}}}]},
                {"role": "function", "parts": [{"functionResponse": {"name": "shell", "response": {"text": "42"}}}]},
                {"parts": [{"text": "second"}]},
            ],
        });
        let path = "/v1beta/models/gemini-2.0-flash:generateContent";
        assert_eq!(prompts_of_request("google", path, &payload), ["be brief", "first", "second"]);
        let other_spelling = json!({"system_instruction": {"parts": [{"text": "be brief"}]},
            "contents": {"parts": [{"text": "asked"}]}});
        assert_eq!(prompts_of_request("google", path, &other_spelling), ["be brief", "asked"]);
        let body = json!({"candidates": [{"content": {"role": "model", "parts": [
            {"text": "hm", "thought": true}, {"text": "one "}, {"text": "two"}]}}]});
        assert_eq!(responses_of(&body, "one two"), ["one two", "one ", "two"]);
    }

    #[test]
    fn openai_completions_are_read() {
        let prompts = prompts_of_request("openai", "/v1/completions", &json!({"prompt": ["one", "two"]}));
        assert_eq!(prompts, ["one", "two"]);
        assert_eq!(responses_of(&json!({"choices": [{"text": "answer", "index": 0}]}), ""), ["answer"]);
    }

    /// Returns a step with a text only at `pointer`.
    fn step_with_text_at(step_type: &str, pointer: &str) -> Json {
        let mut value = json!("the text");
        for token in pointer.rsplit('/').filter(|token| !token.is_empty()) {
            value = if token == "*" { json!([value]) } else { json!({ token: value }) };
        }
        value["type"] = step_type.into();
        value
    }

    #[test]
    fn every_shape_is_looked_for_in_every_body() {
        let mut seen = 0;
        for (step_type, carries, bodies) in BODIES {
            for shape in SHAPES {
                let places: Vec<&str> = match carries {
                    StepTextRole::Prompts => [shape.instructions, shape.prompts].concat(),
                    StepTextRole::Responses => shape.responses.to_vec(),
                };
                for pointer in
                    bodies.iter().flat_map(|body| places.iter().map(move |at| format!("{body}{at}")))
                {
                    let mut step = step_with_text_at(step_type, &pointer);
                    assert_eq!(texts(&step, *carries), ["the text"], "{} {step}", shape.name);
                    step["type"] = "error.event".into();
                    assert!(texts(&step, *carries).is_empty(), "{step}");
                    seen += 1;
                }
            }
        }
        assert!(seen > 50, "{seen} places");
    }

    #[test]
    fn the_last_text_is_what_is_asked_in_the_end() {
        let step = json!({"type": "model.request", "input": {"prompt": "asked", "system": "be brief"}});
        assert_eq!(texts(&step, StepTextRole::Prompts), ["be brief", "asked"]);
        let again = json!({"type": "model.request", "input": {"messages": [
            {"role": "user", "content": "yes"}, {"role": "user", "content": "no"},
            {"role": "user", "content": "yes"}]}});
        assert_eq!(texts(&again, StepTextRole::Prompts), ["no", "yes"]);
        let listed = json!({"type": "model.request", "input": {"input": [
            {"role": "user", "text": "asked"}, {"role": "assistant", "text": "not asked"}, "plain", ""]}});
        assert_eq!(texts(&listed, StepTextRole::Prompts), ["asked", "plain"]);
    }

    #[test]
    fn the_documentation_has_the_tables() {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/formats.md");
        let document = std::fs::read_to_string(path).unwrap();
        let cell = |places: &[&str]| {
            let places =
                places.iter().map(|at| if at.is_empty() { "the body".to_owned() } else { format!("`{at}`") });
            let places = places.collect::<Vec<_>>().join(" ");
            if places.is_empty() { String::new() } else { format!(" {places}") }
        };
        for ProviderShape { name, instructions, prompts, responses } in SHAPES {
            let row = format!("| {name} |{} |{} |{} |\n", cell(instructions), cell(prompts), cell(responses));
            assert!(document.contains(&row), "{row}");
        }
        for (step_type, carries, bodies) in BODIES {
            let carries = format!("{carries:?}").to_lowercase();
            let row = format!("| `{step_type}` | {carries} |{} |\n", cell(bodies));
            assert!(document.contains(&row), "{row}");
        }
        let words = ROLES_NOT_ASKED.iter().chain(TYPES_PASSED_OVER);
        for word in words {
            assert!(document.contains(&format!("`{word}`")), "{word}");
        }
    }
}

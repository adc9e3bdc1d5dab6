//! The weather in two turns with a tool, as each program records it.

use serde_json::{Value, json};

/// Returns a document with these lines.
pub(crate) fn lines(lines: &[String]) -> String {
    lines.iter().flat_map(|line| [line.as_str(), "\n"]).collect()
}

fn time(second: u32) -> String {
    format!("2026-11-20T10:00:{second:02}.000Z")
}

fn texts(values: &[Value]) -> Vec<String> {
    values.iter().map(Value::to_string).collect()
}

const PROMPT: &str = "What is the weather in Paris?";
const THOUGHT: &str = "I must look.";
const RESULT: &str = "18 degrees";
const ANSWER: &str = "It is 18 degrees in Paris.";

/// Returns the lines of a transcript of Claude Code. An answer has a record for each of its blocks.
pub(crate) fn claude_code() -> Vec<String> {
    let record = |number: u32, record_type: &str, message: Value| {
        let parent = number.checked_sub(1).map(|before| format!("r{before}"));
        json!({"parentUuid": parent, "isSidechain": false, "sessionId": "session-1", "version": "2.1.0", "cwd": "/work",
            "gitBranch": "main", "type": record_type, "message": message, "uuid": format!("r{number}"),
            "timestamp": time(number)})
    };
    let answer = |id: &str, block: Value, tokens: [u32; 2], reason: Option<&str>| {
        json!({"id": id, "type": "message", "role": "assistant", "model": "model-1", "content": [block],
            "stop_reason": reason, "usage": {"input_tokens": tokens[0], "output_tokens": tokens[1]}})
    };
    let call = json!({"type": "tool_use", "id": "c1", "name": "weather", "input": {"city": "Paris"}});
    let result = json!({"type": "tool_result", "tool_use_id": "c1", "content": RESULT});
    texts(&[
        record(0, "user", json!({"role": "user", "content": PROMPT})),
        record(1, "assistant", answer("m1", json!({"type": "thinking", "thinking": THOUGHT}), [10, 1], None)),
        record(2, "assistant", answer("m1", call, [10, 5], Some("tool_use"))),
        record(3, "user", json!({"role": "user", "content": [result]})),
        record(
            4,
            "assistant",
            answer("m2", json!({"type": "text", "text": ANSWER}), [20, 11], Some("end_turn")),
        ),
    ])
}

/// Returns the lines of a rollout of Codex, which states the number of tokens twice.
pub(crate) fn codex() -> Vec<String> {
    let record = |second: u32, record_type: &str, payload: Value| json!({"timestamp": time(second), "type": record_type, "payload": payload});
    let item = |second: u32, item: Value| record(second, "response_item", item);
    let tokens = |second: u32, input: u32, output: u32| {
        let last = json!({"last_token_usage": {"input_tokens": input, "output_tokens": output}});
        record(second, "event_msg", json!({"type": "token_count", "info": last}))
    };
    texts(&[
        record(
            0,
            "session_meta",
            json!({"id": "session-2", "timestamp": time(0), "cwd": "/work", "cli_version": "0.99.0",
            "git": {"branch": "main", "commit_hash": "0123abcd"}}),
        ),
        record(0, "turn_context", json!({"cwd": "/work", "model": "model-1"})),
        item(
            1,
            json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": PROMPT}]}),
        ),
        record(1, "event_msg", json!({"type": "user_message", "message": PROMPT})),
        item(2, json!({"type": "reasoning", "summary": [{"type": "summary_text", "text": THOUGHT}]})),
        item(
            2,
            json!({"type": "function_call", "name": "weather", "arguments": "{\"city\": \"Paris\"}", "call_id": "c1"}),
        ),
        tokens(2, 10, 5),
        item(3, json!({"type": "function_call_output", "call_id": "c1", "output": RESULT})),
        item(
            4,
            json!({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": ANSWER}]}),
        ),
        tokens(4, 20, 11),
        tokens(5, 20, 11),
    ])
}

/// Returns the messages of a chat of Gemini CLI.
fn gemini_messages() -> Vec<Value> {
    let call = json!({"id": "c1", "name": "weather", "args": {"city": "Paris"}, "status": "success", "timestamp": time(3),
        "result": [{"functionResponse": {"id": "c1", "name": "weather", "response": {"output": RESULT}}}]});
    let said = |id: &str, second: u32, content: &str| json!({"id": id, "timestamp": time(second), "type": "gemini", "content": content, "model": "model-1"});
    let mut first = said("m2", 2, "");
    first["thoughts"] = json!([{"description": THOUGHT, "timestamp": time(2)}]);
    first["toolCalls"] = json!([call]);
    first["tokens"] = json!({"input": 10, "output": 5});
    let mut second = said("m3", 4, ANSWER);
    // The API counts these apart.
    second["tokens"] = json!({"input": 18, "output": 7, "cached": 9, "thoughts": 4, "tool": 2, "total": 31});
    vec![json!({"id": "m1", "timestamp": time(1), "type": "user", "content": PROMPT}), first, second]
}

fn gemini_header() -> Value {
    json!({"sessionId": "session-3", "projectHash": "0f0f", "startTime": time(0), "lastUpdated": time(4)})
}

fn gemini_document() -> Value {
    let mut document = gemini_header();
    document["messages"] = gemini_messages().into();
    document
}

/// Returns the lines of a later chat, in which a message is replaced when its tool has ended.
fn gemini_lines() -> Vec<String> {
    let [asked, called, answered] = gemini_messages().try_into().unwrap();
    let mut begun = called.clone();
    begun.as_object_mut().unwrap().remove("toolCalls");
    texts(&[
        gemini_header(),
        asked,
        begun,
        called.clone(),
        called,
        json!({"$set": {"lastUpdated": time(3)}}),
        answered,
    ])
}

fn opencode() -> Value {
    let milliseconds = |second: u64| 1_795_168_800_000 + second * 1_000;
    let answer = |id: &str, second: u64, tokens: [u32; 2], parts: Value| {
        json!({"info": {"id": id, "sessionID": "ses_1", "role": "assistant", "modelID": "model-1", "providerID": "p",
            "time": {"created": milliseconds(second)}, "tokens": {"input": tokens[0], "output": tokens[1]}, "finish": "stop"},
            "parts": parts})
    };
    let state =
        json!({"status": "completed", "input": {"city": "Paris"}, "output": RESULT, "title": "weather"});
    json!({"info": {"id": "ses_1", "directory": "/work", "version": "1.17.0", "title": "Weather"}, "messages": [
        {"info": {"id": "msg_1", "sessionID": "ses_1", "role": "user", "time": {"created": milliseconds(1)}},
            "parts": [{"id": "prt_1", "type": "text", "text": PROMPT}]},
        answer("msg_2", 2, [10, 5], json!([{"type": "step-start"}, {"type": "reasoning", "text": THOUGHT},
            {"type": "tool", "callID": "c1", "tool": "weather", "state": state}, {"type": "step-finish", "reason": "tool-calls"}])),
        answer("msg_3", 4, [20, 11], json!([{"type": "text", "text": ANSWER}])),
    ]})
}

fn pi() -> Vec<String> {
    let entry = |number: u32, message: Value| {
        let parent = number.checked_sub(1).map(|before| format!("e{before}"));
        json!({"type": "message", "id": format!("e{number}"), "parentId": parent, "timestamp": time(number), "message": message})
    };
    let answer = |tokens: [u32; 2], reason: &str, content: Value| {
        json!({"role": "assistant", "model": "model-1", "content": content, "stopReason": reason,
            "usage": {"input": tokens[0], "output": tokens[1]}})
    };
    let called = json!([{"type": "thinking", "thinking": THOUGHT},
        {"type": "toolCall", "id": "c1", "name": "weather", "arguments": {"city": "Paris"}}]);
    texts(&[
        json!({"type": "session", "version": 3, "id": "session-5", "timestamp": time(0), "cwd": "/work"}),
        entry(0, json!({"role": "user", "content": [{"type": "text", "text": PROMPT}]})),
        entry(1, answer([10, 5], "toolUse", called)),
        entry(
            2,
            json!({"role": "toolResult", "toolCallId": "c1", "toolName": "weather", "isError": false,
            "content": [{"type": "text", "text": RESULT}]}),
        ),
        entry(3, answer([20, 11], "stop", json!([{"type": "text", "text": ANSWER}]))),
    ])
}

fn atif() -> Value {
    json!({"schema_version": "ATIF-v1.7", "session_id": "session-6",
        "agent": {"name": "example", "version": "1.0", "model_name": "model-1"}, "steps": [
            {"step_id": 1, "timestamp": time(1), "source": "user", "message": PROMPT},
            {"step_id": 2, "timestamp": time(2), "source": "agent", "message": "", "reasoning_content": THOUGHT,
                "tool_calls": [{"tool_call_id": "c1", "function_name": "weather", "arguments": {"city": "Paris"}}],
                "observation": {"results": [{"source_call_id": "c1", "content": RESULT}]},
                "metrics": {"prompt_tokens": 10, "completion_tokens": 5}},
            {"step_id": 3, "timestamp": time(4), "source": "agent", "message": ANSWER,
                "metrics": {"prompt_tokens": 20, "completion_tokens": 11, "cost_usd": 0.25}},
        ], "final_metrics": {"total_prompt_tokens": 30}})
}

/// Returns a session of Claude Code in which a tool fails that is called with a file.
pub(crate) fn failing() -> String {
    let failed = r#""type":"tool_result","is_error":true"#;
    let changed = |line: &String| {
        let line = line.replace(r#""input":{"city":"Paris"}"#, r#""input":{"file_path":"/work/paris.txt"}"#);
        line.replace(r#""type":"tool_result""#, failed).replace("session-1", "session-7")
    };
    lines(&claude_code().iter().map(changed).collect::<Vec<_>>())
}

/// Returns a document of each program, with the name of its file.
pub(crate) fn documents() -> Vec<(&'static str, String)> {
    let pretty = |value: &Value| serde_json::to_string_pretty(value).unwrap();
    vec![
        ("claude-code.jsonl", lines(&claude_code())),
        ("codex.jsonl", lines(&codex())),
        ("gemini.json", pretty(&gemini_document())),
        ("gemini.jsonl", lines(&gemini_lines())),
        ("opencode.json", pretty(&opencode())),
        ("pi.jsonl", lines(&pi())),
        ("atif.json", pretty(&atif())),
    ]
}

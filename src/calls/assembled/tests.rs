use super::*;
use crate::calls::call::RetryHeaders;

fn answer(status: u16, content_type: Option<&str>, body: &str) -> CallResponse {
    let content_type = content_type.map(str::to_owned);
    let body = body.to_owned();
    CallResponse { status, content_type, retry: RetryHeaders::default(), body, chunks: Vec::new() }
}

fn assembled(content_type: &str, body: &str) -> Option<String> {
    let mut texts = read(&answer(200, Some(content_type), body)).texts;
    assert!(texts.len() < 2, "{texts:?}");
    texts.pop()
}

#[test]
fn streams_are_assembled() {
    for stream in [
        "data: {\"choices\":[{\"delta\":{\"role\":\"assistant\"}}]}\n\ndata: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n\
         data: {\"choices\":[{\"delta\":{\"content\":\"b\"}}]}\n\ndata: [DONE]\n\n",
        "event: x\ndata: {\"type\":\"response.output_text.delta\",\"delta\":\"a\"}\r\n\r\n\
         data: {\"type\":\"response.output_text.delta\",\"delta\":\"b\"}\n\n\
         data: {\"type\":\"response.completed\",\"response\":{}}\n\n",
        "data: {\"type\":\"content_block_delta\",\"delta\":{\"type\":\"text_delta\",\"text\":\"ab\"}}\n\n",
        "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"a\"},{\"text\":\"b\"}]}}]}\n\n",
    ] {
        assert_eq!(assembled("text/event-stream; charset=utf-8", stream).as_deref(), Some("ab"), "{stream}");
    }
}

#[test]
fn lines_are_assembled() {
    let lines = "{\"message\":{\"content\":\"a\"}}\n{\"message\":{\"content\":\"b\"},\"done\":true}\n";
    assert_eq!(assembled("application/x-ndjson", lines).as_deref(), Some("ab"));
}

#[test]
fn bodies_have_a_text() {
    for body in [
        r#"{"choices":[{"message":{"content":"ab"}}]}"#,
        r#"{"choices":[{"text":"ab"}]}"#,
        r#"{"output":[{"type":"reasoning"},{"type":"message","content":[{"type":"output_text","text":"ab"}]}]}"#,
        r#"{"content":[{"type":"text","text":"a"},{"type":"tool_use"},{"type":"text","text":"b"}]}"#,
        r#"{"message":{"role":"assistant","content":"ab"}}"#,
        r#"{"message":{"content":[{"type":"text","text":"ab"}]}}"#,
        r#"{"candidates":[{"content":{"parts":[{"text":"no","thought":true},{"text":"ab"}]}}]}"#,
        r#"[{"candidates":[{"content":{"parts":[{"text":"a"}]}}]},{"candidates":[{"content":{"parts":[{"text":"b"}]}}]}]"#,
    ] {
        assert_eq!(assembled("application/json", body).as_deref(), Some("ab"), "{body}");
    }
    assert_eq!(assembled("application/json", r#"{"choices":[{"message":{"content":null}}]}"#), None);
    assert_eq!(assembled("text/plain", "not JSON"), None);
}

fn stream(events: &[&str]) -> CallResponse {
    let lines: Vec<String> = events.iter().map(|event| format!("data: {event}\n\n")).collect();
    answer(200, Some("text/event-stream"), &lines.concat())
}

#[test]
fn choices_of_a_stream_have_a_text_each() {
    let chunk = |member: &str, choices: &[(u64, &str)]| {
        let choices = choices.iter().map(|(index, text)| match member {
            "text" => format!(r#"{{"index":{index},"text":"{text}"}}"#),
            _ => format!(r#"{{"index":{index},"delta":{{"content":"{text}"}}}}"#),
        });
        format!(r#"{{"choices":[{}]}}"#, choices.collect::<Vec<_>>().join(","))
    };
    for member in ["text", "delta"] {
        let alternating =
            [(1, "Yes"), (0, "Not"), (0, " now."), (1, " sure.")].map(|choice| chunk(member, &[choice]));
        let together =
            [[(0, "Not"), (1, "Yes")], [(1, " sure."), (0, " now.")]].map(|choices| chunk(member, &choices));
        for events in [alternating.as_slice(), &together] {
            let events: Vec<&str> = events.iter().map(String::as_str).chain(["[DONE]"]).collect();
            let content = read(&stream(&events));
            assert_eq!(
                (content.texts, content.failure),
                (vec!["Not now.".to_owned(), "Yes sure.".to_owned()], None)
            );
        }
    }
    let candidate = |index: u64, text: &str| {
        format!(r#"{{"candidates":[{{"index":{index},"content":{{"parts":[{{"text":"{text}"}}]}}}}]}}"#)
    };
    let events = [candidate(1, "b"), candidate(0, "a"), candidate(1, "d"), candidate(0, "c")];
    let events = events.each_ref().map(String::as_str);
    assert_eq!(read(&stream(&events)).texts, ["ac", "bd"]);
    let array = answer(200, Some("application/json"), &format!("[{}]", events.join(",")));
    assert_eq!(read(&array).texts, ["ac", "bd"]);
    let whole =
        r#"{"choices":[{"index":1,"message":{"content":"b"}},{"index":0,"message":{"content":"a"}}]}"#;
    assert_eq!(read(&answer(200, None, whole)).texts, ["a", "b"]);
    let blocks = [(1, "c"), (0, "a"), (1, "d"), (0, "b")].map(|(index, text)| {
        format!(r#"{{"type":"content_block_delta","index":{index},"delta":{{"text":"{text}"}}}}"#)
    });
    assert_eq!(read(&stream(&blocks.each_ref().map(String::as_str))).texts, ["abcd"]);
}

#[test]
fn characters_that_are_split_over_events_are_whole() {
    for [first, second] in [
        [
            r#"{"choices":[{"delta":{"content":"\ud83d"}}]}"#,
            r#"{"choices":[{"delta":{"content":"\ude00 ok"}}]}"#,
        ],
        [r#"{"choices":[{"text":"\uD83D"}]}"#, r#"{"choices":[{"text":"\uDE00 ok"}]}"#],
        [r#"{"type":"content_block_delta","delta":{"text":"\ud83d"}}"#, r#"{"delta":{"text":"\ude00 ok"}}"#],
        [
            r#"{"type":"response.output_text.delta","delta":"\ud83d"}"#,
            r#"{"type":"response.output_text.delta","delta":"\ude00 ok"}"#,
        ],
        [
            r#"{"candidates":[{"content":{"parts":[{"text":"\ud83d"}]}}]}"#,
            r#"{"candidates":[{"content":{"parts":[{"text":"\ude00 ok"}]}}]}"#,
        ],
    ] {
        assert_eq!(read(&stream(&[first, second])).texts, ["\u{1f600} ok"], "{first}");
    }
}

#[test]
fn streams_state_their_tokens() {
    let numbers = |answer: &CallResponse| read(answer).usage.map(|usage| crate::json::compact::text(&usage));
    for (events, expected) in [
        (
            &[
                r#"{"choices":[{"delta":{"content":"a"}}],"usage":null}"#,
                r#"{"choices":[],"usage":{"prompt_tokens":10,"completion_tokens":4}}"#,
            ][..],
            r#"{"completion_tokens":4,"prompt_tokens":10}"#,
        ),
        (
            &[
                r#"{"type":"message_start","message":{"content":[],"usage":{"input_tokens":10,"output_tokens":1}}}"#,
                r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":4}}"#,
            ],
            r#"{"input_tokens":10,"output_tokens":4}"#,
        ),
        (
            &[
                r#"{"candidates":[],"usageMetadata":{"promptTokenCount":10,"candidatesTokenCount":1}}"#,
                r#"{"candidates":[],"usageMetadata":{"promptTokenCount":10,"candidatesTokenCount":4}}"#,
            ],
            r#"{"candidatesTokenCount":4,"promptTokenCount":10}"#,
        ),
        (
            &[
                r#"{"type":"response.created","response":{"usage":null}}"#,
                r#"{"type":"response.completed","response":{"usage":{"input_tokens":10,"output_tokens":4}}}"#,
            ],
            r#"{"input_tokens":10,"output_tokens":4}"#,
        ),
    ] {
        assert_eq!(numbers(&stream(events)).as_deref(), Some(expected));
    }
    let ollama = "{\"response\":\"a\",\"done\":false}\n{\"response\":\"\",\"done\":true,\"prompt_eval_count\":10,\"eval_count\":4}\n";
    assert_eq!(numbers(&answer(200, None, ollama)).unwrap(), r#"{"input_tokens":10,"output_tokens":4}"#);
    assert_eq!(numbers(&stream(&[r#"{"choices":[]}"#])), None);
}

/// Returns why an answer is a failure.
fn failure(answer: &CallResponse) -> Option<String> {
    read(answer).failure.map(|failure| failure.to_string())
}

#[test]
fn errors_in_responses_with_a_status_of_success_are_failures() {
    for events in [
        &[r#"{"type":"message_start","message":{}}"#, r#"{"type":"error","error":{"message":"no"}}"#][..],
        &[r#"{"choices":[{"delta":{"content":"a"}}]}"#, r#"{"error":{"message":"no"}}"#, "[DONE]"],
        &[r#"{"candidates":[]}"#, r#"{"error":{"code":503,"message":"no"}}"#],
        &[r#"{"type":"response.failed","response":{"status":"failed","error":{"message":"no"}}}"#],
        &[r#"{"type":"response.created"}"#, r#"{"type":"error","message":"no"}"#],
        &[r#"{"choices":[{"delta":{},"finish_reason":"error","error":{"message":"no"}}]}"#, "[DONE]"],
    ] {
        assert_eq!(failure(&stream(events)).as_deref(), Some("no"), "{events:?}");
    }
    for body in [
        r#"{"error":{"message":"no"}}"#,
        r#"{"type":"error","error":{"message":"no"}}"#,
        r#"[{"candidates":[]},{"error":{"message":"no"}}]"#,
        r#"{"object":"response","status":"failed","error":{"message":"no"},"output":[]}"#,
        r#"{"choices":[{"message":{},"error":{"message":"no"}}]}"#,
        r#"{"error":"no"}"#,
        "event: error\ndata: no\n\n",
        "{\"response\":\"a\",\"done\":false}\n{\"error\":\"no\"}\n",
    ] {
        assert_eq!(failure(&answer(200, None, body)).as_deref(), Some("no"), "{body}");
    }
    assert_eq!(failure(&answer(429, None, "slow down")).as_deref(), Some("HTTP status 429"));
    assert_eq!(failure(&answer(429, None, r#"{"error":{"message":"no"}}"#)).as_deref(), Some("no"));
}

#[test]
fn answers_that_were_broken_off_are_failures() {
    for events in [
        &[r#"{"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":null}]}"#][..],
        &[r#"{"choices":[{"index":0,"finish_reason":"stop"},{"index":1,"delta":{}}]}"#],
        &[r#"{"type":"message_start","message":{}}"#, r#"{"type":"content_block_stop","index":0}"#],
        &[r#"{"type":"response.created"}"#],
        &[r#"{"message":{"content":"a"},"done":false}"#],
        &[r#"{"type":"completion","completion":"a","stop_reason":null}"#],
        &[r#"{"candidates":[{"index":0,"finishReason":"STOP"}]}"#, r#"{"candidates":[{"index":1}]}"#],
    ] {
        assert_eq!(read(&stream(events)).failure, Some(AnswerFailure::NoEnd), "{events:?}");
    }
    for (content_type, body) in [
        (None, "{\"choices\":[{\"message\":{\"content\":\"a"),
        (Some("application/json"), "[{\"candidates\":[]},\n"),
        (Some("text/event-stream"), "data: {\"candidates\":[]}\n\ndata: {\"candidates\":[{"),
        (None, "{\"done\":false}\n{\"done\":tr"),
    ] {
        assert_eq!(read(&answer(200, content_type, body)).failure, Some(AnswerFailure::CutOff), "{body}");
    }
    for content_type in ["application/json", "text/event-stream; charset=utf-8"] {
        assert_eq!(read(&answer(200, Some(content_type), "\n")).failure, Some(AnswerFailure::Empty));
    }
}

#[test]
fn complete_answers_are_not_failures() {
    for events in [
        &[r#"{"choices":[{"index":0,"delta":{"content":"a"}}]}"#, "[DONE]"][..],
        &[
            r#"{"choices":[],"prompt_filter_results":[]}"#,
            r#"{"choices":[{"delta":{},"finish_reason":"stop"}]}"#,
        ],
        &[
            r#"{"candidates":[{"content":{"parts":[{"text":"a"}]},"finishReason":"STOP"}]}"#,
            r#"{"candidates":[{"groundingMetadata":{}}]}"#,
            r#"{"usageMetadata":{}}"#,
        ],
        &[
            r#"{"candidates":[{"index":1,"finishReason":"STOP"}]}"#,
            r#"{"candidates":[{"index":0,"finishReason":"MAX_TOKENS"}]}"#,
        ],
        &[r#"{"promptFeedback":{"blockReason":"SAFETY"}}"#],
        &[r#"{"candidates":[{"content":{"parts":[{"text":"a"}]}}]}"#, r#"{"usageMetadata":{}}"#],
        &[r#"{"candidates":[{"finishReason":null}]}"#],
        &[r#"{"type":"message_start","message":{}}"#, r#"{"type":"message_stop"}"#],
        &[r#"{"type":"response.created"}"#, r#"{"type":"response.incomplete","response":{}}"#],
        &[r#"{"message":{"content":"a"},"done":true}"#],
        &["[DONE]"],
    ] {
        assert_eq!(failure(&stream(events)), None, "{events:?}");
    }
    for (content_type, body) in [
        (Some("application/json"), r#"{"error":null,"object":"response","status":"completed","output":[]}"#),
        (Some("application/json"), r#"{"error":0.5}"#),
        (Some("text/plain"), "[unfinished"),
        (None, "text"),
        (None, ""),
    ] {
        assert_eq!(failure(&answer(200, content_type, body)), None, "{body}");
    }
}

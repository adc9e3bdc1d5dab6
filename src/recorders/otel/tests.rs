use super::*;
use crate::json::members::at;
use crate::json::{Value, compact};
use crate::recorders::exchange::{ImportedRequest, ImportedResponse};

/// Reads a file.
fn read(bytes: &[u8], limits: &Limits) -> std::result::Result<ImportedRuns, ConvertError> {
    super::read(&[ConvertInput { name: "o".to_owned(), bytes: bytes.to_vec() }], limits)
}

fn attribute(key: &str, value: &str) -> String {
    format!(
        "{{\"key\":\"{key}\",\"value\":{{\"stringValue\":{}}}}}",
        compact::text(&Value::String(value.into()))
    )
}

fn imported(attributes: &[(&str, &str)], rest: &str) -> ImportedRuns {
    let attributes: Vec<String> = attributes.iter().map(|(key, value)| attribute(key, value)).collect();
    let spans = format!(
        "{{\"resourceSpans\":[{{\"scopeSpans\":[{{\"spans\":[{{\"traceId\":\"Qb0gB21/lKoiFN9/5ARKLg==\",\"spanId\":\"fyNy6v6rexc=\",\
         \"startTimeUnixNano\":\"1000000000\",\"endTimeUnixNano\":\"1002000000\",\"attributes\":[{}]{rest}}}]}}]}}]}}",
        attributes.join(",")
    );
    read(spans.as_bytes(), &Limits::default()).unwrap_or_else(|error| panic!("{error}"))
}

fn bodies(attributes: &[(&str, &str)], rest: &str) -> (String, String) {
    let recording = imported(attributes, rest);
    let run = recording.runs.first().unwrap_or_else(|| panic!("{recording:?}"));
    assert_eq!(run.name.as_deref(), Some("41bd20076d7f94aa2214df7fe4044a2e"));
    let (_, exchange) = &run.exchanges[0];
    let (ImportedRequest::Json { body, .. }, ImportedResponse::Answer { body: answer, .. }) =
        (&exchange.request, &exchange.reply)
    else {
        panic!("{exchange:?}")
    };
    assert_eq!(exchange.latency_ms, Some(2));
    (compact::text(body), String::from_utf8_lossy(answer).into_owned())
}

#[test]
fn bodies_of_openinference_are_taken_as_they_are() {
    let request = r#"{"model":"m","messages":[],"temperature":0.50}"#;
    let response = r#"{"object":"chat.completion","choices":[]}"#;
    let kind = ("openinference.span.kind", "LLM");
    let found = bodies(&[kind, ("input.value", request), ("output.value", response)], "");
    assert_eq!(found, (request.to_owned(), response.to_owned()));
}

/// Spans in this form are calls of models, too, so that their events are not listed as those of other spans.
#[test]
fn events_of_spans_of_openinference_are_those_of_a_call() {
    let attributes = [
        ("openinference.span.kind", "LLM"),
        ("llm.model_name", "m"),
        ("llm.input_messages.0.message.role", "user"),
        ("llm.input_messages.0.message.content", "hi"),
        ("llm.output_messages.0.message.content", "yes"),
    ];
    let attributes = attributes.map(|(key, value)| attribute(key, value)).join(",");
    let ids = r#""traceId":"41bd20076d7f94aa2214df7fe4044a2e","spanId":"7f2372eafeab7b17""#;
    let files = format!(
        "{{\"resourceSpans\":[{{\"scopeSpans\":[{{\"spans\":[{{{ids},\"attributes\":[{attributes}]}}]}}]}}]}}\n\
         {{\"resourceLogs\":[{{\"scopeLogs\":[{{\"logRecords\":[{{{ids},\"eventName\":\"gen_ai.user.message\"}}]}}]}}]}}"
    );
    let recording = read(files.as_bytes(), &Limits::default()).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!((recording.runs.len(), recording.unmapped.len()), (1, 0), "{recording:?}");
}

const MODEL: (&str, &str) = ("gen_ai.request.model", "m");

#[test]
fn messages_in_parts_numbered_and_in_events_are_the_same() {
    let parts = bodies(
        &[
            MODEL,
            ("gen_ai.input.messages", r#"[{"role":"user","parts":[{"type":"text","content":"hi"}]}]"#),
            (
                "gen_ai.output.messages",
                r#"[{"role":"assistant","parts":[{"type":"text","content":"yes"}],"finish_reason":"stop"}]"#,
            ),
        ],
        "",
    );
    let numbered = bodies(
        &[
            MODEL,
            ("gen_ai.prompt.0.role", "user"),
            ("gen_ai.prompt.0.content", "hi"),
            ("gen_ai.completion.0.content", "yes"),
            ("gen_ai.completion.0.finish_reason", "stop"),
        ],
        "",
    );
    let event = |name: &str, attributes: &[String]| {
        format!("{{\"name\":\"{name}\",\"attributes\":[{}]}}", attributes.join(","))
    };
    let choice = "{\"key\":\"message\",\"value\":{\"kvlistValue\":{\"values\":[{\"key\":\"content\",\"value\":{\"stringValue\":\"yes\"}}]}}}";
    let events = [
        event("gen_ai.user.message", &[attribute("content", "hi")]),
        event("gen_ai.choice", &[choice.to_owned()]),
    ];
    let in_events = bodies(&[MODEL], &format!(",\"events\":[{}]", events.join(",")));
    assert_eq!(parts.0, r#"{"model":"m","messages":[{"role":"user","content":"hi"}]}"#);
    assert!(
        parts.1.contains(r#""message":{"role":"assistant","content":"yes"},"finish_reason":"stop""#),
        "{}",
        parts.1
    );
    assert_eq!(parts, numbered);
    assert_eq!(parts, in_events);
}

/// Returns the member with the events of a span, each with its attributes.
fn events(events: &[(&str, &[(&str, &str)])]) -> String {
    let events = events.iter().map(|(name, attributes)| {
        let attributes: Vec<_> = attributes.iter().map(|(key, value)| attribute(key, value)).collect();
        format!("{{\"name\":\"{name}\",\"attributes\":[{}]}}", attributes.join(","))
    });
    format!(",\"events\":[{}]", events.collect::<Vec<_>>().join(","))
}

#[test]
fn events_state_their_content_in_several_forms() {
    let user: (&str, &[(&str, &str)]) = ("gen_ai.user.message", &[("content", "hi")]);
    let expected = bodies(
        &[MODEL],
        &events(&[user, ("gen_ai.choice", &[("finish_reason", "length"), ("content", "{\"a\":1}")])]),
    );
    assert!(expected.1.contains(r#""content":"{\"a\":1}"},"finish_reason":"length""#), "{}", expected.1);
    let json_of_user: (&str, &[(&str, &str)]) =
        ("gen_ai.user.message", &[("gen_ai.event.content", r#"{"role":"user","content":"hi"}"#)]);
    let reason = ("finish_reason", "length");
    for (user, choice) in [
        (
            json_of_user,
            &[(
                "gen_ai.event.content",
                r#"{"index":0,"finish_reason":"length","message":{"content":"{\"a\":1}"}}"#,
            )][..],
        ),
        (("gen_ai.user.message", &[("gen_ai.event.content", "hi")]), &[reason, ("message", r#"{"a":1}"#)]),
        (user, &[reason, ("message", r#"{"content":"{\"a\":1}"}"#)]),
        (user, &[reason, ("message", r#"[{"text":"{\"a\":1}"}]"#)]),
    ] {
        assert_eq!(bodies(&[MODEL], &events(&[user, ("gen_ai.choice", choice)])), expected, "{choice:?}");
    }
}

#[test]
fn events_without_content_are_listed() {
    let user: (&str, &[(&str, &str)]) = ("gen_ai.user.message", &[("content", "hi")]);
    for of_span in [
        [("gen_ai.user.message", &[][..]), ("gen_ai.choice", &[("message", "yes")])],
        [user, ("gen_ai.choice", &[("finish_reason", "stop")])],
    ] {
        let recording = imported(&[MODEL], &events(&of_span));
        assert!(recording.runs.is_empty(), "{recording:?}");
        let reason = &recording.unmapped[0].2;
        assert_eq!(reason, "the messages are not in the span: its content was not recorded");
    }
}

const INPUT: (&str, &str) =
    ("gen_ai.input.messages", r#"[{"role":"user","parts":[{"type":"text","content":"hi"}]}]"#);

#[test]
fn calls_of_functions_of_older_instrumentations_are_calls_of_tools() {
    let call = [
        ("gen_ai.completion.0.function_call.name", "track"),
        ("gen_ai.completion.0.function_call.arguments", r#"{"id":"A-1"}"#),
    ];
    let tool = [
        ("llm.request.functions.0.name", "track"),
        ("llm.request.functions.0.parameters", r#"{"type":"object"}"#),
    ];
    let numbered = [MODEL, ("gen_ai.prompt.0.content", "hi"), ("gen_ai.completion.0.role", "assistant")];
    let beside = [MODEL, INPUT, ("gen_ai.output.messages", r#"[{"role":"assistant","parts":[]}]"#)];
    for messages in [numbered, beside] {
        let (request, answer) = bodies(&[&messages[..], &call, &tool].concat(), "");
        assert!(
            request.contains(
                r#""tools":[{"type":"function","function":{"name":"track","parameters":{"type":"object"}}}]"#
            ),
            "{request}"
        );
        assert!(answer.contains(r#""function":{"name":"track","arguments":"{\"id\":\"A-1\"}"}"#), "{answer}");
    }
    let stop = ("llm.chat.stop_sequences", "Observation:");
    let (request, _) =
        bodies(&[MODEL, ("gen_ai.prompt.0.content", "hi"), ("gen_ai.completion.0.content", "a"), stop], "");
    assert!(request.contains(r#""stop":"Observation:""#), "{request}");
}

#[test]
fn the_reason_for_missing_content_is_true() {
    let reason = |attributes: &[(&str, &str)]| imported(attributes, "").unmapped.remove(0).2;
    let cut = ("gen_ai.output.messages", r#"[{"role":"assistant","parts":[{"type""#);
    assert_eq!(
        reason(&[MODEL, INPUT, cut]),
        "the attribute gen_ai.output.messages is not JSON: it was cut off"
    );
    let other = ("vendor.prompt", "Where is it?");
    assert_eq!(
        reason(&[MODEL, other]),
        "the messages may be in the attribute vendor.prompt, which is not mapped"
    );
    let other = ("vendor.output", "On its way.");
    assert_eq!(
        reason(&[MODEL, INPUT, other]),
        "the answer may be in the attribute vendor.output, which is not mapped"
    );
    assert_eq!(reason(&[MODEL, INPUT]), "the span has no answer of the model");
    let empty = ("gen_ai.input.messages", "[]");
    let parts =
        ("gen_ai.output.messages", r#"[{"role":"assistant","parts":[{"type":"text","content":"yes"}]}]"#);
    let numbered = ("gen_ai.completion.0.content", "On its way.");
    for answer in [parts, numbered] {
        let only_answer = "the messages of the request are not in the span, which has only the answer";
        assert_eq!(reason(&[MODEL, answer]), only_answer);
        assert_eq!(reason(&[MODEL, empty, answer]), only_answer);
        let other = ("vendor.prompt", "Where is it?");
        assert_eq!(
            reason(&[MODEL, answer, other]),
            "the messages may be in the attribute vendor.prompt, which is not mapped"
        );
    }
    assert_eq!(reason(&[MODEL]), "the messages are not in the span: its content was not recorded");
}

#[test]
fn messages_of_the_ai_sdk_are_read() {
    let (request, answer) = bodies(
        &[
            MODEL,
            ("gen_ai.system", "openai.chat"),
            ("ai.operationId", "ai.generateText.doGenerate"),
            (
                "ai.prompt.messages",
                r#"[{"role":"system","content":"short"},{"role":"user","content":[{"type":"text","text":"where?"}]},
                {"role":"assistant","content":[{"type":"tool-call","toolCallId":"c","toolName":"f","input":{"a":1}}]},
                {"role":"tool","content":[{"type":"tool-result","toolCallId":"c","toolName":"f","output":{"type":"text","value":"rain"}}]}]"#,
            ),
            ("ai.response.text", "On its way."),
            ("ai.response.toolCalls", r#"[{"toolCallId":"d","toolName":"f","args":"{}"}]"#),
            ("ai.response.finishReason", "tool-calls"),
        ],
        "",
    );
    assert_eq!(
        request,
        r#"{"model":"m","messages":[{"role":"system","content":"short"},{"role":"user","content":"where?"},{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{\"a\":1}"}}]},{"role":"tool","content":"rain","tool_call_id":"c"}]}"#
    );
    assert!(answer.contains(r#""content":"On its way.","tool_calls":[{"id":"d""#), "{answer}");
    assert!(answer.contains(r#""finish_reason":"tool_calls""#), "{answer}");
}

#[test]
fn messages_of_openinference_and_logfire_are_read() {
    let expected = r#"{"model":"m","messages":[{"role":"user","content":"hi"}],"temperature":0.5}"#;
    let (request, answer) = bodies(
        &[
            ("openinference.span.kind", "LLM"),
            ("llm.model_name", "m"),
            ("llm.provider", "openai"),
            ("llm.invocation_parameters", r#"{"temperature":0.5,"api_key":"CANARY"}"#),
            ("input.value", "hi"),
            ("llm.input_messages.0.message.role", "user"),
            ("llm.input_messages.0.message.contents.0.message_content.text", "hi"),
            ("llm.output_messages.0.message.role", "assistant"),
            ("llm.output_messages.0.message.tool_calls.0.tool_call.function.name", "f"),
            ("llm.output_messages.0.message.tool_calls.0.tool_call.function.arguments", "{}"),
        ],
        "",
    );
    assert_eq!(request, expected);
    assert!(answer.contains(r#""function":{"name":"f","arguments":"{}"}"#), "{answer}");
    let system = ("gen_ai.system", "openai");
    let events = r#"[{"event.name":"gen_ai.user.message","content":"hi","role":"user"},
        {"event.name":"gen_ai.choice","index":0,"message":{"role":"assistant","content":"yes"}}]"#;
    let (request, answer) = bodies(&[MODEL, system, ("events", events)], "");
    assert_eq!(request, r#"{"model":"m","messages":[{"role":"user","content":"hi"}]}"#);
    assert!(answer.contains(r#""content":"yes""#), "{answer}");
    let (request, answer) = bodies(
        &[
            MODEL,
            system,
            (
                "request_data",
                r#"{"model":"m","messages":[{"role":"user","content":"hi"}],"temperature":0.5,"extra_headers":{"x":"CANARY"}}"#,
            ),
            (
                "response_data",
                r#"{"message":{"role":"assistant","content":"yes"},"usage":{"prompt_tokens":1,"completion_tokens":2}}"#,
            ),
        ],
        "",
    );
    assert_eq!(request, expected);
    assert!(answer.contains(r#""content":"yes""#) && answer.contains(r#""total_tokens":3"#), "{answer}");
}

#[test]
fn a_span_that_is_exported_several_times_is_one_call() {
    let output = ("gen_ai.output.messages", INPUT.1);
    let span = |attributes: &[(&str, &str)]| {
        let attributes: Vec<String> = attributes.iter().map(|(key, value)| attribute(key, value)).collect();
        format!(
            "{{\"resourceSpans\":[{{\"scopeSpans\":[{{\"spans\":[{{\"traceId\":\"41bd20076d7f94aa2214df7fe4044a2e\",\
             \"spanId\":\"7f2372eafeab7b17\",\"attributes\":[{}]}}]}}]}}]}}\n",
            attributes.join(",")
        )
    };
    let partial = span(&[MODEL]);
    let complete = span(&[MODEL, INPUT, output]);
    for lines in [[&partial, &complete, &complete], [&complete, &complete, &partial]] {
        let inputs =
            lines.map(|line| ConvertInput { name: "o".to_owned(), bytes: line.clone().into_bytes() });
        let in_one =
            ConvertInput { name: "o".to_owned(), bytes: lines.map(String::as_str).concat().into_bytes() };
        for inputs in [&inputs[..], &[in_one]] {
            let recording = super::read(inputs, &Limits::default()).unwrap();
            assert_eq!((recording.runs.len(), recording.runs[0].exchanges.len()), (1, 1));
            assert!(recording.unmapped.is_empty(), "{recording:?}");
        }
    }
}

#[test]
fn numbered_messages_may_have_gaps() {
    let (request, answer) = bodies(
        &[
            MODEL,
            ("gen_ai.prompt.10.content", "c"),
            ("gen_ai.prompt.2.content", "b"),
            ("gen_ai.prompt.1.content", "a"),
            ("gen_ai.completion.1.content", "yes"),
        ],
        "",
    );
    let messages = ["a", "b", "c"].map(|said| format!("{{\"role\":\"user\",\"content\":\"{said}\"}}"));
    assert_eq!(request, format!("{{\"model\":\"m\",\"messages\":[{}]}}", messages.join(",")));
    assert!(answer.contains("\"content\":\"yes\""), "{answer}");
}

#[test]
fn a_start_of_zero_is_no_time() {
    let text = r#"[{"role":"user","parts":[{"type":"text","content":"hi"}]}]"#;
    let attributes = [MODEL, ("gen_ai.input.messages", text), ("gen_ai.output.messages", text)];
    let recording = imported(&attributes, "");
    assert!(recording.runs[0].exchanges[0].1.at.is_some());
    let span = r#"{"resourceSpans":[{"scopeSpans":[{"spans":[{"traceId":"41bd20076d7f94aa2214df7fe4044a2e",
        "spanId":"7f2372eafeab7b17","startTimeUnixNano":"0","attributes":[ATTRIBUTES]}]}]}]}"#;
    let attributes = attributes.map(|(key, value)| attribute(key, value)).join(",");
    let span = span.replace("ATTRIBUTES", &attributes);
    let recording = read(span.as_bytes(), &Limits::default()).unwrap_or_else(|fault| panic!("{fault:?}"));
    assert_eq!(recording.runs[0].exchanges[0].1.at, None);
}

#[test]
fn calls_of_tools_are_mapped() {
    let input_messages = r#"[{"role":"assistant","parts":[{"type":"tool_call","id":"c","name":"f","arguments":{"a":1}}]},
        {"role":"tool","parts":[{"type":"tool_call_response","id":"c","response":"rain"}]}]"#;
    let output_messages = r#"[{"role":"assistant","parts":[{"type":"text","content":"yes"}]}]"#;
    let (request, _) = bodies(
        &[MODEL, ("gen_ai.input.messages", input_messages), ("gen_ai.output.messages", output_messages)],
        "",
    );
    assert_eq!(
        request,
        r#"{"model":"m","messages":[{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{\"a\":1}"}}]},{"role":"tool","content":"rain","tool_call_id":"c"}]}"#
    );
}

#[test]
fn the_current_conventions_are_read() {
    let reasons = ",\"x\":0";
    let attributes = [
        ("gen_ai.operation.name", "chat"),
        ("gen_ai.provider.name", "openai"),
        MODEL,
        INPUT,
        ("gen_ai.request.reasoning.level", "low"),
        ("gen_ai.response.finish_reasons", r#"["length"]"#),
        ("gen_ai.output.messages", r#"[{"role":"assistant","parts":[{"type":"text","content":"yes"}]}]"#),
        (
            "gen_ai.tool.definitions",
            r#"[{"type":"function","name":"f","description":null},{"type":"web_search","name":"web_search"}]"#,
        ),
    ];
    let (request, answer) = bodies(&attributes, reasons);
    assert_eq!(
        request,
        r#"{"model":"m","messages":[{"role":"user","content":"hi"}],"reasoning_effort":"low","tools":[{"type":"function","function":{"name":"f"}},{"type":"web_search","name":"web_search"}]}"#
    );
    assert!(answer.contains(r#""content":"yes"},"finish_reason":"length""#), "{answer}");
    let continued = [&attributes[..], &[("gen_ai.request.previous_response.id", "r-1")]].concat();
    assert_eq!(
        imported(&continued, "").unmapped[0].2,
        "the request continues the response r-1: what was said before is not in the span"
    );
}

/// Returns the reason for which a span with these attributes is not imported.
fn why_not(attributes: &[(&str, &str)]) -> String {
    let mut recording = imported(attributes, "");
    assert!(recording.runs.is_empty(), "{recording:?}");
    recording.unmapped.remove(0).2
}

#[test]
fn spans_of_other_sorts_are_named() {
    let operation = |name| ("gen_ai.operation.name", name);
    for (attributes, reason) in [
        (
            &[operation("execute_tool"), ("gen_ai.tool.name", "weather"), ("mcp.method.name", "tools/call")]
                [..],
            "it runs a tool, whose result is in the next request to the model (weather)",
        ),
        (
            &[operation("invoke_agent"), ("gen_ai.agent.name", "clerk"), MODEL, INPUT],
            "it runs an agent (clerk); no call of a model inside it was exported",
        ),
        (&[("mcp.method.name", "initialize")], "it is a request or a notification of MCP (initialize)"),
        (&[("openinference.span.kind", "RETRIEVER")], "it looks up documents"),
        (
            &[("traceloop.span.kind", "task"), ("traceloop.entity.name", "sum")],
            "it runs a workflow (sum); no call of a model inside it was exported",
        ),
        (
            &[("ai.operationId", "ai.toolCall"), ("ai.toolCall.name", "weather")],
            "it runs a tool, whose result is in the next request to the model (weather)",
        ),
        (&[operation("dream"), MODEL], "its operation is dream"),
    ] {
        assert_eq!(why_not(attributes), format!("the span is not a call of a model: {reason}"));
    }
}

#[test]
fn agents_are_told_from_calls_inside_them() {
    let span = |id: &str, parent: &str, attributes: &[(&str, &str)]| {
        let attributes: Vec<String> = attributes.iter().map(|(key, value)| attribute(key, value)).collect();
        format!(
            r#"{{"traceId":"41bd20076d7f94aa2214df7fe4044a2e","spanId":"{id}","parentSpanId":"{parent}","attributes":[{}]}}"#,
            attributes.join(",")
        )
    };
    let spans = [
        span("7f2372eafeab7b17", "8f2372eafeab7b17", &[MODEL, INPUT, ("gen_ai.output.messages", INPUT.1)]),
        span("8f2372eafeab7b17", "9f2372eafeab7b17", &[]),
        span("9f2372eafeab7b17", "", &[("gen_ai.operation.name", "invoke_agent")]),
    ];
    let file = format!(r#"{{"resourceSpans":[{{"scopeSpans":[{{"spans":[{}]}}]}}]}}"#, spans.join(","));
    let recording = read(file.as_bytes(), &Limits::default()).unwrap();
    assert_eq!(recording.runs[0].exchanges.len(), 1);
    let reason = &recording.unmapped[1].2;
    assert!(reason.ends_with("it runs an agent; its calls of models have spans of their own"), "{reason}");
}

#[test]
fn messages_of_protobuf_are_read_within_limits() {
    // A message with a span: field 1 (ResourceSpans), field 2 (ScopeSpans), field 2 (Span).
    let field = |number: u8, content: &[u8]| {
        [&[number << 3 | 2, u8::try_from(content.len()).unwrap()], content].concat()
    };
    let any = |content: &[u8]| field(9, &[field(1, b"k"), field(2, content)].concat());
    let file = |attribute: &[u8]| {
        let span = [field(1, &[1; 16]), field(2, &[2; 8]), any(attribute)].concat();
        field(1, &field(2, &field(2, &span)))
    };
    let value = |attribute: &[u8]| {
        let message = documents::read(&file(attribute), &schema::TRACES, &Limits::default())?;
        let value = ["resourceSpans", "0", "scopeSpans", "0", "spans", "0", "attributes", "0", "value"];
        Ok::<_, Fault>(compact::text(at(&message, &value).unwrap()))
    };
    for (attribute, expected) in [
        (&b"\x0a\x01a"[..], r#"{"stringValue":"a"}"#),
        (b"\x10\x01", r#"{"boolValue":true}"#),
        (b"\x18\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", r#"{"intValue":"-1"}"#),
        (b"\x21\0\0\0\0\0\0\xe0\x3f", r#"{"doubleValue":0.5}"#),
        (b"\x21\0\0\0\0\0\0\xf0\x7f", r#"{"doubleValue":"Infinity"}"#),
        (b"\x3a\x02\0\xff", r#"{"bytesValue":"AP8="}"#),
        (b"\x2a\x04\x0a\0\x0a\0", r#"{"arrayValue":{"values":[{},{}]}}"#),
        // Of several of which there is one, the last counts; fields that are not known are skipped.
        (b"\x0a\x01a\x10\0\x98\x06\x07\xa5\x06\0\0\0\0", r#"{"boolValue":false}"#),
    ] {
        assert_eq!(value(attribute).unwrap(), expected);
    }
    for (attribute, reason) in [
        (&b"\x0a\x02a"[..], "a field is cut off"),
        (b"\x0a\x01\xff", "a text is not UTF-8"),
        (b"\x08\x01", "the field stringValue has another type"),
        (b"\x0b", "a field has a type that is not known"),
        (b"\x18\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", "a number has more than 64 bits"),
    ] {
        let fault = value(attribute).unwrap_err().in_file("f").to_string();
        assert!(fault.contains(reason), "{fault}");
    }
    for limits in [Limits { depth: 5, ..Limits::default() }, Limits { values: 5, ..Limits::default() }] {
        let fault = documents::read(&file(b"\x10\x01"), &schema::TRACES, &limits).unwrap_err();
        assert!(fault.in_file("f").limit.is_some());
    }
}

#[test]
fn a_file_of_messages_with_lengths_that_is_cut_off_is_refused() {
    let message = br#"{"resourceSpans":[]}"#;
    let with_length = [&u32::try_from(message.len()).unwrap().to_be_bytes()[..], message].concat();
    assert!(read(&with_length, &Limits::default()).is_ok());
    let cut = [&with_length[..], &with_length[..9]].concat();
    assert_eq!(
        read(&cut, &Limits::default()).unwrap_err().to_string(),
        "o: message 2: the message is cut off (rule IM1)"
    );
}

#[test]
fn other_spans_are_listed() {
    let spans = r#"{"resourceSpans":[{"scopeSpans":[{"spans":[{"traceId":"41bd20076d7f94aa2214df7fe4044a2e","spanId":"7f2372eafeab7b17"}]}]}]}"#;
    let recording = read(spans.as_bytes(), &Limits::default()).unwrap_or_else(|error| panic!("{error}"));
    assert!(recording.runs.is_empty() && recording.unmapped[0].2 == "the span is not a call of a model");
    let fault = read(spans.replace("41bd", "41b").as_bytes(), &Limits::default()).unwrap_err().to_string();
    assert_eq!(
        fault,
        "o: line 1.resourceSpans[0].scopeSpans[0].spans[0].traceId: must be 8 or 16 bytes, in hexadecimal digits or Base64 (rule IM3)"
    );
}

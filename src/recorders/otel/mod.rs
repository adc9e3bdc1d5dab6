//! Spans of OpenTelemetry with the attributes and events of generative AI: `docs/import.md`, "OpenTelemetry".

mod bodies;
mod call;
mod messages;
mod reading;

use super::documents::documents;
use super::error::RecorderResult;
use super::node::LocatedValue;
use super::recording::{ImportedRun, ImportedRuns};
use crate::calls::values::text;
use crate::json::reader::Limits;
use reading::{OtelAttributes, OtelSpan, read_record, read_span};

/// Reads spans and log records: one JSON text, or one in each line.
pub(super) fn read(bytes: &[u8], limits: &Limits) -> RecorderResult<ImportedRuns> {
    let mut spans: Vec<(String, OtelSpan)> = Vec::new();
    let mut records: Vec<(String, String, String, OtelAttributes)> = Vec::new();
    for (number, document) in documents(bytes, limits)? {
        let root = LocatedValue::new(&document, format!("line {number}"));
        for scope in in_resources(&root, "resourceSpans", "scopeSpans")? {
            for span in scope.member("spans").iter().flat_map(LocatedValue::elements).flatten() {
                spans.push(read_span(&span)?);
            }
        }
        for scope in in_resources(&root, "resourceLogs", "scopeLogs")? {
            for record in scope.member("logRecords").iter().flat_map(LocatedValue::elements).flatten() {
                records.extend(read_record(&record)?);
            }
        }
    }
    Ok(recording(spans, records))
}

/// Returns the scopes of all resources.
fn in_resources<'v>(
    root: &LocatedValue<'v>,
    resources: &str,
    scopes: &str,
) -> RecorderResult<Vec<LocatedValue<'v>>> {
    let mut found = Vec::new();
    let Some(resources) = root.member(resources) else { return Ok(found) };
    for resource in resources.elements()? {
        if let Some(scopes) = resource.member(scopes) {
            found.extend(scopes.elements()?);
        }
    }
    Ok(found)
}

fn recording(
    mut spans: Vec<(String, OtelSpan)>,
    records: Vec<(String, String, String, OtelAttributes)>,
) -> ImportedRuns {
    let mut recording = ImportedRuns::default();
    for (location, id, name, attributes) in records {
        match spans.iter_mut().find(|(other, span)| *other == id && span.is_call()) {
            Some((_, span)) => span.events.push((name, attributes)),
            None => recording.unmapped.push((
                0,
                location,
                format!("{name} is not an event of a span that is a call of a model"),
            )),
        }
    }
    // Exporters write spans when they end.
    spans.sort_by_key(|(_, span)| span.started);
    let mut runs: Vec<ImportedRun> = Vec::new();
    for (_, span) in spans {
        let (trace, location) = (span.trace.clone(), span.location.clone());
        let (exchange, mut reasons) = match span.into_exchange() {
            Ok((exchange, reasons)) => (Some(exchange), reasons),
            Err(reason) => (None, vec![reason]),
        };
        let reasons = reasons.drain(..).map(|reason| (0, location.clone(), reason));
        recording.unmapped.extend(reasons);
        let Some(exchange) = exchange else { continue };
        match runs.iter_mut().find(|run| run.name.as_deref() == Some(&trace)) {
            Some(run) => run.exchanges.push((0, exchange)),
            None => runs.push(ImportedRun {
                name: Some(trace.clone()),
                details: vec![("trace_id", text(trace))],
                exchanges: vec![(0, exchange)],
            }),
        }
    }
    ImportedRuns { runs, unmapped: recording.unmapped }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::{Value, compact};
    use crate::recorders::exchange::{ImportedRequest, ImportedResponse};

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
        read(spans.as_bytes(), &Limits::default()).unwrap_or_else(|fault| panic!("{}", fault.in_file("o")))
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
        assert_eq!(exchange.latency_ms, 2);
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
            (
                ("gen_ai.user.message", &[("gen_ai.event.content", "hi")]),
                &[reason, ("message", r#"{"a":1}"#)],
            ),
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
    fn other_spans_are_listed() {
        let spans = r#"{"resourceSpans":[{"scopeSpans":[{"spans":[{"traceId":"41bd20076d7f94aa2214df7fe4044a2e","spanId":"7f2372eafeab7b17"}]}]}]}"#;
        let recording = read(spans.as_bytes(), &Limits::default())
            .unwrap_or_else(|fault| panic!("{}", fault.in_file("o")));
        assert!(recording.runs.is_empty() && recording.unmapped[0].2 == "the span is not a call of a model");
        let fault = read(spans.replace("41bd", "41b").as_bytes(), &Limits::default())
            .unwrap_err()
            .in_file("o")
            .to_string();
        assert_eq!(
            fault,
            "o: line 1.resourceSpans[0].scopeSpans[0].spans[0].traceId: must be 8 or 16 bytes, in hexadecimal digits or Base64 (rule IM3)"
        );
    }
}

use super::*;

fn recording(files: &[&str]) -> ImportedRuns {
    let input = |(index, text): (usize, &&str)| ConvertInput {
        name: index.to_string(),
        bytes: text.as_bytes().to_vec(),
    };
    let inputs: Vec<ConvertInput> = files.iter().enumerate().map(input).collect();
    read(&inputs, &Limits::default()).unwrap()
}

fn shown(recording: &ImportedRuns) -> Vec<String> {
    let exchanges = recording.runs.iter().flat_map(|run| &run.exchanges);
    let reply = |reply: &ImportedResponse| match reply {
        ImportedResponse::Answer { status, content_type, body, .. } => {
            format!(
                "{status} {} {}",
                content_type.as_deref().unwrap_or_default(),
                String::from_utf8_lossy(body)
            )
        }
        other => format!("{other:?}"),
    };
    exchanges.map(|(file, one)| format!("{file} {}: {}", one.location, reply(&one.reply))).collect()
}

#[test]
fn batches_of_anthropic_are_joined() {
    let requests = ["a", "b", "c"].map(|id| {
        format!(
            "{{\"custom_id\":\"{id}\",\"params\":{{\"model\":\"c\",\"max_tokens\":1,\"messages\":[]}}}}\n"
        )
    });
    let responses = "{\"custom_id\":\"b\",\"result\":{\"type\":\"expired\"}}\n\
                    {\"custom_id\":\"c\",\"result\":{\"type\":\"errored\",\"error\":{\"type\":\"error\"}}}\n\
                    {\"custom_id\":\"a\",\"result\":{\"type\":\"succeeded\",\"message\":{\"type\":\"message\"}}}\n";
    let recording = recording(&[responses, &requests.concat()]);
    let expected = [
        r#"1 line 1: 200 application/json {"type":"message"}"#,
        r#"1 line 2: Failed("the request was expired")"#,
        r#"1 line 3: Failed("{\"type\":\"error\"}")"#,
    ];
    assert_eq!(
        (shown(&recording).as_slice(), recording.unmapped.len()),
        (&expected.map(str::to_owned)[..], 0)
    );
    let ImportedRequest::Json { target, .. } = &recording.runs[0].exchanges[0].1.request else { panic!() };
    assert_eq!((target.provider.as_str(), target.endpoint.name), ("anthropic", "messages"));
}

#[test]
fn requests_of_vertex_batches_are_to_the_model_that_answered() {
    let line = |response: &str| {
        format!(
            r#"{{"processed_time":"2026-11-01T13:13:16.123+00:00","request":{{"contents":[]}},"response":{response}}}"#
        )
    };
    let answered = line(r#"{"candidates":[],"modelVersion":"gemini-2.0-flash@default"}"#);
    let recording = recording(&[&answered, &line("{}")]);
    let [(_, exchange)] = recording.runs[0].exchanges.as_slice() else { panic!("{recording:?}") };
    let ImportedRequest::Json { target, .. } = &exchange.request else { panic!() };
    assert_eq!(target.path, "/v1beta/models/gemini-2.0-flash:generateContent");
    assert_eq!(exchange.at.map(|at| at.to_rfc3339()).as_deref(), Some("2026-11-01T13:13:16.123+00:00"));
    let reasons: Vec<_> = recording.unmapped.iter().map(|(_, _, reason)| reason.as_str()).collect();
    assert_eq!(reasons, ["it has no URL, and its form is not that of a known API"]);
}

#[test]
fn requests_and_responses_of_a_batch_are_joined() {
    let requests = "{\"custom_id\":\"a\",\"method\":\"POST\",\"url\":\"/v1/chat/completions\",\"body\":{\"model\":\"m\"}}\n\n\
                 {\"custom_id\":\"b\",\"url\":\"/v1/chat/completions\",\"body\":{}}\n{\"custom_id\":\"d\",\"url\":\"/v1/chat/completions\",\"body\":{}}\n";
    let responses = "{\"id\":\"1\",\"custom_id\":\"c\",\"response\":{\"status_code\":200,\"body\":{}},\"error\":null}\n\
                    {\"id\":\"2\",\"custom_id\":\"b\",\"response\":null,\"error\":{\"code\":\"expired\"}}\n\
                    {\"id\":\"3\",\"custom_id\":\"a\",\"response\":{\"status_code\":200,\"body\":{\"created\":7,\"x\":1.50}},\"error\":null}\n";
    for files in [[responses, requests], [requests, responses]] {
        let recording = recording(&files);
        let file = usize::from(files[0] == responses);
        assert_eq!(
            shown(&recording),
            [
                format!("{file} line 1: 200 application/json {{\"created\":7,\"x\":1.50}}"),
                format!("{file} line 3: Failed(\"{{\\\"code\\\":\\\"expired\\\"}}\")"),
            ]
        );
        let reasons: Vec<_> =
            recording.unmapped.iter().map(|(_, at, why)| format!("{at}: {why:.20}")).collect();
        assert_eq!(reasons, ["line 4: there is no response", "line 1: there is no request "]);
    }
}

#[test]
fn lines_with_both_are_pairs() {
    let recording = recording(&[
        "{\"request\":{\"model\":\"m\",\"messages\":[]},\"response\":{\"object\":\"chat.completion\"},\"tags\":1}\n\
        [{\"model\":\"m\",\"messages\":[]},{\"choices\":[]},{\"row\":1}]\n\
        {\"request\":{\"url\":\"https://api.openai.com/v1/responses\",\"body\":{}},\"response\":{\"status\":429,\"body\":{}},\"latency_ms\":3}\n\
        {\"request\":{\"model\":\"m\",\"messages\":[]},\"response\":\"data: [DONE]\\n\\n\"}\n\
        {\"request\":{\"url\":\"/v1/files\",\"body\":{}},\"response\":{}}\n{\"request\":{},\"response\":{}}\n",
    ]);
    assert_eq!(
        shown(&recording),
        [
            "0 line 1: 200 application/json {\"object\":\"chat.completion\"}",
            "0 line 2: 200 application/json {\"choices\":[]}",
            "0 line 3: 429 application/json {}",
            "0 line 4: 200 text/event-stream data: [DONE]\n\n",
        ]
    );
    let listed: Vec<_> = recording.unmapped.iter().map(|(_, at, why)| format!("{at}: {why}")).collect();
    assert_eq!(
        listed,
        [
            "line 1: the member \"tags\" is not mapped",
            "line 2[2]: it is not mapped",
            "line 5: /v1/files is not the path of a known API",
            "line 6: it has no URL, and its form is not that of a known API",
        ]
    );
}

fn listed(recording: &ImportedRuns) -> Vec<String> {
    recording.unmapped.iter().map(|(_, at, why)| format!("{at}: {why}")).collect()
}

#[test]
fn responses_without_a_body_keep_their_status() {
    let request = r#""request":{"model":"m","messages":[]}"#;
    let recording = recording(&[&[
        format!(r#"{{{request},"response":{{"status_code":503,"body":null}}}}"#),
        format!(r#"{{{request},"response":{{"status":429,"headers":{{"content-type":"text/plain"}}}}}}"#),
        format!(r#"{{{request},"response":{{"status_code":500,"body":null,"other":1}}}}"#),
        format!(r#"{{{request},"response":{{"status":200,"choices":[]}}}}"#),
        r#"{"custom_id":"a","url":"/v1/responses","body":{}}"#.to_owned(),
        r#"{"custom_id":"a","response":{"status_code":503,"request_id":"x","body":null}}"#.to_owned(),
        r#"{"request":{"url":"/v1/responses","body":null},"response":{"object":"response"}}"#.to_owned(),
        format!(r#"{{{request},"response":{{"status_code":200,"body":null}}}}"#),
    ]
    .join("\n")]);
    assert_eq!(
        shown(&recording),
        [
            "0 line 1: 503  ",
            "0 line 2: 429 text/plain ",
            "0 line 3: 500  ",
            r#"0 line 4: 200 application/json {"status":200,"choices":[]}"#,
            "0 line 5: 503  ",
            r#"0 line 8: Unmapped("the file does not state the body of the response")"#,
        ]
    );
    assert_eq!(
        listed(&recording),
        ["line 3.response: the member \"other\" is not mapped", "line 7: the request has no body"]
    );
}

#[test]
fn headers_errors_and_other_values_are_listed() {
    let call = r#""request":{"model":"m","messages":[]},"response":{"choices":[]}"#;
    let recording = recording(&[&[
        r#"{"request":{"url":"/v1/responses","headers":{"Authorization":"k","Content-Type":"x"},"body":{}},"response":{}}"#,
        &format!(r#"{{{call},"error":{{"message":"it failed"}}}}"#),
        r#"{"request":{"model":"m","messages":[]},"response":null,"error":"it failed"}"#,
        r#"{"request":{"url":"/v1/responses","headers":[],"body":{}},"response":{"headers":["x"],"body":{}}}"#,
        "null",
        "\"x\"",
        &format!(r#"{{{call},"latency_ms":12.5}}"#),
        &format!(r#"{{{call},"latency_ms":-1}}"#),
    ]
    .join("\n")]);
    assert_eq!(
        shown(&recording),
        [
            "0 line 1: 200 application/json {}",
            r#"0 line 2: 200 application/json {"choices":[]}"#,
            r#"0 line 3: Failed("it failed")"#,
            "0 line 4: 200 application/json {}",
            r#"0 line 7: 200 application/json {"choices":[]}"#,
            r#"0 line 8: 200 application/json {"choices":[]}"#,
        ]
    );
    assert_eq!(
        listed(&recording),
        [
            "line 1.request.headers.Authorization: this header is not mapped",
            "line 2.error: it is not mapped: there is a response",
            "line 4.response.headers: it is not mapped",
            "line 4.request.headers: it is not mapped",
            "line 5: it is neither a request nor a response",
            "line 6: it is neither a request nor a response",
            "line 8.latency_ms: it is not a number of milliseconds",
        ]
    );
    let latencies: Vec<_> =
        recording.runs[0].exchanges.iter().map(|(_, exchange)| exchange.latency_ms).collect();
    assert_eq!(latencies, [None, None, None, None, Some(12), None]);
}

/// Every place of an envelope that can contain a key.
#[test]
fn only_the_named_members_are_a_body() {
    let places =
        r#""headers":{"Authorization":"CANARY","X":["CANARY"]},"cookies":{"s":"CANARY"},"auth":["CANARY"],
        "proxies":{"https":"http://CANARY@p"},"query":{"key":"CANARY"},"other":"CANARY""#
            .replace('\n', "");
    let (url, body) = ("http://CANARY@h/v1/chat/completions?key=CANARY", r#"{"model":"m","messages":[]}"#);
    let answer = r#"{"choices":[{"message":{"content":"yes"}}]}"#;
    let mut lines = Vec::new();
    for member in ["body", "json", "data", "content"] {
        lines.push(format!(
            r#"{{"request":{{"url":"{url}",{places},"{member}":{body}}},"response":{answer}}}"#
        ));
        lines.push(format!(
            r#"{{"request":{body},"response":{{"status":200,"config":{{"headers":"CANARY"}},{places},"{member}":{answer}}}}}"#
        ));
        lines.push(format!(r#"{{"request":{{"{member}":{body}}},"response":{answer}}}"#));
    }
    let read = lines.len();
    lines.push(format!(r#"{{"request":{{"url":"{url}",{places}}},"response":{answer}}}"#));
    lines.push(format!(
        r#"{{"request":{{"headers":"CANARY","model":"m","messages":[]}},"response":{answer}}}"#
    ));
    lines.push(format!(r#"{{"request":{body},"response":{{"headers":{{"set-cookie":"CANARY"}}}}}}"#));
    lines.push(format!(
        r#"{{"request":{{"model":"m","messages":[],"api_key":"CANARY","extra_headers":{{"a":"CANARY"}}}},"response":{answer}}}"#
    ));
    lines.push(format!(
        r#"{{"request":{body},"response":null,"error":{{"message":"no","config":{{"headers":"CANARY"}},"headers":"CANARY"}}}}"#
    ));
    let mut recording = recording(&[&lines.join("\n")]);
    for (_, exchange) in &mut recording.runs[0].exchanges {
        exchange.take_transport();
    }
    let exchanges = &recording.runs[0].exchanges;
    assert!(exchanges.len() > read, "{exchanges:?}");
    for (number, (_, exchange)) in exchanges.iter().enumerate() {
        let ImportedRequest::Json { target, body } = &exchange.request else { panic!() };
        let shown = format!("{} {} {:?}", target.path, compact::text(body), exchange.reply);
        assert!(!shown.contains("CANARY") && shown.contains("messages"), "{shown}");
        if number < read {
            let ImportedResponse::Answer { body, .. } = &exchange.reply else { panic!("{exchange:?}") };
            assert_eq!(String::from_utf8_lossy(body), answer);
        }
    }
    assert!(!listed(&recording).concat().contains("CANARY"), "{:?}", listed(&recording));
}

#[test]
fn credentials_in_the_body_of_an_unknown_api_are_left_out() {
    let mut recording = recording(&[
        r#"{"request":{"url":"https://ranks.example/v1/rerank","body":{"model":"m","query":"x","documents":["y"],"api_key":"CANARY","extra_headers":{"authorization":"CANARY"},"proxy":"http://u:CANARY@p"}},"response":{"results":[]}}"#,
    ]);
    let exchange = &mut recording.runs[0].exchanges[0].1;
    assert_eq!(exchange.take_transport(), ["api_key", "extra_headers", "proxy"]);
    let ImportedRequest::Json { body, .. } = &exchange.request else { panic!() };
    assert_eq!(compact::text(body), r#"{"model":"m","query":"x","documents":["y"]}"#);
}

#[test]
fn a_body_that_is_text_is_read_as_json() {
    let recording = recording(&[
        r#"{"request":{"url":"/v1/responses","body":"{\"model\":\"m\",\"input\":\"x\"}"},"response":{"output":[]}}"#,
    ]);
    let ImportedRequest::Json { body, .. } = &recording.runs[0].exchanges[0].1.request else { panic!() };
    assert_eq!(compact::text(body), r#"{"model":"m","input":"x"}"#);
}

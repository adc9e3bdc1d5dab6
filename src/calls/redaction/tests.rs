use super::*;
use crate::json::reader::{self, Limits};

fn redaction(patterns: &[&str]) -> Redaction {
    let mut redaction = Redaction::default();
    for pattern in patterns {
        redaction.add(Regex::new(pattern).unwrap());
    }
    redaction
}

fn value(redaction: &Redaction, text: &str) -> String {
    compact::text(&redaction.value(&reader::read(text.as_bytes(), &Limits::default()).unwrap()))
}

#[test]
fn what_is_redacted_is_in_no_string_name_or_number() {
    let redaction = redaction(&["sk-[a-z]+", "4111[0-9]+"]);
    assert_eq!(
        value(&redaction, r#"{"sk-abc":["x sk-def y",1],"sk-ghi":2,"n":41111111}"#),
        r#"{"[REDACTED]":["x [REDACTED] y",1],"n":"[REDACTED]"}"#
    );
    assert_eq!(redaction.text("sk-a, sk-b"), "[REDACTED], [REDACTED]");
    assert_eq!(redaction.path("/v1/sk%2Dabc/sk-d:x"), "/v1/[REDACTED]/[REDACTED]:x");
}

#[test]
fn a_replacement_is_not_replaced_again() {
    let redaction = redaction(&["[A-Z]{4,}", "RED[A-Z]+"]);
    assert_eq!(redaction.text(&redaction.text("an ABCD")), "an [REDACTED]");
    assert_eq!(
        redaction.body(r#"{"content":[{"text":"ABCD"}]}"#, false).unwrap(),
        r#"{"content":[{"text":"[REDACTED]"}]}"#
    );
}

#[test]
fn matches_that_are_escaped_or_split_are_redacted() {
    let redaction = redaction(&["sk-[A-Z]+", "M\u{fc}ller"]);
    for (body, expected) in [
        (r#"{ "a": "M\u00fcller" }"#, r#"{"a":"[REDACTED]"}"#),
        (r#"{ "a": "M\u00fcner" }"#, r#"{ "a": "M\u00fcner" }"#),
        (
            "data: {\"delta\":{\"text\":\"a sk\"}}\r\n\r\ndata: {\"delta\":{\"text\":\"-AB\"}}\n\ndata: {\"delta\":{\"text\":\"C d\"}}\n\n",
            "data: {\"delta\":{\"text\":\"a [REDACTED]\"}}\r\n\r\ndata: {\"delta\":{\"text\":\"\"}}\n\ndata: {\"delta\":{\"text\":\" d\"}}\n\n",
        ),
        // The first part has a match of its own.
        (
            "\u{feff}data: {\"delta\":{\"text\":\"a sk-A\"}}\n\ndata: {\"delta\":{\"text\":\"BC d\"}}\n\n",
            "\u{feff}data: {\"delta\":{\"text\":\"a [REDACTED]\"}}\n\ndata: {\"delta\":{\"text\":\" d\"}}\n\n",
        ),
        ("data: sk-\ndata: AB c\n", "data: [REDACTED]\ndata:  c\n"),
        (
            r#"{"content":[{"type":"text","text":"sk-"},{"type":"text","text":"AB"}]}"#,
            r#"{"content":[{"type":"text","text":"[REDACTED]"},{"type":"text","text":""}]}"#,
        ),
        (
            r#"{"choices":[{"message":{"content":"sk-"}},{"message":{"content":"sk-AB"}}]}"#,
            r#"{"choices":[{"message":{"content":"sk-"}},{"message":{"content":"[REDACTED]"}}]}"#,
        ),
        ("M\u{fc}ller <b>", "[REDACTED] <b>"),
        ("[INFO] M\u{fc}ller", "[INFO] [REDACTED]"),
    ] {
        assert_eq!(redaction.body(body, false).unwrap(), expected);
    }
}

#[test]
fn matches_that_are_split_over_messages_are_redacted() {
    let redaction = redaction(&["sk-[A-Z]{4,}", "key: .*"]);
    for (request, expected) in [
        (
            r#"{"messages":[{"role":"user","content":"a sk-A"},{"role":"user","content":[{"type":"text","text":"BCD"},{"type":"text","text":"E f"}]}]}"#,
            r#"{"messages":[{"role":"user","content":"a [REDACTED]"},{"role":"user","content":[{"type":"text","text":""},{"type":"text","text":" f"}]}]}"#,
        ),
        (
            r#"{"contents":[{"parts":[{"text":"sk-AB"},{"text":"CD!"}]}]}"#,
            r#"{"contents":[{"parts":[{"text":"[REDACTED]"},{"text":"!"}]}]}"#,
        ),
        // What follows a complete match in the next message is not part of it.
        (
            r#"{"input":[{"content":"key: x y"},{"content":"now do it"},{"content":"well"}]}"#,
            r#"{"input":[{"content":"[REDACTED]"},{"content":"now do it"},{"content":"well"}]}"#,
        ),
        (
            r#"{"messages":[{"role":"user","content":"a sk-ABCD"},{"role":"user","content":"OK now"}]}"#,
            r#"{"messages":[{"role":"user","content":"a [REDACTED]"},{"role":"user","content":"OK now"}]}"#,
        ),
        (
            r#"{"tools":[{"enum":["sk-","ABCD"]}],"messages":[{"role":"sk-"},{"role":"ABCD"}]}"#,
            r#"{"tools":[{"enum":["sk-","ABCD"]}],"messages":[{"role":"sk-"},{"role":"ABCD"}]}"#,
        ),
    ] {
        assert_eq!(value(&redaction, request), expected);
    }
}

#[test]
fn matches_in_the_arguments_of_tools_are_redacted() {
    let redaction = redaction(&["sk-[A-Z]+"]);
    let arguments = |text: &str| {
        let text = Value::String(Cow::Borrowed(text));
        let function = Object::from_members(vec![(Cow::Borrowed("arguments"), text)]);
        compact::text(&redaction.value(&Value::Object(function)))
    };
    for (text, expected) in [
        (r#"{"key":"a sk\u002dAB"}"#, r#"{\"key\":\"a [REDACTED]\"}"#),
        (r#"{"key": "a sk-AB"}"#, r#"{\"key\": \"a [REDACTED]\"}"#),
        (r#"{"a":"{\"b\":\"sk\\u002dAB\"}"}"#, r#"{\"a\":\"{\\\"b\\\":\\\"[REDACTED]\\\"}\"}"#),
        (r#"{"messages":["sk-","AB"]}"#, r#"{\"messages\":[\"[REDACTED]\",\"\"]}"#),
        // It was cut off, so that only the characters can be decoded.
        (r#"{"key":"a sk\u002dAB"#, "[REDACTED]"),
        (r#"{"key":"a \n sk\u002d"#, r#"{\"key\":\"a \\n sk\\u002d"#),
        (r"see `sk\u002dAB`", "[REDACTED]"),
    ] {
        assert_eq!(arguments(text), format!("{{\"arguments\":\"{expected}\"}}"));
    }
    let delta = |text: &str| {
        format!("data: {{\"index\":1,\"delta\":{{\"partial_json\":{}}}}}\n\n", serde_json::json!(text))
    };
    let stream = [r#"{"key":"sk"#, r"\u00", r#"2dAB"}"#].map(delta).concat();
    let expected = [r#"{"key":"[REDACTED]"}"#, "", ""].map(delta).concat();
    assert_eq!(redaction.body(&stream, false).unwrap(), expected);
}

#[test]
fn probabilities_of_tokens_that_were_redacted_are_left_out() {
    let redaction = redaction(&["sk-[A-Z]+"]);
    for (body, expected) in [
        (
            r#"{"choices":[{"logprobs":{"content":[{"token":"sk","bytes":[115,107]},{"token":"-A","bytes":[45,65]}]},"message":{"content":"sk-A"}}]}"#,
            r#"{"choices":[{"logprobs":null,"message":{"content":"[REDACTED]"}}]}"#,
        ),
        (
            r#"{"choices":[{"logprobs":{"content":[{"token":"s","bytes":[115]}]},"message":{"content":"s"}}]}"#,
            r#"{"choices":[{"logprobs":{"content":[{"token":"s","bytes":[115]}]},"message":{"content":"s"}}]}"#,
        ),
        (
            "{\"delta\":\"sk-\",\"logprobs\":[{\"token\":\"sk-\"}]}\n{\"delta\":\"A\",\"logprobs\":[{\"token\":\"A\"}]}\n",
            "{\"delta\":\"[REDACTED]\",\"logprobs\":[]}\n{\"delta\":\"\",\"logprobs\":[]}\n",
        ),
        (r#"{"bytes":[115,107,45,65],"n":[1,2]}"#, r#"{"bytes":[],"n":[1,2]}"#),
    ] {
        assert_eq!(redaction.body(body, false).unwrap(), expected);
    }
}

#[test]
fn a_text_that_breaks_off_does_not_end_with_the_beginning_of_a_match() {
    let redaction = redaction(&["sk-[A-Z]{8}"]);
    let event = |text: &str| format!("data: {{\"choices\":[{{\"delta\":{{\"content\":\"{text}\"}}}}]}}\n\n");
    let stream = format!("{}{}", event("a sk"), event("-ABC"));
    let redacted = format!("{}{}", event("a [REDACTED]"), event(""));
    assert_eq!(redaction.body(&stream, true).unwrap(), redacted);
    let unfinished = format!("{stream}data: {{");
    assert_eq!(redaction.body(&unfinished, true).unwrap(), format!("{redacted}data: {{"));
    let unfinished = format!("{stream}data: {{\"choices\"");
    assert_eq!(redaction.body(&unfinished, true).unwrap(), format!("{redacted}data: [REDACTED]"));
    for (reason, expected) in [("length", "a [REDACTED]"), ("stop", "a sk-ABC")] {
        let body = |text: &str| {
            format!(
                "{{\"choices\":[{{\"message\":{{\"content\":\"{text}\"}},\"finish_reason\":\"{reason}\"}}]}}"
            )
        };
        assert_eq!(redaction.body(&body("a sk-ABC"), false).unwrap(), body(expected));
    }
    assert_eq!(redaction.body("a sk-A\u{fffd}", true).unwrap(), "a [REDACTED]\u{fffd}");
    assert_eq!(redaction.body("a sk-A", false).unwrap(), "a sk-A");
}

#[test]
fn characters_that_are_split_over_events_stay_split() {
    let redaction = redaction(&["sk-[A-Z]+"]);
    let event = |text: &str| format!("data: {{\"delta\":{{\"text\":\"{text}\"}}}}\n\n");
    let stream = [event(r"sk-A\ud83d"), event(r"\ude00 sk-"), event("B")].concat();
    let expected = [event(r"[REDACTED]\ud83d"), event(r"\ude00 [REDACTED]"), event("")].concat();
    assert_eq!(redaction.body(&stream, false).unwrap(), expected);
}

#[test]
fn what_cannot_be_decoded_is_not_stored() {
    let redaction = redaction(&["sk-[A-Z]+"]);
    for body in ["{\"a\":\"sk\\u002d", "data: {\"a\":1}\n\ndata: {\"a\":}\n\n"] {
        assert_eq!(redaction.body(body, false), Err(Unredactable::Unreadable), "{body}");
    }
    assert_eq!(redaction.body("{\"a\":\"sk\\u002d", true).unwrap(), "[REDACTED]");
    assert_eq!(Redaction::default().body("{\"a\":", false).unwrap(), "{\"a\":");
}

#[test]
fn the_beginning_of_a_match_is_found_at_the_end_only() {
    for (pattern, text, expected) in [
        ("sk-[A-Z]{8}", "the key is sk-ABC", Some(11)),
        ("sk-[A-Z]{8}", "the key is s", Some(11)),
        ("sk-[A-Z]{8}", "the key is sk-ABC.", None),
        ("sk-[A-Z]{8}", "sk-ABCDEFGH", None),
        ("sk-[A-Z]{8}", "", None),
        (r"\bM\u{fc}ller", "Herr M\u{fc}", Some(5)),
        ("(?i)key: .*", "a KEY: b c", Some(2)),
        (r"4\d{3}( \d{4}){3}", "card 4111 1111 11", Some(5)),
        ("a|b+c", "xbb", Some(1)),
    ] {
        assert_eq!(UnfinishedSearch::new(pattern).unwrap().start(text), expected, "{pattern}: {text}");
    }
}

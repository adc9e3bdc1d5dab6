use super::*;
use crate::json::compact;

fn decoded(body: &str) -> Vec<String> {
    let mut decoded = Vec::new();
    visit_decoded(body, &mut |text| decoded.push(text.to_owned()));
    decoded
}

#[test]
fn parts_of_texts_are_put_together() {
    let stream = "event: a\ndata: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\\u00e4\"}},{\"index\":1,\"delta\":{\"content\":\"x\"}}]}\r\n\r\n\
                  data: {\"choices\":[{\"index\":1,\"delta\":{\"content\":\"y\"}}]}\n\n\
                  data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"b\"}}]}\n\ndata: [DONE]\n\n";
    assert_eq!(decoded(stream), ["a\u{e4}b", "xy"]);
    assert_eq!(decoded(&format!("\u{feff}{stream}")), ["a\u{e4}b", "xy"]);
    assert_eq!(decoded("data: a \ndata: b\n"), ["a b"]);
    assert_eq!(decoded(r#"[{"t":"x"},{"t":"y"}]"#), ["xy"]);
    assert_eq!(decoded("{\"m\":\"a\"}\n{\"m\":\"b\"}\n"), ["ab"]);
    assert_eq!(decoded("text"), [""; 0]);
}

#[test]
fn messages_and_their_parts_continue_each_other() {
    let request = r#"{"messages":[{"content":"a"},{"content":[{"type":"text","text":"b"},{"type":"text","text":"\/c"}]}],
        "tools":[{"description":"d"}]}"#;
    assert_eq!(decoded(request), ["ab/c", "text\ntext\nd"]);
    let answers = r#"{"choices":[{"message":{"content":"a"}},{"message":{"content":"b"}}]}"#;
    assert_eq!(decoded(answers), ["a", "b"]);
    let arguments = r#"{"arguments":"{\"a\":\"x\\u002dy\"}"}"#;
    assert_eq!(decoded(arguments), ["x-y", r#"{"a":"x\u002dy"}"#]);
}

#[test]
fn events_that_repeat_a_text_do_not_continue_it() {
    let stream = "data: {\"type\":\"response.output_text.delta\",\"output_index\":0,\"delta\":\"a\"}\n\n\
                  data: {\"type\":\"response.output_text.delta\",\"output_index\":0,\"delta\":\"b\"}\n\n\
                  data: {\"type\":\"response.output_text.done\",\"output_index\":0,\"text\":\"ab\"}\n\n";
    assert_eq!(decoded(stream)[..2], ["ab", "ab"]);
}

#[test]
fn escapes_of_escapes_are_decoded() {
    for (text, expected) in [
        (r"a\u002db", "a-b"),
        (r"a\\u002db\/", "a-b/"),
        (r"\ud83d\ude00 \n", "\u{1f600} \n"),
        (r"a\u00", "a"),
    ] {
        assert_eq!(unescaped(text), expected);
    }
}

#[test]
fn long_texts_are_decoded_in_pieces_that_overlap() {
    let long = |bytes: usize| format!("\u{e4}{}", "x".repeat(bytes - 2));
    for bytes in [2, PIECE - 1, PIECE, PIECE + 1, 3 * PIECE] {
        let text = long(bytes);
        let mut end = 0;
        for piece in pieces(&text) {
            let start = piece.as_ptr() as usize - text.as_ptr() as usize;
            assert!(
                piece.len() <= PIECE && (start == 0 || start + OVERLAP - 4 <= end),
                "{bytes} {start} {end}"
            );
            end = start + piece.len();
        }
        assert_eq!(end, bytes);
    }
    assert_eq!(pieces("").collect::<Vec<_>>(), [""]);
}

#[test]
fn a_document_that_is_broken_off_is_not_readable() {
    for body in ["{\"a\":\"b", "[\n {\"a\"", "{\n \"a\": 1,\n"] {
        assert!(matches!(parts(body)[..], [BodyPart { data: PartData::Unreadable, .. }]), "{body}");
    }
    let stream = parts("data: {\"a\":1}\n\ndata: {\"a");
    assert!(matches!(stream[2].data, PartData::Unreadable));
    let text: String = stream.iter().flat_map(|part| [part.before, part.text, part.after]).collect();
    assert_eq!(text, "data: {\"a\":1}\n\ndata: {\"a");
}

#[test]
fn a_body_says_whether_it_was_cut_off() {
    for (body, expected) in [
        (r#"{"choices":[{"finish_reason":"length"}]}"#, true),
        (r#"{"choices":[{"finish_reason":"stop"}]}"#, false),
        ("data: {\"object\":\"chat.completion.chunk\"}\n\n", true),
        ("data: {\"object\":\"chat.completion.chunk\"}\n\ndata: [DONE]\n\n", false),
        ("data: {\"type\":\"content_block_delta\"}\n\n", true),
        ("data: {\"type\":\"message_start\"}\n\ndata: {\"type\":\"message_stop\"}\n\n", false),
        ("data: {\"x\":\"y\"}\n\n", false),
    ] {
        let parts = parts(body);
        assert_eq!(is_cut_off(&parts, &strings(&parts)), expected, "{body}");
    }
}

#[test]
fn documents_with_many_texts_or_conversations_are_decoded() {
    // Short texts are put together where a long one is not copied.
    let parts = [&"a".repeat(SHORT), &"b".repeat(SHORT + 1), "c", "{\"d\":\"e\\u0066\"}", "g", "h"];
    let written = parts.map(|text| Value::String(Cow::Borrowed(text)));
    let body = compact::text(&Value::Array(written.to_vec()));
    let [texts, all] = &decoded(&format!("{{\"messages\":{body}}}"))[..] else { panic!() };
    assert_eq!((texts.as_str(), all), ("ef", &parts.concat()));
    let members = (0..MAX_CONVERSATIONS + 2).map(|member| format!("\"m{member}\":[\"t{member}\",\"x\"]"));
    let texts = decoded(&format!("{{{}}}", members.collect::<Vec<_>>().join(",")));
    assert_eq!(texts.len(), MAX_CONVERSATIONS + 1);
    assert_eq!((texts[0].as_str(), texts.last().unwrap().as_str()), ("t0x", "t10000\nx\nt10001\nx"));
}

#[test]
fn long_lines_are_decoded_as_documents() {
    let long = "x".repeat(LONG_LINE);
    let [before, after] = ["a", "b"].map(|text| format!("data: {{\"delta\":\"{text}\"}}\n\n"));
    let stream = format!("{before}data: {{\"delta\":\"{long}\\u0079\"}}\n\n{after}");
    assert_eq!(decoded(&stream), [long + "y", "ab".to_owned()]);
    assert_eq!(
        decoded(&format!("{before}data: {}\n\n{after}", "x".repeat(LONG_LINE))).concat().len(),
        LONG_LINE + 2
    );
}

#[test]
fn bytes_and_probabilities_are_apart() {
    let body = r#"{"choices":[{"message":{"content":"ab"},"logprobs":{"content":[{"token":"a","bytes":[97]},
        {"token":"\u0062","bytes":[98,255]}],"x":[1,"y"]},"index":0}]}"#;
    assert_eq!(decoded(body), ["ab", "a\na\nb\nb\u{fffd}\ny"]);
    assert_eq!(decoded(&format!("[{body}]")), ["ab", "a\na\nb\nb\u{fffd}\ny"]);
}

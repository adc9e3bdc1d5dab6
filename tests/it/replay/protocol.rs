//! The protocol of `--serve-stdio`.

use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;

use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::TestRunner;
use serde_json::{Value, json};

use super::{LABEL, SUMMARY, examples, exchanges, occurrence, recording, shown};
use crate::sandbox::{Sandbox, session};

pub(super) fn lines(requests: &[Value]) -> Vec<u8> {
    let lines: Vec<String> = requests.iter().map(Value::to_string).collect();
    format!("{}\n", lines.join("\n")).into_bytes()
}

#[test]
fn requests_and_answers() {
    let sandbox = examples();
    let good = lines(&[
        json!({"id": 1, "prompt": SUMMARY}),
        json!({"id": "two", "prompt": LABEL}),
        json!({"prompt": LABEL, "occurrence": 1}),
        json!({"id": null, "prompt": LABEL, "occurrence": 2}),
        json!({"id": 5, "prompt": "never"}),
    ]);
    let bad = "{\"id\": 123456789012345678901234567890.50, \"prompt\": \"no\\u202e\"}\n\n[]\nnot JSON\n\
        {\"id\": {\"a\": 1}, \"prompt\": \"x\"}\n{\"id\": \"a\u{202e}\u{9b}b\", \"prompts\": \"x\"}\n{\"id\": 9}\n\
        {\"id\": 10, \"prompt\": \"x\", \"prompt_hash\": \"y\"}\n{\"id\": 11, \"prompt_hash\": \"sha256:00\"}\n\
        {\"id\": 12, \"prompt\": 1}\n{\"id\": 13, \"prompt\": \"x\", \"tool\": \"t\"}\n\
        {\"id\": 14, \"prompt\": \"x\", \"occurrence\": 0}\n{\"id\": 15, \"id\": 16, \"prompt\": \"x\"}\n\
        {\"id\": 17, \"prompt\": \"\\ud800\"}";
    let sequence = lines(&[
        json!({"id": 0, "prompt": SUMMARY}),
        json!({"id": 1, "prompt": SUMMARY}),
        json!({"id": 2, "prompt": LABEL}),
        json!({"id": 3, "prompt": LABEL, "occurrence": 1}),
    ]);
    let arguments = json!({"label": "bug", "ticket_id": "4711"});
    let run = lines(&[
        json!({"id": 0, "responder": "model"}),
        json!({"id": 1, "prompt": SUMMARY}),
        json!({"id": 2, "tool": "another", "arguments": arguments}),
        json!({"id": 3, "tool": "tracker.label", "arguments": {"label": "bug"}}),
        json!({"id": 4, "tool": "tracker.label", "arguments": arguments}),
        json!({"id": 5, "responder": "tool"}),
        json!({"id": 6, "tool": "t", "prompt": "p"}),
        json!({"id": 7, "tool": "tracker.label"}),
        json!({"id": 8, "arguments": {}}),
        json!({"id": 9, "tool": "t", "arguments": {}, "arguments_hash": "x"}),
        json!({"id": 10, "tool": "t", "arguments_hash": "x"}),
        json!({"id": 11, "occurrence": 1}),
        json!({"id": 12}),
        json!({"id": 13}),
    ]);
    let mut all = String::new();
    for (input, arguments) in [
        (&good[..], &["replay", "4df877dec7f4", "--serve-stdio", "--fail-unused"][..]),
        (&good[..], &["replay", "4df877dec7f4", "--serve-stdio", "--json"]),
        (&good[..], &["replay", "any", "--model", "triage-small-1", "--serve-stdio", "--json"]),
        (bad.as_bytes(), &["replay", "4df877dec7f4", "--serve-stdio"]),
        (b"\xff\n", &["replay", "4df877dec7f4", "--serve-stdio"]),
        (&sequence, &["replay", "4df877dec7f4", "--serve-stdio", "--sequential"]),
        (&run, &["replay", "3941d389b337", "--serve-stdio", "--fail-unused"]),
        (&run, &["replay", "3941d389b337", "--serve-stdio", "--sequential", "--json"]),
        (b"", &["replay", "3941d389b337", "--serve-stdio", "--fail-unused"]),
    ] {
        all += &shown(arguments, &sandbox.run_on(input, arguments));
    }
    insta::assert_snapshot!(all);
}

#[test]
fn arguments_are_named_by_the_first_digits_of_their_hash() {
    let sandbox = examples();
    let request = |hash: &str| json!({"id": hash, "tool": "tracker.label", "arguments_hash": hash});
    let input = lines(&[request("9c0100548a2c"), request("sha256:9c0100"), request("ffffffff")]);
    let arguments = ["replay", "3941d389b337", "--serve-stdio", "--repeat", "last"];
    let answers = sandbox.run_on(&input, &arguments).json();
    for answer in &answers[..2] {
        assert_eq!(answer["response"], r#"{"result":{"label_status":"set"}}"#, "{answer}");
    }
    let message = "arguments_hash: no recorded call has arguments whose hash begins with ffffffff";
    assert_eq!(answers[2]["error"]["message"], message);
}

#[test]
fn a_line_may_be_long_but_not_endless() {
    let sandbox = Sandbox::new();
    let long = "é".repeat(4 << 20);
    let core = sandbox.add([sandbox.write("s.json", session("a", &[(&long, "found")]))]).remove(0);
    let mut input =
        lines(&[json!({"id": 1, "prompt": long}), json!({"id": 2, "prompt": "x".repeat(16 << 20)})]);
    input.extend(lines(&[json!({"id": 3, "prompt": long})]));
    let arguments = ["replay", &core, "--serve-stdio", "--fail-unused", "--repeat", "last"];
    let ran = sandbox.run_on(&input, &arguments).expect(0);
    let answers = ran.json();
    assert_eq!([&answers[0]["response"], &answers[2]["response"]], ["found", "found"]);
    assert_eq!((&answers[1]["id"], &answers[1]["error"]["code"]), (&Value::Null, &"too_long".into()));
    assert!(answers[1]["error"]["message"].as_str().unwrap().contains("more than 16777216 bytes"));
}

/// Each answer is there before the next request is asked.
#[test]
fn every_prompt_gets_its_response_from_the_process() {
    let mut runner = TestRunner::deterministic();
    let sandbox = Sandbox::new();
    for number in 0..6 {
        let exchanges = exchanges().new_tree(&mut runner).unwrap().current();
        let name = format!("{number}.json");
        let core = sandbox.add([sandbox.write(&name, recording(&exchanges))]).remove(0);
        for (options, numbered) in [(&[][..], true), (&[], false), (&["--sequential"], false)] {
            let mut command = sandbox.command();
            command.args(["replay", &core, "--serve-stdio", "--fail-unused"]).args(options);
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
            let mut process = command.spawn().unwrap();
            let mut input = process.stdin.take().unwrap();
            let mut output = BufReader::new(process.stdout.take().unwrap());
            for (at, (prompt, response)) in exchanges.iter().enumerate() {
                let mut request = json!({"id": at, "prompt": prompt});
                if numbered {
                    request["occurrence"] = occurrence(&exchanges, at).into();
                }
                input.write_all(format!("{request}\n").as_bytes()).unwrap();
                let mut line = String::new();
                output.read_line(&mut line).unwrap();
                let answer: Value = serde_json::from_str(&line).unwrap();
                assert_eq!((&answer["id"], &answer["response"]), (&at.into(), &response.as_str().into()));
            }
            drop(input);
            assert!(process.wait().unwrap().success());
        }
    }
}

/// A session that arrives while a process looks through all of them is looked through as well.
#[test]
fn any_sees_what_arrives() {
    let sandbox = examples();
    let mut command = sandbox.command();
    command.args(["replay", "any", "--serve-stdio"]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut process = command.stderr(Stdio::null()).spawn().unwrap();
    let mut input = process.stdin.take().unwrap();
    let mut output = BufReader::new(process.stdout.take().unwrap());
    let mut ask = |prompt: &str| {
        input.write_all(&lines(&[json!({"prompt": prompt})])).unwrap();
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        serde_json::from_str::<Value>(&line).unwrap()
    };
    // The session of the pack is in a file of its own as well, and was seen again after the other session.
    assert_eq!(ask(SUMMARY)["response"], "The export to CSV stops after 1,000 rows since the last update.");
    assert_eq!(ask(SUMMARY)["error"]["code"], "no_occurrence");
    assert_eq!(ask("new")["error"]["code"], "not_recorded");
    let core = sandbox.add([sandbox.write("new.json", session("a", &[("new", "yes"), (SUMMARY, "Rows.")]))]);
    let answer = ask("new");
    assert_eq!((&answer["response"], &answer["core_hash"]), (&"yes".into(), &core[0].as_str().into()));
    assert_eq!(ask(SUMMARY)["response"], "Rows.");
    drop(input);
    assert!(process.wait().unwrap().success());
}

/// A client that was ended leaves a process whose answers are not read.
#[test]
fn a_closed_pipe_is_not_an_error() {
    let sandbox = examples();
    let mut command = sandbox.command();
    command.args(["replay", "4df877dec7f4", "--serve-stdio"]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut process = command.stderr(Stdio::piped()).spawn().unwrap();
    drop(process.stdout.take());
    // The process may be gone before it has read all.
    let _ = process.stdin.take().unwrap().write_all(&lines(&[json!({"prompt": SUMMARY}), json!({})]));
    let ended = process.wait_with_output().unwrap();
    assert!(ended.status.success() && ended.stderr.is_empty(), "{ended:?}");
}

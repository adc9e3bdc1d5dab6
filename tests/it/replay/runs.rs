//! Runs played back: each request gets the recording of what it asks, or none.

use runvault::vault::replay::{Player, PlayerRequest, ReplayMiss, ReplayMode};
use serde_json::{Value, json};

use super::protocol::lines;
use crate::sandbox::{Sandbox, run_pack};

/// Two tools, one of them called with different arguments, and one that failed.
fn steps() -> Vec<Value> {
    let called = |tool: &str, arguments: Value| json!({"type": "tool.request", "input": {"tool": tool, "arguments": arguments}});
    let returned = |tool: &str, output: &str| json!({"type": "tool.response", "input": {"tool": tool}, "output": {"result": output}});
    vec![
        called("weather", json!({"city": "Paris", "days": 1})),
        returned("weather", "sunny"),
        called("weather", json!({"city": "Rome", "days": 1})),
        returned("weather", "rain"),
        called("shell", json!({"command": "ls"})),
        json!({"type": "error.event", "input": {"boundary": "tool", "target": "shell"},
            "output": {"error_type": "PermissionError", "message": "not allowed"},
            "metadata": {"boundary": "tool", "kind": "runtime"}}),
        json!({"type": "model.request", "input": {"prompt": "What is the weather?"}}),
        json!({"type": "model.response", "output": {"content": "It rains in Rome."}}),
        json!({"type": "model.request", "input": {"prompt": "And now?"}}),
        json!({"type": "error.event", "output": {"message": "overloaded"}}),
        // What it answers is not known.
        json!({"type": "model.response", "output": {"content": "by itself"}}),
        json!({"type": "tool.response", "input": {"tool": "clock"}, "output": {"result": "noon"}}),
    ]
}

fn serve(requests: &[Value], options: &[&str]) -> Vec<Value> {
    let sandbox = Sandbox::new();
    let core = sandbox.add([sandbox.write("run.rpk", run_pack("run-1", &steps()))]).remove(0);
    let arguments = [&["replay", core.as_str(), "--serve-stdio"], options].concat();
    sandbox.run_on(&lines(requests), &arguments).expect(0).json()
}

#[test]
fn a_tool_is_answered_with_the_recording_of_exactly_that_call() {
    let rome = json!({"tool": "weather", "arguments": {"days": 1, "city": "Rome"}});
    let digest = runvault::digest::Digest::from_content(br#"{"city":"Paris","days":1}"#);
    let answers = serve(
        &[
            rome.clone(),
            json!({"tool": "weather", "arguments_hash": digest}),
            json!({"tool": "weather", "arguments": {"city": "Oslo", "days": 1}}),
            rome,
        ],
        &[],
    );
    assert_eq!((&answers[0]["output"]["result"], &answers[0]["index"]), (&"rain".into(), &3.into()));
    assert_eq!((&answers[1]["output"]["result"], &answers[1]["index"]), (&"sunny".into(), &1.into()));
    assert_eq!(answers[2]["error"]["code"], "not_recorded");
    assert!(
        answers[2]["error"]["message"].as_str().unwrap().contains("2 other calls of it"),
        "{}",
        answers[2]
    );
    assert_eq!(answers[3]["error"]["code"], "no_occurrence");
}

#[test]
fn a_tool_is_never_answered_with_the_response_of_another_tool() {
    let paris = json!({"city": "Paris", "days": 1});
    let answers = serve(
        &[
            json!({"tool": "forecast", "arguments": paris}),
            json!({"tool": "shell", "arguments": paris}),
            json!({"responder": "tool", "arguments": paris}),
            // It was recorded without its arguments, so nothing says that this call was.
            json!({"tool": "clock", "arguments": {}}),
        ],
        &[],
    );
    assert!(answers.iter().all(|answer| answer["error"]["code"] == "not_recorded"), "{answers:?}");
}

#[test]
fn recorded_errors_are_played_as_errors() {
    let asked = [
        json!({"id": 1, "tool": "shell", "arguments": {"command": "ls"}}),
        json!({"id": 2, "prompt": "And now?"}),
    ];
    let answers = serve(&asked, &[]);
    let error = &answers[0]["error"];
    assert_eq!(answers[0]["id"], 1);
    assert_eq!((&error["code"], &error["message"]), (&"recorded_error".into(), &"not allowed".into()));
    assert_eq!((&error["index"], &error["tool"]), (&5.into(), &"shell".into()));
    assert_eq!(error["output"]["error_type"], "PermissionError");
    assert_eq!(answers[1]["error"]["message"], "overloaded");
    let mut player = Player::new(run_pack("run-1", &steps()).into_bytes()).unwrap();
    let failed = player.play(&PlayerRequest::call("shell", r#"{"command": "ls"}"#).unwrap());
    assert!(
        matches!(failed, Err(ReplayMiss::RecordedError { exchange, .. }) if exchange.response == "not allowed")
    );
    assert_eq!(player.exchanges().len() - player.unused().count(), 1, "it was played");
}

#[test]
fn a_played_error_is_neither_refused_nor_unused() {
    let sandbox = Sandbox::new();
    let core = sandbox.add([sandbox.write("run.rpk", run_pack("run-1", &steps()[8..10]))]).remove(0);
    let serve = ["replay", &core, "--serve-stdio", "--fail-unused"];
    let ran = sandbox.run_on(&lines(&[json!({"prompt": "And now?"})]), &serve).expect(0);
    assert!(ran.stderr.contains("1 request, 0 refused; 0 of 1 recording unused"), "{}", ran.stderr);
}

#[test]
fn a_prompt_is_not_answered_where_there_is_nothing_to_compare() {
    for options in [&[][..], &["--sequential"]] {
        let mut requests = vec![json!({"prompt": "What is the weather?"}), json!({"prompt": "And now?"})];
        requests.push(json!({"prompt": "something else"}));
        // Without a prompt, the next response is asked for, whatever it answers.
        requests.push(json!({"responder": "model"}));
        let answers = serve(&requests, options);
        let code = if options.is_empty() { "not_recorded" } else { "out_of_order" };
        assert_eq!(answers[2]["error"]["code"], code);
        assert_eq!(answers[3]["response"], "by itself");
    }
}

#[test]
fn what_was_said_before_does_not_answer_for_what_is_asked() {
    let request = |texts: &[&str]| {
        let messages: Vec<Value> =
            texts.iter().map(|text| json!({"role": "user", "content": text})).collect();
        json!({"type": "model.request", "input": {"payload": {"system": "be brief", "messages": messages}}})
    };
    let response = |text: &str| json!({"type": "model.response", "output": {"content": text}});
    let steps = [request(&["one"]), response("first"), request(&["one", "two"]), response("second")];
    let mut player = Player::new(run_pack("run-1", &steps).into_bytes()).unwrap();
    assert_eq!(player.respond("one"), Ok("first"));
    assert!(matches!(player.respond("one"), Err(ReplayMiss::NoOccurrence { recorded: 1, .. })));
    assert_eq!(player.respond("two"), Ok("second"));
    // What only stands beside the question leads to it as well.
    let mut player = Player::new(run_pack("run-1", &steps).into_bytes()).unwrap();
    assert_eq!(player.respond("be brief"), Ok("first"));
    assert_eq!(player.respond("be brief"), Ok("second"));
}

#[test]
fn a_sequence_compares_tools_and_arguments() {
    let pack = run_pack("run-1", &steps());
    let mut player = Player::new(pack.into_bytes()).unwrap().in_mode(ReplayMode::Sequential);
    let call = |tool: &str, arguments: &str| PlayerRequest::call(tool, arguments).unwrap();
    let rome = call("weather", r#"{"city": "Rome", "days": 1}"#);
    let paris = call("weather", r#"{"city": "Paris", "days": 1}"#);
    assert!(matches!(player.play(&rome), Err(ReplayMiss::OtherArguments { index: 1, .. })));
    assert!(matches!(player.play(&call("shell", "{}")), Err(ReplayMiss::OtherTool { index: 1, .. })));
    assert_eq!(player.play(&paris).unwrap().exchange.index, 1);
    assert_eq!(player.play(&rome).unwrap().exchange.index, 3);
    let shell = call("shell", r#"{"command":"ls"}"#);
    assert!(matches!(player.play(&shell), Err(ReplayMiss::RecordedError { .. })));
    assert!(matches!(
        player.play(&call("clock", "{}")),
        Err(ReplayMiss::OtherArguments { expected: None, .. })
    ));
    assert_eq!(player.play(&PlayerRequest::default()).unwrap().exchange.index, 7);
}

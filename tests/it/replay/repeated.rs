//! What is asked again: the n-th time that a prompt or a call is asked, it gets its n-th recording.

use runvault::vault::replay::{Player, PlayerRequest, Repeat, ReplayMiss};
use serde_json::{Value, json};

use super::protocol::lines;
use crate::sandbox::{Sandbox, run_pack, session};

/// A prompt that was recorded three times, and another one.
const EXCHANGES: [(&str, &str); 4] = [("again", "A"), ("again", "B"), ("other", "O"), ("again", "C")];

/// What the answers say: the response, or the code of the error.
fn said(answers: &[Value]) -> Vec<String> {
    let said = answers.iter().map(|answer| match &answer["error"] {
        Value::Null => answer["response"].as_str().unwrap().to_owned(),
        error => error["code"].as_str().unwrap().to_owned(),
    });
    said.collect()
}

#[test]
fn the_nth_time_a_prompt_is_asked_it_gets_its_nth_recording() {
    let sandbox = Sandbox::new();
    let core = sandbox.add([sandbox.write("s.json", session("a", &EXCHANGES))]).remove(0);
    let asked = lines(&vec![json!({"prompt": "again"}); 4]);
    for recording in [core.as_str(), "any"] {
        let ran = sandbox.run_on(&asked, &["replay", recording, "--serve-stdio"]).expect(0);
        assert_eq!(said(&ran.json()), ["A", "B", "C", "no_occurrence"]);
        let message = ran.json()[3]["error"]["message"].as_str().unwrap().to_owned();
        assert!(message.contains("no occurrence 4") && message.contains("recorded 3 times"), "{message}");
        let repeating = ["replay", recording, "--serve-stdio", "--repeat", "last"];
        let repeated = sandbox.run_on(&asked, &repeating).expect(0).json();
        assert_eq!(said(&repeated), ["A", "B", "C", "C"]);
        let numbers: Vec<_> = repeated.iter().map(|answer| &answer["occurrence"]).collect();
        assert_eq!(numbers, [1, 2, 3, 3]);
    }
}

#[test]
fn a_recording_that_was_asked_by_its_number_is_not_given_again() {
    let sandbox = Sandbox::new();
    let core = sandbox.add([sandbox.write("s.json", session("a", &EXCHANGES))]).remove(0);
    let asked =
        [json!({"prompt": "again", "occurrence": 2}), json!({"prompt": "again"}), json!({"prompt": "again"})];
    let ran = sandbox.run_on(&lines(&asked), &["replay", &core, "--serve-stdio"]).expect(0);
    assert_eq!(said(&ran.json()), ["B", "A", "C"]);
}

#[test]
fn the_report_counts_occurrences() {
    let sandbox = Sandbox::new();
    let core = sandbox.add([sandbox.write("s.json", session("a", &EXCHANGES))]).remove(0);
    let asked = lines(&[json!({"prompt": "again"}), json!({"prompt": "other"})]);
    let serve = ["replay", &core, "--serve-stdio", "--fail-unused"];
    let ran = sandbox.run_on(&asked, &serve).expect(1);
    assert!(ran.stderr.contains("2 of 4 recordings unused"), "{}", ran.stderr);
    assert!(ran.stderr.contains("(occurrence 2 of 3)") && ran.stderr.contains("(occurrence 3 of 3)"));
    let report = sandbox.run_on(&asked, &[&serve[..], &["--json"]].concat()).expect(1).stderr;
    let report: Value = serde_json::from_str(&report).unwrap();
    let unused: Vec<_> =
        report["unused"].as_array().unwrap().iter().map(|left| &left["occurrence"]).collect();
    assert_eq!(unused, [2, 3]);
    sandbox.run_on(&lines(&vec![json!({"prompt": "again"}); 3]), &serve).expect(1);
    let all = [&asked[..], &lines(&vec![json!({"prompt": "again"}); 2])].concat();
    sandbox.run_on(&all, &serve).expect(0);
}

/// Few sessions are kept in memory; what was asked of the others is not forgotten.
#[test]
fn any_remembers_what_was_asked_of_sessions_that_it_put_away() {
    let sandbox = Sandbox::new();
    let prompts: Vec<String> = (0..8).map(|number| format!("prompt {number}")).collect();
    for prompt in &prompts {
        let exchanges = [(prompt.as_str(), "first"), (prompt.as_str(), "second")];
        sandbox.add([sandbox.write("s.json", session(prompt, &exchanges))]);
    }
    let asked: Vec<Value> = prompts.iter().chain(&prompts).map(|prompt| json!({"prompt": prompt})).collect();
    let ran = sandbox.run_on(&lines(&asked), &["replay", "any", "--serve-stdio"]).expect(0);
    assert_eq!(said(&ran.json()), [vec!["first"; 8], vec!["second"; 8]].concat());
}

#[test]
fn runs_count_prompts_and_calls_of_tools_alike() {
    let call = |answer: &str| {
        [
            json!({"type": "tool.request", "input": {"tool": "dice", "args": [], "kwargs": {}}}),
            json!({"type": "tool.response", "input": {"tool": "dice"}, "output": {"content": answer}}),
            json!({"type": "model.request", "input": {"prompt": "again"}}),
            json!({"type": "model.response", "output": {"content": answer}}),
        ]
    };
    let pack = run_pack("run-1", &[call("A"), call("B"), call("C")].concat());
    let mut player = Player::new(pack.clone().into_bytes()).unwrap();
    let dice = PlayerRequest::call("dice", "{}").unwrap();
    for answer in ["A", "B", "C"] {
        assert_eq!(player.respond("again"), Ok(answer));
        let rolled = player.play(&dice).unwrap();
        assert!(rolled.exchange.response.contains(answer), "{rolled:?}");
    }
    assert_eq!(player.unused().count(), 0);
    assert!(matches!(
        player.respond("again"),
        Err(ReplayMiss::NoOccurrence { occurrence: 4, recorded: 3, .. })
    ));
    assert!(matches!(
        player.play(&dice),
        Err(ReplayMiss::NoCallOccurrence { occurrence: 4, recorded: 3, .. })
    ));
    let mut player = player.repeating(Repeat::Last);
    assert_eq!(player.respond("again"), Ok("C"));
    let sandbox = Sandbox::new();
    let core = sandbox.add([sandbox.write("run.rpk", pack)]).remove(0);
    let asked = lines(&vec![json!({"prompt": "again"}); 4]);
    let ran = sandbox.run_on(&asked, &["replay", &core, "--serve-stdio"]).expect(0);
    assert_eq!(said(&ran.json()), ["A", "B", "C", "no_occurrence"]);
    let ran = sandbox.run_on(&asked, &["replay", &core, "--serve-stdio", "--repeat", "last"]).expect(0);
    assert_eq!(said(&ran.json()), ["A", "B", "C", "C"]);
}

//! Transcripts of artifacts, and the answers to prompts.

mod answers;

use runvault::Vault;
use runvault::vault::view::{
    BodyFormat, BodyRole, BodySource, ViewAnswer, ViewBody, ViewFilter, ViewRequest,
};
use serde_json::{Value, json};

use crate::agent_sessions::forms::failing;
use crate::conformance::corpus;
use crate::output::steady;
use crate::sandbox::{Ran, Sandbox, repository, run_pack, session};
use crate::traces::{self, Record};

/// Runs a command with a screen of this width.
fn at_width(sandbox: &Sandbox, width: usize, arguments: &[&str]) -> Ran {
    let mut command = sandbox.command();
    command.env("COLUMNS", width.to_string()).args(arguments).output().unwrap().into()
}

/// The examples, and what stands beside them.
fn examples() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.add([repository("examples")]);
    sandbox.write(
        "notes.txt",
        "What is to be done:\n\n\t1. nothing that is not in this line, which is a long one\n",
    );
    sandbox.run(["add", "--as", "attachment", "notes.txt"]).expect(0);
    sandbox
}

/// The core hashes of all artifacts of the vault, by kind.
fn artifacts(sandbox: &Sandbox) -> Vec<String> {
    let found = sandbox.run(["find", "--all-versions", "--json", "--sort", "core"]).expect(0).json();
    let mut named: Vec<(String, String)> = found
        .iter()
        .map(|hit| (hit["kind"].as_str().unwrap().to_owned(), hit["core_hash"].as_str().unwrap().to_owned()))
        .collect();
    named.sort();
    named.into_iter().map(|(_, core)| core).collect()
}

fn view(sandbox: &Sandbox, core: &str, request: impl Fn(&mut ViewRequest)) -> ViewAnswer {
    let mut asked = ViewRequest::new(core.parse().unwrap());
    request(&mut asked);
    Vault::open(&sandbox.vault()).unwrap().run(&asked).unwrap()
}

fn bodies(answer: &ViewAnswer, role: BodyRole) -> Vec<&ViewBody> {
    answer.steps.iter().flat_map(|step| &step.bodies).filter(|body| body.role == role).collect()
}

#[test]
fn what_people_read() {
    let sandbox = examples();
    for width in [80, 40] {
        let mut all = String::new();
        for core in artifacts(&sandbox) {
            let ran = at_width(&sandbox, width, &["view", &core]).expect(0);
            all += &format!("$ runvault view {}\n{}{}\n", &core[..19], ran.stdout, ran.stderr);
        }
        for line in all.lines().filter(|line| !line.starts_with("$ ")) {
            assert!(line.chars().count() <= width, "{line}");
        }
        insta::assert_snapshot!(format!("what_people_read_at_{width}_columns"), steady(&all));
    }
}

#[test]
fn what_programs_read() {
    let sandbox = examples();
    let ran = sandbox.run(["view", "3941d389b337", "--json", "--from", "5", "--recorded"]).expect(0);
    let answer = ran.json().remove(0);
    insta::assert_snapshot!(steady(&serde_json::to_string_pretty(&answer).unwrap()));
}

/// Pages together are the whole, and the answer is the same in another process and after it was written.
#[test]
fn every_artifact_of_the_corpus_has_a_transcript() {
    let sandbox = examples();
    sandbox.run(["add".into(), corpus()]).expect(1);
    let all = artifacts(&sandbox);
    assert!(all.len() > 100, "{}", all.len());
    for core in all {
        let whole = view(&sandbox, &core, |_| ());
        assert_eq!(whole.total, whole.steps.len() as u64, "{core}");
        assert_eq!((whole.matching, whole.next), (whole.total, None), "{core}");
        assert!(whole.steps.iter().zip(0..).all(|(step, index)| step.index == index), "{core}");
        let text = serde_json::to_string(&whole).unwrap();
        assert_eq!(serde_json::from_str::<ViewAnswer>(&text).unwrap(), whole, "{core}");
        let mut paged = Vec::new();
        let mut from = Some(0);
        while let Some(first) = from {
            let page = view(&sandbox, &core, |request| (request.from, request.limit) = (first, Some(2)));
            assert!(page.steps.len() <= 2);
            assert_eq!((page.total, page.failed), (whole.total, whole.failed));
            assert_eq!(page.previous, first.checked_sub(2), "{core}");
            from = page.next;
            paged.extend(page.steps);
        }
        assert_eq!(paged, whole.steps, "{core}");
        let short = view(&sandbox, &core, |request| request.max_text = Some(3));
        for (short, long) in short.steps.iter().zip(&whole.steps) {
            for (short, long) in short.bodies.iter().zip(&long.bodies) {
                let text = |body: &ViewBody| body.text.clone().unwrap_or_default();
                assert!(text(long).starts_with(&text(short)) && text(short).chars().count() <= 3, "{core}");
                assert_eq!(
                    text(short).chars().count() as u64 + short.omitted,
                    text(long).chars().count() as u64
                );
                assert_eq!((short.size, short.format, &short.digest), (long.size, long.format, &long.digest));
            }
        }
    }
}

#[test]
fn calls_whose_tools_failed_are_errors_of_a_conversation() {
    let sandbox = Sandbox::new();
    let core = sandbox.add([sandbox.write("s.jsonl", failing())]).remove(0);
    let errors = view(&sandbox, &core, |request| {
        (request.conversation, request.only) = (true, Some(ViewFilter::Errors));
    });
    let conversation = errors.conversation.unwrap();
    assert_eq!((errors.total, errors.failed, errors.matching, conversation.calls.len()), (2, 1, 1, 1));
    let printed = sandbox.run(["view", &core, "--only", "errors"]).expect(0);
    assert!(printed.stdout.contains("/work/paris.txt"), "{}", printed.stdout);
}

/// A run with a failed call, an answer to it, and an error of its own.
fn failing_run() -> String {
    run_pack(
        "run-1",
        &[
            json!({"type": "model.request", "timestamp": "2026-11-18T09:00:01.250+01:00",
                "input": {"model": "m-1", "messages": [{"role": "system", "content": "be brief"},
                    {"role": "user", "content": "first"}, {"role": "assistant", "content": "yes"},
                    {"role": "user", "content": "second"}]}}),
            json!({"type": "model.response", "metadata": {"latency_ms": 1250.4},
                "output": {"content": "third", "usage": {"prompt_tokens": 12, "completion_tokens": 3}}}),
            json!({"type": "tool.request", "input": {"tool": "search", "args": ["weather"], "kwargs": {}}}),
            json!({"type": "error.event", "input": {"boundary": "tool", "target": "search"},
                "output": {"message": "it timed out", "error_type": "Timeout"}}),
            json!({"type": "tool.request", "input": {"method": "GET", "url": "https://example.com/a"}}),
            json!({"type": "tool.response", "input": {"method": "GET", "url": "https://example.com/a"},
                "output": {"status_code": 503}}),
            json!({"type": "output.final", "output": {"text": "nothing"}}),
        ],
    )
}

#[test]
fn a_run_is_its_calls_in_order() {
    let sandbox = Sandbox::new();
    let core = sandbox.add([sandbox.write("run.rpk", failing_run())]).remove(0);
    let run = view(&sandbox, &core, |_| ());
    let step = |index: usize| &run.steps[index];
    let told: Vec<_> = run
        .steps
        .iter()
        .map(|step| (step.title.as_deref().unwrap_or_default(), step.failed, step.answers))
        .collect();
    let expected = [
        ("m-1", false, None),
        ("", false, Some(0)),
        ("search", false, None),
        ("search", true, Some(2)),
        ("GET https://example.com/a", false, None),
        ("GET https://example.com/a", true, Some(4)),
        ("", false, None),
    ];
    assert_eq!(told, expected);
    assert_eq!((run.failed, run.step_noun.as_str()), (2, "step"));
    assert_eq!(step(0).time.unwrap().0.to_rfc3339(), "2026-11-18T08:00:01.250+00:00");
    assert_eq!((step(1).duration_ms, step(1).tokens_in, step(1).tokens_out), (Some(1250), Some(12), Some(3)));
    assert_eq!(step(5).status.as_deref(), Some("503"));
    let texts = |role| -> Vec<String> {
        bodies(&run, role).into_iter().map(|body| body.text.clone().unwrap()).collect()
    };
    assert_eq!(texts(BodyRole::Context), ["be brief", "first"]);
    assert_eq!(texts(BodyRole::Prompt), ["second"]);
    assert_eq!(texts(BodyRole::Response), ["third", "nothing"]);
    assert_eq!(texts(BodyRole::Arguments), ["weather"]);
    assert_eq!(texts(BodyRole::Error), ["it timed out", "{\n  \"status_code\": 503\n}"]);
    let prompt = bodies(&run, BodyRole::Prompt)[0].digest;
    assert_eq!(prompt, Some(runvault::digest::Digest::from_content(b"second")));
}

#[test]
fn steps_are_selected() {
    let sandbox = Sandbox::new();
    sandbox.add([sandbox.write("run.rpk", failing_run())]);
    let numbers = |arguments: &[&str]| -> Vec<u64> {
        let ran = sandbox.run([&["view", "latest", "--json"], arguments].concat());
        let answer = ran.json().remove(0);
        let steps = answer["steps"].as_array().unwrap().iter();
        steps.map(|step| step["index"].as_u64().unwrap()).collect()
    };
    assert_eq!(numbers(&["--only", "tools"]), [2, 4, 5]);
    assert_eq!(numbers(&["--only", "errors"]), [3, 5]);
    assert_eq!(numbers(&["--from", "2", "--to", "4"]), [2, 3, 4]);
    assert_eq!(numbers(&["--from", "4", "--only", "errors"]), [5]);
    assert_eq!(numbers(&["--limit", "2"]), [0, 1]);
    assert_eq!(numbers(&["--from", "9"]), [0_u64; 0]);
    let note = |arguments: &[&str]| sandbox.run([&["view", "latest"], arguments].concat()).stderr;
    assert_eq!(note(&["--limit", "2"]), "2 of 7 steps, 2 failed; --from 2 continues\n");
    assert_eq!(note(&["--only", "tools", "--limit", "2"]), "2 of 7 steps, 2 failed; --from 5 continues\n");
    assert_eq!(note(&[]), "7 steps, 2 failed\n");
    assert_eq!(sandbox.run(["view", "latest", "--from", "9"]).expect(1).stderr, "0 of 7 steps, 2 failed\n");
    sandbox.run(["view", "latest", "--from", "2", "--to", "1"]).expect(3);
    let core = artifacts(&sandbox).remove(0);
    let errors = view(&sandbox, &core, |request| request.only = Some(ViewFilter::Errors));
    assert_eq!((errors.total, errors.matching, errors.steps.len()), (7, 2, 2));
}

/// A session has only the hashes of its prompts: their texts come from where they are.
#[test]
fn prompts_are_resolved_and_the_answer_says_from_where() {
    let sandbox = Sandbox::new();
    let core = sandbox
        .add([sandbox.write("s.json", session("a", &[("in a run", "1"), ("in a file", "2"), ("gone", "3")]))])
        .remove(0);
    let sources = || -> Vec<(Option<String>, Value)> {
        let session = view(&sandbox, &core, |_| ());
        let prompts = bodies(&session, BodyRole::Prompt).into_iter();
        prompts.map(|body| (body.text.clone(), serde_json::to_value(&body.source).unwrap())).collect()
    };
    let unknown = || (None, json!({"type": "not-recorded"}));
    assert_eq!(sources(), [unknown(), unknown(), unknown()]);
    let text = sandbox.run(["view", &core]).expect(0).stdout;
    assert_eq!(text.matches("(only the hash is recorded)").count(), 3, "{text}");

    let steps =
        [json!({"type": "tool.request"}), json!({"type": "model.request", "input": {"prompt": "in a run"}})];
    let run = sandbox.add([sandbox.write("run.rpk", run_pack("run-1", &steps))]).remove(0);
    sandbox.write("prompt.txt", "in a file");
    let file = sandbox.run(["add", "--as", "attachment", "--json", "prompt.txt"]).expect(0).json();
    let expected = [
        (
            Some("in a run".to_owned()),
            json!({"type": "resolved", "core_hash": run, "kind": "rpk", "place": {"unit": "step", "index": 1}}),
        ),
        (
            Some("in a file".to_owned()),
            json!({"type": "resolved", "core_hash": file[0]["core_hash"], "kind": "attachment", "place": null}),
        ),
        unknown(),
    ];
    assert_eq!(sources(), expected);
    let text = sandbox.run(["view", &core]).expect(0).stdout;
    assert!(text.contains(&format!("resolved from run pack {}, step 1)", &run[7..19])), "{text}");

    sandbox.run(["rm", &run, "--force"]).expect(0);
    assert_eq!(sources()[0], unknown());
}

#[test]
fn a_trace_is_its_records_with_their_states() {
    let sandbox = Sandbox::new();
    let output = json!({"answer": 42});
    let records = [Record::Output(&output), Record::Failed, Record::Control("stop")];
    let core = sandbox.add([sandbox.write("t.ndjson", traces::lines("run-1", &records).concat())]).remove(0);
    let trace = view(&sandbox, &core, |_| ());
    let told: Vec<_> = trace.steps.iter().map(|step| (step.step_type.as_str(), step.failed)).collect();
    assert_eq!(told, [("header", false), ("step", false), ("step", true), ("control", false)]);
    let states = bodies(&trace, BodyRole::State);
    assert_eq!(states.len(), 6);
    assert!(states.iter().all(|state| state.format == BodyFormat::Digest));
    assert_eq!(trace.steps[1].duration_ms, Some(0));
    assert_eq!(
        bodies(&trace, BodyRole::Result)[0].text.as_deref(),
        Some("{\n  \"is\": {\n    \"answer\": 42\n  }\n}")
    );

    // The vault has the bytes of the state.
    sandbox.write("state", "state");
    sandbox.run(["add", "--as", "attachment", "state"]).expect(0);
    let trace = view(&sandbox, &core, |_| ());
    for state in bodies(&trace, BodyRole::State) {
        assert_eq!(state.text.as_deref(), Some("state"));
        assert!(matches!(&state.source, BodySource::Resolved { kind, .. } if kind == "attachment"));
    }
}

#[test]
fn a_contract_has_the_audit_of_the_latest_run_that_it_governs() {
    let sandbox = Sandbox::new();
    let contract = sandbox.add([repository("examples/contract.yaml")]).remove(0);
    let audited = || view(&sandbox, &contract, |_| ()).audit.unwrap();
    assert_eq!((audited().runs, audited().latest), (0, None));
    let text = sandbox.run(["view", &contract]).expect(0).stdout;
    assert!(text.contains("none: the contract governs no run in the vault"), "{text}");
    let run = sandbox.add([repository("examples/run.rpk")]).remove(0);
    let latest = audited().latest.unwrap();
    assert_eq!((audited().runs, latest.run.to_string()), (1, run.clone()));
    let verdicts: Vec<_> = latest.effects.iter().map(|effect| effect.verdict.name()).collect();
    assert_eq!(verdicts, ["inconclusive", "pending"]);
    // A run that was created before is not the latest, whenever it was added.
    let earlier = std::fs::read_to_string(repository("examples/run.rpk")).unwrap();
    let mut earlier: Value = serde_json::from_str(&earlier).unwrap();
    earlier["metadata"]["created_at"] = "2025-01-01T00:00:00Z".into();
    let earlier = crate::sandbox::sealed(earlier);
    sandbox.add([sandbox.write("earlier.rpk", earlier)]);
    assert_eq!((audited().runs, audited().latest.unwrap().run.to_string()), (2, run));
    let text = sandbox.run(["view", &contract]).expect(0).stdout;
    assert!(
        text.contains("the latest of 2 runs")
            && text.contains("inconclusive: ")
            && text.contains("pending: "),
        "{text}"
    );
}

#[test]
fn long_texts_are_shortened_unless_all_is_wanted() {
    let sandbox = Sandbox::new();
    let long: Vec<String> = (0..500).map(|number| format!("line {number}")).collect();
    sandbox.add([sandbox.write("s.json", session("a", &[("p", &long.join("\n"))]))]);
    let shown = sandbox.run(["view", "latest"]).expect(0).stdout;
    assert!(shown.contains("line 29\n") && !shown.contains("line 30"), "{shown}");
    assert!(shown.contains("in all; --full shows everything"), "{shown}");
    let full = sandbox.run(["view", "latest", "--full"]).expect(0).stdout;
    assert!(long.iter().all(|line| full.contains(line)) && !full.contains("--full"));
    let json = sandbox.run(["view", "latest", "--json"]).expect(0).json();
    assert_eq!(json[0]["steps"][0]["bodies"][1]["text"].as_str().unwrap(), long.join("\n"));
}

#[test]
fn hostile_content_fits_and_controls_nothing() {
    let evil = "\u{1b}[2J\u{9b}31m\r\u{202e}reversed\u{2066}\u{7}\0 \u{feff}漢字漢字漢字漢字漢字漢字漢字漢字\t<script>";
    let sandbox = Sandbox::new();
    sandbox.write("d/s.json", session(evil, &[(evil, evil), ("p", &evil.repeat(40))]));
    let run = run_pack(
        "run-1",
        &[
            json!({"type": "model.request", "input": {"model": evil, "prompt": evil}}),
            json!({"type": "tool.request", "input": {"tool": evil, "arguments": {evil: [evil, {"a": evil}]}}}),
            json!({"type": "error.event", "input": {"target": evil}, "output": {"message": evil, "x": evil}}),
            json!({"type": "tool.response", "input": {"url": evil, "method": evil}, "output": evil}),
        ],
    );
    sandbox.write("d/run.rpk", run);
    let output = json!({evil: evil});
    sandbox.write("d/t.ndjson", traces::lines(evil, &[Record::Output(&output)]).concat());
    sandbox.add([sandbox.path("d")]);
    sandbox.write("evil", evil);
    sandbox.run(["add", "--as", "attachment", "evil"]).expect(0);
    sandbox.write("binary", b"\xff\0\x1b[2J");
    sandbox.run(["add", "--as", "attachment", "binary"]).expect(0);
    for core in artifacts(&sandbox) {
        for arguments in [&["view", &core][..], &["view", &core, "--full", "--recorded"]] {
            for width in [40, 80] {
                let shown = at_width(&sandbox, width, arguments).expect(0).stdout;
                let controls = |character: char| {
                    character.is_control() && character != '\n'
                        || matches!(character, '\u{202e}' | '\u{2066}' | '\u{feff}')
                };
                assert!(!shown.contains(controls), "{shown:?}");
                for line in shown.lines() {
                    let is_wide = |character: char| matches!(character, '\u{3000}'..='\u{9fff}');
                    let taken: usize = line.chars().map(|one| if is_wide(one) { 2 } else { 1 }).sum();
                    assert!(taken <= width, "{taken} columns of {width}: {line}");
                }
            }
        }
        let json = sandbox.run(["view", &core, "--json"]).expect(0).stdout;
        assert!(!json.trim_end().contains(|character: char| character.is_control()), "{json:?}");
    }
}

#[test]
fn a_capture_is_viewed_by_its_own_hash() {
    let sandbox = Sandbox::new();
    let text = session("a", &[("p", "r")]);
    let first = text.replace("\"response_content\"", "\"latency_ms\":1,\"response_content\"");
    let second = text.replace("\"response_content\"", "\"latency_ms\":2,\"response_content\"");
    let core = sandbox.add([sandbox.write("a.json", first)]).remove(0);
    sandbox.add([sandbox.write("b.json", &second)]);
    let capture = runvault::digest::Digest::from_content(second.as_bytes()).to_string();
    let latency = |name: &str| {
        let json = sandbox.run(["view", name, "--json"]).expect(0).json().remove(0);
        (json["steps"][0]["duration_ms"].as_u64(), json["core_hash"].as_str().unwrap() == core)
    };
    assert_eq!(latency(&core), (Some(1), true));
    assert_eq!(latency(&capture), (Some(2), true));
    let missing = ViewRequest {
        capture: Some(runvault::digest::CaptureHash(core.parse::<runvault::digest::CoreHash>().unwrap().0)),
        ..ViewRequest::new(core.parse().unwrap())
    };
    let error = Vault::open(&sandbox.vault()).unwrap().run(&missing).unwrap_err();
    assert!(matches!(error, runvault::LookupError::CaptureNotFound { .. }), "{error}");
}

/// Both engines give the same answers.
#[test]
fn the_answer_does_not_depend_on_the_engine() {
    let sandbox = examples();
    let file = Vault::open(&sandbox.vault()).unwrap();
    let memory = Vault::in_memory();
    let options = runvault::intake::ExamineOptions::default();
    let mut cores = Vec::new();
    for name in ["session.json", "session-small-model.json", "run.rpk", "trace.ndjson", "contract.yaml"] {
        let put =
            memory.add_document(std::fs::read(repository("examples").join(name)).unwrap(), &options).unwrap();
        cores.push(put.core);
        let request = ViewRequest { recorded: true, ..ViewRequest::new(put.core) };
        let (one, other) = (file.run(&request).unwrap(), memory.run(&request).unwrap());
        let without_times =
            |answer: &ViewAnswer| (answer.steps.clone(), answer.attributes.clone(), answer.total);
        // The session is resolved from the run in one vault only until the run is added.
        if name != "session.json" && name != "session-small-model.json" {
            assert_eq!(without_times(&one), without_times(&other), "{name}");
        }
    }
    let request = ViewRequest::new(cores[0]);
    assert_eq!(file.run(&request).unwrap().steps, memory.run(&request).unwrap().steps);
}

#[test]
fn recorded_runs_have_transcripts() {
    let Some(folder) = std::env::var_os("RUNVAULT_REAL_RPK") else { return };
    let sandbox = Sandbox::new();
    let cores = sandbox.add([folder]);
    assert_eq!(cores.len(), 9);
    for core in cores {
        let text = sandbox.run(["get", &core]).expect(0).stdout;
        let document: Value = serde_json::from_str(&text).unwrap();
        let steps = document["payload"]["run"]["steps"].as_array().unwrap();
        let run = view(&sandbox, &core, |request| request.recorded = true);
        assert_eq!(run.steps.len(), steps.len());
        for (viewed, step) in run.steps.iter().zip(steps) {
            assert_eq!(viewed.step_type, step["type"].as_str().unwrap());
            assert_eq!(viewed.digest.unwrap().to_string(), step["hash"].as_str().unwrap());
            let recorded = viewed.recorded.as_ref().unwrap().text.as_deref().unwrap();
            assert_eq!(&serde_json::from_str::<Value>(recorded).unwrap(), step);
            assert!(!viewed.bodies.is_empty(), "{step}");
            // Every response of these runs answers a request, but for the result of a call before the recording, and
            // one whose ids are those of another program.
            if step["type"].as_str().unwrap().ends_with(".request") {
                assert_eq!(viewed.answers, None);
            }
        }
    }
}

//! Sessions that agents keep on disk: one conversation in the form of each program, how it grows, and what is wrong with it.

pub(crate) mod forms;
mod kept;

use std::collections::BTreeSet;
use std::io::Write as _;

use proptest::prelude::*;
use runvault::digest::Digest;
use serde_json::{Value, json};

use crate::sandbox::{Ran, Sandbox, run_pack};
use forms::{claude_code, codex, documents, lines};

/// Computes the core hash of a document with a record per line as `docs/formats.md` defines it.
fn core(dialect: &str, lines: &[String]) -> String {
    let head = lines.iter().fold(Digest::from_content(dialect.as_bytes()), |head, line| {
        let record = Digest::from_content(line.as_bytes());
        Digest::from_content(&[*head.as_bytes(), *record.as_bytes()].concat())
    });
    head.to_string()
}

/// Adds a document, and returns its line.
fn added(sandbox: &Sandbox, name: &str, document: impl AsRef<[u8]>) -> Value {
    sandbox.write(name, document);
    sandbox.run(["add", "--json", name]).expect(0).json().remove(0)
}

fn rules_of(line: &Value) -> Vec<String> {
    let violations = line["violations"].as_array().into_iter().flatten();
    violations
        .map(|violation| {
            format!("{} {}", violation["rule_id"].as_str().unwrap(), violation["path"].as_str().unwrap())
        })
        .collect()
}

/// Describes the new messages and answers of each call, with the results of tools after their calls.
fn conversation(sandbox: &Sandbox, core: &str) -> Vec<String> {
    let view = sandbox.run(["view", core, "--json"]).expect(0).json().remove(0);
    let described = |message: &Value| {
        let parts = message["parts"].as_array().unwrap().iter().map(part).collect::<Vec<_>>();
        format!("{}: {}", message["role"].as_str().unwrap(), parts.join(", "))
    };
    let of_call = |call: &Value| {
        let all = ["messages", "answers"].into_iter().flat_map(|name| call[name].as_array().unwrap());
        all.map(described).collect::<Vec<_>>().join("; ")
    };
    view["conversation"]["calls"].as_array().unwrap().iter().map(of_call).collect()
}

fn part(part: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    match part["type"].as_str().unwrap() {
        "text" => text(&part["text"]),
        "thinking" => format!("({})", text(&part["text"])),
        "tool-call" => {
            let result = &part["result"];
            let mark = if result["is_error"] == Value::Bool(true) { "!" } else { "" };
            let said = result["parts"].as_array().into_iter().flatten().map(self::part).collect::<String>();
            format!("{}{} = {mark}{said}", text(&part["name"]), text(&part["arguments"]))
        }
        other => other.to_owned(),
    }
}

#[test]
fn every_program_tells_the_same_conversation() {
    let sandbox = Sandbox::new();
    for (name, document) in documents() {
        let line = added(&sandbox, name, &document);
        assert_eq!(
            (&line["kind"], rules_of(&line)),
            (&Value::from("agent_session"), Vec::new()),
            "{name}: {line}"
        );
        let core = line["core_hash"].as_str().unwrap().to_owned();
        assert_eq!(
            conversation(&sandbox, &core),
            [
                "user: What is the weather in Paris?; assistant: (I must look.), weather{\"city\":\"Paris\"} = 18 degrees",
                "assistant: It is 18 degrees in Paris.",
            ],
            "{name}"
        );
        let shown = sandbox.run(["show", &core, "--json"]).expect(0).json().remove(0);
        let attributes = shown["attributes"].as_array().unwrap().iter();
        let attribute = |name: &str| {
            attributes
                .clone()
                .find(|it| it["name"] == name)
                .map(|it| it["value"].as_str().unwrap().to_owned())
        };
        for (name, value) in [
            ("first_prompt", "What is the weather in Paris?"),
            ("last_answer", "It is 18 degrees in Paris."),
            ("tool", "weather"),
            ("tool_calls", "1"),
            ("errors", "0"),
            ("unknown_records", "0"),
            ("tokens", "46"),
            ("model_id", "model-1"),
        ] {
            assert_eq!(attribute(name).as_deref(), Some(value), "{core} {name}");
        }
        assert_eq!(sandbox.run(["get", &core]).expect(0).stdout, document, "{name}");
    }
    let found = sandbox.run(["find", "--prompt", "What is the weather in Paris?", "--json"]).expect(0);
    assert_eq!(found.json().len(), documents().len());
    let found = sandbox.run(["search", "degrees", "--json"]).expect(0);
    assert!(found.stdout.contains("18 degrees"), "{}", found.stdout);
    sandbox.run(["fsck"]).expect(0);
}

#[test]
fn a_conversation_is_written_as_a_trajectory() {
    let sandbox = Sandbox::new();
    for (name, document) in documents() {
        let core = added(&sandbox, name, &document)["core_hash"].as_str().unwrap().to_owned();
        let written = sandbox.run(["export", &core, "--as", "atif", "-o", "-"]).expect(0).stdout;
        let trajectory: Value = serde_json::from_str(&written).unwrap();
        assert_eq!(trajectory["schema_version"], "ATIF-v1.7", "{name}");
        let again = added(&sandbox, "again.json", &written);
        assert_eq!(
            (&again["kind"], rules_of(&again)),
            (&Value::from("agent_session"), Vec::new()),
            "{name}: {again}"
        );
        let again = again["core_hash"].as_str().unwrap();
        assert_eq!(conversation(&sandbox, again), conversation(&sandbox, &core), "{name}");
        let sums = |core: &str| {
            let shown = sandbox.run(["show", core, "--json"]).expect(0).json().remove(0);
            let wanted = ["model_id", "tokens_input", "tokens_output", "run_id", "runtime"];
            let attributes = shown["attributes"].as_array().unwrap().clone().into_iter();
            attributes.filter(|it| wanted.contains(&it["name"].as_str().unwrap())).collect::<Vec<_>>()
        };
        assert!(
            sums(&core).iter().all(|sum| sums(again).contains(sum) || sum["name"] == "runtime"),
            "{name}"
        );
    }
    let pack = sandbox.run(["export", "latest", "latest~1", "--as", "atif", "-o", "t.json"]).expect(3);
    assert!(pack.stderr.contains("of one artifact"), "{}", pack.stderr);
}

#[test]
fn compressed_copies_are_one_artifact() {
    let sandbox = Sandbox::new();
    let document = lines(&codex());
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    gzip.write_all(document.as_bytes()).unwrap();
    sandbox.write("d/a.jsonl", &document);
    sandbox.write("d/b.jsonl.gz", gzip.finish().unwrap());
    sandbox.write("d/c.jsonl.zst", zstd::encode_all(document.as_bytes(), 3).unwrap());
    sandbox.write("d/noise.gz", b"\x1f\x8b not a gzip file");
    let added = sandbox.run(["add", "--json", "d"]).expect(0).json();
    let told: Vec<String> = added
        .iter()
        .map(|line| format!("{} {}", line["outcome"], line["core_hash"]).replace('"', ""))
        .collect();
    let core = core("codex", &codex());
    let [added, same] = ["added", "present"].map(|outcome| format!("{outcome} {core}"));
    assert_eq!(told, [added, same.clone(), same]);
    assert_eq!(sandbox.run(["get", &core]).expect(0).stdout, document);
    // The compressed file goes if it contains what was stored.
    sandbox.run(["add", "--move", "--settle-traces", "0s", "d/c.jsonl.zst"]).expect(0);
    assert!(!sandbox.path("d/c.jsonl.zst").exists());
    sandbox.write("cut.jsonl.zst", &zstd::encode_all(document.as_bytes(), 3).unwrap()[..100]);
    assert!(sandbox.run(["add", "cut.jsonl.zst"]).expect(1).stderr.contains("broken"));
}

#[test]
fn a_session_that_grew_extends_the_shorter_one() {
    let sandbox = Sandbox::new();
    let all = claude_code();
    for length in [2, 3, all.len()] {
        let line = added(&sandbox, "s.jsonl", lines(&all[..length]));
        assert_eq!(line["core_hash"], core("claude-code", &all[..length]));
    }
    let whole = core("claude-code", &all);
    let links = sandbox.run(["links", &whole]).expect(0).stdout;
    assert_eq!(links.matches("extends").count(), 2, "{links}");
    let listed = sandbox.run(["list", "--kind", "agent session", "--json"]).expect(0).json();
    assert_eq!(listed.len(), 1, "{listed:?}");
    assert_eq!(listed[0]["core_hash"], whole);
    // The next line as it was written so far.
    let torn = added(&sandbox, "s.jsonl", lines(&all) + r#"{"type":"user","#);
    assert_eq!(
        (&torn["core_hash"], rules_of(&torn)),
        (&Value::from(whole.as_str()), vec!["AS5 line 6".to_owned()])
    );
    // The last line without its line feed is complete.
    assert_eq!(added(&sandbox, "s.jsonl", all.join("\n"))["core_hash"], whole);
    // A session that was rewritten after the second record.
    let mut rewritten = all.clone();
    rewritten[2] = rewritten[2].replace("Paris", "Rome");
    added(&sandbox, "r.jsonl", lines(&rewritten));
    let forks = sandbox.run(["forks"]).expect(1).stdout;
    assert!(forks.contains("record 2"), "{forks}");
}

#[test]
fn what_is_missing_is_a_warning() {
    let sandbox = Sandbox::new();
    let all = claude_code();
    let without = |index: usize| {
        let mut left = all.clone();
        left.remove(index);
        lines(&left)
    };
    let with = |index: usize, from: &str, to: &str| {
        let mut changed = all.clone();
        assert!(changed[index].contains(from), "{from}");
        changed[index] = changed[index].replace(from, to);
        lines(&changed)
    };
    let glued = all[..2].concat() + "\n" + &lines(&all[2..]);
    for (document, expected) in [
        (without(2), vec!["AS3 line 3", "AS7 line 3"]),
        (with(3, "\"session-1\"", "\"session-2\""), vec!["AS2 line 4", "AS2 line 5"]),
        (with(3, "10:00:03", "09:00:03"), vec!["AS4 line 4"]),
        (with(3, "\"type\":\"user\"", "\"type\":\"riddle\""), vec!["AS6 line 4"]),
        (with(3, "\"r3\"", "\"r2\""), vec!["AS3 line 5", "AS8 line 4"]),
        (glued, vec!["AS1 line 1"]),
    ] {
        let line = added(&sandbox, "s.jsonl", document);
        assert_eq!(rules_of(&line), expected, "{line}");
    }
    let mut codex = codex();
    for (number, line) in codex.iter_mut().enumerate() {
        *line = line.replacen('{', &format!("{{\"ordinal\":{number},"), 1);
    }
    codex.remove(4);
    assert!(rules_of(&added(&sandbox, "c.jsonl", lines(&codex))).contains(&"AS10 line 5".to_owned()));
}

#[test]
fn what_is_not_json_is_rejected() {
    let sandbox = Sandbox::new();
    let mut all = claude_code();
    all[2].truncate(20);
    sandbox.write("s.jsonl", lines(&all));
    let line = sandbox.run(["add", "--json", "s.jsonl"]).expect(1).json().remove(0);
    assert!(rules_of(&line).contains(&"DOC2 line 3 column 16".to_owned()), "{line}");
}

/// A program that appends to a line that it had not ended can do so often. The second line would be read once for each of its
/// brackets if it were searched for the end of its first object.
#[test]
fn lines_with_very_many_objects_are_read() {
    let sandbox = Sandbox::new();
    let first = claude_code().remove(0);
    let line = added(&sandbox, "many.jsonl", format!("{first}\n{}\n", "{}".repeat(100_000)));
    let rules: BTreeSet<String> = rules_of(&line).into_iter().collect();
    assert_eq!(Vec::from_iter(&rules), ["AS1 line 2", "AS6 line 2"]);
    sandbox.write("open.jsonl", format!("{first}\n{{\"a\":\"{}\n", "}{".repeat(500_000)));
    let line = sandbox.run(["add", "--json", "open.jsonl"]).expect(1).json().remove(0);
    assert_eq!(rules_of(&line), ["DOC2 line 2 column 6"]);
}

#[test]
fn what_was_asked_meanwhile_is_a_prompt() {
    let sandbox = Sandbox::new();
    let mut all = claude_code();
    let asked = json!({"parentUuid": "r3", "isSidechain": false, "sessionId": "session-1", "type": "attachment",
        "attachment": {"type": "queued_command", "prompt": "And in Rome?", "commandMode": "prompt"}, "uuid": "q1",
        "timestamp": "2026-11-20T10:00:03.500Z"});
    all.insert(4, asked.to_string());
    all[5] = all[5].replace("\"parentUuid\":\"r3\"", "\"parentUuid\":\"q1\"");
    let line = added(&sandbox, "s.jsonl", lines(&all));
    assert_eq!(rules_of(&line), [""; 0]);
    let said = conversation(&sandbox, line["core_hash"].as_str().unwrap());
    assert_eq!(said[1], "user: And in Rome?; assistant: It is 18 degrees in Paris.");
    sandbox.run(["find", "--prompt", "And in Rome?"]).expect(0);
}

/// Qwen Code names and links records as Claude Code does, and begins with records that have no message.
#[test]
fn sessions_of_other_programs_are_not_those_of_claude_code() {
    let sandbox = Sandbox::new();
    let record = |number: u32, rest: Value| {
        let mut record = json!({"uuid": format!("r{number}"), "parentUuid": null, "sessionId": "session-1",
            "timestamp": "2026-11-20T10:00:00.000Z", "type": "user", "cwd": "/work", "version": "0.21.13"});
        record.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
        record.to_string()
    };
    let system = record(0, json!({"type": "system", "subtype": "ui_telemetry", "systemPayload": {}}));
    let asked = record(1, json!({"message": {"role": "user", "parts": [{"text": "Hello"}]}}));
    for document in [lines(&[system.clone(), asked.clone()]), lines(&[asked]), lines(&[system])] {
        sandbox.write("d/qwen.jsonl", document);
        let refused = sandbox.run(["add", "d"]).expect(1);
        assert!(refused.stderr.contains("rule KIND"), "{}{}", refused.stdout, refused.stderr);
    }
}

#[test]
fn a_session_with_a_byte_order_mark_is_not_skipped() {
    let sandbox = Sandbox::new();
    for document in [lines(&claude_code()[..1]), lines(&codex())] {
        sandbox.write("d/s.jsonl", format!("\u{feff}{document}"));
        let line = sandbox.run(["add", "--json", "d"]).expect(1).json().remove(0);
        assert_eq!(line["kind"], "agent_session");
        assert_eq!(rules_of(&line), ["DOC1 line 1 column 1"]);
    }
}

#[test]
fn the_directory_of_gemini_cli_is_known_if_a_file_in_it_is() {
    let sandbox = Sandbox::new();
    let directory = "/home/u/caf\u{e9}";
    let hash = Digest::from_content(directory.as_bytes()).hex();
    let session = |path: &str| {
        let call = json!({"id": "c", "name": "read_file", "args": {"file_path": path}, "status": "success"});
        json!({"sessionId": path, "projectHash": hash, "startTime": "2026-11-20T10:00:00Z", "messages": [
            {"id": "m", "timestamp": "2026-11-20T10:00:00Z", "type": "gemini", "content": "", "toolCalls": [call]}]})
    };
    let file = |name: &str| format!("{directory}{name}");
    for (path, known) in [
        (file("/src/a.rs"), true),
        (file(""), true),
        (file("s/src/a.rs"), false),
        ("src/a.rs".to_owned(), false),
    ] {
        let core = added(&sandbox, "gemini.json", session(&path).to_string())["core_hash"].clone();
        let found = sandbox.run(["find", "--attr", &format!("cwd={directory}"), "--json"]);
        assert_eq!(found.stdout.contains(core.as_str().unwrap()), known, "{path}");
    }
}

#[test]
fn commands_that_failed_are_errors_in_each_form_of_their_output() {
    let sandbox = Sandbox::new();
    for output in [
        "Exit code: 2\nWall time: 0.1 seconds\nOutput:\nExit code: 0\n",
        "Chunk ID: 1\nProcess exited with code 2\nOutput:\nno\n",
        r#"{"output":"no","metadata":{"exit_code":2}}"#,
    ] {
        let result = Value::from(output).to_string();
        let all: Vec<String> = codex().iter().map(|line| line.replace("\"18 degrees\"", &result)).collect();
        let core = added(&sandbox, "s.jsonl", lines(&all))["core_hash"].as_str().unwrap().to_owned();
        let shown = sandbox.run(["show", &core, "--json"]).expect(0).json().remove(0);
        let errors = shown["attributes"].as_array().unwrap().iter().find(|it| it["name"] == "errors");
        assert_eq!(errors.unwrap()["value"], "1", "{output}");
    }
}

#[test]
fn texts_that_were_cut_within_a_character_are_kept() {
    let sandbox = Sandbox::new();
    let mut all = claude_code();
    all[4] = all[4].replace("It is 18", r"\ud83d It is 18");
    let line = added(&sandbox, "s.jsonl", lines(&all));
    assert_eq!((&line["core_hash"], rules_of(&line)), (&Value::from(core("claude-code", &all)), Vec::new()));
    assert_eq!(sandbox.run(["get", line["core_hash"].as_str().unwrap()]).expect(0).stdout, lines(&all));
    let said = conversation(&sandbox, line["core_hash"].as_str().unwrap());
    assert_eq!(said[1], "assistant: \u{fffd} It is 18 degrees in Paris.");
}

#[test]
fn a_subagent_names_the_session_that_started_it() {
    let sandbox = Sandbox::new();
    let main = added(&sandbox, "main.jsonl", lines(&claude_code()));
    let of_agent: Vec<String> = claude_code()
        .iter()
        .map(|line| line.replace("\"isSidechain\":false", "\"isSidechain\":true,\"agentId\":\"a1\""))
        .collect();
    let agent = added(&sandbox, "agent-a1.jsonl", lines(&of_agent));
    let links = sandbox.run(["links", agent["core_hash"].as_str().unwrap(), "--json"]).expect(0).stdout;
    assert!(links.contains("started-by") && links.contains(main["core_hash"].as_str().unwrap()), "{links}");
    let named = sandbox.run(["find", "--attr", "run_id=session-1/a1", "--json"]).expect(0).json();
    assert_eq!(named[0]["core_hash"], agent["core_hash"]);
}

#[test]
fn the_sessions_of_a_user_are_found_and_what_is_gone_is_listed() {
    let sandbox = Sandbox::recording_source_paths();
    let home = sandbox.path("home");
    let run = |arguments: &[&str]| {
        let mut command = sandbox.command();
        command.env("HOME", &home).env("CODEX_HOME", sandbox.path("codex")).args(arguments);
        Ran::from(command.output().unwrap())
    };
    let missing = run(&["add", "--agents"]).expect(2).stderr;
    assert!(missing.contains("none of these directories exists"), "{missing}");
    std::fs::create_dir_all(sandbox.path("home/.claude/projects")).unwrap();
    assert_eq!(run(&["add", "--agents"]).expect(0).stdout, "");
    let claude = "home/.claude/projects/-work/session-1.jsonl";
    sandbox.write(claude, lines(&claude_code()));
    sandbox.write("home/.claude/projects/-work/notes.json", "{\"interactions\":[]}");
    let rollout = "codex/sessions/2026/11/20/rollout-1.jsonl";
    sandbox.write(rollout, lines(&codex()));
    assert_eq!(run(&["add", "--agents", "--json"]).expect(0).json().len(), 2);
    assert_eq!(run(&["list", "--gone"]).expect(1).stdout, "");
    // The program compresses one and archives it, and removes the other.
    let compressed = zstd::encode_all(lines(&codex()).as_bytes(), 3).unwrap();
    sandbox.write("codex/archived_sessions/rollout-1.jsonl.zst", compressed);
    std::fs::remove_file(sandbox.path(rollout)).unwrap();
    std::fs::remove_file(sandbox.path(claude)).unwrap();
    let gone = run(&["list", "--gone", "--json"]).expect(0).json();
    assert_eq!(gone.len(), 1, "{gone:?}");
    assert_eq!(gone[0]["run_id"], "session-1");
    let watched = run(&["watch", "--agents", "--once", "--settle", "0s", "--json"]).expect(0).json();
    assert_eq!(watched.iter().map(|line| &line["outcome"]).collect::<Vec<_>>(), ["present"]);
}

/// Returns a run pack with the calls of the session in [`forms`], as they were sent.
fn recorded(result: &str, others: &[Value]) -> String {
    let request = |messages: &Value| json!({"type": "model.request", "input": {"payload": {"model": "model-1", "system": "Be kind.", "messages": messages}}});
    let response = |content: &Value| json!({"type": "model.response", "output": {"output": {"type": "message", "role": "assistant", "content": content}}});
    let asked = json!({"role": "user", "content": "What is the weather in Paris?"});
    let called = json!([{"type": "tool_use", "id": "c1", "name": "weather", "input": {"city": "Paris"}}]);
    let answered = json!([{"type": "tool_result", "tool_use_id": "c1", "content": result}]);
    let mut steps = vec![
        request(&json!([asked])),
        response(&called),
        request(
            &json!([asked, {"role": "assistant", "content": called}, {"role": "user", "content": answered}]),
        ),
        response(&json!([{"type": "text", "text": "It is 18 degrees in Paris."}])),
    ];
    steps.extend(others.iter().cloned());
    run_pack("run-1", &steps)
}

#[test]
fn a_session_and_the_recorded_calls_are_compared() {
    let sandbox = Sandbox::new();
    let session = added(&sandbox, "s.jsonl", lines(&claude_code()))["core_hash"].as_str().unwrap().to_owned();
    let none = sandbox.run(["audit", "--wire", &session]).expect(1);
    assert!(none.stderr.contains("no run in the vault has an answer"), "{}", none.stderr);
    added(&sandbox, "same.rpk", recorded("18 degrees", &[]));
    let same = sandbox.run(["audit", "--wire", &session]).expect(0);
    assert!(
        same.stderr.contains("2 of 2 calls") && same.stderr.contains("0 contradictions"),
        "{}",
        same.stderr
    );
    let other = [
        json!({"type": "model.request", "input": {"payload": {"model": "model-2", "messages": [{"role": "user", "content": "A title?"}]}}}),
        json!({"type": "model.response", "output": {"output": {"type": "message", "role": "assistant",
            "content": [{"type": "text", "text": "Weather"}]}}}),
    ];
    let changed = added(&sandbox, "changed.rpk", recorded("9 degrees", &other));
    let found = sandbox
        .run(["audit", "--wire", &session, changed["core_hash"].as_str().unwrap(), "--json"])
        .expect(1);
    let kinds: Vec<Value> = found.json().into_iter().map(|line| line["kind"].clone()).collect();
    assert_eq!(kinds, ["tool-result", "only-in-run"]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// Whatever the records are, the core hash is the end of their chain, and a copy is the same artifact.
    #[test]
    fn the_core_hash_is_the_end_of_the_chain(values in proptest::collection::vec(".{0,20}", 0..6)) {
        use runvault::artifact::AdmitOptions;

        let mut all = claude_code();
        all.extend(values.iter().map(|value| serde_json::json!({"type": "summary", "summary": value}).to_string()));
        let kind = runvault::formats::named("agent_session").unwrap();
        let admitted = kind.admit(lines(&all).into_bytes(), &AdmitOptions::default()).unwrap();
        prop_assert_eq!(admitted.core().to_string(), core("claude-code", &all));
        let bytes = lines(&all);
        let members = [runvault::artifact::MemberBytes { name: "session.jsonl", bytes: bytes.as_bytes() }];
        let mut preimage = Vec::new();
        kind.write_core(&members, &mut preimage).unwrap();
        prop_assert_eq!(Digest::from_content(&preimage), admitted.core().0);
    }
}

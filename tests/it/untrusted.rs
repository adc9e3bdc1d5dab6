//! Untrusted text: nothing in it moves, colors or deceives a terminal, in any command and any format, and
//! programs get it as it is.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::packs::{part, run, tar_of};
use crate::sandbox::{Ran, Sandbox, program, session};

/// What clears screens, reorders, hides, or begins a new line: C0, C1, DEL, directions, separators, zero width, tags.
const HOSTILE: &str = "x\u{1b}[2J\u{1b}]0;t\u{7}\u{9b}31m\u{7f}\r\n\u{8}\u{85}\u{202e}\u{2066}\u{200b}\u{2060}\u{2028}\u{2029}\u{ad}\u{feff}\u{3164}\u{fe0f}\u{e0041}\u{61c}z";

/// What stays of it.
const SHOWN: &str = r"x\u{1b}[2J\u{1b}]0;t\u{7}\u{9b}31m\u{7f}\r\n\u{8}\u{85}\u{202e}\u{2066}\u{200b}\u{2060}\u{2028}\u{2029}\u{ad}\u{feff}\u{3164}\u{fe0f}\u{e0041}\u{61c}z";

/// The same for names of files and members.
const NAME: &str = "n\u{1b}[31m\u{9b}\u{202e}\u{200b}\u{e0041}\nm.json";

fn is_harmless(character: char) -> bool {
    character == '\n'
        || !character.is_control() && !HOSTILE.contains(character)
        || "x[2J]0;t31mz".contains(character)
}

/// Fails if `printed` has anything that a terminal should not see. Gives it back.
fn harmless(ran: Ran) -> Ran {
    for text in [&ran.stdout, &ran.stderr] {
        let other = text.chars().find(|character| !is_harmless(*character));
        assert_eq!(other, None, "{text:?}");
        assert!(text.chars().count() < 100_000, "{} characters", text.len());
    }
    ran
}

fn digest(text: &str) -> String {
    runvault::digest::Digest::from_content(text.as_bytes()).to_string()
}

/// A session with hostile text in everything that is free.
fn hostile_session(long: &str) -> String {
    let mut session: Value = serde_json::from_str(&session(HOSTILE, &[(HOSTILE, HOSTILE)])).unwrap();
    session["model_id"] = (HOSTILE.to_owned() + long).into();
    session[HOSTILE] = json!({ HOSTILE: digest("nowhere"), long: digest("nowhere") });
    session.to_string()
}

/// A contract with hostile names.
fn hostile_contract() -> String {
    json!({
        "io_refs": [{"ref": HOSTILE, "kind": "service", "schema": "s", "required": true, "mode": "mutate"}],
        "effects": [{"name": HOSTILE, "target": HOSTILE, "kind": "resource", "idempotency": {"type": "non-idempotent"},
            "evidence": {"type": "status", "metric": HOSTILE}}],
    })
    .to_string()
}

/// A run with hostile text in every string, which states the digest of `contract`.
fn hostile_run(contract: &str) -> String {
    use runvault::json::canonical::replaykit::{VolatilePolicy, object};
    use runvault::json::reader::{Limits, read};
    let hash = |value: &Value, volatile: VolatilePolicy| {
        let text = value.to_string();
        let value = read(text.as_bytes(), &Limits::default()).unwrap();
        let members: Vec<_> = value.as_object().unwrap().iter().collect();
        runvault::digest::Digest::from_content(&object(&members, volatile).unwrap()).to_string()
    };
    let mut step = json!({
        "type": "tool.response", "input": {"tool": HOSTILE, "model": HOSTILE}, "output": {HOSTILE: HOSTILE},
        "metadata": {"provider": HOSTILE, "agent": HOSTILE},
    });
    step["hash"] = hash(&step, VolatilePolicy::Omit).into();
    step["id"] = HOSTILE.into();
    let mut run = json!({
        "version": "1.0",
        "metadata": {"run_id": HOSTILE, "created_at": "", "source_run_id": format!("{HOSTILE}{}", "l".repeat(200_000)), HOSTILE: contract},
        "payload": {"run": {"id": HOSTILE, "timestamp": "", "environment_fingerprint": {}, "runtime_versions": {},
            "source": HOSTILE, "provider": HOSTILE, "agent": HOSTILE, "capture_mode": HOSTILE, "steps": [step]}},
    });
    run["checksum"] = hash(&run, VolatilePolicy::Include).into();
    run.to_string()
}

/// Two histories of one run, with hostile text.
fn hostile_traces() -> [String; 2] {
    use runvault::json::canonical::c14n_v1;
    use runvault::json::reader::{Limits, read};
    let sealed = |mut record: Value| {
        let text = record.to_string();
        let canonical = c14n_v1::to_vec(&read(text.as_bytes(), &Limits::default()).unwrap()).unwrap();
        let hash = runvault::digest::Digest::from_content(&canonical).hex();
        record["record_hash"] = hash.clone().into();
        (record.to_string(), hash)
    };
    let state = runvault::digest::Digest::from_content(HOSTILE.as_bytes()).hex();
    let (header, hash) = sealed(json!({
        "type": "header", "index": 0, "version": "1.0.0", "engine_version": "1.0.0", "trace_id": HOSTILE,
        "created_at": "2026-02-21T14:00:00Z", "hash_algorithm": "sha256", "canonicalization": "json-c14n-v1",
        "problem_spec_hash": state, "initial_state_hash": state, HOSTILE: HOSTILE,
    }));
    [1, 2].map(|iteration| {
        let (control, _) = sealed(json!({
            "type": "control", "index": 1, "control_type": "loop", "action": "repeat", "start_step": HOSTILE, "end_step": HOSTILE,
            "state_hash": state, "prev_hash": hash, "loop_iteration": iteration,
            "stop_condition": {"path": HOSTILE, "operator": HOSTILE, "value": HOSTILE},
        }));
        format!("{header}\n{control}\n")
    })
}

struct Hostile {
    sandbox: Sandbox,
    session: String,
    contract: String,
    run: String,
    trace: String,
}

fn hostile() -> Hostile {
    let sandbox = Sandbox::new();
    let long = "l".repeat(300_000);
    let session = sandbox.add([sandbox.write(&format!("{NAME}1"), hostile_session(&long))]).remove(0);
    let contract = sandbox.add([sandbox.write(&format!("{NAME}2"), hostile_contract())]).remove(0);
    let run = sandbox.add([sandbox.write("run.rpk", hostile_run(&contract))]).remove(0);
    let traces = hostile_traces().map(|text| sandbox.add([sandbox.write("trace", text)]).remove(0));
    sandbox
        .run(["link", "add", &session, "mine", &run, "--note", &format!("{HOSTILE}{}", &long[..50_000])])
        .expect(0);
    Hostile { sandbox, session, contract, run, trace: traces[0].clone() }
}

#[test]
fn what_is_in_a_vault() {
    let Hostile { sandbox, session, contract, run, trace } = hostile();
    let mut all = String::new();
    for hash in [&session, &contract, &run, &trace] {
        for arguments in [
            &["show", hash][..],
            &["links", hash],
            &["links", hash, "--depth", "5"],
            &["links", hash, "--format", "dot", "--depth", "5"],
            &["links", hash, "--format", "mermaid", "--depth", "5"],
            &["path", &session, &contract],
        ] {
            all += &harmless(sandbox.run(arguments)).stdout;
        }
    }
    assert!(all.contains(SHOWN), "{all}");
    let metric = format!("run_id={HOSTILE}");
    for (arguments, status) in [
        (&["find"][..], 0),
        (&["find", "runs", "--run-id", HOSTILE], 0),
        (&["find", "--attr", &metric], 0),
        (&["find", "sessions", "--adapter", HOSTILE, "--prompt", HOSTILE], 0),
        (&["find", "--mentions", &digest("nowhere")], 0),
        (&["find", "--io-ref", HOSTILE], 0),
        (&["unresolved"], 0),
        (&["forks"], 1),
        (&["audit", &contract], 1),
        (&["audit", &contract, &run], 1),
    ] {
        let ran = harmless(sandbox.run(arguments)).expect(status);
        assert!(ran.stdout.contains(r"\u{9b}31m"), "{arguments:?}: {}", ran.stdout);
    }
    // Long texts say what was left out of them.
    assert!(sandbox.run(["show", &session]).stdout.contains("l…[299"));
    assert!(sandbox.run(["find", "sessions"]).stdout.lines().all(|line| line.chars().count() < 2_000));
}

#[test]
fn json_has_it_all_and_shows_none_of_it() {
    let Hostile { sandbox, session, contract, run, trace } = hostile();
    let mut values = Vec::new();
    for hash in [&session, &contract, &run, &trace] {
        for arguments in [&["show", "--json", hash][..], &["links", "--json", "--depth", "3", hash]] {
            values.extend(json_of(&sandbox, arguments, 0));
        }
    }
    values.extend(json_of(&sandbox, &["path", "--json", &session, &contract], 0));
    values.extend(json_of(&sandbox, &["find", "--json", "--io-ref", HOSTILE], 0));
    values.extend(json_of(&sandbox, &["find", "--json", "--mentions", &digest("nowhere")], 0));
    values.extend(json_of(&sandbox, &["unresolved", "--json"], 0));
    values.extend(json_of(&sandbox, &["forks", "--json"], 1));
    values.extend(json_of(&sandbox, &["audit", "--json", &contract, &run], 1));
    values.extend(json_of(&sandbox, &["verify", "--json", &format!("{NAME}1"), &format!("{NAME}2")], 0));
    let strings: Vec<String> = values.iter().flat_map(strings).collect();
    for whole in [HOSTILE.to_owned(), format!("{NAME}1"), format!("{HOSTILE}{}", "l".repeat(300_000))] {
        assert!(strings.contains(&whole), "{}", whole.chars().take(40).collect::<String>());
    }
}

/// The values that a command prints, each on a line that a terminal can be shown.
fn json_of(sandbox: &Sandbox, arguments: &[&str], status: i32) -> Vec<Value> {
    let ran = sandbox.run(arguments).expect(status);
    assert!(ran.stdout.chars().all(is_harmless), "{arguments:?}");
    ran.json()
}

/// All strings in a value, names included.
fn strings(value: &Value) -> Vec<String> {
    match value {
        Value::String(text) => vec![text.clone()],
        Value::Array(elements) => elements.iter().flat_map(strings).collect(),
        Value::Object(members) => {
            members.iter().flat_map(|(name, member)| [vec![name.clone()], strings(member)].concat()).collect()
        }
        _ => Vec::new(),
    }
}

/// Documents that break rules, and say so in their own words.
#[test]
fn what_is_refused() {
    let sandbox = Sandbox::new();
    let escaped = json!(HOSTILE).to_string();
    let text = escaped.trim_matches('"').to_owned();
    let broken = [
        session("a", &[("p", "r")]).replace("record", &text).replace("1.0.0", &text),
        format!("{{\"model_io_schema_version\": \"1.0.0\", {escaped}: 1, {escaped}: 2}}"),
        "{\"model_io_schema_version\": \u{1b}".to_owned(),
        "{\"model_io_schema_version\": \u{202e}".to_owned(),
        hostile_contract().replace("\"kind\":\"service\"", &format!("\"kind\":{escaped}")),
        hostile_contract().replace("non-idempotent", &text),
        format!("io_refs: []\neffects: []\n? {escaped}\n: 1\n{escaped}: 2\n"),
        "io_refs: []\neffects: []\nx: \u{9b}\n".to_owned(),
        "io_refs: []\neffects: []\nx: !\u{202e} y\n".to_owned(),
        format!("%YAML {HOSTILE}\n---\nio_refs: []\neffects: []\n"),
        hostile_run("").replace("tool.response", &text),
        hostile_traces()[0].replace("repeat", &text),
        hostile_traces()[0].replace("\"loop\"", &format!("{escaped}, {escaped}: [{escaped}]")),
        format!("=== {HOSTILE}"),
    ];
    for text in &broken {
        let path = sandbox.write(NAME, text);
        for arguments in
            [&["verify"][..], &["add"], &["add", "-v"], &["add", "--dry-run"], &["verify", "--json"]]
        {
            let ran = sandbox.run(arguments.iter().map(Path::new).chain([path.as_path()]));
            harmless(ran).expect(1);
        }
    }
    for name in [HOSTILE, "\u{1b}[2J/\u{202e}", &"n\u{9b}".repeat(30)] {
        sandbox.write("p.tar", tar_of(&[part("run.json", run().to_string()), part(name, "x")]));
        harmless(sandbox.run(["verify", "p.tar"])).expect(1);
        harmless(sandbox.run(["verify", "--json", "p.tar"])).expect(1);
    }
}

#[test]
fn what_stands_in_arguments_and_names_of_files() {
    let Hostile { sandbox, session, .. } = hostile();
    sandbox.write(&format!("d/{NAME}/{NAME}"), hostile_session(""));
    sandbox.write(&format!("d/{NAME}.txt"), "notes");
    sandbox.write(&format!("broken/{NAME}"), "{\"interactions\":[],\"model_id\":1}");
    #[cfg(unix)]
    std::os::unix::fs::symlink("nowhere", sandbox.path(&format!("broken/{NAME}.rpk"))).unwrap();
    for (arguments, status) in [
        (&["add", "-v", "d"][..], 0),
        (&["add", "-v", "d"], 0),
        (&["verify", "-v", "d"], 0),
        (&["add", "broken"], 1),
        (&["verify", NAME], 2),
        (&["add", HOSTILE], 2),
        (&["verify", "--signing-key-file", HOSTILE, "d"], 2),
        (&["find", "--prompt-file", HOSTILE], 2),
        (&["--vault", HOSTILE, "find"], 2),
        (&["--vault", "d", "find"], 2),
        (&["get", &session, "--member", HOSTILE], 1),
        (&["get", &session, "-o", &format!("{HOSTILE}/x")], 2),
        (&["get", HOSTILE], 3),
        (&["get", &format!("--{HOSTILE}")], 3),
        (&["add", &format!("--{HOSTILE}"), HOSTILE], 3),
        (&["add", "--kind", HOSTILE, "x"], 3),
        (&["add", "--max-size", HOSTILE, "x"], 3),
        (&["add", "--max-depth", HOSTILE, "x"], 3),
        (&["find", HOSTILE], 3),
        (&["find", "--since", HOSTILE], 3),
        (&["find", "--sort", HOSTILE], 3),
        (&["find", "--attr", HOSTILE], 3),
        (&["link", "add", &session, HOSTILE, &session], 3),
        (&["rules", HOSTILE], 1),
        (&["man", HOSTILE], 3),
        (&["completions", HOSTILE], 3),
        (&[HOSTILE], 3),
        (&["gett", HOSTILE], 3),
    ] {
        let ran = harmless(sandbox.run(arguments)).expect(status);
        // Untrusted text begins no line of its own.
        assert!(!ran.stderr.lines().any(|line| line.starts_with('\u{8}') || line == "z"), "{}", ran.stderr);
    }
}

/// Runs the program on a terminal and gives what that saw, or nothing where no terminal can be had.
#[cfg(unix)]
fn on_terminal(sandbox: &Sandbox, arguments: &str) -> Option<(String, Option<i32>)> {
    let line = format!("{} {arguments}", program());
    let mut command = Command::new("script");
    command.args(["-q", "-e", "-c", &line, "/dev/null"]).env("RUNVAULT_VAULT", sandbox.vault());
    // A pager that waits for keys would never end.
    command.env("RUNVAULT_CONFIG", sandbox.path("config.toml")).env("RUNVAULT_PAGER", "cat");
    command.env("TERM", "xterm").current_dir(sandbox.path("")).stdin(std::process::Stdio::null());
    let ran = command.output().ok().filter(|ran| !ran.stderr.starts_with(b"script:"))?;
    Some((String::from_utf8_lossy(&ran.stdout).into_owned(), ran.status.code()))
}

#[cfg(unix)]
#[test]
fn terminals_get_plain_text_only() {
    let Hostile { sandbox, session: hostile, .. } = hostile();
    let plain = sandbox.add([sandbox.write("plain.json", session("a", &[("hi", "❤\u{fe0f}")]))]).remove(0);
    let raw = sandbox.write("raw.json", session("a", &[("p", "\u{9b}2J")]));
    let raw = sandbox.add([raw]).remove(0);
    let Some((seen, status)) = on_terminal(&sandbox, &format!("get {plain}")) else {
        return;
    };
    assert!(seen.contains("response_content") && status == Some(0), "{seen}");
    let (seen, status) = on_terminal(&sandbox, &format!("get {raw}")).unwrap();
    assert!(!seen.contains('\u{9b}') && seen.contains("--force") && status == Some(2), "{seen}");
    let (seen, status) = on_terminal(&sandbox, &format!("get --force {raw}")).unwrap();
    assert!(seen.contains('\u{9b}') && status == Some(0), "{seen:?}");
    // Colors are the program's own there, everything else is as harmless as in a file.
    for arguments in
        [format!("show {hostile}"), "find".to_owned(), "unresolved".to_owned(), "--bad".to_owned()]
    {
        let (seen, _) = on_terminal(&sandbox, &arguments).unwrap();
        let mut own = seen.replace("\r\n", "\n");
        assert!(own.contains("\u{1b}["), "{arguments}: no color");
        for style in ["0", "1", "2", "31", "32", "33", "35"] {
            own = own.replace(&format!("\u{1b}[{style}m"), "");
        }
        assert!(own.chars().all(is_harmless), "{own:?}");
    }
}

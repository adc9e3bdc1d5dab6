use super::*;
use crate::artifact::Kind;
use crate::digest::Digest;
use crate::validation::{Report, Severity};

const RUN: &str = r#""run_schema_version":"1","run_id":"r","started_at":null,"completed_at":null,"kernel_version":null,
    "policy":{"max":1.0},"intent":null,"decision":null,"model_mode":null"#;

/// Returns the report for a pack of these files, with a run that needs no bundle.
fn report(files: &[(&str, &str)]) -> Report {
    let run = format!("{{{RUN},\"kernel_result_kind\":\"REFUSE\"}}");
    let run = (!files.iter().any(|(name, _)| *name == "run.json")).then_some(("run.json", run.as_str()));
    let entries = run.iter().chain(files).map(|(name, text)| DirectoryEntry {
        name: (*name).to_owned(),
        content: EntryContent::File(text.as_bytes().to_vec()),
    });
    let directory = Directory { entries: entries.collect() };
    match Kind::new(&Pack).admit_directory(directory, &AdmitOptions::default()) {
        Ok(admitted) => admitted.report().clone(),
        Err(report) => report,
    }
}

/// Returns the rules that one file breaks, as their inner ids if there are any.
fn broken(name: &str, text: &str) -> Vec<String> {
    let report = report(&[(name, text)]);
    let id = |violation: &crate::validation::Violation| {
        assert_eq!(violation.path, name, "{violation:?}");
        let inner = violation.message.split(": ").next().unwrap_or_default();
        let is_id = inner.chars().all(|letter| letter.is_ascii_uppercase() || letter.is_ascii_digit());
        format!("{}{}{}", violation.rule_id, if is_id { " " } else { "" }, if is_id { inner } else { "" })
    };
    report.violations().iter().map(id).collect()
}

fn bundle(members: &str) -> String {
    format!(
        r#"{{"id":null,"schema_version":"1","kernel_version":null,"status":null,"stats":null,
        "root_node":{{}},"unresolved_questions":[],{members}}}"#
    )
}

#[test]
fn bundles() {
    let none = r#""terminal_nodes":[],"outputs":[]"#;
    for (text, rules) in [
        (bundle(none), vec![]),
        ("[]".to_owned(), vec!["PK4 SCHEMA"]),
        ("{".to_owned(), vec!["PK4"]),
        (bundle(r#""terminal_nodes":[null],"outputs":[]"#), vec!["PK4 SCHEMA"]),
        (bundle(r#""terminal_nodes":{},"outputs":[{"path":1}]"#), vec!["PK4 SCHEMA"]),
        (bundle(r#""terminal_nodes":[{"id":10},{"id":"9"}],"outputs":[]"#), vec!["PK4 BS6"]),
        (bundle(r#""terminal_nodes":[{"id":"10"},{"id":"9"}],"outputs":[]"#), vec![]),
        (bundle(r#""terminal_nodes":[{"id":"b"},{"id":"a"}],"outputs":[]"#), vec!["PK4 BS6"]),
        (
            bundle(r#""terminal_nodes":[],"outputs":[{"path":"a..b"},{"path":"\\"},{"path":"/"}]"#),
            vec!["PK4 BS3", "PK4 BS7", "PK4 BS7", "PK4 BS7"],
        ),
        (bundle(&format!(r#"{none},"x":1e400"#)), vec!["PK4 BS8"]),
        (bundle(&format!(r#"{none},"x":9007199254740992"#)), vec![]),
        (bundle(&format!(r#"{none},"x":9007199254740993"#)), vec!["PK13"]),
    ] {
        assert_eq!(broken("bundle.json", &text), rules, "{text}");
    }
}

#[test]
fn questions_are_sorted_by_priority_then_id() {
    for (questions, rules) in [
        (r#"{"priority":2,"id":"a"},{"priority":2,"id":"b"},{"priority":1,"id":"a"}"#, vec![]),
        (r#"{"priority":1},{"priority":2}"#, vec!["PK4 BS5"]),
        (r#"{"priority":1,"id":"b"},{"priority":1.0,"id":"a"}"#, vec!["PK4 BS5"]),
        (r#"{"priority":"1","id":"b"},{"priority":1,"id":"a"}"#, vec![]),
        (r#"{"id":"b"},{"id":"a"}"#, vec!["PK4 BS5"]),
        (r"null", vec![]),
        (r"null,{}", vec!["PK4 SCHEMA"]),
    ] {
        let text =
            bundle(&format!(r#""outputs":[],"terminal_nodes":[{{"unresolved_questions":[{questions}]}}]"#));
        assert_eq!(broken("bundle.json", &text), rules, "{questions}");
    }
}

#[test]
fn patches() {
    let patch = |operations: &str, total: &str| {
        format!(
            r#"{{"patch_schema_version":"1","source_proposal_id":0,"source_proposal_hash":null,
            "operations":{operations},"total_bytes":{total}}}"#
        )
    };
    let one = |operation: &str| patch(&format!("[{{{operation}}}]"), "0");
    for (text, rules) in [
        (patch("[]", "0"), vec![]),
        (
            "{}".to_owned(),
            vec!["PK8 PS1", "PK8 SCHEMA", "PK8 SCHEMA", "PK8 SCHEMA", "PK8 SCHEMA", "PK8 SCHEMA"],
        ),
        (patch("{}", "0"), vec!["PK8 SCHEMA"]),
        (patch("[null]", "0"), vec!["PK8 SCHEMA"]),
        (one(r#""op":"create","path":"a","content":null"#), vec!["PK8 SCHEMA"]),
        (one(r#""op":"symlink","path":"a""#), vec!["PK8 PS2", "PK8 PS9"]),
        (one(r#""op":"delete","path":"C:x""#), vec!["PK8 PS3"]),
        (one(r#""op":"delete","path":"./a..b\r""#), vec!["PK8 PS4", "PK8 PS4", "PK8 PS4"]),
        (one(r#""op":"delete","path":"""#), vec!["PK8 PS4"]),
        (one(r#""op":"delete","path":"a\ufeff""#), vec!["PK8 PS4"]),
        (one(r#""op":"delete","path":"a\u0085""#), vec![]),
        (patch(r#"[{"op":"create","path":"a","content":"\u0000é"}]"#, "3"), vec!["PK8 PS6"]),
        (patch(r#"[{"op":"create","path":"a","content":"é"}]"#, "1"), vec!["PK8 PS7"]),
        (patch("[]", "52428801"), vec!["PK8 PS7", "PK8 PS7"]),
        (patch("[]", "\"0\""), vec!["PK8 PS7"]),
        (
            patch(r#"[{"op":"delete","path":"b","order":null},{"op":"delete","path":"a","order":0}]"#, "0"),
            vec!["PK8 PS8"],
        ),
        (
            patch(r#"[{"op":"delete","path":"b","order":1},{"op":"delete","path":"a","order":2}]"#, "0"),
            vec![],
        ),
        (patch(r#"[{"op":"delete","path":"a","order":1},{"op":"delete","path":"b"}]"#, "0"), vec!["PK8 PS8"]),
    ] {
        assert_eq!(broken("patch.json", &text), rules, "{text}");
    }
}

const RUNNER: &str = r#"{"runner_schema_version":"1.0.0","runner_id":"runner_20260101_120000_ab","runner_version":"1",
    "platform":{"os":"linux","arch":"x64","node_version":"v24","npm_version":""},
    "sandbox":{"backend":"process","isolation_level":"standard","network_blocked":true,"filesystem_readonly":true},
    "limits":{"timeout_ms":1000,"max_output_files":1,"max_total_output_bytes":1024},
    "commands":{"allowlist":["ls"],"blocklist":["rm"],"shell":"sh"},"write_roots":["out"],
    "context":{"working_dir":".","env_allowlist":["PATH"],"locale":"C","timezone":"UTC"},
    "timing":{"started_at":"2026-01-01T00:00:00Z","completed_at":"2026-01-01T00:00:01.000Z","duration_ms":1001},
    "exit":{"code":0,"oom_killed":false,"timeout_killed":false}}"#;

#[test]
fn runners() {
    assert_eq!(broken("runner.json", RUNNER), [""; 0]);
    for (from, to, rules) in [
        (r#""1.0.0""#, "1", vec!["PK8 RN1"]),
        ("_ab\"", "_AB\"", vec!["PK8 RN2"]),
        ("\"v24\"", "\"24\"", vec!["PK8 RN3"]),
        ("\"standard\"", "\"none\"", vec!["PK8 RN4"]),
        (r#""timeout_ms":1000"#, r#""timeout_ms":999.9"#, vec!["PK8 RN5"]),
        (r#""max_output_files":1"#, r#""max_output_files":1,"max_cpu_seconds":0"#, vec!["PK8 RN5"]),
        (r#"["rm"]"#, r#"["ls"]"#, vec!["PK8 RN6"]),
        (r#"["rm"]"#, "null", vec!["PK8 SCHEMA"]),
        (r#"["out"]"#, r#"["a..b","/"]"#, vec!["PK8 RN7", "PK8 RN7", "PK8 RN7"]),
        (r#"["PATH"]"#, r#"["GIT_X","AWS_"]"#, vec!["PK8 RN8", "PK8 RN8", "PK8 RN8"]),
        ("\"duration_ms\":1001", "\"duration_ms\":1001.5", vec!["PK8 RN9"]),
        ("00:00:01.000Z", "00:00:01.00Z", vec!["PK8 RN9"]),
        ("2026-01-01T00:00:01.000Z", "2025-01-01T00:00:01.000Z", vec!["PK8 RN9", "PK8 RN9"]),
        (
            "1001}",
            r#"1001,"phases":[{"name":"a","started_at":"2026-01-02T00:00:00Z","duration_ms":0},
            {"name":"b","started_at":"2026-01-01T00:00:00Z","duration_ms":0},
            {"name":"c","started_at":"2026-01-01T00:00:01Z","duration_ms":0},0]}"#,
            vec!["PK8 RN9", "PK8 SCHEMA"],
        ),
        ("\"code\":0", "\"code\":1e-20,\"signal\":null", vec!["PK8 RN10", "PK8 RN10"]),
        ("\"exit\":{", "\"warnings\":[\"b\",\"a\"],\"exit\":{", vec!["PK8 SCHEMA"]),
        ("\"exit\":{", "\"ephemeral\":1e400,\"exit\":{", vec!["PK8 RN12"]),
        ("\"exit\":{", "\"exits\":{", vec!["PK8 SCHEMA"]),
    ] {
        let text = RUNNER.replacen(from, to, 1);
        assert_eq!(broken("runner.json", &text), rules, "{to}");
    }
}

#[test]
fn what_only_tells_about_one_execution_is_not_hashed() {
    let digest = |text: &str| {
        let value = crate::json::reader::read(text.as_bytes(), &Limits::default()).unwrap();
        members::canonical_hash(members::runner_core(&value)).unwrap()
    };
    let other_times = RUNNER.replace("2026", "2025").replacen('{', "{\"ephemeral\":1,", 1);
    assert_eq!(digest(RUNNER), digest(&RUNNER.replace("2026-01-01T", "2025-01-01T")));
    // The runner's id contains a date of its own.
    assert_ne!(digest(RUNNER), digest(&other_times));
    assert_ne!(digest(RUNNER), digest(&RUNNER.replacen('{', "{\"warnings\":[],", 1)));
}

#[test]
fn other_members() {
    for (name, text, rules) in [
        ("policy.json", r#"{"max":1}"#, vec![]),
        ("policy.json", r#"{"max":2}"#, vec!["PK8"]),
        ("policy.json", "{\"max\":1,\"max\":1}", vec!["PK8"]),
        ("evidence.json", "[]", vec!["PK8"; 5]),
        ("evidence.json", "0", vec!["PK8"]),
        ("meta.json", "null", vec![]),
        ("meta.json", "\u{feff}null", vec!["PK8"]),
        ("ledger.jsonl", "\u{feff}\n\u{a0}\n", vec![]),
        ("ledger.jsonl", "\u{85}\n[]\n7", [vec!["PK9"; 9]].concat()),
        ("model_io.json", "{", vec!["PK8"]),
        ("model_io.json", "[]", vec!["PK8 SCHEMA"]),
        ("extra.json", "{", vec!["PK2"]),
    ] {
        assert_eq!(broken(name, text), rules, "{name} {text}");
    }
}

#[test]
fn runs() {
    let run = |rest: &str| format!("{{{RUN}{rest}}}");
    let rules = |text: &str| -> Vec<String> {
        let report = report(&[("run.json", text)]);
        report.violations().iter().map(|found| format!("{} {}", found.rule_id, found.path)).collect()
    };
    assert_eq!(rules("[]").len(), 11);
    assert_eq!(rules("null"), ["PK1 bundle.json", "PK3 run.json"]);
    assert_eq!(rules(&run("")), ["PK1 bundle.json", "PK3 run.json"]);
    assert_eq!(rules(&run(r#","kernel_result_kind":"refuse""#)), ["PK1 bundle.json", "PK3 run.json"]);
    assert_eq!(rules(&run(r#","kernel_result_kind":"REFUSE","x":18446744073709551616"#)), ["PK13 run.json"]);
}

#[test]
fn the_hashes_are_pinned() {
    let run = br#"{"run_schema_version":"1","run_id":"r","started_at":0,"completed_at":0,"kernel_version":0,
        "policy":0,"intent":0,"kernel_result_kind":"REFUSE","decision":0,"model_mode":0}"#;
    let directory = || Directory {
        entries: [("run.json", &run[..]), ("meta.json", b"0")]
            .map(|(name, bytes)| DirectoryEntry {
                name: name.to_owned(),
                content: EntryContent::File(bytes.to_vec()),
            })
            .into(),
    };
    let admitted = Kind::new(&Pack).admit_directory(directory(), &AdmitOptions::default()).unwrap();
    let canonical = concat!(
        r#"{"completed_at":0,"decision":0,"intent":0,"kernel_result_kind":"REFUSE","kernel_version":0,"model_mode":0,"#,
        r#""policy":0,"run_id":"r","run_schema_version":"1","started_at":0}"#,
        "\n"
    );
    let core = format!(r#"{{"run.json":"{}"}}"#, Digest::from_content(canonical.as_bytes()));
    assert_eq!(admitted.core().0, Digest::from_content(core.as_bytes()));
    let capture = format!(
        r#"{{"meta.json":"{}","run.json":"{}"}}"#,
        Digest::from_content(b"0"),
        Digest::from_content(run)
    );
    assert_eq!(admitted.capture().0, Digest::from_content(capture.as_bytes()));
    assert!(admitted.report().violations().iter().all(|found| found.severity == Severity::Warning));
}

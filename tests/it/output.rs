//! What people and programs read, as snapshots.

use crate::sandbox::{Sandbox, repository, session};

/// A sandbox with the shipped examples in a vault.
fn examples() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.add([repository("examples")]);
    sandbox
}

/// `text` without what changes from one run to the next: times and durations.
pub(crate) fn steady(text: &str) -> String {
    // A digit stands for any digit.
    const TIMES: [&str; 3] = ["0000-00-00T00:00:00.000Z", "0000-00-00 00:00:00", " 0.00 s"];
    let mut steady = String::new();
    let mut rest = text;
    while let Some(character) = rest.chars().next() {
        let fits = |form: &&&str| {
            let mut pairs = form.bytes().zip(rest.bytes());
            rest.len() >= form.len()
                && pairs.all(|(form, byte)| if form == b'0' { byte.is_ascii_digit() } else { byte == form })
        };
        let form = TIMES.iter().find(fits);
        steady.push_str(form.map_or(&rest[..character.len_utf8()], |form| form));
        rest = &rest[form.map_or(character.len_utf8(), |form| form.len())..];
    }
    steady
}

#[test]
fn add() {
    let sandbox = Sandbox::new();
    sandbox.write("d/good.json", session("a", &[("hello", "hi")]));
    sandbox.write("d/bad.json", session("a", &[("hello", "hi")]).replace("\"hi\"", "\"ho\""));
    sandbox.write("d/run.rpk", "{\"version\": \"2.0\"");
    sandbox.write("d/notes.txt", "nothing to see");
    let first = sandbox.run(["add", "-v", "d"]).expect(1);
    let again = sandbox.run(["add", "-v", "d/good.json"]).expect(0);
    let dry = sandbox.run(["add", "--dry-run", "d/good.json"]).expect(0);
    let all = [first, again, dry].map(|ran| format!("{}--\n{}", ran.stdout, ran.stderr));
    insta::assert_snapshot!(steady(&all.join("==\n")));
}

#[test]
fn add_and_verify_as_json() {
    let sandbox = Sandbox::new();
    sandbox.write("good.json", session("a", &[("hello", "hi")]));
    sandbox.write("bad.json", session("a", &[("hello", "hi")]).replace("\"hi\"", "\"ho\""));
    let verified = sandbox.run(["verify", "--json", "good.json", "bad.json"]).expect(1).stdout;
    let added = sandbox.run(["add", "--json", "good.json", "bad.json"]).expect(1).stdout;
    insta::assert_snapshot!(format!("{verified}--\n{added}"));
}

#[test]
fn verify() {
    let sandbox = Sandbox::new();
    let trace = crate::conformance::corpus().join("trace");
    for name in ["canonical-basic", "hash-payload-edited", "line-crlf", "nan-literal"] {
        let text = std::fs::read(trace.join(format!("{name}.ndjson"))).unwrap();
        sandbox.write(&format!("d/{name}.ndjson"), text);
    }
    let ran = sandbox.run(["verify", "d"]).expect(1);
    insta::assert_snapshot!(format!("{}--\n{}", ran.stdout, ran.stderr));
}

#[test]
fn standard_input() {
    let sandbox = Sandbox::new();
    let text = session("a", &[("hello", "hi")]);
    let ran = sandbox.run_on(text.as_bytes(), &["add", "-"]).expect(0);
    insta::assert_snapshot!(steady(&format!("{}--\n{}", ran.stdout, ran.stderr)));
    let prompt = sandbox.run_on(b"hello", &["find", "--prompt-file", "-", "--json"]).expect(0);
    assert_eq!(prompt.json().len(), 1);
    let ran = sandbox.run_on(b"", &["verify", "-"]).expect(1);
    assert!(ran.stdout.contains("the document is empty"), "{}", ran.stdout);
}

#[test]
fn show() {
    let sandbox = examples();
    let mut shown = String::new();
    for hit in sandbox.run(["find", "--all-versions", "--json", "--sort", "core"]).expect(0).json() {
        shown += &sandbox.run(["show", hit["core_hash"].as_str().unwrap()]).expect(0).stdout;
    }
    insta::assert_snapshot!(steady(&shown));
}

#[test]
fn find() {
    let sandbox = examples();
    let mut all = String::new();
    for arguments in [
        &["find", "--sort", "kind"][..],
        &["find", "sessions", "--prompt", "Summarise ticket 4711 in one sentence."],
        &["find", "runs", "--tool", "tracker.label", "--run-id", "run-triage-4711"],
        &["find", "traces", "--trace-id", "run-triage-4711", "--limit", "1", "--sort", "core"],
        &["find", "contracts", "--io-ref", "service:tracker"],
        &["find", "--mentions", "5c496a37feba"],
        &["find", "--model", "triage-small-1"],
        &["find", "--attr", "step=Label"],
        &["find", "sessions", "--model", "triage-small-1", "--adapter", "other"],
        &["find", "packs", "--result", "BUNDLE", "--policy", "triage", "--model-mode", "record"],
        &["find", "packs", "--prompt", "Summarise ticket 4711 in one sentence.", "--model", "triage-large-2"],
        &["find", "packs", "--model", "triage-small-1"],
        &["find", "--until", "2020-01-01"],
        &["find", "--since", "1h", "--by", "last-seen", "--limit", "1", "--sort", "core"],
        &["find", "--response-hash", "000000"],
    ] {
        let ran = sandbox.run(arguments);
        all += &format!(
            "$ runvault {}\n{}{}status {}\n\n",
            arguments.join(" "),
            ran.stdout,
            ran.stderr,
            ran.status
        );
    }
    insta::assert_snapshot!(steady(&all));
}

#[test]
fn find_by_every_sort_of_hash() {
    let sandbox = examples();
    let trace = std::fs::read_to_string(repository("examples/trace.ndjson")).unwrap();
    let records: Vec<serde_json::Value> =
        trace.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let run: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(repository("examples/run.rpk")).unwrap()).unwrap();
    let step = run["payload"]["run"]["steps"][5]["hash"].as_str().unwrap();
    let record = records[3]["record_hash"].as_str().unwrap();
    let state = records[1]["state_after_hash"].as_str().unwrap();
    let response = runvault::digest::Digest::from_content(b"bug").to_string();
    for (option, hash, expected) in [
        ("--step-hash", step, vec!["rpk"]),
        ("--record-hash", record, vec!["trace"]),
        // Two traces have it, of which one extends the other.
        ("--state-hash", state, vec!["trace"]),
        ("--response-hash", &response, vec!["model_io", "model_io", "rpk"]),
    ] {
        for hash in [hash, &hash[..hash.len() - 50]] {
            let found = sandbox.run(["find", "--json", "--sort", "kind", option, hash]).expect(0).json();
            let kinds: Vec<&str> = found.iter().map(|hit| hit["kind"].as_str().unwrap()).collect();
            assert_eq!(kinds, expected, "{option} {hash}");
        }
    }
}

#[test]
fn json_is_stable() {
    let sandbox = examples();
    let run = "3941d389b337";
    let shown = sandbox.run(["show", "--json", run]).expect(0).json().remove(0);
    let links = sandbox.run(["links", "--json", run]).expect(0).stdout;
    let mut found =
        sandbox.run(["find", "runs", "--json", "--tool", "tracker.label", "--prompt-hash", "25c5"]);
    assert_eq!(found.status, 3, "four digits are too few");
    found = sandbox.run(["find", "runs", "--json", "--tool", "tracker.label"]).expect(0);
    let text = serde_json::to_string_pretty(&shown).unwrap() + "\n--\n" + &links + "--\n" + &found.stdout;
    insta::assert_snapshot!(steady(&text));
}

#[test]
fn hashes_that_stand_for_nothing_or_too_much() {
    let sandbox = Sandbox::new();
    // Among the hashes of 9,000 such sessions, those of these two are the only ones with the same first six digits.
    let cores = ["adapter-2967", "adapter-4100"]
        .map(|adapter| sandbox.add([sandbox.write("session.json", session(adapter, &[]))]).remove(0));
    assert!(cores.iter().all(|core| core.starts_with("sha256:c11732")) && cores[0] != cores[1], "{cores:?}");
    let ambiguous = sandbox.run(["get", "c11732"]).expect(1).stderr;
    assert!(
        ambiguous.contains("is ambiguous: 2 hashes begin with it; give more digits\n  sha256:"),
        "{ambiguous}"
    );
    let nothing = sandbox.run(["get", "sha256:000000000000"]).expect(1);
    assert_eq!(
        nothing.stderr,
        "error: nothing in the vault has a hash that begins with 000000000000; \"runvault find\" lists the artifacts\n"
    );
}

#[test]
fn rules_are_all_explained() {
    let sandbox = Sandbox::new();
    insta::assert_snapshot!(sandbox.run(["rules"]).expect(0).stdout);
    for rule in sandbox.run(["rules", "--json"]).expect(0).json() {
        assert!(rule["why"].as_str().unwrap().len() > 60, "{rule}");
    }
    insta::assert_snapshot!("rule", sandbox.run(["rules", "mi7"]).expect(0).stdout);
    sandbox.run(["rules", "XX1"]).expect(1);
}

#[test]
fn help() {
    let sandbox = Sandbox::new();
    let mut all = String::new();
    for arguments in [&["--help"][..], &["add", "--help"], &["get", "--help"], &["find", "--help"]] {
        all += &sandbox.run(arguments).expect(0).stdout;
        all += "\n==\n";
    }
    insta::assert_snapshot!(all);
}

#[test]
fn completions_and_manual_pages() {
    let sandbox = Sandbox::new();
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let flags = sandbox.run(["completions", "--static", shell]).expect(0).stdout;
        assert!(flags.contains("prompt-hash"), "{shell}");
        assert!(
            sandbox.run(["completions", shell]).expect(0).stdout.contains("RUNVAULT_COMPLETE"),
            "{shell}"
        );
    }
    assert!(sandbox.run(["man"]).expect(0).stdout.contains(".TH runvault 1"));
    assert!(sandbox.run(["man", "find"]).expect(0).stdout.contains("runvault\\-find"));
    sandbox.run(["man", "nothing"]).expect(3);
}

#[test]
fn a_closed_pipe_is_not_an_error() {
    use std::io::{BufRead, BufReader};
    let sandbox = examples();
    for number in 0..2_000 {
        sandbox.write(&format!("d/{number}.json"), session(&format!("adapter-{number}"), &[("piped", "r")]));
    }
    // Who stops reading does not stop the adding.
    for arguments in
        [&["add", "--json", "d"][..], &["find", "--json"], &["find"], &["verify", "d"], &["rules"]]
    {
        let mut command = sandbox.command();
        command.args(arguments).stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::with_capacity(64, child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let ended = child.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&ended.stderr);
        assert!(ended.status.success(), "{arguments:?}: {:?}: {said}", ended.status);
        assert!(!line.is_empty());
    }
    assert_eq!(sandbox.run(["find", "--prompt", "piped", "--json"]).expect(0).json().len(), 2_000);
}

/// Where even root can make nothing.
#[cfg(target_os = "linux")]
#[test]
fn a_directory_that_takes_nothing_is_told_by_the_name_that_was_given() {
    let sandbox = Sandbox::new();
    let directory = std::path::Path::new("/sys/kernel");
    if !directory.is_dir() || std::fs::write(directory.join("runvault-test"), "").is_ok() {
        return;
    }
    sandbox.add([repository("examples")]);
    for arguments in [
        &["sql", "--save", "/sys/kernel/x"][..],
        &["backup", "/sys/kernel/x"],
        &["get", "latest", "-o", "/sys/kernel/x"],
        &["get", "54490aab8b3f", "-o", "/sys/kernel/x"],
        &["export", "--all", "-o", "/sys/kernel/x"],
    ] {
        let told = sandbox.run(arguments).expect(2).stderr;
        assert!(told.contains("/sys/kernel/x: cannot write to its directory: permission"), "{told}");
        assert!(!told.contains("at path") && !told.contains("/."), "{told}");
    }
}

#[test]
fn output_that_must_be_a_file_is_not_written_to_a_file_of_another_name() {
    let sandbox = examples();
    for arguments in [&["backup", "-"][..], &["sql", "--save", "-"], &["sql", "--save", "-", "--parquet"]] {
        let refused = sandbox.run(arguments).expect(3).stderr;
        assert!(
            refused.contains("not to standard output; ./- is a file named -"),
            "{arguments:?}: {refused}"
        );
    }
    sandbox.run(["backup", "./-"]).expect(0);
    let pack = sandbox.run(["find", "packs", "--json"]).expect(0).json()[0]["core_hash"].clone();
    for name in ["p.tar.xz", "p.7z", "p.gz"] {
        let refused = sandbox.run(["get", pack.as_str().unwrap(), "-o", name]).expect(3).stderr;
        assert!(refused.contains("archives are written as .zip, .tar,"), "{refused}");
        assert!(!sandbox.path(name).exists());
    }
    sandbox.run(["get", pack.as_str().unwrap(), "-o", "p.d"]).expect(0);
    assert!(sandbox.path("p.d").is_dir());
}

#[test]
fn a_limit_of_zero_is_no_failure() {
    let sandbox = examples();
    for command in [&["find"][..], &["list"], &["log"]] {
        let answer = sandbox.run([command, &["--limit", "0"]].concat()).expect(0);
        assert_eq!(answer.stdout, "", "{command:?}");
    }
}

//! What people paste to name an artifact, and what is reported if nothing has that name.

use serde_json::json;

use crate::sandbox::{Sandbox, repository, run_pack, session};

const SUMMARY: &str = "Summarise ticket 4711 in one sentence.";

fn core(sandbox: &Sandbox, name: &str) -> String {
    sandbox.run(["show", name, "--format", "{{core}}"]).expect(0).stdout.trim_end().to_owned()
}

#[test]
fn a_run_id_names_the_run() {
    let sandbox = Sandbox::new();
    let steps = [json!({"type": "tool.response", "input": {"tool": "t"}, "output": {"result": "r"}})];
    let cores = sandbox.add([
        sandbox.write("a.rpk", run_pack("run-a", &steps)),
        sandbox.write("b.rpk", run_pack("run-b", &steps)),
    ]);
    assert_eq!((core(&sandbox, "run-a"), core(&sandbox, "run-b")), (cores[0].clone(), cores[1].clone()));
    // It names the artifact for every command.
    sandbox.run(["get", "run-a"]).expect(0);
    sandbox.run(["tag", "set", "run-b", "second"]).expect(0);
    sandbox.run(["verify", "run-a"]).expect(0);
    sandbox.run(["diff", "run-a", "run-b"]).expect(0);
    sandbox.run(["replay", "run-b"]).expect(0);
    // A tag needs no @, and goes before the id of a run.
    assert_eq!(core(&sandbox, "second"), cores[1]);
    sandbox.run(["tag", "set", "run-a", "run-b"]).expect(0);
    assert_eq!(core(&sandbox, "run-b"), cores[0]);
}

#[test]
fn a_run_goes_before_the_packs_made_from_it() {
    let sandbox = Sandbox::new();
    sandbox.add([repository("examples/run.rpk"), repository("examples/pack")]);
    let shown = sandbox.run(["show", "run-triage-4711", "--format", "{{kind}}"]).expect(0).stdout;
    assert_eq!(shown, "rpk\n");
}

#[test]
fn a_run_id_of_several_artifacts_is_ambiguous() {
    let sandbox = Sandbox::new();
    let step =
        |result: &str| json!({"type": "tool.response", "input": {"tool": "t"}, "output": {"result": result}});
    let cores = sandbox.add([
        sandbox.write("a.rpk", run_pack("run", &[step("one")])),
        sandbox.write("b.rpk", run_pack("run", &[step("other")])),
    ]);
    let told = sandbox.run(["show", "run"]).expect(1).stderr;
    assert!(told.contains("2 artifacts have this run id"), "{told}");
    assert!(cores.iter().all(|core| told.contains(core.as_str())), "{told}");
}

#[test]
fn a_name_of_nothing_is_explained() {
    let sandbox = Sandbox::new();
    sandbox.add([repository("examples/session.json")]);
    let told = sandbox.run(["show", "nothing"]).expect(1).stderr;
    assert!(told.contains("no tag or run in the vault has the name nothing"), "{told}");
    let file = sandbox.write("file.json", "{}");
    let told = sandbox.run(["show", file.to_str().unwrap()]).expect(3).stderr;
    assert!(told.contains("it is a file: \"runvault verify\" checks files"), "{told}");
    // A file stays a file.
    let told = sandbox.run(["verify", "nothing.json"]).expect(2).stderr;
    assert!(told.contains("nothing.json"), "{told}");
}

#[test]
fn names_are_accepted_as_they_are_pasted() {
    let sandbox = Sandbox::new();
    let run = sandbox.add([repository("examples/run.rpk")]).remove(0);
    for pasted in [
        format!(" {run} "),
        format!("{}…", &run[..20]),
        format!("{}...", &run[..20]),
        run.to_uppercase(),
        "run:run-triage-4711".to_owned(),
    ] {
        assert_eq!(core(&sandbox, &pasted), run, "{pasted}");
    }
    let listed = sandbox.run(["find", "--kind", "run", "--json"]).expect(0).stdout;
    assert_eq!(listed, sandbox.run(["find", "runs", "--json"]).expect(0).stdout);
    assert!(listed.contains(&run), "{listed}");
    sandbox.run(["list", "--kind", "rpk"]).expect(0);
    sandbox.run(["find", "runs", "--kind", "rpk"]).expect(3);
}

#[test]
fn a_digest_that_looks_like_a_name_is_still_found() {
    let sandbox = Sandbox::new();
    let core_hash = sandbox.add([repository("examples/session.json")]).remove(0);
    sandbox.run(["tag", "set", &core_hash, "facade"]).expect(0);
    assert_eq!(core(&sandbox, "facade"), core_hash);
    assert_eq!(core(&sandbox, &core_hash), core_hash);
}

#[test]
fn the_hash_of_a_prompt_says_who_mentions_it() {
    let sandbox = Sandbox::new();
    let names = ["a", "b", "c", "d", "e", "f"];
    let paths = names.map(|name| sandbox.write(name, session(name, &[(SUMMARY, "response")])));
    let cores = sandbox.add(paths);
    let digest = runvault::digest::Digest::from_content(SUMMARY.as_bytes());
    for text in [digest.to_string(), digest.hex(), digest.hex()[..12].to_owned()] {
        for command in ["show", "get", "links", "replay"] {
            let told = sandbox.run([command, &text]).expect(1).stderr;
            assert!(told.contains("6 artifacts mention it; \"runvault find --mentions"), "{command}: {told}");
            assert_eq!(told.matches("prompt").count(), 5, "the first five are listed: {told}");
            assert!(told.contains(&cores[5].trim_start_matches("sha256:")[..12]), "{told}");
        }
    }
}

#[test]
fn kinds_have_several_names() {
    let sandbox = Sandbox::new();
    sandbox.add([repository("examples/session.json"), repository("examples/run.rpk")]);
    let found = |what: &str| sandbox.run(["find", what, "--json"]).expect(0).stdout;
    for names in [["session", "sessions", "model_io", "model-io"], ["run", "runs", "rpk", "run pack"]] {
        for name in names {
            assert_eq!(found(name), found(names[0]), "{name}");
            let verified = ["verify", "--kind", name, "x"];
            let path = if names[0] == "run" { "examples/run.rpk" } else { "examples/session.json" };
            let path = repository(path);
            sandbox.run([verified[0], verified[1], verified[2], path.to_str().unwrap()]).expect(0);
        }
    }
    sandbox.run(["forget", "--keep-last", "1", "--kind", "run pack", "--dry-run"]).expect(0);
    sandbox.run(["export", "--kind", "session", "-o", "sessions.rvz"]).expect(0);
}

#[test]
fn commands_of_other_programs_are_answered_with_ours() {
    let sandbox = Sandbox::new();
    for (typed, named) in [
        ("dir", "\"runvault list\""),
        ("cat", "\"runvault get HASH\""),
        ("check", "\"runvault fsck\""),
        ("prune", "\"runvault gc\""),
        ("restore", "\"runvault get HASH -o PATH\""),
        ("status", "\"runvault stats\""),
    ] {
        let told = sandbox.run([typed]).expect(3).stderr;
        assert!(told.starts_with(&format!("error: there is no command {typed}; ")), "{told}");
        assert!(told.contains(named), "{told}");
    }
    // Others are answered by what is spelled alike.
    assert!(sandbox.run(["fnid"]).expect(3).stderr.contains("'find'"));
}

#[test]
fn an_artifact_is_not_a_bundle() {
    let sandbox = Sandbox::new();
    std::fs::copy(repository("examples/session.json"), sandbox.path("s.json")).unwrap();
    let told = sandbox.run(["import", "s.json"]).expect(1).stderr;
    assert_eq!(told, "error: s.json is a session, not a bundle; \"runvault add s.json\" adds artifacts\n");
    let told = sandbox.run(["import", "."]).expect(1).stderr;
    assert!(told.contains(". is a directory, not a bundle"), "{told}");
}

#[test]
fn former_spellings_work_as_before() {
    let sandbox = Sandbox::at("2026-01-15T12:00:00Z");
    let core_hash = sandbox.add([repository("examples/session.json")]).remove(0);
    let run = |arguments: &[&str]| {
        let ran = sandbox.run(arguments);
        (ran.status, ran.stdout, ran.stderr)
    };
    assert_eq!(run(&["tag", &core_hash, "name"]).2, "tagged\n");
    assert_eq!(run(&["tags"]), run(&["tag", "list"]));
    assert_eq!(run(&["untag", "name"]).2, "untagged\n");
    assert_eq!(run(&["pin", "--note", "why", &core_hash]).2, "pinned\n");
    assert_eq!(run(&["pins", "--json"]), run(&["pin", "list", "--json"]));
    assert_eq!(run(&["unpin", &core_hash]).2, "unpinned\n");
    assert_eq!(run(&["note", &core_hash, "text"]).2, "note set\n");
    assert_eq!(run(&["note", &core_hash]), run(&["note", "show", &core_hash]));
    assert_eq!(run(&["note", &core_hash, "--remove"]).2, "note removed\n");
    assert_eq!(run(&["stub", &core_hash]), run(&["replay", &core_hash]));
    assert_eq!(run(&["dangling"]), run(&["unresolved"]));
    assert_eq!(run(&["links", &core_hash]), run(&["link", "list", &core_hash]));
    assert_eq!(run(&["index", "status"]).0, 1);
    assert_eq!(run(&["search", "--build"]).0, 0);
    assert_eq!(run(&["index", "status"]).0, 0);
    assert_eq!(run(&["search", "--drop"]).0, 0);
    assert_eq!(run(&["reindex"]).0, 0);
}

#[test]
fn quiet_prints_data_and_errors_only() {
    let sandbox = Sandbox::new();
    sandbox.write("bad.json", session("a", &[("p", "r")]).replace("\"r\"", "\"changed\""));
    let path = repository("examples/session.json");
    let ran = sandbox.run(["add", "-q", path.to_str().unwrap()]).expect(0);
    assert_eq!((ran.stdout.as_str(), ran.stderr.as_str()), ("", ""));
    let ran = sandbox.run(["-q", "find"]).expect(0);
    assert_eq!((ran.stdout.lines().count(), ran.stderr.as_str()), (1, ""));
    let ran = sandbox.run(["add", "--quiet", "bad.json"]).expect(1);
    assert!(ran.stderr.contains("rejected") && ran.stderr.contains("rule"), "{}", ran.stderr);
    assert!(sandbox.run(["show", "abcdef", "-q"]).expect(1).stderr.starts_with("error: "));
    sandbox.run(["find", "-q", "-v"]).expect(3);
}

#[test]
fn verbose_names_the_vault() {
    let sandbox = Sandbox::new();
    sandbox.add([repository("examples/session.json")]);
    assert!(sandbox.run(["find", "-v"]).expect(0).stderr.starts_with("vault v.vault\n"));
}

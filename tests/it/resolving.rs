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
    // A tag needs no @.
    assert_eq!(core(&sandbox, "second"), cores[1]);
}

#[test]
fn rejects_tags_that_look_like_another_handle() {
    let sandbox = Sandbox::new();
    let steps = [json!({"type": "tool.response", "input": {"tool": "t"}, "output": {"result": "r"}})];
    let cores = sandbox.add([
        sandbox.write("a.rpk", run_pack("run-a", &steps)),
        sandbox.write("b.rpk", run_pack("run-b", &steps)),
    ]);
    for name in ["run-b", "facade", "0123456789ab", &cores[1][7..], "latest"] {
        let told = sandbox.run(["tag", "set", "run-a", name]).expect(3).stderr;
        assert!(told.contains("cannot be a tag: it"), "{name}: {told}");
    }
    assert!(sandbox.run(["tag", "list"]).stdout.is_empty());
    sandbox.run(["add", "a.rpk", "--tag", "facade"]).expect(3);
}

#[test]
fn rejects_a_name_that_is_a_tag_and_a_run_id_of_two_artifacts() {
    let sandbox = Sandbox::new();
    let steps = [json!({"type": "tool.response", "input": {"tool": "t"}, "output": {"result": "r"}})];
    let one = sandbox.add([sandbox.write("a.rpk", run_pack("run-a", &steps))]).remove(0);
    sandbox.run(["tag", "set", &one, "later"]).expect(0);
    // The same name for one artifact is not ambiguous.
    let other = sandbox.add([sandbox.write("b.rpk", run_pack("later", &steps))]).remove(0);
    let told = sandbox.run(["show", "later"]).expect(1).stderr;
    let forms = format!("@later is {}, run:later is {}", &one[7..19], &other[7..19]);
    assert!(told.contains(&forms), "{told}");
    assert_eq!((core(&sandbox, "@later"), core(&sandbox, "run:later")), (one.clone(), other));
    let digits = &one[7..19];
    let hex = sandbox.add([sandbox.write("c.rpk", run_pack(digits, &steps))]).remove(0);
    let told = sandbox.run(["show", digits]).expect(1).stderr;
    assert!(
        told.contains(&format!("sha256:{digits} is {digits}, run:{digits} is {}", &hex[7..19])),
        "{told}"
    );
    assert_eq!((core(&sandbox, &format!("sha256:{digits}")), core(&sandbox, &one)), (one.clone(), one));
}

#[test]
fn tag_set_takes_its_arguments_in_any_order_that_is_not_ambiguous() {
    let sandbox = Sandbox::new();
    let steps = [json!({"type": "tool.response", "input": {"tool": "t"}, "output": {"result": "r"}})];
    let cores = sandbox.add([
        sandbox.write("a.rpk", run_pack("run-a", &steps)),
        sandbox.write("b.rpk", run_pack("run-b", &steps)),
    ]);
    sandbox.run(["tag", "set", "base", &cores[0]]).expect(0);
    sandbox.run(["tag", "set", "other", "run-b"]).expect(0);
    assert_eq!((core(&sandbox, "@base"), core(&sandbox, "@other")), (cores[0].clone(), cores[1].clone()));
    let told = sandbox.run(["tag", "set", "base", "other"]).expect(3).stderr;
    assert!(told.contains("base and other are both tags; give @base other"), "{told}");
    sandbox.run(["tag", "set", "run-a", "run-b"]).expect(3);
    sandbox.run(["tag", "set", "new", "newer"]).expect(1);
    sandbox.run(["tag", "set", "@base", "other"]).expect(0);
    assert_eq!(core(&sandbox, "@other"), cores[0]);
    let names: Vec<String> =
        sandbox.run(["tag", "list", "--json"]).json().iter().map(|tag| tag["name"].to_string()).collect();
    assert_eq!(names, ["\"base\"", "\"other\""]);
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
        format!("{} {}", &run[7..20], &run[20..40]),
        format!("http://127.0.0.1:4780/artifact/{run}?only=tools#step-2"),
        "http://127.0.0.1:4780/artifact/run-triage-4711".to_owned(),
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
fn a_run_id_that_looks_like_a_digest_is_still_found() {
    let sandbox = Sandbox::new();
    let steps = [json!({"type": "tool.response", "input": {"tool": "t"}, "output": {"result": "r"}})];
    let core_hash = sandbox.add([sandbox.write("a.rpk", run_pack("facade", &steps))]).remove(0);
    assert_eq!(core(&sandbox, "facade"), core_hash);
    assert_eq!(core(&sandbox, &core_hash), core_hash);
}

#[test]
fn every_command_takes_a_pasted_hash() {
    let sandbox = Sandbox::new();
    sandbox.add([repository("examples")]);
    let prompt = runvault::digest::Digest::from_content(SUMMARY.as_bytes());
    let whole = sandbox.run(["find", "--prompt", SUMMARY, "--json"]).expect(0).stdout;
    for pasted in [
        prompt.to_string().to_uppercase(),
        format!("{}…", &prompt.to_string()[..20]),
        format!(" {} {} ", &prompt.hex()[..8], &prompt.hex()[8..16]),
        format!("http://127.0.0.1:4780/prompt/{prompt}"),
    ] {
        let found = sandbox.run(["find", "--prompt-hash", &pasted, "--json"]).expect(0).stdout;
        assert_eq!(found, whole, "{pasted}");
        let request = format!("{}\n", json!({"prompt_hash": pasted}));
        let ran = sandbox.run_on(request.as_bytes(), &["replay", "any", "--serve-stdio"]);
        assert!(ran.json()[0].get("response").is_some(), "{pasted}: {}", ran.stdout);
        for command in ["find", "list"] {
            assert!(!sandbox.run([command, &pasted, "--json"]).expect(0).json().is_empty(), "{pasted}");
        }
    }
    // An artifact, and those that mention it.
    let contract = core(&sandbox, "5c496a37feba");
    let about = sandbox.run(["find", "5c496a37feba", "--json"]).expect(0).json();
    assert!(about.len() > 1 && about.iter().any(|hit| hit["core_hash"] == *contract), "{about:?}");
    assert_eq!(sandbox.run(["find", "contracts", &contract, "--json"]).expect(0).json().len(), 1);
    let logged = sandbox.run(["log", &contract[..20], "--json"]).expect(0).json();
    assert!(!logged.is_empty() && logged.iter().all(|line| line["entry"].to_string().contains(&contract)));
    assert!(logged.len() < sandbox.run(["log", "--json"]).expect(0).json().len());
    // A run alone is audited against its contract.
    let audited = sandbox.run(["audit", "run-triage-4711"]);
    assert_eq!(audited.stdout, sandbox.run(["audit", &contract, "run-triage-4711"]).stdout);
    sandbox.run(["find", "no-such-thing"]).expect(1);
}

#[test]
fn names_that_do_not_exist_are_answered_with_similar_ones() {
    let sandbox = Sandbox::new();
    sandbox.add([repository("examples")]);
    sandbox.run(["label", "set", "3941d389b337", "branch=feature/search"]).expect(0);
    let told = |arguments: &[&str]| sandbox.run(arguments).expect(1).stderr;
    assert!(told(&["show", "run-triage-471"]).contains("similar: run-triage-4711"));
    for (arguments, near) in [
        (
            &["find", "--model", "triage"][..],
            "no artifact has model_id triage; similar: triage-large-2, triage-small-1",
        ),
        (&["list", "--model", "triage-lage-2"], "similar: triage-large-2"),
        (&["find", "--tool", "label"], "similar: tracker.label"),
        (&["find", "--run-id", "triage"], "similar: run-triage-4711"),
        (
            &["find", "--label", "branch=search"],
            "no artifact has label:branch search; similar: feature/search",
        ),
        (&["find", "--label", "brnach"], "no artifact has label brnach; similar: branch"),
    ] {
        let told = told(arguments);
        assert!(told.contains(near), "{arguments:?}: {told}");
    }
    let found = |arguments: &[&str]| sandbox.run(arguments).expect(0).json().len();
    assert_eq!(found(&["find", "sessions", "--model", "triage-*", "--json"]), 2);
    assert_eq!(found(&["find", "runs", "--tool", "*label*", "--json"]), 1);
    assert_eq!(found(&["find", "runs", "--run-id", "run-*", "--json"]), 1);
    assert_eq!(found(&["find", "--label", "branch=feature/*", "--json"]), 1);
    let told = told(&["find", "--prompt", &format!("{SUMMARY}\n")]);
    assert!(told.contains("without the line feed at its end, "), "{told}");
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
    for (command, typed, meant) in [
        ("find", "--errors", "'--has-error'"),
        ("find", "--promt-hash", "'--prompt-hash'"),
        ("export", "--links", "'--with-links'"),
    ] {
        let told = sandbox.run([command, typed]).expect(3).stderr;
        assert!(told.contains(meant), "{typed}: {told}");
    }
    let told = sandbox.run(["find", "--zzzzz"]).expect(3).stderr;
    assert!(!told.contains("similar"), "{told}");
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

//! `latest` and `latest~2` stand for artifacts wherever a hash is asked for.

use crate::sandbox::{Sandbox, repository, session};

/// In the order in which they arrive.
const EXAMPLES: [&str; 5] = ["contract.yaml", "pack", "session-small-model.json", "session.json", "run.rpk"];

fn in_order() -> (Sandbox, Vec<String>) {
    let sandbox = Sandbox::new();
    let cores =
        EXAMPLES.iter().map(|name| sandbox.add([repository("examples").join(name)]).remove(0)).collect();
    (sandbox, cores)
}

fn core(sandbox: &Sandbox, name: &str) -> String {
    sandbox.run(["show", name, "--format", "{{core}}"]).expect(0).stdout.trim_end().to_owned()
}

#[test]
fn it_counts_back_from_what_arrived_last() {
    let (sandbox, cores) = in_order();
    // The session came with the pack, and was seen again later.
    for (back, expected) in cores.iter().rev().enumerate() {
        assert_eq!(core(&sandbox, &format!("latest~{back}")), *expected);
    }
    assert_eq!(core(&sandbox, "latest"), cores[4]);
    let gone = sandbox.run(["show", "latest~5"]).expect(1).stderr;
    assert_eq!(gone, "error: there is no latest~5: the vault has 5 artifacts\n");
    sandbox.run(["show", "latest~18446744073709551615"]).expect(1);
    sandbox.run(["rm", "latest"]).expect(0);
    assert_eq!(core(&sandbox, "latest"), cores[3]);
}

#[test]
fn what_is_added_again_is_the_latest() {
    let mut sandbox = Sandbox::at("2026-01-01T00:00:00Z");
    let paths: Vec<_> =
        ["a", "b", "c"].iter().map(|name| sandbox.write(name, session(name, &[("p", name)]))).collect();
    let cores = sandbox.add(&paths);
    assert_eq!(core(&sandbox, "latest"), cores[2]);
    sandbox.set_clock("2026-02-01T00:00:00Z");
    let again = sandbox.run(["add", "b", "a"]).expect(0);
    assert!(again.stderr.starts_with("0 added, 2 seen again, "), "{}", again.stderr);
    // In the order in which they were named.
    assert_eq!(
        ["latest", "latest~1", "latest~2"].map(|name| core(&sandbox, name)),
        [&*cores[0], &cores[1], &cores[2]]
    );
    let seen = sandbox.run(["log", "--json", "--action", "seen"]).expect(0).json();
    assert_eq!((seen.len(), &seen[0]["entry"]["at"]), (1, &"2026-02-01T00:00:00.000Z".into()));
    assert_eq!(seen[0]["entry"]["captures"].as_array().unwrap().len(), 2);
    // A clock that is wrong does not take it back.
    sandbox.set_clock("2026-01-15T00:00:00Z");
    sandbox.run(["add", "c"]).expect(0);
    let shown = sandbox.run(["show", "latest", "--json"]).expect(0).json().remove(0);
    assert_eq!(
        (&shown["core_hash"], &shown["seen_at"]),
        (&cores[2].clone().into(), &"2026-02-01T00:00:00.000Z".into())
    );
    assert_eq!(shown["added_at"], "2026-01-01T00:00:00.000Z");
    assert_eq!(shown["captures"][0]["seen_at"], "2026-02-01T00:00:00.000Z");
    sandbox.run(["fsck"]).expect(0);
}

#[test]
fn a_pack_comes_after_its_session() {
    let sandbox = Sandbox::new();
    let pack = sandbox.add([repository("examples/pack")]).remove(0);
    assert_eq!(core(&sandbox, "latest"), pack);
    assert_eq!(sandbox.run(["show", "latest~1", "--format", "{{kind}}"]).expect(0).stdout, "model_io\n");
}

#[test]
fn every_command_takes_it() {
    let (sandbox, cores) = in_order();
    let question = "Which label fits ticket 4711: bug, question or billing?";
    for arguments in [
        &["get", "latest~1"][..],
        &["get", "latest~4", "--core"],
        &["links", "latest"],
        &["path", "latest", "latest~4"],
        &["tag", "set", "latest~1", "base"],
        &["note", "set", "latest", "a note"],
        &["pin", "add", "latest~3"],
        &["pin", "remove", "latest~3"],
        &["link", "add", "latest~4", "governs", "latest~2"],
        &["link", "remove", "latest~4", "governs", "latest~2"],
        &["replay", "latest~1", "--prompt", question],
        &["replay", "latest"],
        &["export", "latest", "@base", "-o", "two.rvz"],
        &["find", "--mentions", "latest~4"],
        &["rm", "latest~2", "--dry-run", "--force"],
    ] {
        sandbox.run(arguments).expect(0);
    }
    let diff = sandbox.run(["diff", "latest~1", "latest~2", "--json"]).expect(1).json().remove(0);
    assert_eq!(
        (&diff["one"]["core_hash"], &diff["other"]["core_hash"]),
        (&cores[3].clone().into(), &cores[2].clone().into())
    );
    // Who mentions it is who mentions its hash.
    let by_name = sandbox.run(["find", "--mentions", "latest~4", "--json"]).expect(0).stdout;
    assert_eq!(by_name, sandbox.run(["find", "--mentions", &cores[0], "--json"]).expect(0).stdout);
    assert_eq!(sandbox.run(["find", "--mentions", "@base", "--json"]).expect(0).json().len(), 2);
}

#[test]
fn what_is_not_meant_is_explained() {
    let sandbox = Sandbox::new();
    let empty = sandbox.run(["show", "latest"]).expect(1).stderr;
    assert!(empty.contains("the vault has 0 artifacts"), "{empty}");
    sandbox.write("one.json", session("a", &[]));
    sandbox.add([sandbox.path("one.json")]);
    for wrong in ["latest~", "latest~-1", "latest~x", "latest~+1", "latest2", "latest~18446744073709551616"] {
        let told = sandbox.run(["show", wrong]).expect(3).stderr;
        assert!(told.contains("latest~1 the one before"), "{wrong}: {told}");
    }
    sandbox.run(["rm", "latest"]).expect(0);
    assert!(
        sandbox
            .run(["show", "latest"])
            .expect(1)
            .stderr
            .contains("there is no latest~0: the vault has 0 artifacts")
    );
}

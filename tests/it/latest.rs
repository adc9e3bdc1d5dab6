//! `latest` and `latest~2` stand for artifacts wherever a hash is asked for.

use crate::sandbox::{Sandbox, repository, session};

/// In the order in which they arrive.
const EXAMPLES: [&str; 5] = ["contract.yaml", "session.json", "session-small-model.json", "run.rpk", "pack"];

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
    // The session in the pack was there before.
    for (back, expected) in cores.iter().rev().enumerate() {
        assert_eq!(core(&sandbox, &format!("latest~{back}")), *expected);
    }
    assert_eq!(core(&sandbox, "latest"), cores[4]);
    let gone = sandbox.run(["show", "latest~5"]).expect(1).stderr;
    assert_eq!(gone, "error: there is no latest~5: the vault has 5 artifacts\n");
    sandbox.run(["show", "latest~18446744073709551615"]).expect(1);
    // What was there before did not arrive.
    sandbox.add([repository("examples/contract.yaml")]);
    assert_eq!(core(&sandbox, "latest"), cores[4]);
    sandbox.run(["rm", "latest"]).expect(0);
    assert_eq!(core(&sandbox, "latest"), cores[3]);
    sandbox.add([repository("examples/contract.yaml"), repository("examples/pack")]);
    assert_eq!(core(&sandbox, "latest"), cores[4]);
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
        &["get", "latest~3", "--core"],
        &["links", "latest"],
        &["why", "latest", "latest~4"],
        &["audit", "latest~4", "latest~1"],
        &["tag", "latest~3", "base"],
        &["note", "latest", "a note"],
        &["pin", "latest~1"],
        &["unpin", "latest~1"],
        &["link", "latest~4", "governs", "latest~2"],
        &["unlink", "latest~4", "governs", "latest~2"],
        &["replay", "latest~3", "--prompt", question],
        &["stub", "latest~1"],
        &["export", "latest", "@base", "-o", "two.rvz"],
        &["find", "--mentions", "latest~4"],
        &["rm", "latest~2", "--dry-run", "--force"],
    ] {
        sandbox.run(arguments).expect(0);
    }
    let diff = sandbox.run(["diff", "latest~3", "latest~2", "--json"]).expect(1).json().remove(0);
    assert_eq!(
        (&diff["one"]["core_hash"], &diff["other"]["core_hash"]),
        (&cores[1].clone().into(), &cores[2].clone().into())
    );
    // Who mentions it is who mentions its hash.
    let by_name = sandbox.run(["find", "--mentions", "latest~4", "--json"]).expect(0).stdout;
    assert_eq!(by_name, sandbox.run(["find", "--mentions", &cores[0], "--json"]).expect(0).stdout);
    assert_eq!(sandbox.run(["find", "--mentions", "@base", "--json"]).expect(0).json().len(), 2);
}

#[test]
fn what_is_not_meant_is_explained() {
    let sandbox = Sandbox::new();
    sandbox.run(["show", "latest"]).expect(2);
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

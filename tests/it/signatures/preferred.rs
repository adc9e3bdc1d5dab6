//! Which capture stands for an artifact, and checking what is in the vault.

use runvault::vault::resolve::ResolveRequest;

use super::{capture, core, ring, signed};
use crate::sandbox::{Sandbox, repository};

/// A vault to which an unchecked, an unsigned and a verified capture of one run came, in this order, and the three.
fn of_three() -> (Sandbox, [String; 3]) {
    let sandbox = Sandbox::new();
    ring(&sandbox, "ring", &[("ci", "right")]);
    let unsigned = std::fs::read_to_string(repository("examples/run.rpk")).unwrap();
    let documents = [signed("laptop", "other"), unsigned, signed("ci", "right")];
    for (number, document) in documents.iter().enumerate() {
        let name = format!("{number}.rpk");
        sandbox.write(&name, document);
        sandbox.run(["add", &name, "--signing-key-file", "ring"]).expect(0);
    }
    (sandbox, documents)
}

#[test]
fn a_verified_capture_comes_before_an_unsigned_one_and_that_before_an_unchecked_one() {
    let (sandbox, [unchecked, unsigned, verified]) = of_three();
    let ran = sandbox.run(["get", &core()]).expect(0);
    assert_eq!(ran.stdout, verified);
    for said in [&capture(&verified)[..], "3 captures", "signature verified, key id ci", "--capture"] {
        assert!(ran.stderr.contains(said), "{}", ran.stderr);
    }
    assert_eq!(sandbox.run(["get", &core()[..20]]).expect(0).stdout, verified);
    assert_eq!(sandbox.run(["get", "latest"]).expect(0).stdout, verified);
    assert_eq!(sandbox.run(["get", &core(), "--member", "run.rpk"]).expect(0).stdout, verified);
    sandbox.run(["get", &core(), "-o", "out"]).expect(0);
    assert_eq!(std::fs::read_to_string(sandbox.path("out")).unwrap(), verified);
    // Without the verified one.
    let sandbox = Sandbox::new();
    sandbox.write("a.rpk", &unchecked);
    sandbox.write("b.rpk", &unsigned);
    sandbox.run(["add", "a.rpk"]).expect(0);
    let alone = sandbox.run(["get", &core()]).expect(0);
    assert_eq!((alone.stdout, alone.stderr), (unchecked, String::new()));
    sandbox.run(["add", "b.rpk"]).expect(0);
    let ran = sandbox.run(["get", &core()]).expect(0);
    assert_eq!(ran.stdout, unsigned);
    assert!(ran.stderr.contains("2 captures") && ran.stderr.contains("not signed"), "{}", ran.stderr);
}

#[test]
fn among_equals_the_first_that_arrived_is_given_and_nothing_is_said() {
    let sandbox = Sandbox::new();
    let documents = [signed("a", "one"), signed("b", "two")];
    for (number, document) in documents.iter().enumerate() {
        let name = format!("{number}.rpk");
        sandbox.write(&name, document);
        sandbox.run(["add", &name]).expect(0);
    }
    let ran = sandbox.run(["get", &core()]).expect(0);
    assert_eq!((ran.stdout.as_str(), ran.stderr.as_str()), (documents[0].as_str(), ""));
    // A key for the second makes that the one.
    ring(&sandbox, "ring", &[("b", "two")]);
    sandbox.run(["index", "rebuild", "--signing-key-file", "ring"]).expect(0);
    assert_eq!(sandbox.run(["get", &core()]).expect(0).stdout, documents[1]);
    // A wrong one comes last.
    ring(&sandbox, "ring", &[("b", "other")]);
    sandbox.run(["index", "rebuild", "--signing-key-file", "ring"]).expect(1);
    let ran = sandbox.run(["get", &core()]).expect(0);
    assert_eq!(ran.stdout, documents[0]);
    assert!(ran.stderr.contains("signature not checked"), "{}", ran.stderr);
}

#[test]
fn the_hash_of_a_capture_gives_exactly_that_one() {
    let (sandbox, documents) = of_three();
    for document in &documents {
        let ran = sandbox.run(["get", &capture(document)]).expect(0);
        assert_eq!((ran.stdout.as_str(), ran.stderr.as_str()), (document.as_str(), ""));
        let hash = capture(document);
        let ran = sandbox.run(["get", &core(), "--capture", &hash[..20]]).expect(0);
        assert_eq!((ran.stdout.as_str(), ran.stderr.as_str()), (document.as_str(), ""));
    }
}

#[test]
fn everything_that_reads_an_artifact_reads_the_same_capture() {
    let (sandbox, [.., verified]) = of_three();
    // The signature, which no hash covers, tells which one is compared.
    let diff = sandbox.run(["diff", "--all", &core(), "2.rpk"]).expect(0);
    assert!(!diff.stdout.contains("signature"), "{}", diff.stdout);
    let diff = sandbox.run(["diff", "--all", &core(), "0.rpk"]);
    assert!(diff.stdout.contains("signature"), "{}", diff.stdout);
    // The library, with and without the short way.
    let vault = runvault::Vault::open(&sandbox.vault()).unwrap();
    let prefix: runvault::digest::DigestPrefix = core().parse().unwrap();
    let located = vault.locate(&prefix).unwrap();
    assert_eq!(located.capture.capture.to_string(), capture(&verified));
    assert_eq!(vault.get(&prefix).unwrap(), verified.as_bytes());
    assert_eq!(vault.read(&located).unwrap(), verified.as_bytes());
    assert!(vault.get_quickly(&prefix).unwrap().is_none());
    assert_eq!(
        ResolveRequest::new("latest").locate(&vault).unwrap().capture.capture.to_string(),
        capture(&verified)
    );
    vault.player(&located).unwrap();
    drop(vault);
    // Damage of the others does no harm, and damage of that one is not passed over.
    let damage = |document: &str| {
        let digest: runvault::digest::Digest = capture(document).parse().unwrap();
        let sql = "UPDATE payload SET bytes = zeroblob(length(bytes)) WHERE blob = (SELECT id FROM blob WHERE digest = ?1)";
        assert_eq!(crate::journal::sql(&sandbox).execute(sql, [digest.as_bytes()]).unwrap(), 1);
    };
    damage(&verified);
    sandbox.run(["get", &core()]).expect(2);
    sandbox.run(["replay", &core()]).expect(2);
}

#[test]
fn verify_checks_every_capture_that_is_in_the_vault() {
    let (sandbox, [unchecked, unsigned, verified]) = of_three();
    let ran = sandbox.run(["verify", &core(), "--signing-key-file", "ring"]).expect(0);
    assert_eq!(
        ran.stdout.matches("bytes intact, rules satisfied, core hash correct").count(),
        3,
        "{}",
        ran.stdout
    );
    for said in ["signature verified, key id ci", "not signed", "signature not checked, key id laptop"] {
        assert!(ran.stdout.contains(said), "{}", ran.stdout);
    }
    assert!(ran.stderr.contains("3 good, 0 bad"), "{}", ran.stderr);
    let lines = sandbox.run(["verify", "--json", &core(), "--signing-key-file", "ring"]).expect(0).json();
    let states: Vec<_> = lines.iter().map(|line| line["signature"].as_str().unwrap_or("-")).collect();
    assert_eq!(states, ["unchecked", "-", "verified"]);
    for (line, document) in lines.iter().zip([&unchecked, &unsigned, &verified]) {
        assert_eq!((&line["ok"], &line["kind"]), (&true.into(), &"rpk".into()));
        assert_eq!(line["capture_hash"], capture(document));
        assert_eq!((&line["core_hash"], &line["computed_core_hash"]), (&core().into(), &core().into()));
        assert_eq!(
            (&line["damage"], line["violations"].as_array().unwrap().len()),
            (&serde_json::Value::Null, 0)
        );
    }
    // Every way to name it; the hash of a capture stands for that one.
    sandbox.run(["tag", "set", &core(), "golden"]).expect(0);
    for (name, count) in [("@golden", 3), ("latest", 3), (&core()[..20], 3), (&capture(&unsigned), 1)] {
        assert_eq!(sandbox.run(["verify", "--json", name]).expect(0).json().len(), count, "{name}");
    }
    // With files, and under a policy.
    let ran = sandbox.run(["verify", "2.rpk", "@golden"]).expect(0);
    assert!(ran.stderr.contains("4 good, 0 bad"), "{}", ran.stderr);
    let required = ["verify", "@golden", "--require-signature", "--signing-key-file", "ring"];
    let ran = sandbox.run(required).expect(1);
    assert!(ran.stderr.contains("1 good, 2 bad"), "{}", ran.stderr);
    assert!(ran.stdout.contains("no key with the id \"laptop\" was given"), "{}", ran.stdout);
}

#[test]
fn verify_names_what_is_wrong_in_the_vault() {
    let (sandbox, [_, unsigned, _]) = of_three();
    ring(&sandbox, "ring", &[("ci", "other")]);
    let ran = sandbox.run(["verify", &core(), "--signing-key-file", "ring"]).expect(1);
    assert!(ran.stdout.contains("is not the signature of this content"), "{}", ran.stdout);
    assert!(ran.stderr.contains("2 good, 1 bad"), "{}", ran.stderr);
    let digest: runvault::digest::Digest = capture(&unsigned).parse().unwrap();
    let sql = "UPDATE payload SET bytes = zeroblob(length(bytes)) WHERE blob = (SELECT id FROM blob WHERE digest = ?1)";
    crate::journal::sql(&sandbox).execute(sql, [digest.as_bytes()]).unwrap();
    let ran = sandbox.run(["verify", &core()]).expect(1);
    assert!(ran.stdout.contains("the stored bytes are damaged"), "{}", ran.stdout);
    let lines = sandbox.run(["verify", "--json", &core()]).expect(1).json();
    let bad: Vec<_> = lines.iter().filter(|line| line["ok"] == false).collect();
    assert_eq!(bad.len(), 1);
    assert_eq!(bad[0]["capture_hash"], capture(&unsigned));
    assert!(bad[0]["damage"].is_string() && bad[0]["computed_core_hash"].is_null());
}

#[test]
fn a_file_that_exists_is_a_file_for_verify() {
    let (sandbox, [.., verified]) = of_three();
    let name = &core()["sha256:".len()..][..12];
    sandbox.write(name, &verified);
    sandbox.write("latest", &verified);
    for name in [name, "latest"] {
        let lines = sandbox.run(["verify", "--json", name]).expect(0).json();
        assert_eq!((lines.len(), &lines[0]["path"]), (1, &name.into()));
    }
    // What is neither is not bad: it could not be looked at.
    for (name, said) in [
        ("abcdef012345", "there is no file abcdef012345; nothing in the vault"),
        ("@nothing", "there is no file @nothing; there is no tag nothing"),
        ("missing.rpk", "missing.rpk"),
    ] {
        let ran = sandbox.run(["verify", name]).expect(2);
        assert!(ran.stderr.contains(said), "{}", ran.stderr);
    }
    let ran = sandbox.run(["--vault", "none.vault", "verify", "abcdef012345"]).expect(2);
    assert!(ran.stderr.contains("there is no file abcdef012345; there is no vault"), "{}", ran.stderr);
    sandbox.run(["verify", "--kind", "trace", &core()]).expect(1);
    // Files need no vault.
    sandbox.run(["--vault", "none.vault", "verify", "2.rpk"]).expect(0);
}

#[test]
fn verify_checks_packs_in_the_vault() {
    let sandbox = Sandbox::new();
    sandbox.add([repository("examples/pack")]);
    let ran = sandbox.run(["verify", "latest"]).expect(0);
    assert!(ran.stdout.contains("pack") && ran.stdout.contains("bytes intact"), "{}", ran.stdout);
}

//! Keys and card numbers in what is added and recorded: warnings, and refusals.

use std::ffi::OsString;

use serde_json::json;

use crate::sandbox::{Sandbox, repository, run_pack, session};

/// A key that no service issued, in parts.
fn key() -> String {
    ["sk-ant-", "api03-", &"aB3_dE6-gH9jK2mN5pQ8".repeat(3)].concat()
}

/// Number of artifacts in a vault.
fn count(sandbox: &Sandbox) -> usize {
    sandbox.run(["find", "--json", "--all-versions"]).expect(0).json().len()
}

#[test]
fn add_warns_of_secrets_and_never_prints_them() {
    let sandbox = Sandbox::new();
    sandbox.write("leak.json", session("a", &[("p", &format!("use {} please", key()))]));
    sandbox.write(
        "card.rpk",
        run_pack("r", &[json!({"type": "tool.response", "output": {"card": "4242 4242 4242 4242"}})]),
    );
    sandbox.write("clean.json", session("b", &[("p", "nothing here")]));
    let added = sandbox.run(["add", "leak.json", "card.rpk", "clean.json", "--json"]).expect(0);
    let warnings: Vec<&str> =
        added.stderr.lines().filter(|line| line.contains("looks like") || line.contains("(rule ")).collect();
    assert_eq!(warnings.len(), 2, "{}", added.stderr);
    let place = "leak.json: /interactions/0/response_content: an API key of Anthropic, beginning with sk-a (rule anthropic-api-key)";
    assert!(warnings[0].contains(place), "{}", warnings[0]);
    assert!(
        warnings[1]
            .contains("card.rpk: /payload/run/steps/0/output/card: a card number, beginning with 4242"),
        "{}",
        warnings[1]
    );
    let all = format!("{}{}", added.stdout, added.stderr);
    assert!(!all.contains(&key()[..12]) && !all.contains("4242 4242"), "{all}");
    let lines = added.json();
    assert_eq!(lines[0]["secrets"][0]["rule"], "anthropic-api-key");
    assert_eq!((lines[0]["outcome"].as_str(), lines[2].get("secrets")), (Some("added"), None));
    assert_eq!(count(&sandbox), 3);
    // What only reads does not look for them.
    for command in
        [&["verify", "leak.json"][..], &["fsck"], &["get", lines[0]["core_hash"].as_str().unwrap()]]
    {
        let ran = sandbox.run(command).expect(0);
        assert!(!ran.stderr.contains("anthropic-api-key"), "{}", ran.stderr);
    }
}

#[test]
fn refused_secrets_are_not_stored_anywhere() {
    let sandbox = Sandbox::new();
    let leak = sandbox.write("leak.json", session("a", &[("p", &key())]));
    sandbox.write("clean.json", session("b", &[("p", "nothing here")]));
    let refused = |ran: crate::sandbox::Ran| {
        assert!(ran.stderr.contains("rule SECRET") || ran.stderr.contains("SECRET"), "{}", ran.stderr);
        assert!(
            ran.stderr.contains("anthropic-api-key") && !ran.stderr.contains(&key()[..12]),
            "{}",
            ran.stderr
        );
    };
    refused(sandbox.run(["add", "leak.json", "clean.json", "--refuse-secrets"]).expect(1));
    assert_eq!(count(&sandbox), 1);
    refused(sandbox.run(["add", "leak.json", "--refuse-secrets", "--dry-run"]).expect(1));
    refused(sandbox.run(["watch", ".", "--once", "--settle", "0s", "--refuse-secrets"]).expect(1));
    // By the configuration file, and by the variable, which goes before it.
    sandbox.run(["config", "set", "refuse-secrets", "on"]).expect(0);
    refused(sandbox.run_on(&std::fs::read(&leak).unwrap(), &["add", "-"]).expect(1));
    let vault = std::fs::read(sandbox.vault()).unwrap();
    let secret = key();
    assert!(memchr::memmem::find(&vault, secret.as_bytes()).is_none());
    let mut command = sandbox.command();
    command.args(["add", "leak.json"]).env("RUNVAULT_REFUSE_SECRETS", "off");
    assert!(command.output().unwrap().status.success());
    assert_eq!(count(&sandbox), 2);
}

#[test]
fn secrets_in_packs_archives_and_files_beside_are_found() {
    let sandbox = Sandbox::new();
    let pack = sandbox.path("pack");
    std::fs::create_dir(&pack).unwrap();
    for entry in std::fs::read_dir(repository("examples/pack")).unwrap() {
        let entry = entry.unwrap();
        std::fs::copy(entry.path(), pack.join(entry.file_name())).unwrap();
    }
    sandbox.run(["add", "pack", "--refuse-secrets"]).expect(0);
    // A file beside a run that the run identifies by its digest.
    let secret = format!("token = {}", key());
    let digest = runvault::digest::Digest::from_content(secret.as_bytes());
    sandbox.write("beside/output.txt", &secret);
    let step =
        json!({"type": "tool.response", "output": {"path": "output.txt", "sha256": digest.to_string()}});
    sandbox.write("beside/run.rpk", run_pack("beside", &[step]));
    let before = count(&sandbox);
    let refused = sandbox.run(["add", "beside/run.rpk", "--refuse-secrets"]).expect(1);
    assert!(refused.stderr.contains("output.txt"), "{}", refused.stderr);
    assert_eq!(count(&sandbox), before);
    let added = sandbox.run(["add", "beside/run.rpk"]).expect(0);
    assert!(added.stderr.contains("output.txt line 1: an API key of Anthropic"), "{}", added.stderr);
    assert_eq!(count(&sandbox), before + 2);
}

/// Artifacts of the corpus and of another program contain digests, ids, times and text, and no secrets.
#[test]
fn nothing_in_real_artifacts_looks_like_a_secret() {
    let mut inputs: Vec<OsString> = vec![repository("examples").into(), repository("tests/corpus").into()];
    inputs.extend(std::env::var_os("RUNVAULT_REAL_RPK"));
    let mut seen = 0;
    for input in inputs {
        let mut waiting = vec![std::path::PathBuf::from(input)];
        while let Some(path) = waiting.pop() {
            if path.is_dir() {
                waiting.extend(std::fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
                continue;
            }
            let bytes = std::fs::read(&path).unwrap();
            let found = runvault::secrets::find(&bytes);
            // One shows what another program does about card numbers.
            let has_card = path.file_name().is_some_and(|name| name == "m5_source_unredacted.rpk");
            let rules: Vec<&str> = found.iter().map(|one| one.rule.as_str()).collect();
            assert_eq!(
                rules,
                if has_card { &["card-number"][..] } else { &[] },
                "{}: {found:?}",
                path.display()
            );
            seen += 1;
        }
    }
    assert!(seen > 100, "{seen}");
}

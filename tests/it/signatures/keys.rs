//! Where keys come from, and which of them checks a signature.

use std::path::Path;

use super::{ring, signed};
use crate::sandbox::{Ran, Sandbox, session};

/// Runs `verify --json` and gives the state of the signature, or the message of the violation.
fn verified(sandbox: &Sandbox, arguments: &[&str]) -> String {
    outcome(sandbox.run(["verify", "--json", "run.rpk"].iter().chain(arguments)))
}

#[expect(clippy::needless_pass_by_value, reason = "what ran is not looked at again")]
fn outcome(ran: Ran) -> String {
    let line = ran.json().remove(0);
    let violation = &line["violations"][0];
    match line["signature"].as_str() {
        Some(state) => format!("{state} {}", line["key_id"].as_str().unwrap()),
        None => {
            format!("{} {}", violation["rule_id"].as_str().unwrap(), violation["message"].as_str().unwrap())
        }
    }
}

fn with_variables(sandbox: &Sandbox, variables: &[(&str, &str)], arguments: &[&str]) -> Ran {
    let mut command = sandbox.command();
    command.args(arguments).envs(variables.iter().copied()).output().unwrap().into()
}

const WRONG: &str = "RPK5 is not the signature of this content under the given key";

#[test]
fn the_key_is_chosen_by_the_id_that_the_signature_states() {
    let sandbox = Sandbox::new();
    sandbox.write("run.rpk", signed("ci", "right"));
    ring(&sandbox, "ring", &[("ci", "right"), ("laptop", "other")]);
    ring(&sandbox, "swapped", &[("ci", "other"), ("laptop", "right")]);
    ring(&sandbox, "without", &[("laptop", "right")]);
    assert_eq!(verified(&sandbox, &["--signing-key-file", "ring"]), "verified ci");
    assert_eq!(verified(&sandbox, &["--signing-key-file", "swapped"]), WRONG);
    // A key with another id is not the key, whatever it would verify.
    assert_eq!(verified(&sandbox, &["--signing-key-file", "without"]), "unchecked ci");
    assert_eq!(verified(&sandbox, &[]), "unchecked ci");
}

#[test]
fn a_key_without_an_id_is_tried_for_every_signature() {
    let sandbox = Sandbox::new();
    sandbox.write("run.rpk", signed("ci", "right"));
    sandbox.write("key", "  right\n");
    sandbox.write("other", "other\n");
    ring(&sandbox, "ring", &[("laptop", "right")]);
    assert_eq!(verified(&sandbox, &["--signing-key-file", "key"]), "verified ci");
    assert_eq!(verified(&sandbox, &["--signing-key-file", "other"]), WRONG);
    assert_eq!(verified(&sandbox, &["--signing-key-file", "ring", "--signing-key-file", "other"]), WRONG);
    let several = ["--signing-key-file", "other", "--signing-key-file", "ring", "--signing-key-file", "key"];
    assert_eq!(verified(&sandbox, &several), "verified ci");
}

#[test]
fn an_old_and_a_new_key_may_have_one_id() {
    let sandbox = Sandbox::new();
    sandbox.write("run.rpk", signed("ci", "old"));
    ring(&sandbox, "a", &[("ci", "new")]);
    ring(&sandbox, "b", &[("ci", "old")]);
    assert_eq!(verified(&sandbox, &["--signing-key-file", "a"]), WRONG);
    assert_eq!(verified(&sandbox, &["--signing-key-file", "a", "--signing-key-file", "b"]), "verified ci");
}

#[test]
fn a_required_signature_must_be_by_a_key_of_the_ring() {
    let sandbox = Sandbox::new();
    sandbox.write("run.rpk", signed("c\u{1b}[2Ji", "right"));
    ring(&sandbox, "ring", &[("laptop", "other")]);
    let arguments = ["verify", "run.rpk", "--require-signature", "--signing-key-file", "ring"];
    let ran = sandbox.run(arguments).expect(1);
    assert!(ran.stdout.contains("no key with the id") && ran.stdout.contains("RPK5"), "{}", ran.stdout);
    assert!(ran.stdout.contains("[2Ji") && !ran.stdout.contains('\u{1b}'), "{}", ran.stdout);
    sandbox.write("ring", "[keys]\n\"c\\u001b[2Ji\" = 'right'\n");
    let ran = sandbox.run(arguments).expect(0);
    assert!(ran.stdout.contains("signature verified") && !ran.stdout.contains('\u{1b}'), "{}", ran.stdout);
    // Without a key, it is enough that there is one; that is said.
    let ran = sandbox.run(["verify", "run.rpk", "--require-signature"]).expect(0);
    assert!(ran.stderr.contains("not checked, because no signing key was given"), "{}", ran.stderr);
}

#[test]
fn in_a_directory_of_keys_names_are_ids() {
    let sandbox = Sandbox::new();
    sandbox.write("run.rpk", signed("ci", "right"));
    sandbox.write("keys/ci.key", "right");
    sandbox.write("keys/laptop", "other");
    // Where systems mount secrets, hidden links lead to them.
    sandbox.write("keys/..data/ci", "other");
    assert_eq!(verified(&sandbox, &["--signing-key-file", "keys"]), "verified ci");
    ring(&sandbox, "keys/team.toml", &[("team/1", "third")]);
    sandbox.write("run.rpk", signed("team/1", "third"));
    assert_eq!(verified(&sandbox, &["--signing-key-file", "keys"]), "verified team/1");
    sandbox.write("keys/more/ci", "right");
    let ran = sandbox.run(["verify", "run.rpk", "--signing-key-file", "keys"]).expect(2);
    assert!(ran.stderr.contains("more: it is not a file"), "{}", ran.stderr);
    std::fs::create_dir(sandbox.path("empty")).unwrap();
    let ran = sandbox.run(["verify", "run.rpk", "--signing-key-file", "empty"]).expect(3);
    assert!(ran.stderr.contains("the directory has no keys"), "{}", ran.stderr);
}

#[test]
fn variables_and_the_setting_name_several_paths_or_a_directory() {
    let sandbox = Sandbox::new();
    sandbox.write("run.rpk", signed("ci", "right"));
    sandbox.write("keys/ci", "right");
    ring(&sandbox, "ring", &[("laptop", "other")]);
    let verify = ["verify", "--json", "run.rpk"];
    let list = std::env::join_paths([Path::new("ring"), Path::new("keys")]).unwrap().into_string().unwrap();
    let check = |variables: &[(&str, &str)], expected: &str| {
        assert_eq!(outcome(with_variables(&sandbox, variables, &verify)), expected);
    };
    check(&[("RUNVAULT_SIGNING_KEY_FILE", "keys")], "verified ci");
    check(&[("RUNVAULT_SIGNING_KEY_FILE", &list)], "verified ci");
    check(&[("RUNVAULT_SIGNING_KEY_FILE", "ring")], "unchecked ci");
    check(&[("RUNVAULT_SIGNING_KEY", "right")], "verified ci");
    check(&[("RUNVAULT_SIGNING_KEY", "[keys]\nci = 'right'\n")], "verified ci");
    check(&[("RUNVAULT_SIGNING_KEY", "other"), ("RUNVAULT_SIGNING_KEY_FILE", "keys")], WRONG);
    sandbox.run(["config", "set", "signing-key-file", &list]).expect(0);
    check(&[], "verified ci");
    let told = sandbox.run(["config", "get", "signing-key-file"]).expect(0).stdout;
    let absolute = std::env::join_paths([sandbox.path("ring"), sandbox.path("keys")]).unwrap();
    assert_eq!(told.trim_end(), absolute.to_str().unwrap());
    // In the file, relative paths are so to its directory.
    sandbox.write("config.toml", format!("signing-key-file = {list:?}\n"));
    let told = sandbox.run(["config", "get", "signing-key-file"]).expect(0).stdout;
    assert_eq!(told.trim_end(), absolute.to_str().unwrap());
    check(&[], "verified ci");
}

#[test]
fn keys_are_read_up_to_a_limit() {
    let sandbox = Sandbox::new();
    sandbox.write("run.rpk", signed("ci", "right"));
    let refused = |arguments: &[&str], status: i32, why: &str| {
        let ran = sandbox.run(["verify", "run.rpk"].iter().chain(arguments)).expect(status);
        assert!(ran.stderr.contains(why) && ran.stderr.len() < 400, "{}", ran.stderr);
    };
    sandbox.write("long", "k".repeat(8 << 10));
    sandbox.write("too-long", "k".repeat((8 << 10) + 1));
    sandbox.run(["verify", "run.rpk", "--signing-key-file", "long"]).expect(1);
    refused(&["--signing-key-file", "too-long"], 3, "the signing key has more than 8192 bytes");
    sandbox.write("huge", format!("[keys]\n{}", "#".repeat(1 << 20)));
    refused(&["--signing-key-file", "huge"], 2, "it has more than 1048576 bytes");
    for number in 0..140 {
        sandbox.write(&format!("keys/{number}"), "k".repeat(8 << 10));
    }
    refused(&["--signing-key-file", "keys"], 2, "it and the keys before it have more than 1048576 bytes");
    for number in 0..=10_000 {
        sandbox.write(&format!("many/{number}"), "k");
    }
    refused(&["--signing-key-file", "many"], 2, "it has more than 10000 files");
}

#[cfg(unix)]
#[test]
fn a_file_and_a_pipe_without_end_are_errors() {
    use std::io::Write;
    let sandbox = Sandbox::new();
    sandbox.write("run.rpk", signed("ci", "right"));
    let ran = sandbox.run(["verify", "run.rpk", "--signing-key-file", "/dev/zero"]).expect(2);
    assert!(ran.stderr.contains("it has more than 1048576 bytes"), "{}", ran.stderr);
    let made = std::process::Command::new("mkfifo").arg(sandbox.path("pipe")).status().unwrap();
    assert!(made.success());
    let path = sandbox.path("pipe");
    let writer = std::thread::spawn(move || {
        let mut pipe = std::fs::OpenOptions::new().write(true).open(path).unwrap();
        // Until the reader closes it.
        while pipe.write_all(&[b'k'; 4096]).is_ok() {}
    });
    let ran = sandbox.run(["verify", "run.rpk", "--signing-key-file", "pipe"]).expect(2);
    assert!(ran.stderr.contains("it has more than 1048576 bytes"), "{}", ran.stderr);
    writer.join().unwrap();
}

#[test]
fn no_message_has_a_key_in_it() {
    let sandbox = Sandbox::new();
    sandbox.write("good.json", session("a", &[]));
    sandbox.write("run.rpk", signed("ci", "S3CRET"));
    sandbox.write("unquoted", "[keys]\nci = S3CRET\n");
    sandbox.write("twice", "[keys]\nci = 'S3CRET'\nci = 'S3CRET2'\n");
    sandbox.write("typed", "[keys]\nci = ['S3CRET']\n");
    sandbox.write("long", format!("[keys]\nci = '{}'\n", "S3CRET".repeat(2000)));
    sandbox.write("binary", b"S3CRET\xff");
    sandbox.write("wrong", "S3CRET-other");
    for (name, status) in
        [("unquoted", 3), ("twice", 3), ("typed", 3), ("long", 3), ("binary", 2), ("wrong", 1)]
    {
        for arguments in [
            &["verify", "run.rpk"][..],
            &["verify", "run.rpk", "--json"],
            &["add", "run.rpk", "-v"],
            &["add", "run.rpk", "--require-signature"],
        ] {
            let ran = sandbox.run(arguments.iter().chain(&["--signing-key-file", name])).expect(status);
            assert!(!ran.stderr.contains("S3CRET") && !ran.stdout.contains("S3CRET"), "{}", ran.stderr);
        }
    }
    let ran = sandbox.run(["verify", "run.rpk", "--signing-key-file", "unquoted"]).expect(3);
    assert!(ran.stderr.contains("unquoted line 2: invalid TOML"), "{}", ran.stderr);
    let ran =
        with_variables(&sandbox, &[("RUNVAULT_SIGNING_KEY", "[keys]\nS3CRET\n")], &["verify", "run.rpk"]);
    let ran = ran.expect(3);
    assert!(
        ran.stderr.contains("RUNVAULT_SIGNING_KEY line 2") && !ran.stderr.contains("S3CRET"),
        "{}",
        ran.stderr
    );
}

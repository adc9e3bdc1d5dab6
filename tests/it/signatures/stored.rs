//! What the vault remembers of signatures, where that is shown, and how it is computed again.

use super::{capture, core, journalled, ring, shown, signed, state};
use crate::sandbox::{Sandbox, repository, session};

fn keys(sandbox: &Sandbox) -> [&'static str; 2] {
    ring(sandbox, "ring", &[("ci", "right")]);
    ["--signing-key-file", "ring"]
}

fn run(sandbox: &Sandbox, arguments: &[&str], keys: &[&str]) -> crate::sandbox::Ran {
    sandbox.run(arguments.iter().chain(keys))
}

#[test]
fn the_state_of_every_capture_is_stored_and_shown() {
    let sandbox = Sandbox::new();
    let keys = keys(&sandbox);
    let documents = [signed("ci", "right"), signed("laptop", "other")];
    sandbox.write("verified.rpk", &documents[0]);
    sandbox.write("unchecked.rpk", &documents[1]);
    sandbox.write("unsigned.rpk", std::fs::read(repository("examples/run.rpk")).unwrap());
    for (file, said) in [
        ("verified.rpk", "  signature verified, key id ci\n"),
        ("unsigned.rpk", "  not signed\n"),
        ("unchecked.rpk", "  signature not checked, key id laptop\n"),
    ] {
        let ran = run(&sandbox, &["add", "-v", file], &keys).expect(0);
        assert!(ran.stdout.ends_with(said), "{}", ran.stdout);
        let ran = run(&sandbox, &["add", file], &keys).expect(0);
        assert_eq!(ran.stdout, "", "nothing of signatures without -v");
    }
    let states: Vec<_> = shown(&sandbox).into_iter().map(|(_, state, key_id)| (state, key_id)).collect();
    let id = |id: &str| Some(id.to_owned());
    assert_eq!(
        states,
        [
            ("verified".to_owned(), id("ci")),
            ("unsigned".to_owned(), None),
            ("unchecked".to_owned(), id("laptop"))
        ]
    );
    let text = sandbox.run(["show", &core()]).expect(0).stdout;
    for said in ["signature verified, key id ci", "not signed", "signature not checked, key id laptop"] {
        assert!(text.contains(said), "{text}");
    }
    let columns = sandbox.run(["find", "runs", "--columns", "kind,signature,key_id"]).expect(0).stdout;
    assert_eq!(columns.trim_end(), "run pack verified, unsigned, unchecked ci, laptop");
    let filled = sandbox.run(["find", "runs", "--format", "{{signature}}|{{key_id}}"]).expect(0).stdout;
    assert_eq!(filled, "verified, unsigned, unchecked|ci, laptop\n");
    let sql = "SELECT signature, key_id FROM captures ORDER BY signature";
    let rows = sandbox.run(["sql", sql, "--json"]).expect(0).stdout;
    assert!(rows.contains("\"verified\"") && rows.contains("\"laptop\""), "{rows}");
    let lines = run(&sandbox, &["add", "--json", "verified.rpk", "unsigned.rpk"], &keys).expect(0).json();
    assert_eq!((&lines[0]["signature"], &lines[0]["key_id"]), (&"verified".into(), &"ci".into()));
    assert!(lines[1]["signature"].is_null());
    // What cannot be signed is not said to be unsigned.
    let [session] = sandbox.add([sandbox.write("s.json", session("a", &[]))]).try_into().unwrap();
    assert!(!sandbox.run(["show", &session]).expect(0).stdout.contains("sign"));
}

#[test]
fn find_filters_by_key_and_by_state() {
    let sandbox = Sandbox::new();
    let keys = keys(&sandbox);
    let verified = signed("ci", "right");
    sandbox.write("verified.rpk", &verified);
    let other = repository("examples/run.rpk");
    let other = std::fs::read_to_string(other).unwrap();
    // Another run: its checksum and hashes do not cover the signature, so it needs one of its own.
    let bundle = repository("tests/corpus/rpk/signed-good.rpk");
    let other_core = serde_json::from_slice::<serde_json::Value>(&std::fs::read(&bundle).unwrap()).unwrap();
    let other_core = other_core["checksum"].as_str().unwrap().to_owned();
    let session = sandbox.write("s.json", session("a", &[]));
    run(&sandbox, &["add", "verified.rpk", bundle.to_str().unwrap(), session.to_str().unwrap()], &keys)
        .expect(0);
    let found = |arguments: &[&str]| {
        let ran = sandbox.run(["find", "runs", "--json"].iter().chain(arguments));
        let mut cores: Vec<String> =
            ran.json().iter().map(|line| line["core_hash"].as_str().unwrap().to_owned()).collect();
        cores.sort_unstable();
        cores
    };
    assert_eq!(found(&["--signed-by", "ci"]), [core()]);
    assert_eq!(found(&["--signed-by", "default"]), [""; 0]);
    assert_eq!(found(&["--signature", "verified"]), [core()]);
    assert_eq!(found(&["--signature", "unchecked"]), [other_core]);
    assert_eq!(found(&["--signature", "unsigned"]), [""; 0]);
    assert_eq!(found(&["--signature", "wrong"]), [""; 0]);
    sandbox.add([sandbox.write("unsigned.rpk", other)]);
    assert_eq!(found(&["--signature", "unsigned", "--signed-by", "ci"]), [core()]);
    let line = sandbox.run(["find", "--json", "--signed-by", "ci"]).expect(0).json().remove(0);
    let place = &line["matches"][0];
    assert_eq!(place["capture_hash"], capture(&verified));
    assert_eq!((&place["signature"], &place["key_id"]), (&"verified".into(), &"ci".into()));
    let text = sandbox.run(["find", "--signed-by", "ci"]).expect(0).stdout;
    assert!(text.contains("signature verified, key id ci"), "{text}");
    sandbox.run(["find", "--signature", "perhaps"]).expect(3);
}

#[test]
fn a_wrong_signature_is_rejected_where_there_is_a_key_for_it_and_changes_nothing() {
    let sandbox = Sandbox::new();
    let keys = keys(&sandbox);
    let forged = signed("ci", "other");
    sandbox.write("forged.rpk", &forged);
    run(&sandbox, &["add", "forged.rpk"], &keys).expect(1);
    assert!(sandbox.run(["find"]).expect(1).stdout.is_empty());
    // Without a key, the state is unknown.
    run(&sandbox, &["add", "forged.rpk"], &[]).expect(0);
    assert_eq!(state(&sandbox), "unchecked");
    run(&sandbox, &["add", "forged.rpk"], &keys).expect(1);
    assert_eq!(state(&sandbox), "unchecked");
    assert_eq!(journalled(&sandbox).len(), 1);
}

#[test]
fn adding_it_again_with_the_key_records_that_it_was_verified_and_without_forgets_nothing() {
    let sandbox = Sandbox::new();
    let keys = keys(&sandbox);
    let document = signed("ci", "right");
    sandbox.write("run.rpk", &document);
    run(&sandbox, &["add", "run.rpk"], &[]).expect(0);
    assert_eq!(state(&sandbox), "unchecked");
    run(&sandbox, &["add", "run.rpk"], &keys).expect(0);
    assert_eq!(state(&sandbox), "verified");
    for _ in 0..2 {
        run(&sandbox, &["add", "run.rpk"], &[]).expect(0);
        run(&sandbox, &["add", "run.rpk"], &keys).expect(0);
        assert_eq!(state(&sandbox), "verified");
    }
    let entry = |state: &str| (capture(&document), state.to_owned(), "ci".to_owned());
    assert_eq!(journalled(&sandbox), [entry("unchecked"), entry("verified")]);
    // A dry run records nothing.
    let sandbox = Sandbox::new();
    sandbox.write("run.rpk", &document);
    run(&sandbox, &["add", "run.rpk"], &[]).expect(0);
    let ring = self::keys(&sandbox);
    run(&sandbox, &["add", "--dry-run", "run.rpk"], &ring).expect(0);
    assert_eq!(state(&sandbox), "unchecked");
}

#[test]
fn reindex_with_keys_checks_again_and_without_keys_forgets_nothing() {
    let sandbox = Sandbox::new();
    let keys = keys(&sandbox);
    sandbox.write("run.rpk", signed("ci", "right"));
    run(&sandbox, &["add", "run.rpk"], &[]).expect(0);
    run(&sandbox, &["index", "rebuild"], &[]).expect(0);
    assert_eq!(state(&sandbox), "unchecked");
    let ran = run(&sandbox, &["index", "rebuild"], &keys).expect(0);
    assert!(ran.stderr.contains("signatures: 1 verified, 0 not checked, 0 wrong"), "{}", ran.stderr);
    assert_eq!(state(&sandbox), "verified");
    run(&sandbox, &["index", "rebuild"], &[]).expect(0);
    ring(&sandbox, "laptop", &[("laptop", "right")]);
    run(&sandbox, &["index", "rebuild", "--signing-key-file", "laptop"], &[]).expect(0);
    assert_eq!(state(&sandbox), "verified");
    // The key was another one after all.
    ring(&sandbox, "other", &[("ci", "other")]);
    let ran = run(&sandbox, &["index", "rebuild", "--signing-key-file", "other"], &[]).expect(1);
    assert!(ran.stdout.starts_with("wrong-signature capture sha256:"), "{}", ran.stdout);
    assert!(ran.stderr.contains("signatures: 0 verified, 0 not checked, 1 wrong"), "{}", ran.stderr);
    assert_eq!(state(&sandbox), "wrong");
    assert_eq!(sandbox.run(["find", "--signature", "wrong", "--json"]).expect(0).json().len(), 1);
    let states: Vec<String> = journalled(&sandbox).into_iter().map(|(_, state, _)| state).collect();
    assert_eq!(states, ["unchecked", "verified", "wrong"]);
    run(&sandbox, &["index", "rebuild"], &keys).expect(0);
    assert_eq!(state(&sandbox), "verified");
}

#[test]
fn the_journal_has_an_entry_for_each_change_in_the_transaction_of_the_addition() {
    let sandbox = Sandbox::new();
    let keys = keys(&sandbox);
    let document = signed("ci", "right");
    sandbox.write("d/run.rpk", &document);
    sandbox.write("d/unsigned.rpk", std::fs::read(repository("examples/run.rpk")).unwrap());
    sandbox.write("d/s.json", session("a", &[]));
    run(&sandbox, &["--actor", "kim", "add", "d"], &keys).expect(0);
    let log = sandbox.run(["log", "--json"]).expect(0).json();
    let actions: Vec<&str> = log.iter().map(|line| line["entry"]["action"].as_str().unwrap()).collect();
    // Only what is signed has one, right after its addition.
    assert_eq!(actions, ["add", "signature", "add", "add"]);
    assert_eq!(log[0]["entry"]["at"], log[1]["entry"]["at"]);
    let connection = crate::journal::sql(&sandbox);
    let text: String =
        connection.query_row("SELECT entry FROM journal WHERE seq = 2", [], |row| row.get(0)).unwrap();
    let at = log[1]["entry"]["at"].as_str().unwrap();
    let (core, capture) = (core(), capture(&document));
    assert_eq!(
        text,
        format!(
            "{{\"action\":\"signature\",\"actor\":\"kim\",\"at\":\"{at}\",\"capture\":\"{capture}\",\"core\":\"{core}\",\
             \"key_id\":\"ci\",\"state\":\"verified\"}}"
        )
    );
    let text = sandbox.run(["log", "--action", "signature"]).expect(0).stdout;
    assert!(text.contains("verified, key id ci"), "{text}");
}

#[test]
fn a_key_id_that_no_key_can_have_is_not_kept() {
    let sandbox = Sandbox::new();
    sandbox.write("key", "right");
    sandbox.write("run.rpk", signed(&"i".repeat(100_000), "right"));
    run(&sandbox, &["add", "run.rpk"], &["--signing-key-file", "key"]).expect(0);
    let shown = shown(&sandbox).remove(0);
    assert_eq!((shown.1.as_str(), shown.2), ("verified", None));
    assert_eq!(journalled(&sandbox)[0].2, "");
    sandbox.run(["fsck"]).expect(0);
}

#[test]
fn what_is_removed_and_comes_again_is_checked_again() {
    let sandbox = Sandbox::new();
    let keys = keys(&sandbox);
    sandbox.write("run.rpk", signed("ci", "right"));
    run(&sandbox, &["add", "run.rpk"], &keys).expect(0);
    sandbox.run(["rm", &core(), "--force"]).expect(0);
    let count: i64 = crate::journal::sql(&sandbox)
        .query_row("SELECT count(*) FROM signature", [], |row| row.get(0))
        .unwrap();
    assert_eq!(count, 0);
    run(&sandbox, &["add", "--allow-removed", "run.rpk"], &[]).expect(0);
    assert_eq!(state(&sandbox), "unchecked");
    sandbox.run(["fsck"]).expect(0);
}

#[test]
fn an_import_checks_again_and_believes_no_bundle() {
    let sandbox = Sandbox::new();
    let keys = keys(&sandbox);
    sandbox.write("run.rpk", signed("ci", "right"));
    run(&sandbox, &["add", "run.rpk"], &keys).expect(0);
    sandbox.run(["export", "--all", "-o", "a.rvz"]).expect(0);
    let vault = |name: &'static str, arguments: &[&'static str], status: i32| {
        sandbox.run(["--vault", name, "import", "--create", "a.rvz"].iter().chain(arguments)).expect(status);
        let find = ["--vault", name, "find", "--format", "{{signature}}"];
        sandbox.run(find).stdout.trim_end().to_owned()
    };
    assert_eq!(vault("b.vault", &[], 0), "unchecked");
    assert_eq!(vault("b.vault", &keys, 0), "verified");
    assert_eq!(vault("b.vault", &[], 0), "verified");
    ring(&sandbox, "other", &[("ci", "other")]);
    ring(&sandbox, "laptop", &[("laptop", "x")]);
    assert_eq!(vault("c.vault", &["--signing-key-file", "laptop"], 0), "unchecked");
    let refused = vault("d.vault", &["--signing-key-file", "other"], 1);
    assert_eq!(refused, "");
    let required = vault("e.vault", &["--signing-key-file", "laptop", "--require-signature"], 1);
    assert_eq!(required, "");
}

#[test]
fn a_backup_has_what_the_vault_knows_of_signatures() {
    let sandbox = Sandbox::new();
    let keys = keys(&sandbox);
    sandbox.write("run.rpk", signed("ci", "right"));
    run(&sandbox, &["add", "run.rpk"], &keys).expect(0);
    sandbox.run(["backup", "copy.vault"]).expect(0);
    let find = ["--vault", "copy.vault", "find", "--signed-by", "ci", "--format", "{{core}}"];
    assert_eq!(sandbox.run(find).expect(0).stdout.trim_end(), core());
}

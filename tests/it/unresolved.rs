//! References to missing artifacts: which of them are listed.

use crate::sandbox::{Ran, Sandbox};

fn digest(text: &str) -> String {
    runvault::digest::Digest::from_content(text.as_bytes()).to_string()
}

/// A vault with a session that refers to things by names that say what they are.
pub(crate) fn referring() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.add([sandbox.write("s.json", session())]);
    let trace = crate::sandbox::repository("examples/trace.ndjson");
    sandbox.add([trace]);
    sandbox
}

/// A session that refers to what no vault of the tests has.
pub(crate) fn session() -> String {
    let session = serde_json::json!({
        "model_io_schema_version": "1.0.0", "adapter_id": "a", "model_id": "m", "mode": "record", "interactions": [],
        "metadata": {
            "contract": digest("a contract"), "parent": digest("a session"),
            "output_schema_hash": digest("a schema"), "proposalHash": digest("a proposal"),
            "tools": [digest("a tool")],
        },
    });
    session.to_string()
}

fn missing(ran: &Ran) -> Vec<String> {
    let line =
        |line: &serde_json::Value| line["digest"].as_str().or(line["name"].as_str()).unwrap().to_owned();
    ran.json().iter().map(line).collect()
}

#[test]
fn what_no_kind_stores_is_left_out_unless_it_is_asked_for() {
    let sandbox = referring();
    let stored = [digest("a contract"), digest("a session")];
    let listed = missing(&sandbox.run(["unresolved", "--json"]).expect(0));
    assert!(stored.iter().all(|digest| listed.contains(digest)), "{listed:?}");
    let others = [digest("a schema"), digest("a proposal"), digest("a tool")];
    assert!(!others.iter().any(|digest| listed.contains(digest)), "{listed:?}");
    let note = sandbox.run(["unresolved"]).expect(0).stderr;
    assert!(note.contains("3 references to objects that are not artifacts omitted"), "{note}");
    let all = missing(&sandbox.run(["unresolved", "--all", "--json"]).expect(0));
    assert!(stored.iter().chain(&others).all(|digest| all.contains(digest)), "{all:?}");
    assert!(!sandbox.run(["unresolved", "--all"]).expect(0).stderr.contains("omitted"));
}

#[test]
fn references_are_filtered_by_role_and_kind() {
    let sandbox = referring();
    let all = missing(&sandbox.run(["unresolved", "--json"]).expect(0));
    let names = missing(&sandbox.run(["unresolved", "--role", "records-run", "--json"]).expect(0));
    let digests = missing(&sandbox.run(["unresolved", "--role", "reference", "--json"]).expect(0));
    assert!(!names.is_empty() && names.iter().all(|name| name.starts_with("run:")), "{names:?}");
    assert!(!digests.is_empty() && digests.iter().all(|digest| digest.starts_with("sha256:")), "{digests:?}");
    assert_eq!([digests, names].concat(), all);
    let of = |kind: &str| missing(&sandbox.run(["unresolved", "--kind", kind, "--json"]).expect(0));
    assert_eq!(
        of("trace"),
        missing(&sandbox.run(["unresolved", "--role", "records-run", "--json"]).expect(0))
    );
    assert_eq!([of("model_io"), of("trace")].concat(), all);
    assert!(of("pack").is_empty());
    sandbox.run(["unresolved", "--kind", "nothing"]).expect(3);
}

#[test]
fn a_reference_is_listed_whenever_its_artifact_is_not_in_the_vault() {
    let sandbox = Sandbox::new();
    let contract = "sha256:5c496a37feba41e0f32d5f4abd4443376f9c83b122c1927efeef1c88a1153264";
    let text = session().replace(&digest("a contract"), contract);
    sandbox.add([sandbox.write("s.json", text)]);
    let file = crate::sandbox::repository("examples/contract.yaml");
    let is_listed = || {
        assert_eq!(sandbox.run(["fsck"]).expect(0).stdout, "");
        missing(&sandbox.run(["unresolved", "--json"]).expect(0)).iter().any(|digest| digest == contract)
    };
    assert!(is_listed());
    sandbox.add([file.clone()]);
    assert!(!is_listed());
    sandbox.run(["rm", contract, "--force"]).expect(0);
    assert!(is_listed());
    sandbox.run(["index", "rebuild"]).expect(0);
    assert!(is_listed());
    sandbox.run(["add".as_ref(), "--allow-removed".as_ref(), file.as_os_str()]).expect(0);
    assert!(!is_listed());
    // A list that cannot be read is no reason to keep its artifact, or its row.
    let change = "UPDATE mention_list SET bytes = x'ff' WHERE capture = 1";
    crate::fsck::sql(&sandbox).execute_batch(change).unwrap();
    sandbox.run(["rm", "latest~1", "--force"]).expect(0);
    assert!(!is_listed());
}

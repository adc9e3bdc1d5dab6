//! The shipped examples: one run with its sessions, traces and contract, whatever arrives first.

use runvault::Vault;
use runvault::digest::CoreHash;
use runvault::intake::Input;
use runvault::vault::audit::AuditRequest;
use runvault::vault::forks::ForksRequest;
use runvault::vault::links::LinksRequest;
use runvault::vault::path::PathRequest;
use runvault::vault::unresolved::UnresolvedRequest;
use serde_json::{Value, json};

use crate::sandbox::{Sandbox, repository, session};

const FILES: [&str; 5] = ["contract.yaml", "run.rpk", "session.json", "trace.ndjson", "pack"];

/// Every order of the numbers below `count`.
fn orders(count: usize) -> Vec<Vec<usize>> {
    if count == 0 {
        return vec![vec![]];
    }
    let shorter = orders(count - 1);
    let with = |order: &Vec<usize>, at: usize| {
        let mut order = order.clone();
        order.insert(at, count - 1);
        order
    };
    shorter.iter().flat_map(|order| (0..count).map(move |at| with(order, at))).collect()
}

/// Adds a file of the examples. A pack comes before what it contains.
fn add(vault: &Vault, file: &str) -> CoreHash {
    let (outcome, added) = crate::faults::add(vault, vec![Input::Path(repository("examples").join(file))]);
    assert_eq!(outcome.unwrap().rejected, 0);
    added.0[0]
}

/// What depends on all artifacts, without the times at which they were added.
fn answers(vault: &Vault, cores: &[CoreHash; 5]) -> Vec<Value> {
    let [contract, _, _, _, pack] = *cores;
    let links = |artifact: CoreHash, depth: u8| -> LinksRequest {
        serde_json::from_value(json!({"artifact": artifact, "depth": depth})).unwrap()
    };
    let mut answers: Vec<Value> =
        cores.iter().map(|core| json!(vault.run(&links(*core, 1)).unwrap())).collect();
    answers.extend([
        json!(vault.run(&links(contract, 4)).unwrap()),
        json!(vault.run(&PathRequest { from: contract, to: pack, coincident: false }).unwrap()),
        json!(vault.run(&UnresolvedRequest::default()).unwrap()),
        json!(vault.run(&ForksRequest::default()).unwrap()),
    ]);
    for run in [None, Some(pack)] {
        let audit = AuditRequest { contract, run, limit: None, after: None };
        answers.push(json!(vault.run(&audit).unwrap()));
    }
    answers.into_iter().map(crate::engines::timeless).collect()
}

#[test]
fn answers_do_not_depend_on_the_order_of_arrival() {
    let mut of_orders = Vec::new();
    for order in orders(FILES.len()) {
        let sandbox = Sandbox::new();
        let vault = Vault::open(&sandbox.vault()).unwrap();
        let mut cores = [None; 5];
        for number in order {
            cores[number] = Some(add(&vault, FILES[number]));
        }
        of_orders.push(answers(&vault, &cores.map(Option::unwrap)));
    }
    assert_eq!(of_orders.len(), 120);
    assert!(of_orders.iter().all(|answers| *answers == of_orders[0]));
}

#[test]
fn answers_are_printed_alike_in_either_order() {
    let printed = [[0, 1, 2, 3, 4], [4, 3, 2, 1, 0]].map(|order| {
        let sandbox = Sandbox::new();
        let mut cores = [const { String::new() }; 5];
        for number in order {
            cores[number] = sandbox.add([repository("examples").join(FILES[number])]).remove(0);
        }
        let core = |number: usize| cores[number].as_str();
        let mut printed = String::new();
        for arguments in [
            &["links", core(0)][..],
            &["links", core(1)],
            &["links", core(2)],
            &["links", core(3)],
            &["links", core(4)],
            &["links", "--depth", "4", core(0)],
            &["path", core(0), core(4)],
            &["unresolved"],
            &["forks"],
            &["audit", core(0)],
            &["audit", core(0), core(4)],
        ] {
            let ran = sandbox.run(arguments);
            printed += &format!("{}{}", ran.stdout, ran.stderr);
        }
        printed
    });
    assert_eq!(printed[0], printed[1]);
    insta::assert_snapshot!("answers", printed[0]);
}

#[test]
fn unresolved_links_resolve_when_their_target_arrives() {
    let sandbox = Sandbox::new();
    let run = sandbox.add([repository("examples/run.rpk")]).remove(0);
    insta::assert_snapshot!("links_unresolved", sandbox.run(["links", &run]).expect(0).stdout);
    let unresolved = |sandbox: &Sandbox| {
        let links = sandbox.run(["links", "--json", &run]).expect(0).json();
        links.iter().filter(|link| link["dangling"] == true).count()
    };
    assert_eq!(unresolved(&sandbox), 2);
    sandbox.add([repository("examples/contract.yaml"), repository("examples/session.json")]);
    assert_eq!(unresolved(&sandbox), 0);
}

#[test]
fn two_histories_of_one_run_are_a_fork() {
    let sandbox = Sandbox::new();
    let text = std::fs::read_to_string(repository("examples/trace.ndjson")).unwrap();
    let original = sandbox.add([repository("examples/trace.ndjson")]).remove(0);
    // The last record is rewritten, with a hash that is right again.
    let (history, last) = text.trim_end().rsplit_once('\n').unwrap();
    let mut record: serde_json::Value = serde_json::from_str(last).unwrap();
    record["result"]["step"] = "Close".into();
    record.as_object_mut().unwrap().remove("record_hash");
    let hash = runvault::digest::Digest::from_content(record.to_string().as_bytes()).hex();
    record["record_hash"] = hash.into();
    let rewritten =
        sandbox.add([sandbox.write("rewritten.ndjson", format!("{history}\n{record}\n"))]).remove(0);
    for (one, other) in [(&original, &rewritten), (&rewritten, &original)] {
        let links = sandbox.run(["links", "--json", one]).expect(0).json();
        let fork = links.iter().find(|link| link["relation"] == "forks").unwrap();
        assert_eq!(
            (&fork["core_hash"], &fork["because"]),
            (&other.as_str().into(), &"same header, different record 3".into())
        );
    }
}

/// The core hashes of the shipped examples, by file name.
pub(crate) fn examples(sandbox: &Sandbox) -> impl Fn(&str) -> String + use<> {
    let lines =
        sandbox.run(["add".as_ref(), "--json".as_ref(), repository("examples").as_os_str()]).expect(0).json();
    move |name: &str| {
        let line = lines.iter().find(|line| line["path"].as_str().unwrap().ends_with(name));
        line.unwrap()["core_hash"].as_str().unwrap().to_owned()
    }
}

#[test]
fn links_at_each_depth() {
    let sandbox = Sandbox::new();
    let core = examples(&sandbox);
    let session = core("/session.json");
    let mut all = String::new();
    for arguments in [
        &["--depth", "3"][..],
        &["--depth", "2", "--direction", "in"],
        &["--depth", "9", "--relation", "replays"],
        &["--depth", "2", "--format", "dot"],
        &["--depth", "2", "--format", "mermaid"],
        &["--depth", "2", "--json"],
    ] {
        let ran = sandbox.run(["links", &session].iter().chain(arguments)).expect(0);
        all += &format!("$ links {}\n{}\n", arguments.join(" "), ran.stdout);
    }
    insta::assert_snapshot!(all);
    sandbox.run(["links", "--depth", "0", &session]).expect(3);
}

#[test]
fn links_can_be_added_manually() {
    let sandbox = Sandbox::new();
    let core = examples(&sandbox);
    let (contract, trace) = (core("contract.yaml"), core("trace.ndjson"));
    let stated = |sandbox: &Sandbox, core: &str| {
        let links = sandbox.run(["links", "--json", core]).expect(0).json();
        let stated: Vec<_> = links.into_iter().filter(|link| link["manual"] == true).collect();
        stated
    };
    let link = ["link", "add", contract.as_str(), "governs", &trace, "--note", "agreed on Monday"];
    assert_eq!(sandbox.run(link).expect(0).stderr, "linked\n");
    assert_eq!(sandbox.run(link).expect(0).stderr, "already linked\n");
    let [out] = &stated(&sandbox, &contract)[..] else { panic!("one link") };
    assert_eq!(
        (&out["direction"], &out["core_hash"], &out["because"]),
        (&"out".into(), &trace.as_str().into(), &"agreed on Monday".into())
    );
    assert_eq!(stated(&sandbox, &trace)[0]["direction"], "in");
    // Another note replaces the first one.
    sandbox.run(["link", "add", &contract, "governs", &trace, "--note", "\u{1b}[2J"]).expect(0);
    let shown = sandbox.run(["links", &trace]).expect(0).stdout;
    assert!(shown.contains("added manually: \\u{1b}[2J"), "{shown}");
    sandbox.run(["link", "remove", &contract, "governs", &trace]).expect(0);
    assert!(stated(&sandbox, &trace).is_empty());
    let again = sandbox.run(["link", "remove", &contract, "governs", &trace]).expect(1);
    assert!(again.stderr.contains("there is no manual link"), "{}", again.stderr);
    // A derived link cannot be taken back.
    sandbox.run(["link", "remove", &contract, "governs", &core("run.rpk")]).expect(1);
    sandbox.run(["link", "add", &contract, "Bad Relation", &trace]).expect(3);
    sandbox.run(["link", "add", &contract, "governs", &contract]).expect(3);
    sandbox.run(["link", "add", &contract, "governs", "000000000000"]).expect(1);
}

#[test]
fn the_journal_records_every_change() {
    let sandbox = Sandbox::new();
    let core = examples(&sandbox);
    sandbox.run(["link", "add", &core("contract.yaml"), "governs", &core("trace.ndjson")]).expect(0);
    sandbox.run(["link", "remove", &core("contract.yaml"), "governs", &core("trace.ndjson")]).expect(0);
    let connection =
        rusqlite::Connection::open_with_flags(sandbox.vault(), rusqlite::OpenFlags::SQLITE_OPEN_READ_ONLY);
    let connection = connection.unwrap();
    let mut statement = connection
        .prepare("SELECT entry, unhex(substr(chain, 8)) FROM journal_entries ORDER BY seq")
        .unwrap();
    let rows: Vec<(String, Vec<u8>)> =
        statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap().map(Result::unwrap).collect();
    let mut chain = vec![0; 32];
    let mut actions = Vec::new();
    for (entry, stated) in rows {
        chain.extend_from_slice(entry.as_bytes());
        chain = runvault::digest::Digest::from_content(&chain).as_bytes().to_vec();
        assert_eq!(chain, stated);
        let entry: serde_json::Value = serde_json::from_str(&entry).unwrap();
        actions.push(entry["action"].as_str().unwrap().to_owned());
    }
    let adds = actions.iter().filter(|action| *action == "add").count();
    assert_eq!((adds, &actions[adds..]), (8, &["link".to_owned(), "unlink".to_owned()][..]));
}

#[test]
fn path_unresolved_and_forks() {
    let sandbox = Sandbox::new();
    let core = examples(&sandbox);
    let (session, trace) = (core("session-small-model.json"), core("trace-partial.ndjson"));
    let mut all = sandbox.run(["path", &session, &trace, "--coincident"]).expect(0).stdout;
    let steps = sandbox.run(["path", &session, &trace, "--coincident", "--json"]).expect(0).json();
    assert_eq!(steps.len(), 2);
    assert_eq!(sandbox.run(["path", &session, &session]).expect(0).stdout.lines().count(), 1);
    let alone =
        sandbox.add([sandbox.write("alone.json", crate::sandbox::session("alone", &[("q", "a")]))]).remove(0);
    let none = sandbox.run(["path", &session, &alone]).expect(1);
    all += &none.stderr;
    assert_eq!(sandbox.run(["unresolved"]).expect(0).stderr, "0 unresolved\n");
    assert_eq!(sandbox.run(["forks"]).expect(0).stderr, "0 forks\n");
    let missing = "sha256:".to_owned() + &"ab".repeat(32);
    let refers =
        crate::sandbox::session("refers", &[]).replacen('{', &format!("{{\"seen\": \"{missing}\","), 1);
    sandbox.add([sandbox.write("refers.json", refers)]);
    let other_run = std::fs::read_to_string(repository("examples/trace.ndjson")).unwrap();
    let header = other_run.lines().next().unwrap();
    let mut header: serde_json::Value = serde_json::from_str(header).unwrap();
    header["trace_id"] = "run-unknown".into();
    header.as_object_mut().unwrap().remove("record_hash");
    header["record_hash"] =
        runvault::digest::Digest::from_content(header.to_string().as_bytes()).hex().into();
    sandbox.add([sandbox.write("other.ndjson", format!("{header}\n"))]);
    all += &sandbox.run(["unresolved"]).expect(0).stdout;
    assert_eq!(sandbox.run(["unresolved", "--json"]).expect(0).json()[0]["digest"], missing);
    insta::assert_snapshot!(all);
}

#[test]
fn runs_are_audited_against_contracts() {
    let sandbox = Sandbox::new();
    let core = examples(&sandbox);
    let contract = core("contract.yaml");
    let mut all = String::new();
    // Every run that it governs, a trace before and after its last step, and what is no run.
    for run in ["", "trace.ndjson", "trace-partial.ndjson", "/session.json"] {
        let arguments = ["audit".to_owned(), contract.clone()];
        let run = if run.is_empty() { None } else { Some(core(run)) };
        let ran = sandbox.run(arguments.into_iter().chain(run)).expect(1);
        all += &format!("{}{}\n", ran.stdout, ran.stderr);
    }
    let risky = r#"{"io_refs": [{"ref": "service:tracker", "kind": "service", "schema": "s", "required": true, "mode": "write"}],
        "effects": [
        {"name": "pay", "kind": "resource", "target": "service:tracker", "idempotency": {"type": "non-idempotent"},
         "evidence": {"type": "hash", "path": "/result/label_status"}},
        {"name": "mail", "kind": "resource", "target": "service:tracker", "idempotency": {"type": "non-idempotent", "nonce": "n-1"},
         "evidence": {"type": "range", "metric": "label_status"}},
        {"name": "none", "kind": "resource", "target": "service:tracker", "idempotency": {"type": "reentrant"}}]}"#;
    let risky = sandbox.add([sandbox.write("risky.json", risky)]).remove(0);
    let nothing = sandbox.run(["audit", &risky]).expect(1);
    assert!(nothing.stderr.contains("governs no run in the vault"), "{}", nothing.stderr);
    sandbox.run(["link", "add", &risky, "governs", &core("run.rpk")]).expect(0);
    let ran = sandbox.run(["audit", &risky]).expect(1);
    all += &format!("{}{}\n", ran.stdout, ran.stderr);
    all += &sandbox.run(["audit", "--json", &risky]).expect(1).stdout;
    assert!(sandbox.run(["audit", &core("/session.json")]).expect(1).stderr.contains("not a contract"));
    insta::assert_snapshot!(all);
}

/// Everybody who may share an exchange is read once. Reading them again for each exchange would take minutes here.
#[test]
fn sessions_with_many_common_exchanges_are_linked_quickly() {
    const EXCHANGES: usize = 3_000;
    let sandbox = Sandbox::new();
    let prompts: Vec<String> = (0..EXCHANGES).map(|number| format!("prompt {number}")).collect();
    let exchanges: Vec<(&str, &str)> = prompts.iter().map(|prompt| (prompt.as_str(), "ok")).collect();
    let write = |adapter| sandbox.write(&format!("{adapter}.json"), session(adapter, &exchanges));
    let cores = sandbox.add(["one", "two", "three"].map(write));
    assert_eq!(sandbox.run(["links", &cores[0], "--json"]).expect(0).stdout, "");
    sandbox.run(["rm", &cores[0]]).expect(0);
    assert_eq!(sandbox.run(["find", "--prompt", "prompt 7", "--json"]).expect(0).json().len(), 2);
}

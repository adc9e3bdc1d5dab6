//! What packs are found by, and what they are linked to.

use runvault::digest::Digest;
use serde_json::{Value, json};

use super::run;
use crate::sandbox::{Sandbox, session};

/// A pack with a session, in the directory `p`; its run states `model_io_hash`.
fn pack_with_session(sandbox: &Sandbox, stated: Option<&str>) -> String {
    let session = session("triage", &[("hello", "hi")]);
    sandbox.write("p/model_io.json", &session);
    let mut run = run();
    if let Some(stated) = stated {
        run["model_io_hash"] = json!(stated);
    }
    sandbox.write("p/run.json", run.to_string());
    let alone = Sandbox::new();
    alone.add([alone.write("s.json", session)]).remove(0)
}

fn links(sandbox: &Sandbox, hash: &str) -> Vec<(String, String, Value)> {
    let lines = sandbox.run(["links", "--json", hash]).expect(0).json();
    let text = |line: &Value, name: &str| line[name].as_str().unwrap().to_owned();
    lines
        .iter()
        .map(|line| (text(line, "direction"), text(line, "relation"), line["core_hash"].clone()))
        .collect()
}

#[test]
fn the_session_of_a_pack_is_an_artifact_of_its_own() {
    let sandbox = Sandbox::new();
    let model_io_hash = pack_with_session(&sandbox, None);
    let lines = sandbox.run(["add", "--json", "p"]).expect(0).json();
    assert_eq!(lines.len(), 1, "one line, for the pack");
    let core = lines[0]["core_hash"].as_str().unwrap();
    let found = sandbox.run(["find", "sessions", "--prompt", "hello", "--json"]).expect(0).json();
    assert_eq!(found[0]["core_hash"], *model_io_hash);
    let bytes = sandbox.run(["get", &model_io_hash]).expect(0).stdout;
    assert_eq!(bytes, std::fs::read_to_string(sandbox.path("p/model_io.json")).unwrap());
    let from_pack = ("out".to_owned(), "contains".to_owned(), json!(model_io_hash));
    assert!(links(&sandbox, core).contains(&from_pack));
    let to_session = ("in".to_owned(), "contains".to_owned(), json!(core));
    assert_eq!(links(&sandbox, &model_io_hash), [to_session]);
    let again = sandbox.run(["add", "--json", "p", "p/model_io.json"]).expect(0).json();
    assert!(again.iter().all(|line| line["outcome"] == "present"), "{again:?}");
}

#[test]
fn the_order_of_arrival_does_not_matter() {
    let answers = |order: [&str; 2]| {
        let sandbox = Sandbox::new();
        let model_io_hash = pack_with_session(&sandbox, None);
        let mut cores = order.map(|path| sandbox.add([sandbox.path(path)]).remove(0));
        cores.sort();
        let links = cores.clone().map(|core| sandbox.run(["links", "--json", &core]).expect(0).stdout);
        (model_io_hash, cores, links)
    };
    assert_eq!(answers(["p", "p/model_io.json"]), answers(["p/model_io.json", "p"]));
}

#[test]
fn a_bad_session_keeps_all_of_a_pack_out() {
    let sandbox = Sandbox::new();
    pack_with_session(&sandbox, None);
    let edited =
        std::fs::read_to_string(sandbox.path("p/model_io.json")).unwrap().replace("\"hi\"", "\"ho\"");
    sandbox.write("p/model_io.json", edited);
    let line = sandbox.run(["add", "--json", "p"]).expect(1).json().remove(0);
    assert_eq!(line["violations"][0]["rule_id"], "PK8");
    assert!(
        line["violations"][0]["message"]
            .as_str()
            .unwrap()
            .starts_with("MI7: $.interactions[0].response_hash")
    );
    sandbox.run(["find"]).expect(1);
}

#[test]
fn a_dry_run_reports_what_is_added_with_packs() {
    let sandbox = Sandbox::without_vault();
    pack_with_session(&sandbox, None);
    let lines =
        sandbox.run(["add", "--create", "--dry-run", "--json", "p", "p/model_io.json"]).expect(0).json();
    assert_eq!([&lines[0]["outcome"], &lines[1]["outcome"]], ["added", "present"]);
    assert!(!sandbox.vault().exists());
    let really = sandbox.run(["add", "--create", "--json", "p", "p/model_io.json"]).expect(0).json();
    assert_eq!(lines, really);
}

#[test]
fn a_stated_session_is_compared_and_linked() {
    let other = Digest::from_content(b"another recording").to_string();
    let sandbox = Sandbox::new();
    let model_io_hash = pack_with_session(&sandbox, Some(&other));
    let line = sandbox.run(["add", "--json", "p"]).expect(0).json().remove(0);
    assert_eq!(line["violations"][0]["rule_id"], "PK14");
    assert_eq!(line["violations"][0]["severity"], "warning");
    let core = line["core_hash"].as_str().unwrap().to_owned();
    let dangling = sandbox.run(["links", "--json", &core]).expect(0).json();
    assert!(dangling.iter().any(|link| link["relation"] == "references" && link["digest"] == *other));

    let agreeing = Sandbox::new();
    pack_with_session(&agreeing, Some(&model_io_hash));
    let line = agreeing.run(["add", "--json", "p"]).expect(0).json().remove(0);
    assert_eq!(line["violations"], json!([]));
    let core = line["core_hash"].as_str().unwrap().to_owned();
    let relations: Vec<String> =
        links(&agreeing, &core).into_iter().map(|(_, relation, _)| relation).collect();
    assert_eq!(relations, ["contains", "references"]);
}

#[test]
fn packs_are_found_by_what_their_runs_say() {
    let sandbox = Sandbox::new();
    pack_with_session(&sandbox, None);
    let core = sandbox.add(["p"].map(|name| sandbox.path(name))).remove(0);
    let intent = Digest::from_content(b"intent").to_string();
    for condition in [
        ["--run-id", "run-7"],
        ["--result", "REFUSE"],
        ["--intent-hash", &intent],
        ["--intent-hash", &intent[7..17]],
        ["--policy", "strict"],
        ["--policy", "strict 2"],
        ["--model-mode", "record"],
        ["--attr", "kernel_version=0.1"],
    ] {
        let found = sandbox.run(["find", "packs", "--json"].into_iter().chain(condition)).expect(0).json();
        assert_eq!(found[0]["core_hash"], *core, "{condition:?}");
    }
    sandbox.run(["find", "packs", "--result", "BUNDLE"]).expect(1);
    sandbox.run(["find", "packs", "--result", "OTHER"]).expect(3);
    let with_bundle = crate::conformance::corpus().join("pack/minimal-bundle");
    let other = sandbox.add([with_bundle]).remove(0);
    let bundle = "sha256:e572b26cb094bb5177882ea4981a26f70448a4a7a1b79adc84417bb8d82f0464";
    let found = sandbox.run(["find", "packs", "--json", "--bundle-hash", bundle]).expect(0).json();
    assert_eq!(found[0]["core_hash"], *other);
}

#[test]
fn a_trace_of_the_run_leads_to_its_pack() {
    let sandbox = Sandbox::new();
    let trace = crate::sandbox::repository("examples/trace.ndjson");
    let text = std::fs::read_to_string(&trace).unwrap();
    let header: Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
    let mut run = run();
    run["run_id"] = header["trace_id"].clone();
    sandbox.write("p/run.json", run.to_string());
    let (trace, pack) = (sandbox.add([trace]).remove(0), sandbox.add([sandbox.path("p")]).remove(0));
    assert!(links(&sandbox, &trace).contains(&("out".into(), "records-run".into(), json!(pack))));
}

//! The names of runs beside the hashes of their artifacts, and links by relation and kind.

use serde_json::json;

use super::{Serving, cores, examples};
use crate::sandbox::{Sandbox, repository, run_pack, session};

#[test]
fn links_the_journal_and_hits_name_runs() {
    let sandbox = examples();
    sandbox.run(["index", "build"]).expect(0);
    let run = "<a class=\"hash\" href=\"/artifact/sha256:3941d389b337";
    let shown = sandbox.run(["show", "3941d389b337", "--json"]).expect(0).json().remove(0);
    let id = shown["attributes"].as_array().unwrap().iter().find(|one| one["name"] == "run_id").unwrap();
    let name =
        format!(">{}</a> <span class=\"faint hash\">3941d389b337</span>", id["value"].as_str().unwrap());
    let serving = Serving::start(&sandbox);
    let trace = sandbox.run(["find", "traces", "--json"]).expect(0).json().remove(0);
    let trace = format!("/artifact/{}", trace["core_hash"].as_str().unwrap());
    let contract = sandbox.run(["find", "contracts", "--json"]).expect(0).json().remove(0);
    let contract = format!("/artifact/{}", contract["core_hash"].as_str().unwrap());
    for path in ["/journal", &trace, "/search?q=ticket", "/stats", &contract] {
        let page = serving.get(path).expect(200);
        let is_named = page
            .text()
            .split(run)
            .skip(1)
            .any(|rest| rest.split_once('"').is_some_and(|(_, rest)| rest.starts_with(&name)));
        assert!(is_named, "{path}: {}", page.text());
        assert!(page.text().contains("<span class=\"excerpt\">"), "{path}: {}", page.text());
    }
    // A removed artifact has no name any more, and its entries stay.
    sandbox.run(["rm", "3941d389b337", "--force", "--reason", "test"]).expect(0);
    let page = serving.get("/journal").expect(200);
    assert!(!page.text().contains(&name) && page.text().contains(">3941d389b337</a>"), "{}", page.text());
}

#[test]
fn many_links_are_counted_by_relation_and_kind_and_folded() {
    let sandbox = Sandbox::new();
    let calls: Vec<(String, String)> =
        (0..12).map(|n| (format!("prompt {n}"), format!("answer {n}"))).collect();
    let contract = repository("examples/contract.yaml");
    let mut files = vec![contract];
    for (number, (prompt, answer)) in calls.iter().enumerate() {
        files.push(sandbox.write(&format!("{number}.json"), session("a", &[(prompt, answer)])));
    }
    let cores = sandbox.add(&files);
    for core in &cores[1..] {
        sandbox.run(["link", "add", &cores[0], "explains", core]).expect(0);
    }
    sandbox.run(["link", "add", &cores[1], "precedes", &cores[2]]).expect(0);
    let serving = Serving::start(&sandbox);
    let page = serving.get(&format!("/artifact/{}", cores[0])).expect(200);
    let (_, links) = page.text().split_once("<h2 id=\"links\">").unwrap();
    let (links, _) = links.split_once("</section>").unwrap();
    assert_eq!(links.matches("<details").count(), 1, "{links}");
    assert!(links.contains("<details class=\"links\"><summary>"), "a long list is folded: {links}");
    assert!(links.contains("explains <span class=\"kind\">session</span> 12</summary>"), "{links}");
    assert_eq!(links.matches("added manually").count(), 12);
    let page = serving.get(&format!("/artifact/{}", cores[1])).expect(200);
    let (_, links) = page.text().split_once("<h2 id=\"links\">").unwrap();
    assert_eq!(links.matches("<details class=\"links\" open>").count(), 2, "{links}");
}

#[test]
fn the_graph_begins_with_the_artifact_and_names_runs() {
    let sandbox = examples();
    let long = "run-2026-11-28-nightly-evaluation-0042";
    let pack =
        run_pack(long, &[json!({"type": "model.request", "input": "what is asked <b>", "output": "x"})]);
    let core = sandbox.add([sandbox.write("long.rpk", pack)]).remove(0);
    let all = cores(&sandbox);
    for other in all.iter().filter(|other| **other != core) {
        sandbox.run(["link", "add", other, "precedes", &core]).expect(0);
    }
    let serving = Serving::start(&sandbox);
    let page = serving.get(&format!("/artifact/{core}/graph")).expect(200);
    let text = page.text();
    assert_eq!(text.matches("id=\"start\"").count(), 1);
    assert!(text.contains("href=\"#start\""), "{text}");
    let (_, start) = text.split_once("<g id=\"start\" class=\"node root\">").unwrap();
    let (start, _) = start.split_once("</g>").unwrap();
    assert!(start.contains("y=\"4\""), "it is in the first row: {start}");
    assert!(start.contains(">run-2026-…ly-evaluation-0042 </text>"), "{start}");
}

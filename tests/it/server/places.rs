//! Places within pages, and drawings: what links lead to, and what a browser makes of the markup.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::Serving;
use super::files::{export, pages};
use crate::agent_sessions::forms;
use crate::sandbox::{Sandbox, run_pack, sealed};
use crate::traces::{Record, lines};

/// Returns the links to places of pages: the page, which is empty for the same one, and the place.
fn places(page: &str) -> Vec<(&str, &str)> {
    let links = page.split("href=\"").skip(1).map(|rest| rest.split('"').next().unwrap());
    links.filter_map(|link| link.split_once('#')).collect()
}

fn has_place(page: &str, place: &str) -> bool {
    page.contains(&format!(" id=\"{place}\""))
}

/// A vault with a run in which a call fails, and the core hash of the run.
fn failed_call() -> (Sandbox, String) {
    let sandbox = Sandbox::at("2026-11-21T12:00:00Z");
    let steps = [
        json!({"type": "tool.request", "input": {"tool": "t", "arguments": {}}}),
        json!({"type": "error.event", "input": {"boundary": "tool", "target": "t"}, "output": {"message": "locked"}}),
    ];
    let core = sandbox.add([sandbox.write("r.rpk", run_pack("r", &steps))]).remove(0);
    (sandbox, core)
}

#[test]
fn the_page_of_a_contract_counts_findings_as_the_command_line_does() {
    let sandbox = super::examples();
    let contract = sandbox.run(["find", "contracts", "--json"]).expect(0).json().remove(0);
    let contract = contract["core_hash"].as_str().unwrap();
    let told = sandbox.run(["audit", contract]).expect(1).stderr;
    assert!(told.ends_with("1 finding\n"), "{told}");
    let page = Serving::start(&sandbox).get(&format!("/artifact/{contract}")).expect(200);
    assert!(page.text().contains("1 finding, 2 effects not verified"), "{}", page.text());
    // Terms do not take place.
    assert!(!page.text().contains("timeline") && !page.text().contains("only=tools"), "{}", page.text());
}

#[test]
fn the_drawing_of_records_states_what_their_hashes_are() {
    const STATED: &str = "Each record states the hash of the one before";
    const LAST: &str = "; the last hash is that of the trace.";
    let sandbox = Sandbox::at("2026-11-21T12:00:00Z");
    let records = [Record::Step(0), Record::Failed, Record::Step(1), Record::Failed, Record::Failed];
    let trace = sandbox.write("t.ndjson", lines("t", &records).concat());
    let session = sandbox.write("s.jsonl", forms::lines(&forms::claude_code()));
    let [trace, session] = [trace, session].map(|path| sandbox.add([path]).remove(0));
    let serving = Serving::start(&sandbox);
    // The number of joints, and whether the caption is that of a trace and says that the last hash is on the page.
    for (page, joints, is_stated, has_last) in [
        (format!("/artifact/{trace}"), 5, true, true),
        (format!("/artifact/{trace}?from=1&to=3"), 2, true, false),
        (format!("/artifact/{trace}?only=errors"), 1, true, false),
        (format!("/artifact/{session}?raw=true"), 4, false, false),
    ] {
        let shown = serving.get(&page).expect(200);
        let drawing = shown.text().split("<svg class=\"chain\"").nth(1).unwrap();
        let drawing = drawing.split("</figure>").next().unwrap();
        assert_eq!(drawing.matches("class=\"edge\"").count(), joints, "{page}: {drawing}");
        assert_eq!(
            (drawing.contains(STATED), drawing.contains(LAST)),
            (is_stated, has_last),
            "{page}: {drawing}"
        );
    }
}

#[test]
fn hits_in_files_lead_to_the_file() {
    let sandbox = super::examples();
    sandbox.run(["index", "build"]).expect(0);
    let serving = Serving::start(&sandbox);
    let hits = serving.get("/search?q=triage&kind=pack").expect(200);
    let files: Vec<_> =
        places(hits.text()).into_iter().filter(|(_, place)| place.starts_with("file-")).collect();
    assert!(!files.is_empty(), "{}", hits.text());
    for (page, place) in files {
        assert!(has_place(serving.get(page).expect(200).text(), place), "{place}");
    }
}

#[test]
fn hits_in_refs_of_contracts_lead_to_the_ref() {
    let sandbox = super::examples();
    sandbox.run(["index", "build"]).expect(0);
    let serving = Serving::start(&sandbox);
    let hits = serving.get("/search?q=billing&kind=contract").expect(200);
    let refs: Vec<_> =
        places(hits.text()).into_iter().filter(|(_, place)| place.starts_with("io_ref-")).collect();
    let [(page, "io_ref-1")] = refs[..] else { panic!("{}", hits.text()) };
    let contract = serving.get(page).expect(200);
    let summary = contract.text().split("<summary id=\"io_ref-1\">").nth(1).unwrap();
    let summary = summary.split("</summary>").next().unwrap();
    assert!(summary.contains("service:tracker"), "{summary}");
    // Effects are before the refs, and have the numbers that their locations state.
    let hits = serving.get("/search?q=reentrant&kind=contract").expect(200);
    let effects: Vec<_> =
        places(hits.text()).into_iter().filter(|(_, place)| place.starts_with("step-")).collect();
    let [(page, "step-1")] = effects[..] else { panic!("{}", hits.text()) };
    assert!(has_place(serving.get(page).expect(200).text(), "step-1"));
}

#[test]
fn links_to_steps_that_are_filtered_out_lead_to_the_whole_page() {
    let (sandbox, core) = failed_call();
    let serving = Serving::start(&sandbox);
    let page = serving.get(&format!("/artifact/{core}")).expect(200);
    assert!(places(page.text()).contains(&("", "step-0")), "{}", page.text());
    let page = serving.get(&format!("/artifact/{core}?only=errors")).expect(200);
    assert!(!has_place(page.text(), "step-0"), "{}", page.text());
    let address = format!("/artifact/{core}");
    assert!(places(page.text()).contains(&(&address, "step-0")), "{}", page.text());
    for (other, place) in places(page.text()) {
        assert!(!other.is_empty() || place == "content" || has_place(page.text(), place), "{place}");
    }
}

#[test]
fn links_to_places_in_files_lead_somewhere() {
    let (sandbox, core) = failed_call();
    let files = export(&sandbox, &[&core]);
    let pages: BTreeMap<&str, &str> = pages(&files).collect();
    let mut filtered = 0;
    for (name, page) in &pages {
        for (other, place) in places(page) {
            let target = if other.is_empty() { page } else { &pages[other] };
            assert!(has_place(target, place), "{name}: {other}#{place}");
            filtered += usize::from(name.ends_with("-only-errors.html") && place == "step-0");
        }
    }
    assert_eq!(filtered, 1);
}

#[test]
fn names_in_drawings_do_not_end_them() {
    let sandbox = Sandbox::at("2026-11-21T12:00:00Z");
    let step = json!({"type": "tool.response", "input": {"tool": "t"}, "output": {"result": "r"}});
    let mut pack: Value = serde_json::from_str(&run_pack("a\u{2028}b", &[step])).unwrap();
    pack["metadata"]["source_run_id"] = "c\u{2028}d".into();
    let core = sandbox.add([sandbox.write("r.rpk", sealed(pack))]).remove(0);
    let files = export(&sandbox, &[&core]);
    let exported: Vec<&str> = pages(&files).map(|(_, page)| page).collect();
    let serving = Serving::start(&sandbox);
    let served = serving.get(&format!("/artifact/{core}/graph")).expect(200);
    let artifact = serving.get(&format!("/artifact/{core}")).expect(200);
    let mut marked = 0;
    for page in exported.into_iter().chain([served.text(), artifact.text()]) {
        for drawing in page.split("<svg").skip(1).map(|rest| rest.split("</svg>").next().unwrap()) {
            assert!(!drawing.contains("<span"), "{drawing}");
            marked += drawing.matches("c<tspan class=\"escape\">\\u{2028}</tspan>d").count();
        }
        let title = page.split("<title>").nth(1).unwrap().split("</title>").next().unwrap();
        assert!(!title.contains('<'), "{title}");
    }
    assert_eq!(marked, 2, "the page and the file with the graph");
}

#[test]
fn hits_mentions_and_findings_lead_to_their_steps_and_name_the_run() {
    let (sandbox, core) = failed_call();
    let contract = crate::audit::contract(
        &[json!({"evidence": {"type": "status", "metric": "m"}})],
        &[json!({"ref": "artifact:ticket", "required": true, "mode": "read"})],
    );
    let contract = sandbox.add([sandbox.write("c.json", contract.to_string())]).remove(0);
    sandbox.run(["link", "add", &contract, "governs", &core]).expect(0);
    sandbox.run(["index", "build"]).expect(0);
    let serving = Serving::start(&sandbox);
    let run = format!("/artifact/{core}");
    let search = serving.get("/search?q=locked").expect(200);
    assert!(places(search.text()).contains(&(run.as_str(), "step-1")), "{}", search.text());
    assert!(search.text().contains("\">r</a> <span class=\"faint hash\">"), "{}", search.text());
    let pack: Value = serde_json::from_slice(&std::fs::read(sandbox.path("r.rpk")).unwrap()).unwrap();
    let hash = pack["payload"]["run"]["steps"][0]["hash"].as_str().unwrap();
    let mentions = serving.get(&format!("/artifacts?mention={hash}")).expect(200);
    assert!(places(mentions.text()).contains(&(run.as_str(), "step-0")), "{}", mentions.text());
    // The call is not declared, which is found at its step; what is not attested is a term of the contract.
    let audit = serving.get(&run).expect(200);
    assert!(places(audit.text()).contains(&(run.as_str(), "step-0")), "{}", audit.text());
    let terms = format!("/artifact/{contract}");
    assert!(places(audit.text()).contains(&(terms.as_str(), "step-2")), "{}", audit.text());
}

#[test]
fn the_page_of_a_contract_audits_all_its_runs_the_latest_first() {
    let sandbox = Sandbox::at("2026-11-21T12:00:00Z");
    let contract = crate::audit::contract(&[json!({"evidence": {"type": "status", "metric": "m"}})], &[]);
    let contract = sandbox.add([sandbox.write("c.json", contract.to_string())]).remove(0);
    let runs: Vec<std::path::PathBuf> = (0..53)
        .map(|number| {
            let mut run: Value = serde_json::from_str(&run_pack(&format!("run-{number}"), &[])).unwrap();
            let time = format!("2026-01-01T00:00:{number:02}Z");
            run["metadata"]["created_at"] = time.clone().into();
            run["payload"]["run"]["timestamp"] = time.into();
            run["metadata"]["contract"] = contract.clone().into();
            sandbox.write(&format!("{number}.rpk"), sealed(run))
        })
        .collect();
    sandbox.add(runs);
    let serving = Serving::start(&sandbox);
    let listed = |page: &str| -> Vec<String> {
        let rows = page.split("<td class=\"run\">").skip(1);
        rows.map(|row| row.split(">run-").nth(1).unwrap().split('<').next().unwrap().to_owned()).collect()
    };
    let expected: Vec<String> = (0..53).rev().map(|number| number.to_string()).collect();
    let first = serving.get(&format!("/artifact/{contract}")).expect(200);
    assert_eq!(listed(first.text()), expected[..50]);
    let mut audits = places(first.text()).into_iter().filter(|(_, place)| *place == "audits");
    let next = audits.find(|(page, _)| !page.is_empty());
    let (next, _) = next.expect("there are further runs");
    let second = serving.get(next).expect(200);
    assert_eq!(listed(second.text()), expected[50..]);
    assert!(places(second.text()).contains(&(&format!("/artifact/{contract}"), "audits")));
}

//! Places within pages, and drawings: what links lead to, and what a browser makes of the markup.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::Serving;
use super::files::{export, pages};
use crate::sandbox::{Sandbox, run_pack, sealed};

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

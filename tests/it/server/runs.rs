//! The page of runs: counts, filters and the choice of several.

use serde_json::{Value, json};

use super::{Serving, examples};
use crate::sandbox::{Sandbox, run_pack, sealed, session};

/// A run pack of this agent and model with this number of failed steps.
fn run(id: &str, agent: &str, model: &str, errors: usize) -> String {
    let step = json!({"type": "model.request", "input": {"model": model, "prompt": id}});
    let steps: Vec<Value> =
        std::iter::once(step).chain(std::iter::repeat_n(json!({"type": "error.event"}), errors)).collect();
    let mut pack: Value = serde_json::from_str(&run_pack(id, &steps)).unwrap();
    pack["metadata"]["created_at"] = "2026-11-20T12:00:00Z".into();
    pack["payload"]["run"]["agent"] = agent.into();
    sealed(pack)
}

fn three_runs() -> Sandbox {
    let sandbox = Sandbox::at("2026-11-21T12:00:00Z");
    sandbox.add([
        sandbox.write("one.rpk", run("one", "clerk", "m-1", 0)),
        sandbox.write("two.rpk", run("two", "clerk", "m-1", 2)),
        sandbox.write("three.rpk", run("three", "<b>&x=1", "m-2", 0)),
        sandbox.write("alone.json", session("alone", &[("p", "r")])),
    ]);
    sandbox.run(["label", "set", "one", "branch=main"]).expect(0);
    sandbox
}

/// The facets of a page: the address and the number of runs of each.
fn facets(page: &str) -> Vec<(String, u64)> {
    let links = page.split("<a class=\"facet\" href=\"").skip(1);
    let facet = |link: &str| {
        let address = link.split('"').next().unwrap().replace("&amp;", "&");
        let count = link.split("<span class=\"faint\">").nth(1).unwrap().split('<').next().unwrap();
        (address, count.parse().unwrap())
    };
    links.map(facet).collect()
}

#[test]
fn runs_are_counted_by_values_that_lead_to_them() {
    let sandbox = three_runs();
    let serving = Serving::start(&sandbox);
    let page = serving.get("/").expect(200);
    assert!(page.text().contains("<strong>4 runs</strong>"), "{}", page.text());
    let facets = facets(page.text());
    for expected in [
        ("/?errors=yes", 1),
        ("/?errors=no", 2),
        ("/?model=m-1", 2),
        ("/?agent=clerk", 2),
        ("/?agent=%3Cb%3E%26x%3D1", 1),
        ("/?label=branch%3Dmain", 1),
    ] {
        assert!(facets.contains(&(expected.0.to_owned(), expected.1)), "{expected:?}: {facets:?}");
    }
    for (address, runs) in &facets {
        let page = serving.get(address).expect(200);
        let unit = if *runs == 1 { "run" } else { "runs" };
        assert!(
            page.text().contains(&format!("<strong>{runs} {unit}</strong>")),
            "{address}: {}",
            page.text()
        );
    }
    // A value that is chosen leads back.
    let chosen = serving.get("/?model=m-1&agent=clerk").expect(200);
    let (_, rest) =
        chosen.text().split_once("<a class=\"facet\" href=\"/?agent=clerk\" aria-current=\"true\"").unwrap();
    assert!(rest.contains("m-1"), "{}", chosen.text());
    // More recordings than are counted with a page are counted on request.
    let counted = serving.get("/?model=m-1&facets=yes").expect(200);
    assert!(counted.text().contains("<strong>2 runs</strong>"), "{}", counted.text());
    assert!(!serving.get("/?model=none").expect(200).text().contains("class=\"facet\""));
}

#[test]
fn facets_count_the_rows_of_the_list() {
    // Two recordings with one run id are two rows; a pack and the session in it are one.
    let sandbox = examples();
    sandbox.add([
        sandbox.write("one.rpk", run("same", "clerk", "m-1", 0)),
        sandbox.write("two.rpk", run("same", "clerk", "m-1", 2)),
        sandbox.write("alone.json", session("alone", &[("p", "r")])),
    ]);
    let listed = sandbox.run(["list", "--json"]).expect(0).json();
    let recordings = listed.iter().filter(|row| row["kind"] != "contract").count() as u64;
    // All recordings of a run have the label, which it has once.
    for member in listed.iter().flat_map(|row| row["members"].as_array().unwrap()) {
        sandbox.run(["label", "set", member["core_hash"].as_str().unwrap(), "suite=all"]).expect(0);
    }
    let serving = Serving::start(&sandbox);
    let page = serving.get("/").expect(200);
    let rows = |page: &str| page.matches("<input type=\"checkbox\"").count() as u64;
    assert_eq!(rows(page.text()), recordings, "{}", page.text());
    assert!(page.text().contains(&format!("<strong>{recordings} runs</strong>")), "{}", page.text());
    let facets = facets(page.text());
    assert!(facets.contains(&("/?agent=clerk".to_owned(), 2)), "{facets:?}");
    assert!(facets.contains(&("/?label=suite%3Dall".to_owned(), recordings)), "{facets:?}");
    for (address, runs) in &facets {
        assert_eq!(rows(serving.get(address).expect(200).text()), *runs, "{address}");
    }
}

#[test]
fn several_runs_can_be_chosen_to_be_compared() {
    let sandbox = three_runs();
    let serving = Serving::start(&sandbox);
    let page = serving.get("/").expect(200);
    let (_, form) = page.text().split_once("<form method=\"get\" action=\"/diff\">").unwrap();
    let form = form.split("</form>").next().unwrap();
    for name in ["one", "two", "three"] {
        let core = sandbox.run(["show", name, "--json"]).expect(0).json()[0]["core_hash"].clone();
        let field = format!("<input type=\"checkbox\" name=\"run\" value=\"{}\"", core.as_str().unwrap());
        assert!(form.contains(&field), "{field}: {form}");
    }
    assert!(form.contains("<button>Compare selected</button>"), "{form}");
    assert!(!serving.get("/?model=m-2").expect(200).text().contains("<button>Compare selected"));
}

#[test]
fn the_chart_of_days_shows_failures() {
    let sandbox = three_runs();
    let serving = Serving::start(&sandbox);
    let page = serving.get("/").expect(200);
    assert!(page.text().contains("<title>2026-11-20: 3, 1 failed</title>"), "{}", page.text());
    assert_eq!(page.text().matches("class=\"bar failed\"").count(), 1, "{}", page.text());
    let page = serving.get("/?errors=no").expect(200);
    assert_eq!(page.text().matches("class=\"bar failed\"").count(), 0, "{}", page.text());
}

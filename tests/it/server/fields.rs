//! The fields of forms: what they take, and what is said of values that are not valid or that nothing has.

use super::{Serving, cores, examples};

#[test]
fn times_in_fields_are_those_of_the_command_line() {
    let sandbox = examples();
    let serving = Serving::start(&sandbox);
    let all = serving.get("/artifacts").expect(200).text().matches("href=\"/artifact/").count();
    for (since, is_found) in
        [("7d", true), ("1h", false), ("yesterday", false), ("last%20week", true), ("2026-11", true)]
    {
        for path in ["/artifacts", "/"] {
            let page = serving.get(&format!("{path}?since={since}")).expect(200);
            assert_eq!(page.text().contains("href=\"/artifact/"), is_found, "{path} {since}");
        }
    }
    assert!(all > 0);
}

#[test]
fn a_wrong_value_stays_in_its_field_with_what_is_wrong_beside_it() {
    let sandbox = examples();
    let serving = Serving::start(&sandbox);
    for (path, field, value, message) in [
        ("/artifacts", "since", "soon", "expected a time such as 2026-11-20"),
        ("/", "until", "soon", "expected a time such as 2026-11-20"),
        ("/artifacts", "attribute", "modle_id=m", "there is no attribute modle_id; similar: model_id"),
        ("/artifacts", "mention", "no-such-run", "no tag or run in the vault has the name no-such-run"),
    ] {
        let page = serving.get(&format!("{path}?{field}={value}&label=branch%3Dmain")).expect(400);
        let text = page.text();
        let (_, after) = text.split_once(&format!("name=\"{field}\" value=\"{value}\"")).expect(text);
        let (beside, _) = after.split_once("</label>").unwrap();
        assert!(beside.contains(message), "{path} {field}: {beside}");
        assert!(text.contains("name=\"label\" value=\"branch=main\""), "the other fields are kept: {text}");
    }
    serving.get("/artifacts?order=none").expect(400);
    serving.get("/?kind=none").expect(400);
}

#[test]
fn the_hash_of_a_prompt_leads_to_its_answers() {
    let sandbox = examples();
    let serving = Serving::start(&sandbox);
    let prompt = runvault::digest::Digest::from_content(b"Summarise ticket 4711 in one sentence.");
    let expected = format!("/prompt/{prompt}");
    for pasted in
        [prompt.to_string(), prompt.hex()[..12].to_owned(), format!("http://127.0.0.1:1/prompt/{prompt}")]
    {
        let response = serving.get(&format!("/go?q={pasted}")).expect(302);
        assert_eq!(response.header("location"), Some(expected.as_str()), "{pasted}");
    }
    let prefix = serving.get(&format!("/prompt/{}", &prompt.hex()[..12])).expect(302);
    assert_eq!(prefix.header("location"), Some(expected.as_str()));
    // The field takes what is pasted, and finds an artifact by its own hash too.
    let core = cores(&sandbox).remove(0);
    for pasted in [&core[7..19], core.as_str(), &prompt.hex()[..12]] {
        let page = serving.get(&format!("/artifacts?mention={pasted}")).expect(200);
        assert!(page.text().contains("href=\"/artifact/"), "{pasted}");
    }
}

#[test]
fn pages_without_hits_show_similar_values() {
    let sandbox = examples();
    let serving = Serving::start(&sandbox);
    let page = serving.get("/?model=triage").expect(200);
    assert!(page.text().contains("Similar: <code>triage-large-2</code>"), "{}", page.text());
    let found = serving.get("/?model=triage-*").expect(200);
    assert!(found.text().contains("href=\"/artifact/"), "{}", found.text());
}

//! Full-text search: what is found and told, and that the index is what the artifacts say.

mod checked;
mod failing;
mod kept;
mod properties;
mod removed;
mod scripts;

use serde_json::{Value, json};

use crate::output::steady;
use crate::sandbox::{Sandbox, repository, session};

const CONTRACT: &str = "5c496a37feba";
const PACK: &str = "54490aab8b3f";
const RUN: &str = "3941d389b337";
const SESSION: &str = "4df877dec7f4";
const TRACE: &str = "7c8de5910f63";

/// A sandbox with the shipped examples in a vault with an index.
fn examples() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.add([repository("examples")]);
    sandbox.run(["index", "build"]).expect(0);
    sandbox
}

/// A vault with an index of a session for each of these responses.
fn of_responses(responses: &[&str]) -> Sandbox {
    let sandbox = Sandbox::new();
    for (number, response) in responses.iter().enumerate() {
        let text = session(&format!("a{number}"), &[("p", response)]);
        sandbox.add([sandbox.write(&format!("{number}.json"), text)]);
    }
    sandbox.run(["index", "build"]).expect(0);
    sandbox
}

/// What a search gives, the best first.
fn hits(sandbox: &Sandbox, arguments: &[&str]) -> Vec<Value> {
    let ran = sandbox.run([&["search", "--json"], arguments].concat());
    let lines = ran.json();
    assert_eq!(ran.status, i32::from(lines.is_empty()), "{}", ran.stderr);
    lines
}

/// The first digits of the artifacts that are found.
fn found(sandbox: &Sandbox, arguments: &[&str]) -> Vec<String> {
    let short = |hit: &Value| hit["core_hash"].as_str().unwrap()[7..19].to_owned();
    hits(sandbox, arguments).iter().map(short).collect()
}

fn sorted(mut found: Vec<String>) -> Vec<String> {
    found.sort();
    found
}

/// `text` without numbers of bytes, which depend on how SQLite fills its pages.
fn without_sizes(text: &str) -> String {
    let words: Vec<&str> = text.split(' ').collect();
    let is_size = |at: usize| words.get(at + 1).is_some_and(|unit| unit.starts_with("KiB"));
    let shown = words.iter().enumerate().map(|(at, word)| match word.strip_prefix('(') {
        _ if !is_size(at) => (*word).to_owned(),
        Some(_) => "(some".to_owned(),
        None => "some".to_owned(),
    });
    shown.collect::<Vec<_>>().join(" ")
}

#[test]
fn what_people_are_told() {
    let sandbox = Sandbox::new();
    let mut all = String::new();
    let mut tell = |arguments: &[&str]| {
        let ran = sandbox.run(arguments);
        let (stdout, stderr, status) = (&ran.stdout, &ran.stderr, ran.status);
        let stderr = without_sizes(&stderr.replace(&sandbox.path("").display().to_string(), "/"));
        all += &format!("$ runvault {}\n{stdout}{stderr}status {status}\n\n", arguments.join(" "));
    };
    tell(&["search", "export"]);
    sandbox.add([repository("examples")]);
    tell(&["search", "export"]);
    tell(&["index", "drop"]);
    tell(&["index", "build"]);
    tell(&["search", "export"]);
    tell(&["search", "\"cut off\" OR tracker*", "--in", "response,tool"]);
    tell(&["search", "label", "--all", "--kind", "contract"]);
    tell(&["search", "export", "--limit", "1"]);
    tell(&["search", "nothing says this"]);
    tell(&["search", "?!"]);
    tell(&["search", "export", "--in", "responses"]);
    tell(&["search", "export", "--json", "--limit", "1"]);
    tell(&["index", "drop"]);
    insta::assert_snapshot!(steady(&all));
}

#[test]
fn a_search_without_results_names_similar_values_of_its_conditions() {
    let sandbox = examples();
    for (condition, similar) in [
        (["--model", "triage"], "no artifact has model_id triage; similar: triage-large-2, triage-small-1"),
        (["--tool", "tracker.labels"], "no artifact has tool tracker.labels; similar: tracker.label"),
    ] {
        let ran = sandbox.run([&["search", "export"], &condition[..]].concat()).expect(1);
        assert!(ran.stderr.contains(similar), "{}", ran.stderr);
    }
}

#[test]
fn every_kind_is_searched() {
    let sandbox = examples();
    for (text, field, expected) in [
        ("\"fix is on its way\"", "response", vec![SESSION, "103ef1c54b58"]),
        ("\"export to CSV stops\"", "response", vec![SESSION, RUN]),
        ("\"which label fits\"", "prompt", vec![RUN]),
        ("tracker.label", "tool", vec![RUN]),
        ("provider openai-compatible", "step", vec![RUN]),
        ("summarise", "step", vec![TRACE, "66c2f87e8153"]),
        ("export", "output", vec![TRACE, "66c2f87e8153"]),
        ("remove-label", "contract", vec![CONTRACT]),
        ("\"triage ticket\"", "pack", vec![PACK]),
    ] {
        let mut expected: Vec<String> = expected.into_iter().map(str::to_owned).collect();
        expected.sort();
        assert_eq!(sorted(found(&sandbox, &[text, "--in", field])), expected, "{text}");
        let elsewhere: Vec<&str> = ["response", "prompt", "tool", "output", "step", "contract", "pack"]
            .into_iter()
            .filter(|other| *other != field)
            .collect();
        for hit in hits(&sandbox, &[text, "--in", &elsewhere.join(",")]) {
            assert_ne!(hit["field"], field);
        }
    }
    // The session in the pack is found as itself, and digests are found as mentions.
    assert_eq!(
        found(&sandbox, &["4df877dec7f41a5df08a2e176ed2fd872cfdbda8ab3a83d6d5059a60c4df49f7"]),
        [""; 0]
    );
}

#[test]
fn words_phrases_beginnings_and_alternatives() {
    let sandbox = of_responses(&[
        "The refund was approved.",
        "Refunds are not approved: café, naïve, straße.",
        "approved by noone. A refund?",
        "NOT (this: OR that) don't NEAR/2 \"quoted\" 漢字 words",
    ]);
    let by_number = |arguments: &[&str]| {
        let hits = hits(&sandbox, arguments);
        let text = |hit: &Value| hit["text"].as_str().unwrap().to_owned();
        let mut numbers: Vec<usize> = hits
            .iter()
            .map(|hit| {
                let beginnings = ["The", "Refunds", "approved by", "NOT"];
                beginnings.iter().position(|beginning| text(hit).starts_with(beginning)).unwrap()
            })
            .collect();
        numbers.sort_unstable();
        numbers
    };
    for (text, expected) in [
        ("refund approved", vec![0, 2]),
        ("REFUND", vec![0, 2]),
        ("refund*", vec![0, 1, 2]),
        ("\"refund was approved\"", vec![0]),
        ("\"approved refund\"", vec![]),
        ("\"refund was app\"*", vec![0]),
        ("cafe NAIVE", vec![1]),
        ("noone OR straße", vec![1, 2]),
        ("noone straße", vec![]),
        ("noone or straße", vec![]),
        ("NOT (this:", vec![3]),
        ("don't", vec![3]),
        ("NEAR/2", vec![3]),
        ("\"quoted", vec![3]),
        ("-that", vec![3]),
        ("^that + this", vec![3]),
        ("漢字", vec![3]),
        ("response:that", vec![]),
        ("approved OR", vec![0, 1, 2]),
    ] {
        assert_eq!(by_number(&["--", text]), expected, "{text}");
        if !text.contains('"') {
            let apart: Vec<&str> = ["--"].into_iter().chain(text.split(' ')).collect();
            assert_eq!(by_number(&apart), expected, "{text}");
        }
    }
    let ran = sandbox.run(["search", &"a ".repeat(101)]).expect(3);
    assert!(ran.stderr.contains("100 words"), "{}", ran.stderr);
    sandbox.run(["search"]).expect(3);
    sandbox.run(["index", "build", "word"]).expect(3);
}

#[test]
fn conditions_of_find_choose_where_to_search() {
    let sandbox = examples();
    let ticket = |arguments: &[&str]| sorted(found(&sandbox, &[&["export"], arguments].concat()));
    assert_eq!(ticket(&["--kind", "model_io"]), ["103ef1c54b58", SESSION]);
    assert_eq!(ticket(&["--kind", "sessions", "--model", "triage-large-2"]), [SESSION]);
    assert_eq!(
        ticket(&["--prompt", "Summarise ticket 4711 in one sentence."]),
        ["103ef1c54b58", RUN, SESSION]
    );
    assert_eq!(ticket(&["--since", "2100-01-01"]), [""; 0]);
    assert_eq!(ticket(&["--until", "2100-01-01"]).len(), 5);
    assert_eq!(ticket(&["--run-id", "run-triage-4711"]), [RUN]);
    let told = sandbox.run(["search", "export", "--kind", "recording"]).expect(3).stderr;
    assert!(told.contains("model_io, ") && told.contains("sessions, "), "{told}");
    assert_eq!(hits(&sandbox, &["export", "--limit", "2"]).len(), 2);
    assert_eq!(hits(&sandbox, &["export", "--limit", "0"]).len(), 0);
}

#[test]
fn json_says_where_and_what_matches() {
    let sandbox = of_responses(&["é😀 refund; and then a Refund", "no"]);
    let hit = hits(&sandbox, &["refund"]).remove(0);
    let text: Vec<char> = hit["text"].as_str().unwrap().chars().collect();
    let marked: Vec<String> = hit["highlights"]
        .as_array()
        .unwrap()
        .iter()
        .map(|range| {
            let [start, end] = [0, 1].map(|at| usize::try_from(range[at].as_u64().unwrap()).unwrap());
            text[start..end].iter().collect()
        })
        .collect();
    assert_eq!(marked, ["refund", "Refund"]);
    assert_eq!(
        (&hit["unit"], &hit["index"], &hit["field"], &hit["more"], &hit["cut_before"], &hit["cut_after"]),
        (&json!("interaction"), &json!(0), &json!("response"), &json!(0), &json!(false), &json!(false))
    );
    assert!(hit["score"].as_f64().unwrap() > 0.0);
    let examples = examples();
    let hit = hits(&examples, &["rollback", "--kind", "contract"]).remove(0);
    assert_eq!((&hit["pointer"], &hit["unit"]), (&json!("/effects/0"), &Value::Null));
    // Whatever is cut, the same vault and the same question give the same bytes.
    let long = of_responses(&[&format!("{} needle {}", "hay ".repeat(500), "stack ".repeat(500))]);
    let hit = hits(&long, &["needle"]).remove(0);
    assert_eq!((&hit["cut_before"], &hit["cut_after"]), (&json!(true), &json!(true)));
    assert!(hit["text"].as_str().unwrap().len() <= 160);
    assert_eq!(hits(&long, &["needle"]), [hit]);
}

#[test]
fn the_best_comes_first_and_what_matches_alike_in_a_steady_order() {
    let sandbox =
        of_responses(&["refund", "a refund is one of very many words in this answer", "refund", "no"]);
    let first = hits(&sandbox, &["refund"]);
    assert_eq!(first.len(), 3);
    let scores: Vec<f64> = first.iter().map(|hit| hit["score"].as_f64().unwrap()).collect();
    assert!(scores[0] >= scores[1] && scores[1] > scores[2], "{scores:?}");
    for limit in 1..=3 {
        assert_eq!(hits(&sandbox, &["refund", "--limit", &limit.to_string()]), first[..limit]);
    }
    let twice = session("twice", &[("p", "refund refund"), ("q", "no"), ("r", "refund")]);
    sandbox.add([sandbox.write("twice.json", twice)]);
    let more: Vec<u64> =
        hits(&sandbox, &["refund"]).iter().map(|hit| hit["more"].as_u64().unwrap()).collect();
    assert_eq!(more.iter().sum::<u64>(), 1);
    assert_eq!(hits(&sandbox, &["refund", "--all"]).len(), 5);
}

#[test]
fn nothing_that_is_found_controls_the_terminal() {
    let sandbox = of_responses(&["evil \u{1b}[2J\u{9b}31m needle\u{202e}\r\n\n  and\u{0}more \u{1}x\u{2}"]);
    let ran = sandbox.run(["search", "needle more"]).expect(0);
    let controls = |character: char| character.is_control() && character != '\n' || character == '\u{202e}';
    assert!(!ran.stdout.contains(controls), "{:?}", ran.stdout);
    assert!(
        ran.stdout.contains("evil \\u{1b}[2J\\u{9b}31m needle\\u{202e} and\\u{0}more \\u{1}x\\u{2}"),
        "{}",
        ran.stdout
    );
    assert!(ran.stdout.lines().count() == 3);
}

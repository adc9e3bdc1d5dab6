//! The cases of `tests/corpus/GENERATE.md`, which are too large to store.

use runvault::artifact::AdmitOptions;
use runvault::digest::Digest;
use runvault::formats;
use runvault::validation::Report;
use serde_json::Value;

/// The document of a case, made as `generate_big.py` makes it.
fn document(name: &str) -> Vec<u8> {
    let (tag, contents): (&str, Vec<String>) = match name {
        "model_io/big-10000-interactions.json" => {
            ("a", (0..10_000).map(|index| format!("r{index}")).collect())
        }
        "model_io/big-10001-interactions.json" => {
            ("b", (0..10_001).map(|index| format!("r{index}")).collect())
        }
        "model_io/big-response-1000000.json" => ("c", vec!["x".repeat(1_000_000)]),
        "model_io/big-response-1000001.json" => ("d", vec!["x".repeat(1_000_001)]),
        "model_io/big-response-multibyte.json" => ("e", vec!["é".repeat(500_001)]),
        "model_io/big-total-100000000.json" => ("f", vec!["y".repeat(1_000_000); 100]),
        "model_io/big-total-100000001.json" => {
            ("g", std::iter::repeat_n("y".repeat(1_000_000), 100).chain(["z".to_owned()]).collect())
        }
        other => panic!("{other} is new; make it here"),
    };
    let mut text = format!(
        r#"{{"model_io_schema_version":"1.0.0","adapter_id":"big-{tag}","model_id":"m","mode":"record","interactions":["#
    );
    for (index, content) in contents.iter().enumerate() {
        let comma = if index > 0 { "," } else { "" };
        let (prompt, response) =
            (Digest::from_content(format!("p{index}").as_bytes()), Digest::from_content(content.as_bytes()));
        text += &format!(
            r#"{comma}{{"i":{index},"prompt_hash":"{prompt}","response_hash":"{response}","response_content":"{content}"}}"#
        );
    }
    (text + "]}").into_bytes()
}

fn violations(report: &Report) -> Vec<Value> {
    let of = |violation: &runvault::validation::Violation| serde_json::json!({"rule_id": violation.rule_id, "path": violation.path});
    report.violations().iter().map(of).collect()
}

#[test]
fn verdicts_and_hashes() {
    let text = std::fs::read_to_string(crate::conformance::corpus().join("GENERATE.md")).unwrap();
    let cases: Vec<Value> = text
        .lines()
        .filter(|line| line.starts_with('{'))
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(cases.len(), 7);
    for case in cases {
        let name = case["case"].as_str().unwrap();
        let document = document(name);
        assert_eq!(case["bytes"], document.len(), "{name}");
        match formats::named("model_io").unwrap().admit(document, &AdmitOptions::default()) {
            Ok(admitted) => assert_eq!(case["core_hash"], admitted.core().to_string(), "{name}"),
            Err(report) => assert_eq!(case["violations"], Value::from(violations(&report)), "{name}"),
        }
    }
}

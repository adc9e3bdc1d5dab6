//! The cases of the corpus.

use std::collections::HashMap;
use std::fs;
use std::path::PathBuf;

use proptest::prelude::*;

use super::*;

fn corpus() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/corpus")
}

fn cases() -> Vec<serde_json::Value> {
    let expected = fs::read_to_string(corpus().join("expected.jsonl")).unwrap();
    let cases = expected.lines().map(|line| serde_json::from_str(line).unwrap());
    let cases: Vec<serde_json::Value> = cases
        .filter(|case: &serde_json::Value| case["kind"] == "contract")
        .collect();
    assert!(cases.len() > 50);
    cases
}

fn document(case: &serde_json::Value) -> Vec<u8> {
    fs::read(corpus().join(case["case"].as_str().unwrap())).unwrap()
}

/// Rule and path of the violations that `case` lists under `name`.
fn listed(case: &serde_json::Value, name: &str) -> Vec<String> {
    let text = |violation: &serde_json::Value, name: &str| violation[name].as_str().unwrap().to_owned();
    let violations = case[name]
        .as_array()
        .map(Vec::as_slice)
        .unwrap_or_default()
        .iter();
    violations
        .map(|violation| format!("{} {}", text(violation, "rule_id"), text(violation, "path")))
        .collect()
}

#[test]
fn every_case_gets_its_verdict() {
    let mut hashes = HashMap::new();
    for case in cases() {
        let name = case["case"].as_str().unwrap().to_owned();
        match admit(document(&case)) {
            Err(report) => {
                assert_eq!(case["verdict"], "reject", "{name}: {report:?}");
                assert_eq!(found(&report), listed(&case, "violations"), "{name}");
            }
            Ok(admitted) => {
                assert_eq!(case["verdict"], "accept", "{name}");
                assert_eq!(case["core_hash"], admitted.core().to_string(), "{name}");
                assert_eq!(found(admitted.report()), listed(&case, "warnings"), "{name}");
                let mut core = Vec::new();
                let document = document(&case);
                Contract::write_core(&document, &Limits::default(), &mut core).unwrap();
                assert_eq!(CoreHash(Digest::of(&core)), admitted.core(), "{name}");
                let text = String::from_utf8(document).unwrap();
                assert!(Contract::recognises(&text, &member_names(&text)), "{name}");
                hashes.insert(name, admitted.core());
            }
        }
    }
    for case in cases() {
        let hash = |name: &str| {
            case[name]
                .as_str()
                .map(|other| (hashes[case["case"].as_str().unwrap()], hashes[other]))
        };
        assert!(hash("same_as").is_none_or(|(one, other)| one == other), "{case}");
        assert!(
            hash("differs_from").is_none_or(|(one, other)| one != other),
            "{case}"
        );
    }
}

/// A change to a document: where, how many bytes go, and what comes in.
type Mutation = (prop::sample::Index, usize, &'static [u8]);

fn mutation() -> impl Strategy<Value = Mutation> {
    let pieces: Vec<&'static [u8]> = vec![
        b"",
        b" ",
        b"\n",
        b"\n  ",
        b"\t",
        b"\r\n",
        b":",
        b": ",
        b"- ",
        b"? ",
        b"[",
        b"]",
        b"{",
        b"}",
        b",",
        b"\"",
        b"'",
        b"|",
        b">-",
        b"&x ",
        b"*x",
        b"!!int ",
        b"!",
        b"#",
        b" #",
        b"---\n",
        b"...",
        b"%YAML 1.2\n",
        b"\\",
        b"\\u",
        b"~",
        b".inf",
        b"0x",
        b"1e9",
        b"\xc3",
        b"\xef\xbb\xbf",
        b"\0",
        b"<<",
        b"io_refs:",
        b"null",
    ];
    (
        any::<prop::sample::Index>(),
        0_usize..8,
        prop::sample::select(pieces),
    )
}

proptest! {
    #[test]
    fn damaged_documents_are_refused_or_mean_what_they_hash(
        case: prop::sample::Index,
        mutations in prop::collection::vec(mutation(), 1..6),
    ) {
        let cases = CASES.with(Clone::clone);
        let mut document = case.get(&cases).clone();
        for (at, length, piece) in mutations {
            let start = at.index(document.len() + 1);
            let end = (start + length).min(document.len());
            document.splice(start..end, piece.iter().copied());
        }
        let text = String::from_utf8_lossy(&document);
        let _ = Contract::recognises(&text, &member_names(&text));
        if let Ok(admitted) = admit(document.clone()) {
            let mut core = Vec::new();
            Contract::write_core(&document, &Limits::default(), &mut core).unwrap();
            prop_assert_eq!(CoreHash(Digest::of(&core)), admitted.core());
            // The core is a contract itself, unless it has a large float, which RFC 8785 writes as an integer.
            if let Ok(again) = admit(core) {
                prop_assert_eq!(again.core(), admitted.core());
            }
        }
    }
}

thread_local! {
    static CASES: std::rc::Rc<Vec<Vec<u8>>> = std::rc::Rc::new(cases().iter().map(document).collect());
}

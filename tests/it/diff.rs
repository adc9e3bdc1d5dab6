//! Where two artifacts diverge, and what is different.

mod generated;

use std::path::Path;

use proptest::prelude::*;
use runvault::artifact::{AdmitOptions, MemberBytes};
use runvault::formats;
use runvault::vault::diff::{self, ChangeType, Counts};

use crate::conformance::corpus;
use crate::sandbox::{Ran, Sandbox, repository, session};

/// The first line, and the exit status.
fn verdict(one: &Path, other: &Path, more: &[&str]) -> (String, i32) {
    let sandbox = Sandbox::new();
    let mut arguments = vec!["diff".as_ref(), one.as_os_str(), other.as_os_str()];
    arguments.extend(more.iter().map(std::ffi::OsStr::new));
    let ran = sandbox.run(arguments);
    (ran.stdout.lines().next().unwrap_or(&ran.stderr).to_owned(), ran.status)
}

#[test]
fn pairs_of_the_corpus_diverge_where_they_do() {
    let text = std::fs::read_to_string(corpus().join("expected.jsonl")).unwrap();
    let mut same = 0;
    for case in text.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap()) {
        if let (Some(name), Some(other)) = (case["case"].as_str(), case["same_as"].as_str())
            && case["verdict"] == "accept"
        {
            let (first, status) = verdict(&corpus().join(name), &corpus().join(other), &[]);
            assert!(first.starts_with("identical core sha256:") && status == 0, "{name}: {first}");
            same += 1;
        }
    }
    assert!(same > 10, "{same}");
    for (one, other, first, status) in [
        ("rpk/round-int-differs.rpk", "rpk/round-long.rpk", "step 0: error event differs (metadata)", 1),
        (
            "rpk/unordered-inner-differs.rpk",
            "rpk/unordered-lists.rpk",
            "step 0: error event differs (input)",
            1,
        ),
        ("rpk/volatile-changed.rpk", "rpk/volatile-present.rpk", "no divergence", 0),
        ("contract/order-b-differs.yaml", "contract/order-a.yaml", "in a different order", 1),
        ("pack/ledger-crlf-differs", "pack/all-members", "no divergence", 0),
        ("trace/engine-loop-max.ndjson", "trace/engine-loop-stop.ndjson", "record 0: initial_state_hash", 1),
        ("model_io/random-0.json", "model_io/random-1.json", "session: model_id, adapter_id differ", 1),
    ] {
        let (line, exit) = verdict(&corpus().join(one), &corpus().join(other), &[]);
        assert!(line.contains(first) && exit == status, "{one}: {line}");
    }
}

/// What happened, where, in words, and the pointers of the values that differ.
type Found = (ChangeType, String, String, Vec<String>);

/// What the library finds in two valid documents of a kind: the place of each change, what is said and where values differ.
fn found(kind: &str, one: &[u8], other: &[u8]) -> (Counts, Vec<Found>) {
    let kind = formats::named(kind).unwrap();
    let parts = |bytes| kind.parts(&[MemberBytes { name: "", bytes }]).unwrap();
    for document in [one, other] {
        kind.admit(document.to_vec(), &AdmitOptions::default()).unwrap();
    }
    let diff = diff::compare(parts(one), parts(other));
    let changes = diff.changes(false).map(|change| {
        let pointers = change.values.iter().map(|value| value.pointer.clone()).collect();
        (change.change, change.place().to_owned(), change.says, pointers)
    });
    (diff.counts(), changes.collect())
}

type Exchanges = Vec<(String, String)>;

/// A generator, where the parts that it makes begin, what they are called and what is said of one whose second text changed.
type Case =
    (&'static str, fn(&Exchanges, usize) -> Vec<u8>, fn(usize, &str) -> String, &'static str, &'static str);

const CASES: [Case; 4] = [
    (
        "model_io",
        |exchanges, _| generated::session(exchanges),
        |index, _| format!("interaction {index}"),
        "same prompt, different response",
        "/response_content",
    ),
    (
        "rpk",
        |steps, hour| generated::run(steps, hour),
        |index, _| format!("step {index}"),
        "tool response differs (output)",
        "/output/answer",
    ),
    (
        "trace",
        |steps, hour| generated::trace(steps, hour),
        |index, _| format!("record {}", index + 1),
        "result differs",
        "/result/output/is",
    ),
    (
        "contract",
        |effects, _| generated::contract(effects),
        |_, name| format!("effect {name}"),
        "evidence differs",
        "/evidence/metric",
    ),
];

fn exchanges() -> impl Strategy<Value = Exchanges> {
    prop::collection::vec("\\PC{0,12}", 1..30).prop_map(|texts| {
        let numbered = texts.into_iter().enumerate();
        numbered.map(|(index, text)| (format!("name {}", index % 7 + index / 9 * 100), text)).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn one_changed_value_is_found_where_it_is(exchanges in exchanges(), at in any::<prop::sample::Index>(), hour in 0..24_usize) {
        let at = at.index(exchanges.len());
        let mut changed = exchanges.clone();
        changed[at].1 += " x";
        for (kind, make, label, says, pointer) in CASES {
            let (one, other) = (make(&exchanges, 9), make(&changed, hour));
            let (counts, changes) = found(kind, &one, &other);
            let [(ChangeType::Changed, place, said, pointers)] = changes.as_slice() else {
                panic!("{kind}: {changes:?}");
            };
            prop_assert_eq!(place, &label(at, &exchanges[at].0), "{}", kind);
            prop_assert!(said.ends_with(says), "{}: {}", kind, said);
            // Two records of one moment belong to one chain up to where they differ.
            prop_assert_eq!(said.starts_with("the chain forks"), kind == "trace" && hour == 9);
            prop_assert!(pointers.iter().any(|found| found == pointer), "{}: {:?}", kind, pointers);
            prop_assert_eq!(counts.changed, 1);
        }
    }

    #[test]
    fn what_is_inserted_or_removed_leaves_the_rest_alone(exchanges in exchanges(), at in any::<prop::sample::Index>()) {
        let at = at.index(exchanges.len() + 1);
        let mut longer = exchanges.clone();
        longer.insert(at, ("new".to_owned(), "as new".to_owned()));
        for (kind, make, label, ..) in CASES {
            let (one, other) = (make(&exchanges, 9), make(&longer, 9));
            let only = |one: &[u8], other: &[u8], sort: ChangeType| {
                let (counts, changes) = found(kind, one, other);
                assert_eq!((counts.changed, counts.moved), (0, 0), "{kind}");
                assert_eq!(changes.len(), 1, "{kind}: {changes:?}");
                assert_eq!((changes[0].0, changes[0].1.as_str()), (sort, label(at, "new").as_str()), "{kind}");
            };
            only(&one, &other, ChangeType::Inserted);
            only(&other, &one, ChangeType::Removed);
        }
    }
}

#[test]
fn places_are_matched_by_their_prompts() {
    let make = |texts: &[(&str, &str)]| session("a", texts).into_bytes();
    let one = make(&[("p", "1"), ("q", "2"), ("r", "3"), ("s", "4")]);
    let of = |other: &[(&str, &str)]| {
        let (_, changes) = found("model_io", &one, &make(other));
        changes
            .into_iter()
            .map(|(sort, place, says, _)| format!("{sort:?} {place} {says}"))
            .collect::<Vec<_>>()
    };
    assert_eq!(of(&[("p", "1"), ("q", "2"), ("r", "3"), ("s", "4")]), [""; 0]);
    assert_eq!(
        of(&[("x", "1"), ("q", "2!"), ("r", "3"), ("s", "4")]),
        [
            "Changed interaction 0 different prompt, same response",
            "Changed interaction 1 same prompt, different response"
        ]
    );
    assert_eq!(of(&[("s", "4"), ("p", "1"), ("q", "2"), ("r", "3")]), ["Moved interaction 3 "]);
    assert_eq!(
        of(&[("p", "1"), ("new", "n"), ("q", "other"), ("r", "3")]),
        [
            "Inserted interaction 1 ",
            "Changed interaction 1 same prompt, different response",
            "Removed interaction 3 "
        ]
    );
}

#[test]
fn packs_name_the_member_and_the_place_in_it() {
    let sandbox = Sandbox::new();
    let pack = repository("examples/pack");
    for name in ["run.json", "bundle.json", "evidence.json", "policy.json", "model_io.json"] {
        sandbox.write(&format!("p/{name}"), std::fs::read(pack.join(name)).unwrap());
    }
    let other = sandbox.path("p");
    assert!(verdict(&pack, &other, &[]).0.starts_with("identical core"));
    let text = |name: &str| std::fs::read_to_string(pack.join(name)).unwrap();
    sandbox.write("p/run.json", text("run.json").replace("\"0.3.10\"", "\"0.3.11\""));
    let (line, status) = verdict(&pack, &other, &[]);
    assert_eq!((line.as_str(), status), ("first divergence: member run.json: kernel_version differs", 1));
    // What follows from the session comes after it.
    let edited = text("model_io.json").replace("\"bug\"", "\"question\"");
    let hash = |text: &str| runvault::digest::Digest::from_content(text.as_bytes()).to_string();
    let edited = sandbox.write("p/model_io.json", edited.replace(&hash("bug"), &hash("question")));
    let core =
        sandbox.run(["verify".as_ref(), "--json".as_ref(), edited.as_os_str()]).expect(0).json().remove(0);
    let before = "sha256:4df877dec7f41a5df08a2e176ed2fd872cfdbda8ab3a83d6d5059a60c4df49f7";
    let run = text("run.json").replace(before, core["core_hash"].as_str().unwrap());
    sandbox.write("p/run.json", run);
    let (line, status) = verdict(&pack, &other, &[]);
    let expected = "first divergence: member model_io.json: interaction 1: same prompt, different response";
    assert_eq!((line.as_str(), status), (expected, 1));
    std::fs::remove_file(sandbox.path("p/policy.json")).unwrap();
    let (line, _) = verdict(&pack, &other, &[]);
    assert_eq!(line, "first divergence: member policy.json: only in the first");
}

#[test]
fn hashes_files_and_what_is_neither() {
    let sandbox = Sandbox::new();
    let one = sandbox.write("one.json", session("a", &[("hello", "hi")]));
    sandbox.write("abcdef12", session("a", &[("hello", "ho")]));
    sandbox.write("bad.json", session("a", &[("hello", "hi")]).replace("\"hi\"", "\"ho\""));
    std::fs::create_dir(sandbox.path("empty")).unwrap();
    let core = sandbox.add([one]).remove(0);
    sandbox.run(["diff", &core, "one.json"]).expect(0);
    sandbox.run(["diff", &core[7..19], "./abcdef12"]).expect(1);
    sandbox.run(["diff", "--expect", "one.json", &core]).expect(0);
    let unexpected = sandbox.run(["diff", "--expect", &core, "./abcdef12"]).expect(1);
    assert!(
        unexpected.stdout.starts_with("not as expected: interaction 0: same prompt"),
        "{}",
        unexpected.stdout
    );
    let refused = |arguments: &[&str], status: i32, because: &str| {
        let ran: Ran = sandbox.run([&["diff"], arguments].concat()).expect(status);
        assert!(ran.stderr.contains(because), "{}", ran.stderr);
        assert_eq!(ran.stdout, "");
    };
    refused(&[&core, "abcdef12"], 2, "for the file with this name, write ./abcdef12");
    refused(&["nothing.json", &core], 2, "there is no file, artifact, tag or run named nothing.json");
    refused(&["bad.json", &core], 2, "is not a valid session");
    refused(&["empty", &core], 2, "is a directory but not a pack");
    let trace = repository("examples/trace.ndjson");
    refused(&[&core, trace.to_str().unwrap()], 2, "only artifacts of the same kind can be compared");
    refused(&[&core], 3, "diff needs two arguments");
    refused(&["--expect", &core, &core, &core], 3, "takes exactly one other argument");
    refused(&[], 3, "required");
}

#[test]
fn what_is_ephemeral_counts_when_it_is_asked_for() {
    let (one, other) = (repository("examples/session.json"), repository("examples/session-rerecorded.json"));
    assert_eq!(verdict(&one, &other, &[]).1, 0);
    assert_eq!(verdict(&one, &other, &["--all"]).1, 1);
    let sandbox = Sandbox::new();
    let steps = [("a".to_owned(), "b".to_owned())];
    let (one, other) = (generated::run(&steps, 8), generated::run(&steps, 9));
    let (one, other) = (sandbox.write("one.rpk", one), sandbox.write("other.rpk", other));
    let (line, status) = verdict(&one, &other, &[]);
    assert!(line.starts_with("no divergence") && status == 0, "{line}");
    let all = sandbox.run(["diff", "--all", "--json", "one.rpk", "other.rpk"]).expect(1).json().remove(0);
    assert_eq!(all["first_divergence"], serde_json::Value::Null);
    let pointers: Vec<&str> = all["changes"][1]["values"]
        .as_array()
        .unwrap()
        .iter()
        .map(|value| value["pointer"].as_str().unwrap())
        .collect();
    assert_eq!(pointers, ["/hash", "/id", "/metadata/latency_ms", "/timestamp"].split_at(1).1);
}

fn screens(sandbox: &Sandbox, arguments: &[&str]) -> String {
    let mut screens = String::new();
    for (columns, color) in [("80", false), ("120", false), ("80", true)] {
        let mut command = sandbox.command();
        command.args(arguments).env("COLUMNS", columns);
        if color {
            command.env("CLICOLOR_FORCE", "1");
        }
        let ran: Ran = command.output().unwrap().into();
        let title = if color { " in color" } else { "" };
        // So that a diff of the snapshot is text.
        let text = ran.stdout.replace('\u{1b}', "␛");
        screens += &format!("=== {columns} columns{title}, status {}\n{text}{}", ran.status, ran.stderr);
    }
    screens
}

#[test]
fn screens_of_text() {
    let sandbox = Sandbox::new();
    let long = "The importer counts rows from one, so the last row of every page is read twice. ".repeat(4);
    let hostile = "\u{1b}[2J\u{202e}evil\u{9b}31m";
    let one = [("ask", "Good morning, all is well."), ("long", &long), ("gone", "x"), ("h", "calm")];
    let long = long.replacen("from one", "from zero", 1).replacen("twice", "once", 3);
    let other = [("ask", "Good evening, all is well now."), ("long", &long), ("h", hostile), ("new", "n")];
    sandbox.write("one.json", session("a", &one));
    sandbox.write("other.json", session("a\u{1b}]0;x\u{7}", &other));
    let whole = screens(&sandbox, &["diff", "one.json", "other.json"]);
    assert!(!whole.contains(['\u{9b}', '\u{202e}', '\u{7}']));
    insta::assert_snapshot!(whole);
}

#[test]
fn parts_of_it_and_json() {
    let sandbox = Sandbox::new();
    let steps = |answer: &str| {
        let pairs = [("a", "1"), ("b", answer), ("c", "3")];
        pairs.map(|(one, other)| (one.to_owned(), other.to_owned())).to_vec()
    };
    sandbox.write("one.ndjson", generated::trace(&steps("2"), 9));
    sandbox.write("other.ndjson", generated::trace(&steps("two"), 9));
    let mut all = String::new();
    for more in
        [&["--stat"][..], &["--first"], &["--json"], &["--json", "--stat"], &["--json", "--first", "--all"]]
    {
        let ran = sandbox.run([&["diff", "one.ndjson", "other.ndjson"], more].concat()).expect(1);
        all += &format!("$ runvault diff {}\n{}", more.join(" "), ran.stdout);
    }
    insta::assert_snapshot!(all);
}

#[test]
fn long_traces_that_repeat_themselves_are_aligned() {
    let exchanges: Vec<(String, String)> =
        (0..10_000).map(|index| (format!("p{index}"), format!("r{index}"))).collect();
    let steps = |count: usize| exchanges.iter().cycle().take(count).cloned().collect::<Vec<_>>();
    let (whole, mut shorter) = (steps(20_000), steps(20_000));
    shorter.remove(12_345);
    let (counts, changes) = found("trace", &generated::trace(&whole, 9), &generated::trace(&shorter, 9));
    assert_eq!((counts.removed, counts.changed, counts.inserted, counts.moved), (1, 0, 0, 0));
    assert_eq!(changes[0].1, "record 12346");
}

#[test]
fn what_is_said_to_differ_can_be_seen() {
    for kind in ["model_io", "rpk", "trace", "contract"] {
        let mut paths: Vec<_> =
            std::fs::read_dir(corpus().join(kind)).unwrap().map(|entry| entry.unwrap().path()).collect();
        paths.sort();
        let handle = formats::named(kind).unwrap();
        let admitted = paths.iter().filter_map(|path| {
            let bytes = std::fs::read(path).unwrap();
            let core = handle.admit(bytes.clone(), &AdmitOptions::default()).ok()?.core();
            Some((core, bytes))
        });
        let documents: Vec<_> = admitted.collect();
        for (at, (core, one)) in documents.iter().enumerate() {
            for (other_core, other) in documents.iter().skip(at).take(4) {
                let (counts, changes) = found(kind, one, other);
                if core == other_core {
                    assert!(changes.is_empty(), "{kind} {core}: {changes:?}");
                }
                for (sort, place, says, pointers) in &changes {
                    let is_shown = *sort == ChangeType::Moved || !pointers.is_empty();
                    assert!(is_shown, "{kind} {core} {other_core}: {place} {says}");
                }
                let told = counts.changed + counts.moved + counts.removed + counts.inserted;
                assert_eq!(told, changes.len());
            }
        }
    }
}

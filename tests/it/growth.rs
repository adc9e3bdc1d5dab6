//! Many artifacts that share one thing: commands do as much work as they show, and say how much is left out. Without that,
//! these tests would take minutes each; `benches/growth` measures how the work grows.

use runvault::Vault;
use runvault::digest::CoreHash;
use runvault::intake::{ExamineOptions, Input, Inputs, SourceError};
use runvault::storage::Filter;
use runvault::vault::add::{AddMonitor, DocumentOutcome, ExaminedDocument};
use runvault::vault::annotate::SetTagRequest;
use runvault::vault::resolve::ResolveRequest;
use serde_json::{Value, json};

use crate::sandbox::{Ran, Sandbox, run_pack, session};
use crate::traces::{self, Record};

struct Expecting;

impl AddMonitor for Expecting {
    fn examined(&mut self, examined: &ExaminedDocument) {
        assert!(
            matches!(examined.outcome, DocumentOutcome::Added | DocumentOutcome::NewCapture),
            "{:?}",
            examined.violations
        );
    }

    fn unreadable(&mut self, error: &SourceError) {
        panic!("{error}");
    }
}

fn fill(sandbox: &Sandbox, documents: impl Iterator<Item = String>) -> Vault {
    let vault = Vault::open(&sandbox.vault()).unwrap();
    let input = |text: String| Input::Document { name: String::new(), bytes: text.into_bytes() };
    let inputs = Inputs::new(documents.map(input).collect());
    vault.add(inputs, &ExamineOptions::default(), &mut Expecting).unwrap();
    vault
}

fn latest(vault: &Vault) -> CoreHash {
    ResolveRequest::new("latest").locate(vault).unwrap().artifact.core
}

fn tag_latest(vault: &Vault, name: &str) {
    let core_hash = latest(vault);
    vault.run(&SetTagRequest { core_hash, name: name.to_owned() }).unwrap();
}

fn lines(ran: &Ran) -> usize {
    ran.stdout.lines().count()
}

#[test]
fn histories_of_one_run_are_counted_and_listed_up_to_a_limit() {
    const TRACES: usize = 1_500;
    let sandbox = Sandbox::new();
    let trace = |number| traces::lines("run-1", &[Record::Step(number)]).concat();
    fill(&sandbox, (0..TRACES).map(trace));
    let pairs = TRACES * (TRACES - 1) / 2;

    let forks = sandbox.run(["forks"]).expect(1);
    assert_eq!(lines(&forks), 3 * 1_000);
    let more = pairs - 1_000;
    assert_eq!(forks.stderr, format!("1000 forks and {more} more; --limit {pairs} lists them\n"));
    let some = sandbox.run(["forks", "--json", "--limit", "7"]).expect(1);
    assert_eq!(lines(&some), 7);
    assert_eq!(some.json()[0]["record"], 1);

    let links = sandbox.run(["links", "latest"]).expect(0);
    // One more link leads to the run, which is not there.
    let left = TRACES - 1_000;
    assert!(
        links.stderr.starts_with(&format!("1000 links and {left} more; --limit {TRACES} lists them")),
        "{}",
        links.stderr
    );
    let deep = sandbox.run(["links", "latest", "--depth", "3", "--limit", "5000"]).expect(0);
    assert!(deep.stderr.contains("other artifacts were not examined"), "{}", deep.stderr);
    let shown = sandbox.run(["show", "latest"]).expect(0);
    assert!(
        shown.stdout.ends_with(&format!("    and {} more; \"runvault links\" lists them\n", TRACES - 100)),
        "{}",
        shown.stdout
    );
}

#[test]
fn longer_versions_are_no_forks_and_those_that_part_later_are() {
    let sandbox = Sandbox::new();
    let steps = |outputs: &[usize]| {
        traces::lines("run-1", &outputs.iter().copied().map(Record::Step).collect::<Vec<_>>()).concat()
    };
    let histories: [&[usize]; 6] = [&[1], &[1, 2], &[1, 2, 3], &[1, 2, 4], &[1, 5], &[6]];
    fill(&sandbox, histories.iter().map(|outputs| steps(outputs)));
    let forks = sandbox.run(["forks", "--json"]).expect(1).json();
    let mut found: Vec<u64> = forks.iter().map(|fork| fork["record"].as_u64().unwrap()).collect();
    found.sort_unstable();
    // By hand: [6] parts from five others at record 1, [1, 5] from three at 2, the two of three steps from each other at 3.
    assert_eq!(found, [1, 1, 1, 1, 1, 2, 2, 2, 3]);
    let limited = sandbox.run(["forks", "--limit", "4"]).expect(1);
    assert_eq!(limited.stderr, "4 forks and 5 more; --limit 9 lists them\n");
    let whole = sandbox.run(["forks", "--json"]).expect(1).stdout;
    let first: String = whole.split_inclusive('\n').take(4).collect();
    assert_eq!(sandbox.run(["forks", "--json", "--limit", "4"]).expect(1).stdout, first);
}

#[test]
fn no_path_is_found_among_many_runs_of_one_name() {
    let sandbox = Sandbox::new();
    let answer =
        |number: usize| [json!({"type": "model.response", "output": {"content": number.to_string()}})];
    let vault = fill(&sandbox, (0..1_200).map(|number| run_pack("run-1", &answer(number))));
    tag_latest(&vault, "one");
    tag_latest(&fill(&sandbox, std::iter::once(session("alone", &[]))), "other");
    let none = sandbox.run(["path", "@one", "@other"]).expect(1);
    assert!(none.stderr.contains("no path of links from"), "{}", none.stderr);
    // Whoever shares the name is one step away.
    let chain = sandbox.run(["path", "@one", "latest~5", "--json"]).expect(0).json();
    assert_eq!(chain.len(), 1);
    assert_eq!(chain[0]["relation"], "forks");
}

#[test]
fn sessions_and_runs_that_share_many_exchanges_are_forgotten() {
    const EACH: usize = 120;
    let sandbox = Sandbox::new();
    let exchanges: Vec<(String, String)> =
        (0..60).map(|index| (format!("prompt {index}"), format!("response {index}"))).collect();
    let borrowed: Vec<(&str, &str)> =
        exchanges.iter().map(|(prompt, response)| (prompt.as_str(), response.as_str())).collect();
    let run = |number: usize| {
        let steps = exchanges.iter().flat_map(|(prompt, response)| {
            [
                json!({"type": "model.request", "input": {"prompt": prompt, "of": number}}),
                json!({"type": "model.response", "output": {"content": response}}),
            ]
        });
        run_pack(&format!("run-{number}"), &steps.collect::<Vec<Value>>())
    };
    let sessions = (0..EACH).map(|number| session(&format!("adapter-{number}"), &borrowed));
    let vault = fill(&sandbox, sessions.chain((0..EACH).map(run)));
    tag_latest(&vault, "kept");

    // A recording with the same exchanges keeps nothing, and is not looked up to find that out.
    let kept = ["forget", "--keep-tag", "kept", "--json"];
    let plan = sandbox.run(kept.into_iter().chain(["--dry-run"])).expect(0).json();
    let reasons = |kind: &str| {
        let of_kind = plan.iter().filter(move |line| line["kind"] == kind && line["keep"] == true);
        of_kind.map(|line| line["reasons"][0].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(reasons("rpk"), ["tag kept"]);
    assert_eq!(reasons("model_io"), [""; 0]);
    sandbox.run(["rm", "latest~150"]).expect(0);
    sandbox.run(kept.into_iter().chain(["--yes"])).expect(0);
    assert_eq!(vault.snapshot().unwrap().count(&Filter::default()).unwrap(), 1);
    sandbox.run(["forget", "--keep-last", "0", "--yes"]).expect(0);
    sandbox.run(["tag", "remove", "kept"]);
    assert_eq!(vault.snapshot().unwrap().count(&Filter::default()).unwrap(), 0);
    sandbox.run(["fsck"]).expect(0);
}

#[test]
fn all_references_of_one_artifact_are_listed() {
    const REFERENCES: usize = 8_000;
    let sandbox = Sandbox::new();
    let digest =
        |number: usize| runvault::digest::Digest::from_content(number.to_string().as_bytes()).to_string();
    let hashes: Vec<String> = (0..REFERENCES).map(digest).collect();
    fill(&sandbox, std::iter::once(run_pack("run-1", &[json!({"type": "tool.response", "output": hashes})])));
    let all = sandbox.run(["links", "latest", "--limit", "100000"]).expect(0);
    let json = sandbox.run(["links", "latest", "--json"]).expect(0);
    assert_eq!(lines(&all), lines(&json) + 1);
    assert_eq!(lines(&json), REFERENCES);
    let some = sandbox.run(["links", "latest"]).expect(0);
    assert_eq!(lines(&some), 1_001);
    assert_eq!(
        some.stderr,
        format!("1000 links and {} more; --limit {REFERENCES} lists them\n", REFERENCES - 1_000)
    );
}

#[test]
fn the_newest_of_many_sessions_with_one_prompt_are_found() {
    const SESSIONS: usize = 1_300;
    let sandbox = Sandbox::new();
    let document = |number: usize| {
        let response = format!("answer {number}");
        session(&format!("adapter-{number}"), &[("shared", "same"), ("own", &response)])
    };
    fill(&sandbox, (0..SESSIONS).map(document));
    let last = latest(&fill(&sandbox, std::iter::once(document(SESSIONS)))).to_string();

    let found =
        sandbox.run(["find", "sessions", "--prompt", "shared", "--limit", "3", "--json"]).expect(0).json();
    assert_eq!(found.len(), 3);
    assert_eq!(found[0]["core_hash"], last.as_str());
    assert_eq!(found[0]["matches"][0]["role"], "prompt");
    let told = sandbox.run(["find", "sessions", "--prompt", "shared", "--limit", "3"]).expect(0);
    assert_eq!(told.stderr, "3 of more than 1000 sessions\n");
    // Without a limit, all of them are found.
    assert_eq!(
        lines(&sandbox.run(["find", "sessions", "--prompt", "shared", "--json"]).expect(0)),
        SESSIONS + 1
    );
    let replayed = sandbox.run(["replay", "any", "--prompt", "own"]).expect(0);
    assert_eq!(replayed.stdout.trim_end(), format!("answer {SESSIONS}"));
    // They share exchanges with each other, and none with a run.
    assert!(!sandbox.run(["show", "latest"]).expect(0).stdout.contains("replays"));
}

#[test]
fn captures_of_one_artifact_are_found_by_what_each_mentions_and_listed_up_to_a_limit() {
    const CAPTURES: usize = 150;
    let sandbox = Sandbox::new();
    let capture = |number: usize| {
        session("a", &[("prompt", "response")]).replacen(',', &format!(",{}", " ".repeat(number)), 1)
    };
    let vault = fill(&sandbox, (0..CAPTURES).map(capture));
    let latest = ResolveRequest::new("latest").locate(&vault).unwrap().artifact;
    let snapshot = vault.snapshot().unwrap();
    assert_eq!(snapshot.captures_of(latest.core).unwrap().len(), CAPTURES);
    assert_eq!(snapshot.mentions(&[latest.core], None).unwrap()[0].len(), 2);
    let shown = sandbox.run(["show", "latest"]).expect(0);
    assert!(shown.stdout.contains("and 50 more captures; --json lists them"), "{}", shown.stdout);
    sandbox.run(["fsck"]).expect(0);
}

#[test]
fn what_is_stored_as_differences_outlives_what_it_differs_from() {
    const DIFFERENCES: usize = 600;
    let sandbox = Sandbox::new();
    let document = |number: usize| {
        let own = format!("own {number}");
        let shared: Vec<String> = (0..20).map(|index| format!("prompt {index} of some length")).collect();
        let mut exchanges: Vec<(&str, &str)> =
            shared.iter().map(|prompt| (prompt.as_str(), prompt.as_str())).collect();
        exchanges.push((&own, "own"));
        session("a", &exchanges)
    };
    let vault = fill(&sandbox, std::iter::once(document(0)));
    tag_latest(&vault, "base");
    fill(&sandbox, (1..=DIFFERENCES).map(document));
    let stored = stored_count(&sandbox, "SELECT count(*) FROM payload WHERE base IS NOT NULL");
    assert!(stored >= 250 * 2, "{stored} differences: there are several transactions");
    sandbox.run(["rm", "@base", "--dry-run"]).expect(0);
    sandbox.run(["rm", "@base"]).expect(0);
    assert_eq!(vault.snapshot().unwrap().count(&Filter::default()).unwrap(), DIFFERENCES as u64);
    // What they were differences to is gone, and they are differences to one of them.
    let now = stored_count(&sandbox, "SELECT count(*) FROM payload WHERE base IS NOT NULL");
    assert!(now >= 250 * 2, "{now}");
    sandbox.run(["fsck"]).expect(0);
}

/// A number that a statement gives.
#[expect(clippy::disallowed_methods, reason = "it looks into the file, as no reader of the library does")]
fn stored_count(sandbox: &Sandbox, sql: &str) -> i64 {
    let connection = rusqlite::Connection::open(sandbox.vault()).unwrap();
    connection.query_row(sql, [], |row| row.get(0)).unwrap()
}

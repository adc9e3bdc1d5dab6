//! Operations as data: requests and answers survive JSON, pages make up the whole, and commands print the answers.

use std::fmt::Debug;

use runvault::Vault;
use runvault::digest::{CoreHash, Digest};
use runvault::intake::ExamineOptions;
use runvault::vault::annotate::{AddLinkRequest, SetTagRequest};
use runvault::vault::api::Operation;
use runvault::vault::audit::AuditRequest;
use runvault::vault::details::{CapturesRequest, Detail};
use runvault::vault::diff::{ComparedArtifact, DiffExtent, DiffRequest};
use runvault::vault::find::{ArtifactFilter, Condition, FindRequest};
use runvault::vault::forks::{ForksOfRequest, ForksRequest};
use runvault::vault::links::LinksRequest;
use runvault::vault::recordings::RecordingsRequest;
use runvault::vault::replay::{ReplayError, ReplayMiss, ReplayRequest, ResponsesRequest};
use runvault::vault::resolve::{DigestsRequest, ResolveAnswer, ResolveCandidate, ResolveRequest};
use runvault::vault::rules::RulesRequest;
use runvault::vault::show::ShowRequest;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::sandbox::{Sandbox, repository, run_pack, session};

/// A vault of each engine, with the directory of the second.
fn vaults() -> (TempDir, [Vault; 2]) {
    let directory = tempfile::tempdir().unwrap();
    let vault = Vault::create(&directory.path().join("v.vault")).unwrap();
    (directory, [Vault::in_memory(), vault])
}

fn add(vault: &Vault, document: impl Into<Vec<u8>>) -> CoreHash {
    vault.add_document(document.into(), &ExamineOptions::default()).unwrap().core
}

fn example(name: &str) -> Vec<u8> {
    std::fs::read(repository("examples").join(name)).unwrap()
}

fn prompt(text: &str) -> Digest {
    Digest::from_content(text.as_bytes())
}

/// Runs a request that was sent as JSON, and returns the answer as it was received.
fn sent<O>(vault: &Vault, request: &O) -> O::Answer
where
    O: Operation + PartialEq + Debug,
    O::Answer: PartialEq + Debug,
    O::Error: Debug,
{
    let received: O = serde_json::from_str(&serde_json::to_string(request).unwrap()).unwrap();
    assert_eq!(&received, request);
    let answer = vault.run(&received).unwrap();
    let received: O::Answer = serde_json::from_str(&serde_json::to_string(&answer).unwrap()).unwrap();
    assert_eq!(received, answer);
    received
}

/// Five run packs with one id, of which each differs from the others in its last step.
fn forking(vault: &Vault) -> Vec<CoreHash> {
    let run = |answer: usize| {
        let answers = ["same".to_owned(), answer.to_string()];
        let step = |text: &String| json!({"type": "model.response", "output": {"content": text}});
        run_pack("run-1", &answers.iter().map(step).collect::<Vec<_>>())
    };
    (0..5).map(|answer| add(vault, run(answer))).collect()
}

#[test]
fn pages_of_forks_make_up_all_of_them() {
    let (_directory, vaults) = vaults();
    for vault in &vaults {
        forking(vault);
        let all = sent(vault, &ForksRequest::default());
        assert_eq!((all.forks.len(), all.count, &all.next), (10, 10, &None));
        let (mut paged, mut after) = (Vec::new(), None);
        loop {
            let page = sent(vault, &ForksRequest { limit: Some(3), after });
            assert!(page.forks.len() <= 3);
            paged.extend(page.forks);
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        assert_eq!(paged, all.forks);
    }
}

#[test]
fn the_forks_of_artifacts_are_limited_by_pairs_and_comparisons() {
    let (_directory, vaults) = vaults();
    for vault in &vaults {
        let artifacts = forking(vault)[..2].to_vec();
        let request = ForksOfRequest { artifacts, limit: None, comparisons: None };
        let all = sent(vault, &request);
        // Each of the two forks from the four others, and they are a pair of both.
        assert_eq!((all.forks.len(), all.is_more, all.is_complete), (7, false, true));
        let some = sent(vault, &ForksOfRequest { limit: Some(3), ..request.clone() });
        assert_eq!((some.forks.as_slice(), some.is_more), (&all.forks[..3], true));
        let few = sent(vault, &ForksOfRequest { comparisons: Some(2), ..request });
        assert_eq!((few.forks.as_slice(), few.is_complete), (&all.forks[..2], false));
    }
}

#[test]
fn digits_are_resolved_among_what_is_mentioned() {
    let (_directory, vaults) = vaults();
    for vault in &vaults {
        let core = add(vault, session("a", &[("question", "answer")]));
        let digits = |digest: Digest| format!("{digest:.12}").parse().unwrap();
        let request =
            |digest, group: &str| DigestsRequest { prefix: digits(digest), group: Some(group.to_owned()) };
        let asked = prompt("question");
        assert_eq!(sent(vault, &request(asked, "prompt")).digests, [asked]);
        assert_eq!(sent(vault, &request(asked, "response")).digests, []);
        assert_eq!(sent(vault, &request(core.0, "prompt")).removed, None);
    }
}

#[test]
fn a_removed_hash_is_resolved_to_its_removal() {
    let sandbox = Sandbox::new();
    let core = sandbox.add([sandbox.write("s.json", session("a", &[("question", "answer")]))]).remove(0);
    sandbox.run(["rm", &core]).expect(0);
    let vault = Vault::open(&sandbox.vault()).unwrap();
    let prefix = core[..19].parse().unwrap();
    let removed = sent(&vault, &DigestsRequest { prefix, group: None }).removed.unwrap();
    assert_eq!(
        (removed.digest.to_string(), removed.removed.core_hash.to_string()),
        (core.clone(), core.clone())
    );
    assert!(removed.to_string().starts_with(&format!("{core} (session) was removed on ")), "{removed}");
    let answer = sent(&vault, &ResolveRequest::new(core));
    assert!(matches!(&answer, ResolveAnswer::Removed { .. }), "{answer:?}");
}

#[test]
fn a_page_of_forks_begins_after_a_pair_that_is_gone() {
    let vault = Vault::in_memory();
    forking(&vault);
    let all = sent(&vault, &ForksRequest::default()).forks;
    let first = sent(&vault, &ForksRequest { limit: Some(2), after: None });
    let mut cursor = first.next.unwrap();
    // No artifact has this hash, but it has a place in the order.
    let hex = cursor.artifacts[1].0.hex();
    let (most, last) = hex.split_at(63);
    let digit = if last == "0" { "1" } else { "0" };
    cursor.artifacts[1] = format!("{most}{digit}").parse().unwrap();
    let rest = sent(&vault, &ForksRequest { limit: None, after: Some(cursor) }).forks;
    assert!(rest == all[2..] || rest == all[1..], "{} of {}", rest.len(), all.len());
}

#[test]
fn pages_of_captures_make_up_all_of_them() {
    let (_directory, vaults) = vaults();
    for vault in &vaults {
        let document = |spaces: usize| {
            session("a", &[("prompt", "response")]).replacen(',', &format!(",{}", " ".repeat(spaces)), 1)
        };
        let cores: Vec<CoreHash> = (0..5).map(|spaces| add(vault, document(spaces))).collect();
        let request = CapturesRequest::new(cores[0]);
        let all = sent(vault, &request);
        assert_eq!((all.captures.len(), all.count, all.next), (5, 5, None));
        assert_eq!(all.captures.iter().filter(|capture| capture.preferred).count(), 1);
        assert_eq!(sent(vault, &ShowRequest { artifact: cores[0] }).captures, all.captures);
        let first = sent(vault, &CapturesRequest { limit: Some(2), ..request.clone() });
        assert_eq!((first.captures.as_slice(), first.count), (&all.captures[..2], 5));
        let rest = sent(vault, &CapturesRequest { after: first.next, ..request.clone() });
        assert_eq!((rest.captures.as_slice(), rest.next), (&all.captures[2..], None));
    }
}

#[test]
fn pages_of_recordings_make_up_all_of_them() {
    let (_directory, vaults) = vaults();
    for vault in &vaults {
        for number in 0..5 {
            add(vault, session(&format!("adapter-{number}"), &[("shared", &number.to_string())]));
        }
        add(vault, session("other", &[("another", "response")]));
        let all = sent(vault, &RecordingsRequest::new(prompt("shared")));
        assert_eq!((all.recordings.len(), &all.next), (5, &None));
        let mut request = RecordingsRequest { limit: Some(2), ..RecordingsRequest::new(prompt("shared")) };
        let mut paged = Vec::new();
        loop {
            let page = sent(vault, &request);
            paged.extend(page.recordings);
            request.after = page.next;
            if request.after.is_none() {
                break;
            }
        }
        assert_eq!(paged, all.recordings);
    }
}

#[test]
fn a_prompt_is_replayed_from_one_recording_or_the_newest() {
    let (_directory, vaults) = vaults();
    for vault in &vaults {
        let old = add(vault, session("old", &[("question", "one"), ("question", "two")]));
        let new = add(vault, session("new", &[("question", "three")]));
        let newest = ReplayRequest::new(prompt("question"));
        let answer = sent(vault, &newest);
        assert_eq!((answer.core_hash, answer.response.as_str(), answer.occurrences), (new, "three", 1));
        assert_eq!(answer.response_hash, prompt("three"));
        let second = ReplayRequest { artifact: Some(old), occurrence: 2.try_into().ok(), ..newest.clone() };
        let answer = sent(vault, &second);
        assert_eq!((answer.index, answer.response.as_str(), answer.occurrences), (1, "two", 2));
        let third = ReplayRequest { occurrence: 3.try_into().ok(), ..second };
        let Err(ReplayError::Miss { core, miss }) = vault.run(&third) else { panic!("it has no third") };
        assert_eq!(core, Some(old));
        assert!(matches!(*miss, ReplayMiss::NoOccurrence { occurrence: 3, recorded: 2, .. }), "{miss}");
        let unknown = vault.run(&ReplayRequest::new(prompt("unknown")));
        assert!(matches!(&unknown, Err(ReplayError::Miss { core: None, .. })), "{unknown:?}");
    }
}

#[test]
fn pages_of_responses_make_up_all_of_them() {
    let (_directory, vaults) = vaults();
    for vault in &vaults {
        for name in ["session.json", "run.rpk"] {
            let request = ResponsesRequest::new(add(vault, example(name)));
            let all = sent(vault, &request);
            assert_eq!((all.responses.len() as u64, all.next), (all.count, None));
            let first = sent(vault, &ResponsesRequest { limit: Some(1), ..request.clone() });
            assert_eq!((first.responses.as_slice(), first.next), (&all.responses[..1], Some(1)));
            let rest = sent(vault, &ResponsesRequest { after: first.next, ..request });
            assert_eq!((rest.responses.as_slice(), rest.next), (&all.responses[1..], None));
        }
    }
}

#[test]
fn a_text_is_resolved_to_what_it_names() {
    let (_directory, vaults) = vaults();
    for vault in &vaults {
        let resolved = |text: &str| sent(vault, &ResolveRequest::new(text));
        let (session, run) = (add(vault, example("session.json")), add(vault, example("run.rpk")));
        vault.run(&SetTagRequest { core_hash: session, name: "golden".to_owned() }).unwrap();
        let run_id = sent(vault, &ShowRequest { artifact: run });
        let run_id = run_id.attributes.iter().find(|attribute| attribute.name == "run_id").unwrap();
        let whole = session.to_string();
        for (text, expected) in [
            (whole.as_str(), session),
            (&whole[..19], session),
            ("@golden", session),
            ("golden", session),
            ("latest~1", session),
            ("latest", run),
            (&run_id.value, run),
        ] {
            let ResolveAnswer::Artifact { artifact, .. } = resolved(text) else { panic!("{text}") };
            assert_eq!(artifact.core_hash, expected, "{text}");
        }
        let capture = sent(vault, &CapturesRequest::new(session)).captures[0].capture_hash;
        let answer = resolved(&capture.to_string());
        assert!(
            matches!(&answer, ResolveAnswer::Capture { capture_hash, .. } if *capture_hash == capture),
            "{answer:?}"
        );
        let asked = prompt("Summarise ticket 4711 in one sentence.");
        let ResolveAnswer::Mentioned(mentioned) = resolved(&asked.to_string()) else { panic!("a prompt") };
        assert_eq!((mentioned.digest, mentioned.is_more), (asked, false));
        assert_eq!(mentioned.artifacts.len() as u64, mentioned.count);
        assert!(mentioned.artifacts.iter().any(|hit| hit.artifact.core_hash == session));
        for nothing in ["@nothing", "latest~2", "no-such-run", "sha256:123456"] {
            let answer = resolved(nothing);
            assert!(matches!(&answer, ResolveAnswer::NotFound { .. }), "{nothing}: {answer:?}");
        }
    }
}

#[test]
fn a_run_id_of_several_artifacts_is_ambiguous() {
    let (_directory, vaults) = vaults();
    for vault in &vaults {
        let runs = forking(vault);
        let answer = sent(vault, &ResolveRequest::new("run-1"));
        let ResolveAnswer::Ambiguous { candidates, count } = answer else { panic!("{answer:?}") };
        assert_eq!(count, Some(5));
        let newest_first = runs.iter().rev().map(|core| ResolveCandidate::Artifact { core_hash: *core });
        assert_eq!(candidates, newest_first.collect::<Vec<_>>());
    }
}

#[test]
fn pages_of_a_comparison_make_up_all_changes() {
    let (_directory, vaults) = vaults();
    for vault in &vaults {
        let exchanges = |answer: &'static str| -> Vec<(&str, &str)> {
            ["a", "b", "c", "d", "e"].map(|prompt| (prompt, answer)).to_vec()
        };
        let one = add(vault, session("x", &exchanges("old text")));
        let other = add(vault, session("x", &exchanges("new text")));
        let side = |core_hash| ComparedArtifact { core_hash, capture_hash: None };
        let request = DiffRequest {
            ignore: Vec::new(),
            one: side(one),
            other: side(other),
            all: false,
            extent: DiffExtent::All,
            limit: None,
            after: None,
        };
        let all = sent(vault, &request);
        let changes = all.changes.unwrap();
        assert_eq!((all.different, changes.len(), all.counts.changed), (true, 5, 5));
        assert_eq!(all.first_divergence.as_ref(), changes.first());
        let page = sent(vault, &DiffRequest { limit: Some(2), ..request.clone() });
        assert_eq!((page.changes.as_deref(), page.next), (Some(&changes[..2]), Some(2)));
        let rest = sent(vault, &DiffRequest { after: page.next, ..request.clone() });
        assert_eq!((rest.changes.as_deref(), rest.next), (Some(&changes[2..]), None));
        let first = sent(vault, &DiffRequest { extent: DiffExtent::First, ..request.clone() });
        assert_eq!(first.changes.as_deref(), Some(&changes[..1]));
        assert_eq!(sent(vault, &DiffRequest { extent: DiffExtent::Counts, ..request }).changes, None);
    }
}

#[test]
fn pages_of_audits_make_up_all_of_them() {
    let (_directory, vaults) = vaults();
    for vault in &vaults {
        let contract = add(vault, example("contract.yaml"));
        for name in ["run.rpk", "trace.ndjson"] {
            let (target, relation) = (add(vault, example(name)), "governs".to_owned());
            vault.run(&AddLinkRequest { source: contract, relation, target, note: None }).unwrap();
        }
        let request = AuditRequest { contract, run: None, limit: None, after: None };
        let all = sent(vault, &request);
        assert!(all.runs.len() > 1 && all.effects > 0, "{} runs", all.runs.len());
        assert!(all.runs.iter().all(|run| run.effects.len() as u64 == all.effects));
        let first = sent(vault, &AuditRequest { limit: Some(1), ..request.clone() });
        assert_eq!((first.runs.as_slice(), first.next), (&all.runs[..1], Some(all.runs[0].run)));
        let rest = sent(vault, &AuditRequest { after: first.next, ..request.clone() });
        assert_eq!((rest.runs.as_slice(), rest.next), (&all.runs[1..], None));
        let one = sent(vault, &AuditRequest { run: Some(all.runs[1].run), ..request });
        assert_eq!(one.runs, all.runs[1..2]);
    }
}

#[test]
fn details_are_returned_on_request() {
    let (_directory, vaults) = vaults();
    for vault in &vaults {
        let core_hash = add(vault, example("session.json"));
        vault.run(&SetTagRequest { core_hash, name: "golden".to_owned() }).unwrap();
        let tagged = Condition::Tagged { name: Some("golden".to_owned()) };
        let filter = ArtifactFilter { conditions: vec![tagged], ..ArtifactFilter::default() };
        let request = FindRequest { filter, ..FindRequest::default() };
        let plain = sent(vault, &request).hits.remove(0).details;
        assert_eq!((&plain.attributes, &plain.captures, &plain.tags), (&None, &None, &None));
        let details = Detail::ALL.to_vec();
        let full = sent(vault, &FindRequest { details, ..request }).hits.remove(0).details;
        let shown = sent(vault, &ShowRequest { artifact: core_hash });
        assert_eq!(full.attributes.as_ref(), Some(&shown.attributes));
        assert_eq!(full.captures.as_ref(), Some(&shown.captures));
        assert_eq!((full.tags.as_ref(), full.pinned), (Some(&shown.tags), Some(false)));
        assert_eq!(full.created_at, plain.created_at);
        assert_eq!(shown.into_details().1, full);
    }
}

#[test]
fn rules_need_no_vault() {
    let all = RulesRequest::default().answer().rules;
    assert_eq!(sent(&Vault::in_memory(), &RulesRequest::default()).rules, all);
    let one = RulesRequest { id: Some("mi7".to_owned()) }.answer().rules;
    assert_eq!(one.iter().map(|rule| rule.id.as_str()).collect::<Vec<_>>(), ["MI7"]);
    assert!(all.len() > 50 && all.contains(&one[0]));
}

#[test]
fn commands_print_the_answers() {
    let sandbox = Sandbox::new();
    sandbox.add([repository("examples")]);
    let vault = Vault::open(&sandbox.vault()).unwrap();
    let json = |arguments: &[&str], status: i32| sandbox.run(arguments).expect(status).json();
    fn value(answer: impl serde::Serialize) -> Value {
        serde_json::to_value(answer).unwrap()
    }
    let core = |name: &str| {
        let located = vault.locate(&add(&Vault::in_memory(), example(name)).0.into()).unwrap();
        located.artifact.core
    };
    let (one, other) = (core("session.json"), core("session-small-model.json"));
    let side = |core_hash| ComparedArtifact { core_hash, capture_hash: None };
    for (extent, option) in [(DiffExtent::All, None), (DiffExtent::First, Some("--first"))] {
        let request = DiffRequest {
            one: side(one),
            other: side(other),
            all: true,
            ignore: Vec::new(),
            extent,
            limit: None,
            after: None,
        };
        let (a, b) = (one.to_string(), other.to_string());
        let arguments: Vec<&str> = ["diff", "--json", "--all", &a, &b].into_iter().chain(option).collect();
        assert_eq!(json(&arguments, 1), [value(vault.run(&request).unwrap())]);
    }
    let (contract, run) = (core("contract.yaml"), core("run.rpk"));
    let audit = AuditRequest { contract, run: Some(run), limit: None, after: None };
    let audited = vault.run(&audit).unwrap().runs.remove(0);
    let mut lines: Vec<Value> = audited.effects.into_iter().map(value).collect();
    lines.extend(audited.findings.into_iter().map(value));
    assert!(lines.iter().all(|line| line["run_id"].is_string()), "{lines:?}");
    let status = i32::from(!audited.clean);
    assert_eq!(json(&["audit", "--json", &contract.to_string(), &run.to_string()], status), lines);
    let responses = vault.run(&ResponsesRequest::new(run)).unwrap().responses;
    let lines: Vec<Value> = responses.into_iter().map(value).collect();
    assert_eq!(json(&["replay", "--json", &run.to_string()], 0), lines);
    let replayed = vault.run(&ReplayRequest::new(prompt("Summarise ticket 4711 in one sentence."))).unwrap();
    let arguments = ["replay", "any", "--json", "--prompt", "Summarise ticket 4711 in one sentence."];
    assert_eq!(json(&arguments, 0), [value(replayed)]);
    let linked = LinksRequest::new(run);
    let lines: Vec<Value> = vault.run(&linked).unwrap().links().into_iter().map(value).collect();
    assert_eq!(json(&["links", "--json", &run.to_string()], 0), lines);
    let found = vault.run(&FindRequest { details: Detail::ALL.to_vec(), ..FindRequest::default() }).unwrap();
    let lines: Vec<Value> = found.hits.into_iter().map(value).collect();
    assert_eq!(json(&["find", "--json"], 0), lines);
}

//! The answers to prompts, compared.

use runvault::Vault;
use runvault::digest::Digest;
use runvault::vault::answers::{AnswersAnswer, AnswersRequest};
use serde_json::json;

use super::at_width;
use crate::sandbox::{Sandbox, run_pack, session};

/// A session that was created at this time, with a model.
fn created(model: &str, time: Option<&str>, exchanges: &[(&str, &str)]) -> String {
    let text = session("a", exchanges).replace("\"m\"", &format!("\"{model}\""));
    match time {
        Some(time) => format!("{},\"created_at_utc\":\"{time}\"}}", text.strip_suffix('}').unwrap()),
        None => text,
    }
}

/// Sessions and a run in which the same was asked and not always the same answered.
fn asked() -> Sandbox {
    let sandbox = Sandbox::at("2026-11-20T10:00:00Z");
    let (first, second) = (Some("2026-11-18T09:00:00Z"), Some("2026-11-19T09:00:00Z"));
    sandbox.write("d/1.json", created("m-1", first, &[("label?", "bug"), ("same?", "yes")]));
    sandbox.write("d/2.json", created("m-2", second, &[("label?", "question"), ("same?", "yes")]));
    sandbox.write("d/3.json", created("m-3", None, &[("label?", "bug"), ("alone?", "no")]));
    let run = run_pack(
        "run-1",
        &[
            json!({"type": "model.request", "input": {"messages": [
                {"role": "system", "content": "be brief"}, {"role": "user", "content": "label?"}]}}),
            json!({"type": "error.event", "output": {"message": "too many requests"}}),
            json!({"type": "model.request", "input": {"messages": [
                {"role": "system", "content": "be brief"}, {"role": "user", "content": "label?"}]}}),
            json!({"type": "model.response", "output": {"content": "bug"}}),
        ],
    );
    sandbox.write("d/run.rpk", run);
    sandbox.add([sandbox.path("d")]);
    sandbox
}

fn answers(sandbox: &Sandbox, request: &AnswersRequest) -> AnswersAnswer {
    Vault::open(&sandbox.vault()).unwrap().run(request).unwrap()
}

#[test]
fn the_answers_to_a_prompt_are_told_with_their_times() {
    let sandbox = asked();
    let prompt = Some(Digest::from_content(b"label?"));
    let answer = answers(&sandbox, &AnswersRequest { prompt, ..AnswersRequest::default() });
    assert_eq!((answer.prompts.len(), answer.read, answer.is_more), (1, 4, false));
    let told: Vec<_> = answer.prompts[0]
        .answers
        .iter()
        .map(|answer| {
            let times = answer.given.iter().map(|given| {
                let basis = serde_json::to_value(given.time_basis).unwrap();
                format!("{} {}", basis.as_str().unwrap(), given.time.0.format("%m-%d %H"))
            });
            (answer.response.text.clone().unwrap(), answer.failed, answer.count, times.collect::<Vec<_>>())
        })
        .collect();
    let times = |times: &[&str]| times.iter().map(|time| (*time).to_owned()).collect::<Vec<_>>();
    let expected = [
        // Both were first given at one time: then the digest of the text decides.
        ("too many requests".to_owned(), true, 1, times(&["created 11-18 09"])),
        ("bug".to_owned(), false, 3, times(&["created 11-18 09", "created 11-18 09", "first-seen 11-20 10"])),
        ("question".to_owned(), false, 1, times(&["created 11-19 09"])),
    ];
    assert_eq!(told, expected);
    let asked = answer.prompts[0].prompt.as_ref().unwrap();
    assert_eq!(asked.text.as_deref(), Some("label?"));
    // Instructions are answered by what follows them, because nothing else does.
    let prompt = Some(Digest::from_content(b"be brief"));
    let answer = answers(&sandbox, &AnswersRequest { prompt, ..AnswersRequest::default() });
    assert_eq!(answer.prompts[0].count, 2);
    let prompt = Some(Digest::from_content(b"never asked"));
    assert_eq!(answers(&sandbox, &AnswersRequest { prompt, ..AnswersRequest::default() }).prompts, []);
}

#[test]
fn a_set_of_artifacts_is_compared_prompt_by_prompt() {
    let sandbox = asked();
    let answer = answers(&sandbox, &AnswersRequest::default());
    let prompts: Vec<_> = answer.prompts.iter().map(|prompt| prompt.prompt_hash).collect();
    assert_eq!(prompts, [Digest::from_content(b"label?")]);
    assert_eq!(answer.unanimous, 1);
    let limited = answers(&sandbox, &AnswersRequest { limit: Some(1), ..AnswersRequest::default() });
    assert_eq!((limited.read, limited.is_more), (1, true));
    let text = serde_json::to_string(&answer).unwrap();
    assert_eq!(serde_json::from_str::<AnswersAnswer>(&text).unwrap(), answer);
}

#[test]
fn what_people_and_programs_are_told() {
    let sandbox = asked();
    let mut all = String::new();
    for (width, arguments) in [
        (80, &["find", "--prompt", "label?", "--answers"][..]),
        (40, &["find", "--prompt", "label?", "--answers"]),
        (80, &["find", "sessions", "--answers"]),
        (80, &["find", "--prompt", "never asked", "--answers"]),
        (80, &["find", "--prompt", "same?", "--answers"]),
        (80, &["find", "--model", "m-1", "--answers"]),
        (80, &["find", "contracts", "--answers"]),
        (80, &["find", "runs", "--answers", "--json"]),
    ] {
        let ran = at_width(&sandbox, width, arguments);
        all += &format!(
            "$ runvault {}\n{}--\n{}status {}\n\n",
            arguments.join(" "),
            ran.stdout,
            ran.stderr,
            ran.status
        );
    }
    insta::assert_snapshot!(all);
}

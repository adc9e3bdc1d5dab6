//! Recordings played back: to people, to programs in any language, and in place of a model.

mod clients;
mod protocol;
mod repeated;
mod runs;
mod shapes;

use proptest::prelude::*;
use runvault::digest::Digest;
use runvault::vault::replay::{Player, PlayerRequest, Repeat, ReplayMiss, ReplayMode};

use crate::sandbox::{Ran, Sandbox, repository, session};

const SUMMARY: &str = "Summarise ticket 4711 in one sentence.";
const LABEL: &str = "Which label fits ticket 4711: bug, question or billing?";

/// A sandbox with the shipped examples in a vault.
fn examples() -> Sandbox {
    let sandbox = Sandbox::new();
    // One after the other, so that it is known which is the newest.
    sandbox.add([repository("examples/session.json")]);
    sandbox.add([repository("examples/session-small-model.json")]);
    sandbox.add([
        repository("examples/run.rpk"),
        repository("examples/contract.yaml"),
        repository("examples/pack"),
    ]);
    sandbox
}

fn shown(arguments: &[&str], ran: &Ran) -> String {
    format!("$ {}\n{}|\n{}-- {}\n", arguments.join(" "), ran.stdout, ran.stderr, ran.status)
}

#[test]
fn what_people_read() {
    let sandbox = examples();
    sandbox.add([
        sandbox.write("twice.json", session("a", &[("again", "one"), ("other", "x"), ("again", "two")]))
    ]);
    let twice =
        sandbox.run(["find", "sessions", "--prompt", "again", "--json"]).json()[0]["core_hash"].clone();
    let twice = twice.as_str().unwrap();
    let mut all = String::new();
    for arguments in [
        &["replay", "4df877dec7f4", "--prompt", LABEL][..],
        &["replay", "4df877dec7f4", "--prompt-hash", "b1b0c629", "--json"],
        &["replay", twice, "--prompt", "again"],
        &["replay", twice, "--prompt", "again", "--occurrence", "2"],
        &["replay", twice, "--prompt", "again", "--occurrence", "3"],
        &["replay", twice, "--prompt", LABEL],
        &["replay", twice, "--prompt", "again\r\n"],
        &["replay", twice, "--prompt", "never"],
        &["replay", twice, "--sequential", "--index", "1", "--prompt", "other"],
        &["replay", twice, "--sequential", "--index", "1", "--prompt", "again"],
        &["replay", twice, "--sequential", "--index", "3", "--prompt", "again"],
        &["replay", "any", "--prompt", SUMMARY],
        &[
            "replay",
            "any",
            "--model",
            "triage-large-2",
            "--adapter",
            "openai-compatible",
            "--prompt",
            SUMMARY,
        ],
        &["replay", "any", "--model", "another", "--prompt", SUMMARY],
        &["replay", "any", "--prompt", "never"],
        &["replay", "any", "--prompt-hash", "000000"],
        &["replay", "3941d389b337", "--prompt", SUMMARY],
        &["replay", "5c496a37feba", "--prompt", SUMMARY],
        &["replay", "4df877dec7f4", "--model", "m", "--prompt", SUMMARY],
        &["replay", "4df877dec7f4", "--sequential", "--prompt", SUMMARY],
        &["replay", "4df877dec7f4"],
        &["replay", "any", "--serve-stdio", "--fail-unused"],
        &["replay", "4df877dec7f4", "--repeat", "last", "--prompt", SUMMARY],
        &["replay", "4df877dec7f4", "--serve-stdio", "--sequential", "--repeat", "last"],
        &["replay", "3941d389b337"],
        &["replay", "3941d389b337", "--json"],
        &["replay", "4df877dec7f4"],
        &["replay", "5c496a37feba"],
    ] {
        all += &shown(arguments, &sandbox.run(arguments));
    }
    insta::assert_snapshot!(all);
}

#[test]
fn help() {
    let sandbox = Sandbox::new();
    insta::assert_snapshot!(sandbox.run(["replay", "--help"]).expect(0).stdout);
}

/// Terminals are protected by the same function as for `get`; here nothing is one.
#[test]
fn responses_are_given_byte_for_byte() {
    let sandbox = Sandbox::new();
    let response = "no line end, \r\n\u{1b}[31m\u{202e}\u{0} é😀";
    let core = sandbox.add([sandbox.write("s.json", session("a", &[("p\n", response)]))]).remove(0);
    let file = sandbox.write("prompt.txt", "p\n");
    for arguments in [
        ["replay", &core, "--prompt", "p\n"],
        ["replay", &core, "--prompt-file", file.to_str().unwrap()],
        ["replay", &core, "--prompt-hash", &Digest::from_content(b"p\n").hex()],
    ] {
        assert_eq!(sandbox.run(arguments).expect(0).stdout, response);
    }
    assert_eq!(sandbox.run_on(b"p\n", &["replay", &core, "--prompt-file", "-"]).expect(0).stdout, response);
    sandbox.run(["replay", &core, "--prompt-file", "nothing"]).expect(2);
}

/// What tests do with a model: they ask it, and go by what it says.
trait Model {
    fn complete(&mut self, prompt: &str) -> Result<String, Box<dyn std::error::Error>>;
}

/// A recording in place of a model's client.
impl Model for Player {
    fn complete(&mut self, prompt: &str) -> Result<String, Box<dyn std::error::Error>> {
        Ok(self.respond(prompt)?.to_owned())
    }
}

/// What is to be tested: it would ask a model in earnest.
fn triage(model: &mut dyn Model, ticket: u32) -> Result<(String, String), Box<dyn std::error::Error>> {
    let summary = model.complete(&format!("Summarise ticket {ticket} in one sentence."))?;
    let label = model.complete(&format!("Which label fits ticket {ticket}: bug, question or billing?"))?;
    Ok((summary, label))
}

#[test]
fn a_player_replaces_a_model() {
    let mut player = Player::new(std::fs::read(repository("examples/session.json")).unwrap()).unwrap();
    let (summary, label) = triage(&mut player, 4711).unwrap();
    assert_eq!(label, "bug");
    assert!(summary.starts_with("The export to CSV"), "{summary}");
    let unused: Vec<usize> = player.unused().map(|exchange| exchange.index).collect();
    assert_eq!(unused, [2]);
    let miss = triage(&mut player, 1).unwrap_err();
    assert!(matches!(miss.downcast_ref(), Some(ReplayMiss::NotRecorded { .. })), "{miss}");
}

#[test]
fn documents_are_verified_before_they_are_played() {
    let good = session("a", &[("p", "r")]);
    let bad = good.replace("\"response_content\":\"r\"", "\"response_content\":\"s\"");
    assert!(Player::new(bad.into_bytes()).unwrap_err().to_string().contains("(rule MI7)"));
    let contract = std::fs::read(repository("examples/contract.yaml")).unwrap();
    let message = Player::new(contract).unwrap_err().to_string();
    assert_eq!(message, "artifacts of kind contract record no responses");
    assert!(Player::new(good.into_bytes()).is_ok());
}

/// Sessions in which few prompts are asked again and again.
fn exchanges() -> impl Strategy<Value = Vec<(String, String)>> {
    let prompt = prop_oneof!["[ab]{1,2}", "\\PC{0,8}"];
    let response = prop_oneof!["[xy\r\n]{0,3}", "\\PC{0,20}"];
    prop::collection::vec((prompt, response), 1..40)
}

fn recording(exchanges: &[(String, String)]) -> String {
    let exchanges: Vec<_> = exchanges.iter().map(|(prompt, response)| (&**prompt, &**response)).collect();
    session("a", &exchanges)
}

/// Which recording of its prompt the exchange `at` is, from 1.
fn occurrence(exchanges: &[(String, String)], at: usize) -> usize {
    exchanges[..=at].iter().filter(|(prompt, _)| *prompt == exchanges[at].0).count()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn every_prompt_gets_its_response_in_both_modes(exchanges in exchanges()) {
        let document = recording(&exchanges);
        let mut lookup = Player::new(document.clone().into_bytes()).unwrap();
        let mut counting = Player::new(document.clone().into_bytes()).unwrap();
        let mut sequence = Player::new(document.into_bytes()).unwrap().in_mode(ReplayMode::Sequential);
        for (at, (prompt, response)) in exchanges.iter().enumerate() {
            prop_assert_eq!(sequence.unused().count(), exchanges.len() - at);
            prop_assert_eq!(sequence.respond(prompt), Ok(&**response));
            let request = PlayerRequest {
                occurrence: occurrence(&exchanges, at).try_into().ok(),
                ..PlayerRequest::prompt(Digest::from_content(prompt.as_bytes()))
            };
            let played = lookup.play(&request).unwrap();
            prop_assert_eq!((&played.exchange.response, played.exchange.index), (response, at));
            // Without a number, the n-th time that a prompt is asked gives its n-th recording.
            prop_assert_eq!(counting.respond(prompt), Ok(&**response));
            prop_assert_eq!(counting.unused().count(), exchanges.len() - at - 1);
        }
        prop_assert_eq!((lookup.unused().count(), sequence.unused().count()), (0, 0));
        let over = matches!(sequence.respond(&exchanges[0].0), Err(ReplayMiss::Exhausted { .. }));
        prop_assert!(over);
        let again = matches!(counting.respond(&exchanges[0].0), Err(ReplayMiss::NoOccurrence { .. }));
        prop_assert!(again);
        let mut repeating = counting.repeating(Repeat::Last);
        for (prompt, _) in &exchanges {
            let (_, last) = exchanges.iter().rfind(|(other, _)| other == prompt).unwrap();
            prop_assert_eq!(repeating.respond(prompt), Ok(&**last));
        }
        let other = matches!(lookup.respond("a prompt of another shape"), Err(ReplayMiss::NotRecorded { .. }));
        prop_assert!(other);
    }
}

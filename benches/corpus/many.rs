//! Sessions that are cheap to make, to fill large vaults: ten interactions, twenty mentions.

use runvault::Vault;
use runvault::digest::Digest;
use runvault::intake::{ExamineOptions, Input, Inputs, SourceError};
use runvault::vault::add::{AddMonitor, DocumentOutcome, ExaminedDocument};
use serde_json::{Value, json};

const EXCHANGES: usize = 10;

/// How many digests a session mentions.
pub const MENTIONS: usize = 2 * EXCHANGES;

/// The prompt at `SHARED` is asked in ten sessions each time, every other one in one.
pub const SHARED: usize = 3;

pub fn prompt(session: usize, index: usize) -> String {
    match index {
        SHARED => format!("What is the state of case {} now?", session / 10),
        _ => format!("What is the state of case {session} after step {index}?"),
    }
}

pub fn response(session: usize, index: usize) -> String {
    format!("Case {session}: step {index} is done, the next one waits for the customer's answer.")
}

/// The prompts and responses of a session.
pub fn exchanges(session: usize) -> impl Iterator<Item = (String, String)> {
    (0..EXCHANGES).map(move |index| (prompt(session, index), response(session, index)))
}

pub fn session(number: usize) -> Vec<u8> {
    let digest = |text: &str| Digest::from_content(text.as_bytes());
    let interactions: Vec<Value> = (0..)
        .zip(exchanges(number))
        .map(|(index, (prompt, response)): (usize, _)| {
            json!({"i": index, "prompt_hash": digest(&prompt), "response_hash": digest(&response),
                "response_content": response})
        })
        .collect();
    json!({"model_io_schema_version": "1.0.0", "adapter_id": format!("adapter-{}", number % 7),
        "model_id": format!("model-{}", number % 5), "mode": "record", "interactions": interactions})
    .to_string()
    .into_bytes()
}

/// Adds documents, each of which must be new and free of errors.
pub fn fill(vault: &Vault, documents: impl IntoIterator<Item = Vec<u8>>) {
    let inputs = documents.into_iter().map(|bytes| Input::Document { name: String::new(), bytes });
    let mut inputs = inputs.peekable();
    // Some at a time: all of them would not fit into memory.
    while inputs.peek().is_some() {
        let some = inputs.by_ref().take(5_000).collect();
        vault.add(Inputs::new(some), &ExamineOptions::default(), &mut Expecting).expect("stored");
    }
}

/// A monitor of additions, each of which must be new and free of errors.
pub struct Expecting;

impl AddMonitor for Expecting {
    fn examined(&mut self, examined: &ExaminedDocument) {
        assert_eq!(examined.outcome, DocumentOutcome::Added, "{:?}", examined.violations);
    }

    fn unreadable(&mut self, error: &SourceError) {
        panic!("{error}");
    }
}

//! The comparison of runs: the run, its steps, and finally the environment, which rarely explains a difference.

use super::members::canonical_members;
use super::requests;
use crate::artifact::{Part, PartKind, differ, same_place};
use crate::digest::Digest;
use crate::json::Value;
use crate::json::canonical::replaykit::{self, VOLATILE_NAMES, VolatilePolicy};
use crate::json::pointer::Token;
use crate::json::reader::{Limits, ReadError};

static RUN: PartKind = PartKind {
    is_ephemeral: |at| {
        let names: Vec<&str> = at.iter().filter_map(name).collect();
        let given_anew = match names.as_slice() {
            [root] => !["version", "metadata", "payload"].contains(root),
            ["metadata", member] => ["run_id", "created_at", "source_run_id"].contains(member),
            ["payload", "run", member] => OF_ONE_RUN.contains(member),
            _ => false,
        };
        given_anew || is_volatile(at)
    },
    canonical,
    describe: |_, _, names| differ(names),
};

/// Members that differ between any two runs.
const OF_ONE_RUN: [&str; 6] =
    ["id", "timestamp", "source_run_id", "listener_session_id", "listener_process", "listener_bind"];

/// The compared part is the one that step hashes cover.
static STEP: PartKind = PartKind {
    is_ephemeral: |at| {
        let covered = |name: &&str| ["type", "input", "output", "metadata"].contains(name);
        !at.first().and_then(name).as_ref().is_none_or(covered) || is_volatile(at)
    },
    canonical,
    describe: |one, _, names| {
        let step_type = one.get("type").and_then(Value::as_str).unwrap_or_default().replace('.', " ");
        match names {
            [] => format!("{step_type} differs"),
            names => format!("{step_type} differs ({})", names.join(", ")),
        }
    },
};

static ENVIRONMENT: PartKind = PartKind {
    is_ephemeral: is_volatile,
    canonical,
    describe: |_, _, _| "the environment differs".to_owned(),
};

fn name<'v>(token: &Token<'v>) -> Option<&'v str> {
    match token {
        Token::Name(name) => Some(name),
        Token::Index(_) => None,
    }
}

fn is_volatile(at: &[Token<'_>]) -> bool {
    at.last().and_then(name).is_some_and(|name| VOLATILE_NAMES.contains(&name.to_lowercase().as_str()))
}

fn canonical(value: &Value<'_>) -> Option<Vec<u8>> {
    replaykit::object(&[("", value)], VolatilePolicy::Include).ok()
}

pub(super) fn parts<'d>(document: &'d [u8], limits: &Limits) -> Result<Vec<Part<'d>>, ReadError> {
    let mut root = requests::read_restored(document, limits)?;
    let steps = root.take(&["payload", "run", "steps"]);
    let environment = ["environment_fingerprint", "runtime_versions"]
        .map(|name| (name, root.take(&["payload", "run", name])));
    let one_of_its_sort = |word: &str| [same_place(&[word]); 2];
    let mut parts = vec![Part::new("run".to_owned(), one_of_its_sort("run"), root, &RUN)];
    let Some(Value::Array(steps)) = steps else { return Ok(parts) };
    for (index, step) in steps.into_iter().enumerate() {
        let step_type = step.get("type").and_then(Value::as_str).unwrap_or_default().to_owned();
        let request = canonical_members(&step, &["type", "input"], VolatilePolicy::Omit).and_then(Result::ok);
        let of_its_type = same_place(&["step", &step_type]);
        let keys = [request.map_or(of_its_type, |request| Digest::from_content(&request)), of_its_type];
        parts.push(Part::new(format!("step {index}"), keys, step, &STEP));
    }
    for (name, value) in environment {
        let value = value.unwrap_or(Value::Null);
        parts.push(Part::new(name.replace('_', " "), one_of_its_sort(name), value, &ENVIRONMENT));
    }
    Ok(parts)
}

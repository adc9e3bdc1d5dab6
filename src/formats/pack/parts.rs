//! The comparison of packs: by file, the session by its own parts, the ledger by its lines.

use super::hash::RUNNER_CORE;
use super::ledger;
use super::members::SESSION;
use crate::artifact::{MemberBytes, Part, PartKind, differ, same_place};
use crate::formats;
use crate::json::Value;
use crate::json::canonical::rfc8785;
use crate::json::pointer::Token;
use crate::json::reader::{self, Limits, ReadError};

/// Causes come before their consequences: `run.json` contains the hashes of others.
const ORDER: [&str; 9] = [
    "policy.json",
    SESSION,
    "bundle.json",
    "patch.json",
    "evidence.json",
    ledger::NAME,
    "runner.json",
    "run.json",
    "meta.json",
];

/// Members of files that differ between any two runs.
const OF_ONE_RUN: [&str; 7] =
    ["run_id", "timestamp", "created_at", "started_at", "completed_at", "finished_at", "ended_at"];

static FILE: PartKind = PartKind {
    is_ephemeral: |at| matches!(at, [Token::Name(name)] if OF_ONE_RUN.contains(name)),
    canonical,
    describe,
};

static RUNNER: PartKind = PartKind {
    is_ephemeral: |at| matches!(at.first(), Some(Token::Name(name)) if !RUNNER_CORE.contains(name)),
    canonical,
    describe,
};

/// Not hashed.
static META: PartKind = PartKind { is_ephemeral: |_| true, canonical, describe };

fn canonical(value: &Value<'_>) -> Option<Vec<u8>> {
    rfc8785::to_vec(value).ok()
}

fn describe(_: &Value<'_>, _: &Value<'_>, names: &[&str]) -> String {
    differ(names)
}

pub(super) fn parts<'d>(members: &[MemberBytes<'d>], limits: &Limits) -> Result<Vec<Part<'d>>, ReadError> {
    let mut parts = Vec::new();
    for name in ORDER {
        let Some(member) = members.iter().find(|member| member.name == name) else { continue };
        match name {
            SESSION => parts.extend(session_parts(member, limits)?),
            ledger::NAME => parts.extend(ledger_parts(member.bytes, limits)?),
            name => {
                let value = reader::read_keeping_overflow(member.bytes, limits)?;
                let sort = match name {
                    "runner.json" => &RUNNER,
                    "meta.json" => &META,
                    _ => &FILE,
                };
                parts.push(Part::new(format!("member {name}"), [same_place(&[name]); 2], value, sort));
            }
        }
    }
    Ok(parts)
}

fn session_parts<'d>(member: &MemberBytes<'d>, limits: &Limits) -> Result<Vec<Part<'d>>, ReadError> {
    let Some(kind) = formats::named("model_io") else { return Ok(Vec::new()) };
    let mut parts = kind.parts(&[*member], limits)?;
    for part in &mut parts {
        part.label = format!("member {SESSION}: {}", part.label);
    }
    Ok(parts)
}

fn ledger_parts<'d>(bytes: &'d [u8], limits: &Limits) -> Result<Vec<Part<'d>>, ReadError> {
    let text = reader::utf8(bytes, limits)?;
    let entries = ledger::entries(text, limits).map(|(number, entry)| {
        let entry = entry?;
        let run = entry.get("run_id").and_then(Value::as_str).unwrap_or_default();
        let keys = [same_place(&["ledger", run]), same_place(&["ledger"])];
        Ok(Part::new(format!("member {}: line {number}", ledger::NAME), keys, entry, &FILE))
    });
    entries.collect()
}

//! Packs as transcripts: files are steps. The parts by which they are compared, and their searchable texts.

use std::borrow::Cow;

use super::members::{self, MEMBER_NAMES, SESSION};
use crate::artifact::{
    BodyContent, BodyRole, Field, MemberBytes, Part, PartKind, Passage, PassageCollector, StepClass,
    StepVisitor, TranscriptStep, differ, same_place, words_of,
};
use crate::formats;
use crate::formats::runner::RUNNER_CORE;
use crate::json::canonical::rfc8785;
use crate::json::pointer::{self, Token};
use crate::json::reader::{self, Limits, ReadError};
use crate::json::{Object, Value};

/// The limits for the files of an admitted pack.
const STORED: Limits = Limits::most();

/// Calls `visit` with each file.
pub(super) fn visit(members: &[MemberBytes<'_>], visit: &mut StepVisitor<'_>) -> Result<(), ReadError> {
    let present =
        MEMBER_NAMES.into_iter().filter_map(|name| members.iter().find(|member| member.name == name));
    for (index, member) in present.enumerate() {
        if member.name == members::LEDGER {
            visit(describe(index, member, BodyContent::from_bytes(member.bytes)));
        } else {
            let value = reader::read_keeping_overflow(member.bytes, &STORED)?;
            visit(describe(index, member, BodyContent::Json(&value)));
        }
    }
    Ok(())
}

fn describe<'v>(index: usize, member: &MemberBytes<'v>, content: BodyContent<'v>) -> TranscriptStep<'v> {
    let recorded = BodyContent::from_bytes(member.bytes);
    let mut step = TranscriptStep::new(index, "file", StepClass::Member, recorded);
    step.title = Some(Cow::Borrowed(member.name));
    step.member = Some(member.name);
    step.push(BodyRole::Content, content);
    step
}

/// Causes come before their consequences: `run.json` contains the hashes of others.
const ORDER: [&str; 9] = [
    "policy.json",
    SESSION,
    "bundle.json",
    "patch.json",
    "evidence.json",
    members::LEDGER,
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
    describe: describe_difference,
};

static RUNNER: PartKind = PartKind {
    is_ephemeral: |at| matches!(at.first(), Some(Token::Name(name)) if !RUNNER_CORE.contains(name)),
    canonical,
    describe: describe_difference,
};

/// Not hashed.
static META: PartKind = PartKind { is_ephemeral: |_| true, canonical, describe: describe_difference };

fn canonical(value: &Value<'_>) -> Option<Vec<u8>> {
    rfc8785::to_vec(value).ok()
}

fn describe_difference(_: &Value<'_>, _: &Value<'_>, names: &[&str]) -> String {
    differ(names)
}

pub(super) fn parts<'d>(members: &[MemberBytes<'d>]) -> Result<Vec<Part<'d>>, ReadError> {
    let mut parts = Vec::new();
    for name in ORDER {
        let Some(member) = members.iter().find(|member| member.name == name) else { continue };
        match name {
            SESSION => parts.extend(session_parts(member)?),
            members::LEDGER => parts.extend(ledger_parts(member.bytes)?),
            name => {
                let value = reader::read_keeping_overflow(member.bytes, &STORED)?;
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

fn session_parts<'d>(member: &MemberBytes<'d>) -> Result<Vec<Part<'d>>, ReadError> {
    let Some(kind) = formats::named("model_io") else { return Ok(Vec::new()) };
    let mut parts = kind.parts(&[*member])?;
    for part in &mut parts {
        part.label = format!("member {SESSION}: {}", part.label);
    }
    Ok(parts)
}

fn ledger_parts(bytes: &[u8]) -> Result<Vec<Part<'_>>, ReadError> {
    let text = reader::utf8(bytes, &STORED)?;
    let entries = members::ledger_entries(text, &STORED).map(|(number, entry)| {
        let entry = entry?;
        let run = entry.get("run_id").and_then(Value::as_str).unwrap_or_default();
        let keys = [same_place(&["ledger", run]), same_place(&["ledger"])];
        Ok(Part::new(format!("member {}: line {number}", members::LEDGER), keys, entry, &FILE))
    });
    entries.collect()
}

/// The field of its files, without its session.
pub(super) const FIELD: Field = Field::new("pack");

/// Returns a passage for each member of a file, so that locations are more precise than the file.
pub(super) fn passages(members: &[MemberBytes<'_>]) -> Result<Vec<Passage>, ReadError> {
    let mut passages = PassageCollector::default();
    for member in members.iter().filter(|member| member.name != SESSION) {
        if member.name == members::LEDGER {
            ledger_passages(member.bytes, &mut passages)?;
            continue;
        }
        let value = reader::read_keeping_overflow(member.bytes, &STORED)?;
        if !matches!(value, Value::Object(_)) {
            passages.add_pointer(FIELD, member.name.to_owned(), words_of(&value));
        }
        for (name, part) in value.as_object().into_iter().flat_map(Object::iter) {
            let mut at = format!("{} ", member.name);
            pointer::push(&mut at, name);
            passages.add_pointer(FIELD, at, words_of(part));
        }
    }
    Ok(passages.into_vec())
}

fn ledger_passages(bytes: &[u8], passages: &mut PassageCollector) -> Result<(), ReadError> {
    let text = reader::utf8(bytes, &STORED)?;
    for (number, entry) in members::ledger_entries(text, &STORED) {
        passages.add_pointer(FIELD, format!("{} line {number}", members::LEDGER), words_of(&entry?));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_files_but_the_session_are_searched() {
        let member = |name, text: &'static str| MemberBytes { name, bytes: text.as_bytes() };
        let files = [
            member("run.json", r#"{"run_id": "r", "policy": {"name": "triage", "version": "2"}}"#),
            member("policy.json", r#"["a rule"]"#),
            member("model_io.json", r#"{"interactions": [{"response_content": "said"}]}"#),
            member("ledger.jsonl", "{\"result_kind\": \"BUNDLE\"}\n\n{\"mode\": \"live\"}\n"),
        ];
        let extracted: Vec<String> = passages(&files)
            .unwrap()
            .into_iter()
            .map(|passage| format!("{}: {}", passage.place, passage.text.replace('\n', ", ")))
            .collect();
        assert_eq!(
            extracted,
            [
                "run.json /run_id: r",
                "run.json /policy: name: triage, version: 2",
                "policy.json: a rule",
                "ledger.jsonl line 1: result_kind: BUNDLE",
                "ledger.jsonl line 3: mode: live",
            ]
        );
    }
}

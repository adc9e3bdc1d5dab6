//! `pack`: run export packs, directories of up to nine files. Rules: the pack specification, section 8, and those of the
//! files in a pack; `docs/formats.md`, "pack".

mod bundle;
mod calls;
mod index;
mod member_rules;
mod members;
mod patch;
mod rules;
mod runner;
#[cfg(test)]
mod tests;
mod transcript;

use std::io::{self, Write};

use crate::artifact::{
    AdmitOptions, Artifact, Directory, DirectoryEntry, Draft, EntryContent, EventVisitor, HeadReader,
    KindInfo, MemberBytes, Part, Passage, StepVisitor, document,
};
use crate::formats;
use crate::json::reader::{self, Limits, MemberNames, ReadError};
use crate::validation::{Findings, RuleInfo, Violation, apply};
use members::PackContents;

/// The kind `pack`.
pub struct Pack;

static INFO: KindInfo = KindInfo {
    name: "pack",
    noun: "export pack",
    plural: "packs",
    members: &members::MEMBER_NAMES,
    attributes: &index::ATTRIBUTES,
    directory_rule: Some(rules::IO),
    is_run: true,
    fields: &[transcript::FIELD],
    step_noun: "file",
    view: index::ARTIFACTS,
    ..KindInfo::NONE
};

impl Artifact for Pack {
    fn info(&self) -> &'static KindInfo {
        &INFO
    }

    fn rules(&self) -> Vec<RuleInfo> {
        rules::all()
    }

    fn recognizes_directory(&self, names: &[&str], peek: &mut HeadReader<'_>) -> bool {
        is_pack(names, peek)
    }

    fn orphan(&self, name: &str, head: &[u8]) -> Option<Violation> {
        let message = || format!("the required file run.json is missing; {name} is a file of a pack");
        is_member(name, head).then(|| Violation::new(rules::REQUIRED_FILES, "run.json", message()))
    }

    fn examine_directory(
        &self,
        directory: &Directory,
        options: &AdmitOptions,
        findings: &mut Findings,
    ) -> Option<Draft> {
        let members = PackContents::new(directory, options);
        apply(&rules::RULES, findings, |check, found| check(&members, found));
        if findings.has_errors() {
            return None;
        }
        let digests = members.digests();
        let digests = digests.map_err(|error| document::report_uncanonical("", &error, findings)).ok()?;
        Some(index::describe(members, digests))
    }

    fn write_core(&self, members: &[MemberBytes<'_>], out: &mut dyn Write) -> io::Result<()> {
        let entries = members.iter().map(|member| DirectoryEntry {
            name: member.name.to_owned(),
            content: EntryContent::File(member.bytes.to_vec()),
        });
        let directory = Directory { entries: entries.collect() };
        let options = AdmitOptions { limits: Limits::most(), ..AdmitOptions::default() };
        out.write_all(&members::core_bytes(&PackContents::new(&directory, &options).digests()?))
    }

    fn run_events(&self, members: &[MemberBytes<'_>], visit: &mut EventVisitor<'_>) -> Result<(), ReadError> {
        calls::visit(members, visit)
    }

    fn parts<'d>(&self, members: &[MemberBytes<'d>]) -> Result<Vec<Part<'d>>, ReadError> {
        transcript::parts(members)
    }

    fn passages(&self, members: &[MemberBytes<'_>]) -> Result<Vec<Passage>, ReadError> {
        transcript::passages(members)
    }

    fn transcript(&self, members: &[MemberBytes<'_>], visit: &mut StepVisitor<'_>) -> Result<(), ReadError> {
        transcript::visit(members, visit)
    }
}

/// Members that are unlikely to occur in other directories. Sessions and metadata are not among them: a directory of
/// sessions is not a pack.
const TELLING: [&str; 7] =
    ["run.json", "bundle.json", "patch.json", "evidence.json", "ledger.jsonl", "policy.json", "runner.json"];

/// Members that describe what happened. Every useful pack contains at least one of them.
const CENTRAL: [&str; 3] = ["run.json", "bundle.json", "ledger.jsonl"];

/// The member names that distinguish the files of packs from others with the same file name: any of these groups at the
/// root.
const CONTENTS: [(&str, &[&[&str]]); 6] = [
    ("run.json", &[&["run_schema_version"], &["kernel_result_kind"]]),
    (
        "bundle.json",
        &[
            &["schema_version", "kernel_version"],
            &["kernel_version", "terminal_nodes"],
            &["root_node", "terminal_nodes"],
        ],
    ),
    ("patch.json", &[&["patch_schema_version"], &["source_proposal_hash"]]),
    (
        "evidence.json",
        &[
            &["proposal_id", "proposal_hash"],
            &["proposal_id", "action_results"],
            &["proposal_hash", "action_results"],
        ],
    ),
    ("ledger.jsonl", &[&["intent_sha256"]]),
    ("runner.json", &[&["runner_schema_version"]]),
];

/// Returns whether a directory with entries of these names is a pack: if its `run.json` has a member that only the runs
/// of packs have, or if two of the distinctive names are present, one of which is central, and one of the files has
/// content that only files of packs have. Documents of other kinds do not count, whatever their names.
fn is_pack(names: &[&str], peek: &mut HeadReader<'_>) -> bool {
    if !names.iter().any(|name| CENTRAL.contains(name)) {
        return false;
    }
    if names.contains(&"run.json") && is_member("run.json", &peek("run.json")) {
        return true;
    }
    let mut candidates: Vec<&str> = names.iter().copied().filter(|name| TELLING.contains(name)).collect();
    candidates.dedup();
    candidates.len() > 1 && {
        // A file of a pack can also be stored by itself, as an attachment.
        let is_of_other_kind =
            |head: &[u8]| formats::recognize(head).is_some_and(|(kind, _)| !kind.info().takes_any_bytes);
        candidates.retain(|name| !is_of_other_kind(&peek(name)));
        candidates.len() > 1
            && candidates.iter().any(|name| CENTRAL.contains(name))
            && candidates.iter().any(|name| is_member(name, &peek(name)))
    }
}

/// Returns whether a file with this name that begins with `head` has content that only files of packs have.
fn is_member(name: &str, head: &[u8]) -> bool {
    let Some((_, groups)) = CONTENTS.into_iter().find(|(member, _)| *member == name) else { return false };
    let text = reader::lossy(head);
    let mut names = MemberNames::new(&text);
    groups.iter().any(|group| group.iter().all(|name| names.has(name)))
}

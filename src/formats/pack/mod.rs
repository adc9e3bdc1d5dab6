//! `pack`: run export packs, directories of up to nine files. Rules: the pack specification, section 8, and those of the
//! files in a pack; `docs/formats.md`, "pack".

mod bundle;
mod calls;
mod checks;
mod hash;
mod index;
mod inner;
mod ledger;
mod members;
mod patch;
mod recognize;
mod rules;
mod runner;
mod transcript;

use std::io::{self, Write};

use crate::artifact::{
    AdmitOptions, Artifact, Directory, DirectoryEntry, Draft, EntryContent, EventVisitor, HeadReader,
    KindInfo, MemberBytes, Part, Passage, StepVisitor, document,
};
use crate::json::reader::{Limits, ReadError};
use crate::validation::{Findings, RuleInfo, Violation, apply};

use members::PackContents;

/// The kind `pack`.
pub struct Pack;

static INFO: KindInfo = KindInfo {
    name: "pack",
    noun: "export pack",
    plural: "packs",
    members: &members::NAMES,
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
        recognize::is_pack(names, peek)
    }

    fn orphan(&self, name: &str, head: &[u8]) -> Option<Violation> {
        let message = || format!("the required file run.json is missing; {name} is a file of a pack");
        recognize::is_member(name, head).then(|| Violation::new(rules::REQUIRED_FILES, "run.json", message()))
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
        match members.digests() {
            Ok(digests) => Some(index::describe(members, digests)),
            Err(error) => {
                document::report_uncanonical("", &error, findings);
                None
            }
        }
    }

    fn write_core(
        &self,
        members: &[MemberBytes<'_>],
        limits: &Limits,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        let entries = members.iter().map(|member| DirectoryEntry {
            name: member.name.to_owned(),
            content: EntryContent::File(member.bytes.to_vec()),
        });
        let directory = Directory { entries: entries.collect() };
        let options = AdmitOptions { limits: *limits, ..AdmitOptions::default() };
        out.write_all(&hash::core(&PackContents::new(&directory, &options).digests()?))
    }

    fn run_events(
        &self,
        members: &[MemberBytes<'_>],
        limits: &Limits,
        visit: &mut EventVisitor<'_>,
    ) -> Result<(), ReadError> {
        calls::visit(members, limits, visit)
    }

    fn parts<'d>(&self, members: &[MemberBytes<'d>], limits: &Limits) -> Result<Vec<Part<'d>>, ReadError> {
        transcript::parts(members, limits)
    }

    fn passages(&self, members: &[MemberBytes<'_>], limits: &Limits) -> Result<Vec<Passage>, ReadError> {
        transcript::passages(members, limits)
    }

    fn transcript(
        &self,
        members: &[MemberBytes<'_>],
        limits: &Limits,
        visit: &mut StepVisitor<'_>,
    ) -> Result<(), ReadError> {
        transcript::visit(members, limits, visit)
    }
}

#[cfg(test)]
mod tests;

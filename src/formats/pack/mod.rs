//! `pack`: run export packs, directories of up to nine files. Rules: the pack specification, section 8, and those of the
//! files in a pack; `docs/formats.md`, "pack".

mod bundle;
mod calls;
mod checks;
mod hash;
mod hashes;
mod index;
mod inner;
mod ledger;
mod members;
mod metrics;
mod parts;
mod passages;
mod patch;
mod recognize;
mod rules;
mod runner;
mod transcript;
mod view;

use std::io::{self, Write};

use crate::artifact::{
    AdmitOptions, ArtifactDirectory, ArtifactView, AttributeInfo, Directory, DirectoryEntry, Draft,
    EntryContent, EventVisitor, Field, HeadReader, MemberBytes, Part, Passage, StepVisitor, document,
};
use crate::json::reader::{Limits, ReadError};
use crate::validation::{Findings, RuleInfo, Violation, apply};

use members::PackContents;

/// The kind `pack`.
pub struct Pack;

impl ArtifactDirectory for Pack {
    const NAME: &'static str = "pack";
    const NOUN: &'static str = "export pack";
    const PLURAL: &'static str = "packs";
    const MEMBERS: &'static [&'static str] = &members::NAMES;
    const ATTRIBUTES: &'static [AttributeInfo] = &index::ATTRIBUTES;
    const UNREADABLE: RuleInfo = rules::IO;
    const IS_RUN: bool = true;
    const FIELDS: &'static [Field] = &[passages::FIELD];
    const STEP_NOUN: &'static str = "file";
    const VIEW: ArtifactView = view::ARTIFACTS;

    fn rules() -> Vec<RuleInfo> {
        rules::all()
    }

    fn recognizes(names: &[&str], peek: &mut HeadReader<'_>) -> bool {
        recognize::is_pack(names, peek)
    }

    fn recognizes_member(name: &str, head: &[u8]) -> bool {
        recognize::is_member(name, head)
    }

    fn incomplete(name: &str) -> Violation {
        let message = format!("the required file run.json is missing; {name} is a file of a pack");
        Violation::new(rules::REQUIRED_FILES, "run.json", message)
    }

    fn examine(directory: &Directory, options: &AdmitOptions, findings: &mut Findings) -> Option<Draft> {
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

    fn write_core(members: &[MemberBytes<'_>], limits: &Limits, out: &mut dyn Write) -> io::Result<()> {
        let entries = members.iter().map(|member| DirectoryEntry {
            name: member.name.to_owned(),
            content: EntryContent::File(member.bytes.to_vec()),
        });
        let directory = Directory { entries: entries.collect() };
        let options = AdmitOptions { limits: *limits, ..AdmitOptions::default() };
        out.write_all(&hash::core(&PackContents::new(&directory, &options).digests()?))
    }

    fn run_events(
        members: &[MemberBytes<'_>],
        limits: &Limits,
        visit: &mut EventVisitor<'_>,
    ) -> Result<(), ReadError> {
        calls::visit(members, limits, visit)
    }

    fn parts<'d>(members: &[MemberBytes<'d>], limits: &Limits) -> Result<Vec<Part<'d>>, ReadError> {
        parts::parts(members, limits)
    }

    fn passages(members: &[MemberBytes<'_>], limits: &Limits) -> Result<Vec<Passage>, ReadError> {
        passages::extract(members, limits)
    }

    fn transcript(
        members: &[MemberBytes<'_>],
        limits: &Limits,
        visit: &mut StepVisitor<'_>,
    ) -> Result<(), ReadError> {
        transcript::visit(members, limits, visit)
    }
}

#[cfg(test)]
mod tests;

//! `contract`: IO contracts, in JSON or YAML. Rules: the IO contract specification's static checks; `docs/formats.md`,
//! "contract".

mod attributes;
mod dialect;
mod key_field;
mod key_path;
mod read;
mod rules;
mod shape;
mod terms;
mod tracemind;
mod transcript;

use std::io::{self, Write};

use crate::artifact::{
    AdmitOptions, Artifact, Draft, KindInfo, MemberBytes, Part, Passage, Recognition, StepVisitor, document,
    unreadable,
};
use crate::digest::CoreHash;
use crate::json::Value;
use crate::json::canonical::rfc8785;
use crate::json::reader::{Defect, Limits, MemberNames, ReadError};
use crate::validation::{Findings, Report, RuleInfo, apply};

use attributes::{EFFECTS, IO_REFS};
use read::{ContractCore, ContractMembers};

pub(crate) use dialect::foreign_language;
pub use key_path::KeyPath;
pub use terms::{
    Bounds, ContractTerms, Effect, Evidence, IoRef, ParsedMember, RangeBound, SchemaSource, comparable,
};

/// The kind `contract`.
pub struct Contract;

static INFO: KindInfo = KindInfo {
    name: "contract",
    noun: "contract",
    plural: "contracts",
    members: &["contract"],
    attributes: &attributes::ATTRIBUTES,
    inverse_relation: Some("governs"),
    fields: &[transcript::FIELD],
    step_noun: "term",
    step_prefix: Some(("/effects/", 0)),
    further_steps: Some(("/io_refs/", transcript::IO_REF)),
    view: attributes::ARTIFACTS,
    tables: &[attributes::EFFECTS_TABLE, attributes::IO_REFS_TABLE],
    ..KindInfo::NONE
};

impl Artifact for Contract {
    fn info(&self) -> &'static KindInfo {
        &INFO
    }

    fn rules(&self) -> Vec<RuleInfo> {
        rules::all()
    }

    fn recognizes(&self, text: &str, names: &mut MemberNames<'_>) -> Option<Recognition> {
        let has_effects = read::has_member(text, names, &["io_refs", "effects"]);
        // Other documents have effects too, but do not state whether they can be repeated.
        let is_one = has_effects
            && (read::has_member(text, names, &["io_refs"]) || read::has_key(text, "idempotency"));
        Recognition::from_flags(is_one, has_effects)
    }

    fn examine(&self, bytes: &[u8], options: &AdmitOptions, findings: &mut Findings) -> Option<Draft> {
        let root = read::read(bytes, &options.limits, options.json_only)
            .map_err(|error| report(&error, findings))
            .ok()?;
        apply(&rules::SHAPE, findings, |check, found| check(&root, found));
        if findings.has_errors() {
            return None;
        }
        let view = ContractMembers::from_root(&root)?;
        apply(&rules::CONTENT, findings, |check, found| check(&view, found));
        if findings.has_errors() {
            return None;
        }
        let core = rfc8785::digest(view.core, b"");
        let core = core.map_err(|error| document::report_uncanonical("", &error, findings)).ok()?;
        Some(describe(&root, &view, CoreHash(core)))
    }

    /// Returns the contracts that a document of `TraceMind` has in its own form.
    fn derive(&self, document: &[u8], limits: &Limits) -> Option<Result<Vec<Vec<u8>>, Report>> {
        tracemind::contracts(document, limits)
    }

    fn write_core(&self, members: &[MemberBytes<'_>], out: &mut dyn Write) -> io::Result<()> {
        let root = read::read_admitted(MemberBytes::only(members)).map_err(unreadable)?;
        let core = ContractCore::from_root(&root).ok_or(io::ErrorKind::InvalidData)?;
        rfc8785::write(core, &mut { out })
    }

    fn parts<'d>(&self, members: &[MemberBytes<'d>]) -> Result<Vec<Part<'d>>, ReadError> {
        transcript::parts(MemberBytes::only(members))
    }

    fn passages(&self, members: &[MemberBytes<'_>]) -> Result<Vec<Passage>, ReadError> {
        transcript::passages(MemberBytes::only(members))
    }

    fn transcript(&self, members: &[MemberBytes<'_>], visit: &mut StepVisitor<'_>) -> Result<(), ReadError> {
        transcript::visit(MemberBytes::only(members), visit)
    }
}

/// Reports that a document cannot be read, under the format's own rule unless a limit is exceeded.
fn report(error: &ReadError, findings: &mut Findings) {
    if matches!(error.defect, Defect::TooDeep | Defect::TooLarge) {
        document::report(error, findings);
    } else {
        let rule = document::rule_of(error.defect).id;
        findings.for_rule(rules::SCHEMA).add("", format!("{error} ({rule})"));
    }
}

fn describe(root: &Value<'_>, view: &ContractMembers<'_>, core: CoreHash) -> Draft {
    let mut draft = Draft::new(core);
    draft.collect_references(root, "", &[]);
    let text = |value: &Value<'_>, name: &str| {
        value.get(name).and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    for io_ref in view.io_refs {
        let name = text(io_ref, "ref");
        draft.attribute("io_ref_kind", format!("{name} {}", text(io_ref, "kind")));
        draft.attribute("io_ref_mode", format!("{name} {}", text(io_ref, "mode")));
        draft.attribute("io_ref", name);
    }
    for effect in view.effects {
        draft.attribute("effect", text(effect, "name"));
        draft.attribute("target", text(effect, "target"));
    }
    draft.count(IO_REFS, view.io_refs.len());
    draft.count(EFFECTS, view.effects.len());
    draft
}

#[cfg(test)]
mod tests;

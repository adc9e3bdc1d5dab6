//! `agent_session`: the records that agents keep of their sessions on disk. Rules: `docs/formats.md`, "`agent_session`".
//!
//! Programs write these files without digests, so a chain is computed: the core hash is the digest of the digests of all
//! records.

mod atif;
mod attributes;
pub(crate) mod calls;
mod claude_code;
mod codex;
mod dialects;
mod form;
mod gemini_cli;
mod opencode;
mod pi;
mod record;
mod rules;
mod transcript;

use std::io::{self, Write};

use crate::artifact::{
    AdmitOptions, Artifact, AttributeInfo, Completeness, Draft, EventVisitor, KindInfo, MemberBytes, Mention,
    Part, Passage, Recognition, StepVisitor, SuccessorCriteria, document, unreadable,
};
use crate::conversation::message::{ConversationMessage, MessageRole};
use crate::digest::Digest;
use crate::json::reader::{self, MemberNames, ReadError};
use crate::validation::{Findings, RuleInfo};

pub(crate) use attributes::STARTED_BY;
use attributes::{CONTENT, EXTENDS, PROMPT, RECORD, RECORDS, RESPONSE, SessionSummary};
use calls::AgentCalls;
pub(crate) use dialects::states_tokens_of_api;
use form::SessionRecord;
use record::{LineDefect, RecordChain, visit_admitted, visit_units};
use rules::RecordChecks;

/// The kind `agent_session`.
pub struct AgentSession;

static INFO: KindInfo = KindInfo {
    name: "agent_session",
    noun: "agent session",
    plural: "agent_sessions",
    members: &["session.jsonl"],
    attributes: &attributes::ATTRIBUTES,
    is_run: true,
    versions: Some(SuccessorCriteria {
        relation: EXTENDS.name,
        attribute: AttributeInfo::RUN_ID.name,
        length: (RECORDS.name, "record"),
        states_predecessors: false,
    }),
    view: attributes::ARTIFACTS,
    tables: &[attributes::RECORDS_TABLE],
    step_noun: RECORD.unit,
    step_prefix: Some(("line ", 1)),
    records_prompts: true,
    ..KindInfo::NONE
};

impl Artifact for AgentSession {
    fn info(&self) -> &'static KindInfo {
        &INFO
    }

    fn rules(&self) -> Vec<RuleInfo> {
        rules::RULES.to_vec()
    }

    fn recognizes(&self, text: &str, names: &mut MemberNames<'_>) -> Option<Recognition> {
        dialects::detect(text, names).map(|_| Recognition::Surely)
    }

    fn examine(&self, bytes: &[u8], options: &AdmitOptions, findings: &mut Findings) -> Option<Draft> {
        let text = reader::utf8(bytes, &options.limits);
        let text = text.map_err(|error| document::report(&error, findings)).ok()?;
        let Some(dialect) = dialects::detect(text, &mut MemberNames::new(text)) else {
            findings.for_rule(rules::RECORDS).add("", "this is not a session of a known program");
            return None;
        };
        let mut chain = RecordChain::new(dialect);
        let mut draft = Draft::new(chain.head());
        let (mut checks, mut calls) = (RecordChecks::default(), AgentCalls::default());
        let mut summary = SessionSummary::default();
        let read = visit_units(dialect, text, &options.limits, &mut |unit| match unit {
            Ok(unit) => {
                let mut record = (dialect.read)(unit.value);
                checks.follow(dialect, unit.place, &record, findings);
                if let Some(bytes) = unit.bytes {
                    let digest = chain.add(bytes);
                    draft.mentions.push(Mention::at(&CONTENT, unit.index, digest));
                    draft.mentions.push(Mention::at(&RECORD, unit.index, chain.head().0));
                    summary.count();
                } else {
                    let message =
                        "the line has several objects; the end of the first one's line was not written";
                    findings.for_rule(rules::RECORDS).warn(unit.place.to_string(), message);
                }
                mention_texts(unit.index, &record, &mut draft);
                summary.add(dialect, &record, &mut draft);
                calls.add(unit.index, &mut record);
            }
            Err(LineDefect::Torn(line)) => {
                let message = "the line is not complete, and not part of the session";
                findings.for_rule(rules::TORN).add(format!("line {line}"), message);
            }
            Err(LineDefect::Unreadable(error)) => document::report(&error, findings),
        });
        read.map_err(|error| document::report(&error, findings)).ok()?;
        checks.end(findings);
        draft.core = chain.head();
        if draft.mentions.is_empty() && !findings.has_errors() {
            findings.for_rule(rules::RECORDS).add("", "the session has no records");
        }
        calls.end();
        summary.describe(dialect, &calls, &mut draft);
        draft.completeness = Completeness::MayGrow;
        (!findings.has_errors()).then_some(draft)
    }

    fn write_core(&self, members: &[MemberBytes<'_>], out: &mut dyn Write) -> io::Result<()> {
        let mut chain = None;
        visit_admitted(MemberBytes::only(members), &mut |dialect, unit| {
            if let Some(bytes) = unit.bytes {
                chain.get_or_insert_with(|| RecordChain::new(dialect)).add(bytes);
            }
        })
        .map_err(unreadable)?;
        out.write_all(&chain.ok_or(io::ErrorKind::InvalidData)?.preimage())
    }

    fn run_events(&self, members: &[MemberBytes<'_>], visit: &mut EventVisitor<'_>) -> Result<(), ReadError> {
        transcript::run_events(MemberBytes::only(members), visit)
    }

    fn quote(&self, document: &[u8], index: usize) -> Option<String> {
        let mut quoted = None;
        visit_admitted(document, &mut |_, unit| {
            if let Some(bytes) = unit.bytes.filter(|_| unit.index == index) {
                quoted = String::from_utf8(bytes.to_vec()).ok();
            }
        })
        .ok()?;
        quoted
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

/// Adds the digests of what users asked and of what models answered.
fn mention_texts(index: usize, record: &SessionRecord<'_>, draft: &mut Draft) {
    let is_user = |message: &&ConversationMessage| message.role == MessageRole::User;
    let asked = record.asked.iter().filter(is_user).flat_map(|message| &message.parts);
    let answered = record.answer.iter().flat_map(|answer| &answer.parts);
    let texts = asked.map(|part| (part, &PROMPT)).chain(answered.map(|part| (part, &RESPONSE)));
    for (part, role) in texts {
        if let Some(text) = part.as_text().filter(|text| !text.is_empty()) {
            draft.mentions.push(Mention::at(role, index, Digest::from_content(text.as_bytes())));
        }
    }
}

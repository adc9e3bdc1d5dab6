//! `model_io`: recorded model sessions. Rules: the Model IO specification, section 5; `docs/formats.md`, "`model_io`".

mod attributes;
mod recording;
mod rules;
mod session;
mod transcript;

use std::io::{self, Write};

use crate::artifact::{
    AdmitOptions, Artifact, AttributeInfo, Draft, Exchange, Field, KindInfo, MemberBytes, Mention,
    NameHandle, Part, Passage, PassageCollector, Playback, Recognition, Relation, Responder, StepVisitor,
    document, unreadable,
};
use crate::conversation::reader::{decode_text, may_be_answer_body};
use crate::digest::{CoreHash, Digest};
use crate::json::Value;
use crate::json::canonical::rfc8785;
use crate::json::reader::{self, Limits, MemberNames, ReadError, has_key, has_lost_beginning};
use crate::validation::{Findings, Report, RuleInfo, apply};

use attributes::{INDEXED, PROMPT, RESPONSE};
use session::{SessionMembers, interactions};

pub use attributes::INTERACTIONS;
pub use recording::{IMPORT_ADAPTER, KernelRecording};
pub use session::{Interaction, Session, SessionMode};

/// The kind `model_io`.
pub struct ModelIo;

static INFO: KindInfo = KindInfo {
    name: "model_io",
    noun: "session",
    plural: "sessions",
    members: &["model_io.json"],
    file_names: &["model_io.json"],
    attributes: &attributes::ATTRIBUTES,
    playback: Some(Playback::ByPrompt),
    step_noun: PROMPT.unit,
    step_prefix: Some(("/interactions/", 0)),
    view: attributes::ARTIFACTS,
    tables: &[attributes::INTERACTIONS_TABLE],
    ..KindInfo::NONE
};

impl Artifact for ModelIo {
    fn info(&self) -> &'static KindInfo {
        &INFO
    }

    fn rules(&self) -> Vec<RuleInfo> {
        rules::all()
    }

    fn recognizes(&self, text: &str, names: &mut MemberNames<'_>) -> Option<Recognition> {
        // It is usually the first member, so the rest of the text is not read.
        if names.has("model_io_schema_version") {
            return Some(Recognition::Surely);
        }
        let [interactions, adapter, model] =
            ["interactions", "adapter_id", "model_id"].map(|name| names.has(name));
        if recording::is_recording(names) {
            return Some(Recognition::Surely);
        }
        let has_hashes = || ["prompt_hash", "response_hash"].into_iter().any(|name| has_key(text, name));
        let is_one = interactions && (adapter && model || has_hashes());
        let mut is_cut = || {
            // Other documents have adapters and models too, but are not truncated.
            let before_interactions = adapter && model && names.has("mode") && names.break_off();
            let hashed = ["prompt_hash", "response_hash", "response_content"];
            before_interactions
                || has_lost_beginning(text) && hashed.into_iter().all(|name| has_key(text, name))
        };
        Recognition::from_flags(is_one || is_cut(), interactions && (adapter || model))
    }

    fn examine(&self, bytes: &[u8], options: &AdmitOptions, findings: &mut Findings) -> Option<Draft> {
        let root = reader::read_keeping_overflow(bytes, &options.limits)
            .map_err(|error| document::report(&error, findings))
            .ok()?;
        apply(&rules::ROOT, findings, |check, found| check(&root, found));
        let view = SessionMembers::from_root(&root)?;
        apply(&rules::CONTENT, findings, |check, found| check(&view, found));
        if findings.has_errors() {
            return None;
        }
        let core = rfc8785::digest(view.core(), b"");
        let core = core.map_err(|error| document::report_uncanonical("", &error, findings)).ok()?;
        Some(describe(&root, &view, CoreHash(core)))
    }

    /// Returns the session that a recording of context-engine-kernel becomes.
    fn derive(&self, document: &[u8], limits: &Limits) -> Option<Result<Vec<Vec<u8>>, Report>> {
        if !KernelRecording::recognizes(document) {
            return None;
        }
        let original = Digest::from_content(document);
        let recording = KernelRecording::read(document, limits);
        Some(recording.map(|recording| vec![recording.session(original)]))
    }

    fn write_core(&self, members: &[MemberBytes<'_>], out: &mut dyn Write) -> io::Result<()> {
        let root =
            reader::read_keeping_overflow(MemberBytes::only(members), &Limits::most()).map_err(unreadable)?;
        let view = SessionMembers::from_root(&root).ok_or(io::ErrorKind::InvalidData)?;
        rfc8785::write(view.core(), &mut { out })
    }

    /// Returns its interactions.
    fn exchanges(&self, document: &[u8]) -> Result<Vec<Exchange>, ReadError> {
        let interactions = Session::read(document)?.map(|session| session.interactions);
        let numbered = interactions.unwrap_or_default().into_iter().enumerate();
        let exchanges = numbered.map(|(index, interaction)| Exchange {
            index,
            responder: Responder::Model,
            prompts: vec![interaction.prompt_hash],
            tool: None,
            arguments: None,
            said: Some(&interaction.response_content)
                .filter(|text| may_be_answer_body(text))
                .map(|text| decode_text(text).comparable_text()),
            response: interaction.response_content,
            output: None,
            is_error: false,
        });
        Ok(exchanges.collect())
    }

    fn transcript(&self, members: &[MemberBytes<'_>], visit: &mut StepVisitor<'_>) -> Result<(), ReadError> {
        transcript::visit(
            interactions(&reader::read_keeping_overflow(MemberBytes::only(members), &Limits::most())?),
            visit,
        );
        Ok(())
    }

    fn parts<'d>(&self, members: &[MemberBytes<'d>]) -> Result<Vec<Part<'d>>, ReadError> {
        transcript::parts(MemberBytes::only(members))
    }

    /// Returns its responses.
    fn passages(&self, members: &[MemberBytes<'_>]) -> Result<Vec<Passage>, ReadError> {
        let root = reader::read_keeping_overflow(MemberBytes::only(members), &Limits::most())?;
        let mut passages = PassageCollector::default();
        for (index, interaction) in interactions(&root).iter().enumerate() {
            let response = interaction.get("response_content").and_then(Value::as_str).unwrap_or_default();
            passages.add_at(Field::RESPONSE, RESPONSE.unit, index, response);
        }
        Ok(passages.into_vec())
    }
}

fn describe(root: &Value<'_>, view: &SessionMembers<'_>, core: CoreHash) -> Draft {
    let mut draft = Draft::new(core);
    for (index, interaction) in view.interactions.iter().enumerate() {
        for (name, role) in [("prompt_hash", &PROMPT), ("response_hash", &RESPONSE)] {
            let digest = interaction.get(name).and_then(Value::as_str).and_then(Digest::parse_prefixed);
            draft.mentions.extend(digest.map(|digest| Mention::at(role, index, digest)));
        }
    }
    draft.collect_references(root, "", &INDEXED);
    for (name, value) in [("adapter_id", view.adapter_id), ("mode", view.mode)] {
        draft.attribute(name, value.as_str().unwrap_or_default());
    }
    attributes::describe_model(view.model_id.as_str().unwrap_or_default(), &mut draft);
    if let Some(run_id) = root.get("run_id").and_then(Value::as_non_empty_str) {
        draft.attribute(AttributeInfo::RUN_ID.name, run_id);
        draft.refers_to.push((Relation::RECORDS_RUN, NameHandle::new("run", run_id)));
    }
    draft.count(INTERACTIONS, view.interactions.len());
    attributes::describe(root, view.interactions, &mut draft);
    draft
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::artifact::Kind;

    #[test]
    fn the_core_is_pinned() {
        let content = Digest::from_content(b"hi");
        let prompt = Digest::from_content(b"hello");
        let text = format!(
            r#"{{"mode":"record","stats":[1e999],"model_io_schema_version":"1.0.0","model_id":"m","adapter_id":"a",
            "interactions":[{{"i":-0,"prompt_hash":"{prompt}","response_hash":"{content}","response_content":"hi",
            "latency_ms":3,"seen":"{prompt}"}}]}}"#
        );
        let mut core = Vec::new();
        ModelIo.write_core(&[MemberBytes { name: "", bytes: text.as_bytes() }], &mut core).unwrap();
        let expected = format!(
            r#"{{"adapter_id":"a","interactions":[{{"i":0,"prompt_hash":"{prompt}","response_content":"hi","response_hash":"{content}"}}],"mode":"record","model_id":"m","model_io_schema_version":"1.0.0"}}"#
        );
        assert_eq!(String::from_utf8(core).unwrap(), expected);
        let admitted = Kind::new(&ModelIo).admit(text.into_bytes(), &AdmitOptions::default()).unwrap();
        assert_eq!(admitted.core(), CoreHash(Digest::from_content(expected.as_bytes())));
        let mentions: Vec<String> = admitted
            .draft()
            .mentions
            .iter()
            .map(|mention| format!("{} {} {:.6}", mention.role.name, mention.place, mention.digest))
            .collect();
        assert_eq!(
            mentions,
            ["prompt 0 2cf24d", "reference /interactions/0/seen 2cf24d", "response 0 8f4343"]
        );
    }
}

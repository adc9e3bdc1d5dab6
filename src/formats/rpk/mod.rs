//! `rpk`: ReplayKit run packs and their `.bundle` exports. Rules: the format specification, version 1;
//! `docs/formats.md`, "rpk".

mod attributes;
mod calls;
pub(crate) mod conversation;
mod envelope;
mod exchanges;
mod messages;
mod metrics;
mod migration;
mod pending_requests;
mod requests;
mod rules;
mod run_events;
mod texts;
mod transcript;

use std::io::{self, Write};

use crate::artifact::{
    AdmitOptions, Artifact, ArtifactLocation, Draft, EventVisitor, Exchange, KindInfo, MemberBytes, Mention,
    MissingOffset, NameHandle, Part, Passage, Playback, Recognition, RequestVisitor, RunEvent, StepVisitor,
    document, unreadable,
};
use crate::digest::{CoreHash, Digest};
use crate::json::canonical::replaykit::NonCanonicalValue;
use crate::json::reader::{self, Limits, MemberNames, ReadError, has_key, has_lost_beginning};
use crate::json::{Object, Value, compact};
use crate::validation::{Findings, Report, RuleInfo, apply};

use attributes::{
    CONTINUES, DERIVED_FROM, INDEXED, PART_OF, PREVIOUS, PREVIOUS_AT, PROMPT, RESPONSE, STEP,
    STEP_ATTRIBUTES, states,
};
use envelope::{Envelope, at, core_text, steps};

pub use attributes::STEPS;
pub use texts::{BODIES, ProviderShape, ROLES_NOT_ASKED, SHAPES, StepTextRole, TYPES_PASSED_OVER};

/// Members that occur together only in runs.
const OF_RUNS: [&str; 2] = ["environment_fingerprint", "runtime_versions"];
/// Members of every step.
const OF_STEPS: [&str; 5] = ["type", "input", "output", "metadata", "hash"];

/// The kind `rpk`.
pub struct Rpk;

static INFO: KindInfo = KindInfo {
    name: "rpk",
    noun: "run pack",
    plural: "runs",
    members: &["run.rpk"],
    file_names: &["*.rpk", "*.bundle"],
    attributes: &attributes::ATTRIBUTES,
    is_run: true,
    can_be_signed: true,
    playback: Some(Playback::InOrder),
    view: attributes::ARTIFACTS,
    tables: &[attributes::STEPS_TABLE],
    step_noun: STEP.unit,
    step_prefix: Some(("/payload/run/steps/", 0)),
    records_prompts: true,
    ..KindInfo::NONE
};

impl Artifact for Rpk {
    fn info(&self) -> &'static KindInfo {
        &INFO
    }

    fn rules(&self) -> Vec<RuleInfo> {
        rules::RULES.iter().map(|rule| rule.info).collect()
    }

    fn recognizes(&self, text: &str, names: &mut MemberNames<'_>) -> Option<Recognition> {
        // Each of these names is common, but three together are hardly a coincidence.
        let envelope = ["version", "metadata", "payload", "checksum"];
        let three = envelope.into_iter().filter(|name| names.has(name)).count() >= 3;
        let of_run = || OF_RUNS.into_iter().all(|name| has_key(text, name));
        let is_one = three && names.has("checksum") || names.has("payload") && of_run();
        let is_cut = || {
            has_lost_beginning(text)
                && OF_STEPS.into_iter().all(|name| has_key(text, name))
                && rules::STEP_TYPES.into_iter().any(|name| text.contains(&format!("\"{name}\"")))
        };
        Recognition::from_flags(is_one || is_cut(), three)
    }

    fn examine(&self, bytes: &[u8], options: &AdmitOptions, findings: &mut Findings) -> Option<Draft> {
        let mut root =
            reader::read(bytes, &options.limits).map_err(|error| document::report(&error, findings)).ok()?;
        let envelope = Envelope::new(&root, options);
        apply(&rules::RULES, findings, |check, found| check(&envelope, found));
        if findings.has_errors() {
            return None;
        }
        let signature = envelope.signature.map(|signature| signature.summary());
        match envelope.checksum? {
            Ok(checksum) => {
                requests::complete(&mut root);
                let mut draft = describe(&root, CoreHash(checksum));
                draft.signature = signature;
                Some(draft)
            }
            Err(defects) => {
                for NonCanonicalValue { pointer, defect } in defects {
                    document::report_uncanonical(&pointer, &defect, findings);
                }
                None
            }
        }
    }

    /// Returns the run pack of version 1.0 that one of version 0.9 becomes.
    fn derive(&self, document: &[u8], limits: &Limits) -> Option<Result<Vec<Vec<u8>>, Report>> {
        migration::migrate(document, limits).map(|migrated| migrated.map(|document| vec![document]))
    }

    fn write_core(&self, members: &[MemberBytes<'_>], out: &mut dyn Write) -> io::Result<()> {
        let root = reader::read(MemberBytes::only(members), &Limits::most()).map_err(unreadable)?;
        let text = core_text(&root).and_then(Result::ok).ok_or(io::ErrorKind::InvalidData)?;
        out.write_all(&text)
    }

    /// Calls `visit` with the tool calls. Only the output of a `tool.response` is evidence. The metadata of the pack,
    /// the run and its steps, and the inputs of rendered prompts are statements of the recorder.
    fn run_events(&self, members: &[MemberBytes<'_>], visit: &mut EventVisitor<'_>) -> Result<(), ReadError> {
        let root = requests::read(MemberBytes::only(members))?;
        root.get("metadata")
            .into_iter()
            .for_each(|metadata| visit(RunEvent::Statement { at: 0, value: metadata }));
        let run = at(&root, &["payload", "run"]).and_then(Value::as_object);
        for (_, member) in run.into_iter().flat_map(Object::iter).filter(|(name, _)| *name != "steps") {
            visit(RunEvent::Statement { at: 0, value: member });
        }
        run_events::visit(steps(&root), visit);
        Ok(())
    }

    /// Returns a step, without white space.
    fn quote(&self, document: &[u8], index: usize) -> Option<String> {
        let root = reader::read(document, &Limits::most()).ok()?;
        steps(&root).get(index).map(compact::text)
    }

    fn exchanges(&self, document: &[u8]) -> Result<Vec<Exchange>, ReadError> {
        Ok(exchanges::extract(steps(&requests::read(document)?)))
    }

    fn requests(&self, document: &[u8], visit: &mut RequestVisitor<'_>) -> Result<(), ReadError> {
        self.requests_in(&reader::read(document, &Limits::most())?, visit);
        Ok(())
    }

    fn requests_in(&self, document: &Value<'_>, visit: &mut RequestVisitor<'_>) {
        requests::visit(steps(document), visit);
    }

    fn core_of(&self, document: &Value<'_>) -> Option<CoreHash> {
        envelope::core_digest(document)?.ok().map(CoreHash)
    }

    fn parts<'d>(&self, members: &[MemberBytes<'d>]) -> Result<Vec<Part<'d>>, ReadError> {
        transcript::parts(MemberBytes::only(members))
    }

    fn passages(&self, members: &[MemberBytes<'_>]) -> Result<Vec<Passage>, ReadError> {
        Ok(transcript::passages(steps(&requests::read(MemberBytes::only(members))?)))
    }

    fn transcript(&self, members: &[MemberBytes<'_>], visit: &mut StepVisitor<'_>) -> Result<(), ReadError> {
        transcript::visit(steps(&requests::read(MemberBytes::only(members))?), visit);
        Ok(())
    }
}

fn describe(root: &Value<'_>, core: CoreHash) -> Draft {
    let mut draft = Draft::new(core);
    let steps = steps(root);
    for (index, step) in steps.iter().enumerate() {
        let hash = step.get("hash").and_then(Value::as_str).and_then(Digest::parse_prefixed);
        draft.mentions.extend(hash.map(|hash| Mention::at(&STEP, index, hash)));
        draft.mentions.extend(requests::prompt_hash(step).map(|hash| Mention::at(&PROMPT, index, hash)));
        for (role, carries) in [(&PROMPT, StepTextRole::Prompts), (&RESPONSE, StepTextRole::Responses)] {
            let digests =
                texts::carried(step, carries).into_iter().map(|text| Digest::from_content(text.as_bytes()));
            draft.mentions.extend(digests.map(|digest| Mention::at(role, index, digest)));
        }
    }
    let previous = root.at_pointer(PREVIOUS_AT).and_then(Value::as_str).and_then(Digest::parse_prefixed);
    draft.mentions.extend(previous.map(|digest| {
        let place = ArtifactLocation::Pointer(PREVIOUS_AT.to_owned());
        Mention { role: &PREVIOUS, place, digest }
    }));
    draft.collect_references(root, "", &INDEXED);
    name(root, steps, &mut draft);
    let text = |names: &[&str]| at(root, names).and_then(Value::as_str);
    // The format allows times without an offset, whose time zone is unknown.
    let times = [text(&["metadata", "created_at"]), text(&["payload", "run", "timestamp"])];
    draft.state_creation(times, MissingOffset::Unknown);
    draft.count(STEPS, steps.len());
    metrics::describe(root, steps, &mut draft);
    attributes::describe(steps, &mut draft);
    draft
}

/// Returns the ids of the first run that a listener recorded and of the one before this one, if it began a new file because
/// the other one had enough steps: all are segments of one run.
fn segments_before(root: &Value<'_>) -> Option<[String; 2]> {
    let text = |names: &[&str]| at(root, names).and_then(Value::as_non_empty_str);
    let first = format!("run-listener-{}", text(&["payload", "run", "listener_session_id"])?);
    let number = text(&["payload", "run", "id"])?.strip_prefix(&first)?.strip_prefix("-segment-")?;
    let is_number = number.len() >= 4 && number.bytes().all(|digit| digit.is_ascii_digit());
    let before = number.parse::<u64>().ok().filter(|_| is_number)?.checked_sub(1)?;
    let before = match before {
        0 => return None,
        1 => first.clone(),
        _ => format!("{first}-segment-{before:04}"),
    };
    Some([first, before])
}

/// Adds the attributes and names of runs.
fn name(root: &Value<'_>, steps: &[Value<'_>], draft: &mut Draft) {
    let text = |names: &[&str]| at(root, names).and_then(Value::as_non_empty_str).map(str::to_owned);
    for run_id in [text(&["payload", "run", "id"]), text(&["metadata", "run_id"])].into_iter().flatten() {
        draft.identified_by.push(NameHandle::new("run", &run_id));
        draft.attribute("run_id", run_id);
    }
    for source in [text(&["metadata", "source_run_id"]), text(&["payload", "run", "source_run_id"])]
        .into_iter()
        .flatten()
    {
        draft.refers_to.push((DERIVED_FROM, NameHandle::new("run", &source)));
        draft.attribute("source_run_id", source);
    }
    if let Some([first, before]) = segments_before(root) {
        draft.refers_to.push((CONTINUES, NameHandle::new("run", &before)));
        draft.refers_to.push((PART_OF, NameHandle::new("run", &first)));
    }
    for member in ["provider", "agent", "source", "capture_mode"] {
        if let Some(value) = text(&["payload", "run", member]) {
            draft.attribute(member, value);
        }
    }
    for step in steps {
        let step_type = step.get("type").and_then(Value::as_str).unwrap_or_default();
        draft.attribute("step_type", step_type);
        for (attribute, places) in STEP_ATTRIBUTES {
            if *attribute == "tool" && !step_type.starts_with("tool.") {
                continue;
            }
            let values = places.iter().filter_map(|names| at(step, names).and_then(Value::as_non_empty_str));
            let values = values.filter(|value| states(attribute, value));
            values.for_each(|value| draft.attribute(attribute, value));
        }
    }
}

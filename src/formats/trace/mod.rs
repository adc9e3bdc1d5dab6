//! `trace`: hash-chained trace logs in JSON Lines. Rules: the trace format specification; `docs/formats.md`, "trace".
//!
//! Records are checked one at a time, so that memory does not grow with the number of values in a trace.

mod attributes;
mod calls;
mod growth;
mod record;
mod rules;
mod time;
mod transcript;

use std::io::{self, Write};

use crate::artifact::{
    AdmitOptions, Artifact, Draft, EventVisitor, JoinedDocument, KindInfo, MemberBytes, Mention,
    MissingOffset, NameHandle, Part, Passage, PredecessorReference, Recognition, Relation, ReproducibleRun,
    Role, StepVisitor, SuccessorCriteria, document, unreadable,
};
use crate::digest::{CoreHash, Digest};
use crate::json::Value;
use crate::json::canonical::c14n_v1;
use crate::json::reader::{self, Limits, MemberNames, ReadError, has_key, has_lost_beginning};
use crate::validation::{Findings, RuleInfo, apply};

use attributes::{
    CONTROL_ROLES, EXTENDS, HEADER_ROLES, INDEXED, OF_STATES, RECORD, RECORDS, RESULT_ROLES, STEP_ROLES,
};
use growth::{Growth, Metrics};
use record::{Chain, TraceLines, TraceRecord, digest_of};

/// The kind `trace`.
pub struct Trace;

static INFO: KindInfo = KindInfo {
    name: "trace",
    noun: "trace",
    plural: "traces",
    members: &["trace.ndjson"],
    attributes: &attributes::ATTRIBUTES,
    is_run: true,
    versions: Some(SuccessorCriteria {
        relation: EXTENDS.name,
        attribute: "trace_id",
        length: ("records", "record"),
        states_predecessors: true,
    }),
    step_noun: RECORD.unit,
    step_prefix: Some(("line ", 1)),
    view: attributes::ARTIFACTS,
    contents: &attributes::CONTENTS,
    tables: &[attributes::RECORDS_TABLE],
    ..KindInfo::NONE
};

impl Artifact for Trace {
    fn info(&self) -> &'static KindInfo {
        &INFO
    }

    fn rules(&self) -> Vec<RuleInfo> {
        let records = rules::RULES.iter().map(|rule| rule.info);
        [record::LINE_FORMAT].into_iter().chain(records).collect()
    }

    fn recognizes(&self, text: &str, names: &mut MemberNames<'_>) -> Option<Recognition> {
        let is_header = names.has("canonicalization") && names.has("hash_algorithm");
        // Other logs have hash chains too; states are specific to traces.
        let states = OF_STATES.into_iter().filter(|name| names.has(name)).count();
        let is_record = states > 0 && names.has("record_hash") || states > 1 && names.has("type");
        let is_cut = || {
            has_lost_beginning(text)
                && ["record_hash", "prev_hash"].into_iter().all(|name| has_key(text, name))
                && OF_STATES.into_iter().any(|name| has_key(text, name))
        };
        let perhaps = names.has("record_hash") || names.has("type") && (states > 0 || names.has("prev_hash"));
        Recognition::from_flags(is_header || is_record || is_cut(), perhaps)
    }

    fn examine(&self, bytes: &[u8], options: &AdmitOptions, findings: &mut Findings) -> Option<Draft> {
        let lines = TraceLines::parse(bytes, &options.limits, findings)?;
        let (mut chain, mut growth, mut metrics) = (Chain::default(), Growth::default(), Metrics::default());
        let mut draft = Draft::new(CoreHash(Digest::from_content(b"")));
        let mut records = 0;
        for (position, line) in lines.filled().enumerate() {
            if findings.is_full() {
                break;
            }
            records = position + 1;
            let Some(value) = line.value(&options.limits, findings) else {
                chain.break_off(line.begins_record());
                continue;
            };
            let record = match TraceRecord::new(line.number, position, &value, &chain) {
                Ok(record) => record,
                Err(error) => {
                    document::report_uncanonical(&format!("line {}", line.number), &error, findings);
                    chain.break_off(true);
                    continue;
                }
            };
            apply(&rules::RULES, findings, |check, found| check(&record, found));
            draft.core = CoreHash(record.hash);
            // A rejected trace is not indexed: it may have any number of records.
            if !findings.has_errors() {
                describe(&record, &mut draft);
            }
            chain.follow(&value);
            growth.follow(&value);
            metrics.follow(&value);
        }
        draft.count(RECORDS, records);
        metrics.describe(&mut draft);
        draft.completeness = growth.completeness();
        (!findings.has_errors()).then_some(draft)
    }

    fn write_core(&self, members: &[MemberBytes<'_>], out: &mut dyn Write) -> io::Result<()> {
        let document = MemberBytes::only(members);
        let lines = document.strip_suffix(b"\n").unwrap_or(document);
        let last = lines.rsplit(|byte| *byte == b'\n').next().unwrap_or_default();
        let value = reader::read(last, &Limits::most()).map_err(unreadable)?;
        let record = value.as_object().ok_or(io::ErrorKind::InvalidData)?;
        let text = c14n_v1::object_without(record, "record_hash").map_err(io::Error::other)?;
        out.write_all(&text)
    }

    fn continues(&self, document: &[u8], limits: &Limits) -> Option<PredecessorReference> {
        growth::continues(document, limits)
    }

    fn join(&self, beginning: &[u8], rest: &PredecessorReference, document: &[u8]) -> Option<JoinedDocument> {
        growth::join(beginning, rest.after, document)
    }

    fn run_events(&self, members: &[MemberBytes<'_>], visit: &mut EventVisitor<'_>) -> Result<(), ReadError> {
        calls::visit(MemberBytes::only(members), visit)
    }

    fn reproducible(&self, document: &[u8]) -> Option<ReproducibleRun> {
        attributes::read(document)
    }

    fn quote(&self, document: &[u8], index: usize) -> Option<String> {
        let line = document.split(|byte| *byte == b'\n').nth(index)?;
        String::from_utf8(line.to_vec()).ok()
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

fn describe(record: &TraceRecord<'_>, draft: &mut Draft) {
    let value = record.value;
    draft.mentions.push(Mention::at(&RECORD, record.position, record.hash));
    mention(value, &HEADER_ROLES, record.position, draft);
    mention(value, &STEP_ROLES, record.position, draft);
    mention(value, &CONTROL_ROLES, record.position, draft);
    if let Some(result) = value.get("result") {
        mention(result, &RESULT_ROLES, record.position, draft);
        if let Some(step) = result.get("step").and_then(Value::as_non_empty_str) {
            draft.attribute("step", step);
        }
    }
    for name in ["trace_id", "engine_version"] {
        if let Some(text) = value.get(name).and_then(Value::as_non_empty_str).filter(|_| record.position == 0)
        {
            draft.attribute(name, text);
            if name == "trace_id" {
                draft.refers_to.push((Relation::RECORDS_RUN, NameHandle::new("run", text)));
            }
        }
    }
    if record.position == 0 {
        // According to the specification, an ISO 8601 timestamp in UTC.
        let created_at = value.get("created_at").and_then(Value::as_str);
        draft.state_creation([created_at], MissingOffset::Utc);
    }
    let prefix = format!("line {} ", record.line);
    draft.collect_references(value, &prefix, &INDEXED);
}

fn mention(value: &Value<'_>, roles: &'static [(&'static str, Role)], position: usize, draft: &mut Draft) {
    for (name, role) in roles {
        let digest = value.get(name).and_then(Value::as_str).and_then(digest_of);
        draft.mentions.extend(digest.map(|digest| Mention::at(role, position, digest)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::artifact::AdmitOptions;
    use crate::formats;

    #[test]
    fn the_example_of_the_documentation_is_a_trace() {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/formats.md");
        let text = std::fs::read_to_string(path).unwrap();
        let (_, rest) = text.split_once("is a complete trace document:\n\n```json\n").unwrap();
        let (record, rest) = rest.split_once("```").unwrap();
        let (_, rest) = rest.split_once("```text\n").unwrap();
        let (canonical, _) = rest.split_once("```").unwrap();
        let kind = formats::named("trace").unwrap();
        let line = format!("{}\n", record.replace('\n', ""));
        let admitted = kind.admit(line.into_bytes(), &AdmitOptions::default()).unwrap();
        let canonical = canonical.replace('\n', "").replace("<7F>", "\u{7f}").replace("<E000>", "\u{e000}");
        assert_eq!(admitted.core().0, Digest::from_content(canonical.as_bytes()));
    }

    #[test]
    fn the_version_of_the_engine_is_a_semantic_version() {
        let kind = formats::named("trace").unwrap();
        let objections = |version: &str| {
            let header = format!("{{\"type\": \"header\", \"engine_version\": \"{version}\"}}\n");
            let report = kind.admit(header.into_bytes(), &AdmitOptions::default()).unwrap_err();
            report.violations().iter().filter(|it| it.path.ends_with("/engine_version")).count()
        };
        for version in ["1.4.0", "0.0.0", "2.0.0-rc.1", "1.0.0-alpha+build.5"] {
            assert_eq!(objections(version), 0, "{version}");
        }
        for version in ["1.4", "01.4.0", "1.04.0", "1.0.0-01", "v1.0.0", "1.0.0-"] {
            assert_eq!(objections(version), 1, "{version}");
        }
    }
}

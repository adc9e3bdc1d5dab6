//! The rules for agent sessions: `docs/formats.md`, "`agent_session`".

use std::collections::HashSet;

use chrono::{DateTime, TimeDelta, Utc};

use super::form::{AgentDialect, SessionRecord};
use super::record::RecordPlace;
use crate::conversation::message::MessagePart;
use crate::json::reader::excerpt;
use crate::validation::{Findings, RuleInfo};

pub(super) const RECORDS: RuleInfo = RuleInfo::error(
    "AS1",
    "The document has at least one record, and every complete line is one JSON object.",
    "The digest of a session is that of its records, so there must be no doubt what they are. A line that is not an \
     object was damaged, or two programs wrote to the file at once.",
);
const SESSION: RuleInfo = RuleInfo::warning(
    "AS2",
    "All records state the same session.",
    "Programs that resume or fork a session begin the file of the new one with records of the old one. The session is that of \
     the last record, and the others are those that it was forked from.",
);
const PARENTS: RuleInfo = RuleInfo::warning(
    "AS3",
    "The record that a record follows is in the session.",
    "Otherwise the session is not complete: records were removed, or are in another file, as after a session was resumed \
     or compacted. Some versions of programs also name records that they never write.",
);
const TIMES: RuleInfo = RuleInfo::warning(
    "AS4",
    "Times do not go back.",
    "Records are appended as they are made. Programs that run tools at once may write their results in another order, and \
     clocks are set.",
);
pub(super) const TORN: RuleInfo = RuleInfo::warning(
    "AS5",
    "The last line is complete.",
    "The program was writing the line, or was killed while it did. What there is of it is kept, but is not a record, so it \
     is not part of the session. The whole file can be added later.",
);
const TYPES: RuleInfo = RuleInfo::warning(
    "AS6",
    "The types of records are known.",
    "Programs add types of records with most versions. Such records are kept and hashed like all others, and counted in \
     the attribute unknown_records, but are not part of the conversation that is shown.",
);
const RESULTS: RuleInfo = RuleInfo::warning(
    "AS7",
    "The result of a tool belongs to a call in the session.",
    "Otherwise the record of the call was removed, or is in another file.",
);
const IDS: RuleInfo = RuleInfo::warning(
    "AS8",
    "No two records have the same id.",
    "A program wrote a record twice, or two parts of the session were joined. Records that follow this id follow the last \
     one with it.",
);
const VERSIONS: RuleInfo = RuleInfo::warning(
    "AS9",
    "The version of the format is known.",
    "Formats of programs change without notice, so a document of an unknown version is kept as it is. What is shown of it \
     may not be everything.",
);

const NUMBERS: RuleInfo = RuleInfo::warning(
    "AS10",
    "The numbers that records state for themselves are consecutive.",
    "Otherwise records were removed or added, or are in another order.",
);

/// All rules, in the order of the documentation.
pub(super) const RULES: [RuleInfo; 10] =
    [RECORDS, SESSION, PARENTS, TIMES, TORN, TYPES, RESULTS, IDS, VERSIONS, NUMBERS];

/// What the records so far state.
#[derive(Default)]
pub(super) struct RecordChecks {
    session: Option<String>,
    ids: HashSet<String>,
    calls: HashSet<String>,
    /// The records that follow one that was not read so far, with its id, and those with results of such calls.
    children: Vec<(RecordPlace, String)>,
    results: Vec<(RecordPlace, String)>,
    types: HashSet<String>,
    last: Option<DateTime<Utc>>,
    back: Option<BackwardTimes>,
    /// The number that the last record states.
    number: Option<u64>,
}

/// The records whose times are before that of an earlier one.
struct BackwardTimes {
    first: RecordPlace,
    records: usize,
    most: TimeDelta,
}

impl RecordChecks {
    /// Reports what is known after all records.
    pub(super) fn end(self, findings: &mut Findings) {
        for (place, parent) in self.children.iter().filter(|(_, parent)| !self.ids.contains(parent)) {
            let message = format!("the record follows {}, which is not in the session", excerpt(parent));
            findings.for_rule(PARENTS).add(place.to_string(), message);
        }
        for (place, call) in self.results.iter().filter(|(_, call)| !self.calls.contains(call)) {
            let message = format!("the result is of the call {}, which is not in the session", excerpt(call));
            findings.for_rule(RESULTS).add(place.to_string(), message);
        }
        if let Some(BackwardTimes { first, records, most }) = self.back {
            let milliseconds = most.num_milliseconds();
            let message = format!(
                "{records} of the records from here on state times before those of earlier ones, by up to {milliseconds} ms"
            );
            findings.for_rule(TIMES).add(first.to_string(), message);
        }
    }

    /// Applies the rules to the next record.
    pub(super) fn follow(
        &mut self,
        dialect: &AgentDialect,
        place: RecordPlace,
        record: &SessionRecord<'_>,
        findings: &mut Findings,
    ) {
        if !dialect.copies_sessions {
            self.check_session(place, record, findings);
        }
        self.check_order(place, record);
        self.check_number(place, record, findings);
        self.check_ids(place, record, findings);
        self.check_results(place, record);
        if let Some(version) = &record.unknown_version {
            let message = format!("version {} of the format is not known", excerpt(version));
            findings.for_rule(VERSIONS).add(place.to_string(), message);
        }
        if !record.is_known && self.types.insert(record.record_type.to_string()) {
            let message = format!("records of type {} are not known", excerpt(&record.record_type));
            findings.for_rule(TYPES).add(place.to_string(), message);
        }
    }

    fn check_session(&mut self, place: RecordPlace, record: &SessionRecord<'_>, findings: &mut Findings) {
        let Some(session) = record.session else { return };
        let first = self.session.get_or_insert_with(|| session.to_owned());
        if first != session {
            let message = format!(
                "the record is of session {}, and earlier ones are of {}",
                excerpt(session),
                excerpt(first)
            );
            findings.for_rule(SESSION).add(place.to_string(), message);
            session.clone_into(first);
        }
    }

    fn check_order(&mut self, place: RecordPlace, record: &SessionRecord<'_>) {
        let Some(time) = record.time else { return };
        if let Some(last) = self.last.filter(|last| time < *last) {
            let back =
                self.back.get_or_insert(BackwardTimes { first: place, records: 0, most: TimeDelta::zero() });
            back.records += 1;
            back.most = back.most.max(last - time);
        }
        self.last = self.last.max(Some(time));
    }

    fn check_number(&mut self, place: RecordPlace, record: &SessionRecord<'_>, findings: &mut Findings) {
        let Some(number) = record.number else { return };
        if let Some(last) = self.number.filter(|last| last.checked_add(1) != Some(number)) {
            findings
                .for_rule(NUMBERS)
                .add(place.to_string(), format!("the record has the number {number} after {last}"));
        }
        self.number = Some(number);
    }

    fn check_ids(&mut self, place: RecordPlace, record: &SessionRecord<'_>, findings: &mut Findings) {
        // Programs write records at once, so that one can be before the one that it follows.
        let parent = record.parent.filter(|parent| !self.ids.contains(*parent));
        self.children.extend(parent.map(|parent| (place, parent.to_owned())));
        if let Some(id) = record.id.filter(|id| !self.ids.insert((*id).to_owned())) {
            findings
                .for_rule(IDS)
                .add(place.to_string(), format!("another record has the id {}", excerpt(id)));
        }
    }

    fn check_results(&mut self, place: RecordPlace, record: &SessionRecord<'_>) {
        let answered = record.answer.iter().flat_map(|answer| &answer.parts);
        let asked = record.asked.iter().flat_map(|message| &message.parts);
        for part in answered.chain(asked) {
            match part {
                MessagePart::ToolCall(call) => self.calls.extend(call.id.clone()),
                MessagePart::ToolResult(result) => {
                    let id = result.id.as_ref().filter(|id| !self.calls.contains(*id));
                    self.results.extend(id.map(|id| (place, id.clone())));
                }
                _ => {}
            }
        }
    }
}

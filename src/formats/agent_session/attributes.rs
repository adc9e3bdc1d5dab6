//! The attributes of agent sessions, the roles of their digests, their SQL view, and the table of their records.

use std::collections::{BTreeSet, HashMap, HashSet};

use super::calls::AgentCalls;
use super::form::{AgentDialect, SessionRecord};
use super::record::visit_admitted;
use crate::artifact::ColumnType::{Hash, Json, Number, Text, Time};
use crate::artifact::attribute::{OptionalSum, TimeSpan};
use crate::artifact::{
    ArtifactView, AttributeInfo, Cell, Column, Draft, MemberBytes, NameHandle, Relation, Role, Table,
    TableRow, group, timestamp_text,
};
use crate::conversation::facts::ConversationFacts;
use crate::digest::Digest;
use crate::json::reader::{self, ReadError};

const AGENT: AttributeInfo = AttributeInfo::text("agent", "the agent");
const CWD: AttributeInfo = AttributeInfo::text("cwd", "a working directory");
const FILE: AttributeInfo = AttributeInfo::text("file", "a file that a tool was called with");
const GIT_BRANCH: AttributeInfo = AttributeInfo::text("git_branch", "a branch of Git that was checked out");
const GIT_COMMIT: AttributeInfo = AttributeInfo::text("git_commit", "the commit that was checked out");
pub(super) const RECORDS: AttributeInfo = AttributeInfo::count("records", "the number of records");
const UNKNOWN_RECORDS: AttributeInfo =
    AttributeInfo::count("unknown_records", "the number of records of unknown types");

pub(super) const ATTRIBUTES: [AttributeInfo; 24] = [
    AGENT,
    AttributeInfo::COST_USD,
    AttributeInfo::CREATED_AT,
    CWD,
    AttributeInfo::DURATION_MS,
    AttributeInfo::ERROR,
    AttributeInfo::ERRORS,
    FILE,
    AttributeInfo::FINISH_REASON,
    AttributeInfo::FINISHED_AT,
    AttributeInfo::FIRST_PROMPT,
    GIT_BRANCH,
    GIT_COMMIT,
    AttributeInfo::LAST_ANSWER,
    AttributeInfo::MODEL_ID,
    RECORDS,
    AttributeInfo::RUN_ID,
    AttributeInfo::RUNTIME,
    AttributeInfo::TOKENS,
    AttributeInfo::TOKENS_INPUT,
    AttributeInfo::TOKENS_OUTPUT,
    AttributeInfo::TOOL,
    AttributeInfo::TOOL_CALLS,
    UNKNOWN_RECORDS,
];

/// A session extends another one whose records are the first ones of its own.
pub(super) const EXTENDS: Relation = Relation { name: "extends", dangles: false };

/// The digest of the records up to one of them.
pub(super) const RECORD: Role =
    Role { name: "record", group: group::RECORD, unit: "record", relation: Some(EXTENDS) };
/// The digest of a record by itself.
pub(super) const CONTENT: Role =
    Role { name: "record_content", group: "record_content", unit: "record", relation: None };
pub(super) const PROMPT: Role = Role { name: "prompt", group: group::PROMPT, unit: "record", relation: None };
pub(super) const RESPONSE: Role =
    Role { name: "response", group: group::RESPONSE, unit: "record", relation: None };

/// The relation of the session of an agent to that of the agent that started it.
const STARTER: Relation = Relation { name: STARTED_BY, dangles: false };
/// The name of that relation.
pub(crate) const STARTED_BY: &str = "started-by";
/// The relation of a session to the one that it has the first records of, although it states another id.
const FORKED_FROM: Relation = Relation { name: "forked-from", dangles: false };

pub(super) const ARTIFACTS: ArtifactView = ArtifactView {
    about: "the record of an agent on disk",
    named_by: Some(AttributeInfo::RUN_ID.name),
    columns: &[
        AttributeInfo::RUN_ID.column(),
        AGENT.column().facet(),
        AttributeInfo::RUNTIME.column().facet(),
        AttributeInfo::MODEL_ID.column().facet(),
        RECORDS.column(),
        UNKNOWN_RECORDS.column(),
        AttributeInfo::CREATED_AT.column(),
        AttributeInfo::FINISHED_AT.column(),
        AttributeInfo::DURATION_MS.column(),
        AttributeInfo::TOKENS_INPUT.column(),
        AttributeInfo::TOKENS_OUTPUT.column(),
        AttributeInfo::TOKENS.column(),
        AttributeInfo::COST_USD.column(),
        AttributeInfo::TOOL_CALLS.column(),
        AttributeInfo::ERRORS.column().facet(),
        AttributeInfo::FINISH_REASON.column().facet(),
        AttributeInfo::FIRST_PROMPT.column(),
        AttributeInfo::LAST_ANSWER.column(),
        AttributeInfo::ERROR.column(),
        CWD.column(),
        GIT_BRANCH.column(),
        GIT_COMMIT.column(),
    ],
};

pub(super) const RECORDS_TABLE: Table = Table {
    name: "agent_records",
    about: "a record of an agent session",
    columns: &[
        Column::new("i", Number, "index in the session, from 0"),
        Column::new("type", Text, "its type, in the words of the program").facet(),
        Column::new("record_hash", Hash, "the SHA-256 of the record"),
        Column::new("id", Text, "its id, if it has one"),
        Column::new("parent", Text, "the id of the record that it follows, if it states one"),
        Column::new("time", Time, "when it was written"),
        Column::new("record", Json, "the whole record").searched(),
    ],
    rows,
};

fn rows(members: &[MemberBytes<'_>]) -> Result<Vec<TableRow>, ReadError> {
    let mut rows = Vec::new();
    for member in members {
        visit_admitted(member.bytes, &mut |dialect, unit| {
            let Some(bytes) = unit.bytes else { return };
            let record = (dialect.read)(unit.value);
            rows.push(vec![
                Cell::index(unit.index),
                Cell::Text(record.record_type.into_owned()),
                Cell::Text(Digest::from_content(bytes).to_string()),
                record.id.into(),
                record.parent.into(),
                record.time.map(timestamp_text).as_deref().into(),
                Cell::Text(reader::lossy(bytes).into_owned()),
            ]);
        })?;
    }
    Ok(rows)
}

/// The attributes of a session, collected from its records.
#[derive(Default)]
pub(super) struct SessionSummary {
    program: Option<String>,
    session: Option<String>,
    /// The agent of the records, and whether there are also records of the main one, or of another.
    agent: Option<String>,
    has_others: bool,
    started_by: Option<String>,
    directory_hash: Option<Digest>,
    /// Other sessions that records state.
    others: BTreeSet<String>,
    /// The values that records state, by the names of their attributes.
    stated: HashMap<&'static str, HashSet<String>>,
    span: TimeSpan,
    records: usize,
    unknown: usize,
}

impl SessionSummary {
    /// Counts a record.
    pub(super) fn count(&mut self) {
        self.records += 1;
    }

    /// Adds what a record states.
    pub(super) fn add(&mut self, dialect: &AgentDialect, record: &SessionRecord<'_>, draft: &mut Draft) {
        self.unknown += usize::from(!record.is_known);
        self.span.add(record.time);
        self.span.add(record.ended);
        // A session that goes on with another begins with the records of that one. Only its first record states its own id where
        // programs copy all of them.
        if let Some(session) = record.session
            && let Some(other) = self.session.replace(session.to_owned()).filter(|known| known != session)
        {
            let copied = if dialect.copies_sessions { self.session.replace(other) } else { Some(other) };
            self.others.extend(copied);
        }
        if record.id.is_some() {
            // A transcript that is not of one agent alone is that of the session.
            match record.agent {
                Some(agent) => self.has_others |= self.agent.get_or_insert_with(|| agent.to_owned()) != agent,
                None => self.has_others = true,
            }
        }
        self.others.extend(record.forked_from.map(str::to_owned));
        if let Some(starter) = record.started_by {
            self.started_by.get_or_insert_with(|| starter.to_owned());
        }
        self.directory_hash = record.directory_hash.or(self.directory_hash);
        if let Some(program) = record.program {
            self.program.get_or_insert_with(|| program.to_owned());
        }
        let program = self.program.as_deref().unwrap_or(dialect.name);
        let version = record.version.map(|version| format!("{program} {version}"));
        let stated = [
            (AttributeInfo::RUNTIME, version.as_deref()),
            (CWD, record.directory),
            (GIT_BRANCH, record.branch),
            (GIT_COMMIT, record.commit),
            (AttributeInfo::MODEL_ID, record.model),
        ];
        for (info, value) in stated {
            let Some(value) = value.filter(|value| !value.is_empty()) else { continue };
            let known = self.stated.entry(info.name).or_default();
            if !known.contains(value) {
                known.insert(value.to_owned());
                draft.attribute(info.name, value);
            }
        }
    }

    /// Adds the attributes and names to a draft.
    pub(super) fn describe(self, dialect: &AgentDialect, calls: &AgentCalls, draft: &mut Draft) {
        draft.attribute(AGENT.name, self.program.as_deref().unwrap_or(dialect.name));
        draft.count(RECORDS, self.records);
        draft.count(UNKNOWN_RECORDS, self.unknown);
        draft.time(AttributeInfo::CREATED_AT, self.span.first());
        draft.time(AttributeInfo::FINISHED_AT, self.span.last());
        draft.number(AttributeInfo::DURATION_MS, self.span.milliseconds());
        let files = calls.files();
        if let Some(directory) = self.directory_hash.and_then(|hash| directory_with(hash, &files)) {
            draft.attribute(CWD.name, directory);
        }
        self.name(draft);
        describe_calls(calls, files, draft);
    }

    /// Adds the id of the session, and the names of others.
    fn name(self, draft: &mut Draft) {
        let Some(session) = self.session else { return };
        let run = |id: &str| NameHandle::new("run", id);
        if let Some(agent) = self.agent.filter(|_| !self.has_others) {
            draft.attribute(AttributeInfo::RUN_ID.name, format!("{session}/{agent}"));
            draft.refers_to.push((STARTER, run(&session)));
        } else {
            draft.attribute(AttributeInfo::RUN_ID.name, session.as_str());
            draft.identified_by.push(run(&session));
        }
        draft.refers_to.extend(self.started_by.map(|starter| (STARTER, run(&starter))));
        let others = self.others.iter().filter(|other| **other != session);
        draft.refers_to.extend(others.map(|other| (FORKED_FROM, run(other))));
    }
}

/// Returns the directory whose path has this hash, if it is one of `files` or one of them is in it.
fn directory_with(hash: Digest, files: &BTreeSet<String>) -> Option<&str> {
    let paths = files.iter().flat_map(|file| {
        let ends = file.match_indices(['/', '\\']).map(|(end, _)| end).chain([file.len()]);
        ends.filter_map(|end| file.get(..end))
    });
    paths.into_iter().find(|path| Digest::from_content(path.as_bytes()) == hash)
}

/// Adds the attributes that follow from the calls of models, and the files that tools were called with.
fn describe_calls(calls: &AgentCalls, files: BTreeSet<String>, draft: &mut Draft) {
    let mut facts = ConversationFacts::default();
    let mut tokens = [OptionalSum::default(); 2];
    let (mut cost, mut failed) = (OptionalSum::default(), 0);
    for call in calls.iter() {
        facts.asked(&call.asked);
        facts.answered(&call.answered());
        for (sum, number) in tokens.iter_mut().zip(call.tokens) {
            sum.add(number.and_then(|number| i64::try_from(number).ok()));
        }
        cost.add(call.cost);
        if let Some(error) = &call.error {
            facts.failed(error);
            failed += 1;
        }
    }
    let [input, output] = tokens.map(OptionalSum::sum);
    draft.tokens(input, output);
    draft.number(AttributeInfo::COST_USD, cost.sum());
    draft.count(AttributeInfo::ERRORS, failed + facts.failed_results());
    draft.count(AttributeInfo::TOOL_CALLS, facts.tool_calls().len());
    for file in files {
        draft.attribute(FILE.name, file);
    }
    facts.describe(draft);
}

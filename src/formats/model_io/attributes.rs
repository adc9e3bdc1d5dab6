//! The attributes of sessions, the roles of their digests, their SQL view, and the table of their interactions.

use super::session::interactions;
use crate::artifact::ColumnType::{Hash, Json, Number, Text};
use crate::artifact::attribute::{OptionalSum, parse_count, parse_milliseconds};
use crate::artifact::{
    ArtifactView, AttributeInfo, Cell, Column, Draft, MemberBytes, MissingOffset, Role, Table, TableRow,
    group,
};
use crate::conversation::facts::ConversationFacts;
use crate::conversation::providers::is_endpoint;
use crate::conversation::reader::{decode_text, may_be_answer_body};
use crate::json::reader::{self, Limits, ReadError};
use crate::json::{Object, Value};

const ADAPTER_ID: AttributeInfo = AttributeInfo::text("adapter_id", "the adapter that recorded it");
pub(super) const MODE: AttributeInfo = AttributeInfo::text("mode", "`record` or `replay`");
/// The number of interactions.
pub const INTERACTIONS: AttributeInfo = AttributeInfo::count("interactions", "the number of interactions");

pub(super) const ATTRIBUTES: [AttributeInfo; 16] = [
    ADAPTER_ID,
    AttributeInfo::CREATED_AT,
    AttributeInfo::DURATION_MS,
    AttributeInfo::FINISH_REASON,
    AttributeInfo::FINISHED_AT,
    INTERACTIONS,
    AttributeInfo::LAST_ANSWER,
    AttributeInfo::LATENCY_MS,
    MODE,
    AttributeInfo::MODEL_ID,
    AttributeInfo::RUN_ID,
    AttributeInfo::TOKENS,
    AttributeInfo::TOKENS_INPUT,
    AttributeInfo::TOKENS_OUTPUT,
    AttributeInfo::TOOL,
    AttributeInfo::TOOL_CALLS,
];

pub(super) const PROMPT: Role =
    Role { name: "prompt", group: group::PROMPT, unit: "interaction", relation: None };
pub(super) const RESPONSE: Role =
    Role { name: "response", group: group::RESPONSE, unit: "interaction", relation: None };

/// The locations of digests that are indexed as prompts and responses.
pub(super) const INDEXED: [&str; 2] = ["/interactions/*/prompt_hash", "/interactions/*/response_hash"];

pub(super) const ARTIFACTS: ArtifactView = ArtifactView {
    about: "a recorded model session",
    named_by: None,
    columns: &[
        AttributeInfo::RUN_ID.column(),
        ADAPTER_ID.column().facet(),
        AttributeInfo::MODEL_ID.column().facet(),
        MODE.column().facet(),
        INTERACTIONS.column(),
        AttributeInfo::CREATED_AT.column(),
        AttributeInfo::FINISHED_AT.column(),
        AttributeInfo::DURATION_MS.column(),
        AttributeInfo::LATENCY_MS.column(),
        AttributeInfo::TOKENS_INPUT.column(),
        AttributeInfo::TOKENS_OUTPUT.column(),
        AttributeInfo::TOKENS.column(),
        AttributeInfo::TOOL_CALLS.column(),
        AttributeInfo::FINISH_REASON.column().facet(),
        AttributeInfo::LAST_ANSWER.column(),
    ],
};

pub(super) const INTERACTIONS_TABLE: Table = Table {
    name: "interactions",
    about: "a prompt and its response in a session",
    columns: &[
        Column::new("i", Number, "index in the session, from 0"),
        Column::new("prompt_hash", Hash, "the SHA-256 of the prompt, which is not recorded itself"),
        Column::new("response_hash", Hash, "the SHA-256 of the response"),
        Column::new("response_content", Text, "the response").searched(),
        Column::new("extra", Json, "other recorded data, which is not hashed; NULL if there is none"),
    ],
    rows,
};

/// The members of an interaction with columns of their own.
const HASHED: [&str; 4] = ["i", "prompt_hash", "response_hash", "response_content"];

fn rows(members: &[MemberBytes<'_>]) -> Result<Vec<TableRow>, ReadError> {
    let mut rows = Vec::new();
    for member in members {
        let root = reader::read_keeping_overflow(member.bytes, &Limits::most())?;
        rows.extend(
            interactions(&root).iter().enumerate().map(|(index, interaction)| row(index, interaction)),
        );
    }
    Ok(rows)
}

fn row(index: usize, interaction: &Value<'_>) -> TableRow {
    vec![
        Cell::index(index),
        Cell::hash_of(interaction, "prompt_hash"),
        Cell::hash_of(interaction, "response_hash"),
        Cell::text_of(interaction, "response_content"),
        extra(interaction),
    ]
}

fn extra(interaction: &Value<'_>) -> Cell {
    let members = interaction.as_object().into_iter().flat_map(Object::iter);
    let extra = members.filter(|(name, _)| !HASHED.contains(name));
    let extra: Vec<_> = extra.map(|(name, value)| (name.to_owned().into(), value.clone())).collect();
    if extra.is_empty() { Cell::Null } else { Cell::json(&Value::Object(Object::from_members(extra))) }
}

type MetricParser = fn(&Value<'_>) -> Option<i64>;

/// Adds the model. The format requires one, so that a gateway writes the name of a request in the place of a model that it does
/// not name.
pub(super) fn describe_model(stated: &str, draft: &mut Draft) {
    let models: Vec<&str> = stated.split(',').filter(|model| !is_endpoint(model)).collect();
    if !models.is_empty() {
        draft.attribute(AttributeInfo::MODEL_ID.name, models.join(","));
    }
}

pub(super) fn describe(root: &Value<'_>, interactions: &[Value<'_>], draft: &mut Draft) {
    let text = |name: &str| root.get(name).and_then(Value::as_str);
    // Section 3.2: times are in UTC.
    let created = draft.state_creation([text("created_at_utc")], MissingOffset::Utc);
    draft.state_end(created, text("ended_at_utc"), MissingOffset::Utc);
    // A total that the session states counts more than the sum of what its interactions state, which must all state it.
    let total = |total_name: &str, of_interaction: &str, read: MetricParser| {
        let declared = root.get("stats").and_then(|stats| stats.get(total_name)).and_then(read);
        declared.or_else(|| {
            let mut total = OptionalSum::default();
            for interaction in interactions {
                total.add_required(interaction.get(of_interaction).and_then(read));
            }
            total.sum()
        })
    };
    let input = total("total_tokens_input", "tokens_input", parse_count);
    let output = total("total_tokens_output", "tokens_output", parse_count);
    draft.tokens(input, output);
    let latency = total("total_latency_ms", "latency_ms", parse_milliseconds);
    draft.number(AttributeInfo::LATENCY_MS, latency);
    let mut facts = ConversationFacts::default();
    let mut last_text = None;
    let responses =
        interactions.iter().filter_map(|interaction| interaction.get("response_content")?.as_str());
    for response in responses {
        if may_be_answer_body(response) {
            facts.answered(&decode_text(response));
            last_text = None;
        } else {
            last_text = Some(response);
        }
    }
    if let Some(text) = last_text {
        facts.answered_text(text);
    }
    if !facts.tool_calls().is_empty() {
        draft.count(AttributeInfo::TOOL_CALLS, facts.tool_calls().len());
    }
    facts.describe(draft);
}

#[cfg(test)]
mod tests {
    use serde_json::{Value as Json, json};

    use crate::artifact::{AdmitOptions, Kind};
    use crate::digest::Digest;
    use crate::formats::model_io::ModelIo;

    /// Returns the measurements of a session with these members and one interaction for each of `interactions`.
    fn measured(members: &Json, interactions: &[Json]) -> Vec<String> {
        let mut session = json!({"model_io_schema_version": "1.0.0", "adapter_id": "a", "model_id": "m",
            "mode": "record", "interactions": []});
        for (index, interaction) in interactions.iter().enumerate() {
            let mut interaction = interaction.clone();
            interaction["i"] = index.into();
            interaction["prompt_hash"] = Digest::from_content(b"p").to_string().into();
            interaction["response_hash"] = Digest::from_content(b"r").to_string().into();
            interaction["response_content"] = "r".into();
            session["interactions"].as_array_mut().unwrap().push(interaction);
        }
        session.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
        let bytes = session.to_string().into_bytes();
        let admitted = Kind::new(&ModelIo).admit(bytes, &AdmitOptions::default()).unwrap();
        let measured = admitted.draft().attributes.iter().filter(|attribute| attribute.number.is_some());
        let measured = measured.filter(|attribute| attribute.name != "interactions");
        measured.map(|attribute| format!("{} {}", attribute.name, attribute.value)).collect()
    }

    #[test]
    fn interactions_are_summed_unless_the_session_states_totals() {
        let interactions = [
            json!({"tokens_input": 7, "tokens_output": 2, "latency_ms": 1.4}),
            json!({"tokens_input": 3.0, "tokens_output": 1, "latency_ms": 1.4}),
        ];
        let summed = ["latency_ms 2", "tokens 13", "tokens_input 10", "tokens_output 3"];
        assert_eq!(measured(&json!({}), &interactions), summed);
        assert_eq!(measured(&json!({"stats": [5]}), &interactions), summed);
        let stats = json!({"stats": {"total_tokens_input": 100, "total_tokens_output": -1}});
        let expected = ["latency_ms 2", "tokens 103", "tokens_input 100", "tokens_output 3"];
        assert_eq!(measured(&stats, &interactions), expected);
        assert_eq!(measured(&json!({}), &[json!({"tokens_input": 1})]), ["tokens_input 1"]);
        assert!(measured(&json!({}), &[json!({"tokens_input": null})]).is_empty());
    }

    #[test]
    fn a_sum_of_which_a_part_is_not_stated_is_not_shown() {
        let interactions = [
            json!({"tokens_input": 7, "tokens_output": 2, "latency_ms": 1}),
            json!({"tokens_input": 3, "tokens_output": "many"}),
        ];
        assert_eq!(measured(&json!({}), &interactions), ["tokens_input 10"]);
        let stats = json!({"stats": {"total_tokens_output": 5}});
        assert_eq!(measured(&stats, &interactions), ["tokens 15", "tokens_input 10", "tokens_output 5"]);
    }

    #[test]
    fn the_duration_is_from_the_beginning_to_the_end() {
        let created = "2026-11-20T10:00:00Z";
        let both = json!({"created_at_utc": created, "ended_at_utc": "2026-11-20T11:00:01.5+01:00"});
        let [one, two] = ["created_at 2026-11-20T10:00:00.000Z", "finished_at 2026-11-20T10:00:01.500Z"];
        assert_eq!(measured(&both, &[]), [one, "duration_ms 1500", two]);
        let reversed = json!({"created_at_utc": created, "ended_at_utc": "2026-11-20T09:00:00Z"});
        assert_eq!(measured(&reversed, &[]), [one, "finished_at 2026-11-20T09:00:00.000Z"]);
        assert_eq!(measured(&json!({"created_at_utc": created, "ended_at_utc": 5}), &[]), [one]);
        assert_eq!(measured(&json!({"ended_at_utc": "2026-11-20T10:00:01.5"}), &[]), [two]);
    }
}

//! The measurements of a session: tokens, latency and times. They are ephemeral: the core hash does not cover them, and
//! the format does not define their types. Whatever is not a number is ignored.

use crate::artifact::attribute::{OptionalSum, parse_count, parse_milliseconds};
use crate::artifact::{AttributeInfo, Draft, MissingOffset};
use crate::json::Value;

type MetricParser = fn(&Value<'_>) -> Option<i64>;

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
}

#[cfg(test)]
mod tests {
    use serde_json::{Value as Json, json};

    use super::super::ModelIo;
    use crate::artifact::{AdmitOptions, Kind};
    use crate::digest::Digest;

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

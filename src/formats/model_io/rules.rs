use std::collections::HashSet;

use super::recording;
use super::session::SessionMembers;
use crate::artifact::SupportedMajors;
use crate::digest::Digest;
use crate::json::reader::excerpt;
use crate::json::{Number, Value, ecmascript};
use crate::validation::{Finder, Rule, RuleInfo};

/// Maximum number of interactions in a session.
const MAX_INTERACTIONS: usize = 10_000;
/// Maximum size of one response in UTF-8 bytes.
const MAX_RESPONSE_BYTES: usize = 1_000_000;
/// Maximum size of all responses of a session in UTF-8 bytes.
const MAX_SESSION_BYTES: usize = 100_000_000;

/// The supported major versions of the format.
const VERSIONS: SupportedMajors = SupportedMajors::new(&["1"]);

type RootCheck = fn(&Value<'_>, &mut Finder<'_>);
type SessionCheck = fn(&SessionMembers<'_>, &mut Finder<'_>);

/// Rules for the root. If SCHEMA is broken, no others are checked.
pub(super) static ROOT: [Rule<RootCheck>; 2] = [
    Rule {
        info: RuleInfo::error(
            "MI1",
            "model_io_schema_version has the form digits.digits.digits.",
            "The version says which rules a session claims to follow. It is three groups of ASCII \
             digits; pre-release and build parts are not used. The format's own verifier accepts any \
             major version, so an unknown one is a warning: the same members may have another meaning.",
        ),
        check: schema_version,
    },
    Rule {
        info: RuleInfo::error(
            "SCHEMA",
            "The session and its interactions have the required members.",
            "Without model_io_schema_version, adapter_id, model_id, mode and a list of \
             interactions, there is no session to check. A null interaction is also rejected.",
        ),
        check: required_members,
    },
];

/// Rules for sessions that satisfy the rule SCHEMA.
pub(super) static CONTENT: [Rule<SessionCheck>; 11] = [
    Rule {
        info: RuleInfo::error(
            "MI2",
            "adapter_id and model_id are strings that are not empty.",
            "They identify the recorded adapter and model, and are part of the identity of the recording.",
        ),
        check: ids,
    },
    Rule {
        info: RuleInfo::error(
            "MI3",
            "mode is record or replay.",
            "record: made from live calls. replay: meant for deterministic replay. No other value is defined.",
        ),
        check: mode,
    },
    Rule {
        info: RuleInfo::error(
            "MI4",
            "A session has at most 10,000 interactions.",
            "The limit keeps hostile sessions from exhausting the resources of readers. Split longer recordings.",
        ),
        check: interaction_count,
    },
    Rule {
        info: RuleInfo::error(
            "MI5",
            "Interaction n has i = n.",
            "Indices begin at 0 and have no gaps, so that missing or moved interactions are detected.",
        ),
        check: indices,
    },
    Rule {
        info: RuleInfo::error(
            "MI6",
            "prompt_hash is sha256: and 64 lowercase hex digits.",
            "The prompt itself is not recorded; a replay finds the response by its SHA-256.",
        ),
        check: prompt_hashes,
    },
    Rule {
        info: RuleInfo::error(
            "MI7",
            "response_hash is the SHA-256 of response_content.",
            "This proves that a response was not changed after it was recorded. The \
             hash covers the UTF-8 bytes of the unescaped text, with nothing added.",
        ),
        check: response_hashes,
    },
    Rule {
        info: RuleInfo::error(
            "MI8",
            "No two interactions share prompt_hash and i.",
            "The same prompt may be repeated, but at another index: a replay that looks up the pair must \
             find a single response. Values of the wrong type are compared as the text they convert to.",
        ),
        check: unique_pairs,
    },
    Rule {
        info: RuleInfo::error(
            "MI9",
            "Interactions are sorted by i, ascending.",
            "The order of the list is the order of the conversation, and is part of the hash.",
        ),
        check: ascending,
    },
    Rule {
        info: RuleInfo::error(
            "MI10",
            "Violations are sorted by rule id, path and message.",
            "Two verifications of one document print the same report. \
             runvault sorts every report, so no document can break this rule.",
        ),
        check: |_, _| {},
    },
    Rule {
        info: RuleInfo::error(
            "MI11",
            "A response has at most 1,000,000 bytes, a session at most 100,000,000.",
            "Bytes are counted in UTF-8 after unescaping; the limits are inclusive.",
        ),
        check: response_sizes,
    },
    Rule {
        info: RuleInfo::error(
            "MI12",
            "Timestamps and metrics are not hashed.",
            "Recordings that differ only in them are the same artifact. runvault hashes \
             exactly the members of ModelIOCore, so no document can break this rule.",
        ),
        check: |_, _| {},
    },
];

pub(super) fn all() -> Vec<RuleInfo> {
    let [version, schema] = ROOT.each_ref().map(|rule| rule.info);
    let of_sessions = [version].into_iter().chain(CONTENT.iter().map(|rule| rule.info)).chain([schema]);
    of_sessions.chain(recording::RULES).collect()
}

fn schema_version(root: &Value<'_>, found: &mut Finder<'_>) {
    if root.as_object().is_none() {
        return;
    }
    let version = root.get("model_io_schema_version");
    let parts = version.and_then(Value::as_str).unwrap_or_default().split('.');
    let numeric = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    if parts.clone().count() != 3 || !parts.clone().all(numeric) {
        let message = match version {
            None => "missing; it must be like \"1.0.0\"".to_owned(),
            Some(Value::String(text)) => {
                format!("{} is not of the form digits.digits.digits, like \"1.0.0\"", excerpt(text))
            }
            Some(other) => format!("is {}, not a string like \"1.0.0\"", other.type_name()),
        };
        found.add("$.model_io_schema_version", message);
    } else if let Some(message) = version.and_then(Value::as_str).and_then(|text| VERSIONS.objection(text)) {
        // The format's own verifier accepts every version number.
        found.warn(
            "$.model_io_schema_version",
            format!("{message}; checked against the rules of the known versions"),
        );
    }
}

fn required_members(root: &Value<'_>, found: &mut Finder<'_>) {
    let Some(object) = root.as_object() else {
        found.add("$", format!("a session must be an object, not {}", root.type_name()));
        return;
    };
    for name in ["model_io_schema_version", "adapter_id", "model_id", "mode", "interactions"] {
        if !object.contains(name) {
            found.add(format!("$.{name}"), format!("the required member {name} is missing"));
        }
    }
    match object.get("interactions") {
        None => {}
        Some(Value::Array(interactions)) => {
            for (index, _) in interactions.iter().enumerate().filter(|(_, value)| value.is_null()) {
                found.add(format!("$.interactions[{index}]"), "an interaction must be an object, not null");
            }
        }
        Some(other) => found.add("$.interactions", format!("must be an array, is {}", other.type_name())),
    }
}

fn ids(session: &SessionMembers<'_>, found: &mut Finder<'_>) {
    for (name, value) in [("adapter_id", session.adapter_id), ("model_id", session.model_id)] {
        if value.as_non_empty_str().is_none() {
            found.add(format!("$.{name}"), format!("must be a non-empty string, is {}", value.type_name()));
        }
    }
}

fn mode(session: &SessionMembers<'_>, found: &mut Finder<'_>) {
    match session.mode {
        Value::String(mode) if mode == "record" || mode == "replay" => {}
        Value::String(mode) => {
            found.add("$.mode", format!("{} is neither \"record\" nor \"replay\"", excerpt(mode)));
        }
        other => found.add("$.mode", format!("must be \"record\" or \"replay\", is {}", other.type_name())),
    }
}

fn interaction_count(session: &SessionMembers<'_>, found: &mut Finder<'_>) {
    let count = session.interactions.len();
    if count > MAX_INTERACTIONS {
        found.add("$.interactions", format!("{count} interactions, at most {MAX_INTERACTIONS} are allowed"));
    }
}

fn index_of(interaction: &Value<'_>) -> Option<f64> {
    interaction.get("i").and_then(Value::as_number).map(Number::as_f64)
}

/// Returns whether an interaction states that it is at `position`. Comparing doubles is exact here: they are small
/// integers.
#[expect(clippy::cast_precision_loss, reason = "indices are compared as the format's numbers")]
fn is_at(interaction: &Value<'_>, position: usize) -> bool {
    index_of(interaction) == Some(position as f64)
}

fn indices(session: &SessionMembers<'_>, found: &mut Finder<'_>) {
    for (position, interaction) in session.interactions.iter().enumerate() {
        if !is_at(interaction, position) {
            let message = match interaction.get("i") {
                None => format!("missing; it must be {position}"),
                Some(Value::Number(_)) => format!("is not {position}, the position of the interaction"),
                Some(other) => format!("must be the number {position}, is {}", other.type_name()),
            };
            found.add(format!("$.interactions[{position}].i"), message);
        }
    }
}

fn prompt_hashes(session: &SessionMembers<'_>, found: &mut Finder<'_>) {
    for (position, interaction) in session.interactions.iter().enumerate() {
        let hash = interaction.get("prompt_hash");
        if declared_digest(hash).is_none() {
            found.add(format!("$.interactions[{position}].prompt_hash"), not_a_hash(hash));
        }
    }
}

fn declared_digest(value: Option<&Value<'_>>) -> Option<Digest> {
    value.and_then(Value::as_str).and_then(Digest::parse_prefixed)
}

fn not_a_hash(value: Option<&Value<'_>>) -> String {
    let requirement = "must be sha256: and 64 lowercase hex digits";
    match value {
        None => format!("missing; it {requirement}"),
        Some(Value::String(_)) => requirement.to_owned(),
        Some(other) => format!("{requirement}, is {}", other.type_name()),
    }
}

fn response_hashes(session: &SessionMembers<'_>, found: &mut Finder<'_>) {
    for (position, interaction) in session.interactions.iter().enumerate() {
        let hash = interaction.get("response_hash");
        let Some(declared) = declared_digest(hash) else {
            found.add(format!("$.interactions[{position}].response_hash"), not_a_hash(hash));
            continue;
        };
        match interaction.get("response_content") {
            Some(Value::String(content)) => {
                let actual = Digest::from_content(content.as_bytes());
                if declared != actual {
                    let message = format!("is not the hash of response_content, which is {actual}");
                    found.add(format!("$.interactions[{position}].response_hash"), message);
                }
            }
            other => {
                let sort = other.map_or("missing", Value::type_name);
                let message = format!("must be a string, is {sort}");
                found.add(format!("$.interactions[{position}].response_content"), message);
            }
        }
    }
}

fn unique_pairs(session: &SessionMembers<'_>, found: &mut Finder<'_>) {
    // If every index matches its position, no two pairs can be equal, whatever the prompts are.
    if session.interactions.iter().enumerate().all(|(position, interaction)| is_at(interaction, position)) {
        return;
    }
    let mut seen = HashSet::new();
    for (position, interaction) in session.interactions.iter().enumerate() {
        // Pairs are compared as in the specification's tools, which include values of the wrong type.
        let pair = [interaction.get("prompt_hash"), interaction.get("i")].map(ecmascript::text_of).join("|");
        if !seen.insert(pair) {
            found.add(
                format!("$.interactions[{position}]"),
                "an earlier interaction has the same prompt_hash and i",
            );
        }
    }
}

fn ascending(session: &SessionMembers<'_>, found: &mut Finder<'_>) {
    for (position, pair) in session.interactions.windows(2).enumerate() {
        let [previous, current] = pair else { continue };
        if let (Some(previous), Some(current)) = (index_of(previous), index_of(current))
            && previous >= current
        {
            let position = position + 1;
            found.add(
                format!("$.interactions[{position}]"),
                "i is not greater than that of the preceding interaction",
            );
        }
    }
}

fn response_sizes(session: &SessionMembers<'_>, found: &mut Finder<'_>) {
    let mut total = 0;
    for (position, interaction) in session.interactions.iter().enumerate() {
        let bytes = interaction.get("response_content").and_then(Value::as_str).map_or(0, str::len);
        total += bytes;
        if bytes > MAX_RESPONSE_BYTES {
            found.add(
                format!("$.interactions[{position}].response_content"),
                format!("{bytes} bytes, at most {MAX_RESPONSE_BYTES} are allowed"),
            );
        }
    }
    if total > MAX_SESSION_BYTES {
        let message = format!("responses of {total} bytes in total, at most {MAX_SESSION_BYTES} are allowed");
        found.add("$.interactions", message);
    }
}

#[cfg(test)]
mod tests {
    use crate::artifact::{AdmitOptions, Kind};
    use crate::formats::model_io::ModelIo;

    #[test]
    fn a_bad_version_does_not_hide_other_violations() {
        let text = br#"{"model_io_schema_version":"1.0","adapter_id":"","model_id":"m","mode":"x","interactions":[]}"#;
        let report = Kind::new(&ModelIo).admit(text.to_vec(), &AdmitOptions::default()).unwrap_err();
        let rules: Vec<&str> =
            report.violations().iter().map(|violation| violation.rule_id.as_ref()).collect();
        assert_eq!(rules, ["MI1", "MI2", "MI3"]);
    }
}

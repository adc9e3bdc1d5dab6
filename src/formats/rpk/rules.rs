use std::fmt;

use super::envelope::{
    self, Envelope, HmacCheckResult, RpkSignature, digest_of_members, has_supported_version, steps,
};
use crate::artifact::{AdmitOptions, SignaturePolicy, SupportedMajors};
use crate::digest::Digest;
use crate::json::canonical::replaykit::{CanonicalizationDefect, VolatilePolicy, strip_white_space};
use crate::json::reader::excerpt;
use crate::json::{Number, Object, Value, pointer};
use crate::validation::{Finder, Rule, RuleInfo};

pub(super) const STEP_TYPES: [&str; 8] = [
    "agent.command",
    "prompt.render",
    "model.request",
    "model.response",
    "tool.request",
    "tool.response",
    "error.event",
    "output.final",
];

/// The type of a member.
#[derive(Clone, Copy)]
enum RpkMemberType {
    Any,
    Text,
    Object,
    Array,
    /// `sha256:` and 64 lowercase hex digits.
    Hash,
    StepKind,
    /// `hmac-sha256:` and 64 lowercase hex digits.
    Code,
}

impl RpkMemberType {
    fn admits(self, value: &Value<'_>) -> bool {
        match (self, value) {
            (Self::Any, _)
            | (Self::Text, Value::String(_))
            | (Self::Object, Value::Object(_))
            | (Self::Array, Value::Array(_)) => true,
            (Self::Hash, Value::String(text)) => Digest::parse_prefixed(text).is_some(),
            (Self::StepKind, Value::String(text)) => STEP_TYPES.contains(&text.as_ref()),
            (Self::Code, Value::String(text)) => envelope::code(text).is_some(),
            _ => false,
        }
    }

    fn expected(self) -> String {
        match self {
            Self::Any => "present".to_owned(),
            Self::Text => "a string".to_owned(),
            Self::Object => "an object".to_owned(),
            Self::Array => "an array".to_owned(),
            Self::Hash => "sha256: and 64 lowercase hex digits".to_owned(),
            Self::StepKind => format!("one of {}", STEP_TYPES.join(", ")),
            Self::Code => "hmac-sha256: and 64 lowercase hex digits".to_owned(),
        }
    }
}

const ENVELOPE: &[(&str, RpkMemberType)] = &[
    ("metadata", RpkMemberType::Object),
    ("payload", RpkMemberType::Object),
    ("checksum", RpkMemberType::Hash),
];
const METADATA: &[(&str, RpkMemberType)] =
    &[("run_id", RpkMemberType::Text), ("created_at", RpkMemberType::Text)];
const PAYLOAD: &[(&str, RpkMemberType)] = &[("run", RpkMemberType::Object)];
const RUN: &[(&str, RpkMemberType)] = &[
    ("id", RpkMemberType::Text),
    ("timestamp", RpkMemberType::Text),
    ("environment_fingerprint", RpkMemberType::Object),
    ("runtime_versions", RpkMemberType::Object),
    ("steps", RpkMemberType::Array),
];
const RUN_OPTIONAL: &[(&str, RpkMemberType)] = &[
    ("source", RpkMemberType::Text),
    ("provider", RpkMemberType::Text),
    ("agent", RpkMemberType::Text),
    ("capture_mode", RpkMemberType::Text),
    ("listener_session_id", RpkMemberType::Text),
    ("listener_process", RpkMemberType::Object),
    ("listener_bind", RpkMemberType::Object),
];
const STEP: &[(&str, RpkMemberType)] = &[
    ("id", RpkMemberType::Text),
    ("type", RpkMemberType::StepKind),
    ("input", RpkMemberType::Any),
    ("output", RpkMemberType::Any),
    ("metadata", RpkMemberType::Object),
    ("hash", RpkMemberType::Hash),
];
const SIGNATURE: &[(&str, RpkMemberType)] =
    &[("algorithm", RpkMemberType::Text), ("key_id", RpkMemberType::Text), ("value", RpkMemberType::Code)];

/// Checks RPK1.
pub(super) fn check(envelope: &Envelope<'_>, found: &mut Finder<'_>) {
    let Value::Object(root) = envelope.root else {
        found.add("", format!("a run pack must be an object, not {}", envelope.root.type_name()));
        return;
    };
    version_member(root, found);
    members(root, "", ENVELOPE, true, found);
    if let Some(metadata) = object_at(root, "metadata") {
        members(metadata, "/metadata", METADATA, true, found);
    }
    if let Some(signature) = root.get("signature") {
        match signature {
            Value::Object(signature) => members(signature, "/signature", SIGNATURE, true, found),
            other => found.add("/signature", format!("must be an object, is {}", other.type_name())),
        }
    }
    let Some(payload) = object_at(root, "payload") else {
        return;
    };
    members(payload, "/payload", PAYLOAD, true, found);
    let Some(run) = object_at(payload, "run") else {
        return;
    };
    members(run, "/payload/run", RUN, true, found);
    members(run, "/payload/run", RUN_OPTIONAL, false, found);
    for (index, step) in run.get("steps").and_then(Value::as_array).unwrap_or_default().iter().enumerate() {
        let path = format_args!("/payload/run/steps/{index}");
        match step {
            Value::Object(step) => members(step, path, STEP, true, found),
            other => {
                found.add(path.to_string(), format!("a step must be an object, not {}", other.type_name()));
            }
        }
    }
}

/// A version that RPK2 accepts must also be a string without surrounding white space.
fn version_member(root: &Object<'_>, found: &mut Finder<'_>) {
    match root.get("version") {
        Some(Value::Number(_)) if has_supported_version(root) => {
            found.add("/version", "must be a string like \"1.0\", is a number");
        }
        Some(Value::String(text)) if has_supported_version(root) && !text.bytes().all(is_version_byte) => {
            found.add("/version", format!("{} has white space around the version", excerpt(text)));
        }
        _ => {}
    }
}

fn is_version_byte(byte: u8) -> bool {
    byte == b'.' || byte.is_ascii_digit()
}

fn object_at<'v>(object: &'v Object<'v>, name: &str) -> Option<&'v Object<'v>> {
    object.get(name).and_then(Value::as_object)
}

fn members(
    object: &Object<'_>,
    path: impl fmt::Display,
    expected: &[(&str, RpkMemberType)],
    required: bool,
    found: &mut Finder<'_>,
) {
    let pointer_to = |name: &str| {
        let mut pointer = path.to_string();
        pointer::push(&mut pointer, name);
        pointer
    };
    for (name, sort) in expected {
        match object.get(name) {
            None if required => {
                found.add(pointer_to(name), format!("the required member {name} is missing"));
            }
            Some(value) if !sort.admits(value) => {
                let actual = match value {
                    Value::String(text) => excerpt(text),
                    other => other.type_name().to_owned(),
                };
                found.add(pointer_to(name), format!("must be {}, is {actual}", sort.expected()));
            }
            _ => {}
        }
    }
}

/// The supported major versions of the format.
const VERSIONS: SupportedMajors = SupportedMajors::new(&["1"]);

type RpkCheck = fn(&Envelope<'_>, &mut Finder<'_>);

/// All rules, applied to every document; each checks the members that are present.
pub(super) static RULES: [Rule<RpkCheck>; 7] = [
    Rule {
        info: RuleInfo::error(
            "RPK1",
            "Envelope, run and steps have the required shape.",
            "The published schema of version 1: version, metadata, payload.run and checksum; a run with its id, \
             timestamp, environment, versions and steps; steps of a known type. Unknown members are allowed.",
        ),
        check,
    },
    Rule {
        info: RuleInfo::error(
            "RPK2",
            "version has the form 1.x.",
            "Readers of version 1 understand every 1.x. In another major version, the same \
             members may have another meaning, so it is rejected rather than misread.",
        ),
        check: version,
    },
    Rule {
        info: RuleInfo::error(
            "RPK3",
            "checksum matches version, metadata and payload.",
            "The checksum is the run's identity and proves that nothing was changed since it \
             was recorded. It is the SHA-256 of the canonical text of these three members.",
        ),
        check: checksum,
    },
    Rule {
        info: RuleInfo::error(
            "RPK4",
            "Every step's hash matches its content.",
            "A step hash covers type, input, output and metadata without volatile members. ReplayKit \
             itself does not verify it when reading; runvault does, because steps are found by it.",
        ),
        check: step_hashes,
    },
    Rule {
        info: RuleInfo::error(
            "RPK5",
            "The signature is valid, and present where it is required.",
            "The signature is an HMAC-SHA-256 over version, metadata, payload and checksum. It is checked \
             with the keys given for its key_id and with keys without an id; if there are none, it is \
             recorded as unchecked. Unsigned run packs are accepted unless signatures are required.",
        ),
        check: signature,
    },
    Rule {
        info: RuleInfo::error(
            "RPK6",
            "Timestamps stay within the years 1 to 9999 in UTC.",
            "Timestamps are hashed in UTC. One outside these years after conversion has no canonical form.",
        ),
        check: timestamps,
    },
    Rule {
        info: RuleInfo::warning(
            "RPK7",
            "A migrated run pack has the step hashes of its source.",
            "The migration from an earlier version computes the hash of each step from its content, and states how \
                 many were not those of the source: these steps were changed, or hashed in another way. The checksum of the \
                 source was verified.",
        ),
        check: migrated_hashes,
    },
];

/// The metadata with the number of steps whose hash was not that of their content.
pub(super) const RECOMPUTED: &str = "migration_recomputed_step_hashes";

fn migrated_hashes(envelope: &Envelope<'_>, found: &mut Finder<'_>) {
    let count = envelope.root.get("metadata").and_then(|metadata| metadata.get(RECOMPUTED));
    let count = count.and_then(Value::as_number).map(Number::literal);
    if let Some(count) = count.filter(|count| *count != "0") {
        let message = format!("the hashes of {count} steps of the source were not those of their contents");
        found.add(format!("/metadata/{RECOMPUTED}"), message);
    }
}

fn version(envelope: &Envelope<'_>, found: &mut Finder<'_>) {
    let Value::Object(root) = envelope.root else {
        return;
    };
    if !has_supported_version(root) {
        let message = match root.get("version") {
            None => "missing; it must be like \"1.0\"".to_owned(),
            Some(Value::String(text)) => match VERSIONS.objection(strip_white_space(text)) {
                Some(message) => message,
                None => format!("{} is not of the form 1.x, like \"1.0\"", excerpt(text)),
            },
            Some(other) => format!("must be a string like \"1.0\", is {}", other.type_name()),
        };
        found.add("/version", message);
    }
}

fn declared_digest(value: Option<&Value<'_>>) -> Option<Digest> {
    value.and_then(Value::as_str).and_then(Digest::parse_prefixed)
}

fn checksum(envelope: &Envelope<'_>, found: &mut Finder<'_>) {
    let Some(declared) = declared_digest(envelope.root.get("checksum")) else {
        return;
    };
    if let Some(Ok(actual)) = envelope.checksum
        && declared != actual
    {
        found.add("/checksum", format!("is not the checksum of the content, which is {actual}"));
    }
}

fn step_hashes(envelope: &Envelope<'_>, found: &mut Finder<'_>) {
    for (index, step) in steps(envelope.root).iter().enumerate() {
        let Some(declared) = declared_digest(step.get("hash")) else {
            continue;
        };
        let actual = digest_of_members(step, &["type", "input", "output", "metadata"], VolatilePolicy::Omit);
        let Some(Ok(actual)) = actual else { continue };
        if declared != actual {
            let step_type = step.get("type").and_then(Value::as_str).unwrap_or_default();
            found.add(
                format!("/payload/run/steps/{index}/hash"),
                format!("step {index} ({step_type}): the stored hash {declared} is not the hash of its content {actual}"),
            );
        }
    }
}

fn signature(envelope: &Envelope<'_>, found: &mut Finder<'_>) {
    let AdmitOptions { signing_keys, signature_policy: policy, .. } = envelope.options;
    if *policy == SignaturePolicy::Record {
        return;
    }
    let Some(RpkSignature { key_id, outcome }) = &envelope.signature else {
        // A malformed signature is reported by RPK1.
        if *policy == SignaturePolicy::Require && envelope.root.get("signature").is_none() {
            found.add("/signature", "the run pack is not signed, but a signature is required");
        }
        return;
    };
    match outcome {
        HmacCheckResult::Wrong(path, message) => found.add(*path, message.clone()),
        HmacCheckResult::Unchecked if *policy == SignaturePolicy::Require && !signing_keys.is_empty() => {
            let message = format!(
                "a verified signature is required, but no key with the id {} was given",
                excerpt(key_id)
            );
            found.add("/signature/key_id", message);
        }
        HmacCheckResult::Unchecked | HmacCheckResult::Verified => {}
    }
}

fn timestamps(envelope: &Envelope<'_>, found: &mut Finder<'_>) {
    let Some(Err(defects)) = &envelope.checksum else {
        return;
    };
    for defect in defects {
        if matches!(defect.defect, CanonicalizationDefect::Timestamp(_)) {
            found.add(&defect.pointer, defect.defect.to_string());
        }
    }
}

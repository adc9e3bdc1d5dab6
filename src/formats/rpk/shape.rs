//! RPK1: the published JSON Schema of the envelope, run and steps. Unknown members are allowed everywhere.

use std::fmt;

use crate::digest::Digest;
use crate::json::reader::excerpt;
use crate::json::{Object, Value, pointer};
use crate::validation::Finder;

use super::envelope::{self, Envelope, has_supported_version};

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
    version(root, found);
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
fn version(root: &Object<'_>, found: &mut Finder<'_>) {
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

//! RPK1: the published JSON Schema of the envelope, run and steps. Unknown members are allowed everywhere.

use crate::canonical::reader::excerpt;
use crate::canonical::{Object, Value, pointer};
use crate::digest::Digest;
use crate::verify::Finder;

use super::{Envelope, rules, signature};

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
enum Sort {
    Any,
    Text,
    Object,
    Array,
    /// `sha256:` and 64 lowercase hex digits.
    Hash,
    StepType,
    /// `hmac-sha256:` and 64 lowercase hex digits.
    Code,
}

impl Sort {
    fn admits(self, value: &Value<'_>) -> bool {
        match (self, value) {
            (Self::Any, _)
            | (Self::Text, Value::String(_))
            | (Self::Object, Value::Object(_))
            | (Self::Array, Value::Array(_)) => true,
            (Self::Hash, Value::String(text)) => Digest::stated(text).is_some(),
            (Self::StepType, Value::String(text)) => STEP_TYPES.contains(&text.as_ref()),
            (Self::Code, Value::String(text)) => signature::code(text).is_some(),
            _ => false,
        }
    }

    fn wanted(self) -> String {
        match self {
            Self::Any => "present".to_owned(),
            Self::Text => "a string".to_owned(),
            Self::Object => "an object".to_owned(),
            Self::Array => "an array".to_owned(),
            Self::Hash => "sha256: and 64 lowercase hex digits".to_owned(),
            Self::StepType => format!("one of {}", STEP_TYPES.join(", ")),
            Self::Code => "hmac-sha256: and 64 lowercase hex digits".to_owned(),
        }
    }
}

const ENVELOPE: &[(&str, Sort)] =
    &[("metadata", Sort::Object), ("payload", Sort::Object), ("checksum", Sort::Hash)];
const METADATA: &[(&str, Sort)] = &[("run_id", Sort::Text), ("created_at", Sort::Text)];
const PAYLOAD: &[(&str, Sort)] = &[("run", Sort::Object)];
const RUN: &[(&str, Sort)] = &[
    ("id", Sort::Text),
    ("timestamp", Sort::Text),
    ("environment_fingerprint", Sort::Object),
    ("runtime_versions", Sort::Object),
    ("steps", Sort::Array),
];
const RUN_OPTIONAL: &[(&str, Sort)] = &[
    ("source", Sort::Text),
    ("provider", Sort::Text),
    ("agent", Sort::Text),
    ("capture_mode", Sort::Text),
    ("listener_session_id", Sort::Text),
    ("listener_process", Sort::Object),
    ("listener_bind", Sort::Object),
];
const STEP: &[(&str, Sort)] = &[
    ("id", Sort::Text),
    ("type", Sort::StepType),
    ("input", Sort::Any),
    ("output", Sort::Any),
    ("metadata", Sort::Object),
    ("hash", Sort::Hash),
];
const SIGNATURE: &[(&str, Sort)] =
    &[("algorithm", Sort::Text), ("key_id", Sort::Text), ("value", Sort::Code)];

/// Checks RPK1.
pub(super) fn check(envelope: &Envelope<'_>, found: &mut Finder<'_>) {
    let Value::Object(root) = envelope.root else {
        found.add("", format!("a run pack must be an object, not {}", envelope.root.sort()));
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
            other => found.add("/signature", format!("must be an object, is {}", other.sort())),
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
        let path = format!("/payload/run/steps/{index}");
        match step {
            Value::Object(step) => members(step, &path, STEP, true, found),
            other => found.add(path, format!("a step must be an object, not {}", other.sort())),
        }
    }
}

/// A version that RPK2 accepts must also be a string without surrounding white space.
fn version(root: &Object<'_>, found: &mut Finder<'_>) {
    match root.get("version") {
        Some(Value::Number(_)) if rules::has_supported_version(root) => {
            found.add("/version", "must be a string like \"1.0\", is a number");
        }
        Some(Value::String(text))
            if rules::has_supported_version(root) && !text.bytes().all(is_version_byte) =>
        {
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

fn members(object: &Object<'_>, path: &str, wanted: &[(&str, Sort)], required: bool, found: &mut Finder<'_>) {
    for (name, sort) in wanted {
        let mut path = path.to_owned();
        pointer::push(&mut path, name);
        match object.get(name) {
            None if required => found.add(path, format!("the required member {name} is missing")),
            Some(value) if !sort.admits(value) => {
                let actual = match value {
                    Value::String(text) => excerpt(text),
                    other => other.sort().to_owned(),
                };
                found.add(path, format!("must be {}, is {actual}", sort.wanted()));
            }
            _ => {}
        }
    }
}

use super::envelope::{Envelope, HmacCheckResult, RpkSignature, has_supported_version};
use super::members::{canonical_members, steps};
use super::shape;
use crate::artifact::{AdmitOptions, SignaturePolicy, SupportedMajors};
use crate::digest::Digest;
use crate::json::Value;
use crate::json::canonical::replaykit::{CanonicalizationDefect, VolatilePolicy, strip};
use crate::json::reader::excerpt;
use crate::validation::{Finder, Rule, RuleInfo, Severity};

/// The supported major versions of the format.
const VERSIONS: SupportedMajors = SupportedMajors::new(&["1"]);

const fn info(id: &'static str, summary: &'static str, why: &'static str) -> RuleInfo {
    RuleInfo { id, severity: Severity::Error, summary, why }
}

type RpkCheck = fn(&Envelope<'_>, &mut Finder<'_>);

/// All rules, applied to every document; each checks the members that are present.
pub(super) static RULES: [Rule<RpkCheck>; 6] = [
    Rule {
        info: info(
            "RPK1",
            "Envelope, run and steps have the required shape.",
            "The published schema of version 1: version, metadata, payload.run and checksum; a run with its id, \
             timestamp, environment, versions and steps; steps of a known type. Unknown members are allowed.",
        ),
        check: shape::check,
    },
    Rule {
        info: info(
            "RPK2",
            "version has the form 1.x.",
            "Readers of version 1 understand every 1.x. In another major version, the same \
             members may have another meaning, so it is rejected rather than misread.",
        ),
        check: version,
    },
    Rule {
        info: info(
            "RPK3",
            "checksum matches version, metadata and payload.",
            "The checksum is the run's identity and proves that nothing was changed since it \
             was recorded. It is the SHA-256 of the canonical text of these three members.",
        ),
        check: checksum,
    },
    Rule {
        info: info(
            "RPK4",
            "Every step's hash matches its content.",
            "A step hash covers type, input, output and metadata without volatile members. ReplayKit \
             itself does not verify it when reading; runvault does, because steps are found by it.",
        ),
        check: step_hashes,
    },
    Rule {
        info: info(
            "RPK5",
            "The signature is valid, and present where it is required.",
            "The signature is an HMAC-SHA-256 over version, metadata, payload and checksum. It is checked \
             with the keys given for its key_id and with keys without an id; if there are none, it is \
             recorded as unchecked. Unsigned run packs are accepted unless signatures are required.",
        ),
        check: signature,
    },
    Rule {
        info: info(
            "RPK6",
            "Timestamps stay within the years 1 to 9999 in UTC.",
            "Timestamps are hashed in UTC. One outside these years after conversion has no canonical form.",
        ),
        check: timestamps,
    },
];

fn version(envelope: &Envelope<'_>, found: &mut Finder<'_>) {
    let Value::Object(root) = envelope.root else {
        return;
    };
    if !has_supported_version(root) {
        let message = match root.get("version") {
            None => "missing; it must be like \"1.0\"".to_owned(),
            Some(Value::String(text)) => match VERSIONS.objection(strip(text)) {
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
        let text = canonical_members(step, &["type", "input", "output", "metadata"], VolatilePolicy::Omit);
        let Some(Ok(text)) = text else { continue };
        let actual = Digest::from_content(&text);
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

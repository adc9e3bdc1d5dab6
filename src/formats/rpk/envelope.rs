//! The envelope: the root of a document, with derived data that several rules use.

use crate::artifact::{AdmitOptions, KeyRing, MAX_KEY_ID_BYTES, Signature, SignatureState};
use crate::digest::{Digest, hmac_matches};
use crate::json::canonical::replaykit::{self, NonCanonicalValue, VolatilePolicy, strip_white_space};
pub(super) use crate::json::members::at;
use crate::json::reader::excerpt;
use crate::json::{Object, Value};

/// Returns the non-empty texts at `places`.
pub(super) fn texts_at<'v>(step: &'v Value<'_>, places: &[&[&str]]) -> impl Iterator<Item = &'v str> {
    places.iter().filter_map(|names| at(step, names).and_then(Value::as_non_empty_str))
}

/// Returns the steps of a document.
pub(super) fn steps<'v, 'd>(root: &'v Value<'d>) -> &'v [Value<'d>] {
    at(root, &["payload", "run", "steps"]).and_then(Value::as_array).unwrap_or_default()
}

/// Returns the type of a step.
pub(super) fn step_type<'v>(step: &'v Value<'_>) -> &'v str {
    step.get("type").and_then(Value::as_str).unwrap_or_default()
}

/// Returns the canonical text of the object with only the members `names` of `value`, or `None` if one is missing.
pub(super) fn canonical_members(
    value: &Value<'_>,
    names: &[&'static str],
    volatile: VolatilePolicy,
) -> Option<Result<Vec<u8>, Vec<NonCanonicalValue>>> {
    members(value, names).map(|members| replaykit::object(&members, volatile))
}

/// The members whose canonical text has the checksum as its digest.
const CORE: [&str; 3] = ["version", "metadata", "payload"];

/// Returns the digest of the text that [`canonical_members`] returns.
pub(super) fn digest_of_members(
    value: &Value<'_>,
    names: &[&'static str],
    volatile: VolatilePolicy,
) -> Option<Result<Digest, Vec<NonCanonicalValue>>> {
    members(value, names).map(|members| replaykit::digest(&members, volatile))
}

fn members<'v, 'd>(
    value: &'v Value<'d>,
    names: &[&'static str],
) -> Option<Vec<(&'static str, &'v Value<'d>)>> {
    names.iter().map(|name| Some((*name, value.get(name)?))).collect()
}

/// A document with derived data that several rules use.
pub(super) struct Envelope<'v> {
    pub(super) root: &'v Value<'v>,
    pub(super) options: &'v AdmitOptions,
    /// The digest of the canonical core, or the values without a canonical form; `None` if there is no core.
    pub(super) checksum: Option<Result<Digest, Vec<NonCanonicalValue>>>,
    /// Its signature, checked with the keys of the options; `None` if it is not signed.
    pub(super) signature: Option<RpkSignature>,
}

impl<'v> Envelope<'v> {
    pub(super) fn new(root: &'v Value<'v>, options: &'v AdmitOptions) -> Self {
        Self {
            root,
            options,
            checksum: core_digest(root),
            signature: check_signature(root, &options.signing_keys),
        }
    }
}

/// Returns the digest of the text that [`core_text`] returns.
pub(super) fn core_digest(root: &Value<'_>) -> Option<Result<Digest, Vec<NonCanonicalValue>>> {
    digest_of_members(root, &CORE, VolatilePolicy::Include)
}

/// Returns the canonical text whose digest is the checksum, or `None` if one of its members is missing.
pub(super) fn core_text(root: &Value<'_>) -> Option<Result<Vec<u8>, Vec<NonCanonicalValue>>> {
    canonical_members(root, &CORE, VolatilePolicy::Include)
}

/// Returns whether the version is supported. Surrounding white space is ignored, and a number such as 1.0 is also
/// accepted.
pub(super) fn has_supported_version(root: &Object<'_>) -> bool {
    match root.get("version") {
        Some(Value::String(text)) => strip_white_space(text).split_once('.').is_some_and(|(major, minor)| {
            let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
            digits(major) && digits(minor) && major.trim_start_matches('0') == "1"
        }),
        Some(Value::Number(number)) => !number.is_integer() && (1.0..2.0).contains(&number.as_f64()),
        _ => false,
    }
}

const ALGORITHM: &str = "hmac-sha256";

/// The checked signature of a document.
pub(super) struct RpkSignature {
    /// The id that the document states, of any length.
    pub(super) key_id: String,
    pub(super) outcome: HmacCheckResult,
}

/// The result of checking a signature.
pub(super) enum HmacCheckResult {
    Verified,
    /// No matching key is available.
    Unchecked,
    /// The signature is wrong: the path of the member, and a message.
    Wrong(&'static str, String),
}

/// Checks the signature of the document `root` with `keys`. Returns `None` if there is no signature of the required
/// shape.
fn check_signature(root: &Value<'_>, keys: &KeyRing) -> Option<RpkSignature> {
    let signature = root.get("signature")?;
    let text = |name: &str| signature.get(name).and_then(Value::as_str);
    let (key_id, algorithm, value) = (text("key_id")?, text("algorithm")?, text("value")?);
    let outcome = outcome(root, algorithm, value, key_id, keys)?;
    Some(RpkSignature { key_id: key_id.to_owned(), outcome })
}

/// Returns `None` if the signed content has no canonical form.
fn outcome(
    root: &Value<'_>,
    algorithm: &str,
    value: &str,
    key_id: &str,
    keys: &KeyRing,
) -> Option<HmacCheckResult> {
    if !keys.has_key_for(key_id) {
        return Some(HmacCheckResult::Unchecked);
    }
    if strip_white_space(algorithm) != ALGORITHM {
        let message = format!("{} is not supported; only {ALGORITHM} is", excerpt(algorithm));
        return Some(HmacCheckResult::Wrong("/signature/algorithm", message));
    }
    let signed = ["version", "metadata", "payload", "checksum"];
    let message = canonical_members(root, &signed, VolatilePolicy::Include)?.ok()?;
    let is_signed =
        |code: &Digest| keys.keys_for(key_id).any(|key| hmac_matches(key.as_bytes(), &message, code));
    Some(if code(strip_white_space(value)).as_ref().is_some_and(is_signed) {
        HmacCheckResult::Verified
    } else {
        let message = "is not the signature of this content under the given key".to_owned();
        HmacCheckResult::Wrong("/signature/value", message)
    })
}

/// Returns the code in the value of a signature.
pub(super) fn code(value: &str) -> Option<Digest> {
    value.strip_prefix(ALGORITHM)?.strip_prefix(':').and_then(Digest::parse_hex)
}

impl RpkSignature {
    /// Returns the signature as stored in the vault.
    pub(super) fn summary(&self) -> Signature {
        let state = match self.outcome {
            HmacCheckResult::Verified => SignatureState::Verified,
            HmacCheckResult::Unchecked => SignatureState::Unchecked,
            HmacCheckResult::Wrong(..) => SignatureState::Wrong,
        };
        let key_id = (self.key_id.len() <= MAX_KEY_ID_BYTES).then(|| self.key_id.clone());
        Signature { state, key_id }
    }
}

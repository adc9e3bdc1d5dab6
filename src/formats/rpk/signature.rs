//! The signature of a run pack, checked with the available keys.

use super::members::canonical_members;
use crate::artifact::{KeyRing, MAX_KEY_ID_BYTES, Signature, SignatureState};
use crate::digest::{Digest, hmac_matches};
use crate::json::Value;
use crate::json::canonical::replaykit::{VolatilePolicy, strip};
use crate::json::reader::excerpt;

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
pub(super) fn check(root: &Value<'_>, keys: &KeyRing) -> Option<RpkSignature> {
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
    if strip(algorithm) != ALGORITHM {
        let message = format!("{} is not supported; only {ALGORITHM} is", excerpt(algorithm));
        return Some(HmacCheckResult::Wrong("/signature/algorithm", message));
    }
    let signed = ["version", "metadata", "payload", "checksum"];
    let message = canonical_members(root, &signed, VolatilePolicy::Include)?.ok()?;
    let is_signed =
        |code: &Digest| keys.keys_for(key_id).any(|key| hmac_matches(key.as_bytes(), &message, code));
    Some(if code(strip(value)).as_ref().is_some_and(is_signed) {
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

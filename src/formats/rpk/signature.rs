//! RPK5: the signature of a run pack, checked with the available keys.

use super::{Envelope, canonical_members};
use crate::artifact::{AdmitOptions, KeyRing, MAX_KEY_ID_BYTES, Signature, SignaturePolicy, SignatureState};
use crate::digest::{Digest, hmac_matches};
use crate::json::Value;
use crate::json::canonical::replaykit::{Volatile, strip};
use crate::json::reader::excerpt;
use crate::validation::Finder;

const ALGORITHM: &str = "hmac-sha256";

/// The checked signature of a document.
pub(super) struct CheckedSignature {
    /// The id that the document states, of any length.
    key_id: String,
    outcome: Outcome,
}

enum Outcome {
    Verified,
    /// No matching key is available.
    Unchecked,
    /// The signature is wrong: the path of the member, and a message.
    Wrong(&'static str, String),
}

/// Checks the signature of the document `root` with `keys`. Returns `None` if there is no signature of the required
/// shape.
pub(super) fn check(root: &Value<'_>, keys: &KeyRing) -> Option<CheckedSignature> {
    let signature = root.get("signature")?;
    let text = |name: &str| signature.get(name).and_then(Value::as_str);
    let (key_id, algorithm, value) = (text("key_id")?, text("algorithm")?, text("value")?);
    let outcome = outcome(root, algorithm, value, key_id, keys)?;
    Some(CheckedSignature { key_id: key_id.to_owned(), outcome })
}

/// Returns `None` if the signed content has no canonical form.
fn outcome(root: &Value<'_>, algorithm: &str, value: &str, key_id: &str, keys: &KeyRing) -> Option<Outcome> {
    if !keys.has_key_for(key_id) {
        return Some(Outcome::Unchecked);
    }
    if strip(algorithm) != ALGORITHM {
        let message = format!("{} is not supported; only {ALGORITHM} is", excerpt(algorithm));
        return Some(Outcome::Wrong("/signature/algorithm", message));
    }
    let signed = ["version", "metadata", "payload", "checksum"];
    let message = canonical_members(root, &signed, Volatile::Kept)?.ok()?;
    let is_signed =
        |code: &Digest| keys.keys_for(key_id).any(|key| hmac_matches(key.as_bytes(), &message, code));
    Some(if code(strip(value)).as_ref().is_some_and(is_signed) {
        Outcome::Verified
    } else {
        let message = "is not the signature of this content under the given key".to_owned();
        Outcome::Wrong("/signature/value", message)
    })
}

/// Returns the code in the value of a signature.
pub(super) fn code(value: &str) -> Option<Digest> {
    value.strip_prefix(ALGORITHM)?.strip_prefix(':').and_then(Digest::parse_hex)
}

impl CheckedSignature {
    /// Returns the signature as stored in the vault.
    pub(super) fn summary(&self) -> Signature {
        let state = match self.outcome {
            Outcome::Verified => SignatureState::Verified,
            Outcome::Unchecked => SignatureState::Unchecked,
            Outcome::Wrong(..) => SignatureState::Wrong,
        };
        let key_id = (self.key_id.len() <= MAX_KEY_ID_BYTES).then(|| self.key_id.clone());
        Signature { state, key_id }
    }
}

/// Checks RPK5.
pub(super) fn apply(envelope: &Envelope<'_>, found: &mut Finder<'_>) {
    let AdmitOptions { signing_keys, signature_policy: policy, .. } = envelope.options;
    if *policy == SignaturePolicy::Record {
        return;
    }
    let Some(CheckedSignature { key_id, outcome }) = &envelope.signature else {
        // A malformed signature is reported by RPK1.
        if *policy == SignaturePolicy::Require && envelope.root.get("signature").is_none() {
            found.add("/signature", "the run pack is not signed, but a signature is required");
        }
        return;
    };
    match outcome {
        Outcome::Wrong(path, message) => found.add(*path, message.clone()),
        Outcome::Unchecked if *policy == SignaturePolicy::Require && !signing_keys.is_empty() => {
            let message = format!(
                "a verified signature is required, but no key with the id {} was given",
                excerpt(key_id)
            );
            found.add("/signature/key_id", message);
        }
        Outcome::Unchecked | Outcome::Verified => {}
    }
}

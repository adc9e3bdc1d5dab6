//! Signatures of artifacts, and the keys that verify them.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::json::canonical::replaykit;

/// The result of checking a signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SignatureState {
    /// It is the signature of the content under one of the available keys.
    Verified,
    /// No matching key is available.
    Unchecked,
    /// It is not the signature of the content under any of the keys that it was checked with.
    Wrong,
}

impl SignatureState {
    /// Every state.
    pub const ALL: [Self; 3] = [Self::Verified, Self::Unchecked, Self::Wrong];

    /// Returns the name, such as `verified`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Verified => "verified",
            Self::Unchecked => "unchecked",
            Self::Wrong => "wrong",
        }
    }

    /// Returns the state with this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.name() == name)
    }
}

/// The state of the signature of a capture; the preferred first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SignatureName {
    /// The signature was verified with a key.
    Verified,
    /// The capture is not signed.
    Unsigned,
    /// The signature was not checked: there was no key for it.
    Unchecked,
    /// The signature is not that of the content.
    Wrong,
}

impl SignatureName {
    /// Every name.
    pub const ALL: [Self; 4] = [Self::Verified, Self::Unsigned, Self::Unchecked, Self::Wrong];

    /// Returns the name in arguments, JSON and SQL.
    #[must_use]
    pub fn name(self) -> &'static str {
        Option::from(self).map_or("unsigned", SignatureState::name)
    }
}

impl From<Option<SignatureState>> for SignatureName {
    fn from(state: Option<SignatureState>) -> Self {
        match state {
            Some(SignatureState::Verified) => Self::Verified,
            None => Self::Unsigned,
            Some(SignatureState::Unchecked) => Self::Unchecked,
            Some(SignatureState::Wrong) => Self::Wrong,
        }
    }
}

impl From<SignatureName> for Option<SignatureState> {
    fn from(name: SignatureName) -> Self {
        match name {
            SignatureName::Verified => Some(SignatureState::Verified),
            SignatureName::Unsigned => None,
            SignatureName::Unchecked => Some(SignatureState::Unchecked),
            SignatureName::Wrong => Some(SignatureState::Wrong),
        }
    }
}

/// The signature of a capture.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema)]
#[schema(as = CheckedSignature)]
pub struct Signature {
    /// The result of checking it.
    #[serde(rename = "signature")]
    #[schema(value_type = SignatureName, required = false)]
    pub state: SignatureState,
    /// The key id that the document states; `None` if there is none, or a very long one. The signature does not cover the
    /// id: it is reliable only if the signature is verified.
    pub key_id: Option<String>,
}

/// How admission treats signatures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SignaturePolicy {
    /// Documents with a wrong signature are rejected.
    #[default]
    RejectWrong,
    /// Unsigned documents are also rejected, and, if any key is available, those whose signature has no matching key.
    Require,
    /// Nothing is rejected because of its signature: for documents that were admitted before.
    Record,
}

/// Maximum length of a key in bytes.
pub const MAX_KEY_BYTES: usize = 8 << 10;

/// Maximum length of a key id in bytes.
pub const MAX_KEY_ID_BYTES: usize = 1 << 10;

/// A key for HMAC signatures.
#[derive(Clone)]
pub struct SigningKey(String);

/// The error for an invalid signing key or key id. It does not reveal the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// The key is empty or consists of white space.
    #[error("the signing key is empty; provide one, or do not enable signature checks")]
    Empty,
    /// It is longer than [`MAX_KEY_BYTES`].
    #[error("the signing key has more than {MAX_KEY_BYTES} bytes")]
    TooLong,
    /// An id is empty or longer than [`MAX_KEY_ID_BYTES`].
    #[error("a key id must have 1 to {MAX_KEY_ID_BYTES} bytes")]
    Id,
}

impl SigningKey {
    /// Creates a key from `text`; surrounding white space is removed.
    ///
    /// # Errors
    /// Returns [`KeyError::Empty`] if nothing remains, and [`KeyError::TooLong`] if more than [`MAX_KEY_BYTES`] remain.
    pub fn new(text: &str) -> Result<Self, KeyError> {
        match replaykit::strip_white_space(text) {
            "" => Err(KeyError::Empty),
            key if key.len() > MAX_KEY_BYTES => Err(KeyError::TooLong),
            key => Ok(Self(key.to_owned())),
        }
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

/// Redacts the key.
impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SigningKey(…)")
    }
}

/// The keys that signatures are checked with: those with the key id that a signature states, and those without an id,
/// which apply to every signature.
///
/// ```
/// use runvault::artifact::{KeyRing, SigningKey};
///
/// # fn main() -> Result<(), runvault::artifact::KeyError> {
/// let mut keys = KeyRing::default();
/// keys.add(Some("ci-2026"), SigningKey::new("a secret")?)?;
/// assert!(keys.has_key_for("ci-2026"));
/// assert!(!keys.has_key_for("laptop"));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Default)]
pub struct KeyRing(Arc<SigningKeys>);

#[derive(Clone, Default)]
struct SigningKeys {
    /// Several keys may share an id, such as an old one and a new one.
    with_id: BTreeMap<String, Vec<SigningKey>>,
    without_id: Vec<SigningKey>,
}

impl KeyRing {
    /// Adds a key with an id, or without one to apply to every signature.
    ///
    /// # Errors
    /// Returns [`KeyError::Id`] if the id is empty or longer than [`MAX_KEY_ID_BYTES`].
    pub fn add(&mut self, id: Option<&str>, key: SigningKey) -> Result<(), KeyError> {
        let keys = Arc::make_mut(&mut self.0);
        match id {
            None => keys.without_id.push(key),
            Some(id) if id.is_empty() || id.len() > MAX_KEY_ID_BYTES => return Err(KeyError::Id),
            Some(id) => keys.with_id.entry(id.to_owned()).or_default().push(key),
        }
        Ok(())
    }

    /// Returns whether there are no keys.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.with_id.is_empty() && self.0.without_id.is_empty()
    }

    /// Returns whether a signature that states this key id can be checked.
    #[must_use]
    pub fn has_key_for(&self, id: &str) -> bool {
        self.keys_for(id).next().is_some()
    }

    /// Returns the keys that apply to a signature with this key id.
    pub(crate) fn keys_for(&self, id: &str) -> impl Iterator<Item = &SigningKey> {
        self.0.with_id.get(id).into_iter().flatten().chain(&self.0.without_id)
    }
}

/// Shows ids, which are not secret, and redacts keys.
impl fmt::Debug for KeyRing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ids: Vec<&String> = self.0.with_id.keys().collect();
        f.debug_struct("KeyRing").field("ids", &ids).field("without_id", &self.0.without_id.len()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(text: &str) -> SigningKey {
        SigningKey::new(text).unwrap()
    }

    #[test]
    fn keys_are_bounded_and_never_empty() {
        assert_eq!(SigningKey::new(" \n").unwrap_err(), KeyError::Empty);
        assert!(SigningKey::new(&"k".repeat(MAX_KEY_BYTES)).is_ok());
        assert_eq!(SigningKey::new(&"k".repeat(MAX_KEY_BYTES + 1)).unwrap_err(), KeyError::TooLong);
        let mut ring = KeyRing::default();
        assert_eq!(ring.add(Some(""), key("k")), Err(KeyError::Id));
        assert_eq!(ring.add(Some(&"i".repeat(MAX_KEY_ID_BYTES + 1)), key("k")), Err(KeyError::Id));
        assert!(ring.is_empty());
    }

    #[test]
    fn a_signature_is_checked_with_the_keys_of_its_id_and_those_without() {
        let mut ring = KeyRing::default();
        ring.add(Some("a"), key("old")).unwrap();
        ring.add(Some("b"), key("other")).unwrap();
        ring.add(Some("a"), key("new")).unwrap();
        let tried =
            |ring: &KeyRing, id| ring.keys_for(id).map(|key| key.as_bytes().to_vec()).collect::<Vec<_>>();
        assert_eq!(tried(&ring, "a"), [b"old".to_vec(), b"new".to_vec()]);
        assert!(!ring.has_key_for("c"));
        ring.add(None, key("any")).unwrap();
        assert_eq!(tried(&ring, "b"), [b"other".to_vec(), b"any".to_vec()]);
        assert_eq!(tried(&ring, "c"), [b"any".to_vec()]);
    }

    #[test]
    fn debug_output_has_no_keys() {
        let mut ring = KeyRing::default();
        ring.add(Some("ci"), key("s3cret")).unwrap();
        ring.add(None, key("s3cret")).unwrap();
        let text = format!("{ring:?} {:?}", key("s3cret"));
        assert_eq!(text, "KeyRing { ids: [\"ci\"], without_id: 1 } SigningKey(…)");
    }

    #[test]
    fn states_have_names() {
        for state in SignatureState::ALL {
            assert_eq!(SignatureState::named(state.name()), Some(state));
        }
        assert_eq!(SignatureState::named("unsigned"), None);
    }
}

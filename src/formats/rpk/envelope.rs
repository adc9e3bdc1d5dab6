//! The envelope: the root of a document, with derived data that several rules use.

use super::members::canonical_members;
use super::signature::{self, RpkSignature};
use crate::artifact::AdmitOptions;
use crate::digest::Digest;
use crate::json::canonical::replaykit::{NonCanonicalValue, VolatilePolicy, strip};
use crate::json::{Object, Value};

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
        let checksum = core_text(root).map(|text| text.map(|text| Digest::from_content(&text)));
        Self { root, options, checksum, signature: signature::check(root, &options.signing_keys) }
    }
}

/// Returns the canonical text whose digest is the checksum, or `None` if one of its members is missing.
pub(super) fn core_text(root: &Value<'_>) -> Option<Result<Vec<u8>, Vec<NonCanonicalValue>>> {
    canonical_members(root, &["version", "metadata", "payload"], VolatilePolicy::Include)
}

/// Returns whether the version is supported. Surrounding white space is ignored, and a number such as 1.0 is also
/// accepted.
pub(super) fn has_supported_version(root: &Object<'_>) -> bool {
    match root.get("version") {
        Some(Value::String(text)) => strip(text).split_once('.').is_some_and(|(major, minor)| {
            let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
            digits(major) && digits(minor) && major.trim_start_matches('0') == "1"
        }),
        Some(Value::Number(number)) => !number.is_integer() && (1.0..2.0).contains(&number.as_f64()),
        _ => false,
    }
}

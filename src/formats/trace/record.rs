//! A record, and the constraints that the preceding records impose on it.

use crate::digest::Digest;
use crate::json::Value;
use crate::json::canonical::c14n_v1::{self, NonFiniteNumber};

/// The state that the next record must continue. Hashes are unknown after a line that is not a record, until the next
/// record states them.
#[derive(Default)]
pub(super) struct Chain {
    /// Whether there was a record or the beginning of one.
    begun: bool,
    /// Whether a line was not a record, so that the number of records is unknown.
    broken: bool,
    /// The record hash stated by the previous record.
    previous_hash: Option<String>,
    /// The state hash after the previous record.
    state: Option<String>,
}

impl Chain {
    /// Processes a line that is not a record; `begins_one` is whether it begins like one.
    pub(super) fn break_off(&mut self, begins_one: bool) {
        *self = Self { begun: self.begun || begins_one, broken: true, ..Self::default() };
    }

    /// Processes `record`.
    pub(super) fn follow(&mut self, record: &Value<'_>) {
        let text = |name: &str| record.get(name).and_then(Value::as_non_empty_str).map(str::to_owned);
        self.begun = true;
        self.previous_hash = text("record_hash");
        match record.get("type").and_then(Value::as_str) {
            Some("header") => self.state = text("initial_state_hash"),
            Some("step") => self.state = text("state_after_hash"),
            // Control records only repeat the state.
            _ => {}
        }
    }
}

/// A record in its context.
pub(super) struct TraceRecord<'v> {
    /// The number of the line, from 1.
    pub(super) line: usize,
    /// The number of the record, from 0.
    pub(super) position: usize,
    /// An object.
    pub(super) value: &'v Value<'v>,
    /// The hash of the record without its `record_hash`.
    pub(super) hash: Digest,
    chain: &'v Chain,
}

impl<'v> TraceRecord<'v> {
    /// # Errors
    /// Returns an error for a number that overflows to infinity: it has no canonical form, so the record has no hash.
    pub(super) fn new(
        line: usize,
        position: usize,
        value: &'v Value<'v>,
        chain: &'v Chain,
    ) -> Result<Self, NonFiniteNumber> {
        let text = match value.as_object() {
            Some(object) => c14n_v1::object_without(object, "record_hash")?,
            None => c14n_v1::to_vec(value)?,
        };
        Ok(Self { line, position, value, hash: Digest::from_content(&text), chain })
    }

    /// Returns the path of the member at `pointer`.
    pub(super) fn path(&self, pointer: &str) -> String {
        format!("line {} {pointer}", self.line)
    }

    pub(super) fn record_type(&self) -> Option<&'v str> {
        self.value.get("type").and_then(Value::as_str)
    }

    pub(super) fn text(&self, name: &str) -> Option<&'v str> {
        self.value.get(name).and_then(Value::as_str)
    }

    /// Returns whether no valid record precedes it.
    pub(super) fn is_first(&self) -> bool {
        !self.chain.begun
    }

    /// Returns whether every preceding line is one record, so that the position is the index.
    pub(super) fn position_is_known(&self) -> bool {
        !self.chain.broken
    }

    /// Returns the hash stated by the previous record.
    pub(super) fn previous_hash(&self) -> Option<&'v str> {
        self.chain.previous_hash.as_deref()
    }

    /// Returns the state hash after the previous record.
    pub(super) fn state(&self) -> Option<&'v str> {
        self.chain.state.as_deref()
    }
}

/// Returns whether `text` has the form digits.digits.digits.
pub(super) fn is_version(text: &str) -> bool {
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    text.split('.').count() == 3 && text.split('.').all(digits)
}

/// Returns the digest in a member that may contain other text. Traces contain bare hex digits; the prefix is also
/// accepted.
pub(super) fn digest_of(text: &str) -> Option<Digest> {
    Digest::parse_either(text)
}

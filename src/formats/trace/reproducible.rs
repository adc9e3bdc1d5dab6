//! The part of a trace that follows from its inputs: the specification demands that equal inputs have equal traces.

use std::borrow::Cow;

use super::attributes::OF_STATES;
use super::record::records;
use crate::artifact::{ReproducibleRecord, ReproducibleRun};
use crate::digest::Digest;
use crate::json::canonical::c14n_v1;
use crate::json::{Object, Value};

/// The members of a header that are inputs.
const INPUTS: [&str; 4] = ["version", "engine_version", "created_at", "problem_spec_hash"];

/// The members of records that depend on the name of the trace. States contain it.
const OF_NAME: [&str; 3] = ["trace_id", "prev_hash", "record_hash"];

/// Returns the inputs and the records of a trace; `None` if it is not an admitted one.
pub(super) fn read(document: &[u8]) -> Option<ReproducibleRun> {
    let (mut inputs, mut all) = (None, Vec::new());
    for record in records(document) {
        let (_, record) = record.ok()?;
        let members = record.as_object()?;
        if inputs.is_none() {
            inputs = Some(digest(members, |name| INPUTS.contains(&name))?);
        }
        let record = record.get("record_hash").and_then(Value::as_str).and_then(Digest::parse_hex)?;
        let content = digest(members, |name| !OF_NAME.contains(&name) && !OF_STATES.contains(&name))?;
        all.push(ReproducibleRecord { record, content });
    }
    Some(ReproducibleRun { inputs: inputs?, records: all })
}

/// Returns the digest of some members of an object.
fn digest(members: &Object<'_>, is_hashed: impl Fn(&str) -> bool) -> Option<Digest> {
    let hashed = members.iter().filter(|(name, _)| is_hashed(name));
    let hashed = hashed.map(|(name, value)| (Cow::Borrowed(name), value.clone())).collect();
    let form = c14n_v1::to_vec(&Value::Object(Object::from_members(hashed))).ok()?;
    Some(Digest::from_content(&form))
}

//! Recordings of context-engine-kernel. They have no requests of an API, so that they become sessions without run packs.

use super::exchange::ConvertInput;
use super::reading::{ConvertError, Fault, SHAPE};
use crate::calls::matching::MatchingRules;
use crate::digest::Digest;
use crate::formats::KernelRecording;
use crate::json::reader::Limits;

/// Makes a session of a recording, and returns it with the number of its interactions.
pub(super) fn session(
    input: &ConvertInput,
    rules: &MatchingRules,
    limits: &Limits,
) -> Result<(Vec<u8>, usize), ConvertError> {
    let recording = KernelRecording::read(&input.bytes, limits);
    let recording = recording.map_err(|report| ConvertError::first_of(&report, &input.name))?;
    let redacted = recording.with_responses(|response| rules.redacted_body(response));
    let recording = redacted.map_err(|reason| {
        Fault::new(SHAPE, "the document", format!("a response: {reason}")).in_file(&input.name)
    })?;
    let session = recording.session(Digest::from_content(&input.bytes));
    Ok((session, recording.interactions()))
}

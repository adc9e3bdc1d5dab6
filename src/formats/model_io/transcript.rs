//! The transcript of a session: its interactions. Prompts are not recorded, only their digests.

use std::borrow::Cow;

use super::roles::PROMPT;
use crate::artifact::attribute::{parse_count, parse_milliseconds};
use crate::artifact::{BodyContent, BodyRole, StepClass, StepVisitor, TranscriptStep};
use crate::digest::Digest;
use crate::json::Value;

/// Calls `visit` with each interaction.
pub(super) fn visit(interactions: &[Value<'_>], visit: &mut StepVisitor<'_>) {
    for (index, interaction) in interactions.iter().enumerate() {
        visit(describe(index, interaction));
    }
}

fn describe<'v>(index: usize, interaction: &'v Value<'v>) -> TranscriptStep<'v> {
    let recorded = BodyContent::Json(interaction);
    let mut step = TranscriptStep::new(index, PROMPT.unit, StepClass::Model, recorded);
    step.took(interaction.get("latency_ms").and_then(parse_milliseconds));
    step.used(["tokens_input", "tokens_output"].map(|name| interaction.get(name).and_then(parse_count)));
    let text = |name: &str| interaction.get(name).and_then(Value::as_str);
    if let Some(digest) = text("prompt_hash").and_then(Digest::parse_prefixed) {
        step.push(BodyRole::Prompt, BodyContent::Digest(digest));
    }
    if let Some(response) = text("response_content") {
        step.push(BodyRole::Response, BodyContent::Text(Cow::Borrowed(response)));
    }
    step
}

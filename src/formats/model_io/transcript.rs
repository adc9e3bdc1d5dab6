//! The transcript of a session: its interactions. Prompts are not recorded, only their digests.

use std::borrow::Cow;

use super::PROMPT;
use crate::artifact::attribute::{stated_count, stated_milliseconds};
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
    step.duration_ms = measured(interaction, "latency_ms", stated_milliseconds);
    step.tokens_in = measured(interaction, "tokens_input", stated_count);
    step.tokens_out = measured(interaction, "tokens_output", stated_count);
    let text = |name: &str| interaction.get(name).and_then(Value::as_str);
    if let Some(digest) = text("prompt_hash").and_then(Digest::parse_prefixed) {
        step.push(BodyRole::Prompt, BodyContent::Digest(digest));
    }
    if let Some(response) = text("response_content") {
        step.push(BodyRole::Response, BodyContent::Text(Cow::Borrowed(response)));
    }
    step
}

fn measured(interaction: &Value<'_>, name: &str, read: fn(&Value<'_>) -> Option<i64>) -> Option<u64> {
    interaction.get(name).and_then(read).and_then(|number| u64::try_from(number).ok())
}

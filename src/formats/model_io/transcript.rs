//! Sessions as transcripts, and the interactions by which they are compared.

use std::borrow::Cow;

use super::attributes::PROMPT;
use crate::artifact::attribute::{parse_count, parse_milliseconds};
use crate::artifact::{
    BodyContent, BodyRole, Part, PartKind, StepClass, StepVisitor, TranscriptStep, differ, same_place,
};
use crate::digest::Digest;
use crate::json::Value;
use crate::json::canonical::rfc8785;
use crate::json::pointer::Token;
use crate::json::reader::{self, Limits, ReadError};

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

static SESSION: PartKind = PartKind {
    is_ephemeral: |at| match at.first() {
        Some(Token::Name(name)) => {
            !["model_io_schema_version", "adapter_id", "model_id", "mode", "interactions"].contains(name)
        }
        _ => false,
    },
    canonical,
    describe: |_, _, names| differ(names),
};

/// The position of an interaction is not a difference by itself, so `i` is ephemeral.
static INTERACTION: PartKind = PartKind {
    is_ephemeral: |at| match at.first() {
        Some(Token::Name(name)) => !["prompt_hash", "response_hash", "response_content"].contains(name),
        _ => false,
    },
    canonical,
    describe: |_, _, names| {
        let word = |differs: bool| if differs { "different" } else { "same" };
        let prompt = word(names.contains(&"prompt_hash"));
        let response = word(names.iter().any(|name| name.starts_with("response")));
        format!("{prompt} prompt, {response} response")
    },
};

fn canonical(value: &Value<'_>) -> Option<Vec<u8>> {
    rfc8785::to_vec(value).ok()
}

pub(super) fn parts(document: &[u8]) -> Result<Vec<Part<'_>>, ReadError> {
    let mut root = reader::read_keeping_overflow(document, &Limits::most())?;
    let interactions = root.take(&["interactions"]);
    let of_session = [same_place(&["session"]); 2];
    let mut parts = vec![Part::new("session".to_owned(), of_session, root, &SESSION)];
    let Some(Value::Array(interactions)) = interactions else { return Ok(parts) };
    for (index, interaction) in interactions.into_iter().enumerate() {
        let prompt = interaction.get("prompt_hash").and_then(Value::as_str).unwrap_or_default();
        let keys = [same_place(&["interaction", prompt]), same_place(&["interaction"])];
        parts.push(Part::new(format!("interaction {index}"), keys, interaction, &INTERACTION));
    }
    Ok(parts)
}

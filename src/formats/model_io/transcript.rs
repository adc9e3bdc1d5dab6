//! Sessions as transcripts, and the interactions by which they are compared.

use std::borrow::Cow;

use super::attributes::PROMPT;
use crate::artifact::attribute::{parse_count, parse_milliseconds};
use crate::artifact::{
    BodyContent, BodyRole, Part, PartKind, StepClass, StepVisitor, TranscriptStep, differ, same_place,
};
use crate::conversation::comparison::add_answer;
use crate::conversation::reader::{AnsweredMessages, may_be_answer_body, read_body};
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

/// The members with the response of an interaction: as it was sent, and what it says if that is known.
const RESPONSE: [&str; 3] = ["response_hash", "response_content", "answer"];

/// The position of an interaction is not a difference by itself, so `i` is ephemeral.
static INTERACTION: PartKind = PartKind {
    is_ephemeral: |at| match at.first() {
        Some(Token::Name(name)) => *name != "prompt_hash" && !RESPONSE.contains(name),
        _ => false,
    },
    canonical,
    describe: |_, _, names| {
        let word = |differs: bool| if differs { "different" } else { "same" };
        let prompt = word(names.contains(&"prompt_hash"));
        let response = word(names.iter().any(|name| RESPONSE.contains(name)));
        format!("{prompt} prompt, {response} response")
    },
};

fn canonical(value: &Value<'_>) -> Option<Vec<u8>> {
    rfc8785::to_vec(value).ok()
}

/// Puts an interaction whose response is the body of an answer of a model into the form in which it is compared.
fn compare_answer(interaction: &mut Value<'_>) {
    let content = interaction.get("response_content").and_then(Value::as_str);
    let body = content.filter(|text| may_be_answer_body(text));
    let answer = body.and_then(read_body).and_then(AnsweredMessages::comparable);
    if let (Some(answer), Value::Object(members)) = (answer, interaction) {
        add_answer(members, answer, |name| RESPONSE.contains(&name));
    }
}

pub(super) fn parts(document: &[u8]) -> Result<Vec<Part<'_>>, ReadError> {
    let mut root = reader::read_keeping_overflow(document, &Limits::most())?;
    let interactions = root.take(&["interactions"]);
    let of_session = [same_place(&["session"]); 2];
    let mut parts = vec![Part::new("session".to_owned(), of_session, root, &SESSION)];
    let Some(Value::Array(interactions)) = interactions else { return Ok(parts) };
    for (index, mut interaction) in interactions.into_iter().enumerate() {
        let prompt = interaction.get("prompt_hash").and_then(Value::as_str).unwrap_or_default();
        let keys = [same_place(&["interaction", prompt]), same_place(&["interaction"])];
        compare_answer(&mut interaction);
        parts.push(Part::new(format!("interaction {index}"), keys, interaction, &INTERACTION));
    }
    Ok(parts)
}

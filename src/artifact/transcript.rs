use std::borrow::Cow;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::digest::Digest;
use crate::json::Value;

/// A step of the transcript of an artifact: what is read as one unit, such as a step of a run or an interaction.
#[derive(Clone, Debug)]
pub struct TranscriptStep<'v> {
    /// The number of the step, from 0.
    pub index: usize,
    /// The type as the document or its format calls it, such as `tool.request`.
    pub step_type: Cow<'v, str>,
    /// The class of the type.
    pub class: StepClass,
    /// What the step is about, such as the name of a tool.
    pub title: Option<Cow<'v, str>>,
    /// The time that the step states: that of its start if it states several.
    pub time: Option<DateTime<Utc>>,
    /// The duration in milliseconds that the step states or that follows from its times.
    pub duration_ms: Option<u64>,
    /// The number of tokens in the request, if stated.
    pub tokens_in: Option<u64>,
    /// The number of tokens in the response, if stated.
    pub tokens_out: Option<u64>,
    /// How the step ended, in the words of the document, such as `skipped`.
    pub status: Option<Cow<'v, str>>,
    /// Whether the step records a failure.
    pub failed: bool,
    /// The number of the step with the request that this one answers.
    pub answers: Option<usize>,
    /// The digest by which the step is known.
    pub digest: Option<Digest>,
    /// The name of the file that the step is about, if the artifact has several.
    pub member: Option<&'v str>,
    /// The texts, values and digests of the step, in reading order.
    pub bodies: Vec<StepBody<'v>>,
    /// The step as the document records it.
    pub recorded: BodyContent<'v>,
}

impl<'v> TranscriptStep<'v> {
    /// Creates a step without bodies.
    #[must_use]
    pub fn new(
        index: usize,
        step_type: impl Into<Cow<'v, str>>,
        class: StepClass,
        recorded: BodyContent<'v>,
    ) -> Self {
        Self {
            index,
            step_type: step_type.into(),
            class,
            title: None,
            time: None,
            duration_ms: None,
            tokens_in: None,
            tokens_out: None,
            status: None,
            failed: false,
            answers: None,
            digest: None,
            member: None,
            bodies: Vec::new(),
            recorded,
        }
    }

    /// Sets the duration in milliseconds. One that is negative, as between times that are not in order, is not a duration.
    pub fn took(&mut self, milliseconds: Option<i64>) {
        self.duration_ms = milliseconds.and_then(|number| u64::try_from(number).ok());
    }

    /// Sets the numbers of tokens in the request and in the response.
    pub fn used(&mut self, tokens: [Option<i64>; 2]) {
        [self.tokens_in, self.tokens_out] =
            tokens.map(|tokens| tokens.and_then(|number| u64::try_from(number).ok()));
    }

    /// Adds a body.
    pub fn push(&mut self, role: BodyRole, content: BodyContent<'v>) {
        self.bodies.push(StepBody { role, name: None, content });
    }

    /// Adds a body with a name.
    pub fn push_named(&mut self, role: BodyRole, name: &'static str, content: BodyContent<'v>) {
        self.bodies.push(StepBody { role, name: Some(name), content });
    }
}

/// The class of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum StepClass {
    /// A request to a model, its response, or both.
    Model,
    /// A call of a tool or another service, its result, or both.
    Tool,
    /// A step of an engine that names no tool.
    Work,
    /// An error that is a step of its own.
    Error,
    /// The result of the run.
    Output,
    /// A record about the run: its header, a decision of the engine.
    Control,
    /// A term of an agreement: an effect, a reference.
    Term,
    /// A file of the artifact.
    Member,
    /// The whole content.
    Content,
}

/// A text, value or digest of a step.
#[derive(Clone, Debug)]
pub struct StepBody<'v> {
    /// Its role.
    pub role: BodyRole,
    /// Its name, if a step has several in one role, such as `before`.
    pub name: Option<&'static str>,
    /// The content.
    pub content: BodyContent<'v>,
}

/// The role of a body in its step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum BodyRole {
    /// Instructions and earlier messages that are part of a request to a model.
    Context,
    /// The prompt of a model: the last text of the request.
    Prompt,
    /// The response of a model.
    Response,
    /// The arguments of a call, or the input of a step.
    Arguments,
    /// The result of a call or a step.
    Result,
    /// An error.
    Error,
    /// A state of the run.
    State,
    /// Further statements of the step.
    Details,
    /// The content of a file.
    Content,
}

/// The content of a body.
#[derive(Clone, Debug)]
pub enum BodyContent<'v> {
    /// A text.
    Text(Cow<'v, str>),
    /// A value of the document.
    Json(&'v Value<'v>),
    /// A value that is not part of the document in this form.
    OwnedJson(Value<'v>),
    /// The digest of a content that the document does not contain.
    Digest(Digest),
    /// A number of bytes that are not text.
    Binary(usize),
}

impl<'v> BodyContent<'v> {
    /// Creates the content of a value: a text if it is a string.
    #[must_use]
    pub fn from_value(value: &'v Value<'v>) -> Self {
        match value.as_str() {
            Some(text) => Self::Text(Cow::Borrowed(text)),
            None => Self::Json(value),
        }
    }

    /// Creates the content of bytes: a text if they are UTF-8.
    #[must_use]
    pub fn from_bytes(bytes: &'v [u8]) -> Self {
        str::from_utf8(bytes).map_or(Self::Binary(bytes.len()), |text| Self::Text(Cow::Borrowed(text)))
    }

    /// Returns the digest of the content: that of a text, or the one that stands for the content.
    #[must_use]
    pub fn digest(&self) -> Option<Digest> {
        match self {
            Self::Text(text) => Some(Digest::from_content(text.as_bytes())),
            Self::Digest(digest) => Some(*digest),
            Self::Json(_) | Self::OwnedJson(_) | Self::Binary(_) => None,
        }
    }
}

/// A callback that receives the steps of a transcript, in order.
pub type StepVisitor<'f> = dyn for<'v> FnMut(TranscriptStep<'v>) + 'f;

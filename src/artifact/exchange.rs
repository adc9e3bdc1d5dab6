use crate::digest::Digest;

/// How the recordings of a kind are played back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Playback {
    /// Each response is known by the one prompt that it answers.
    ByPrompt,
    /// The responses follow one another; what they answer may not be known.
    InOrder,
}

/// What gave a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Responder {
    /// A model.
    Model,
    /// A tool.
    Tool,
}

impl Responder {
    /// The name, as programs write it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Model => "model",
            Self::Tool => "tool",
        }
    }
}

/// A recorded response, and what it answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exchange {
    /// The number of the interaction or step with the response, from 0.
    pub index: usize,
    /// What gave the response.
    pub responder: Responder,
    /// The digests of the texts that were asked; none if that was not recorded.
    pub prompts: Vec<Digest>,
    /// The name of the tool, if one responded and its name was recorded.
    pub tool: Option<String>,
    /// The text of the response. If there is not exactly one, everything that was recorded of it, as JSON.
    pub response: String,
    /// Everything that was recorded as the response, as JSON, if that may be more than its text.
    pub output: Option<String>,
}

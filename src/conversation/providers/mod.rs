//! The providers of models: a file for each, with its requests and paths, its answers, streams and errors, and the form in
//! which it writes a conversation.
//!
//! What a body is can be recognized by its form alone, because many servers have the API of another provider.

mod anthropic;
mod bedrock;
pub(crate) mod chat;
mod cohere;
mod decoding;
mod gemini;
pub(crate) mod live;
pub(crate) mod mcp;
mod ollama;
mod openai;
pub(crate) mod provider;

use crate::json::Value;
use chat::Chat;
use provider::ChatForm;

/// Parts of messages in the form of an API, as programs record them, too.
pub(crate) use anthropic::part as anthropic_part;
pub(crate) use gemini::part as gemini_part;
pub(crate) use openai::{item as responses_item, output_items, referenced_item};

pub(crate) use decoding::{
    AnswerContent, AnswerDecoder, AnswerFailure, AnswerReader, AnsweredMessages, RequestedMessages,
    encoded_media, media, normalized, number, parts, role, said_message, stated_error, tool_call, type_of,
};
pub(crate) use provider::{AnswerForm, ChatResponse, MemberRoles, MetadataForm};
pub use provider::{Endpoint, Provider};

/// The providers that are known. Those with endpoints are forwarded to and recorded; the requests of the others are read
/// from the files of other programs.
pub const PROVIDERS: &[Provider] = &[
    openai::OPENAI,
    openai::AZURE,
    anthropic::ANTHROPIC,
    gemini::GEMINI,
    gemini::VERTEX,
    ollama::OLLAMA,
    cohere::COHERE,
    bedrock::BEDROCK,
    live::LIVE,
];

/// The key of clients of which calls are only replayed: most clients do not start without one, and no server accepts it.
pub const REPLAY_KEY: &str = "runvault-replay";

/// Returns the environment variables in which the clients of each provider expect a key. Where only recordings are
/// replayed, those that are not set can have the value [`REPLAY_KEY`].
pub fn key_variables() -> impl Iterator<Item = &'static str> {
    PROVIDERS.iter().flat_map(|provider| provider.keys).copied()
}

impl Provider {
    /// Returns the provider with this name, if its requests can be recorded.
    #[must_use]
    pub fn named(name: &str) -> Option<&'static Self> {
        PROVIDERS.iter().find(|provider| provider.name == name && provider.is_forwarded())
    }

    /// Returns whether its requests are forwarded and recorded.
    #[must_use]
    pub fn is_forwarded(&self) -> bool {
        !self.endpoints.is_empty()
    }
}

/// Returns the request with a path of a provider that may not be known.
pub(crate) fn endpoint(provider: &str, path: &str) -> &'static Endpoint {
    if provider == mcp::MCP {
        return mcp::endpoint(path);
    }
    Provider::named(provider).and_then(|provider| provider.endpoint(path)).unwrap_or(&Endpoint::ANY)
}

/// Returns whether a word is the name of a request of an API. Recordings have it in the place of a model that is not named.
pub(crate) fn is_endpoint(word: &str) -> bool {
    let known = PROVIDERS.iter().flat_map(|provider| provider.endpoints);
    known.chain([&Endpoint::ANY]).any(|endpoint| endpoint.name == word)
}

/// Returns how each API states the content of answers.
pub(crate) fn answer_forms() -> impl Iterator<Item = &'static AnswerForm> {
    PROVIDERS.iter().map(|provider| &provider.answers).chain([&mcp::ANSWERS])
}

/// Returns the form of what a gateway answers itself in the place of a provider.
pub(crate) fn metadata_form(provider: &str) -> &'static MetadataForm {
    Provider::named(provider).map_or(&MetadataForm::OPENAI, |provider| &provider.metadata)
}

/// Returns whether a member has one of the names that `of` selects.
pub(crate) fn is_named(name: &str, of: fn(&MemberRoles) -> &'static [&'static str]) -> bool {
    PROVIDERS.iter().any(|provider| of(&provider.names).contains(&name))
}

/// A conversation in the form of an API.
pub(crate) struct FormedChat {
    /// The provider, if it is known.
    pub(crate) provider: Option<&'static Provider>,
    pub(crate) path: String,
    pub(crate) request: Value<'static>,
    pub(crate) response: ChatResponse,
    /// The values that the form cannot represent.
    pub(crate) unmapped: Vec<String>,
}

impl FormedChat {
    /// Returns a conversation in the form of the API of its provider. One that is not known has the form of `OpenAI`.
    pub(crate) fn new(chat: &Chat) -> Self {
        let provider = called(&chat.provider);
        let form = provider.and_then(|provider| provider.chat.as_ref()).unwrap_or(&openai::CHAT);
        let ChatForm { path, request, response } = form;
        let mut unmapped = Vec::new();
        let (request, response) = (request(chat, &mut unmapped), response(chat, &mut unmapped));
        unmapped.sort_unstable();
        unmapped.dedup();
        Self { provider, path: path(chat), request, response, unmapped }
    }

    /// Returns the request for the embeddings of the texts in the messages of a conversation, and the response if the vectors
    /// are known.
    ///
    /// # Errors
    /// Returns why there is none.
    pub(crate) fn embedding(chat: &Chat) -> Result<Self, String> {
        let provider = called(&chat.provider);
        let path = "/v1/embeddings".to_owned();
        let has_other_form =
            |endpoint: &Endpoint| endpoint.name.contains("mbed") && endpoint.path != "/embeddings";
        if provider.is_some_and(|provider| provider.endpoints.iter().any(has_other_form)) {
            return Err("embeddings of this provider are not mapped".to_owned());
        }
        let request = openai::embedding_request(chat)?;
        let response = openai::embedding_response(chat);
        Ok(Self { provider, path, request, response, unmapped: Vec::new() })
    }
}

/// Returns the provider that files call like this.
fn called(name: &str) -> Option<&'static Provider> {
    let name = name.to_ascii_lowercase();
    PROVIDERS.iter().find(|provider| provider.aliases.contains(&name.as_str()))
}

#[cfg(test)]
mod tests {
    use super::chat::TokenCounts;
    use super::*;
    use crate::conversation::assembled::testing::{answer, usage};

    #[test]
    fn embeddings_are_mapped_where_no_other_form_is_known() {
        let embedding = |provider: &str| {
            let messages = vec![chat::message("user", crate::json::members::text("hi"), Vec::new(), None)];
            let formed = FormedChat::embedding(&Chat { messages, ..Chat::sample(provider, false) });
            formed.map(|formed| formed.path)
        };
        for provider in ["openai", "anthropic", "voyage"] {
            assert_eq!(embedding(provider).as_deref(), Ok("/v1/embeddings"), "{provider}");
        }
        assert_eq!(embedding("gcp.gemini").unwrap_err(), "embeddings of this provider are not mapped");
    }

    #[test]
    fn tokens_that_a_file_does_not_state_have_no_number() {
        for is_stream in [false, true] {
            for provider in ["anthropic", "gemini", "openai"] {
                let none = Chat { usage: TokenCounts::default(), ..Chat::sample(provider, is_stream) };
                let content_type = if is_stream { "text/event-stream" } else { "application/json" };
                let read_usage = |chat: &Chat| usage(&answer(200, Some(content_type), &chat.formed().2));
                assert_eq!(read_usage(&none), None, "{provider}");
                let output = TokenCounts { input: None, output: Some(5) };
                let stated = read_usage(&Chat { usage: output, ..none }).unwrap();
                assert!(stated.ends_with(":5}") && !stated.contains(','), "{stated}");
            }
        }
    }
}

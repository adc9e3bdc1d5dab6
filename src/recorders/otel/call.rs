//! The call of a model that a span is.

use super::messages::{choice_of, in_parts, numbered, of_event, of_event_content, parsed};
use super::reading::OtelSpan;
use crate::json::Value;
use crate::recorders::chat::{Chat, ChatChoice};
use crate::recorders::exchange::{ImportedExchange, ImportedResponse};
use crate::recorders::forms::{ApiExchange, embedding, formed};

/// The attributes of requests that are members of chat completions.
const OPTIONS: &[(&str, &str)] = &[
    ("gen_ai.request.temperature", "temperature"),
    ("gen_ai.request.top_p", "top_p"),
    ("gen_ai.request.top_k", "top_k"),
    ("gen_ai.request.max_tokens", "max_tokens"),
    ("gen_ai.request.seed", "seed"),
    ("gen_ai.request.stop_sequences", "stop"),
    ("gen_ai.request.frequency_penalty", "frequency_penalty"),
    ("gen_ai.request.presence_penalty", "presence_penalty"),
    ("gen_ai.request.choice.count", "n"),
];

/// The attributes of requests that are members of requests for embeddings.
const EMBEDDING_OPTIONS: &[(&str, &str)] = &[
    ("gen_ai.embeddings.dimension.count", "dimensions"),
    ("gen_ai.request.encoding_formats", "encoding_format"),
];

/// The operations that are answers to messages.
const OPERATIONS: &[&str] = &["chat", "text_completion", "generate_content", "completion"];

/// The operations that are embeddings.
const EMBEDDINGS: &[&str] = &["embeddings", "embedding"];

/// The attributes that say that the answer was streamed.
const STREAMS: &[&str] = &["gen_ai.is_streaming", "llm.is_streaming", "gen_ai.request.stream"];

impl OtelSpan {
    pub(super) fn is_call(&self) -> bool {
        let has = |name: &str| self.attributes.contains_key(name);
        has("gen_ai.request.model") || has("gen_ai.operation.name") && has("gen_ai.response.model")
    }

    pub(super) fn text(&self, name: &str) -> Option<&str> {
        self.attributes.get(name).and_then(Value::as_str)
    }

    fn integer(&self, names: &[&str]) -> Option<u64> {
        names.iter().find_map(|name| self.attributes.get(*name)?.as_number()?.literal().parse().ok())
    }

    /// Returns how long it took.
    pub(super) fn latency_ms(&self) -> u64 {
        let latency =
            self.started.zip(self.ended).map(|(started, ended)| (ended - started).num_milliseconds());
        latency.and_then(|latency| u64::try_from(latency).ok()).unwrap_or(0)
    }

    /// Returns the exchange, and what has no place in it. The error says why there is none.
    pub(super) fn into_exchange(self) -> Result<(ImportedExchange, Vec<String>), String> {
        if !self.is_call() && self.has_bodies() {
            return self.into_exchange_of_bodies().map(|exchange| (exchange, Vec::new()));
        }
        if !self.is_call() {
            return Err("the span is not a call of a model".to_owned());
        }
        let operation = self.text("gen_ai.operation.name").unwrap_or("chat");
        let is_embedding = EMBEDDINGS.contains(&operation);
        if !is_embedding && !OPERATIONS.contains(&operation) {
            return Err(format!(
                "the span has no complete request and response: its operation is {operation}"
            ));
        }
        let chat = self.chat(if is_embedding { EMBEDDING_OPTIONS } else { OPTIONS });
        if chat.messages.is_empty() {
            return Err("the messages are not in the span: its content was not recorded".to_owned());
        }
        let latency_ms = self.latency_ms();
        let Self { location, started, failure, .. } = self;
        let (request, reply, mut unmapped) = if is_embedding {
            let reason = "the span does not contain the vectors".to_owned();
            (embedding(&chat)?, ImportedResponse::Failed(reason.clone()), vec![reason])
        } else {
            let ApiExchange { request, reply, unmapped } = formed(&chat);
            (request, reply, unmapped)
        };
        let reply = match failure {
            Some(reason) => ImportedResponse::Failed(reason),
            None if chat.choices.is_empty() && !is_embedding => {
                return Err("the span has no answer of the model".to_owned());
            }
            None => reply,
        };
        unmapped.retain(|_| !matches!(&reply, ImportedResponse::Failed(_)) || is_embedding);
        Ok((ImportedExchange { location, request, reply, at: started, latency_ms }, unmapped))
    }

    /// Returns what the span states, with the attributes that are members of the request.
    fn chat(&self, options: &[(&str, &'static str)]) -> Chat {
        let provider = self.text("gen_ai.provider.name").or_else(|| self.text("gen_ai.system"));
        let model = self.text("gen_ai.request.model").or_else(|| self.text("gen_ai.response.model"));
        let is_true = |name: &&str| self.attributes.get(*name) == Some(&Value::Bool(true));
        let input_tokens = self.integer(&["gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens"]);
        let output_tokens = self.integer(&["gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens"]);
        let member = |(attribute, member): &(&str, &'static str)| {
            Some((*member, self.attributes.get(*attribute)?.clone()))
        };
        let mut chat = Chat {
            provider: provider.unwrap_or("unknown").to_owned(),
            model: model.unwrap_or_default().to_owned(),
            id: self.text("gen_ai.response.id").map(str::to_owned),
            response_model: self.text("gen_ai.response.model").map(str::to_owned),
            ended_at: self.ended,
            is_stream: STREAMS.iter().any(is_true),
            usage: input_tokens.zip(output_tokens),
            members: options.iter().filter_map(member).collect(),
            ..Chat::default()
        };
        self.messages(&mut chat);
        chat
    }

    /// Reads the messages in the first form that the span has.
    fn messages(&self, chat: &mut Chat) {
        let details =
            self.events.iter().find(|(name, _)| name == "gen_ai.client.inference.operation.details");
        for attributes in
            [Some(&self.attributes), details.map(|(_, attributes)| attributes)].into_iter().flatten()
        {
            in_parts(attributes, chat);
            if !chat.messages.is_empty() {
                return;
            }
        }
        numbered(&self.attributes, chat);
        if chat.messages.is_empty() && self.in_events(chat).is_none() {
            // A request without one of its messages is another request.
            chat.messages.clear();
        }
    }

    /// Reads the events with a message each, and those with all messages as JSON. Returns `None` if the content of one of
    /// them was not recorded.
    fn in_events(&self, chat: &mut Chat) -> Option<()> {
        for (name, attributes) in &self.events {
            let attributes = &*of_event_content(attributes);
            let role = match name.as_str() {
                "gen_ai.system.message" => "system",
                "gen_ai.user.message" => "user",
                "gen_ai.assistant.message" => "assistant",
                "gen_ai.tool.message" => "tool",
                "gen_ai.choice" => {
                    chat.choices.push(choice_of(attributes)?);
                    continue;
                }
                "gen_ai.content.prompt" => {
                    for one in parsed(attributes.get("gen_ai.prompt")) {
                        chat.messages.push(one);
                    }
                    continue;
                }
                "gen_ai.content.completion" => {
                    for one in parsed(attributes.get("gen_ai.completion")) {
                        chat.choices.push(ChatChoice { message: one, finish_reason: "stop".to_owned() });
                    }
                    continue;
                }
                _ => continue,
            };
            let role = attributes.get("role").and_then(Value::as_str).unwrap_or(role);
            chat.messages.push(of_event(role, attributes)?);
        }
        Some(())
    }
}

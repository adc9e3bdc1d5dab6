//! The call of a model that a span is, and the sorts of spans that are none.

use super::messages::{
    PARAMETERS, ai_sdk, embedded, in_events, in_parts, logfire, numbered, openinference, parsed, parsed_value,
};
use super::{OtelAttributes, OtelSpan, RAW_REQUEST};
use crate::calls::target::ApiTarget;
use crate::conversation::providers::chat::{Chat, TokenCounts};
use crate::json::members::word;
use crate::json::{Object, Value};
use crate::recorders::exchange::{ApiExchange, ImportedExchange, ImportedRequest, ImportedResponse};

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
    ("gen_ai.request.reasoning.level", "reasoning_effort"),
    ("openai.request.service_tier", "service_tier"),
    // Older names.
    ("gen_ai.openai.request.seed", "seed"),
    ("gen_ai.openai.request.service_tier", "service_tier"),
    ("llm.temperature", "temperature"),
    ("llm.top_p", "top_p"),
    ("llm.top_k", "top_k"),
    ("llm.request.max_tokens", "max_tokens"),
    ("llm.chat.stop_sequences", "stop"),
    ("llm.frequency_penalty", "frequency_penalty"),
    ("llm.presence_penalty", "presence_penalty"),
    // Those of the AI SDK without another name.
    ("ai.settings.seed", "seed"),
];

/// The attributes with the numbers of tokens of the input and of the output.
const INPUT_TOKENS: &[&str] = &[
    "gen_ai.usage.input_tokens",
    "gen_ai.usage.prompt_tokens",
    "llm.usage.prompt_tokens",
    "llm.token_count.prompt",
    "ai.usage.inputTokens",
    "ai.usage.promptTokens",
    "ai.usage.tokens",
];
const OUTPUT_TOKENS: &[&str] = &[
    "gen_ai.usage.output_tokens",
    "gen_ai.usage.completion_tokens",
    "llm.usage.completion_tokens",
    "llm.token_count.completion",
    "ai.usage.outputTokens",
    "ai.usage.completionTokens",
];

/// The attribute with the response that a request continues.
const PREVIOUS: &str = "gen_ai.request.previous_response.id";

/// The attribute with the API of `OpenAI` that was asked.
const API: &str = "openai.api.type";

/// The attribute with the operation of the AI SDK of Vercel, what is in those that are calls, and the ends of some of them.
const AI_SDK: &str = "ai.operationId";
const AI_SDK_CALL: &str = ".do";
const AI_SDK_STREAM: &str = ".doStream";
const AI_SDK_EMBEDDING: &str = ".doEmbed";

/// Words in the names of attributes that can have the messages of a request, and the response. Names with words of both have
/// the response: `gen_ai.output.messages`.
const REQUEST_WORDS: &[&str] = &["prompt", "input", "messages", "request_data", "events"];
const RESPONSE_WORDS: &[&str] = &["completion", "output", "response", "choices"];
const EVENTS_WORD: &[&str] = &["events"];

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

/// The attribute with the sort of a span, and the sorts that are calls of a model.
const SPAN_KIND: &str = "openinference.span.kind";
const MODEL_SPANS: &[&str] = &["LLM", EMBEDDING_SPAN];
const EMBEDDING_SPAN: &str = "EMBEDDING";

/// The attribute with the id of a call of `LiteLLM`.
const LITELLM: &str = "litellm.call_id";

/// The attributes that name the model that answered.
const RESPONSE_MODELS: &[&str] = &["gen_ai.response.model", "llm.response.model_name"];

/// The attributes that name the provider.
const OPENINFERENCE_PROVIDER: &[&str] = &["llm.system", "llm.provider"];

impl OtelSpan {
    /// Returns whether it has the attributes of a call of a model.
    pub(super) fn is_call(&self) -> bool {
        if let Some(operation) = self.text("gen_ai.operation.name") {
            return OPERATIONS.iter().chain(EMBEDDINGS).any(|known| *known == operation);
        }
        let of_ai_sdk = self.text(AI_SDK).is_some_and(|id| id.contains(AI_SDK_CALL));
        (of_ai_sdk || self.attributes.contains_key("gen_ai.request.model")) && self.why_other().is_none()
    }

    /// Returns whether it is a call of a model in any form.
    pub(super) fn is_of_model(&self) -> bool {
        self.is_call() || self.has_bodies()
    }

    /// Returns whether it is a call for embeddings.
    fn is_embedding(&self) -> bool {
        let operation = self.text("gen_ai.operation.name");
        operation.is_some_and(|operation| EMBEDDINGS.contains(&operation))
            || self.text(AI_SDK).is_some_and(|id| id.ends_with(AI_SDK_EMBEDDING))
            || self.text(SPAN_KIND) == Some(EMBEDDING_SPAN)
    }

    pub(super) fn text(&self, name: &str) -> Option<&str> {
        self.attributes.get(name).and_then(Value::as_str)
    }

    fn integer(&self, names: &[&str]) -> Option<u64> {
        names.iter().find_map(|name| self.attributes.get(*name)?.as_number()?.literal().parse().ok())
    }

    /// Returns how long it took, if it states its beginning and its end.
    pub(super) fn latency_ms(&self) -> Option<u64> {
        let (started, ended) = self.started.zip(self.ended)?;
        u64::try_from((ended - started).num_milliseconds()).ok()
    }

    /// Returns the exchange, and what has no place in it. The error says why there is none.
    pub(super) fn into_exchange(self) -> Result<(ImportedExchange, Vec<String>), String> {
        if self.text("logfire.span_type") == Some("pending_span") {
            return Err("the span had not ended; Logfire writes it again when it has".to_owned());
        }
        if let Some(reason) = self.why_other() {
            return Err(reason);
        }
        if self.raw_requests > 1 && self.attributes.contains_key(LITELLM) {
            return Err("LiteLLM wrote several calls to this span, each over the one before: set \
                        USE_OTEL_LITELLM_REQUEST_SPAN=true to record them apart"
                .to_owned());
        }
        let has_bodies = !self.is_call() && self.has_bodies();
        if has_bodies && (self.body_of_request().is_some() || !self.has_numbered_messages()) {
            return self.into_exchange_of_bodies().map(|exchange| (exchange, Vec::new()));
        }
        let operation = self.text("gen_ai.operation.name");
        if !self.is_of_model() {
            let which = operation.map(|operation| format!(": its operation is {operation}"));
            return Err(format!("the span is not a call of a model{}", which.unwrap_or_default()));
        }
        let is_embedding = self.is_embedding();
        let chat = self.chat(if is_embedding { EMBEDDING_OPTIONS } else { OPTIONS })?;
        if chat.messages.is_empty() {
            return Err(self.why_no_messages());
        }
        let no_answer = self.why_no_answer();
        let previous = self.text(PREVIOUS).map(|id| {
            format!("the request continues the response {id}: what was said before is not in the span")
        });
        let api = self.text(API).filter(|api| *api == "responses");
        let other_form = api.map(|_| "a call of the Responses API, imported as a chat completion".to_owned());
        let latency_ms = self.latency_ms();
        let Self { location, started, failure, .. } = self;
        let ApiExchange { request, reply, mut unmapped } =
            if is_embedding { ApiExchange::embedding(&chat)? } else { ApiExchange::new(&chat) };
        let reply = match failure {
            Some(reason) => ImportedResponse::Failed(reason),
            None if chat.choices.is_empty() && !is_embedding => return Err(no_answer),
            None => reply,
        };
        unmapped.retain(|_| !matches!(&reply, ImportedResponse::Failed(_)) || is_embedding);
        unmapped.extend(previous.into_iter().chain(other_form));
        Ok((ImportedExchange { location, request, reply, at: started, latency_ms }, unmapped))
    }

    /// Returns why the messages of the request are not known: an attribute that may have them is named.
    fn why_no_messages(&self) -> String {
        let is_of_response = |name: &&str| RESPONSE_WORDS.iter().any(|word| name.contains(word));
        if let Some(name) = self.contents(REQUEST_WORDS).find(|name| !is_of_response(name)) {
            return format!("the messages may be in the attribute {name}, which is not mapped");
        }
        match self.contents(RESPONSE_WORDS).next() {
            Some(_) => {
                "the messages of the request are not in the span, which has only the answer".to_owned()
            }
            None => "the messages are not in the span: its content was not recorded".to_owned(),
        }
    }

    /// Returns why the answer is not known: an attribute that may have it is named.
    fn why_no_answer(&self) -> String {
        match self.contents(RESPONSE_WORDS).chain(self.contents(EVENTS_WORD)).next() {
            Some(name) => format!("the answer may be in the attribute {name}, which is not mapped"),
            None => "the span has no answer of the model".to_owned(),
        }
    }

    /// Returns the names of the attributes that have one of these words in their names, and can have messages.
    fn contents(&self, words: &'static [&'static str]) -> impl Iterator<Item = &str> {
        let is_content = move |(name, value): &(&String, &Value<'_>)| {
            let parts: Vec<&str> = name.split(['.', '_']).collect();
            let is_detail = ["usage", "id", "model", "finish", "type", "format", "count"];
            words.iter().any(|word| name.contains(word))
                && !parts.iter().any(|part| is_detail.contains(part))
                && value.as_str().is_some_and(|text| {
                    let text = text.trim();
                    !matches!(text, "[]" | "{}") && (text.starts_with(['[', '{']) || text.contains(' '))
                })
        };
        self.attributes.iter().filter(is_content).map(|(name, _)| name.as_str())
    }

    /// Returns the name of the provider. The AI SDK adds the API to it.
    fn provider(&self) -> String {
        let names =
            ["gen_ai.provider.name", "gen_ai.system", "ai.model.provider", "llm.provider", "llm.system"];
        let provider = names.into_iter().find_map(|name| self.text(name).filter(|name| !name.is_empty()));
        match (provider, self.text(AI_SDK)) {
            (Some(provider), Some(_)) => provider.split('.').next().unwrap_or(provider).to_owned(),
            (Some(provider), None) => provider.to_owned(),
            // LiteLLM states it before the name of the model.
            (None, _) => {
                let parameters = PARAMETERS.iter().find_map(|name| self.document(name));
                let model = parameters.as_ref().and_then(|parameters| word(parameters, "model"));
                let model = model.or_else(|| self.text("litellm.provider.model"));
                let provider = model.and_then(|model| model.split_once('/'));
                provider.map_or("unknown", |(provider, _)| provider).to_owned()
            }
        }
    }

    /// Returns what the span states, with the attributes that are members of the request. The error names the attribute that
    /// cannot be read.
    fn chat(&self, options: &[(&str, &'static str)]) -> Result<Chat, String> {
        let models = [
            "gen_ai.request.model",
            "ai.model.id",
            "llm.request.model_name",
            "gen_ai.response.model",
            "llm.model_name",
            "embedding.model_name",
        ];
        let provider = self.provider();
        let model = models.into_iter().find_map(|name| self.text(name)).unwrap_or_default();
        let model = model.strip_prefix(&format!("{provider}/")).unwrap_or(model);
        // LiteLLM writes a text.
        let is_true = |name: &&str| match self.attributes.get(*name) {
            Some(Value::Bool(truth)) => *truth,
            Some(Value::String(truth)) => truth.eq_ignore_ascii_case("true"),
            _ => false,
        };
        let is_ai_sdk_stream = self.text(AI_SDK).is_some_and(|id| id.ends_with(AI_SDK_STREAM));
        let member = |(attribute, member): &(&str, &'static str)| {
            Some((*member, self.attributes.get(*attribute)?.clone()))
        };
        let mut chat = Chat {
            provider,
            model: model.to_owned(),
            id: self.text("gen_ai.response.id").map(str::to_owned),
            response_model: RESPONSE_MODELS.iter().find_map(|name| self.text(name)).map(str::to_owned),
            ended_at: self.ended,
            is_stream: STREAMS.iter().any(is_true) || is_ai_sdk_stream,
            usage: TokenCounts { input: self.integer(INPUT_TOKENS), output: self.integer(OUTPUT_TOKENS) },
            ..Chat::default()
        };
        for (name, value) in options.iter().filter_map(member) {
            if !chat.members.iter().any(|(known, _)| *known == name) {
                chat.members.push((name, value));
            }
        }
        self.messages(&mut chat)?;
        Ok(chat)
    }

    /// Reads the messages in the first form that the span has.
    fn messages(&self, chat: &mut Chat) -> Result<(), String> {
        let has_details =
            |event: &&(String, OtelAttributes)| event.0 == "gen_ai.client.inference.operation.details";
        in_parts(&self.attributes, chat)?;
        if chat.messages.is_empty()
            && let Some((_, attributes)) = self.events.iter().find(has_details)
        {
            in_parts(attributes, chat)?;
        }
        if chat.messages.is_empty() {
            numbered(&self.attributes, chat);
        }
        if chat.messages.is_empty() {
            ai_sdk(&self.attributes, chat)?;
        }
        if chat.messages.is_empty() {
            embedded(&self.attributes, chat);
        }
        if chat.messages.is_empty() {
            openinference(&self.attributes, chat);
        }
        if chat.messages.is_empty() {
            logfire(&self.attributes, chat)?;
        }
        if chat.messages.is_empty() {
            let stated = self.stated_events()?;
            if in_events(self.events.iter().chain(&stated), chat).is_none() {
                // A request without one of its messages is another request.
                chat.messages.clear();
            }
        }
        Ok(())
    }

    /// Returns the events that the span has as JSON in an attribute, as Logfire writes them.
    fn stated_events(&self) -> Result<Vec<(String, OtelAttributes)>, String> {
        let mut events = Vec::new();
        for event in parsed(&self.attributes, "events")? {
            let members = event.as_object().into_iter().flat_map(Object::iter);
            let attributes = members.map(|(name, value)| (name.to_owned(), value.clone())).collect();
            events.extend(word(&event, "event.name").map(|name| (name.to_owned(), attributes)));
        }
        Ok(events)
    }

    /// Returns whether it is a call of a model in the form of `OpenInference`.
    fn has_bodies(&self) -> bool {
        self.text(SPAN_KIND).is_some_and(|kind| MODEL_SPANS.contains(&kind))
    }

    /// Returns the body of a request that it has.
    fn body_of_request(&self) -> Option<Value<'static>> {
        self.document("input.value").filter(|body| body.get("model").is_some())
    }

    /// Returns whether it has the messages of a request as attributes.
    fn has_numbered_messages(&self) -> bool {
        let prefixes = ["llm.input_messages.", "embedding.embeddings."];
        self.attributes.keys().any(|name| prefixes.iter().any(|prefix| name.starts_with(prefix)))
    }

    /// Returns the exchange. The error says why there is none.
    fn into_exchange_of_bodies(self) -> Result<ImportedExchange, String> {
        let request = self.body_of_request().ok_or("the input of the span is not the body of a request")?;
        let response = self.document("output.value");
        let target = self.target(&request, response.as_ref());
        let target = target.ok_or("the input of the span is not a request of a known API")?;
        if self.is_streamed(&request) {
            return Err("the answer was a stream, and the span does not contain its events".to_owned());
        }
        let latency_ms = self.latency_ms();
        let Self { location, started, failure, .. } = self;
        let reply = match (failure, response) {
            (Some(reason), _) => ImportedResponse::Failed(reason),
            (None, Some(response)) => ImportedResponse::json(&response),
            (None, None) => return Err("the span has no answer of the model".to_owned()),
        };
        let request = ImportedRequest::Json { target, body: request };
        Ok(ImportedExchange { location, request, reply, at: started, latency_ms })
    }

    /// Returns the object that an attribute is the text of.
    fn document(&self, name: &str) -> Option<Value<'static>> {
        parsed_value(self.text(name)?).filter(|document| document.as_object().is_some())
    }

    fn target(&self, request: &Value<'_>, response: Option<&Value<'_>>) -> Option<ApiTarget> {
        if OPENINFERENCE_PROVIDER.iter().any(|name| self.text(name) == Some("anthropic")) {
            return ApiTarget::from_name("anthropic", "/v1/messages");
        }
        ApiTarget::from_bodies(request, response)
    }

    fn is_streamed(&self, request: &Value<'_>) -> bool {
        let asks = |body: &Value<'_>| body.get("stream") == Some(&Value::Bool(true));
        asks(request)
            || self.document("llm.invocation_parameters").is_some_and(|parameters| asks(&parameters))
    }
}

/// A sort of spans that are not calls of a model.
struct OtherSpan {
    /// The attribute that says so, with one of these values, or any.
    attribute: &'static str,
    values: &'static [&'static str],
    what: &'static str,
    /// The attributes with its name, of which those that it has are said.
    names: &'static [&'static str],
    /// Whether calls of models are expected inside it.
    has_calls: bool,
}

const TOOL: &str = "it runs a tool, whose result is in the next request to the model";
const AGENT: &str = "it runs an agent";
const WORKFLOW: &str = "it runs a workflow";
const RETRIEVAL: &str = "it looks up documents";
const MEMORY: &str = "it reads or changes a memory";

const OPERATION: &str = "gen_ai.operation.name";

/// Stands for the name of a span in the place of an attribute.
const NAME: &str = "the name";

/// Their sorts, the first of which counts: those of the conventions for generative AI and MCP of OpenTelemetry, of
/// `OpenInference`, of `OpenLLMetry`, of `LiteLLM`, and of the AI SDK of Vercel.
const OTHERS: &[OtherSpan] = &[
    leaf(OPERATION, &["execute_tool"], TOOL, &["gen_ai.tool.name"]),
    around(OPERATION, &["invoke_agent"], AGENT, &["gen_ai.agent.name"]),
    around(OPERATION, &["invoke_workflow"], WORKFLOW, &["gen_ai.agent.name", "gen_ai.workflow.name"]),
    around(OPERATION, &["plan"], "it makes the plan of an agent", &["gen_ai.agent.name"]),
    leaf(OPERATION, &["create_agent"], "it creates an agent", &["gen_ai.agent.name"]),
    leaf(OPERATION, &["retrieval"], RETRIEVAL, &["gen_ai.data_source.id"]),
    leaf(
        OPERATION,
        &[
            "create_memory",
            "create_memory_store",
            "delete_memory",
            "delete_memory_store",
            "search_memory",
            "update_memory",
            "upsert_memory",
        ],
        MEMORY,
        &["gen_ai.memory.store.name"],
    ),
    leaf("mcp.method.name", &["tools/call"], TOOL, &["gen_ai.tool.name", "mcp.tool.name"]),
    leaf(
        "mcp.method.name",
        &[],
        "it is a request or a notification of MCP",
        &["mcp.method.name", "gen_ai.prompt.name"],
    ),
    leaf("openinference.span.kind", &["TOOL"], TOOL, &["tool.name"]),
    around("openinference.span.kind", &["AGENT"], AGENT, &["agent.name"]),
    around("openinference.span.kind", &["CHAIN"], "it is a step of a program", &[]),
    leaf("openinference.span.kind", &["RETRIEVER", "RERANKER"], RETRIEVAL, &[]),
    leaf("openinference.span.kind", &["GUARDRAIL", "EVALUATOR"], "it judges what a model said", &[]),
    leaf("openinference.span.kind", &["PROMPT"], "it makes a prompt", &[]),
    leaf("traceloop.span.kind", &["tool"], TOOL, &["traceloop.entity.name"]),
    around("traceloop.span.kind", &["agent"], AGENT, &["traceloop.entity.name"]),
    around("traceloop.span.kind", &["workflow", "task"], WORKFLOW, &["traceloop.entity.name"]),
    leaf(NAME, &[RAW_REQUEST], "it repeats the request of the span that it is inside of", &[]),
    leaf("ai.operationId", &["ai.rerank.doRerank"], RETRIEVAL, &[]),
    leaf("ai.operationId", &["ai.toolCall"], TOOL, &["ai.toolCall.name"]),
    around(
        "ai.operationId",
        &[
            "ai.generateText",
            "ai.streamText",
            "ai.generateObject",
            "ai.streamObject",
            "ai.embed",
            "ai.embedMany",
            "ai.rerank",
        ],
        "it is a function of the AI SDK",
        &["ai.operationId"],
    ),
];

const fn leaf(
    attribute: &'static str,
    values: &'static [&'static str],
    what: &'static str,
    names: &'static [&'static str],
) -> OtherSpan {
    OtherSpan { attribute, values, what, names, has_calls: false }
}

const fn around(
    attribute: &'static str,
    values: &'static [&'static str],
    what: &'static str,
    names: &'static [&'static str],
) -> OtherSpan {
    OtherSpan { has_calls: true, ..leaf(attribute, values, what, names) }
}

impl OtelSpan {
    /// Returns why it is not a call of a model, if it says that it is something else.
    pub(super) fn why_other(&self) -> Option<String> {
        let is = |other: &&OtherSpan| {
            let stated = if other.attribute == NAME { Some(&*self.name) } else { self.text(other.attribute) };
            stated.is_some_and(|stated| other.values.is_empty() || other.values.contains(&stated))
        };
        let OtherSpan { what, names, has_calls, .. } = OTHERS.iter().find(is)?;
        let named: Vec<_> = names.iter().filter_map(|name| self.text(name)).collect();
        let mut reason = format!("the span is not a call of a model: {what}");
        if !named.is_empty() {
            reason = format!("{reason} ({})", named.join(", "));
        }
        if *has_calls {
            let inside =
                if self.contains_calls { "its calls of models have spans of their own" } else { NO_CALLS };
            reason = format!("{reason}; {inside}");
        }
        Some(reason)
    }
}

const NO_CALLS: &str = "no call of a model inside it was exported";

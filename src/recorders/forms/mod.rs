//! Requests and responses that a file states in a form of its own, in the form of the API that was asked.

mod anthropic;
mod gemini;
mod openai;
mod turns;

use super::chat::Chat;
use super::exchange::{ImportedRequest, ImportedResponse};
use super::target::ApiTarget;

/// The names by which files call `OpenAI`.
const OPENAI: &[&str] = &["openai", "azure", "azure.ai.openai", "az.ai.openai", "openai-api"];

/// The names by which files call Gemini.
const GEMINI: &[&str] = &[
    "gcp.gemini",
    "gcp.gen_ai",
    "gcp.vertex_ai",
    "gemini",
    "google",
    "google_genai",
    "vertex_ai",
    "vertexai",
];

/// A request and its response in the form of an API.
#[derive(Debug)]
pub(super) struct ApiExchange {
    pub(super) request: ImportedRequest,
    pub(super) reply: ImportedResponse,
    /// The values that the form cannot represent.
    pub(super) unmapped: Vec<String>,
}

/// Returns a chat in the form of the API of its provider. A provider that is not known has the form of `OpenAI`.
pub(super) fn formed(chat: &Chat) -> ApiExchange {
    let mut unmapped = Vec::new();
    let provider = chat.provider.to_ascii_lowercase();
    let (request, reply) = if provider == "anthropic"
        && let Some(target) = ApiTarget::from_known_provider("anthropic", "/v1/messages")
    {
        (anthropic::request(chat, target, &mut unmapped), anthropic::reply(chat, &mut unmapped))
    } else if GEMINI.contains(&provider.as_str())
        && let Some(target) = ApiTarget::from_known_provider("gemini", &gemini_path(chat))
    {
        (gemini::request(chat, target, &mut unmapped), gemini::reply(chat, &mut unmapped))
    } else {
        (openai::request(chat, openai_target(&provider, "/v1/chat/completions")), openai::reply(chat))
    };
    unmapped.sort_unstable();
    unmapped.dedup();
    ApiExchange { request, reply, unmapped }
}

/// Returns the request of a path of the API of `OpenAI`, to a provider that has this API.
fn openai_target(provider: &str, path: &str) -> ApiTarget {
    let known = ApiTarget::from_known_provider("openai", path).filter(|_| OPENAI.contains(&provider));
    known.unwrap_or_else(|| ApiTarget::from_unknown_provider(provider, path))
}

/// Returns the request for the embeddings of the texts in the messages of a chat.
///
/// # Errors
/// Returns why there is none.
pub(super) fn embedding(chat: &Chat) -> Result<ImportedRequest, String> {
    let provider = chat.provider.to_ascii_lowercase();
    if GEMINI.contains(&provider.as_str()) {
        return Err("embeddings of this provider are not mapped".to_owned());
    }
    openai::embedding(chat, openai_target(&provider, "/v1/embeddings"))
}

/// Returns the path of a request to Gemini, which has the model.
fn gemini_path(chat: &Chat) -> String {
    let model = chat.model.rsplit('/').next().unwrap_or_default();
    let method = if chat.is_stream { "streamGenerateContent" } else { "generateContent" };
    format!("/v1beta/models/{model}:{method}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calls::assembled;
    use crate::calls::call::{CallResponse, RetryHeaders};
    use crate::calls::values::{object, text};
    use crate::json::reader::{self, Limits};
    use crate::json::{Value, compact};
    use crate::recorders::chat::{ChatChoice, TokenCounts, message, tool, tool_call};

    /// A chat in which a tool is called, which answers.
    fn chat(provider: &str, is_stream: bool) -> Chat {
        let number = |text: &'static str| reader::read(text.as_bytes(), &Limits::default()).unwrap();
        let calls = vec![tool_call("w_0", "w", &object([("city", text("Paris"))]))];
        let parameters = object([("type", text("object"))]);
        let tools = vec![tool("w", Some("Tells the weather"), Some(&parameters))];
        Chat {
            provider: provider.to_owned(),
            model: "m".to_owned(),
            messages: vec![
                message("system", text("be short"), Vec::new(), None),
                message("user", text("the weather?"), Vec::new(), None),
                message("assistant", text(""), calls.clone(), None),
                message("tool", text("rain"), Vec::new(), Some("w_0")),
                message("user", text("so?"), Vec::new(), None),
            ],
            members: vec![
                ("max_tokens", number("9")),
                ("seed", number("3")),
                ("stop", Value::Array(vec![text("x")])),
                ("tools", Value::Array(tools)),
            ],
            choices: vec![ChatChoice {
                message: message("assistant", text("wait"), calls, None),
                finish_reason: "tool_calls".to_owned(),
            }],
            usage: TokenCounts { input: Some(1), output: Some(2) },
            is_stream,
            ..Chat::default()
        }
    }

    fn bodies(chat: &Chat) -> (String, String, String, Vec<String>) {
        let ApiExchange { request, reply, unmapped } = formed(chat);
        let (ImportedRequest::Json { target, body }, ImportedResponse::Answer { body: answer, .. }) =
            (request, reply)
        else {
            panic!()
        };
        let answer = String::from_utf8(answer).unwrap();
        (format!("{} {}", target.provider, target.path), compact::text(&body), answer, unmapped)
    }

    #[test]
    fn anthropic_has_blocks() {
        let (target, request, answer, unmapped) = bodies(&chat("Anthropic", false));
        assert_eq!(target, "anthropic /v1/messages");
        assert_eq!(
            request,
            "{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":\"the weather?\"},{\"role\":\"assistant\",\
             \"content\":[{\"type\":\"tool_use\",\"id\":\"w_0\",\"name\":\"w\",\"input\":{\"city\":\"Paris\"}}]},\
             {\"role\":\"user\",\"content\":[{\"type\":\"tool_result\",\"tool_use_id\":\"w_0\",\"content\":\"rain\"},\
             {\"type\":\"text\",\"text\":\"so?\"}]}],\"system\":\"be short\",\"max_tokens\":9,\"stop_sequences\":[\"x\"],\
             \"tools\":[{\"name\":\"w\",\"description\":\"Tells the weather\",\"input_schema\":{\"type\":\"object\"}}]}"
        );
        assert_eq!(
            answer,
            "{\"id\":\"imported\",\"type\":\"message\",\"role\":\"assistant\",\"model\":\"m\",\"content\":[{\"type\":\"text\",\
             \"text\":\"wait\"},{\"type\":\"tool_use\",\"id\":\"w_0\",\"name\":\"w\",\"input\":{\"city\":\"Paris\"}}],\
             \"stop_reason\":\"tool_use\",\"stop_sequence\":null,\"usage\":{\"input_tokens\":1,\"output_tokens\":2}}"
        );
        assert_eq!(unmapped, ["seed has no place in a request to this API"]);
        let (_, request, answer, _) = bodies(&chat("anthropic", true));
        assert!(request.ends_with(",\"stream\":true}"), "{request}");
        let input =
            "\"delta\":{\"type\":\"input_json_delta\",\"partial_json\":\"{\\\"city\\\":\\\"Paris\\\"}\"}}";
        assert!(
            answer.contains(input)
                && answer.ends_with("event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"),
            "{answer}"
        );
    }

    #[test]
    fn gemini_has_contents() {
        let (target, request, answer, unmapped) = bodies(&chat("gcp.gemini", false));
        assert_eq!(target, "gemini /v1beta/models/m:generateContent");
        assert_eq!(
            request,
            "{\"contents\":[{\"role\":\"user\",\"parts\":[{\"text\":\"the weather?\"}]},{\"role\":\"model\",\"parts\":[\
             {\"functionCall\":{\"name\":\"w\",\"args\":{\"city\":\"Paris\"}}}]},{\"role\":\"user\",\"parts\":[{\"functionResponse\":\
             {\"name\":\"w\",\"response\":{\"result\":\"rain\"}}},{\"text\":\"so?\"}]}],\"systemInstruction\":{\"role\":\"user\",\
             \"parts\":[{\"text\":\"be short\"}]},\"tools\":[{\"functionDeclarations\":[{\"name\":\"w\",\
             \"description\":\"Tells the weather\",\"parameters\":{\"type\":\"object\"}}]}],\"generationConfig\":{\
             \"maxOutputTokens\":9,\"seed\":3,\"stopSequences\":[\"x\"]}}"
        );
        assert_eq!(
            answer,
            "{\"candidates\":[{\"content\":{\"role\":\"model\",\"parts\":[{\"text\":\"wait\"},{\"functionCall\":{\"name\":\"w\",\
             \"args\":{\"city\":\"Paris\"}}}]},\"finishReason\":\"STOP\",\"index\":0}],\"usageMetadata\":{\"promptTokenCount\":1,\
             \"candidatesTokenCount\":2,\"totalTokenCount\":3},\"modelVersion\":\"m\"}"
        );
        assert_eq!(unmapped, Vec::<String>::new());
        let (target, _, answer, _) = bodies(&chat("google", true));
        assert_eq!(target, "gemini /v1beta/models/m:streamGenerateContent");
        assert!(answer.starts_with("data: {\"candidates\"") && answer.ends_with("}\r\n\r\n"), "{answer}");
    }
    #[test]
    fn tokens_that_a_file_does_not_state_have_no_number() {
        for is_stream in [false, true] {
            for provider in ["anthropic", "gemini", "openai"] {
                let none = Chat { usage: TokenCounts::default(), ..chat(provider, is_stream) };
                let (_, _, answer, _) = bodies(&none);
                let response = CallResponse {
                    status: 200,
                    content_type: is_stream.then(|| "text/event-stream".to_owned()),
                    retry: RetryHeaders::default(),
                    body: answer,
                    chunks: Vec::new(),
                };
                assert_eq!(assembled::read(&response).usage, None, "{}", response.body);
                let output = TokenCounts { input: None, output: Some(5) };
                let (_, _, answer, _) = bodies(&Chat { usage: output, ..chat(provider, is_stream) });
                let usage = assembled::read(&CallResponse { body: answer, ..response }).usage.unwrap();
                let counts: Vec<String> =
                    usage.as_object().unwrap().iter().map(|(_, count)| compact::text(count)).collect();
                assert_eq!(counts, ["5"], "{provider}");
            }
        }
    }
}

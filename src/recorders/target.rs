//! The API that a recorded request is of.

use crate::calls::provider::{ANY, Endpoint, PROVIDERS, Provider};
use crate::json::Value;

/// The request of an API.
#[derive(Clone, Debug)]
pub(super) struct ApiTarget {
    pub(super) provider: String,
    pub(super) endpoint: &'static Endpoint,
    /// The path in the API, without the query.
    pub(super) path: String,
    /// The query, which may contain a key: only its digest is stored, and only if requests are compared by it.
    pub(super) query: Option<String>,
}

/// The beginnings of hosts of other providers of models, without `api.` and the like, and how they are called.
const HOSTS: &[(&str, &str)] =
    &[("aiplatform.", "vertex"), ("bedrock-runtime", "bedrock"), ("bedrock-agent-runtime", "bedrock")];

/// The paths of requests to models of other APIs, or of other requests to known ones: ends of paths.
const PATHS: &[&str] = &[
    "/api/chat",
    "/api/embed",
    "/api/embeddings",
    "/api/generate",
    "/audio/speech",
    "/audio/transcriptions",
    "/audio/translations",
    "/complete",
    "/converse",
    "/converse-stream",
    "/images/edits",
    "/images/generations",
    "/images/variations",
    "/invoke",
    "/invoke-with-response-stream",
    "/moderations",
    "/rerank",
    ":predict",
    ":rawPredict",
    ":streamRawPredict",
];

/// The paths of the API of Ollama, which is a server of its own at any host.
const OLLAMA: &[&str] = &["/api/chat", "/api/embed", "/api/embeddings", "/api/generate"];

/// The members of which requests to models have one.
const MODEL_MEMBERS: &[&str] = &["model", "messages", "contents", "prompt"];

impl ApiTarget {
    /// Returns the request with this URL or path, and this body. The path says which API it is of, because many hosts have
    /// the API of another provider; the host only if several have the path. Requests to models of other APIs are of a
    /// provider that is called like their host. The error says why there is none.
    pub(super) fn from_url(url: &str, body: &Value<'_>) -> Result<Self, String> {
        let UrlParts { host, path, query } = split(url);
        let query = query.map(str::to_owned);
        let is_of_model = MODEL_MEMBERS.iter().any(|name| body.get(name).is_some());
        let of_host = PROVIDERS.iter().find(|provider| split(provider.url).host == host && !host.is_empty());
        let is_bare = body.as_object().is_none_or(|body| body.iter().len() == 0);
        let has_path = |provider: &&Provider| {
            provider.endpoint(path).is_some() && (is_of_model || is_bare || body.get("input").is_some())
        };
        let known = of_host.filter(|provider| provider.endpoint(path).is_some());
        if let Some(provider) = known.or_else(|| PROVIDERS.iter().find(has_path))
            && let Some(endpoint) = provider.endpoint(path)
        {
            return Ok(Self { provider: provider.name.to_owned(), endpoint, path: path.to_owned(), query });
        }
        let has_other_path = PATHS.iter().any(|end| path.ends_with(end));
        let has_other_host = HOSTS.iter().any(|(part, _)| host.contains(part));
        if !(has_other_path || has_other_host || is_of_model) {
            return Err(of_host.map_or_else(
                || format!("{path} is not the path of a known API"),
                |provider| format!("{path} is not a request to a model in the API of {}", provider.name),
            ));
        }
        let provider = match of_host {
            Some(provider) => provider.name,
            None if OLLAMA.iter().any(|end| path.ends_with(end)) => "ollama",
            None => name_of(host),
        };
        Ok(Self { query, ..Self::from_unknown_provider(provider, path) })
    }

    /// Returns the request with these bodies, if they have the form of one that is known.
    pub(super) fn from_bodies(request: &Value<'_>, response: Option<&Value<'_>>) -> Option<Self> {
        let object = response.and_then(|response| response.get("object")).and_then(Value::as_str);
        let answers = |name: &str| response.is_some_and(|response| response.get(name).is_some());
        let asks = |name: &str| request.get(name).is_some();
        let is_message =
            response.and_then(|response| response.get("type")).and_then(Value::as_str) == Some("message");
        let (provider, path) = match object {
            Some("chat.completion") => ("openai", "/v1/chat/completions"),
            Some("text_completion") => ("openai", "/v1/completions"),
            Some("response") => ("openai", "/v1/responses"),
            Some("list") if asks("input") => ("openai", "/v1/embeddings"),
            _ if is_message && asks("messages") => ("anthropic", "/v1/messages"),
            _ if asks("messages") => ("openai", "/v1/chat/completions"),
            _ if asks("prompt") && answers("choices") => ("openai", "/v1/completions"),
            _ if asks("input") && answers("data") => ("openai", "/v1/embeddings"),
            _ if asks("input") && answers("output") => ("openai", "/v1/responses"),
            _ => return None,
        };
        Self::from_known_provider(provider, path)
    }

    /// Returns a request of a known provider.
    pub(super) fn from_known_provider(provider: &str, path: &str) -> Option<Self> {
        let provider = Provider::named(provider)?;
        let endpoint = provider.endpoint(path)?;
        Some(Self { provider: provider.name.to_owned(), endpoint, path: path.to_owned(), query: None })
    }

    /// Returns a request of a provider that is not known, with a path of the API of `OpenAI`.
    pub(super) fn from_unknown_provider(provider: &str, path: &str) -> Self {
        let is_word = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
        let word: String =
            provider.chars().map(|c| if is_word(&c) { c.to_ascii_lowercase() } else { '-' }).collect();
        let reserved =
            word.is_empty() || ["run", "label", "v1", "v1beta", "_runvault"].contains(&word.as_str());
        let provider = if reserved { format!("provider-{word}") } else { word };
        Self { provider, endpoint: &ANY, path: path.to_owned(), query: None }
    }
}

/// Returns how the provider with a host is called: by its domain, such as `cohere` for `api.cohere.com`.
fn name_of(host: &str) -> &str {
    if let Some((_, name)) = HOSTS.iter().find(|(part, _)| host.contains(part)) {
        return name;
    }
    let mut labels = host.rsplit('.').skip(1);
    let is_name = |label: &&str| !label.bytes().all(|byte| byte.is_ascii_digit());
    labels.next().filter(is_name).unwrap_or("local")
}

/// The parts of a URL.
struct UrlParts<'u> {
    /// The host, without the port; empty for a path.
    host: &'u str,
    path: &'u str,
    query: Option<&'u str>,
}

fn split(url: &str) -> UrlParts<'_> {
    let url = url.split('#').next().unwrap_or_default();
    let (url, query) = url.split_once('?').map_or((url, None), |(url, query)| (url, Some(query)));
    let after_scheme = url.split_once("://").map(|(_, rest)| rest).or_else(|| url.strip_prefix("//"));
    // Without a scheme, a user is followed by a host, too.
    let has_user = || url.split('/').next().is_some_and(|first| first.contains('@'));
    let Some(rest) = after_scheme.or_else(|| has_user().then_some(url)) else {
        return UrlParts { host: "", path: url, query };
    };
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let host = authority.rsplit('@').next().unwrap_or_default();
    UrlParts { host: host.split(':').next().unwrap_or_default(), path, query }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::reader::{self, Limits};

    #[test]
    fn urls_name_requests() {
        for (url, expected) in [
            ("https://api.openai.com/v1/chat/completions", "openai chat.completions /v1/chat/completions"),
            ("http://user@127.0.0.1:8080/v1/messages?beta=true", "anthropic messages /v1/messages"),
            ("/v1/responses", "openai responses /v1/responses"),
            ("ann:secret@example.org/v1/responses", "openai responses /v1/responses"),
            (
                "https://generativelanguage.googleapis.com/v1beta/models/g:generateContent?key=secret",
                "gemini generateContent /v1beta/models/g:generateContent",
            ),
        ] {
            let ApiTarget { provider, endpoint, path, .. } = ApiTarget::from_url(url, &Value::Null).unwrap();
            assert_eq!(format!("{provider} {} {path}", endpoint.name), expected);
        }
        for (url, reason) in [
            (
                "https://api.openai.com/v1/models",
                "/v1/models is not a request to a model in the API of openai",
            ),
            ("https://example.org/login?key=secret", "/login is not the path of a known API"),
            ("//ann:secret@example.org/login", "/login is not the path of a known API"),
            ("ann:secret@example.org/login", "/login is not the path of a known API"),
            ("", " is not the path of a known API"),
        ] {
            assert_eq!(ApiTarget::from_url(url, &Value::Null).unwrap_err(), reason);
        }
    }

    #[test]
    fn the_path_and_the_body_say_which_api_a_request_is_of() {
        let gemini = "https://generativelanguage.googleapis.com/v1beta";
        for (url, body, expected) in [
            (format!("{gemini}/openai/chat/completions"), r#"{"messages":[]}"#, "openai chat.completions"),
            (format!("{gemini}/openai/embeddings"), r#"{"input":"x"}"#, "openai embeddings"),
            (
                "https://api.mistral.ai/v1/chat/completions".to_owned(),
                r#"{"model":"m"}"#,
                "openai chat.completions",
            ),
            (
                "https://x-aiplatform.googleapis.com/v1/projects/p/models/g:generateContent".to_owned(),
                r#"{"contents":[]}"#,
                "gemini generateContent",
            ),
            ("https://api.openai.com/v1/moderations".to_owned(), r#"{"input":"x"}"#, "openai json"),
            ("https://api.openai.com/v1/images/generations".to_owned(), r#"{"prompt":"x"}"#, "openai json"),
            ("https://api.anthropic.com/v1/complete".to_owned(), r#"{"prompt":"x"}"#, "anthropic json"),
            ("http://localhost:11434/api/chat".to_owned(), r#"{"model":"m"}"#, "ollama json"),
            ("https://api.cohere.com/v2/chat".to_owned(), r#"{"model":"m"}"#, "cohere json"),
            ("https://api.cohere.ai/v1/rerank".to_owned(), r#"{"query":"x"}"#, "cohere json"),
            (
                "https://bedrock-runtime.us-east-1.amazonaws.com/model/a.b/invoke".to_owned(),
                r#"{"inputText":"x"}"#,
                "bedrock json",
            ),
            (
                "https://us-aiplatform.googleapis.com/v1/projects/p/models/c:rawPredict".to_owned(),
                r#"{"messages":[]}"#,
                "vertex json",
            ),
            ("http://127.0.0.1:8000/generate".to_owned(), r#"{"prompt":"x"}"#, "local json"),
        ] {
            let body = reader::read(body.as_bytes(), &Limits::default()).unwrap();
            let ApiTarget { provider, endpoint, .. } = ApiTarget::from_url(&url, &body).unwrap();
            assert_eq!(format!("{provider} {}", endpoint.name), expected, "{url}");
        }
        let message = reader::read(br#"{"role":"user","content":"x"}"#, &Limits::default()).unwrap();
        for url in ["https://api.openai.com/v1/threads/t/messages", "https://example.org/messages"] {
            assert!(ApiTarget::from_url(url, &message).is_err(), "{url}");
        }
    }

    #[test]
    fn bodies_have_the_form_of_requests() {
        for (request, response, expected) in [
            (r#"{"messages":[]}"#, r#"{"object":"chat.completion"}"#, "chat.completions"),
            (r#"{"messages":[]}"#, r#"{"type":"message"}"#, "messages"),
            (r#"{"messages":[]}"#, r#"{"error":{}}"#, "chat.completions"),
            (r#"{"input":"x"}"#, r#"{"object":"response"}"#, "responses"),
            (r#"{"input":"x"}"#, r#"{"object":"list","data":[]}"#, "embeddings"),
            (r#"{"prompt":"x"}"#, r#"{"object":"text_completion"}"#, "completions"),
        ] {
            let read = |text: &'static str| reader::read(text.as_bytes(), &Limits::default()).unwrap();
            let target = ApiTarget::from_bodies(&read(request), Some(&read(response))).unwrap();
            assert_eq!(target.endpoint.name, expected);
        }
        assert!(ApiTarget::from_bodies(&Value::Null, None).is_none());
    }

    #[test]
    fn other_providers_have_names_that_a_gateway_accepts() {
        assert_eq!(ApiTarget::from_unknown_provider("Mistral.AI", "/").provider, "mistral-ai");
        assert_eq!(ApiTarget::from_unknown_provider("run", "/").provider, "provider-run");
        assert_eq!(ApiTarget::from_unknown_provider("", "/").provider, "provider-");
    }
}

//! The API that a request is of, by its URL or its bodies.

use crate::conversation::providers::{Endpoint, PROVIDERS, Provider, is_named};
use crate::digest::Digest;
use crate::json::{Object, Value};

/// The request of an API.
#[derive(Clone, Debug)]
pub(crate) struct ApiTarget {
    pub(crate) provider: String,
    pub(crate) endpoint: &'static Endpoint,
    /// The path in the API, without the query.
    pub(crate) path: String,
    /// The query, which may contain a key: only its digest is stored, and only if requests are compared by it.
    pub(crate) query: Option<String>,
}

impl ApiTarget {
    /// Returns the request with this URL or path, and this body. The path says which API it is of, because many hosts have
    /// the API of another provider; the host only if several have the path. Requests to models of other APIs are of a
    /// provider that is called like their host. The error says why there is none.
    pub(crate) fn from_url(url: &str, body: &Value<'_>) -> Result<Self, String> {
        let UrlParts { host, path, query } = split(url);
        let query = query.map(str::to_owned);
        let members = || body.as_object().into_iter().flat_map(Object::iter).map(|(name, _)| name);
        // Requests that are not to models have an input, too.
        let is_of_model = members()
            .any(|name| name == "model" || name != "input" && is_named(name, |names| names.conversation));
        let of_host = PROVIDERS.iter().find(|provider| split(provider.url).host == host && !host.is_empty());
        let of_other_host = PROVIDERS.iter().find(|provider| provider.is_at(host, path));
        let can_be_of_model = is_of_model || members().next().is_none() || body.get("input").is_some();
        // Paths of providers without a URL of their own can be those of other servers.
        let of_any_host = PROVIDERS.iter().filter(|provider| can_be_of_model && !provider.url.is_empty());
        let mut candidates = of_host.into_iter().chain(of_other_host).chain(of_any_host);
        if let Some(target) = candidates.find_map(|provider| Self::from_provider(provider, path)) {
            return Ok(Self { query, ..target });
        }
        let of_other_path = PROVIDERS.iter().find(|provider| provider.has_other_path(path, body));
        let is_at_models = of_other_host.is_some_and(|provider| provider.has_only_models);
        if !(of_other_path.is_some() || is_at_models || is_of_model) {
            return Err(of_host.or(of_other_host).map_or_else(
                || match path {
                    "" => "an address without a path is not that of a known API".to_owned(),
                    path => format!("{path} is not the path of a known API"),
                },
                |provider| format!("{path} is not a request to a model in the API of {}", provider.name),
            ));
        }
        let of_path = of_other_path.filter(|provider| !provider.members.is_empty());
        let provider = of_host.or(of_path).or(of_other_host).map_or_else(|| domain(host), |known| known.name);
        Ok(Self { query, ..Self::from_unknown_provider(provider, path) })
    }

    /// Returns the request with these bodies, if they have the form of one that is known.
    pub(crate) fn from_bodies(request: &Value<'_>, response: Option<&Value<'_>>) -> Option<Self> {
        // The first provider has what others have, too.
        PROVIDERS
            .iter()
            .rev()
            .find_map(|provider| Self::from_provider(provider, (provider.path_of_bodies)(request, response)?))
    }

    /// Returns a request of the provider with this name.
    pub(crate) fn from_name(provider: &str, path: &str) -> Option<Self> {
        Self::from_provider(Provider::named(provider)?, path)
    }

    /// Returns a request of a provider.
    pub(crate) fn from_provider(provider: &Provider, path: &str) -> Option<Self> {
        let endpoint = provider.endpoint(path)?;
        Some(Self { provider: provider.name.to_owned(), endpoint, path: path.to_owned(), query: None })
    }

    /// Returns a request of a provider that is not known, with a path of the API of `OpenAI`.
    pub(crate) fn from_unknown_provider(provider: &str, path: &str) -> Self {
        let is_word = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
        let word: String =
            provider.chars().map(|c| if is_word(&c) { c.to_ascii_lowercase() } else { '-' }).collect();
        let reserved =
            word.is_empty() || ["run", "label", "v1", "v1beta", "_runvault"].contains(&word.as_str());
        let provider = if reserved { format!("provider-{word}") } else { word };
        Self { provider, endpoint: &Endpoint::ANY, path: path.to_owned(), query: None }
    }
}

/// Returns the name of a domain, such as `cohere` for `api.cohere.com`.
fn domain(host: &str) -> &str {
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

/// The ends of the names of parameters that contain keys, without hyphens and underscores.
const CREDENTIAL_ENDINGS: [&str; 8] =
    ["key", "token", "secret", "password", "signature", "credential", "auth", "authorization"];

/// Other names of such parameters.
const CREDENTIALS: [&str; 3] = ["code", "pwd", "sig"];

/// Decodes `%XX`. Bytes that are not UTF-8 are replaced.
pub(crate) fn percent_decoded(segment: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = segment.as_bytes();
    while let [first, after @ ..] = rest {
        let code = after.get(..2).filter(|_| *first == b'%');
        let code = code.and_then(|code| std::str::from_utf8(code).ok());
        let code = code.and_then(|code| u8::from_str_radix(code, 16).ok());
        bytes.push(code.unwrap_or(*first));
        rest = if code.is_some() { after.get(2..).unwrap_or_default() } else { after };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Returns the digest of the parameters of a query that are not keys, sorted by their names; `None` if there are none. Queries are
/// compared by their digests, so that they need not be stored.
pub(crate) fn query_digest(query: &str) -> Option<String> {
    let mut parameters: Vec<&str> =
        query.split('&').filter(|parameter| !parameter.is_empty() && !is_credential(parameter)).collect();
    parameters.sort_by_key(|parameter| name(parameter));
    let query = parameters.join("&");
    (!query.is_empty()).then(|| Digest::from_content(query.as_bytes()).to_string())
}

fn name(parameter: &str) -> &str {
    parameter.split('=').next().unwrap_or_default()
}

fn is_credential(parameter: &str) -> bool {
    let letters = name(parameter).chars().filter(char::is_ascii_alphanumeric);
    let name: String = letters.map(|c| c.to_ascii_lowercase()).collect();
    CREDENTIALS.contains(&name.as_str()) || CREDENTIAL_ENDINGS.iter().any(|ending| name.ends_with(ending))
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
            (
                "https://r.openai.azure.com/openai/v1/vector_stores",
                "/openai/v1/vector_stores is not a request to a model in the API of azure",
            ),
            ("https://app.example.com/api/chat", "/api/chat is not the path of a known API"),
            ("https://example.org/login?key=secret", "/login is not the path of a known API"),
            ("//ann:secret@example.org/login", "/login is not the path of a known API"),
            ("ann:secret@example.org/login", "/login is not the path of a known API"),
            ("", "an address without a path is not that of a known API"),
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
                "vertex generateContent",
            ),
            (
                "https://r.openai.azure.com/openai/deployments/d/chat/completions?api-version=1".to_owned(),
                r#"{"messages":[]}"#,
                "azure chat.completions",
            ),
            (
                "https://r.cognitiveservices.azure.com/openai/v1/responses".to_owned(),
                r#"{"model":"m","input":"x"}"#,
                "azure responses",
            ),
            (
                "https://r.services.ai.azure.com/models/chat/completions".to_owned(),
                r#"{"model":"m"}"#,
                "azure chat.completions",
            ),
            (
                "https://r.services.ai.azure.com/anthropic/v1/messages".to_owned(),
                r#"{"model":"m"}"#,
                "anthropic messages",
            ),
            (
                "https://r.openai.azure.com/openai/deployments/d/images/generations".to_owned(),
                r#"{"prompt":"x"}"#,
                "azure json",
            ),
            (
                "https://proxy.example.org/openai/deployments/d/embeddings".to_owned(),
                r#"{"input":"x"}"#,
                "azure embeddings",
            ),
            ("https://api.openai.com/v1/moderations".to_owned(), r#"{"input":"x"}"#, "openai json"),
            ("https://api.openai.com/v1/images/generations".to_owned(), r#"{"prompt":"x"}"#, "openai json"),
            ("https://api.anthropic.com/v1/complete".to_owned(), r#"{"prompt":"x"}"#, "anthropic json"),
            ("http://localhost:11434/api/chat".to_owned(), r#"{"model":"m"}"#, "ollama json"),
            (
                "https://ollama.com/api/chat".to_owned(),
                r#"{"model":"m","messages":[],"other":1}"#,
                "ollama json",
            ),
            (
                "https://app.example.com/api/chat".to_owned(),
                r#"{"id":"1","messages":[{"role":"user","parts":[]}],"trigger":"submit-message"}"#,
                "example json",
            ),
            (
                "http://localhost:3000/api/chat".to_owned(),
                r#"{"model":"m","messages":[],"chatId":"1"}"#,
                "local json",
            ),
            ("https://api.cohere.com/v2/chat".to_owned(), r#"{"model":"m"}"#, "cohere json"),
            ("https://api.cohere.ai/v1/rerank".to_owned(), r#"{"query":"x"}"#, "cohere json"),
            (
                "https://bedrock-runtime.us-east-1.amazonaws.com/model/a.b/invoke".to_owned(),
                r#"{"inputText":"x"}"#,
                "bedrock invoke",
            ),
            ("https://example.org/invoke".to_owned(), r#"{"input":"x","model":"m"}"#, "example json"),
            (
                "https://us-aiplatform.googleapis.com/v1/projects/p/models/c:rawPredict".to_owned(),
                r#"{"messages":[]}"#,
                "vertex rawPredict",
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

    #[test]
    fn keys_are_not_compared() {
        for query in ["", "key=1", "api-key=1&API_KEY=2", "access_token=1&X-Amz-Signature=2&sig=3"] {
            assert_eq!(query_digest(query), None, "{query}");
        }
        assert!(query_digest("task=a").is_some());
        assert_ne!(query_digest("task=a"), query_digest("task=b"));
        assert_eq!(query_digest("task=a&n=1&key=x"), query_digest("n=1&key=y&task=a"));
        assert_ne!(query_digest("a=1&a=2"), query_digest("a=2&a=1"));
    }
}

//! The API that a recorded request is of.

use crate::calls::provider::{ANY, Endpoint, PROVIDERS, Provider};
use crate::json::Value;

/// The request of an API.
#[derive(Clone, Debug)]
pub(super) struct ApiTarget {
    pub(super) provider: String,
    pub(super) endpoint: &'static Endpoint,
    /// The path in the API, without the query, which may contain a key.
    pub(super) path: String,
}

impl ApiTarget {
    /// Returns the request with this URL or path: that of the provider with this host, or of the one whose API has the
    /// path. The error says why there is none.
    pub(super) fn from_url(url: &str) -> Result<Self, String> {
        let (host, path) = split(url);
        let of_host = PROVIDERS.iter().find(|provider| split(provider.url).0 == host && !host.is_empty());
        let has_path = |provider: &&Provider| provider.endpoint(path).is_some();
        let Some(provider) = of_host.or_else(|| PROVIDERS.iter().find(has_path)) else {
            // Without a scheme, the user and the password are a part of it.
            let shown = path.rsplit('@').next().unwrap_or_default();
            return Err(format!("{shown} is not the path of a known API"));
        };
        let Some(endpoint) = provider.endpoint(path) else {
            return Err(format!("{path} is not a request to a model in the API of {}", provider.name));
        };
        Ok(Self { provider: provider.name.to_owned(), endpoint, path: path.to_owned() })
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
        Some(Self { provider: provider.name.to_owned(), endpoint, path: path.to_owned() })
    }

    /// Returns a request of a provider that is not known, with a path of the API of `OpenAI`.
    pub(super) fn from_unknown_provider(provider: &str, path: &str) -> Self {
        let is_word = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
        let word: String =
            provider.chars().map(|c| if is_word(&c) { c.to_ascii_lowercase() } else { '-' }).collect();
        let reserved =
            word.is_empty() || ["run", "label", "v1", "v1beta", "_runvault"].contains(&word.as_str());
        let provider = if reserved { format!("provider-{word}") } else { word };
        Self { provider, endpoint: &ANY, path: path.to_owned() }
    }
}

/// Returns the host of a URL, without the port, and the path, without the query. A path has no host.
fn split(url: &str) -> (&str, &str) {
    let url = url.split(['?', '#']).next().unwrap_or_default();
    let Some(rest) = url.split_once("://").map(|(_, rest)| rest).or_else(|| url.strip_prefix("//")) else {
        return ("", url);
    };
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let host = authority.rsplit('@').next().unwrap_or_default();
    (host.split(':').next().unwrap_or_default(), path)
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
            (
                "https://generativelanguage.googleapis.com/v1beta/models/g:generateContent?key=secret",
                "gemini generateContent /v1beta/models/g:generateContent",
            ),
        ] {
            let ApiTarget { provider, endpoint, path } = ApiTarget::from_url(url).unwrap();
            assert_eq!(format!("{provider} {} {path}", endpoint.name), expected);
        }
        for (url, reason) in [
            (
                "https://api.openai.com/v1/models",
                "/v1/models is not a request to a model in the API of openai",
            ),
            ("https://example.org/login?key=secret", "/login is not the path of a known API"),
            ("//ann:secret@example.org/login", "/login is not the path of a known API"),
            ("ann:secret@example.org/login", "example.org/login is not the path of a known API"),
            ("", " is not the path of a known API"),
        ] {
            assert_eq!(ApiTarget::from_url(url).unwrap_err(), reason);
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

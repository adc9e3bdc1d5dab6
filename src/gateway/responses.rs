//! Responses of the gateway itself: problems, refusals, and where only recordings are replayed, which models there are and
//! how many tokens a request has.

use std::collections::BTreeSet;
use std::net::SocketAddr;

use axum::body::Body;
use axum::http::header::{
    CONNECTION, CONTENT_TYPE, HOST, HeaderMap, HeaderName, HeaderValue, ORIGIN, UPGRADE,
};
use axum::http::{Method, Response, StatusCode};
use serde_json::{Value as Json, json};

use super::recordings::{RecordedRunPack, RecordingSearch, RunPackCache};
use super::route::Route;
use crate::conversation::providers::provider::MODELS;
use crate::conversation::providers::{Provider, metadata_form};
use crate::digest::CoreHash;
use crate::json::Value;
use crate::json::reader::{self, Limits};
use crate::server::is_own_host;
use crate::vault::LookupError;

/// Returns a response with a problem document (RFC 9457).
pub(super) fn problem(status: StatusCode, title: &str, detail: &str) -> Response<Body> {
    json_problem(status, &problem_document(status, title, detail))
}

/// Returns a response with a problem document that clients of a provider can show.
pub(super) fn problem_for(provider: &str, status: StatusCode, title: &str, detail: &str) -> Response<Body> {
    json_problem(status, &for_clients(provider, status, problem_document(status, title, detail)))
}

/// Returns a problem document. The member `error` is where clients of providers look for a message.
pub(super) fn problem_document(status: StatusCode, title: &str, detail: &str) -> Json {
    json!({
        "type": "about:blank",
        "title": title,
        "status": status.as_u16(),
        "detail": detail,
        "error": {"message": format!("{title}: {detail}"), "type": title.replace(' ', "_")},
    })
}

/// Adds the members without which some clients of a provider do not show the message of an error.
pub(super) fn for_clients(provider: &str, status: StatusCode, mut document: Json) -> Json {
    (metadata_form(provider).complete_error)(&mut document, status.as_u16());
    document
}

/// Returns a response with a problem document.
pub(super) fn json_problem(status: StatusCode, document: &Json) -> Response<Body> {
    let mut response = json_response(status, document);
    let value = HeaderValue::from_static("application/problem+json");
    response.headers_mut().insert(CONTENT_TYPE, value);
    response
}

/// Adds the header with which clients do not repeat a request. Only for a response that would be the same again: clients
/// would wait between their attempts.
pub(super) fn not_retried(mut response: Response<Body>) -> Response<Body> {
    let name = HeaderName::from_static("x-should-retry");
    response.headers_mut().insert(name, HeaderValue::from_static("false"));
    response
}

/// Returns the response to a request for a connection of another protocol. Clients use HTTP then.
pub(super) fn upgrade_refused() -> Response<Body> {
    let reason = "the gateway has no WebSocket for this request; it can be made with HTTP";
    let mut response = problem(StatusCode::UPGRADE_REQUIRED, "upgrade refused", reason);
    let headers = response.headers_mut();
    // The response must name the protocol that can be used (RFC 9110).
    headers.insert(UPGRADE, HeaderValue::from_static("HTTP/1.1"));
    headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
    response
}

/// Returns a response with a JSON document.
pub(super) fn json_response(status: StatusCode, document: &Json) -> Response<Body> {
    let mut response = Response::new(Body::from(format!("{document}\n")));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// Returns why a request is refused. Pages of other sites that a browser shows cannot use the gateway.
pub(super) fn refusal(listening: SocketAddr, headers: &HeaderMap) -> Option<(StatusCode, &'static str)> {
    if headers.get_all(HOST).iter().count() > 1 {
        return Some((StatusCode::BAD_REQUEST, "the request has several Host headers"));
    }
    let host = headers.get(HOST).and_then(|host| host.to_str().ok());
    // At another interface, the gateway has names that it does not know.
    if listening.ip().is_loopback() && !host.is_some_and(|host| is_own_host(host, listening)) {
        return Some((
            StatusCode::MISDIRECTED_REQUEST,
            "this gateway is not at the address that the request names",
        ));
    }
    let site = headers.get("sec-fetch-site").and_then(|site| site.to_str().ok());
    let is_of_other_site = site.is_some_and(|site| ["cross-site", "same-site"].contains(&site));
    let mut origins = headers.get_all(ORIGIN).iter();
    let is_of_other_origin =
        origins.any(|origin| !origin.to_str().is_ok_and(|origin| is_own_origin(origin, host, listening)));
    (is_of_other_site || is_of_other_origin)
        .then_some((StatusCode::FORBIDDEN, "pages of other sites cannot use this gateway"))
}

/// Returns whether an origin is that of the gateway: the host that the request names, or another name of the address at
/// which the gateway listens.
fn is_own_origin(origin: &str, host: Option<&str>, listening: SocketAddr) -> bool {
    // A server in front of the gateway can add TLS.
    let Some(name) = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://")) else {
        return false;
    };
    host.is_some_and(|host| host.eq_ignore_ascii_case(name)) || is_own_host(name, listening)
}

/// The number of run packs whose models are listed.
const LISTED: usize = 32;

/// The number of bytes of text that are counted as a token.
const BYTES_OF_TOKEN: usize = 4;

/// A request for something that recordings tell.
pub(super) enum MetadataRequest {
    /// Whether there is a server.
    Head,
    /// The models.
    Models,
    /// A model.
    Model(String),
}

impl MetadataRequest {
    /// Recognizes a request.
    pub(super) fn new(method: &Method, route: &Route) -> Option<Self> {
        if method == Method::HEAD {
            return Some(Self::Head);
        }
        if method != Method::GET {
            return None;
        }
        let path = route.path.trim_end_matches('/');
        let version = Provider::named(&route.provider).map(|provider| provider.version);
        let path = path.strip_prefix('/').unwrap_or(path);
        let path = version.and_then(|version| path.strip_prefix(version)?.strip_prefix('/')).unwrap_or(path);
        match path.strip_prefix(MODELS)?.strip_prefix('/') {
            None if path == MODELS => Some(Self::Models),
            Some(name) if !name.is_empty() => Some(Self::Model(name.to_owned())),
            _ => None,
        }
    }

    /// Answers the request from the run pack `only`, or from those that were seen last.
    pub(super) fn answer(
        self,
        recordings: &RunPackCache,
        only: Option<CoreHash>,
        provider: &str,
    ) -> Result<Response<Body>, LookupError> {
        let form = metadata_form(provider);
        let models = || models(recordings, only, provider);
        let document = match self {
            Self::Head => return Ok(Response::new(Body::empty())),
            Self::Model(name) if !models()?.contains(&name) => {
                let reason = format!("no call of the model {name} was recorded");
                return Ok(not_retried(problem_for(
                    provider,
                    StatusCode::NOT_FOUND,
                    "not recorded",
                    &reason,
                )));
            }
            Self::Model(name) => (form.model)(provider, &name),
            Self::Models => {
                let models = models()?;
                (form.models)(models.iter().map(|name| (form.model)(provider, name)).collect(), &models)
            }
        };
        Ok(json_response(StatusCode::OK, &document))
    }
}

/// Returns the models that were asked.
fn models(
    recordings: &RunPackCache,
    only: Option<CoreHash>,
    provider: &str,
) -> Result<BTreeSet<String>, LookupError> {
    let (mut models, mut listed) = (BTreeSet::new(), 0);
    recordings.visit(only, RecordingSearch::All, &mut |pack: RecordedRunPack| {
        let recorded = pack.recorded.iter().filter(|recorded| recorded.request.provider == provider);
        // A request that names no model has the name of the API in its place.
        let recorded = recorded.filter(|recorded| recorded.model != recorded.request.endpoint);
        models.extend(recorded.map(|recorded| recorded.model.clone()));
        listed += 1;
        listed < LISTED
    })?;
    Ok(models)
}

/// Returns the answer to a request for the number of tokens that was not recorded: an estimate, in the member `count`.
pub(super) fn estimated_count(count: &str, prompt: &str) -> Response<Body> {
    let prompt = reader::read(prompt.as_bytes(), &Limits::most()).ok();
    let bytes = prompt.as_ref().map_or(0, text_bytes);
    let mut answer = json!({count: bytes.div_ceil(BYTES_OF_TOKEN)});
    if let Some(members) = answer.as_object_mut().filter(|_| count == "input_tokens") {
        // The API of OpenAI has it, and clients of Anthropic ignore it.
        members.insert("object".to_owned(), json!("response.input_tokens"));
    }
    json_response(StatusCode::OK, &answer)
}

/// Returns the number of bytes of the strings in a value.
fn text_bytes(value: &Value<'_>) -> usize {
    match value {
        Value::String(text) => text.len(),
        Value::Array(elements) => elements.iter().map(text_bytes).sum(),
        Value::Object(members) => members.iter().map(|(_, member)| text_bytes(member)).sum(),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(listening: &str, headers: &[(&'static str, &str)]) -> Option<u16> {
        let headers = headers.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()));
        let headers: HeaderMap = headers.fold(HeaderMap::new(), |mut all, (name, value)| {
            let name: axum::http::HeaderName = name;
            all.append(name, value);
            all
        });
        refusal(listening.parse().unwrap(), &headers).map(|(status, _)| status.as_u16())
    }

    #[test]
    fn other_hosts_and_origins_are_refused() {
        let own = ("host", "127.0.0.1:9");
        for (headers, expected) in [
            (&[own][..], None),
            (&[("host", "evil.example:9")], Some(421)),
            (&[own, ("host", "evil.example:9")], Some(400)),
            (&[own, ("origin", "http://127.0.0.1:9")], None),
            (&[own, ("origin", "http://localhost:9")], None),
            (&[own, ("origin", "http://localhost:8")], Some(403)),
            (&[own, ("origin", "https://evil.example")], Some(403)),
            (&[own, ("origin", "null")], Some(403)),
            (&[own, ("sec-fetch-site", "same-site")], Some(403)),
            (&[own, ("sec-fetch-site", "none")], None),
        ] {
            assert_eq!(status("127.0.0.1:9", headers), expected, "{headers:?}");
        }
        assert_eq!(status("0.0.0.0:9", &[("host", "models.example")]), None);
        assert_eq!(status("0.0.0.0:9", &[("host", "a"), ("host", "b")]), Some(400));
        let origin = ("origin", "https://models.example");
        assert_eq!(status("0.0.0.0:9", &[("host", "models.example"), origin]), None);
        assert_eq!(status("0.0.0.0:9", &[("host", "192.0.2.7:9"), origin]), Some(403));
    }
}

//! Answers to requests that are no calls of a model, where only recordings are replayed: which models there are, and how
//! many tokens a request has.

use std::collections::BTreeSet;

use axum::body::Body;
use axum::http::{Method, Response, StatusCode};
use serde_json::json;

use super::problem::{json_response, not_retried, problem_for};
use super::recordings::{RecordedRunPack, RunPackCache};
use super::route::Route;
use crate::calls::providers::{MODELS, Provider, metadata_form};
use crate::digest::CoreHash;
use crate::json::Value;
use crate::json::reader::{self, Limits};
use crate::vault::{LookupError, Vault};

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
        vault: &Vault,
        recordings: &RunPackCache,
        only: Option<CoreHash>,
        provider: &str,
    ) -> Result<Response<Body>, LookupError> {
        let models = match self {
            Self::Head => return Ok(Response::new(Body::empty())),
            Self::Models | Self::Model(_) => models(vault, recordings, only, provider)?,
        };
        let form = metadata_form(provider);
        Ok(match self {
            Self::Model(name) if !models.contains(&name) => {
                let reason = format!("no call of the model {name} was recorded");
                not_retried(problem_for(provider, StatusCode::NOT_FOUND, "not recorded", &reason))
            }
            Self::Model(name) => json_response(StatusCode::OK, &(form.model)(provider, &name)),
            _ => {
                let all = models.iter().map(|name| (form.model)(provider, name)).collect();
                json_response(StatusCode::OK, &(form.models)(all, &models))
            }
        })
    }
}

/// Returns the models that were asked.
fn models(
    vault: &Vault,
    recordings: &RunPackCache,
    only: Option<CoreHash>,
    provider: &str,
) -> Result<BTreeSet<String>, LookupError> {
    let (mut models, mut listed) = (BTreeSet::new(), 0);
    let mut add = |pack: RecordedRunPack| {
        let recorded = pack.recorded.iter().filter(|recorded| recorded.provider == provider);
        // A request that names no model has the name of the API in its place.
        let recorded = recorded.filter(|recorded| recorded.model != recorded.endpoint);
        models.extend(recorded.map(|recorded| recorded.model.clone()));
        listed += 1;
        listed < LISTED
    };
    match only {
        Some(core) => {
            if let Some(pack) = recordings.pack(vault, core)? {
                add(pack);
            }
        }
        None => recordings.visit(vault, None, &mut add)?,
    }
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

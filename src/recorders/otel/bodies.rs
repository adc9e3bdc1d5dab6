//! Spans of `OpenInference`, which contain the bodies of a request and its response.

use super::reading::OtelSpan;
use crate::json::Value;
use crate::json::reader::{self, Limits};
use crate::recorders::exchange::{ImportedExchange, ImportedRequest, ImportedResponse};
use crate::recorders::target::ApiTarget;

/// The attribute with the sort of a span, and the sorts that are calls of a model.
const KIND: &str = "openinference.span.kind";
const CALLS: &[&str] = &["LLM", "EMBEDDING"];

/// The attributes that name the provider.
const PROVIDER: &[&str] = &["llm.system", "llm.provider"];

impl OtelSpan {
    /// Returns whether it is a call of a model in the form of `OpenInference`.
    pub(super) fn has_bodies(&self) -> bool {
        self.text(KIND).is_some_and(|kind| CALLS.contains(&kind))
    }

    /// Returns whether it has the body of a request.
    pub(super) fn has_body_of_request(&self) -> bool {
        self.document("input.value").is_some_and(|body| body.get("model").is_some())
    }

    /// Returns whether it has the messages of a request as attributes.
    pub(super) fn has_numbered_messages(&self) -> bool {
        self.attributes.keys().any(|name| name.starts_with("llm.input_messages."))
    }

    /// Returns the exchange. The error says why there is none.
    pub(super) fn into_exchange_of_bodies(self) -> Result<ImportedExchange, String> {
        let request = self.document("input.value").filter(|body| body.get("model").is_some());
        let request = request.ok_or("the input of the span is not the body of a request")?;
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
            (None, Some(response)) => ImportedResponse::json(200, &response),
            (None, None) => return Err("the span has no answer of the model".to_owned()),
        };
        let request = ImportedRequest::Json { target, body: request };
        Ok(ImportedExchange { location, request, reply, at: started, latency_ms })
    }

    /// Returns the object that an attribute is the text of.
    fn document(&self, name: &str) -> Option<Value<'static>> {
        let document = reader::read(self.text(name)?.as_bytes(), &Limits::default()).ok()?;
        document.as_object().is_some().then(|| document.to_owned_value())
    }

    fn target(&self, request: &Value<'_>, response: Option<&Value<'_>>) -> Option<ApiTarget> {
        if PROVIDER.iter().any(|name| self.text(name) == Some("anthropic")) {
            return ApiTarget::from_known_provider("anthropic", "/v1/messages");
        }
        ApiTarget::from_bodies(request, response)
    }

    fn is_streamed(&self, request: &Value<'_>) -> bool {
        let asks = |body: &Value<'_>| body.get("stream") == Some(&Value::Bool(true));
        asks(request)
            || self.document("llm.invocation_parameters").is_some_and(|parameters| asks(&parameters))
    }
}

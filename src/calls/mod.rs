//! Calls of models: what was asked and what came back, the prompt by which requests are compared, and the two documents
//! that a run of calls becomes, a session (`model_io`) and a run pack (`rpk`).
//!
//! `gateway` makes runs of the calls that it forwards, [`recorders`](crate::recorders) of the files of other programs.
//! `docs/gateway.md` specifies the documents.

#![cfg_attr(not(feature = "gateway"), allow(dead_code, reason = "a gateway uses what imports do not"))]

pub(crate) mod assembled;
pub(crate) mod body;
pub(crate) mod call;
pub mod conversation;
pub(crate) mod events;
pub(crate) mod matching;
pub mod message;
pub(crate) mod normalize;
pub(crate) mod providers;
pub(crate) mod recorded_run;
mod redaction;
pub(crate) mod request_store;
pub(crate) mod run;
pub(crate) mod run_parts;
pub(crate) mod session;
pub(crate) mod target;

use std::borrow::Cow;

use crate::json::{Number, Object, Value};

pub use matching::{InvalidRule, MatchingRules};
pub use providers::{Endpoint, PROVIDERS, Provider, REPLAY_KEY, base_url_variables, key_variables};

/// Returns a string.
pub(crate) fn text<'v>(text: impl Into<Cow<'v, str>>) -> Value<'v> {
    Value::String(text.into())
}

/// Returns a number.
pub(crate) fn integer(number: u64) -> Value<'static> {
    Value::Number(Number::from_literal(number.to_string()))
}

/// Returns an object. The caller guarantees that names are unique.
pub(crate) fn object<'v, 'n: 'v>(members: impl IntoIterator<Item = (&'n str, Value<'v>)>) -> Value<'v> {
    let members = members.into_iter().map(|(name, value)| (Cow::Borrowed(name), value));
    Value::Object(Object::from_members(members.collect()))
}

/// Returns the text that is a member.
pub(crate) fn word<'v>(value: &'v Value<'_>, name: &str) -> Option<&'v str> {
    value.get(name).and_then(Value::as_str)
}

/// Returns the value at a path of member names and array indexes.
pub(crate) fn at<'v, 'a>(value: &'v Value<'a>, path: &[&str]) -> Option<&'v Value<'a>> {
    path.iter().try_fold(value, |value, name| match value {
        Value::Array(elements) => elements.get(name.parse::<usize>().ok()?),
        _ => value.get(name),
    })
}

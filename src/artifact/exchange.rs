//! Exchanges with models, and the events of runs.

use std::borrow::Cow;
use std::ops::ControlFlow;

use crate::digest::Digest;
use crate::json::Value;
use crate::json::canonical::c14n_v1;
use crate::json::reader::{self, Limits};

/// How the recordings of a kind are replayed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Playback {
    /// Each response is identified by the one prompt that it answers.
    ByPrompt,
    /// The responses are ordered; the requests that they answer may be unknown.
    InOrder,
}

/// The source of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Responder {
    /// A model.
    Model,
    /// A tool.
    Tool,
}

impl Responder {
    /// Returns the machine-readable name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Model => "model",
            Self::Tool => "tool",
        }
    }
}

/// A recorded response and its request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exchange {
    /// The number of the interaction or step that contains the response, from 0.
    pub index: usize,
    /// The source of the response.
    pub responder: Responder,
    /// The digests of the texts in the request, in its order: the last is the final prompt. Empty if the request is
    /// unknown.
    pub prompts: Vec<Digest>,
    /// The name of the tool that responded, if it was recorded.
    pub tool: Option<String>,
    /// The arguments of the tool call, if they were recorded.
    pub arguments: Option<Arguments>,
    /// The text of the response. If there is not exactly one, the whole recorded response as JSON.
    pub response: String,
    /// What the response says, if that is not its text: the same for two answers that differ only in ids, times and numbers of
    /// tokens.
    pub said: Option<String>,
    /// The whole recorded response as JSON, if it may contain more than the text.
    pub output: Option<String>,
    /// Whether the call failed: the response is then the recorded error message.
    pub is_error: bool,
}

/// The arguments of a tool call, normalized for comparison.
///
/// The form is canonical JSON (`json-c14n-v1`) of the arguments after these steps: a string that contains a JSON object
/// or list is replaced by it, because APIs send arguments as JSON text; `{"args": […], "kwargs": {…}}` is replaced by
/// the non-empty one if the other is empty; `null`, `[]` and `{}` all become `{}`, a call without arguments.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Arguments(String);

impl Arguments {
    /// Creates the arguments from `value`. Returns `None` if it contains a number without a canonical form, which is
    /// impossible for a value that was read.
    #[must_use]
    pub fn from_value(value: &Value<'_>) -> Option<Self> {
        if let Some(text) = value.as_str().filter(|text| text.trim_start().starts_with(['{', '[']))
            && let Ok(held) = reader::read(text.as_bytes(), &Limits::default())
        {
            return Self::from_value(&held);
        }
        if let Some(only) = positional_or_named(value) {
            return Self::from_value(only);
        }
        let text = if is_empty(value) { b"{}".to_vec() } else { c14n_v1::to_vec(value).ok()? };
        String::from_utf8(text).ok().map(Self)
    }

    /// Returns the arguments as canonical JSON.
    #[must_use]
    pub fn as_json(&self) -> &str {
        &self.0
    }

    /// Returns the SHA-256 of the canonical JSON.
    #[must_use]
    pub fn digest(&self) -> Digest {
        Digest::from_content(self.0.as_bytes())
    }
}

/// Returns the arguments in an object with positional and named ones, if only one of the two is present. Python
/// recorders write both, and most calls have one.
fn positional_or_named<'v, 'd>(value: &'v Value<'d>) -> Option<&'v Value<'d>> {
    let object = value.as_object()?;
    let is_of_both = object.iter().all(|(name, _)| matches!(name, "args" | "kwargs"));
    let (args, kwargs) = (object.get("args"), object.get("kwargs"));
    match (args.filter(|args| !is_empty(args)), kwargs.filter(|kwargs| !is_empty(kwargs))) {
        _ if !is_of_both => None,
        (Some(_), Some(_)) => None,
        (Some(only), None) | (None, Some(only)) => Some(only),
        (None, None) => args.or(kwargs),
    }
}

fn is_empty(value: &Value<'_>) -> bool {
    match value {
        Value::Null => true,
        Value::Array(elements) => elements.is_empty(),
        Value::Object(object) => object.iter().len() == 0,
        Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

/// A request of a model, complete.
pub struct RecordedRequest<'r> {
    /// The number of the step that contains it.
    pub index: usize,
    /// The body of the request.
    pub payload: &'r Value<'r>,
    /// What it repeats of an earlier request, if the document states that.
    pub repeated: Option<RepeatedElements<'r>>,
    /// The digest of the text that the request is compared by, if it is stated.
    pub prompt_hash: Option<Digest>,
    /// Returns the text that the request is compared by.
    pub prompt: &'r dyn Fn() -> Option<String>,
}

/// The beginning of a list in a request: all elements that the same list of an earlier request has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RepeatedElements<'r> {
    /// The number of the step that contains the earlier request.
    pub index: usize,
    /// The name of the member of both bodies with the list.
    pub name: &'r str,
    /// Number of elements.
    pub count: usize,
}

/// A function that is called with requests, and returns whether there is need of further ones.
pub type RequestVisitor<'f> = dyn for<'r> FnMut(RecordedRequest<'r>) -> ControlFlow<()> + 'f;

/// An event of a run, for audits.
#[derive(Clone, Debug)]
pub enum RunEvent<'v, 'd> {
    /// A call to something outside the agent: a tool call, a step of an engine, an action of a runner.
    Call(Box<RunCall<'v, 'd>>),
    /// A statement of the recorder about the run. Requests to models and their responses are not statements.
    Statement {
        /// The number of the step or record that states it; 0 if the run as a whole does.
        at: usize,
        /// What is stated.
        value: &'v Value<'d>,
    },
}

/// A callback that receives the events of a run, in order.
pub type EventVisitor<'f> = dyn for<'v, 'd> FnMut(RunEvent<'v, 'd>) + 'f;

/// A call and its result.
#[derive(Clone, Debug)]
pub struct RunCall<'v, 'd> {
    /// The location of the request, such as `step 5`, or that of the result if there is no request.
    pub place: String,
    /// The names of the target as recorded.
    pub names: CallNames<'v>,
    /// The number of the step or record at which it began.
    pub began: usize,
    /// The number of the step or record with its result.
    pub ended: usize,
    /// The arguments, if they are recorded.
    pub arguments: Option<Cow<'v, Value<'d>>>,
    /// What else was recorded of the request, such as its headers.
    pub envelope: Vec<&'v Value<'d>>,
    /// The retry key: calls with the same key are attempts at the same operation, of which the last one decides.
    pub attempt_at: String,
    /// Whether it is part of a result that is also recorded as a whole, so that it counts only if the target is known.
    pub is_part: bool,
    /// The result of the call.
    pub answer: RunCallResult<'v, 'd>,
}

/// The result of a call.
#[derive(Clone, Debug)]
pub enum RunCallResult<'v, 'd> {
    /// No result is recorded.
    None,
    /// A result that counts as evidence.
    Result {
        /// The location of the result, such as `step 6`.
        place: String,
        /// The result.
        value: &'v Value<'d>,
    },
    /// The call failed, or its result does not prove an effect.
    Discounted {
        /// The location of the result.
        place: String,
        /// The result, if there is one.
        value: Option<&'v Value<'d>>,
        /// The reason it does not count, such as `an error follows at step 7`.
        why: String,
    },
}

/// The recorded names of the target of a call.
#[derive(Clone, Debug, Default)]
pub struct CallNames<'v> {
    /// The names of the tool. Requests and responses may state different names.
    pub tools: Vec<&'v str>,
    /// The URL of an HTTP request.
    pub url: Option<&'v str>,
    /// The IO reference, if the run states one.
    pub io_ref: Option<&'v str>,
    /// Names that may refer to an effect or a target or something else: names of steps, actions and destinations.
    pub labels: Vec<&'v str>,
    /// `read`, `write` or `mutate`, or an HTTP method, if stated.
    pub mode: Option<&'v str>,
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn arguments(json: &str) -> String {
        let value = reader::read(json.as_bytes(), &Limits::default()).unwrap();
        Arguments::from_value(&value).unwrap().0
    }

    #[test]
    fn the_same_call_has_one_form() {
        for same in [
            r#"{"city": "Paris", "days": 3}"#,
            r#"{"days":3,"city":"Paris"}"#,
            r#"{"args": [], "kwargs": {"days": 3, "city": "Paris"}}"#,
            r#"{"kwargs": {"days": 3, "city": "Paris"}}"#,
            r#""{\"city\": \"Paris\", \"days\": 3}""#,
        ] {
            assert_eq!(arguments(same), r#"{"city":"Paris","days":3}"#, "{same}");
        }
        for none in ["null", "[]", "{}", r#"{"args": [], "kwargs": {}}"#, r#"{"args": null}"#, r#""{}""#] {
            assert_eq!(arguments(none), "{}", "{none}");
        }
        assert_eq!(arguments(r#"{"args": ["weather"], "kwargs": {}}"#), r#"["weather"]"#);
        assert_eq!(arguments(r#"{"args":[1],"kwargs":{"a":2}}"#), r#"{"args":[1],"kwargs":{"a":2}}"#);
        assert_eq!(arguments(r#"{"args": {"args": ["{\"kwargs\": 1}"]}}"#), r#"["{\"kwargs\": 1}"]"#);
    }

    #[test]
    fn other_calls_have_other_forms() {
        let calls = [
            "1",
            "1.0",
            "\"1\"",
            "12345678901234567890123",
            "12345678901234567890124",
            "[1]",
            "[[1]]",
            "{\"a\":1}",
            "{\"a\":null}",
            "{\"args\":[],\"other\":1}",
            "\"*** Begin Patch\"",
            "\"[not JSON\"",
            "\"\"",
            "false",
            "0",
        ];
        let forms: std::collections::BTreeSet<String> = calls.into_iter().map(arguments).collect();
        assert_eq!(forms.len(), calls.len(), "{forms:?}");
    }

    proptest! {
        /// Normalizing is idempotent: a request with the arguments of a listing is the same call.
        #[test]
        fn the_form_of_a_form_is_itself(text: String, number: i64, names in prop::collection::vec("args|kwargs|a", 0..4)) {
            let mut json = serde_json::json!([text, number]);
            for name in names {
                json = serde_json::json!({ name: json, "kwargs": {} });
                let form = arguments(&json.to_string());
                prop_assert_eq!(arguments(&form), form.clone());
                prop_assert_eq!(arguments(&serde_json::Value::from(form.as_str()).to_string()), form);
            }
        }
    }
}

//! The calls of Gemini, which Inspect records as the client for Python takes and returns them, not as it sends them.

use std::borrow::Cow;

use crate::calls::target::ApiTarget;
use crate::json::members::{object, text};
use crate::json::{Object, Value};
use crate::recorders::exchange::contents_target;

/// The arguments of the client, and the members of requests that they become.
const ARGUMENTS: &[(&str, &str)] = &[
    ("generation_config", GENERATION_CONFIG),
    ("safety_settings", "safetySettings"),
    ("system_instruction", SYSTEM_INSTRUCTION),
    ("tool_config", "toolConfig"),
];

const GENERATION_CONFIG: &str = "generationConfig";
const SYSTEM_INSTRUCTION: &str = "systemInstruction";

/// The members of the client's configuration that requests have beside it.
const BESIDE_CONFIG: &[&str] = &["cachedContent", "labels", "modelArmorConfig", "serviceTier", "store"];

/// The members of the client's configuration that it does not send.
const CLIENT_CONFIG: &[&str] = &["automaticFunctionCalling", "httpOptions", "shouldReturnHttpResponse"];

/// The members of responses that the client adds, such as their headers.
const CLIENT_RESPONSE: &[&str] = &["automaticFunctionCallingHistory", "parsed", "sdkHttpResponse"];

/// The members of an object.
type ObjectMembers = Vec<(Cow<'static, str>, Value<'static>)>;

/// A call in the form of the API.
pub(super) struct GeminiCall {
    pub(super) target: ApiTarget,
    pub(super) request: Value<'static>,
    pub(super) response: Value<'static>,
    /// The members of the client, which are not part of either.
    pub(super) others: Vec<&'static str>,
}

impl GeminiCall {
    /// Returns a call that was recorded with the model of this name; `None` if it is not one of Gemini.
    pub(super) fn read(model: &str, request: &Value<'static>, response: &Value<'static>) -> Option<Self> {
        let target = contents_target(request, response, model)?;
        let mut others = Vec::new();
        let mut members = Vec::new();
        for (name, value) in request.as_object()?.iter() {
            let argument = ARGUMENTS.iter().find(|(argument, _)| *argument == name);
            let member = argument.map(|(_, member)| *member).filter(|member| request.get(member).is_none());
            let name = member.map_or_else(|| Cow::Owned(name.to_owned()), Cow::Borrowed);
            match (name.as_ref(), value) {
                (GENERATION_CONFIG, Value::Object(config)) => {
                    let is_beside = |name: &str| BESIDE_CONFIG.contains(&name) && request.get(name).is_none();
                    let config = without(config, CLIENT_CONFIG, &mut others).into_iter();
                    let (beside, inside): (ObjectMembers, _) = config.partition(|(name, _)| is_beside(name));
                    members.push((name, Value::Object(Object::from_members(inside))));
                    members.extend(beside);
                }
                (SYSTEM_INSTRUCTION, Value::Array(parts)) => members.push((name, instruction(parts))),
                _ => members.push((name, value.clone())),
            }
        }
        let response = Object::from_members(without(response.as_object()?, CLIENT_RESPONSE, &mut others));
        let request = Value::Object(Object::from_members(members));
        Some(Self { target, request, response: Value::Object(response), others })
    }
}

/// Returns the members of an object without those with these names, which are added to `others`, and without null members.
fn without(
    members: &Object<'static>,
    names: &[&'static str],
    others: &mut Vec<&'static str>,
) -> ObjectMembers {
    others.extend(names.iter().filter(|name| members.get(name).is_some_and(|member| !member.is_null())));
    let kept = members.iter().filter(|(name, value)| !names.contains(name) && !value.is_null());
    kept.map(|(name, value)| (Cow::Owned(name.to_owned()), value.clone())).collect()
}

/// Returns the content that the client makes of texts and parts.
fn instruction(parts: &[Value<'static>]) -> Value<'static> {
    let parts = parts.iter().map(|part| match part {
        Value::String(_) => object([("text", part.clone())]),
        part => part.clone(),
    });
    object([("parts", Value::Array(parts.collect())), ("role", text("user"))])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::compact;
    use crate::json::reader::{self, Limits};

    fn value(text: &str) -> Value<'static> {
        reader::read(text.as_bytes(), &Limits::default()).unwrap().into_owned_value()
    }

    #[test]
    fn arguments_of_the_client_become_a_request() {
        let request = value(
            r#"{"generation_config":{"httpOptions":{"headers":{}},"temperature":0.5,"seed":null,"cachedContent":"c"},
            "safety_settings":[],"tools":[],"tool_config":{},"system_instruction":["be short",{"text":"please"}],
            "contents":[{"parts":[{"text":"hi"}],"role":"user"}]}"#,
        );
        let response = value(r#"{"sdkHttpResponse":{"headers":{}},"parsed":null,"candidates":[]}"#);
        let call = GeminiCall::read("google/gemini-x", &request, &response).unwrap();
        assert_eq!(call.target.path, "/v1beta/models/gemini-x:generateContent");
        assert_eq!(
            compact::text(&call.request),
            r#"{"generationConfig":{"temperature":0.5},"cachedContent":"c","safetySettings":[],"tools":[],"toolConfig":{},"systemInstruction":{"parts":[{"text":"be short"},{"text":"please"}],"role":"user"},"contents":[{"parts":[{"text":"hi"}],"role":"user"}]}"#
        );
        assert_eq!(compact::text(&call.response), r#"{"candidates":[]}"#);
        assert_eq!(call.others, ["httpOptions", "sdkHttpResponse"]);
    }

    #[test]
    fn calls_of_other_apis_are_not_of_gemini() {
        let contents = r#"{"contents":[]}"#;
        for (model, request, response) in [
            ("google/g", r#"{"messages":[]}"#, r#"{"candidates":[]}"#),
            ("google/g", contents, r#"{"choices":[]}"#),
            ("google/g?key=x", contents, r#"{"candidates":[]}"#),
            ("", contents, r#"{"candidates":[]}"#),
        ] {
            assert!(GeminiCall::read(model, &value(request), &value(response)).is_none(), "{model}");
        }
    }
}

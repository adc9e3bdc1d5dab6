//! Servers of the Model Context Protocol. Their requests are recorded among the calls of models: they are what the tools of an
//! agent were asked and returned.

use std::borrow::Cow;

use super::decoding::{arguments, encoded_media, media, parts, type_of};
use super::provider::{AnswerForm, Endpoint};
use crate::conversation::message::{MessagePart, MessageToolCall, MessageToolResult};
use crate::json::members::{at, word};
use crate::json::{Object, Value};

/// The provider that recorded requests to these servers state, and the first segment of their paths.
pub(crate) const MCP: &str = "mcp";

/// The method that calls a tool.
pub(crate) const CALL: &str = "tools/call";

/// The methods of the protocol that have names of their own as requests.
const METHODS: [Endpoint; 11] = [
    method("initialize"),
    method("server/discover"),
    method("tools/list"),
    method(CALL),
    method("resources/list"),
    method("resources/templates/list"),
    method("resources/read"),
    method("prompts/list"),
    method("prompts/get"),
    method("completion/complete"),
    method("logging/setLevel"),
];

/// A request with another method.
const OTHER: Endpoint = method("request");

/// What says who asks, or accompanies a request, and not what is asked: tokens of progress differ in every run.
const TRANSPORT: &[&[&str]] = &[&["params", "_meta"], &["params", "clientInfo"]];

const fn method(name: &'static str) -> Endpoint {
    Endpoint { transport_inside: TRANSPORT, ..Endpoint::new(name, "", &[]) }
}

pub(super) const ANSWERS: AnswerForm = AnswerForm { texts: &[&["result", "content"]], ..AnswerForm::NONE };

/// Returns the request with a path, which consists of the name of a server and of a method.
pub(crate) fn endpoint(path: &str) -> &'static Endpoint {
    let method = path.trim_start_matches('/').split_once('/').map_or("", |(_, method)| method);
    METHODS.iter().find(|endpoint| endpoint.name == method).unwrap_or(&OTHER)
}

/// Returns whether a request asks what a server is and has. The answer is the same each time.
pub(crate) fn asks_for_description(endpoint: &Endpoint) -> bool {
    let name = endpoint.name;
    endpoint.compares_urls() && (["initialize", "server/discover"].contains(&name) || name.ends_with("/list"))
}

/// A recorded request to a server.
pub(crate) struct ServerRequest<'v, 'a> {
    /// The name of the tool; `None` if the request calls none.
    pub(crate) tool: Option<&'v str>,
    /// The arguments of the tool, or the parameters of another request.
    pub(crate) arguments: Option<&'v Value<'a>>,
}

impl<'v, 'a> ServerRequest<'v, 'a> {
    /// Reads the body of a request.
    pub(crate) fn new(payload: &'v Value<'a>) -> Self {
        let params = payload.get("params");
        if word(payload, "method") != Some(CALL) {
            return Self { tool: None, arguments: params };
        }
        let member = |name| params.and_then(|params| params.get(name));
        Self { tool: member("name").and_then(Value::as_str), arguments: member("arguments") }
    }
}

/// Returns arguments without what accompanies every request; `None` if nothing remains of them.
pub(crate) fn without_metadata(arguments: &Value<'_>) -> Option<Value<'static>> {
    let Some(members) = arguments.as_object() else { return Some(arguments.to_owned_value()) };
    let kept = members.iter().filter(|(name, _)| *name != "_meta");
    let kept: Vec<_> =
        kept.map(|(name, value)| (Cow::Owned(name.to_owned()), value.to_owned_value())).collect();
    (!kept.is_empty() || members.iter().len() == 0).then(|| Value::Object(Object::from_members(kept)))
}

/// Returns whether an answer says that the tool failed.
pub(crate) fn is_tool_error(answer: &Value<'_>) -> bool {
    at(answer, &["result", "isError"]) == Some(&Value::Bool(true))
}

/// Returns a call of a tool with its result; `None` if the request calls none. `error` is the reason for which there is no
/// result.
pub(crate) fn tool_call(
    payload: &Value<'_>,
    answer: Option<&Value<'_>>,
    error: Option<&str>,
) -> Option<MessageToolCall> {
    let request = ServerRequest::new(payload);
    let answered = |answer: &Value<'_>| {
        let content = at(answer, &["result", "content"]);
        parts(content, part)
    };
    let stated = answer.and_then(|answer| word(answer.get("error")?, "message"));
    let error = error.or(stated);
    let parts = match error {
        Some(error) => vec![MessagePart::text(error)],
        None => answer.map(answered).unwrap_or_default(),
    };
    let is_error = error.is_some() || answer.is_some_and(is_tool_error);
    Some(MessageToolCall {
        id: None,
        name: request.tool?.to_owned(),
        arguments: arguments(request.arguments),
        result: Some(MessageToolResult { id: None, name: None, parts, is_error }),
    })
}

/// Returns what a server says of itself as text: its name, or what it has, each with the first line of its description.
pub(crate) fn description(result: &Value<'_>) -> Option<String> {
    if let Some(server) = result.get("serverInfo") {
        let words = [word(server, "name"), word(server, "version"), word(result, "protocolVersion")];
        return Some(words.into_iter().flatten().collect::<Vec<_>>().join(" "));
    }
    let lists = ["tools", "resources", "resourceTemplates", "prompts"];
    let listed = lists.into_iter().find_map(|name| result.get(name)?.as_array())?;
    let line = |one: &Value<'_>| {
        let name = word(one, "name").unwrap_or_default();
        let description = word(one, "description").and_then(|text| text.lines().next());
        description.map_or_else(|| name.to_owned(), |description| format!("{name}: {description}"))
    };
    Some(listed.iter().map(line).collect::<Vec<_>>().join("\n"))
}

fn part(block: &Value<'_>) -> Option<MessagePart> {
    let string = |name: &str| word(block, name);
    Some(match type_of(block) {
        "text" => MessagePart::text(string("text")?),
        kind @ ("image" | "audio") => encoded_media(string("mimeType"), kind, string("data")?),
        "resource" => {
            let resource = block.get("resource")?;
            match word(resource, "text").map(MessagePart::text) {
                Some(text) => text,
                None => encoded_media(word(resource, "mimeType"), "resource", word(resource, "blob")?),
            }
        }
        "resource_link" => media("resource", string("name"), string("uri")),
        _ => return None,
    })
}

/// Returns whether a model that calls a tool by its `called` name means the tool of a server with this name: clients put the
/// name of the server before it.
pub(crate) fn is_name_of(called: &str, tool: &str) -> bool {
    called
        .strip_suffix(tool)
        .is_some_and(|before| before.is_empty() || before.ends_with(|last: char| !last.is_alphanumeric()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::reader::{self, Limits};

    #[test]
    fn paths_name_servers_and_methods() {
        for (path, expected) in [
            ("/files/tools/call", CALL),
            ("/files/initialize", "initialize"),
            ("/files/custom", "request"),
            ("/tools/call", "request"),
            ("", "request"),
        ] {
            assert_eq!(endpoint(path).name, expected, "{path}");
            assert!(endpoint(path).compares_urls());
        }
    }

    #[test]
    fn names_of_tools_follow_those_of_servers() {
        for called in ["read", "mcp__files__read", "files.read", "files-read"] {
            assert!(is_name_of(called, "read"), "{called}");
        }
        for called in ["thread", "read_all", ""] {
            assert!(!is_name_of(called, "read"), "{called}");
        }
    }

    #[test]
    fn what_a_server_has_is_a_list_of_lines() {
        let read = |text: &'static str| reader::read(text.as_bytes(), &Limits::default()).unwrap();
        let tools = read(r#"{"tools":[{"name":"read","description":"Reads.\nMore."},{"name":"write"}]}"#);
        assert_eq!(description(&tools).as_deref(), Some("read: Reads.\nwrite"));
        let server = read(r#"{"protocolVersion":"2025-06-18","serverInfo":{"name":"files","version":"1"}}"#);
        assert_eq!(description(&server).as_deref(), Some("files 1 2025-06-18"));
        assert_eq!(description(&read(r#"{"contents":[]}"#)), None);
    }

    #[test]
    fn results_of_tools_have_the_parts_of_messages() {
        let read = |text: &'static str| reader::read(text.as_bytes(), &Limits::default()).unwrap();
        let request = read(r#"{"method":"tools/call","params":{"name":"read","arguments":{"path":"a"}}}"#);
        let answer = read(
            r#"{"result":{"isError":true,"content":[{"type":"text","text":"no"},
            {"type":"image","data":"aGk=","mimeType":"image/png"},
            {"type":"resource","resource":{"uri":"file:///a","text":"content"}}]}}"#,
        );
        let call = tool_call(&request, Some(&answer), None).unwrap();
        assert_eq!((call.name.as_str(), call.arguments.as_str()), ("read", r#"{"path":"a"}"#));
        let result = call.result.unwrap();
        let texts: Vec<_> = result.parts.iter().filter_map(MessagePart::as_text).collect();
        assert_eq!((result.is_error, result.parts.len(), texts), (true, 3, vec!["no", "content"]));
        assert!(tool_call(&read(r#"{"method":"tools/list"}"#), None, None).is_none());
    }
}

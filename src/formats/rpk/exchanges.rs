//! The recorded responses of a run and the requests that they answer.

use super::calls::{self, CallIds, StepCall};
use super::envelope::at;
use super::messages::answered;
use super::pending_requests::{IdMatch, PendingRequests};
use super::texts::{self, StepTextRole};
use crate::artifact::{Exchange, Responder};
use crate::digest::Digest;
use crate::json::Value;
use crate::json::canonical::c14n_v1;

/// Returns the exchanges of the steps `model.response`, `tool.response`, and those `error.event` that end a call, in
/// order.
pub(super) fn extract(steps: &[Value<'_>]) -> Vec<Exchange> {
    let mut run = ExchangeExtractor::default();
    for (index, step) in steps.iter().enumerate() {
        match step.get("type").and_then(Value::as_str).unwrap_or_default() {
            _ if calls::is_of_protocol(step) => {}
            "prompt.render" => run.rendered.extend(calls::prompts(step)),
            "model.request" => run.request(Responder::Model, step),
            "tool.request" => run.request(Responder::Tool, step),
            "error.event" => run.error(index, step),
            "model.response" => run.response(index, Responder::Model, step),
            "tool.response" => run.response(index, Responder::Tool, step),
            _ => {}
        }
    }
    run.exchanges.into_iter().flatten().collect()
}

/// Maximum number of failed calls that are remembered in case of a late response.
const MAX_FAILED: usize = 256;

/// The state of a run up to the current step.
#[derive(Default)]
struct ExchangeExtractor {
    open: PendingRequests,
    /// Prompts that no request has used yet.
    rendered: Vec<Digest>,
    /// The exchanges; `None` where a failed call was answered later.
    exchanges: Vec<Option<Exchange>>,
    /// Failed calls and the positions of their exchanges.
    failed: Vec<(CallIds, usize)>,
}

impl ExchangeExtractor {
    fn request(&mut self, responder: Responder, step: &Value<'_>) {
        let mut call = StepCall::from_request(responder, step);
        if responder == Responder::Model {
            let request_prompts = std::mem::replace(&mut call.prompts, std::mem::take(&mut self.rendered));
            call.prompts.retain(|rendered| !request_prompts.contains(rendered));
            call.prompts.extend(request_prompts);
        }
        self.open.push(call);
    }

    fn response(&mut self, index: usize, responder: Responder, step: &Value<'_>) {
        let response = StepCall::from_response(responder, step);
        let is_error = responder == Responder::Model && states_error(step);
        let request = match self.open.take_by_id(&response) {
            IdMatch::Request(request) => Some(request),
            IdMatch::Several => None,
            IdMatch::None => match self.failed_before(&response) {
                // The listener records a failed request, and then its own response to the client.
                Some(_) if is_error => return,
                Some(exchange) => return self.replace(exchange, index, response, step),
                None => self.open.take_only(&response),
            },
        };
        let call = match request {
            Some(request) => request.answered(response),
            None => response,
        };
        self.exchanges.push(Some(exchange(index, call, step, is_error)));
    }

    /// Returns the position of the exchange of a failed call that has an id of `response`.
    fn failed_before(&self, response: &StepCall) -> Option<usize> {
        let is_same = |ids: &CallIds| {
            ids.are_of_one_call(&response.ids)
                || response.ids.call.is_none() && ids.are_of_one_request(&response.ids)
        };
        let failed = self.failed.iter().rev().find(|(ids, at)| {
            let of_same = |exchange: &Exchange| exchange.responder == response.responder;
            is_same(ids) && self.exchanges.get(*at).and_then(Option::as_ref).is_some_and(of_same)
        });
        failed.map(|(_, at)| *at)
    }

    /// Replaces the error of a call by a late response.
    fn replace(&mut self, failed: usize, index: usize, response: StepCall, step: &Value<'_>) {
        let error = self.exchanges.get_mut(failed).and_then(Option::take);
        let mut answered = exchange(index, response, step, false);
        if let Some(Exchange { prompts, tool, arguments, .. }) = error {
            answered.prompts = prompts;
            answered.tool = answered.tool.or(tool);
            answered.arguments = arguments.or(answered.arguments);
        }
        self.exchanges.push(Some(answered));
    }

    fn error(&mut self, index: usize, step: &Value<'_>) {
        let Some(call) = self.open.take_failed(step) else { return };
        if self.failed.len() == MAX_FAILED {
            self.failed.remove(0);
        }
        self.failed.push((call.ids.clone(), self.exchanges.len()));
        self.exchanges.push(Some(exchange(index, call, step, true)));
    }
}

fn exchange(index: usize, call: StepCall, step: &Value<'_>, is_error: bool) -> Exchange {
    let StepCall { responder, prompts, tool, arguments, .. } = call;
    let output = step.get("output").and_then(|output| c14n_v1::to_vec(output).ok());
    let output = output.and_then(|text| String::from_utf8(text).ok()).unwrap_or_default();
    let text = if is_error { message(step) } else { response(step) };
    let response = text.map_or_else(|| output.clone(), str::to_owned);
    let said = if is_error { None } else { answered(step).map(|answer| answer.comparable_text()) };
    let said = said.filter(|said| *said != response);
    Exchange { index, responder, prompts, tool, arguments, response, said, output: Some(output), is_error }
}

/// Returns the text of a response: what the recorder assembled from its parts, else the only text that it contains.
pub(super) fn response<'v>(step: &'v Value<'_>) -> Option<&'v str> {
    if let Some(assembled) = at(step, &["output", "assembled_text"]).and_then(Value::as_non_empty_str) {
        return Some(assembled);
    }
    match texts::carried(step, StepTextRole::Responses).as_slice() {
        [only] => Some(only),
        _ => None,
    }
}

/// Returns whether a model response states that there was none.
pub(super) fn states_error(step: &Value<'_>) -> bool {
    match at(step, &["output", "error"]) {
        None | Some(Value::Null | Value::Bool(false)) => false,
        Some(Value::String(text)) => !text.is_empty(),
        Some(_) => true,
    }
}

/// Returns the human-readable message of an error.
pub(super) fn message<'v>(step: &'v Value<'_>) -> Option<&'v str> {
    const PLACES: [&[&str]; 5] = [
        &["output", "message"],
        &["output", "error", "message"],
        &["output", "error"],
        &["output", "output", "error", "message"],
        &["output"],
    ];
    PLACES.iter().find_map(|names| at(step, names).and_then(Value::as_non_empty_str))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value as Json, json};

    use super::*;
    use crate::json::reader::{self, Limits};

    fn exchanges(steps: &Json) -> Vec<Exchange> {
        let text = steps.to_string();
        let value = reader::read(text.as_bytes(), &Limits::default()).unwrap();
        extract(value.as_array().unwrap())
    }

    /// Describes each exchange.
    fn summaries(steps: &Json) -> Vec<String> {
        let summaries = exchanges(steps).into_iter().map(|exchange| {
            let Exchange { index, tool, arguments, response, is_error, prompts, .. } = exchange;
            let request = match (tool, arguments) {
                (tool, Some(arguments)) => format!("{}({})", tool.unwrap_or_default(), arguments.as_json()),
                (Some(tool), None) => format!("{tool}?"),
                (None, None) => {
                    prompts.iter().map(|prompt| format!("{prompt:.6}")).collect::<Vec<_>>().join(",")
                }
            };
            format!("{index} {request} -> {}{response}", if is_error { "error: " } else { "" })
        });
        summaries.collect()
    }

    fn short(text: &str) -> String {
        format!("{:.6}", Digest::from_content(text.as_bytes()))
    }

    #[test]
    fn responses_have_their_requests_prompts() {
        let found = exchanges(&json!([{"type": "prompt.render", "output": "rendered"},
            {"type": "model.request", "input": {"prompt": "one"}, "metadata": {"request_id": "1"}},
            {"type": "model.request", "input": {"prompt": "two"}, "metadata": {"request_id": "2"}},
            {"type": "tool.response", "input": {"tool": "t"}, "output": {"b": 1, "a": "\u{202e}"}},
            {"type": "model.response", "input": {"request_id": "2"}, "output": {"content": "second"}},
            {"type": "model.response", "output": {"content": "first", "text": "another"}},
            {"type": "model.response", "output": null}]));
        let digests = |texts: &[&str]| -> Vec<Digest> {
            texts.iter().map(|text| Digest::from_content(text.as_bytes())).collect()
        };
        let prompts: Vec<_> = found.iter().map(|exchange| exchange.prompts.clone()).collect();
        assert_eq!(prompts, [vec![], digests(&["two"]), digests(&["rendered", "one"]), vec![]]);
        let responses: Vec<_> = found.iter().map(|exchange| exchange.response.as_str()).collect();
        let json = "{\"a\":\"\u{202e}\",\"b\":1}";
        assert_eq!(responses, [json, "second", r#"{"content":"first","text":"another"}"#, "null"]);
        assert_eq!(found[0].tool.as_deref(), Some("t"));
        assert_eq!(found.iter().map(|exchange| exchange.index).collect::<Vec<_>>(), [3, 4, 5, 6]);
    }

    #[test]
    fn a_response_that_could_answer_several_requests_answers_none() {
        let ambiguous = json!([
            {"type": "model.request", "input": "one"}, {"type": "model.request", "input": "two"},
            {"type": "model.response", "output": "?"}]);
        assert_eq!(summaries(&ambiguous), ["2  -> ?"]);
        let alike = json!([
            {"type": "model.request", "input": "one"}, {"type": "model.request", "input": "one"},
            {"type": "model.response", "output": "yes"}]);
        assert_eq!(summaries(&alike), [format!("2 {} -> yes", short("one"))]);
        let other_id = json!([
            {"type": "model.request", "input": "one", "metadata": {"request_id": "1"}},
            {"type": "model.response", "input": {"request_id": "2"}, "output": "?"}]);
        assert_eq!(summaries(&other_id), ["1  -> ?"]);
        let by_model = json!([
            {"type": "model.request", "input": {"model": "large", "input": "one"}},
            {"type": "model.request", "input": {"model": "small", "input": "two"}},
            {"type": "model.response", "input": {"model": "small"}, "output": "yes"}]);
        assert_eq!(summaries(&by_model), [format!("2 {} -> yes", short("two"))]);
    }

    #[test]
    fn a_tool_is_known_by_its_name_and_its_arguments() {
        let steps = json!([
            {"type": "tool.request", "input": {"tool": "search", "args": ["weather"], "kwargs": {}}},
            {"type": "tool.request", "input": {"tool": "read", "arguments": "{\"b\": 1, \"a\": 2}"}},
            {"type": "tool.response", "input": {"tool": "read"}, "output": {"content": "text"}},
            {"type": "tool.response", "input": {"tool": "search"}, "output": {"result": "sunny"}},
            {"type": "tool.request", "input": {"name": "city", "city": "Paris"}},
            {"type": "tool.response", "input": {"tool": "other"}, "output": 1},
            {"type": "tool.response", "output": 2},
            {"type": "tool.request", "input": {"method": "GET", "url": "u", "body": null}},
            {"type": "tool.response", "input": {"method": "GET", "url": "u"}, "output": {"status_code": 200}},
        ]);
        assert_eq!(
            summaries(&steps),
            [
                r#"2 read({"a":2,"b":1}) -> {"content":"text"}"#,
                r#"3 search(["weather"]) -> {"result":"sunny"}"#,
                "5 other? -> 1",
                r#"6 city({"city":"Paris"}) -> 2"#,
                r#"8 ({"body":null,"method":"GET","url":"u"}) -> {"status_code":200}"#,
            ]
        );
    }

    /// As recorded by the listener from requests and responses of the Responses API, where results have no name.
    #[test]
    fn calls_of_tools_are_known_by_the_id_of_the_call() {
        let derived = |step_type: &str, item: &str, input: Json, request: &str| {
            json!({"type": step_type, "input": input, "output": {"result": input},
                "metadata": {"request_id": request, "correlation_id": request, "event_type": item,
                    "derived_from": "openai.responses"}})
        };
        let request = |call: &str, city: &str| {
            let arguments = json!({"city": city}).to_string();
            let input = json!({"tool": "weather", "call_id": call, "arguments": arguments});
            derived("tool.request", "function_call", input, "r1")
        };
        let response = |call: &str| {
            let input = json!({"tool": "function_call_output", "call_id": call});
            derived("tool.response", "function_call_output", input, "r2")
        };
        let steps = json!([
            response("c0"),
            request("c1", "Paris"),
            request("c2", "Rome"),
            response("c2"),
            response("c1")
        ]);
        let calls: Vec<_> = exchanges(&steps)
            .into_iter()
            .map(|exchange| (exchange.tool, exchange.arguments.map(|it| it.as_json().to_owned())))
            .collect();
        let of_city = |city: &str| (Some("weather".to_owned()), Some(format!("{{\"city\":\"{city}\"}}")));
        assert_eq!(calls, [(None, None), of_city("Rome"), of_city("Paris")]);
    }

    #[test]
    fn what_failed_was_not_answered() {
        let found = summaries(&json!([{"type": "model.request", "input": "failed"}, {"type": "error.event"},
            {"type": "model.request", "input": "asked again"}, {"type": "model.response", "output": "yes"}]));
        assert_eq!(
            found,
            [format!("1 {} -> error: ", short("failed")), format!("3 {} -> yes", short("asked again"))]
        );
    }

    /// As written by ReplayKit's recorder.
    #[test]
    fn errors_belong_to_the_call_that_they_name() {
        let error = |boundary: &str, target: &str, kind: &str| {
            json!({"type": "error.event", "input": {"boundary": boundary, "target": target},
                "output": {"error_type": "E", "message": format!("{target} failed")},
                "metadata": {"boundary": boundary, "kind": kind}})
        };
        let steps = json!([
            {"type": "tool.request", "input": {"tool": "search", "args": ["a"], "kwargs": {}}},
            {"type": "model.request", "input": {"model": "m", "input": "asked"}},
            error("tool", "search", "policy"),
            error("tool", "search", "runtime"),
            error("model", "m", "runtime"),
            error("http", "https://example.com", "policy"),
        ]);
        assert_eq!(
            summaries(&steps),
            [
                "2 search? -> error: search failed".to_owned(),
                r#"3 search(["a"]) -> error: search failed"#.to_owned(),
                format!("4 {} -> error: m failed", short("asked")),
                "5  -> error: https://example.com failed".to_owned(),
            ]
        );
    }

    /// As written by the listener: that a request failed, and then what it returned to the client.
    #[test]
    fn an_error_that_was_made_good_is_a_response() {
        let steps = |error: Json, text: &str| {
            json!([
                {"type": "model.request", "input": {"request_id": "r", "payload": {"contents": [
                    {"parts": [{"text": "asked"}]}]}}, "metadata": {"request_id": "r"}},
                {"type": "model.request", "input": "unrelated"},
                {"type": "error.event", "input": {"source": "listener", "request_id": "r"},
                    "output": {"message": "upstream failed"}, "metadata": {"request_id": "r"}},
                {"type": "error.event", "input": {"source": "listener"}, "output": {"message": "internal"}},
                {"type": "error.event", "output": {"message": "dropped", "dropped": 1},
                    "metadata": {"event_type": "listener.drop"}},
                {"type": "model.response", "input": {"request_id": "r"}, "metadata": {"request_id": "r"},
                    "output": {"status_code": 502, "output": {"error": {"message": "told"}}, "error": error,
                        "assembled_text": text}},
                {"type": "model.response", "output": "of the unrelated"},
            ])
        };
        let unrelated = format!("6 {} -> of the unrelated", short("unrelated"));
        let failed = summaries(&steps(json!({"type": "gateway_error", "message": "told"}), ""));
        assert_eq!(failed, [format!("2 {} -> error: upstream failed", short("asked")), unrelated.clone()]);
        let made_good = summaries(&steps(Json::Null, "fallback"));
        assert_eq!(made_good, [format!("5 {} -> fallback", short("asked")), unrelated]);
    }

    #[test]
    fn a_response_that_states_an_error_is_one() {
        let steps = json!([
            {"type": "model.request", "input": "asked"},
            {"type": "model.response", "output": {"status_code": 429, "assembled_text": "",
                "error": {"status_code": 429, "payload": {}}, "output": {"error": {"message": "too many"}}}}]);
        assert_eq!(summaries(&steps), [format!("1 {} -> error: too many", short("asked"))]);
    }
}

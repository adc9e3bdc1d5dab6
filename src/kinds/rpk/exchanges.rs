//! The recorded responses of a run, and the requests that they answer.

use std::collections::{BTreeSet, VecDeque};

use super::{PROMPT_PLACES, RESPONSE_PLACES, TOOL_PLACES, at, texts};
use crate::artifact::{Exchange, Responder};
use crate::canonical::{Value, c14n_v1};
use crate::digest::Digest;

/// The steps `model.response` and `tool.response`, in order.
pub(super) fn of(steps: &[Value<'_>]) -> Vec<Exchange> {
    let mut open = Open::default();
    let mut exchanges = Vec::new();
    for (index, step) in steps.iter().enumerate() {
        match step.get("type").and_then(Value::as_str).unwrap_or_default() {
            "prompt.render" => open.rendered.extend(prompts(step)),
            "model.request" => open.push(Responder::Model, step),
            "tool.request" => open.push(Responder::Tool, step),
            // What failed gets no response.
            "error.event" => open.give_up(step),
            "model.response" => exchanges.push(exchange(index, step, Responder::Model, &mut open)),
            "tool.response" => exchanges.push(exchange(index, step, Responder::Tool, &mut open)),
            _ => {}
        }
    }
    exchanges
}

fn exchange(index: usize, step: &Value<'_>, responder: Responder, open: &mut Open) -> Exchange {
    let prompts = open.answered_by(responder, step);
    let output = step.get("output").and_then(|output| c14n_v1::to_vec(output).ok());
    let output = output.and_then(|text| String::from_utf8(text).ok()).unwrap_or_default();
    let carried = texts::carried(step, &RESPONSE_PLACES);
    let only = carried.first().filter(|_| carried.len() == 1);
    let mut names = TOOL_PLACES.iter().filter_map(|names| at(step, names).and_then(Value::as_filled_str));
    let tool = names.next().filter(|_| responder == Responder::Tool).map(str::to_owned);
    let response = only.map_or_else(|| output.clone(), |text| (*text).to_owned());
    Exchange { index, responder, prompts, tool, response, output: Some(output) }
}

fn prompts(step: &Value<'_>) -> impl Iterator<Item = Digest> {
    texts::carried(step, &PROMPT_PLACES).into_iter().map(|text| Digest::of(text.as_bytes()))
}

/// So many requests may wait for their responses; the oldest is given up then. Runs have a handful.
const MAX_OPEN: usize = 256;

/// Requests that have no response yet, oldest first.
#[derive(Default)]
struct Open {
    requests: VecDeque<Request>,
    /// Prompts that no request has taken up yet.
    rendered: BTreeSet<Digest>,
}

struct Request {
    to: Responder,
    ids: Vec<String>,
    prompts: BTreeSet<Digest>,
}

impl Open {
    fn push(&mut self, to: Responder, step: &Value<'_>) {
        let mut asked = BTreeSet::new();
        if to == Responder::Model {
            asked = std::mem::take(&mut self.rendered);
            asked.extend(prompts(step));
        }
        if self.requests.len() == MAX_OPEN {
            self.requests.pop_front();
        }
        self.requests.push_back(Request { to, ids: ids(step), prompts: asked });
    }

    /// What the request asked that `step` answers: the one that shares an id with it, else the oldest.
    fn answered_by(&mut self, responder: Responder, step: &Value<'_>) -> Vec<Digest> {
        let ids = ids(step);
        let of_sort = |request: &Request| request.to == responder;
        let same = self.requests.iter().position(|request| of_sort(request) && request.shares(&ids));
        let answered = same.or_else(|| self.requests.iter().position(of_sort));
        let request = answered.and_then(|at| self.requests.remove(at));
        request.map(|request| request.prompts.into_iter().collect()).unwrap_or_default()
    }

    /// Takes out the request that shares an id with the failure, else the newest.
    fn give_up(&mut self, step: &Value<'_>) {
        let ids = ids(step);
        match self.requests.iter().position(|request| request.shares(&ids)) {
            Some(at) => self.requests.remove(at),
            None => self.requests.pop_back(),
        };
    }
}

impl Request {
    fn shares(&self, ids: &[String]) -> bool {
        ids.iter().any(|id| self.ids.contains(id))
    }
}

/// What recorders put into a request and its response, so that they are known to belong together.
fn ids(step: &Value<'_>) -> Vec<String> {
    const PLACES: [[&str; 2]; 4] = [
        ["metadata", "request_id"],
        ["metadata", "correlation_id"],
        ["input", "request_id"],
        ["input", "call_id"],
    ];
    let ids = PLACES.iter().filter_map(|names| at(step, names).and_then(Value::as_filled_str));
    ids.map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::canonical::reader::{self, Limits};

    fn exchanges(steps: &str) -> Vec<Exchange> {
        let value = reader::read(steps.as_bytes(), &Limits::default()).unwrap();
        of(value.as_array().unwrap())
    }

    #[test]
    fn responses_have_their_requests_prompts() {
        let found = exchanges(
            r#"[{"type": "prompt.render", "output": "rendered"},
            {"type": "model.request", "input": {"prompt": "one"}, "metadata": {"request_id": "1"}},
            {"type": "model.request", "input": {"prompt": "two"}, "metadata": {"request_id": "2"}},
            {"type": "tool.response", "input": {"tool": "t"}, "output": {"b": 12345678901234567890123, "a": "\u202e"}},
            {"type": "model.response", "input": {"request_id": "2"}, "output": {"content": "second"}},
            {"type": "model.response", "output": {"content": "first", "text": "another"}},
            {"type": "model.response", "output": null}]"#,
        );
        let digests = |texts: &[&str]| {
            let digests: BTreeSet<_> = texts.iter().map(|text| Digest::of(text.as_bytes())).collect();
            digests.into_iter().collect::<Vec<_>>()
        };
        let prompts: Vec<_> = found.iter().map(|exchange| exchange.prompts.clone()).collect();
        assert_eq!(prompts, [vec![], digests(&["two"]), digests(&["one", "rendered"]), vec![]]);
        let responses: Vec<_> = found.iter().map(|exchange| exchange.response.as_str()).collect();
        let json = "{\"a\":\"\u{202e}\",\"b\":12345678901234567890123}";
        assert_eq!(responses, [json, "second", r#"{"content":"first","text":"another"}"#, "null"]);
        assert_eq!(found[0].tool.as_deref(), Some("t"));
        assert_eq!(found.iter().map(|exchange| exchange.index).collect::<Vec<_>>(), [3, 4, 5, 6]);
    }

    #[test]
    fn what_failed_was_not_answered() {
        let found = exchanges(
            r#"[{"type": "model.request", "input": "failed"}, {"type": "error.event"},
            {"type": "model.request", "input": "asked again"}, {"type": "model.response", "output": "yes"}]"#,
        );
        assert_eq!(found[0].prompts, [Digest::of(b"asked again")]);
    }
}

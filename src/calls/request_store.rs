//! The requests of a run, each stored without what an earlier one has already: in a conversation, the new messages.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use super::run::{CallDifference, CallRecord, CompleteRequest, StoredCall, StoredRequest};
use crate::digest::Digest;
use crate::json::canonical::rfc8785;
use crate::json::reader::{self, Limits};
use crate::json::splice::{self, Splice, ValueDifference};
use crate::json::{Value, compact};

/// Number of requests that a request is compared with: as many conversations can take turns in a run.
const RECENT: usize = 16;

/// Most that the requests to compare with may have in memory, unless there is only one.
const MAX_RECENT: usize = 64 << 20;

/// A prompt whose difference from the request has more bytes is also compared with the prompts of earlier requests: its
/// rules replace text in messages.
const SHORT_PROMPT: usize = 512;

/// A request that cannot be stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a request is not JSON")]
pub(crate) struct UnreadableRequest;

/// Stores requests as differences from earlier ones.
#[derive(Debug, Default)]
pub(crate) struct RequestStore {
    recent: VecDeque<RecentRequest>,
}

/// A request that others may be differences from.
#[derive(Clone, Debug)]
pub(crate) struct RecentRequest {
    number: u64,
    payload: Arc<Value<'static>>,
    /// What it is compared by, if later requests may need it.
    prompt: Option<Arc<Value<'static>>>,
    weight: usize,
    /// Whether a tool was asked. No request continues such a one.
    is_of_tool: bool,
}

impl RequestStore {
    /// Returns a call as it is stored. Once it is, it is passed to [`RequestStore::add`].
    pub(crate) fn store(&self, call: CallRecord) -> Result<(StoredCall, RecentRequest), UnreadableRequest> {
        let payload = read(&call.request.payload)?.into_owned_value();
        self.store_read(call, payload)
    }

    /// Returns a call as it is stored, as [`RequestStore::store`] does, of which the body of the request is read already. No
    /// more than three forms of a request are in memory together.
    pub(crate) fn store_read(
        &self,
        mut call: CallRecord,
        payload: Value<'static>,
    ) -> Result<(StoredCall, RecentRequest), UnreadableRequest> {
        let CompleteRequest { payload: payload_text, prompt: prompt_text } =
            std::mem::take(&mut call.request);
        let size = payload_text.len();
        drop(payload_text);
        let prompt_hash = Digest::from_content(prompt_text.as_bytes());
        let prompt = read(&prompt_text)?;
        let model =
            prompt.get("model").and_then(Value::as_non_empty_str).unwrap_or(&call.endpoint).to_owned();
        let mut stored_prompt = StoredDifference::new(None, &splice::difference(&payload, &prompt));
        let is_long = stored_prompt.size() > SHORT_PROMPT;
        if is_long && !call.is_of_tool() {
            let earlier =
                self.recent.iter().filter_map(|recent| Some((recent.number, recent.prompt.as_ref()?)));
            stored_prompt = nearest(earlier, &prompt, stored_prompt.size()).unwrap_or(stored_prompt);
        }
        let kept_prompt = is_long.then(|| Arc::new(prompt.into_owned_value()));
        drop(prompt_text);
        // What a tool is asked does not continue what a model was asked.
        let recent = self.recent.iter().filter(|_| !call.is_of_tool());
        let earlier = recent.map(|recent| (recent.number, &recent.payload));
        let stored_payload = nearest(earlier, &payload, size);
        let (rest, payload_difference) = match stored_payload {
            Some(StoredDifference { rest, call, splices }) => (rest, Some(CallDifference { call, splices })),
            None => (compact::text(&payload), None),
        };
        let request = StoredRequest {
            model,
            prompt_hash,
            payload: rest,
            payload_difference,
            prompt: stored_prompt.rest,
            prompt_difference: CallDifference { call: stored_prompt.call, splices: stored_prompt.splices },
        };
        let weight =
            splice::weight(&payload) + kept_prompt.as_ref().map_or(0, |prompt| splice::weight(prompt));
        let payload = Arc::new(payload);
        let is_of_tool = call.is_of_tool();
        let recent = RecentRequest { number: call.number, payload, prompt: kept_prompt, weight, is_of_tool };
        Ok((call.with_request(request), recent))
    }

    /// Adds a request that was stored: later ones may be differences from it.
    pub(crate) fn add(&mut self, request: RecentRequest) {
        if request.is_of_tool {
            return;
        }
        self.recent.push_front(request);
        self.recent.truncate(RECENT);
        while self.recent.len() > 1
            && self.recent.iter().map(|recent| recent.weight).sum::<usize>() > MAX_RECENT
        {
            self.recent.pop_back();
        }
    }

    /// Returns calls as they are stored.
    #[cfg(test)]
    pub(crate) fn store_all(
        calls: impl IntoIterator<Item = CallRecord>,
    ) -> Result<Vec<StoredCall>, UnreadableRequest> {
        let mut store = Self::default();
        let stored = calls.into_iter().map(|call| {
            let (call, recent) = store.store(call)?;
            store.add(recent);
            Ok(call)
        });
        stored.collect()
    }
}

/// A difference as text.
struct StoredDifference {
    rest: String,
    call: Option<u64>,
    splices: Vec<Splice>,
}

impl StoredDifference {
    fn new(call: Option<u64>, difference: &ValueDifference) -> Self {
        let ValueDifference { rest, splices } = difference;
        Self { rest: compact::text(rest), call, splices: splices.clone() }
    }

    /// Returns about how many bytes it has.
    fn size(&self) -> usize {
        let splice = |splice: &Splice| 40 + splice.at.len() + splice.from.len() + 20 * splice.ranges.len();
        self.rest.len() + self.splices.iter().map(splice).sum::<usize>()
    }
}

fn read(text: &str) -> Result<Value<'_>, UnreadableRequest> {
    reader::read(text.as_bytes(), &Limits::most()).map_err(|_| UnreadableRequest)
}

/// Returns the shortest of the differences of a value from those of earlier calls, unless another form of it, which has `size`
/// bytes, is shorter. A difference that leaves out most of the value is not compared with further ones.
fn nearest<'r>(
    earlier: impl Iterator<Item = (u64, &'r Arc<Value<'static>>)>,
    value: &Value<'_>,
    size: usize,
) -> Option<StoredDifference> {
    let few = size / 4;
    let mut nearest: Option<StoredDifference> = None;
    for (number, base) in earlier {
        let shortest = nearest.as_ref().map_or(size, StoredDifference::size);
        if shortest <= few {
            break;
        }
        let found = StoredDifference::new(Some(number), &splice::difference(base, value));
        if found.size() < shortest {
            nearest = Some(found);
        }
    }
    nearest
}

/// Restores the complete requests of stored calls.
pub(crate) struct RequestRestorer<'c> {
    calls: HashMap<u64, &'c StoredRequest>,
    /// The values that were restored last.
    payloads: RestoredValues,
    prompts: RestoredValues,
}

/// The values of calls, last restored first.
type RestoredValues = VecDeque<(u64, Arc<Value<'static>>)>;

impl<'c> RequestRestorer<'c> {
    pub(crate) fn new(calls: &'c [StoredCall]) -> Self {
        let calls = calls.iter().map(|call| (call.number, &call.request)).collect();
        Self { calls, payloads: VecDeque::new(), prompts: VecDeque::new() }
    }

    /// Returns the body of the request of a call.
    pub(crate) fn payload(&mut self, number: u64) -> Option<Arc<Value<'static>>> {
        let calls = &self.calls;
        restored(&mut self.payloads, number, |number| {
            let request = calls.get(&number)?;
            let splices = request.payload_difference.as_ref();
            Some((request.payload.as_str(), splices.and_then(|it| Some((it.call?, it.splices.as_slice())))))
        })
    }

    /// Returns what the request of a call is compared by.
    pub(crate) fn prompt(&mut self, number: u64) -> Option<Arc<Value<'static>>> {
        // The prompts that are differences from others, up to the one that is a difference from its own request.
        let mut first = number;
        let mut chain = vec![];
        while let Some(call) = self.calls.get(&first)?.prompt_difference.call {
            if self.prompts.iter().any(|(known, _)| *known == first) {
                break;
            }
            chain.push(first);
            first = call;
            if chain.len() > self.calls.len() {
                return None;
            }
        }
        if !self.prompts.iter().any(|(known, _)| *known == first) {
            let request = *self.calls.get(&first)?;
            let prompt =
                patched(&*self.payload(first)?, &request.prompt, &request.prompt_difference.splices)?;
            remember(&mut self.prompts, first, &prompt);
        }
        let calls = &self.calls;
        restored(&mut self.prompts, number, |number| {
            let request = calls.get(&number)?;
            let CallDifference { call, splices } = &request.prompt_difference;
            Some((request.prompt.as_str(), call.map(|call| (call, splices.as_slice()))))
        })
    }

    /// Returns the complete request of a call.
    pub(crate) fn complete(&mut self, number: u64) -> Option<CompleteRequest> {
        let payload = compact::text(&*self.payload(number)?);
        let prompt = rfc8785::to_vec_with_distinct_integers(&*self.prompt(number)?).ok()?;
        Some(CompleteRequest { payload, prompt: String::from_utf8(prompt).ok()? })
    }
}

/// The rest of a value, and the call and the parts that it takes from that call.
type ChainLink<'c> = (&'c str, Option<(u64, &'c [Splice])>);

/// Returns the value of a call, of which `link` returns the differences.
fn restored<'c>(
    known: &mut RestoredValues,
    number: u64,
    link: impl Fn(u64) -> Option<ChainLink<'c>>,
) -> Option<Arc<Value<'static>>> {
    let mut chain: Vec<(u64, &str, &[Splice])> = Vec::new();
    let mut at = number;
    let mut value = loop {
        if let Some((_, value)) = known.iter().find(|(known, _)| *known == at) {
            break Arc::clone(value);
        }
        let (rest, base) = link(at)?;
        match base {
            None => break Arc::new(reader::read(rest.as_bytes(), &Limits::most()).ok()?.into_owned_value()),
            // A call is a difference from one before it.
            Some((base, splices)) if chain.iter().all(|(passed, ..)| *passed != base) => {
                chain.push((at, rest, splices));
                at = base;
            }
            Some(_) => return None,
        }
    };
    for (_, rest, splices) in chain.iter().rev() {
        value = patched(&value, rest, splices)?;
    }
    remember(known, number, &value);
    Some(value)
}

fn patched(base: &Value<'_>, rest: &str, splices: &[Splice]) -> Option<Arc<Value<'static>>> {
    let rest = reader::read(rest.as_bytes(), &Limits::most()).ok()?;
    splice::restore(base, &rest, splices).map(Arc::new)
}

fn remember(known: &mut RestoredValues, number: u64, value: &Arc<Value<'static>>) {
    if known.iter().all(|(known, _)| *known != number) {
        known.push_front((number, Arc::clone(value)));
        known.truncate(RECENT);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calls::run::CallOutcome;

    fn call(number: u64, payload: &str, prompt: &str) -> CallRecord {
        let request = CompleteRequest { prompt: prompt.to_owned(), payload: payload.to_owned() };
        let outcome = CallOutcome::Failed { reason: String::new(), partial: String::new() };
        CallRecord::sample(number, request, outcome)
    }

    /// Returns the calls of a conversation, in whose prompts the rules replace a date in each message.
    fn conversation(turns: u64, name: &str) -> Vec<CallRecord> {
        let message = |turn: u64, date: &str| {
            let text = format!("{name} {turn} on {date}: {}", "word ".repeat(30));
            format!(r#"{{"content":"{text}","role":"user"}}"#)
        };
        let messages =
            |turns: u64, date: &str| (0..turns).map(|turn| message(turn, date)).collect::<Vec<_>>().join(",");
        let request = |turn: u64| {
            let (payload, prompt) = (messages(turn + 1, "2026-01-02"), messages(turn + 1, "DATE"));
            call(
                turn,
                &format!(r#"{{"stream":true,"messages":[{payload}],"model":"m"}}"#),
                &format!(r#"{{"messages":[{prompt}],"model":"m"}}"#),
            )
        };
        (0..turns).map(request).collect()
    }

    #[test]
    fn requests_of_conversations_that_take_turns_are_restored() {
        let mut calls = Vec::new();
        for (one, other) in conversation(20, "one").into_iter().zip(conversation(20, "other")) {
            for mut call in [one, other] {
                call.number = calls.len() as u64;
                calls.push(call);
            }
        }
        let stored = RequestStore::store_all(calls.clone()).unwrap();
        let mut restorer = RequestRestorer::new(&stored);
        for call in calls.iter().rev().chain(&calls) {
            assert_eq!(restorer.complete(call.number).as_ref(), Some(&call.request));
        }
        let size = |call: &StoredCall| call.request.payload.len() + call.request.prompt.len();
        let sizes: Vec<usize> = stored.iter().map(size).collect();
        assert!(sizes[4..].iter().all(|size| *size < 2 * sizes[0]), "{sizes:?}");
        assert!(stored.iter().all(|call| call.request.model == "m"));
    }

    #[test]
    fn a_request_that_is_not_json_is_not_stored() {
        assert_eq!(RequestStore::store_all([call(0, "{", "{}")]), Err(UnreadableRequest));
    }
}

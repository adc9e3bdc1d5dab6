//! The requests of runs whose recorder stores each body once: a request is stated as the difference from an earlier one,
//! and the text that it is compared by as a difference from the request. This is the place where they are restored.
//! `docs/gateway.md`, "The run pack".

use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::{ControlFlow, Deref};
use std::rc::Rc;

use super::envelope::{at, step_type, steps};
use super::messages::assembled_text;
use crate::artifact::{RecordedRequest, RepeatedElements, RequestVisitor};
use crate::conversation::reader::LISTS;
use crate::digest::Digest;
use crate::json::canonical::rfc8785;
use crate::json::reader::{self, Limits, ReadError};
use crate::json::splice::{self, Splice};
use crate::json::{Object, Value};

/// The location of the version of the recorder's profile, and the first version that stores each body once.
const PROFILE: [&str; 3] = ["metadata", "gateway", "profile"];
const FIRST_PROFILE: f64 = 2.0;

/// The largest body of an answer, and the number of values in it, that is interpreted.
const MAX_BODY: Limits = Limits { bytes: 32 << 20, depth: 128, values: 1_000_000, entries: 0 };

/// The most bytes of requests that are restored to complete their texts. The texts of further ones stay as they are stored.
const MAX_RESTORED: usize = 1 << 30;

/// Returns whether a step is a request whose body is read: one to a model, or one to a server of tools that is compared as
/// those are.
fn is_request(step: &Value<'_>) -> bool {
    match step_type(step) {
        "model.request" => true,
        "tool.request" => at(step, &["input", "prompt_hash"]).is_some(),
        _ => false,
    }
}

/// The digest of the text that a request is compared by.
pub(super) fn prompt_hash(step: &Value<'_>) -> Option<Digest> {
    if !is_request(step) {
        return None;
    }
    at(step, &["input", "prompt_hash"]).and_then(Value::as_str).and_then(Digest::parse_prefixed)
}

/// Returns the member with all that a request asks: its body, or the input if that is not in a member of its own.
pub(super) fn asked<'v>(step: &'v Value<'v>) -> Option<&'v Value<'v>> {
    let input = step.get("input")?;
    Some(input.get("payload").filter(|_| prompt_hash(step).is_some()).unwrap_or(input))
}

/// Reads a document, and adds to its steps what follows from others of their members: the values of bodies that are JSON,
/// and the beginnings of texts that an earlier request has.
pub(super) fn read(document: &[u8]) -> Result<Value<'_>, ReadError> {
    let mut root = reader::read(document, &Limits::most())?;
    complete(&mut root);
    Ok(root)
}

/// Reads a document as a recorder states it that stores every body completely, so that runs can be compared whatever a
/// request is the difference from. Requests beyond a limit stay as they are stored.
pub(super) fn read_restored(document: &[u8]) -> Result<Value<'_>, ReadError> {
    let mut root = reader::read(document, &Limits::most())?;
    if !stores_bodies_once(&root) {
        return Ok(root);
    }
    let mut restored = restored_requests(steps(&root));
    complete(&mut root);
    let Some(Value::Array(steps)) = root.at_pointer_mut("/payload/run/steps") else { return Ok(root) };
    for (index, step) in steps.iter_mut().enumerate() {
        if let Some((payload, prompt)) = restored.remove(&index)
            && let Some(Value::Object(input)) = step.at_pointer_mut("/input")
        {
            let differences = ["payload", "payload_difference", "prompt_hash", "prompt_difference"];
            let members = std::mem::take(input).into_members().into_iter();
            *input =
                Object::from_members(members.filter(|(name, _)| !differences.contains(&&**name)).collect());
            input.push(Cow::Borrowed("payload"), payload);
            input.push(Cow::Borrowed("prompt"), Value::String(Cow::Owned(prompt)));
        }
    }
    Ok(root)
}

/// Returns the complete bodies of requests, with the texts that they are compared by, by the index of the step.
fn restored_requests(steps: &[Value<'_>]) -> HashMap<usize, (Value<'static>, String)> {
    let mut restored = HashMap::new();
    let mut left = MAX_RESTORED;
    visit(steps, &mut |request| {
        let weight = splice::weight(request.payload);
        if let Some(rest) = left.checked_sub(weight.saturating_mul(2))
            && let Some(prompt) = (request.prompt)()
        {
            left = rest;
            restored.insert(request.index, (request.payload.to_owned_value(), prompt));
        }
        ControlFlow::Continue(())
    });
    restored
}

/// Returns whether the recorder stores each body once.
pub(super) fn stores_bodies_once(root: &Value<'_>) -> bool {
    let profile = at(root, &PROFILE).and_then(Value::as_number);
    profile.is_some_and(|profile| profile.as_f64() >= FIRST_PROFILE)
}

/// Adds to the steps of a document what follows from others of their members.
pub(super) fn complete(root: &mut Value<'_>) {
    if !stores_bodies_once(root) {
        return;
    }
    let mut texts = completed_texts(steps(root));
    let Some(Value::Array(steps)) = root.at_pointer_mut("/payload/run/steps") else { return };
    for (index, step) in steps.iter_mut().enumerate() {
        if let (Some(completed), Some(payload)) =
            (texts.remove(&index), step.at_pointer_mut("/input/payload"))
        {
            *payload = completed;
        }
        let Some((name, value)) = read_body(step) else { continue };
        if let Some(Value::Object(output)) = step.at_pointer_mut("/output")
            && !output.contains(name)
        {
            output.push(Cow::Borrowed(name), value);
        }
    }
}

/// Returns what follows from the body of an answer, as a member of the output: the value of one that is JSON, or the text of a
/// stream.
fn read_body(step: &Value<'_>) -> Option<(&'static str, Value<'static>)> {
    let output = step.get("output")?;
    let body = output.get("content").and_then(Value::as_str)?;
    match reader::read(body.as_bytes(), &MAX_BODY) {
        Ok(body) => body.as_object().is_some().then(|| ("output", body.to_owned_value())),
        Err(_) if body.len() as u64 > MAX_BODY.bytes => None,
        Err(_) => Some(("assembled_text", Value::String(Cow::Owned(assembled_text(output)?)))),
    }
}

/// Returns the payloads of which only a part of a text is stored, with these texts complete.
fn completed_texts(steps: &[Value<'_>]) -> HashMap<usize, Value<'static>> {
    let mut completed = HashMap::new();
    let is_partial = |step: &Value<'_>| {
        let (rest, difference) = (at(step, &["input", "payload"]), StatedDifference::of_payload(step));
        rest.zip(difference).is_some_and(|(rest, it)| splice::has_partial_texts(rest, &it.splices))
    };
    if !steps.iter().any(|step| is_request(step) && is_partial(step)) {
        return completed;
    }
    let mut left = MAX_RESTORED;
    let mut restorer = Restorer::new(steps);
    for (index, step) in steps.iter().enumerate().filter(|(_, step)| is_request(step)) {
        if is_partial(step)
            && let Some(rest) = at(step, &["input", "payload"])
            && let Some(StatedDifference { step: Some(base), splices, .. }) =
                StatedDifference::of_payload(step)
            && let Some((_, base)) = restorer.payloads.kept.get(base)
        {
            let mut rest = rest.to_owned_value();
            if splice::restore_texts(base, &mut rest, &splices).is_some() {
                completed.insert(index, rest);
            }
        }
        let Some(RestoredPayload { payload, .. }) = restorer.payload(index, step) else { continue };
        let Some(rest) = left.checked_sub(splice::weight(&payload)) else { break };
        left = rest;
    }
    completed
}

/// Calls `visit` with the requests that have a body.
pub(super) fn visit(steps: &[Value<'_>], visit: &mut RequestVisitor<'_>) {
    let mut restorer = Restorer::new(steps);
    for (index, step) in steps.iter().enumerate().filter(|(_, step)| is_request(step)) {
        let Some(RestoredPayload { payload, repeated }) = restorer.payload(index, step) else { continue };
        let stated = at(step, &["input", "prompt"]).and_then(Value::as_str);
        let prompt = restorer.prompt(index, step, &payload);
        let prompt_hash = prompt_hash(step).or(stated.map(|text| Digest::from_content(text.as_bytes())));
        let visited = visit(RecordedRequest {
            index,
            payload: &payload,
            repeated,
            prompt_hash,
            prompt: &|| stated.map(str::to_owned).or_else(|| text(prompt()?.as_ref())),
        });
        if visited.is_break() {
            return;
        }
    }
}

/// Returns the text that requests are compared by.
fn text(prompt: &Value<'_>) -> Option<String> {
    String::from_utf8(rfc8785::to_vec_with_distinct_integers(prompt).ok()?).ok()
}

/// A difference as a step states it.
struct StatedDifference<'v> {
    /// The id of the step with what it is a difference from.
    step: Option<&'v str>,
    /// What remains; that of a payload is the payload.
    rest: Option<&'v Value<'v>>,
    splices: Vec<Splice>,
}

impl<'v> StatedDifference<'v> {
    fn of_payload(step: &'v Value<'_>) -> Option<Self> {
        Self::read(at(step, &["input", "payload_difference"])?)
    }

    fn of_prompt(step: &'v Value<'_>) -> Option<Self> {
        Self::read(at(step, &["input", "prompt_difference"])?)
    }

    fn read(stated: &'v Value<'_>) -> Option<Self> {
        let step = stated.get("step").and_then(Value::as_str);
        Some(Self { step, rest: stated.get("rest"), splices: Splice::list(stated.get("splices")?)? })
    }
}

/// The values that differences in later steps are from.
#[derive(Default)]
struct KeptValues<'v> {
    /// The last step with a difference from the value of the step with this id.
    last_use: HashMap<&'v str, usize>,
    /// The values, with the numbers of their steps.
    kept: HashMap<&'v str, (usize, Rc<Value<'static>>)>,
}

impl<'v> KeptValues<'v> {
    fn new(uses: impl Iterator<Item = (usize, &'v str)>) -> Self {
        Self { last_use: uses.map(|(index, id)| (id, index)).collect(), kept: HashMap::new() }
    }

    /// Returns whether a step after this one has a difference from its value.
    fn is_used_after(&self, index: usize, id: &str) -> bool {
        self.last_use.get(id).is_some_and(|last| *last > index)
    }

    /// Returns the value that a step has a difference from, and forgets it if no later step has one.
    fn base(&mut self, index: usize, id: &str) -> Option<Rc<Value<'static>>> {
        if self.is_used_after(index, id) {
            self.kept.get(id).map(|(_, value)| Rc::clone(value))
        } else {
            self.kept.remove(id).map(|(_, value)| value)
        }
    }

    /// Keeps the value of a step if it is used later.
    fn keep(&mut self, index: usize, id: &'v str, value: &Rc<Value<'static>>) {
        if self.is_used_after(index, id) {
            self.kept.insert(id, (index, Rc::clone(value)));
        }
    }
}

/// A value that is stated, or was restored from a difference.
#[derive(Clone)]
enum CompleteValue<'v> {
    Stated(&'v Value<'v>),
    Restored(Rc<Value<'static>>),
}

impl<'v> Deref for CompleteValue<'v> {
    type Target = Value<'v>;

    fn deref(&self) -> &Value<'v> {
        match self {
            Self::Stated(value) => value,
            Self::Restored(value) => value,
        }
    }
}

impl CompleteValue<'_> {
    /// Returns the value that the difference from this one stands for. One that nothing else needs becomes it.
    fn continued(self, rest: &Value<'_>, splices: &[Splice]) -> Option<Rc<Value<'static>>> {
        let restored = match self {
            Self::Stated(base) => splice::restore(base, rest, splices),
            Self::Restored(base) => match Rc::try_unwrap(base) {
                Ok(base) => splice::restore_from(base, rest, splices),
                Err(base) => splice::restore(&base, rest, splices),
            },
        };
        restored.map(Rc::new)
    }
}

/// The complete body of a request.
struct RestoredPayload<'v> {
    payload: CompleteValue<'v>,
    repeated: Option<RepeatedElements<'v>>,
}

/// Restores the requests of a run in their order.
struct Restorer<'v> {
    payloads: KeptValues<'v>,
    prompts: KeptValues<'v>,
}

impl<'v> Restorer<'v> {
    fn new(steps: &'v [Value<'_>]) -> Self {
        let uses = |member: &'static str| {
            let uses = steps.iter().enumerate().filter(|(_, step)| is_request(step));
            let base =
                move |step: &'v Value<'_>| at(step, &["input", member, "step"]).and_then(Value::as_str);
            KeptValues::new(uses.filter_map(move |(index, step)| Some((index, base(step)?))))
        };
        Self { payloads: uses("payload_difference"), prompts: uses("prompt_difference") }
    }

    /// Returns the complete body of a request.
    fn payload(&mut self, index: usize, step: &'v Value<'_>) -> Option<RestoredPayload<'v>> {
        let rest = at(step, &["input", "payload"])?;
        let is_used = self.payloads.is_used_after(index, id(step));
        let (payload, repeated) = match StatedDifference::of_payload(step) {
            Some(StatedDifference { step, splices, .. }) => {
                let repeated = self.repeated(step?, rest, &splices);
                let base = CompleteValue::Restored(self.payloads.base(index, step?)?);
                (base.continued(rest, &splices)?, repeated)
            }
            None if is_used => (Rc::new(rest.to_owned_value()), None),
            None => return Some(RestoredPayload { payload: CompleteValue::Stated(rest), repeated: None }),
        };
        self.payloads.keep(index, id(step), &payload);
        Some(RestoredPayload { payload: CompleteValue::Restored(payload), repeated })
    }

    /// Returns a function that returns what a request is compared by.
    fn prompt(
        &mut self,
        index: usize,
        step: &'v Value<'_>,
        payload: &CompleteValue<'v>,
    ) -> impl Fn() -> Option<Rc<Value<'static>>> + use<'v> {
        let base = match at(step, &["input", "prompt_difference", "step"]).and_then(Value::as_str) {
            Some(step) => self.prompts.base(index, step).map(CompleteValue::Restored),
            None => Some(payload.clone()),
        };
        let difference = move |base: Option<CompleteValue<'v>>| {
            let StatedDifference { rest, splices, .. } = StatedDifference::of_prompt(step)?;
            base?.continued(rest?, &splices)
        };
        // One that later ones are differences from is needed in any case.
        let (base, prompt) =
            if self.prompts.is_used_after(index, id(step)) { (None, difference(base)) } else { (base, None) };
        if let Some(prompt) = &prompt {
            self.prompts.keep(index, id(step), prompt);
        }
        move || prompt.clone().or_else(|| difference(base.clone()))
    }

    /// Returns the list of messages that a difference from the body of the step with an id continues.
    fn repeated(&self, id: &str, rest: &'v Value<'_>, splices: &[Splice]) -> Option<RepeatedElements<'v>> {
        let (index, base) = self.payloads.kept.get(id)?;
        let mut lists = rest.as_object()?.iter().filter(|(name, _)| LISTS.contains(name));
        lists.find_map(|(name, value)| {
            let list = value.as_array().and_then(|_| base.get(name)?.as_array())?;
            let place = format!("/{name}");
            let mut inside = splices.iter().filter(|splice| splice.at.starts_with(&place));
            let [range] =
                inside.next().filter(|splice| splice.at == place && splice.from == place)?.ranges[..]
            else {
                return None;
            };
            let count = list.len();
            let is_all = <[usize; 3]>::from(range) == [0, 0, count] && inside.next().is_none();
            is_all.then_some(RepeatedElements { index: *index, name, count })
        })
    }
}

fn id<'v>(step: &'v Value<'_>) -> &'v str {
    step.get("id").and_then(Value::as_str).unwrap_or_default()
}

//! Rules of audits, and the use of a contract's IO references by a run: which ones it called and attested, and which calls
//! are not covered.

use std::collections::{BTreeMap, HashMap};

use super::targets::CallTargets;
use crate::artifact::{RunCall, RunCallResult};
use crate::formats::{ContractTerms, IoRef};
use crate::json::reader::excerpt;
use crate::json::{Object, Value};
use crate::validation::{Findings, RuleInfo};

/// AU7: required refs are attested.
pub(super) const REQUIRED: RuleInfo = RuleInfo::error(
    "AU7",
    "The run attests every ref that the contract requires.",
    "A ref with required: true is attested, before the effects that depend on it: those on any ref if it is read, else \
     those on itself. It is attested by a call of it that returned a result, by evidence of an effect on it, or if \
     the recorder states its full name: in the metadata of the pack, the run or a step, in the input a prompt was rendered \
     from, in the header or a result of a trace, in the run or the evidence of a pack; as a string, or as the name of a \
     member that is not null, false or empty.",
);

/// AU8: calls use declared targets.
pub(super) const TARGETS: RuleInfo = RuleInfo::error(
    "AU8",
    "The run calls only what the contract declares.",
    "io_refs is the closure of everything that an agent may access. A call belongs to a ref if it states the ref, if its tool has the \
     ref's name, with or without the part before the colon, or a name that begins with it and a separator (tracker.label \
     is a call of service:tracker), if its URL begins with it, or if the ref lists the name in its member tools.",
);

/// AU9: calls use declared modes.
pub(super) const MODES: RuleInfo = RuleInfo::error(
    "AU9",
    "Calls and effects match the modes of their refs.",
    "A call that states read, write or mutate, or an HTTP method, must be allowed by the mode of its ref; mutate allows \
     all. An effect that is not idempotent, or that can be rolled back, does more than read.",
);

/// AU10: payloads match their schemas.
pub(super) const SCHEMAS: RuleInfo = RuleInfo::error(
    "AU10",
    "Payloads match the schemas of their refs.",
    "Data sent to a ref that is written or mutated, and data returned from one that is read, is checked against the JSON \
     Schema of the ref: one in the contract, or one in the vault, named as sha256:…, optionally followed by # and \
     a JSON Pointer. Formats are not checked.",
);

/// AU11: schemas are usable.
pub(super) const UNCHECKED: RuleInfo = RuleInfo::warning(
    "AU11",
    "Every payload can be checked against a schema.",
    "Payloads are not checked if the schema is a path, is not in the vault, is not a JSON Schema, refers to something \
     outside itself, or is too large or too complex to be checked within bounds, or if the payload is too large or \
     was redacted. This does not affect verdicts; it reports what was not checked.",
);

/// AU12: there are effects to verify.
pub(super) const EFFECTS: RuleInfo = RuleInfo::error(
    "AU12",
    "The contract states effects.",
    "Without effects, an audit has nothing to verify and must not be mistaken for one that verified everything.",
);

/// AU13: contents outside the run are what their hashes say.
pub(super) const CONTENTS: RuleInfo = RuleInfo::error(
    "AU13",
    "Contents in the vault whose hashes a run states have the form that its format defines.",
    "The problem specification and the states of a trace are hashed as canonical JSON (json-c14n-v1), so bytes in the \
     vault with such a hash must be an object in this form. Otherwise the trace states the hash of \
     something else. Contents that are not in the vault are not checked.",
);

/// AU14: calls that are not idempotent have a nonce.
pub(super) const NONCES: RuleInfo = RuleInfo::error(
    "AU14",
    "Calls of effects that are not idempotent have a nonce.",
    "The caller must supply a deterministic nonce, by which a repeated request is recognized: the argument that the \
     contract names as nonce, or else a member nonce, idempotency_key, idempotency_token, client_token, \
     client_request_token, dedup_id, deduplication_id or message_deduplication_id of the arguments, the request or its \
     metadata, or a header Idempotency-Key. Case, hyphens and underscores are ignored. No nonce is needed if the \
     contract states a reason why retries are unsafe. Calls whose arguments are not recorded are not checked.",
);

/// AU15: calls of keyed effects have their key fields.
pub(super) const KEYS: RuleInfo = RuleInfo::error(
    "AU15",
    "Calls of keyed effects have their key fields.",
    "A repeated request of a keyed effect is recognized by its key fields, so each of them must be among the arguments, \
     and not null. Calls whose arguments are not recorded are not checked.",
);

/// The audit rules.
pub const RULES: [RuleInfo; 15] = [
    RuleInfo::error(
        "AU1",
        "Evidence of type hash is the digest of known bytes.",
        "Verified: the digest, with or without sha256:, is listed in success in the contract; or is the digest of the text \
         that of points to, a JSON Pointer below /arguments or /result of the call; or of the pack file that \
         is named beside it; or else of a core, a capture or a file in the vault, or of a file or a text of the run. \
         The output names the bytes. Failed: it is not the digest of the required bytes, or is not a digest. \
         Inconclusive: the bytes are not known.",
    ),
    RuleInfo::error(
        "AU2",
        "Evidence of type status has a value that means success.",
        "Verified: a value listed in success in the contract; if none is listed, ok, success, succeeded, completed, \
         done or true. Failed: a value not in success, or one in failure; if success is not stated, also aborted, \
         canceled, cancelled, crashed, denied, error, errored, failed, failure, false, rejected, timed_out and timeout. \
         Inconclusive: anything else. Case is ignored. success and failure are members of the evidence or of the effect.",
    ),
    RuleInfo::error(
        "AU3",
        "Evidence of type range is a number within the bounds that the contract states.",
        "Bounds are minimum and maximum (or min and max), exclusiveMinimum and exclusiveMaximum of the evidence. Numbers \
         are compared exactly. Verified: a number within them. Failed: a number outside them, or not a number. Inconclusive: the \
         contract states no bounds.",
    ),
    RuleInfo::warning(
        "AU4",
        "An effect that is not idempotent has a nonce or a reason.",
        "The specification requires such effects to have a deterministic nonce or a reason why retries are unsafe. Either \
         is a member nonce or reason, a non-empty string, of the effect or of its idempotency. Effects \
         without one are listed; this does not affect their verdicts. IC6 reports the same when the contract is added.",
    ),
    RuleInfo::error(
        "AU5",
        "Evidence comes from recorded results.",
        "Evidence is searched in the output of tool.response steps, in the output of successful steps of a trace, and in \
         runner.json and evidence.json of a pack, except values they report as configured or proposed. Values do not count that a \
         model stated, that were requested, that were replayed, or that an error.event follows. path is a JSON Pointer into \
         a result; metric is the name of a member, at the smallest depth at which it occurs; with both, the metric is a \
         member of the value at the path. Either is accepted for every type. Without a source the effect is pending.",
    ),
    RuleInfo::error(
        "AU6",
        "Evidence of an effect is from calls of its target.",
        "If a run names what it calls, only calls of the effect's target count, as described in AU8; for an effect that \
         states tool or tools, only calls of these; and a call whose tool has the name of an effect, or that states one, counts for that effect. With several effects \
         on one target with the same source, a value counts for the one that states it, else for the one that undoes none of the \
         others. If that leaves several, the value proves none of them. Attempts are distinguished by the key fields, else by \
         the data sent. The last attempt decides, but each key needs its own, and no failed attempt is ignored.",
    ),
    REQUIRED,
    TARGETS,
    MODES,
    SCHEMAS,
    UNCHECKED,
    EFFECTS,
    CONTENTS,
    NONCES,
    KEYS,
];

/// HTTP methods that read, and below those that write.
const READING: [&str; 4] = ["GET", "HEAD", "OPTIONS", "TRACE"];
const CHANGING: [&str; 4] = ["POST", "PUT", "PATCH", "DELETE"];

/// The state of all IO references.
pub(super) struct Refs<'t> {
    terms: &'t ContractTerms,
    states: Vec<RefState>,
    /// The refs that a run must attest.
    required: HashMap<&'t str, usize>,
    /// The first call of an effect on a ref that is written.
    effect_call: Option<EffectCall>,
    /// Calls of undeclared targets: their number, and the first location.
    undeclared: BTreeMap<String, (u64, String)>,
    /// Calls in another mode than the declared one, by ref and mode: their number, and the first location.
    mismatches: BTreeMap<(usize, String), (u64, String)>,
}

/// The state of an IO reference.
#[derive(Clone, Debug, Default)]
pub(super) struct RefState {
    /// The location of its first call.
    pub(super) called: Option<String>,
    /// Whether a call returned a result that counts.
    pub(super) answered: bool,
    /// The reason that the last call without such a result has none.
    pub(super) unanswered: Option<String>,
    /// The step or record at which the run first states it, or a call of it returns a result.
    attested_at: Option<usize>,
    /// The first call of it that is an effect.
    effect_call: Option<EffectCall>,
}

/// The call of an effect.
#[derive(Clone, Debug)]
struct EffectCall {
    /// The step or record at which it began.
    began: usize,
    place: String,
    /// Whether it returned a result that counts, so that it attests its target itself.
    is_answered: bool,
}

impl<'t> Refs<'t> {
    pub(super) fn new(terms: &'t ContractTerms) -> Self {
        let refs = terms.io_refs.iter().enumerate();
        let required = refs.filter(|(_, io_ref)| io_ref.is_required);
        Self {
            terms,
            states: vec![RefState::default(); terms.io_refs.len()],
            required: required.map(|(index, io_ref)| (io_ref.name.as_str(), index)).collect(),
            effect_call: None,
            undeclared: BTreeMap::new(),
            mismatches: BTreeMap::new(),
        }
    }

    /// Returns the state of the ref with this number.
    pub(super) fn state_of(&self, index: usize) -> Option<&RefState> {
        self.states.get(index)
    }

    /// Records a call.
    pub(super) fn call(&mut self, call: &RunCall<'_, '_>, tie: &CallTargets) {
        for index in &tie.refs {
            let Some(state) = self.states.get_mut(*index) else { continue };
            state.called.get_or_insert_with(|| call.place.clone());
            match &call.answer {
                RunCallResult::Result { .. } => {
                    state.answered = true;
                    state.attest(call.ended);
                }
                RunCallResult::Discounted { why, .. } => state.unanswered = Some(why.clone()),
                RunCallResult::None => state.unanswered = Some("no result is recorded".to_owned()),
            }
        }
        let names = &call.names;
        if tie.is_named && !tie.is_declared {
            let name = names.io_ref.or(names.tools.first().copied()).or(names.url).unwrap_or_default();
            count_at(&mut self.undeclared, name.to_owned(), &call.place);
        }
        if let Some(mode) = names.mode
            && let Some(index) = tie.refs.first()
            && !tie.refs.iter().any(|index| self.allows(*index, mode))
        {
            count_at(&mut self.mismatches, (*index, mode.to_owned()), &call.place);
        }
    }

    /// Records a call that may be one of `effects`, if there are any. Effects on refs that are read only observe them.
    pub(super) fn effect_call(&mut self, call: &RunCall<'_, '_>, tie: &CallTargets, effects: &[usize]) {
        let is_written = |index: &&usize| self.terms.io_refs.get(**index).is_some_and(|it| it.mode != "read");
        let written: Vec<usize> = tie.refs.iter().filter(is_written).copied().collect();
        if effects.is_empty() || written.is_empty() {
            return;
        }
        let is_answered = matches!(call.answer, RunCallResult::Result { .. });
        let this = EffectCall { began: call.began, place: call.place.clone(), is_answered };
        for index in written {
            if let Some(state) = self.states.get_mut(index) {
                state.effect_call.get_or_insert_with(|| this.clone());
            }
        }
        self.effect_call.get_or_insert(this);
    }

    /// Returns the call of an effect that began before a required ref was attested: of any effect, if the ref is only
    /// read, or of one on the ref itself that did not attest it.
    fn unattested_effect<'r>(&'r self, io_ref: &IoRef, state: &'r RefState) -> Option<&'r EffectCall> {
        let attested_at = state.attested_at?;
        let own = state.effect_call.as_ref().filter(|call| !call.is_answered);
        let first = if io_ref.mode == "read" { self.effect_call.as_ref() } else { own };
        first.filter(|call| call.began < attested_at)
    }

    /// Returns whether the contract declares calls of the stated mode. Words other than modes and methods are ignored.
    fn allows(&self, index: usize, mode: &str) -> bool {
        let declared_mode = match mode {
            "write" | "mutate" => mode,
            mode if is_reading(mode) => "read",
            method if CHANGING.contains(&method.to_uppercase().as_str()) => "write",
            _ => return true,
        };
        self.terms
            .io_refs
            .get(index)
            .is_none_or(|io_ref| io_ref.mode == "mutate" || io_ref.mode == declared_mode)
    }

    /// Records the required refs that the recorder states by full name: as a string, or as the name of a member that is
    /// not null, false or empty. `at` is the number of the step or record.
    pub(super) fn state(&mut self, value: &Value<'_>, at: usize) {
        if self.required.is_empty() {
            return;
        }
        match value {
            Value::String(text) => self.attest(text, at),
            Value::Array(elements) => elements.iter().for_each(|element| self.state(element, at)),
            Value::Object(object) => {
                for (name, member) in object.iter() {
                    if is_populated(member) {
                        self.attest(name, at);
                    }
                    self.state(member, at);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    fn attest(&mut self, name: &str, at: usize) {
        if let Some(state) = self.required.get(name).and_then(|index| self.states.get_mut(*index)) {
            state.attest(at);
        }
    }

    /// Reports the violations. `has_evidence` returns whether evidence of an effect on a ref was found.
    pub(super) fn report(&self, has_evidence: &dyn Fn(&str) -> bool, findings: &mut Findings) {
        let refs = self.terms.io_refs.iter().zip(&self.states).enumerate();
        for (index, (io_ref, state)) in refs.filter(|(_, (io_ref, _))| io_ref.is_required) {
            let name = excerpt(&io_ref.name);
            if let Some(call) = self.unattested_effect(io_ref, state) {
                let message =
                    format!("{name} is required, but the run attests it only after this effect began");
                findings.for_rule(REQUIRED).add(call.place.as_str(), message);
            } else if state.attested_at.is_none() && !has_evidence(&io_ref.name) {
                let message = format!("{name} is required, but the run never attests it");
                findings.for_rule(REQUIRED).add(format!("/io_refs/{index}"), message);
            }
        }
        for (name, (count, place)) in &self.undeclared {
            let message = format!("{} is called{}, but not declared", excerpt(name), times(*count));
            findings.for_rule(TARGETS).add(place.as_str(), message);
        }
        for ((index, mode), (count, place)) in &self.mismatches {
            let Some(io_ref) = self.terms.io_refs.get(*index) else { continue };
            let (name, declared) = (excerpt(&io_ref.name), &io_ref.mode);
            let message =
                format!("{} of {name}{}, which is declared as {declared}", excerpt(mode), times(*count));
            findings.for_rule(MODES).add(place.as_str(), message);
        }
        for (index, effect) in self.terms.effects.iter().enumerate() {
            if let Some(why) = effect.exceeds_reading() {
                let (name, target) = (excerpt(&effect.name), excerpt(&effect.target));
                let message =
                    format!("{name} {why}, so it does more than read; {target} is declared as read");
                findings.for_rule(MODES).add(format!("/effects/{index}"), message);
            }
        }
    }
}

impl RefState {
    fn attest(&mut self, at: usize) {
        self.attested_at = Some(self.attested_at.map_or(at, |first| first.min(at)));
    }
}

/// Returns whether a call of the stated mode or HTTP method only reads.
pub(super) fn is_reading(mode: &str) -> bool {
    mode == "read" || READING.contains(&mode.to_uppercase().as_str())
}

fn count_at<K: Ord>(counts: &mut BTreeMap<K, (u64, String)>, key: K, place: &str) {
    counts.entry(key).or_insert_with(|| (0, place.to_owned())).0 += 1;
}

fn times(count: u64) -> String {
    if count > 1 { format!(" ({count} times)") } else { String::new() }
}

fn is_populated(value: &Value<'_>) -> bool {
    match value {
        Value::Null | Value::Bool(false) => false,
        Value::String(text) => !text.is_empty(),
        Value::Array(elements) => !elements.is_empty(),
        Value::Object(object) => Object::iter(object).len() > 0,
        Value::Bool(true) | Value::Number(_) => true,
    }
}

//! Audit rules and their descriptions.

use crate::validation::{RuleInfo, Severity};

const fn rule(id: &'static str, severity: Severity, summary: &'static str, why: &'static str) -> RuleInfo {
    RuleInfo { id, severity, summary, why }
}

/// AU7: required refs are attested.
pub(super) const REQUIRED: RuleInfo = rule(
    "AU7",
    Severity::Error,
    "The run attests every ref that the contract requires.",
    "A ref with required: true is attested, before the effects that depend on it: those on any ref if it is read, else \
     those on itself. It is attested by a call of it that returned a result, by evidence of an effect on it, or if \
     the recorder states its full name: in the metadata of the pack, the run or a step, in the input a prompt was rendered \
     from, in the header or a result of a trace, in the run or the evidence of a pack; as a string, or as the name of a \
     member that is not null, false or empty.",
);

/// AU8: calls use declared targets.
pub(super) const TARGETS: RuleInfo = rule(
    "AU8",
    Severity::Error,
    "The run calls only what the contract declares.",
    "io_refs is the closure of everything that an agent may access. A call belongs to a ref if it states the ref, if its tool has the \
     ref's name, with or without the part before the colon, or a name that begins with it and a separator (tracker.label \
     is a call of service:tracker), if its URL begins with it, or if the ref lists the name in its member tools.",
);

/// AU9: calls use declared modes.
pub(super) const MODES: RuleInfo = rule(
    "AU9",
    Severity::Error,
    "Calls and effects match the modes of their refs.",
    "A call that states read, write or mutate, or an HTTP method, must be allowed by the mode of its ref; mutate allows \
     all. An effect that is not idempotent, or that can be rolled back, does more than read.",
);

/// AU10: payloads match their schemas.
pub(super) const SCHEMAS: RuleInfo = rule(
    "AU10",
    Severity::Error,
    "Payloads match the schemas of their refs.",
    "Data sent to a ref that is written or mutated, and data returned from one that is read, is checked against the JSON \
     Schema of the ref: one in the contract, or one in the vault, named as sha256:…, optionally followed by # and \
     a JSON Pointer. Formats are not checked.",
);

/// AU11: schemas are usable.
pub(super) const UNCHECKED: RuleInfo = rule(
    "AU11",
    Severity::Warning,
    "Every payload can be checked against a schema.",
    "Payloads are not checked if the schema is a path, is not in the vault, is not a JSON Schema, refers to something \
     outside itself, or is too large or too complex to be checked within bounds, or if the payload is too large or \
     was redacted. This does not affect verdicts; it reports what was not checked.",
);

/// AU12: there are effects to verify.
pub(super) const EFFECTS: RuleInfo = rule(
    "AU12",
    Severity::Error,
    "The contract states effects.",
    "Without effects, an audit has nothing to verify and must not be mistaken for one that verified everything.",
);

/// AU13: contents outside the run are what their hashes say.
pub(super) const CONTENTS: RuleInfo = rule(
    "AU13",
    Severity::Error,
    "Contents in the vault whose hashes a run states have the form that its format defines.",
    "The problem specification and the states of a trace are hashed as canonical JSON (json-c14n-v1), so bytes in the \
     vault with such a hash must be an object in this form. Otherwise the trace states the hash of \
     something else. Contents that are not in the vault are not checked.",
);

/// AU14: calls that are not idempotent have a nonce.
pub(super) const NONCES: RuleInfo = rule(
    "AU14",
    Severity::Error,
    "Calls of effects that are not idempotent have a nonce.",
    "The caller must supply a deterministic nonce, by which a repeated request is recognized: the argument that the \
     contract names as nonce, or else a member nonce, idempotency_key, idempotency_token, client_token, \
     client_request_token, dedup_id, deduplication_id or message_deduplication_id of the arguments, the request or its \
     metadata, or a header Idempotency-Key. Case, hyphens and underscores are ignored. No nonce is needed if the \
     contract states a reason why retries are unsafe. Calls whose arguments are not recorded are not checked.",
);

/// AU15: calls of keyed effects have their key fields.
pub(super) const KEYS: RuleInfo = rule(
    "AU15",
    Severity::Error,
    "Calls of keyed effects have their key fields.",
    "A repeated request of a keyed effect is recognized by its key fields, so each of them must be among the arguments, \
     and not null. Calls whose arguments are not recorded are not checked.",
);

/// The audit rules.
pub const RULES: [RuleInfo; 15] = [
    rule(
        "AU1",
        Severity::Error,
        "Evidence of type hash is the digest of known bytes.",
        "Verified: the digest, with or without sha256:, is listed in success in the contract; or is the digest of the text \
         that of points to, a JSON Pointer below /arguments or /result of the call; or of the pack file that \
         is named beside it; or else of a core, a capture or a file in the vault, or of a file or a text of the run. \
         The output names the bytes. Failed: it is not the digest of the required bytes, or is not a digest. \
         Inconclusive: the bytes are not known.",
    ),
    rule(
        "AU2",
        Severity::Error,
        "Evidence of type status has a value that means success.",
        "Verified: a value listed in success in the contract; if none is listed, ok, success, succeeded, completed, \
         done or true. Failed: a value not in success, or one in failure; if success is not stated, also aborted, \
         canceled, cancelled, crashed, denied, error, errored, failed, failure, false, rejected, timed_out and timeout. \
         Inconclusive: anything else. Case is ignored. success and failure are members of the evidence or of the effect.",
    ),
    rule(
        "AU3",
        Severity::Error,
        "Evidence of type range is a number within the bounds that the contract states.",
        "Bounds are minimum and maximum (or min and max), exclusiveMinimum and exclusiveMaximum of the evidence. Numbers \
         are compared exactly. Verified: a number within them. Failed: a number outside them, or not a number. Inconclusive: the \
         contract states no bounds.",
    ),
    rule(
        "AU4",
        Severity::Warning,
        "An effect that is not idempotent has a nonce or a reason.",
        "The specification requires such effects to have a deterministic nonce or a reason why retries are unsafe. Either \
         is a member nonce or reason, a non-empty string, of the effect or of its idempotency. Effects \
         without one are listed; this does not affect their verdicts. IC6 reports the same when the contract is added.",
    ),
    rule(
        "AU5",
        Severity::Error,
        "Evidence comes from recorded results.",
        "Evidence is searched in the output of tool.response steps, in the output of successful steps of a trace, and in \
         runner.json and evidence.json of a pack, except values they report as configured or proposed. Values do not count that a \
         model stated, that were requested, that were replayed, or that an error.event follows. path is a JSON Pointer into \
         a result; metric is the name of a member, at the smallest depth at which it occurs; with both, the metric is a \
         member of the value at the path. Either is accepted for every type. Without a source the effect is pending.",
    ),
    rule(
        "AU6",
        Severity::Error,
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

//! What audits hold runs to, as people read it.

use crate::verify::{RuleInfo, Severity};

const fn rule(id: &'static str, severity: Severity, summary: &'static str, why: &'static str) -> RuleInfo {
    RuleInfo { id, severity, summary, why }
}

/// AU7: required refs are attested.
pub(super) const REQUIRED: RuleInfo = rule(
    "AU7",
    Severity::Error,
    "The run attests every ref that the contract requires.",
    "A ref with required: true is attested by a call of it that gave a result, by evidence of an effect on it, or where \
     the recorder states its full name: in the metadata of the pack, the run or a step, in what a prompt was rendered \
     from, in the header or a result of a trace, in the run or the evidence of a pack; as a string, or as the name of a \
     member that is not null, false or empty.",
);

/// AU8: calls go to declared targets.
pub(super) const TARGETS: RuleInfo = rule(
    "AU8",
    Severity::Error,
    "The run calls only what the contract declares.",
    "io_refs is the closure of all that an agent may touch. A call is of a ref if it states the ref, if its tool has the \
     ref's name, with or without what is before the colon, or a name that begins with it and a separator (tracker.label \
     is a call of service:tracker), if its URL begins so, or if the ref lists the name in its member tools.",
);

/// AU9: calls have declared modes.
pub(super) const MODES: RuleInfo = rule(
    "AU9",
    Severity::Error,
    "Calls and effects agree with the modes of their refs.",
    "A call that states read, write or mutate, or an HTTP method, is one that the mode of its ref allows; mutate allows \
     all. An effect that is not idempotent, or that can be rolled back, does more than read.",
);

/// AU10: payloads agree with schemas.
pub(super) const SCHEMAS: RuleInfo = rule(
    "AU10",
    Severity::Error,
    "Payloads agree with the schemas of their refs.",
    "What is sent to a ref that is written or mutated, and what comes back from one that is read, is held to the JSON \
     Schema of the ref: one that stands in the contract, or one that the vault has, named as sha256:… and possibly # and \
     a JSON Pointer. Formats are not checked.",
);

/// AU11: schemas can be used.
pub(super) const UNCHECKED: RuleInfo = rule(
    "AU11",
    Severity::Warning,
    "Every payload can be held to a schema.",
    "Payloads are not checked where the schema is a path, is not in the vault, is not a JSON Schema, refers to something \
     outside itself, or is too large or too complex to be checked within bounds, and where the payload is too large or \
     was redacted. This decides nothing; it says what was not checked.",
);

/// AU12: there is something to verify.
pub(super) const EFFECTS: RuleInfo = rule(
    "AU12",
    Severity::Error,
    "The contract states effects.",
    "Without effects an audit has nothing to verify, and must not be taken for one that verified everything.",
);

/// What audits hold runs to.
pub const RULES: [RuleInfo; 12] = [
    rule(
        "AU1",
        Severity::Error,
        "Evidence of type hash is the digest of bytes that are known.",
        "Verified: the digest, with or without sha256:, is one that the contract states in success; or that of the text \
         to which of leads, a JSON Pointer below /arguments or /result of the call; or that of the file of the pack which \
         is named beside it; or else that of a core, a capture or a file in the vault, or of a file or a text of the run. \
         The answer names the bytes. Failed: it differs from what it has to be the digest of, or is not a digest. \
         Resolved: the bytes are not known.",
    ),
    rule(
        "AU2",
        Severity::Error,
        "Evidence of type status has a value that means success.",
        "Verified: a value that the contract states in success; where it states none, ok, success, succeeded, completed, \
         done or true. Failed: a value outside success, or one in failure; where success is not stated, also aborted, \
         canceled, cancelled, crashed, denied, error, errored, failed, failure, false, rejected, timed_out and timeout. \
         Resolved: anything else. Case does not count. success and failure are members of the evidence or of the effect.",
    ),
    rule(
        "AU3",
        Severity::Error,
        "Evidence of type range is a number within the bounds that the contract states.",
        "Bounds are minimum and maximum (or min and max), exclusiveMinimum and exclusiveMaximum of the evidence. Numbers \
         are compared exactly. Verified: a number within them. Failed: a number outside, or no number. Resolved: the \
         contract states no bounds.",
    ),
    rule(
        "AU4",
        Severity::Warning,
        "An effect that is not idempotent gives a nonce or a reason.",
        "The specification demands of such effects a deterministic nonce, or a word on why retries are unsafe. Either \
         is a member nonce or reason, a string that is not empty, of the effect or of its idempotency. Effects \
         without are listed; this does not decide whether they are verified. IC6 says the same when the contract is added.",
    ),
    rule(
        "AU5",
        Severity::Error,
        "Evidence counts where something happened.",
        "Evidence is looked for in the output of tool.response steps, in the output of successful steps of a trace, and in \
         runner.json and evidence.json of a pack, without what these say was configured or proposed. Nothing counts that a \
         model said, that was asked for, that was played back, or that an error.event follows. path is a JSON Pointer into \
         a result; metric is the name of a member, at the smallest depth at which there is one; with both, the metric is a \
         member of what the path leads to. Either is accepted for every type. Without a source the effect is pending.",
    ),
    rule(
        "AU6",
        Severity::Error,
        "Evidence of an effect is from calls of its target.",
        "Where a run names what it calls, only calls of the effect's target count, as AU8 describes them; of an effect that \
         states tool or tools, only calls of these; and a call whose tool has the name of an effect, or that states one, counts for that effect. Of several effects \
         on one target with the same source, a value counts for the one that states it; else for the one that undoes no \
         other. Where that leaves several, the value proves none of them. Attempts are told apart by the key fields, else by \
         what was sent. The last attempt decides, but each key needs its own, and no attempt that failed is passed over.",
    ),
    REQUIRED,
    TARGETS,
    MODES,
    SCHEMAS,
    UNCHECKED,
    EFFECTS,
];

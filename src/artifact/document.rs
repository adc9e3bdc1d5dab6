//! The rules that apply to documents of every kind, and to recognizing the kind of a document.

use std::fmt;

use crate::json::reader::{Defect, Limit, ReadError};
use crate::secrets::SecretMatch;
use crate::validation::{Findings, Remedy, Report, RuleInfo, Severity, Violation};

const fn rule(id: &'static str, summary: &'static str, why: &'static str) -> RuleInfo {
    RuleInfo { id, severity: Severity::Error, summary, why }
}

const ENCODING: RuleInfo = rule(
    "DOC1",
    "The document is UTF-8 without a byte order mark.",
    "Programs disagree on the meaning of invalid bytes, so readers would interpret such a document \
     differently. Save it as UTF-8. In YAML a leading byte order mark is legal and allowed.",
);
const SYNTAX: RuleInfo = rule(
    "DOC2",
    "The document is well-formed JSON, JSON Lines or YAML; an archive is intact.",
    "JSON is read as RFC 8259 defines it: no comments, no trailing commas, nothing after the value. A file \
     that is truncated or contains zero bytes was often copied while it was still being written, or before \
     a disk was full or a machine lost power: copy it again, or record it again, otherwise leave it out.",
);
const DUPLICATE_KEY: RuleInfo = rule(
    "DOC3",
    "No object has two members with the same name.",
    "Some readers keep the first of two members, others the last: the document would have \
     two meanings and two hashes. Names are compared after unescaping, at every depth.",
);
const DEPTH: RuleInfo = rule(
    "DOC4",
    "The document is not nested deeper than the limit.",
    "Hostile documents use deep nesting to exhaust the stack of readers. By default, the \
     limit is 128 levels. No real artifact comes near it.",
);
const SIZE: RuleInfo = rule(
    "DOC5",
    "The document is not larger than the limit.",
    "Untrusted input must not be able to exhaust memory. By default, the limits are 256 MiB, ten million values \
     and ten thousand entries; docs/limits.md lists all of them.",
);
const NUMBER: RuleInfo = rule(
    "DOC6",
    "Every number has a canonical form.",
    "NaN, infinities, numbers that overflow to infinity and numbers of more \
     than 4,300 digits have no canonical form, so nothing that contains them \
     can be hashed. In a session, numbers outside the core may overflow.",
);
const SURROGATE: RuleInfo = rule(
    "DOC7",
    "No string contains an unpaired surrogate.",
    "An escape such as \\ud83d without its other half is not a character and has no \
     UTF-8 form. It usually comes from text that was cut in the middle of an emoji.",
);

/// No kind recognizes the document.
pub const UNRECOGNISED: RuleInfo = rule(
    "KIND",
    "The document is of a known kind.",
    "The kind is recognized by content, never by the file name. If a kind is required, its rules report what is missing.",
);

/// Several kinds recognize the document.
pub const AMBIGUOUS: RuleInfo = rule(
    "AMBIGUOUS",
    "One kind recognizes the document.",
    "Formats allow further members, so one document may be a valid artifact of two kinds, with two core hashes. The \
     content does not determine the kind. The document can be added once for each kind.",
);

/// What is to be stored contains something like a secret.
pub const SECRET: RuleInfo = rule(
    "SECRET",
    "The document contains nothing that looks like a key or a card number.",
    "Whoever can read a vault can read what is in it, and backups keep it. The rule applies if it is requested; otherwise \
     there is only a warning. Replace the secret where it is recorded, and revoke a key that was recorded: it may be in \
     other places, too. docs/trust.md says what is looked for.",
);

/// Returns the report on a document with secrets.
#[must_use]
pub fn secret(secrets: &[SecretMatch]) -> Report {
    let mut findings = Findings::default();
    for SecretMatch { rule, looks_like, place, beginning } in secrets {
        let message = format!("this looks like {looks_like}, beginning with {beginning} (rule {rule})");
        findings.for_rule(SECRET).add(place.as_str(), message);
    }
    findings.into_report()
}

/// Returns the violation for a document that `kinds` recognize.
#[must_use]
pub fn ambiguous(kinds: &[super::Kind]) -> Violation {
    let names: Vec<&str> = kinds.iter().map(|kind| kind.name()).collect();
    let message =
        format!("{} kinds recognize the document: {}; specify one of them", names.len(), names.join(", "));
    Violation::new(AMBIGUOUS, "", message)
}

/// Returns the violation for a document or archive that a required kind could recognize.
#[must_use]
pub fn unrecognized(message: &str) -> Violation {
    Violation::new(UNRECOGNISED, "", message).with_remedy(Remedy::RequireKind)
}

/// Returns the rules of all documents.
#[must_use]
pub fn rules() -> Vec<RuleInfo> {
    vec![ENCODING, SYNTAX, DUPLICATE_KEY, DEPTH, SIZE, NUMBER, SURROGATE, UNRECOGNISED, AMBIGUOUS, SECRET]
}

/// Returns the rule that a defect breaks.
#[must_use]
pub fn rule_of(defect: Defect) -> RuleInfo {
    match defect {
        Defect::Encoding => ENCODING,
        Defect::Syntax => SYNTAX,
        Defect::DuplicateKey => DUPLICATE_KEY,
        Defect::TooDeep => DEPTH,
        Defect::TooLarge => SIZE,
        Defect::Number => NUMBER,
        Defect::Surrogate => SURROGATE,
    }
}

/// Returns the violation for a document that cannot be read.
#[must_use]
pub fn violation(error: &ReadError) -> Violation {
    let path = format!("line {} column {}", error.line, error.column);
    let remedy = error.limit.map(Remedy::Raise);
    Violation { remedy, ..Violation::new(rule_of(error.defect), path, error.message.clone()) }
}

/// Returns the violation for a document of `bytes` bytes, detected before reading it.
#[must_use]
pub fn too_large(bytes: u64, limit: u64) -> Violation {
    beyond(Limit::Bytes, format!("the document has {bytes} bytes, more than the limit of {limit}"))
}

/// Returns the violation for a document that was truncated after more than `limit` bytes.
#[must_use]
pub fn larger_than(limit: u64) -> Violation {
    beyond(Limit::Bytes, format!("the document exceeds the limit of {limit} bytes"))
}

/// Returns the violation for a directory or archive whose files exceed `limit` bytes in total.
#[must_use]
pub fn files_too_large(limit: u64) -> Violation {
    beyond(Limit::Bytes, format!("the files exceed the total limit of {limit} bytes"))
}

/// Returns the violation for exceeding a limit that callers set, described by `message`.
#[must_use]
pub fn beyond(limit: Limit, message: String) -> Violation {
    too_much(message).with_remedy(Remedy::Raise(limit))
}

/// Returns the violation for exceeding a fixed limit, described by `message`.
#[must_use]
pub fn too_much(message: String) -> Violation {
    Violation::new(SIZE, "", message)
}

/// Returns the violation for a malformed archive, described by `message`.
#[must_use]
pub fn broken_archive(message: String) -> Violation {
    Violation::new(SYNTAX, "", message)
}

/// Reports that the value at `path` of a document has no canonical form and therefore no hash.
pub fn report_uncanonical(path: &str, error: &dyn fmt::Display, findings: &mut Findings) {
    findings.for_rule(NUMBER).add(path, format!("there is no canonical form to hash: {error}"));
}

/// Reports that a document cannot be read.
pub fn report(error: &ReadError, findings: &mut Findings) {
    findings.add(violation(error));
}

/// Reports that a document states too many digests at deeply nested locations.
pub(super) fn report_pointers(findings: &mut Findings) {
    let limit = super::draft::MAX_POINTER_BYTES;
    let message =
        format!("the JSON Pointers to the digests in the document exceed the limit of {limit} bytes");
    findings.for_rule(SIZE).add("", message);
}

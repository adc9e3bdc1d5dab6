//! The rules that hold for documents of every kind, and for finding out which kind a document is.

use std::fmt;

use crate::canonical::reader::{Defect, ReadError};
use crate::verify::{Findings, RuleInfo, Severity, Violation};

const fn rule(id: &'static str, summary: &'static str, why: &'static str) -> RuleInfo {
    RuleInfo { id, severity: Severity::Error, summary, why }
}

const ENCODING: RuleInfo = rule(
    "DOC1",
    "The document is UTF-8 without a byte order mark.",
    "Programs disagree on what invalid bytes stand for, so such a document would not mean the same to all of its \
     readers. Save it as UTF-8. In YAML a leading byte order mark is legal and allowed.",
);
const SYNTAX: RuleInfo = rule(
    "DOC2",
    "The document is well-formed JSON, JSON Lines or YAML; an archive is whole.",
    "JSON is read as RFC 8259 defines it: no comments, no trailing commas, nothing after the value. A file that breaks \
     off in the middle, or has bytes that are zero, was often copied while it was still being written, or before a \
     disk was full or a machine lost power: copy it again, or record it again, and leave it out otherwise.",
);
const DUPLICATE_KEY: RuleInfo = rule(
    "DOC3",
    "No object has two members of the same name.",
    "Some readers keep the first of two members, some the last: the document would have two meanings and two hashes. \
     Names are compared after unescaping, at every depth.",
);
const DEPTH: RuleInfo = rule(
    "DOC4",
    "The document is not nested deeper than the limit.",
    "Deep nesting is how hostile documents exhaust the stack of their readers. The limit is 128 levels unless \
     --max-depth sets another. No real artifact comes near it.",
);
const SIZE: RuleInfo = rule(
    "DOC5",
    "The document is not larger than the limit.",
    "Whoever feeds an archive must not be able to exhaust its memory. The limits are 256 MiB, ten million values and \
     ten thousand entries unless --max-size, --max-values and --max-entries set others; docs/limits.md has all of them.",
);
const NUMBER: RuleInfo = rule(
    "DOC6",
    "Every number has a canonical form.",
    "NaN, infinities, numbers that overflow to infinity and numbers of more than 4,300 digits cannot be written \
     canonically, so nothing that contains them can be hashed. In a model_io document, numbers outside the core may \
     overflow.",
);
const SURROGATE: RuleInfo = rule(
    "DOC7",
    "No string contains an unpaired surrogate.",
    "An escape such as \\ud83d without its other half is no character and has no UTF-8 form. It mostly comes from text \
     that was cut in the middle of an emoji.",
);

/// No kind recognises the document.
pub const UNRECOGNISED: RuleInfo = rule(
    "KIND",
    "The document is of a known kind.",
    "The kind is recognised by content, never by the file name. --kind insists on one, and then its rules say what is \
     missing.",
);

/// Several kinds recognise the document.
pub const AMBIGUOUS: RuleInfo = rule(
    "AMBIGUOUS",
    "One kind recognises the document.",
    "Formats allow further members, so one document may be a valid artifact of two kinds, with two core hashes. Which of \
     them is meant cannot be told by the content; --kind NAME says it. It may be added once for each kind.",
);

/// Reports that `kinds` recognise a document.
#[must_use]
pub fn ambiguous(kinds: &[super::Kind]) -> Violation {
    let names: Vec<&str> = kinds.iter().map(|kind| kind.name()).collect();
    let message =
        format!("{} kinds recognise the document: {}; say which one is meant", names.len(), names.join(", "));
    Violation::new(AMBIGUOUS, "", message)
}

/// The rules of all documents.
#[must_use]
pub fn rules() -> Vec<RuleInfo> {
    vec![ENCODING, SYNTAX, DUPLICATE_KEY, DEPTH, SIZE, NUMBER, SURROGATE, UNRECOGNISED, AMBIGUOUS]
}

/// The rule that a defect breaks.
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

/// The violation that a document is which cannot be read.
#[must_use]
pub fn violation(error: &ReadError) -> Violation {
    let path = format!("line {} column {}", error.line, error.column);
    Violation::new(rule_of(error.defect), path, error.message.clone())
}

/// The violation that a document of `bytes` bytes is, found before reading it.
#[must_use]
pub fn too_large(bytes: u64, limit: u64) -> Violation {
    Violation::new(
        SIZE,
        "",
        format!("the document has {bytes} bytes, more than the limit of {limit}; --max-size sets another"),
    )
}

/// The violation that a document is which was cut off when it had more than `limit` bytes.
#[must_use]
pub fn larger_than(limit: u64) -> Violation {
    let message = format!("the document has more bytes than the limit of {limit}; --max-size sets another");
    Violation::new(SIZE, "", message)
}

/// The violation that the files of a directory or archive are which have more than `limit` bytes in all.
#[must_use]
pub fn files_too_large(limit: u64) -> Violation {
    Violation::new(
        SIZE,
        "",
        format!("the files have more bytes in all than the limit of {limit}; --max-size sets another"),
    )
}

/// The violation that something which goes beyond a limit is, as `message` says.
#[must_use]
pub fn too_much(message: String) -> Violation {
    Violation::new(SIZE, "", message)
}

/// The violation that an archive is which is broken, as `message` says.
#[must_use]
pub fn broken_archive(message: String) -> Violation {
    Violation::new(SYNTAX, "", message)
}

/// Reports that what stands at `path` of a document has no canonical form, so that no hash of it exists.
pub fn report_uncanonical(path: &str, error: &dyn fmt::Display, findings: &mut Findings) {
    findings.of(NUMBER).add(path, format!("there is no canonical form to hash: {error}"));
}

/// Reports that a document cannot be read.
pub fn report(error: &ReadError, findings: &mut Findings) {
    let path = format!("line {} column {}", error.line, error.column);
    findings.of(rule_of(error.defect)).add(path, error.message.clone());
}

/// Reports that a document states too many digests too deep inside.
pub(super) fn report_pointers(findings: &mut Findings) {
    let limit = super::mention::MAX_POINTER_BYTES;
    let message = format!(
        "the JSON Pointers to the digests that the document states have more than {limit} bytes, the limit"
    );
    findings.of(SIZE).add("", message);
}

//! The rules that apply to documents of every kind, to recognizing their kind and the versions of their formats, and the
//! limit on the values of documents in memory.
//!
//! A value takes many times the memory of its text, so documents that are small as files may be large once parsed, and
//! several are parsed at once. A reader reserves room for as many values as its text can have, and waits until it is
//! available.

use std::cell::Cell;
use std::fmt;

use parking_lot::{Condvar, Mutex};

use crate::json::reader::{Defect, Limit, ReadError};
use crate::secrets::SecretMatch;
use crate::validation::{Findings, Remedy, Report, RuleInfo, Violation};

const ENCODING: RuleInfo = RuleInfo::error(
    "DOC1",
    "The document is UTF-8 without a byte order mark.",
    "Programs disagree on the meaning of invalid bytes, so readers would interpret such a document \
     differently. Save it as UTF-8. In YAML a leading byte order mark is legal and allowed.",
);
const SYNTAX: RuleInfo = RuleInfo::error(
    "DOC2",
    "The document is well-formed JSON, JSON Lines or YAML; an archive is intact.",
    "JSON is read as RFC 8259 defines it: no comments, no trailing commas, nothing after the value. A file \
     that is truncated or contains zero bytes was often copied while it was still being written, or before \
     a disk was full or a machine lost power: copy it again, or record it again, otherwise leave it out.",
);
const DUPLICATE_KEY: RuleInfo = RuleInfo::error(
    "DOC3",
    "No object has two members with the same name.",
    "Some readers keep the first of two members, others the last: the document would have \
     two meanings and two hashes. Names are compared after unescaping, at every depth.",
);
const DEPTH: RuleInfo = RuleInfo::error(
    "DOC4",
    "The document is not nested deeper than the limit.",
    "Hostile documents use deep nesting to exhaust the stack of readers. By default, the \
     limit is 128 levels. No real artifact comes near it.",
);
const SIZE: RuleInfo = RuleInfo::error(
    "DOC5",
    "The document is not larger than the limit.",
    "Untrusted input must not be able to exhaust memory. By default, the limits are 256 MiB, ten million values \
     and ten thousand entries; docs/limits.md lists all of them.",
);
const NUMBER: RuleInfo = RuleInfo::error(
    "DOC6",
    "Every number has a canonical form.",
    "NaN, infinities, numbers that overflow to infinity and numbers of more \
     than 4,300 digits have no canonical form, so nothing that contains them \
     can be hashed. In a session, numbers outside the core may overflow.",
);
const SURROGATE: RuleInfo = RuleInfo::error(
    "DOC7",
    "No string contains an unpaired surrogate.",
    "An escape such as \\ud83d without its other half is not a character and has no \
     UTF-8 form. It usually comes from text that was cut in the middle of an emoji.",
);

/// No kind recognizes the document.
pub const UNRECOGNISED: RuleInfo = RuleInfo::error(
    "KIND",
    "The document is of a known kind.",
    "The kind is recognized by content, never by the file name. If a kind is required, its rules report what is missing.",
);

/// Several kinds recognize the document.
pub const AMBIGUOUS: RuleInfo = RuleInfo::error(
    "AMBIGUOUS",
    "One kind recognizes the document.",
    "Formats allow further members, so one document may be a valid artifact of two kinds, with two core hashes. The \
     content does not determine the kind. The document can be added once for each kind.",
);

/// What is to be stored contains something like a secret.
pub const SECRET: RuleInfo = RuleInfo::error(
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

/// The supported major versions of a format. Minor versions and patches of a supported major version are additions that
/// do not change the meaning of other members.
#[derive(Clone, Copy, Debug)]
pub struct SupportedMajors(&'static [&'static str]);

impl SupportedMajors {
    /// Creates a set of major versions, in decimal without leading zeros.
    #[must_use]
    pub const fn new(majors: &'static [&'static str]) -> Self {
        Self(majors)
    }

    /// Returns the message that the major version of `version` is not supported, with those that are. Returns `None` if
    /// it is supported, or if the text does not begin with digits and a full stop and so states no major version.
    #[must_use]
    pub fn objection(self, version: &str) -> Option<String> {
        let (major, _) = version.split_once('.')?;
        if major.is_empty() || !major.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        let major = match major.trim_start_matches('0') {
            "" => "0",
            major => major,
        };
        if self.0.contains(&major) {
            return None;
        }
        Some(format!("unknown major version {}; known: {self}", shortened(major)))
    }
}

impl std::fmt::Display for SupportedMajors {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (index, major) in self.0.iter().enumerate() {
            let separator = if index == 0 { "" } else { ", " };
            write!(f, "{separator}{major}.x")?;
        }
        Ok(())
    }
}

/// Shortens a number of any length for a message.
fn shortened(digits: &str) -> String {
    const LONGEST: usize = 20;
    match digits.split_at_checked(LONGEST) {
        Some((first, rest)) if !rest.is_empty() => format!("{first}…"),
        _ => digits.to_owned(),
    }
}

/// Returns whether `text` is a version as Semantic Versioning 2.0.0 defines it, including pre-release and build parts.
#[must_use]
pub fn is_semver(text: &str) -> bool {
    let (rest, build) = match text.split_once('+') {
        Some((rest, build)) => (rest, Some(build)),
        None => (text, None),
    };
    let (core, pre_release) = match rest.split_once('-') {
        Some((core, pre_release)) => (core, Some(pre_release)),
        None => (rest, None),
    };
    let identifier = |part: &str| {
        !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    };
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let number = |part: &str| digits(part) && (part == "0" || !part.starts_with('0'));
    core.split('.').count() == 3
        && core.split('.').all(number)
        && pre_release.is_none_or(|part| {
            part.split('.').all(|part| identifier(part) && (number(part) || !digits(part)))
        })
        && build.is_none_or(|part| part.split('.').all(identifier))
}

/// The maximum number of values in memory at once, unless a single document has more.
const BUDGET: usize = 4 << 20;

/// Smaller documents, in bytes, are not counted: one per thread is harmless.
const SMALL: usize = 256 << 10;

static RESERVED_VALUES: Mutex<usize> = Mutex::new(0);
static GIVEN_BACK: Condvar = Condvar::new();

thread_local! {
    /// Whether this thread has a reservation: parts of a document are counted with it.
    static HAS_ROOM: Cell<bool> = const { Cell::new(false) };
}

/// A reservation for the values of a document, released on drop.
#[must_use]
pub(super) struct ValueReservation {
    values: usize,
}

impl ValueReservation {
    /// Waits for room for the values of these texts. A document with more values than the budget waits until it is the
    /// only one.
    pub(super) fn take<'t>(texts: impl Iterator<Item = &'t [u8]>) -> Self {
        let values: usize = texts.filter(|text| text.len() >= SMALL).map(most_values).sum();
        let values = values.min(BUDGET);
        if values == 0 || HAS_ROOM.replace(true) {
            return Self { values: 0 };
        }
        let mut reserved = RESERVED_VALUES.lock();
        GIVEN_BACK.wait_while(&mut reserved, |reserved| *reserved + values > BUDGET);
        *reserved += values;
        Self { values }
    }
}

impl Drop for ValueReservation {
    fn drop(&mut self) {
        if self.values > 0 {
            HAS_ROOM.set(false);
            *RESERVED_VALUES.lock() -= self.values;
            GIVEN_BACK.notify_all();
        }
    }
}

/// Returns the maximum number of values that a JSON text can have: the first, and one after each comma, colon and
/// opening bracket. YAML may have more; it has its own, lower limit.
fn most_values(text: &[u8]) -> usize {
    let separators = memchr::memchr3_iter(b',', b':', b'[', text).count();
    separators + memchr::memchr_iter(b'{', text).count() + 1
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::thread;

    use super::*;

    #[test]
    fn unknown_majors_are_named_with_the_known_ones() {
        let known = SupportedMajors::new(&["0", "1"]);
        for version in ["0.1", "1.0.0", "01.20.300", "00.1", "1.", "", "1", "v2.0", ".1", "x.1", "2"] {
            assert_eq!(known.objection(version), None, "{version}");
        }
        assert_eq!(known.objection("02.1.0").as_deref(), Some("unknown major version 2; known: 0.x, 1.x"));
        let long = format!("{}.0", "9".repeat(1000));
        let message = known.objection(&long).unwrap();
        assert!(message.starts_with("unknown major version 99999999999999999999…;"), "{message}");
    }

    #[test]
    fn versions_are_those_of_semver() {
        for text in [
            "0.0.0",
            "1.0.0",
            "10.20.30",
            "1.0.0-alpha",
            "1.0.0-0.3.7",
            "1.0.0-x-y-z.--",
            "1.0.0+001",
            "1.0.0-rc.1+sha.5114f85",
            "1.0.0+a-b",
        ] {
            assert!(is_semver(text), "{text}");
        }
        for text in [
            "",
            "1",
            "1.0",
            "1.0.0.0",
            "01.0.0",
            "1.0.0-",
            "1.0.0+",
            "1.0.0-01",
            "1.0.0-a..b",
            "v1.0.0",
            "1.0.0-é",
            " 1.0.0",
            "1.0.0\n",
            "1.0.x",
            "1.0.0+a+b",
            "-1.0.0",
        ] {
            assert!(!is_semver(text), "{text}");
        }
    }

    #[test]
    fn large_documents_are_read_one_at_a_time() {
        let text = vec![b','; BUDGET];
        let (reading, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let _room = ValueReservation::take([text.as_slice()].into_iter());
                    // A part of the document needs no reservation of its own.
                    let _part = ValueReservation::take([text.as_slice()].into_iter());
                    most.fetch_max(reading.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                    thread::yield_now();
                    reading.fetch_sub(1, Ordering::SeqCst);
                });
            }
        });
        assert_eq!(most.into_inner(), 1);
    }

    #[test]
    fn no_json_text_has_more_values_than_are_counted() {
        for (text, values) in [("1", 1), ("[]", 1), ("[1,2]", 3), (r#"{"a":{"b":[1]}}"#, 4)] {
            assert!(most_values(text.as_bytes()) >= values, "{text}");
        }
    }
}

//! The parsed files of a pack.

use std::collections::BTreeMap;
use std::io;

use crate::artifact::{AdmitOptions, Admitted, Directory, EntryContent, Kind, document, unreadable};
use crate::digest::Digest;
use crate::formats;
use crate::formats::runner::RUNNER_CORE;
use crate::json::canonical::rfc8785::{self, CanonicalInput};
use crate::json::reader::{self, Limits, ReadError};
use crate::json::{Value, ecmascript, pointer};
use crate::secrets::SecretPolicy;
use crate::validation::{Finder, Report};

/// Returns the digest of the canonical form of `value` and a line feed.
///
/// # Errors
/// Returns an error for a number that overflows to infinity, which has no canonical form.
pub(super) fn canonical_hash<'v>(value: impl Into<CanonicalInput<'v>>) -> io::Result<Digest> {
    rfc8785::digest(value, b"\n")
}

/// Returns the canonical bytes whose digest is the core hash of a pack whose members have these `digests`.
pub(super) fn core_bytes(digests: &BTreeMap<&'static str, Digest>) -> Vec<u8> {
    rfc8785::object_of_texts(digests.iter().map(|(name, digest)| (*name, digest.to_string())))
}

/// Returns the hashed part of a runner record.
pub(super) fn runner_core<'v>(runner: &'v Value<'v>) -> CanonicalInput<'v> {
    selected(runner, &RUNNER_CORE)
}

/// Returns those of the members of an object that are hashed.
fn selected<'v>(object: &'v Value<'v>, hashed: &[&'static str]) -> CanonicalInput<'v> {
    let members = hashed.iter().filter_map(|name| Some((*name, CanonicalInput::Value(object.get(name)?))));
    CanonicalInput::Object(members.collect())
}

/// The members of execution evidence that its specification hashes. Others describe a single execution.
const EVIDENCE_CORE: [&str; 5] = ["proposal_id", "proposal_hash", "action_results", "test_results", "status"];

/// The members of execution evidence that are sorted before they are hashed.
const SORTED_EVIDENCE: [&str; 2] = ["action_results", "test_results"];

/// Returns the hash of execution evidence that its specification defines; `None` if it depends on the order of strings in a language.
pub(super) fn evidence_hash(evidence: &Value<'_>) -> Option<Digest> {
    let has_one_order =
        |name| evidence.get(name).and_then(Value::as_array).is_some_and(|list| list.len() < 2);
    if !SORTED_EVIDENCE.into_iter().all(has_one_order) {
        return None;
    }
    rfc8785::digest(selected(evidence, &EVIDENCE_CORE), b"").ok()
}

/// The file names that a pack can contain.
pub(super) const MEMBER_NAMES: [&str; 9] = [
    "run.json",
    "bundle.json",
    "patch.json",
    "evidence.json",
    LEDGER,
    "policy.json",
    SESSION,
    "runner.json",
    "meta.json",
];

/// The name of the recorded session in a pack.
pub(super) const SESSION: &str = "model_io.json";

/// The name of the ledger in a pack.
pub(super) const LEDGER: &str = "ledger.jsonl";

/// Documents that are not parsed as plain JSON.
const OTHERWISE_READ: [&str; 2] = [LEDGER, SESSION];

/// Documents with a rule of their own for numbers that overflow.
const WITH_OVERFLOW_RULE: [&str; 2] = ["bundle.json", "runner.json"];

/// The contents of a pack.
pub(super) struct PackContents<'d> {
    pub(super) directory: &'d Directory,
    pub(super) limits: &'d Limits,
    json: BTreeMap<&'static str, Result<Value<'d>, ReadError>>,
    /// The session, admitted as a separate artifact.
    pub(super) session: Option<Result<Admitted, Report>>,
}

impl<'d> PackContents<'d> {
    pub(super) fn new(directory: &'d Directory, options: &'d AdmitOptions) -> Self {
        let mut json = BTreeMap::new();
        let mut limits = options.limits;
        for name in MEMBER_NAMES.into_iter().filter(|name| !OTHERWISE_READ.contains(name)) {
            if let Some(bytes) = file(directory, name) {
                let read = if WITH_OVERFLOW_RULE.contains(&name) {
                    reader::read_keeping_overflow(bytes, &limits)
                } else {
                    reader::read(bytes, &limits)
                };
                // All members are in memory at once, so they share the limit of one document.
                limits.values = limits.values.saturating_sub(read.as_ref().map_or(0, count));
                json.insert(name, read);
            }
        }
        let kind = formats::named("model_io");
        // The files of the pack are searched for secrets together.
        let options_of_session = AdmitOptions { secrets: SecretPolicy::Ignore, ..options.clone() };
        let admit = |(bytes, kind): (&[u8], Kind)| kind.admit(bytes.to_vec(), &options_of_session);
        let session = file(directory, SESSION).zip(kind).map(admit);
        Self { directory, limits: &options.limits, json, session }
    }

    /// Returns the bytes of a member that is a regular file.
    pub(super) fn file(&self, name: &str) -> Option<&'d [u8]> {
        file(self.directory, name)
    }

    /// Returns whether an entry with the name of a member cannot be opened.
    pub(super) fn is_unopenable(&self, name: &str) -> bool {
        matches!(self.directory.entry(name), Some(entry) if matches!(entry.content, EntryContent::Other))
    }

    /// Returns the lines of the ledger that are entries, numbered from 1; none if it is not text.
    pub(super) fn ledger(&self) -> impl Iterator<Item = (usize, Result<Value<'d>, ReadError>)> {
        let text = self.file(LEDGER).and_then(|bytes| std::str::from_utf8(bytes).ok());
        text.into_iter().flat_map(|text| ledger_entries(text, self.limits))
    }

    /// Returns the hash of the entries of the ledger; `None` if there are none, or one of them has no canonical form.
    pub(super) fn ledger_hash(&self) -> Option<Digest> {
        let entries = self.ledger().map(|(_, entry)| rfc8785::to_vec(&entry.ok()?).ok());
        let entries = entries.collect::<Option<Vec<_>>>().filter(|entries| !entries.is_empty())?;
        Some(Digest::from_content(&entries.join(&b'\n')))
    }

    /// Returns a member, or the error of parsing it, or `None` if it is missing.
    pub(super) fn json(&self, name: &str) -> Option<Result<&Value<'d>, &ReadError>> {
        self.json.get(name).map(Result::as_ref)
    }

    /// Returns a member that is present and valid.
    pub(super) fn value(&self, name: &str) -> Option<&Value<'d>> {
        self.json(name).and_then(Result::ok)
    }

    /// Returns all valid members, by name.
    pub(super) fn values(&self) -> impl Iterator<Item = (&'static str, &Value<'d>)> {
        self.json.iter().filter_map(|(name, value)| Some((*name, value.as_ref().ok()?)))
    }

    /// Returns the digests of all members that are part of the core hash, by name.
    ///
    /// # Errors
    /// Returns an error of kind `InvalidData` if a member that is present cannot be read or has no canonical form:
    /// without its digest the core hash would be that of another pack.
    pub(super) fn digests(&self) -> io::Result<BTreeMap<&'static str, Digest>> {
        let mut digests = BTreeMap::new();
        for (name, value) in self.json.iter().filter(|(name, _)| **name != "meta.json") {
            let value = value.as_ref().map_err(|error| unreadable(error.clone()))?;
            let digest = match *name {
                "runner.json" => canonical_hash(runner_core(value))?,
                _ => canonical_hash(value)?,
            };
            digests.insert(*name, digest);
        }
        if let Some(bytes) = self.file(LEDGER) {
            digests.insert(LEDGER, Digest::from_content(bytes));
        }
        match &self.session {
            None => {}
            Some(Ok(session)) => drop(digests.insert(SESSION, session.core().0)),
            Some(Err(_)) => return Err(io::ErrorKind::InvalidData.into()),
        }
        Ok(digests)
    }
}

fn file<'d>(directory: &'d Directory, name: &str) -> Option<&'d [u8]> {
    directory.entry(name)?.bytes()
}

/// Returns the number of values in a value, including itself.
fn count(value: &Value<'_>) -> usize {
    1 + match value {
        Value::Array(elements) => elements.iter().map(count).sum(),
        Value::Object(object) => object.iter().map(|(_, member)| count(member)).sum::<usize>(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
    }
}

/// Returns the reason a member is not JSON, for messages.
pub(super) fn not_json(error: &ReadError) -> String {
    format!("not JSON: {error} (rule {})", document::rule_of(error.defect).id)
}

/// Returns the number of integers that doubles cannot represent exactly, and the location of the first.
pub(super) fn large_integers(value: &Value<'_>) -> Option<(usize, String)> {
    let mut search = LargeIntegers::default();
    search.visit(value, &mut String::new());
    search.first.map(|first| (search.count, first))
}

#[derive(Default)]
struct LargeIntegers {
    count: usize,
    first: Option<String>,
}

impl LargeIntegers {
    fn visit(&mut self, value: &Value<'_>, at: &mut String) {
        let length = at.len();
        match value {
            Value::Number(number) if number.is_integer() => {
                let is_exact = number.as_i64().is_some_and(|integer| integer.unsigned_abs() <= 1 << 53);
                if !is_exact {
                    self.count += 1;
                    self.first.get_or_insert_with(|| at.clone());
                }
            }
            Value::Array(elements) => {
                for (index, element) in elements.iter().enumerate() {
                    pointer::push_index(at, index);
                    self.visit(element, at);
                    at.truncate(length);
                }
            }
            Value::Object(object) => {
                for (name, member) in object.iter() {
                    pointer::push(at, name);
                    self.visit(member, at);
                    at.truncate(length);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
}

/// The members of an entry of the ledger.
const LEDGER_MEMBERS: [&str; 7] =
    ["run_id", "timestamp", "intent_sha256", "result_kind", "accepted", "mode", "policy"];

/// Returns the lines of a ledger that are entries, numbered from 1 and parsed. Lines of white space are skipped.
pub(super) fn ledger_entries<'t, 'l>(
    text: &'t str,
    limits: &'l Limits,
) -> impl Iterator<Item = (usize, Result<Value<'t>, ReadError>)> + use<'t, 'l> {
    let lines = text.split('\n').enumerate().filter(|(_, line)| !ecmascript::trim(line).is_empty());
    lines.map(|(index, line)| (index + 1, reader::read(line.as_bytes(), limits)))
}

/// Reports the defects of a ledger.
pub(super) fn check_ledger(bytes: &[u8], limits: &Limits, found: &mut Finder<'_>) {
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => {
            let offset = error.valid_up_to();
            found.add(LEDGER, format!("not UTF-8 at byte {offset} (rule DOC1)"));
            return;
        }
    };
    for (number, entry) in ledger_entries(text, limits) {
        match entry {
            Err(ReadError { defect, column, message, .. }) => {
                let rule = document::rule_of(defect).id;
                found.add(
                    LEDGER,
                    format!("line {number}: not JSON: column {column}: {message} (rule {rule})"),
                );
            }
            Ok(entry @ (Value::Object(_) | Value::Array(_))) => {
                for name in LEDGER_MEMBERS.into_iter().filter(|name| entry.get(name).is_none()) {
                    found.add(LEDGER, format!("line {number}: the required member {name} is missing"));
                }
            }
            Ok(other) => {
                found.add(
                    LEDGER,
                    format!("line {number}: an entry must be an object, not {}", other.type_name()),
                );
            }
        }
    }
}

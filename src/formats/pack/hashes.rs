//! PK16: hashes stated by the members of a pack.

use super::ledger;
use super::members::PackContents;
use crate::digest::Digest;
use crate::json::Value;
use crate::json::reader::excerpt;
use crate::validation::Finder;

/// The locations of hashes in members. A missing or null value states no hash.
const STATED: [(&str, &[&str]); 5] = [
    ("run.json", &["intent", "sha256"]),
    ("run.json", &["bundle", "sha256"]),
    ("run.json", &["model_io_hash"]),
    ("patch.json", &["source_proposal_hash"]),
    ("evidence.json", &["proposal_hash"]),
];

/// The locations of hashes in a line of the ledger.
const STATED_IN_LEDGER: [&str; 2] = ["intent_sha256", "bundle_sha256"];

pub(super) fn check(members: &PackContents<'_>, found: &mut Finder<'_>) {
    for (member, names) in STATED {
        let root = members.value(member);
        let value = root.and_then(|root| names.iter().try_fold(root, |value, name| value.get(name)));
        if let Some(message) = value.and_then(objection) {
            found.add(member, format!("{} {message}", names.join(".")));
        }
    }
    for (number, entry) in members.ledger() {
        let Ok(entry) = entry else { continue };
        for name in STATED_IN_LEDGER {
            if let Some(message) = entry.get(name).and_then(objection) {
                found.add(ledger::NAME, format!("line {number}: {name} {message}"));
            }
        }
    }
}

/// Returns the defect of a value that should be a hash. Bare hex digits are also accepted.
fn objection(value: &Value<'_>) -> Option<String> {
    let is = match value {
        Value::Null => return None,
        Value::String(text) if Digest::parse_either(text).is_some() => return None,
        Value::String(text) => excerpt(text),
        other => other.type_name().to_owned(),
    };
    Some(format!("is {is}, not a hash: sha256: and 64 lowercase hex digits"))
}

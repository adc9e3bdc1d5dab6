//! PK9: the lines of `ledger.jsonl`.

use crate::artifact::document;
use crate::json::reader::{self, Limits, ReadError};
use crate::json::{Value, ecmascript};
use crate::validation::Finder;

/// The name of the ledger in a pack.
pub(super) const NAME: &str = "ledger.jsonl";

const FIELDS: [&str; 7] =
    ["run_id", "timestamp", "intent_sha256", "result_kind", "accepted", "mode", "policy"];

/// Returns the lines that are entries, numbered from 1 and parsed. Lines of white space are skipped.
pub(super) fn entries<'t, 'l>(
    text: &'t str,
    limits: &'l Limits,
) -> impl Iterator<Item = (usize, Result<Value<'t>, ReadError>)> + use<'t, 'l> {
    let lines = text.split('\n').enumerate().filter(|(_, line)| !ecmascript::trim(line).is_empty());
    lines.map(|(index, line)| (index + 1, reader::read(line.as_bytes(), limits)))
}

pub(super) fn check(bytes: &[u8], limits: &Limits, found: &mut Finder<'_>) {
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => {
            let offset = error.valid_up_to();
            found.add(NAME, format!("not UTF-8 at byte {offset} (rule DOC1)"));
            return;
        }
    };
    for (number, entry) in entries(text, limits) {
        match entry {
            Err(ReadError { defect, column, message, .. }) => {
                let rule = document::rule_of(defect).id;
                found.add(NAME, format!("line {number}: not JSON: column {column}: {message} (rule {rule})"));
            }
            Ok(entry @ (Value::Object(_) | Value::Array(_))) => {
                for name in FIELDS.into_iter().filter(|name| entry.get(name).is_none()) {
                    found.add(NAME, format!("line {number}: the required member {name} is missing"));
                }
            }
            Ok(other) => {
                found.add(
                    NAME,
                    format!("line {number}: an entry must be an object, not {}", other.type_name()),
                );
            }
        }
    }
}

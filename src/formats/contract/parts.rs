//! The comparison of contracts: effects and refs by name, then the members that are not hashed.

use super::read;
use crate::artifact::{Part, PartKind, differ, same_place};
use crate::json::Value;
use crate::json::canonical::rfc8785;
use crate::json::reader::{Limits, ReadError};

static TERM: PartKind = PartKind { is_ephemeral: |_| false, canonical, describe };

/// The members that are not hashed.
static REMARKS: PartKind = PartKind { is_ephemeral: |at| !at.is_empty(), canonical, describe };

fn describe(_: &Value<'_>, _: &Value<'_>, names: &[&str]) -> String {
    differ(names)
}

fn canonical(value: &Value<'_>) -> Option<Vec<u8>> {
    rfc8785::to_vec(value).ok()
}

pub(super) fn parts<'d>(document: &'d [u8], limits: &Limits) -> Result<Vec<Part<'d>>, ReadError> {
    let mut root = read::read(document, limits, false)?;
    let lists = [("effects", "effect", "name"), ("io_refs", "ref", "ref")];
    let mut parts = Vec::new();
    for (list, word, name) in lists {
        let Some(Value::Array(terms)) = root.take(&[list]) else { continue };
        for term in terms {
            let name = term.get(name).and_then(Value::as_str).unwrap_or_default();
            let (label, key) = (format!("{word} {name}"), same_place(&[word, name]));
            parts.push(Part::new(label, [key; 2], term, &TERM));
        }
    }
    parts.push(Part::new("remarks".to_owned(), [same_place(&["remarks"]); 2], root, &REMARKS));
    Ok(parts)
}

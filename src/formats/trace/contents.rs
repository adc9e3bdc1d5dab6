//! The contents whose hashes a trace states: the problem specification, and the states between steps. The trace format
//! specification defines their hashes as those of canonical JSON, so bytes with such a hash must be canonical.

use super::roles::{PROBLEM_SPEC, STATES};
use crate::artifact::MentionedContent;
use crate::json::canonical::c14n_v1;
use crate::json::reader::{self, Limits};

pub(super) const ALL: [MentionedContent; 2] = [
    MentionedContent { group: PROBLEM_SPEC, noun: "problem specification", defect },
    MentionedContent { group: STATES, noun: "reasoning state", defect },
];

fn defect(bytes: &[u8], limits: &Limits) -> Option<String> {
    let value = match reader::read(bytes, limits) {
        Ok(value) => value,
        Err(error) => return Some(format!("is not JSON: {error}")),
    };
    if value.as_object().is_none() {
        return Some(format!("is {}, not an object", value.type_name()));
    }
    match c14n_v1::to_vec(&value) {
        Ok(canonical) if canonical == bytes => None,
        _ => Some("is not in the canonical form json-c14n-v1, of which the hash must be".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_canonical_objects_are_contents() {
        let defect = |text: &str| defect(text.as_bytes(), &Limits::default());
        assert_eq!(defect(r#"{"a":1.0,"b":[]}"#), None);
        for text in [r#"{"a": 1}"#, r#"{"b":1,"a":2}"#, "{\"a\":1}\n", "[]", "state", "", r#"{"a":1,"a":1}"#]
        {
            assert!(defect(text).is_some(), "{text}");
        }
    }
}

//! Detection of the notation of a document: JSON and YAML are distinguished by content, unless it must be JSON.

use std::collections::HashMap;

use crate::json::Value;
use crate::json::canonical::rfc8785::CanonicalInput;
use crate::json::reader::{self, Defect, Limits, ReadError};
use crate::yaml::{self, YamlSchema};

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Reads `bytes` as JSON or YAML, or if `json_only` is set, as JSON. Numbers that overflow are kept, so that they can be reported with their location.
///
/// # Errors
/// Returns the first defect, with its line and column.
pub(super) fn read<'a>(bytes: &'a [u8], limits: &Limits, json_only: bool) -> Result<Value<'a>, ReadError> {
    let unmarked = bytes.strip_prefix(BYTE_ORDER_MARK);
    let body = unmarked.unwrap_or(bytes);
    let text = reader::utf8(body, limits)?;
    if !json_only && !text.trim_start_matches([' ', '\t', '\n', '\r']).starts_with('{') {
        return yaml::read(text, YamlSchema::Core, limits);
    }
    match reader::read_keeping_overflow(body, limits) {
        Ok(_) if unmarked.is_some() => {
            let message = "a byte order mark is allowed before YAML, not before JSON; remove it";
            Err(ReadError::at(bytes, 0, Defect::Encoding, message))
        }
        // YAML's flow mappings begin like JSON objects.
        Err(error) if error.defect == Defect::Syntax && !json_only => {
            yaml::read(text, YamlSchema::Core, limits).map_err(|other| more_telling(error, other))
        }
        outcome => outcome,
    }
}

/// Returns the more relevant error. A text that both readers reject is most likely damaged JSON. But if the YAML syntax
/// is valid and the defect is a different one further on, it is YAML.
fn more_telling(json: ReadError, yaml: ReadError) -> ReadError {
    let further = (yaml.line, yaml.column) > (json.line, json.column);
    if further && yaml.defect != Defect::Syntax { yaml } else { json }
}

/// The relevant members of a root with a valid shape.
pub(super) struct ContractMembers<'v> {
    pub(super) core: ContractCore<'v>,
    pub(super) io_refs: &'v [Value<'v>],
    pub(super) effects: &'v [Value<'v>],
    /// The refs by name.
    pub(super) declared: HashMap<&'v str, &'v Value<'v>>,
    /// The number of effects with each name.
    pub(super) effect_names: HashMap<&'v str, usize>,
}

impl<'v> ContractMembers<'v> {
    pub(super) fn from_root(root: &'v Value<'v>) -> Option<Self> {
        let core = ContractCore::from_root(root)?;
        let (io_refs, effects) = (core.io_refs.as_array()?, core.effects.as_array()?);
        let named = |value: &'v Value<'v>, name: &str| value.get(name).and_then(Value::as_str);
        let declared = io_refs.iter().filter_map(|io_ref| Some((named(io_ref, "ref")?, io_ref)));
        let mut effect_names = HashMap::new();
        for name in effects.iter().filter_map(|effect| named(effect, "name")) {
            *effect_names.entry(name).or_default() += 1;
        }
        Some(Self { core, io_refs, effects, declared: declared.collect(), effect_names })
    }
}

/// The hashed part. The specification defines no hash; all its statements about a contract are in these two members.
#[derive(Clone, Copy)]
pub(super) struct ContractCore<'v> {
    effects: &'v Value<'v>,
    io_refs: &'v Value<'v>,
}

impl<'v> ContractCore<'v> {
    pub(super) fn from_root(root: &'v Value<'v>) -> Option<Self> {
        Some(Self { effects: root.get("effects")?, io_refs: root.get("io_refs")? })
    }
}

impl<'v> From<ContractCore<'v>> for CanonicalInput<'v> {
    fn from(core: ContractCore<'v>) -> Self {
        Self::Object(vec![("effects", Self::Value(core.effects)), ("io_refs", Self::Value(core.io_refs))])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> String {
        let error = read(text.as_bytes(), &Limits::default(), false).unwrap_err();
        format!("{:?}: {error}", error.defect)
    }

    #[test]
    fn what_is_json_is_held_to_json() {
        for (text, expected) in [
            (
                "{\"a\": 1} x",
                "Syntax: line 1 column 10: unexpected text after the end of the document; remove it",
            ),
            ("{\"a\": [1, 2", "Syntax: line 1 column 12: expected \",\" or \"]\", found the end of the text"),
            (
                "{\"a\": 1, \"\\u0061\": 2}",
                "DuplicateKey: line 1 column 10: the object already has a member named \"a\"",
            ),
            (
                "{\"a\": \"\\ud83d\"}",
                "Surrogate: line 1 column 8: \\ud83d is an unpaired surrogate, not a character",
            ),
            ("{\"a\": NaN}", "Number: line 1 column 7: NaN is not a JSON number"),
            (
                "\u{feff} {\"a\": 1}",
                "Encoding: line 1 column 1: a byte order mark is allowed before YAML, not before JSON; remove it",
            ),
            (
                "\u{feff}\u{feff}a: b",
                "Encoding: line 1 column 1: the text begins with a byte order mark; remove it",
            ),
        ] {
            assert_eq!(refused(text), expected);
        }
    }

    #[test]
    fn flow_mappings_are_yaml() {
        for text in ["{a: b}", "\u{feff}{'a': b}", "\n{\"a\": b,}", "{\"a\": \"b\"} # c", "--- {a: b}\n...\n"]
        {
            let value = read(text.as_bytes(), &Limits::default(), false).unwrap();
            assert_eq!(value.get("a").and_then(Value::as_str), Some("b"), "{text}");
            assert!(read(text.as_bytes(), &Limits::default(), true).is_err(), "{text}");
        }
        assert_eq!(
            refused("{a: 1, 'a': 2}"),
            "DuplicateKey: line 1 column 8: the mapping already has a key \"a\""
        );
        let bomb = "{a: &a [x, x], b: &b [*a, *a], c: [*b, *b]}";
        let limits = Limits { values: 20, ..Limits::default() };
        assert_eq!(read(bomb.as_bytes(), &limits, false).unwrap_err().defect, Defect::TooLarge);
        assert!(refused("{a: b").starts_with("Syntax: line 1 column 2: expected a member name"));
    }
}

//! Detection of the notation of a document: JSON and YAML are distinguished by content, unless it must be JSON.

use std::collections::HashMap;

use crate::json::Value;
use crate::json::canonical::rfc8785::CanonicalInput;
use crate::json::reader::{self, Defect, Limits, MemberNames, ReadError};
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

/// Reads an admitted contract.
pub(super) fn read_admitted(bytes: &[u8]) -> Result<Value<'_>, ReadError> {
    read(bytes, &Limits::most(), false)
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

/// Returns whether the root of `text` has one of `members`. `names` are the root's members if it is a JSON object.
pub(super) fn has_member(text: &str, names: &mut MemberNames<'_>, members: &[&str]) -> bool {
    if members.iter().any(|member| names.has(member)) {
        return true;
    }
    // In JSON, the names are the only keys.
    if names.are_all() {
        return false;
    }
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let Some(text) = content(text) else { return false };
    if text.starts_with('{') { in_flow_mapping(text, members) } else { in_block_mapping(text, members) }
}

/// Returns whether `name` occurs in `text` like a key, quoted or not, in either notation.
pub(super) fn has_key(text: &str, name: &str) -> bool {
    text.match_indices(name).any(|(at, _)| {
        let is_bare =
            text.get(..at).is_some_and(|before| before.ends_with([' ', '\t', '\n', '{', ',', '"', '\'']));
        let after = text.get(at + name.len()..).unwrap_or("");
        let after = after.strip_prefix(['"', '\'']).unwrap_or(after);
        is_bare && after.trim_start_matches([' ', '\t']).starts_with(':')
    })
}

/// Returns `text` from its first node: without leading blank lines, comments, directives and document markers.
fn content(text: &str) -> Option<&str> {
    let mut rest = text;
    loop {
        let blank = |character: char| matches!(character, ' ' | '\t' | '\n' | '\r');
        let line_start = rest.trim_start_matches(blank);
        let node = match line_start.strip_prefix("---") {
            Some(after) if after.is_empty() || after.starts_with(blank) => after,
            _ if line_start.starts_with(['#', '%']) => {
                rest = line_start.get(line_start.find('\n')?..)?;
                continue;
            }
            _ if line_start.is_empty() => return None,
            _ => return Some(line_start),
        };
        rest = node;
    }
}

/// Returns whether a line of the first document begins with a contract's key. Every line that begins in the first
/// column must look like YAML up to there: other documents may quote a contract.
fn in_block_mapping(text: &str, members: &[&str]) -> bool {
    for (number, line) in text.lines().enumerate() {
        if number > 0 && (line.starts_with([' ', '\t', '#']) || line.trim_end().is_empty()) {
            continue;
        }
        let Some(key) = key_of(line) else {
            let sequence = line == "-" || line.starts_with("- ");
            let end_of_flow = line.starts_with([']', '}']);
            if number > 0 && (sequence || end_of_flow) {
                continue;
            }
            return false;
        };
        if members.contains(&key) {
            return true;
        }
    }
    false
}

/// Returns the key if `line` begins with one and a colon.
fn key_of(line: &str) -> Option<&str> {
    let (key, rest) = match line.chars().next()? {
        quote @ ('"' | '\'') => line.get(1..)?.split_once(quote)?,
        // None of these can begin a plain scalar.
        '[' | ']' | '{' | '}' | ',' | '#' | '&' | '*' | '!' | '|' | '>' | '%' | '@' | '`' => return None,
        _ if line.starts_with("- ") => return None,
        _ => {
            let ends = |(at, _): &(usize, &str)| {
                let after = line.get(at + 1..).unwrap_or_default();
                after.is_empty() || after.starts_with([' ', '\t', '\r'])
            };
            let (colon, _) = line.match_indices(':').find(ends)?;
            line.split_at_checked(colon)?
        }
    };
    let value = rest.trim_start_matches([' ', '\t']).strip_prefix(':')?;
    let ends = value.is_empty() || value.starts_with([' ', '\t', '\r']);
    ends.then(|| key.trim_end_matches([' ', '\t']))
}

/// Returns whether the flow mapping at the start of `text` has a contract's key. Keys within its values do not count.
fn in_flow_mapping(text: &str, members: &[&str]) -> bool {
    let mut depth = 0_usize;
    // The preceding character, and the last one before it that is not blank.
    let (mut before, mut mark) = (' ', ' ');
    let mut rest = text;
    while let Some(character) = rest.chars().next() {
        let after = rest.get(character.len_utf8()..).unwrap_or_default();
        rest = match character {
            '"' => after_quoted(after, '"'),
            '\'' if matches!(mark, '{' | '[' | ',' | ':') => after_quoted(after, '\''),
            '#' if before.is_whitespace() => {
                after.find('\n').and_then(|end| after.get(end..)).unwrap_or_default()
            }
            _ => after,
        };
        match character {
            '{' | '[' => depth += 1,
            '}' | ']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 {
            return false;
        }
        if matches!(character, '{' | ',') && depth == 1 && begins_with_member(after, members) {
            return true;
        }
        before = character;
        if !character.is_whitespace() {
            mark = character;
        }
    }
    false
}

fn begins_with_member(text: &str, members: &[&str]) -> bool {
    let text = text.trim_start();
    let unquoted = text.strip_prefix(['"', '\'']).unwrap_or(text);
    members.iter().any(|member| {
        let rest = unquoted.strip_prefix(member).unwrap_or_default();
        rest.strip_prefix(['"', '\'']).unwrap_or(rest).trim_start().starts_with(':')
    })
}

/// Returns the text after the closing quote of a string whose opening quote has been skipped.
fn after_quoted(text: &str, quote: char) -> &str {
    let mut escaped = false;
    for (at, character) in text.char_indices() {
        if character == quote && !escaped {
            return text.get(at + 1..).unwrap_or_default();
        }
        escaped = quote == '"' && character == '\\' && !escaped;
    }
    ""
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

    fn recognized(text: &str) -> bool {
        has_member(text, &mut MemberNames::new(text), &["io_refs", "effects"])
    }

    #[test]
    fn contracts_are_recognized_valid_or_not() {
        for text in [
            "{\"io_refs\": []}",
            "{\"version\": 1, \"effects\": [",
            "\u{feff} {\"a\": [1], \"io_refs\": null}",
            "io_refs:\n",
            "\u{feff}io_refs: []",
            "# c\n\n%YAML 1.2\n---\n# d\nname: x\r\n'effects' : []\r\n",
            "--- # c\neffects:\n- name: x\n",
            "--- {version: v1, effects: []}",
            "# c\n{version: \"a\\\"} b\", # }\n a: '}\\', b: it's#x, 'io_refs': []}",
            "\"a: b\": c\nlist:\n- a\n-\nflow: [\n]\nio_refs: []\n",
            "text: |\n  anything, goes\n    here `too`\n\neffects:",
            "io_refs:\n\t- broken",
        ] {
            assert!(recognized(text), "{text}");
        }
    }

    #[test]
    fn other_documents_are_not() {
        for text in [
            "",
            "---\n",
            "# io_refs: []",
            "{\"steps\": [{\"effects\": []}], \"note\": \"{io_refs: []}\"}",
            "{\"steps\": 1}\n{\"effects\": []}",
            "{a: {io_refs: []}, b: [effects: x]}",
            "[{\"io_refs\": []}]",
            "- io_refs: []\n",
            "agent:\n  io_refs: []\n",
            "io_refs",
            "io_refs:x",
            "my_io_refs: []\nio_refs_too: []",
            "a: b\n---\nio_refs: []\n",
            "# Title\n\nA contract:\n\n```yaml\nio_refs: []\n```\n",
            "---\ntitle: x\n---\n\n```yaml\nio_refs: []\n```\n",
            "# Title\n\nNote: a contract\nlooks like this\n\nio_refs: []\n",
            "A contract has\nio_refs: []\n",
        ] {
            assert!(!recognized(text), "{text}");
        }
    }
}

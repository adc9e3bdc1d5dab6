//! Recognition of contracts without reading documents in full.

use crate::json::reader::MemberNames;

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

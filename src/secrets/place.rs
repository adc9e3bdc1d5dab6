//! The place of a byte of a document, for people.

use super::words::is_found;

/// Longer names are not shown in full.
const NAME: usize = 60;

/// A level of a JSON text.
enum Level<'b> {
    /// An object, with the name of its current member.
    Object(&'b [u8]),
    /// An array, with the index of its current element.
    Array(usize),
}

/// Returns the place of the byte at `offset`: a JSON Pointer; in JSON Lines, `line 7` and a pointer into it; a line of
/// any other text. Nothing is validated: the pointer is what the text looks like up to there.
pub(super) fn of(bytes: &[u8], offset: usize) -> String {
    let line_start = |line: &[u8]| matches!(line.trim_ascii_start().first(), Some(b'{' | b'['));
    if !line_start(bytes) {
        return format!("line {}", line_of(bytes, offset));
    }
    let before = bytes.get(..offset).unwrap_or(bytes);
    let start = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    // In JSON Lines, every line is a text of its own; in other JSON, the first line is not.
    let first = bytes.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let is_lines = first.len() < bytes.len()
        && levels(first).is_empty()
        && line_start(bytes.get(start..).unwrap_or_default());
    let text = if is_lines { bytes.get(start..offset).unwrap_or_default() } else { before };
    let mut pointer = String::new();
    for level in levels(text) {
        pointer.push('/');
        pointer.push_str(&name(&level));
    }
    let is_only = bytes.get(first.len()..).is_none_or(|rest| rest.trim_ascii().is_empty());
    if is_lines && !is_only {
        return format!("line {} {pointer}", line_of(bytes, offset));
    }
    pointer
}

fn line_of(bytes: &[u8], offset: usize) -> usize {
    memchr::memchr_iter(b'\n', bytes.get(..offset).unwrap_or(bytes)).count() + 1
}

/// Returns the name of a member or the index of an element, as in a pointer. A name that is a secret itself is not shown.
fn name(level: &Level<'_>) -> String {
    match level {
        Level::Array(index) => index.to_string(),
        Level::Object(name) if name.len() > NAME || is_found(name) => "…".to_owned(),
        Level::Object(name) => String::from_utf8_lossy(name).replace('~', "~0").replace('/', "~1"),
    }
}

/// Returns the levels that are open at the end of a beginning of a JSON text.
fn levels(text: &[u8]) -> Vec<Level<'_>> {
    let mut levels: Vec<Level<'_>> = Vec::new();
    let mut string: &[u8] = &[];
    let mut at = 0;
    while let Some(byte) = text.get(at) {
        match (byte, levels.last_mut()) {
            (b'"', _) => {
                let rest = text.get(at + 1..).unwrap_or_default();
                let length = string_length(rest);
                string = rest.get(..length).unwrap_or_default();
                at += length + 1;
            }
            (b'{', _) => levels.push(Level::Object(b"")),
            (b'[', _) => levels.push(Level::Array(0)),
            (b'}' | b']', _) => drop(levels.pop()),
            (b':', Some(Level::Object(name))) => *name = string,
            (b',', Some(Level::Array(index))) => *index += 1,
            (b',', Some(Level::Object(name))) => *name = b"",
            _ => {}
        }
        at += 1;
    }
    levels
}

/// Returns the number of bytes up to the quotation mark that ends a string.
fn string_length(rest: &[u8]) -> usize {
    let mut at = 0;
    while let Some(found) = rest.get(at..).and_then(|rest| memchr::memchr2(b'"', b'\\', rest)) {
        at += found;
        if rest.get(at) == Some(&b'"') {
            return at;
        }
        at += 2;
    }
    rest.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_pointers_or_lines() {
        for (text, place) in [
            (r#"{"a":{"b":[1,{"c":"@"}]}}"#, "/a/b/1/c"),
            (r#"{"x\"y":"\\","a/b~c":["@"]}"#, "/a~1b~0c/0"),
            (r#"["{[\"", {"a":1}, "@"]"#, "/2"),
            ("{\n  \"a\": 1,\n  \"b\": [\n    \"@\"\n  ]\n}\n", "/b/0"),
            ("{\"a\":1}\n{\"b\":[2,\"@\"]}\n", "line 2 /b/1"),
            ("{\"b\":\"@\"}\n{\"c\":1}\n", "line 1 /b"),
            ("{\"b\":\"@\"}\n", "/b"),
            ("a: 1\nb: @\n", "line 2"),
            ("@", "line 1"),
            ("{\"@\":1}", "/"),
            ("{{{\"@", "///"),
        ] {
            assert_eq!(of(text.as_bytes(), text.find('@').unwrap()), place, "{text}");
        }
    }
}

//! The comparison of attachments: line by line if they are text, else as a whole.

use std::borrow::Cow;

use crate::artifact::{Part, PartKind, differ, same_place};
use crate::digest::Digest;
use crate::json::{Object, Value};

/// Maximum number of lines that are compared separately: each takes some hundred bytes of memory.
const MAX_LINES: usize = 100_000;

static LINE: PartKind = PartKind {
    is_ephemeral: |_| false,
    canonical: |value| value.as_str().map(|line| line.as_bytes().to_vec()),
    describe: |_, _, _| "the line differs".to_owned(),
};

static WHOLE: PartKind = PartKind {
    is_ephemeral: |_| false,
    // The digest of the bytes; the size is shown, and follows from them.
    canonical: |value| value.get("sha256").and_then(Value::as_str).map(|digest| digest.as_bytes().to_vec()),
    describe: |_, _, names| {
        if names.contains(&"sha256") { "the bytes differ".to_owned() } else { differ(names) }
    },
};

pub(super) fn parts(document: &[u8]) -> Vec<Part<'_>> {
    match str::from_utf8(document) {
        Ok(text) if memchr::memchr_iter(b'\n', document).count() < MAX_LINES => {
            text.split('\n').zip(1..).map(|(line, number)| of_line(line, number)).collect()
        }
        _ => vec![whole(document)],
    }
}

fn of_line(line: &str, number: usize) -> Part<'_> {
    let keys = [same_place(&[line.trim()]), same_place(&["line"])];
    Part::new(format!("line {number}"), keys, Value::String(Cow::Borrowed(line)), &LINE)
}

fn whole(document: &[u8]) -> Part<'_> {
    let member = |name: &'static str, text: String| (Cow::Borrowed(name), Value::String(Cow::Owned(text)));
    let value = Value::Object(Object::from_members(vec![
        member("sha256", Digest::from_content(document).to_string()),
        member("size", format!("{} bytes", document.len())),
    ]));
    Part::new("bytes".to_owned(), [same_place(&["bytes"]); 2], value, &WHOLE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_compared_by_line_and_anything_else_as_a_whole() {
        let labels =
            |document: &[u8]| -> Vec<String> { parts(document).into_iter().map(|part| part.label).collect() };
        // The end of the last line is also compared: it is followed by an empty line.
        assert_eq!(labels(b"a\nb\n"), ["line 1", "line 2", "line 3"]);
        assert_eq!(labels(b"a\xff\n"), ["bytes"]);
        assert_eq!(labels(&b"\n".repeat(MAX_LINES)), ["bytes"]);
        assert_eq!(parts(b"\x80")[0].identity, parts(b"\x80")[0].identity);
        assert_ne!(parts(b"\x80")[0].identity, parts(b"\x81")[0].identity);
    }
}

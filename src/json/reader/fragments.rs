//! Recognition of fragments of damaged documents.

use memchr::memmem;

/// Returns whether `name` occurs in `text` like a member name: quoted and followed by a colon. The location does not
/// matter, nor whether the text can be read.
#[must_use]
pub fn has_key(text: &str, name: &str) -> bool {
    let quoted = format!("\"{name}\"");
    memmem::find_iter(text.as_bytes(), quoted.as_bytes()).any(|at| {
        let after = text.get(at + quoted.len()..).unwrap_or("");
        after.trim_start_matches([' ', '\t', '\n', '\r']).starts_with(':')
    })
}

/// Returns whether `text` is a JSON document, or several on separate lines, without its beginning: it begins within a
/// value, and is JSON from the first quote to the end, where more brackets are closed than opened.
#[must_use]
pub fn has_lost_beginning(text: &str) -> bool {
    let text = text.trim_matches(['\u{feff}', '\0', ' ', '\t', '\n', '\r']);
    if text.starts_with(['{', '[']) || !text.ends_with(['}', ']']) {
        return false;
    }
    let bytes = text.as_bytes();
    // The first quote opens a string if only tokens precede it.
    let opens = |first: usize| {
        let (before, from) = bytes.split_at(first);
        before.iter().all(|byte| is_between_strings(*byte)) && closes_more_than_it_opens(from)
    };
    if memchr::memchr(b'"', bytes).is_some_and(opens) {
        return true;
    }
    // Otherwise the text begins within a string, and the first unescaped quote closes it.
    for quote in memchr::memchr_iter(b'"', bytes) {
        let (before, from) = bytes.split_at(quote);
        let backslashes = before.iter().rev().take_while(|byte| **byte == b'\\').count();
        // The missing text may have ended in a backslash.
        let is_unknown = backslashes == quote;
        let may_close = is_unknown || backslashes % 2 == 0;
        if may_close && from.split_first().is_some_and(|(_, after)| closes_more_than_it_opens(after)) {
            return true;
        }
        if !is_unknown && may_close {
            return false;
        }
    }
    false
}

/// Returns whether a byte can occur in JSON outside strings. The letters are those of true, false, null and exponents.
fn is_between_strings(byte: u8) -> bool {
    matches!(
        byte,
        b' ' | b'\t' | b'\n' | b'\r' | b',' | b':' | b'{' | b'}' | b'[' | b']' | b'0'
            ..=b'9' | b'-' | b'+' | b'.'
    ) || b"truefalsnE".contains(&byte)
}

/// Returns whether `text` consists of JSON tokens and closes a bracket that it did not open.
fn closes_more_than_it_opens(text: &[u8]) -> bool {
    let (mut depth, mut lowest) = (0_i64, 0_i64);
    let mut rest = text;
    while let Some((byte, after)) = rest.split_first() {
        rest = after;
        match byte {
            b'"' => match after_string(after) {
                Some(after) => rest = after,
                None => return false,
            },
            b'{' | b'[' => depth += 1,
            b'}' | b']' => {
                depth -= 1;
                lowest = lowest.min(depth);
            }
            other if is_between_strings(*other) => {}
            _ => return false,
        }
    }
    lowest < 0
}

/// Returns the text after a string whose opening quote has been skipped.
fn after_string(text: &[u8]) -> Option<&[u8]> {
    let mut rest = text;
    loop {
        let at = memchr::memchr2(b'"', b'\\', rest)?;
        let (found, after) = rest.get(at..)?.split_first()?;
        match found {
            b'"' => return Some(after),
            _ => rest = after.get(1..)?,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn keys_are_found_wherever_they_stand() {
        assert!(has_key(r#"…"a" : 1"#, "a"));
        assert!(has_key(r#"{"b":["a"],"c":{"a"  :2}"#, "a"));
        assert!(!has_key(r#"{"b":"a","ab":1,"a"}"#, "a"));
    }

    #[test]
    fn a_lost_beginning_is_told_by_what_is_left() {
        for text in [
            r#"rd","a":[1,-2.5E+3,true,{"b":null}]}"#,
            r#": 1, "a": "}"}"#,
            r#"ab\"c","d":1}"#,
            "x\"}\n{\"a\":1}\n{\"b\":2}\n",
            "\0\0, \"a\": 1}",
        ] {
            assert!(has_lost_beginning(text), "{text}");
        }
        for text in [
            "",
            "}",
            r#"{"a":1}"#,
            r#"[{"a":1}]"#,
            r#"{"a":1"#,
            "# Title\n\n```json\n{\"a\": 1}\n```\n",
            "const a = {\n  \"a\": 1,\n  \"b\": [f(x)]\n}",
            "a = {\"b\": True}",
            "\"a\": {}",
            "SQLite format 3{\"a\": 1}}",
            "x\": \"unclosed}",
        ] {
            assert!(!has_lost_beginning(text), "{text}");
        }
    }

    proptest! {
        #[test]
        fn every_tail_of_an_object_after_a_member_has_lost_its_beginning(
            members in proptest::collection::vec(("[a-z\\\\\"é]{1,6}", "[a-z\\\\\":,{}é]{0,10}"), 2..6), cut in 0.0..1.0_f64,
        ) {
            let object: serde_json::Map<String, serde_json::Value> =
                members.into_iter().enumerate().map(|(index, (name, text))| (format!("{index}{name}"), text.into())).collect();
            let text = serde_json::to_string(&object).unwrap();
            // Truncating anywhere before the last name leaves a quote after which the text is JSON.
            let last = text.rfind(&format!("\"{}", object.len() - 1)).unwrap();
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss, reason = "a place in a short text")]
            let at = 1 + (cut * (last - 1) as f64) as usize;
            if let Some(tail) = text.get(at..).filter(|tail| !tail.starts_with(['{', '[', ' ', '\u{feff}', '\0'])) {
                prop_assert!(has_lost_beginning(tail), "{}", tail);
            }
        }

        #[test]
        fn no_text_makes_it_panic(text: String, name: String) {
            let _ = (has_lost_beginning(&text), has_key(&text, &name));
        }
    }
}

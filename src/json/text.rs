//! JSON strings that escape only `"`, `\` and C0 controls, as in most profiles.

use std::io::{self, Write};

/// The number of bytes of an escaped string that are written at a time: pieces between escapes are short, and a whole text
/// can be long.
const WRITTEN: usize = 64 << 10;

/// Writes `text` as a JSON string.
pub(super) fn write_string(text: &str, out: &mut impl Write) -> io::Result<()> {
    out.write_all(b"\"")?;
    if needs_escapes(text) {
        let mut escaped = Vec::with_capacity(WRITTEN.min(text.len() * 2));
        let mut written = Ok(());
        push_escaped(text, |piece| {
            escaped.extend_from_slice(piece);
            if escaped.len() >= WRITTEN && written.is_ok() {
                written = out.write_all(&escaped);
                escaped.clear();
            }
        });
        written?;
        out.write_all(&escaped)?;
    } else {
        out.write_all(text.as_bytes())?;
    }
    out.write_all(b"\"")
}

/// Appends `text` as a JSON string.
pub(super) fn push_string(text: &str, out: &mut Vec<u8>) {
    out.push(b'"');
    if needs_escapes(text) {
        push_escaped(text, |piece| out.extend_from_slice(piece));
    } else {
        out.extend_from_slice(text.as_bytes());
    }
    out.push(b'"');
}

/// Returns whether any character must be escaped, which is rare. A loop without early exit is vectorized, and one of eight
/// bytes at once is fast without optimization, too.
fn needs_escapes(text: &str) -> bool {
    let (words, rest) = text.as_bytes().as_chunks::<8>();
    let found = words.iter().fold(0, |found, word| found | escaped_in(u64::from_le_bytes(*word)));
    found != 0 || rest.iter().any(|byte| is_escaped(*byte))
}

fn is_escaped(byte: u8) -> bool {
    byte < 0x20 || byte == b'"' || byte == b'\\'
}

/// Returns the position of the first byte that must be escaped, which is searched for in eight bytes at once.
fn first_escaped(bytes: &[u8]) -> Option<usize> {
    let (words, rest) = bytes.as_chunks::<8>();
    let in_words = words.iter().enumerate().find_map(|(index, word)| {
        let found = escaped_in(u64::from_le_bytes(*word));
        (found != 0).then(|| index * 8 + found.trailing_zeros() as usize / 8)
    });
    let in_rest = || rest.iter().position(|byte| is_escaped(*byte)).map(|at| words.len() * 8 + at);
    in_words.or_else(in_rest)
}

/// Returns a number whose lowest bit that is set is the highest one of the first byte that must be escaped; 0 if there is
/// none. Further bits have no meaning.
fn escaped_in(word: u64) -> u64 {
    const EACH: u64 = 0x0101_0101_0101_0101;
    const HIGHEST: u64 = EACH * 0x80;
    // A byte below the limit borrows from its highest bit, and possibly from the bytes after it.
    let below = |word: u64, limit: u64| word.wrapping_sub(EACH * limit) & !word & HIGHEST;
    let is = |byte: u8| below(word ^ (EACH * u64::from(byte)), 1);
    below(word, 0x20) | is(b'"') | is(b'\\')
}

/// Passes the escaped text to `push`, in pieces that are text themselves.
pub(super) fn push_escaped(text: &str, mut push: impl FnMut(&[u8])) {
    let mut rest = text.as_bytes();
    while let Some(at) = first_escaped(rest) {
        let (plain, from_escape) = rest.split_at(at);
        push(plain);
        let Some((escape, after)) = from_escape.split_first() else { break };
        match escape {
            b'"' | b'\\' => push(&[b'\\', *escape]),
            0x08 => push(b"\\b"),
            b'\t' => push(b"\\t"),
            b'\n' => push(b"\\n"),
            0x0c => push(b"\\f"),
            b'\r' => push(b"\\r"),
            control => push(format!("\\u{control:04x}").as_bytes()),
        }
        rest = after;
    }
    push(rest);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn every_control_character_is_escaped_as_serde_json_does() {
        let text: String = (0..0x80_u8).map(char::from).collect();
        let mut pushed = Vec::new();
        push_string(&text, &mut pushed);
        assert_eq!(String::from_utf8(pushed).unwrap(), serde_json::to_string(&text).unwrap());
    }

    #[test]
    fn a_long_string_is_written_in_parts() {
        let text = "\"a\"\n".repeat(WRITTEN);
        let (mut pushed, mut written) = (Vec::new(), Vec::new());
        push_string(&text, &mut pushed);
        write_string(&text, &mut written).unwrap();
        assert!(pushed == written);
    }

    proptest! {
        #[test]
        fn the_first_byte_to_escape_is_found(bytes in "[a-c\\\\\"\n\u{0}-\u{21}\u{7f}é]{0,3}[ -~é]{0,30}[\u{1e}-$Z-^é]{0,9}") {
            let bytes = bytes.as_bytes();
            prop_assert_eq!(first_escaped(bytes), bytes.iter().position(|byte| is_escaped(*byte)));
        }

        #[test]
        fn both_ways_to_write_a_string_agree_with_serde_json(text in "[a-c\\\\\"\n\u{0}-\u{1f}\u{7f}é\u{2028}\u{10000}]{0,20}") {
            let (mut pushed, mut written) = (Vec::new(), Vec::new());
            push_string(&text, &mut pushed);
            write_string(&text, &mut written).unwrap();
            prop_assert_eq!(&pushed, &written);
            prop_assert_eq!(String::from_utf8(pushed).unwrap(), serde_json::to_string(&text).unwrap());
        }
    }
}

//! Stripping of digests from texts.
//!
//! Half of the compressed size of a recorded session is the hexadecimal digits of its digests, which no compressor can
//! shorten below 32 bytes each, and which degrade the compression of the surrounding text. So a text is stored without
//! them, and they are stored separately as bytes, once each. The mention lists refer to them there.
//!
//! In the text, [`NEXT`] replaces the next digest of the table, and [`AGAIN`] followed by a distance replaces an
//! earlier one: 0 is the last one taken from the table. Neither byte occurs in UTF-8; texts that contain one of them
//! are left unchanged.

use foldhash::{HashMap, HashMapExt};

use super::encodings::Encoding;
use crate::digest::Digest;
use crate::storage::varint;

const NEXT: u8 = 0xff;
const AGAIN: u8 = 0xfe;

/// Number of hexadecimal digits of a digest.
const DIGITS: usize = 64;

/// Maximum number of digests for which space is reserved.
const MAX_EXPECTED: usize = 256;

/// A text without its digests.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct StrippedText {
    /// The text with markers.
    pub(super) text: Vec<u8>,
    /// The distinct digests in the order of their first occurrence.
    pub(super) digests: Vec<Digest>,
}

/// Strips every run of exactly 64 lowercase hexadecimal digits from `bytes`. Returns `None` if there is none, or if
/// `bytes` are not text.
pub(super) fn strip(bytes: &[u8]) -> Option<StrippedText> {
    let mut text = Vec::with_capacity(bytes.len());
    let Ok(digests) = strip_into::<std::convert::Infallible>(bytes, &mut |part| {
        text.extend_from_slice(part);
        Ok(())
    });
    Some(StrippedText { text, digests: digests? })
}

/// Like [`strip`], for texts that are too large to be copied: passes the stripped text to `write` in parts. Writes
/// nothing if there is no digest or if `bytes` are not text.
pub(super) fn strip_into<E>(
    bytes: &[u8],
    write: &mut dyn FnMut(&[u8]) -> Result<(), E>,
) -> Result<Option<Vec<Digest>>, E> {
    if Encoding::DigestStripping.is_off() {
        return Ok(None);
    }
    let mut runs = DigestScanner { bytes, at: 0 };
    let Some(mut next) = runs.next() else { return Ok(None) };
    if memchr::memchr2(AGAIN, NEXT, bytes).is_some() {
        return Ok(None);
    }
    // Sessions have a digest for about every 200 bytes.
    let expected = (bytes.len() / 128).min(MAX_EXPECTED);
    let mut digests = Vec::with_capacity(expected);
    let mut known: HashMap<Digest, usize> = HashMap::with_capacity(expected);
    let mut after = 0;
    let mut mark = Vec::new();
    loop {
        let (start, digest) = next;
        write(bytes.get(after..start).unwrap_or_default())?;
        after = start + DIGITS;
        let count = digests.len();
        mark.clear();
        match *known.entry(digest).or_insert(count) {
            new if new == count => {
                digests.push(digest);
                mark.push(NEXT);
            }
            old => {
                mark.push(AGAIN);
                varint::write(&mut mark, (count - 1 - old) as u64);
            }
        }
        write(&mark)?;
        match runs.next() {
            Some(run) => next = run,
            None => break,
        }
    }
    write(bytes.get(after..).unwrap_or_default())?;
    Ok(Some(digests))
}

/// Restores the digests of a text. Returns `None` if `text` and `digests` do not belong together, or the result would
/// have more than `limit` bytes.
pub(super) fn restore(text: &[u8], digests: &[Digest], limit: usize) -> Option<Vec<u8>> {
    // A damaged limit must not allocate more memory than the text can need.
    let mut bytes = Vec::with_capacity(limit.min(text.len().saturating_mul(DIGITS)));
    let mut met = 0;
    let mut rest = text;
    while let Some(mark) = memchr::memchr2(AGAIN, NEXT, rest) {
        let (before, marked) = rest.split_at(mark);
        let (mark, after) = marked.split_first()?;
        rest = after;
        let index = if *mark == NEXT {
            met += 1;
            met - 1
        } else {
            let distance = usize::try_from(varint::read(&mut rest)?).ok()?;
            usize::checked_sub(met, distance)?.checked_sub(1)?
        };
        if bytes.len() + before.len() + DIGITS > limit {
            return None;
        }
        bytes.extend_from_slice(before);
        bytes.extend_from_slice(&digests.get(index)?.hex_digits());
    }
    bytes.extend_from_slice(rest);
    (bytes.len() <= limit && met == digests.len()).then_some(bytes)
}

/// An iterator over the runs of exactly 64 lowercase hexadecimal digits in a text, with their offsets.
struct DigestScanner<'b> {
    bytes: &'b [u8],
    at: usize,
}

impl Iterator for DigestScanner<'_> {
    type Item = (usize, Digest);

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            // 64 consecutive digits always include one of the bytes probed every 64 bytes.
            let probe = self.at + DIGITS - 1;
            if !is_digit(*self.bytes.get(probe)?) {
                self.at = probe + 1;
                continue;
            }
            let before = self.bytes.get(self.at..probe)?;
            let start = self.at + before.iter().rposition(|byte| !is_digit(*byte)).map_or(0, |last| last + 1);
            let run = self.bytes.get(start..)?;
            if let Some((digits, after)) = run.split_first_chunk::<DIGITS>()
                && !after.first().is_some_and(|byte| is_digit(*byte))
                && let Some(digest) = Digest::from_hex_digits(digits)
            {
                self.at = start + DIGITS;
                return Some((start, digest));
            }
            self.at = start + run.iter().position(|byte| !is_digit(*byte)).unwrap_or(run.len());
        }
    }
}

fn is_digit(byte: u8) -> bool {
    matches!(byte, b'0'..=b'9' | b'a'..=b'f')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn repeated_digests_are_kept_once() {
        let (one, two) = (Digest::from_content(b"1"), Digest::from_content(b"2"));
        let text = format!("x{}y{}z{}", one.hex(), two.hex(), one.hex());
        let found = strip(text.as_bytes()).unwrap();
        assert_eq!(found.text, b"x\xffy\xffz\xfe\x01");
        assert_eq!(found.digests, [one, two]);
        assert_eq!(restore(&found.text, &found.digests, text.len()).unwrap(), text.as_bytes());
    }

    #[test]
    fn what_is_no_digest_stays() {
        for text in ["a".repeat(63), "a".repeat(65), "A".repeat(64), "a".repeat(128)] {
            assert_eq!(strip(text.as_bytes()), None, "{text}");
        }
        assert_eq!(strip(&[&[0xfe], "a".repeat(64).as_bytes()].concat()), None);
        assert_eq!(strip("f".repeat(64).as_bytes()).unwrap().text, [NEXT]);
    }

    #[test]
    fn damaged_texts_are_refused() {
        let digests = [Digest::from_content(b"1")];
        assert_eq!(restore(b"\xff\xff", &digests, 128), None);
        assert_eq!(restore(b"\xfe\x00", &digests, 64), None);
        assert_eq!(restore(b"\xff\xfe\x01", &digests, 128), None);
        assert_eq!(restore(b"\xff\xfe", &digests, 128), None);
        assert_eq!(restore(b"\xff", &digests, 63), None);
        assert_eq!(restore(b"x", &digests, 1), None);
    }

    proptest! {
        #[test]
        fn cutting_and_splicing_gives_the_text_back(
            parts in proptest::collection::vec(("[ -~é\n]{0,80}", 0_u8..5, 60_usize..70), 0..20),
        ) {
            let mut text = String::new();
            for (words, which, length) in parts {
                text += &words;
                let digits = Digest::from_content(&[which]).hex().repeat(2);
                text += digits.get(..if which < 3 { 64 } else { length }).unwrap();
            }
            if let Some(found) = strip(text.as_bytes()) {
                prop_assert_eq!(restore(&found.text, &found.digests, text.len()).unwrap(), text.as_bytes());
            } else {
                let digits = |word: &&str| word.len() == 64;
                let runs = text.split(|c: char| !c.is_ascii_hexdigit() || c.is_ascii_uppercase());
                prop_assert_eq!(runs.filter(digits).count(), 0);
            }
        }

        #[test]
        fn nothing_panics(text: Vec<u8>, digests in 0_usize..4, limit in 0_usize..300) {
            let digests: Vec<Digest> = (0..digests).map(|n| Digest::from_content(&[u8::try_from(n).unwrap()])).collect();
            if let Some(bytes) = restore(&text, &digests, limit) {
                prop_assert!(bytes.len() <= limit);
            }
            strip(&text);
        }
    }
}

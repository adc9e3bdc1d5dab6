//! Documents made from others: bytes changed, pieces moved, tokens of JSON replaced by telling ones.

/// A small generator of numbers (`SplitMix64`).
pub(super) struct Random(u64);

impl Random {
    pub(super) fn new(start: u64) -> Self {
        Self(start.wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    /// A number below `end`, or 0.
    fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % (end.max(1) as u64)).unwrap()
    }

    fn of<'s, T>(&mut self, slice: &'s [T]) -> &'s T {
        &slice[self.below(slice.len())]
    }
}

/// Whole values of JSON and YAML that parsers stumble over.
const VALUES: &[&str] = &[
    "null",
    "true",
    "false",
    "0",
    "-0",
    "-0.0",
    "1",
    "-1",
    "1.0",
    "1e1",
    "1E400",
    "1e-400",
    "5e-324",
    "0.1234567890125",
    "9007199254740993",
    "9007199254740993.0",
    "18446744073709551616",
    "1e16",
    "1e21",
    "1e22",
    "NaN",
    "Infinity",
    "-Infinity",
    ".inf",
    "0x1F",
    "0o17",
    "0777",
    "{}",
    "[]",
    "[[]]",
    "{\"\":{}}",
    "[{}]",
    "\"\"",
    "\" \"",
    "\"\\u0000\"",
    "\"\\ud83d\\ude00\"",
    "\"\\ud83d\"",
    "\"\u{feff}\"",
    "\"\u{2028}\"",
    "\"\u{202e}\"",
    "\"\u{85}\"",
    "\"\u{7f}\"",
    "\"\\u001b[2J\"",
    "\"../../x\"",
    "\"C:\\\\a\\\\..\\\\b\"",
    "\"./c:/a\"",
    "\"/a//b/../c/\"",
    "\"2026-02-21T14:00:00Z\"",
    "\"2026-02-21T24:00:00+23:59\"",
    "\"0001-01-01T00:00:00+01:00\"",
    "\"2026-W08-6T14:00Z\"",
    "\"record\"",
    "\"replay\"",
    "\"1.0.0\"",
    "\"a\\r\\nb\"",
    "\"sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855\"",
    "\"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855\"",
    "&a [x]",
    "*a",
    "!!str 1",
    "!!int \"1\"",
    "! x",
    "|\n x",
    "> y",
    "? x",
    "'it''s'",
    "~",
    "yes",
];

/// Pieces that are no values.
const PIECES: &[&str] = &[
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "\"",
    "\\",
    "\n",
    "\r\n",
    "\r",
    "\t",
    " ",
    "\0",
    "\u{1b}",
    "\u{feff}",
    "\u{85}",
    "\u{2028}",
    "---\n",
    "...\n",
    "%YAML 1.1\n",
    "%YAML 1.2\n",
    "# c\n",
    "- ",
    "? ",
    ": ",
    "&a ",
    "*a",
    "!!",
    "<<: *a",
    "=== run.json\n",
    "=== meta.json\n",
    "=== link meta.json\n",
    "=== model_io.json\n",
    "PK\x03\x04",
    "PK\x05\x06",
    "ustar",
    "io_refs",
    "effects",
    "checksum",
    "path",
    "timestamp",
    "tags",
    "record_hash",
    "prev_hash",
    "interactions",
];

pub(super) struct Mutator<'s> {
    seeds: &'s [Vec<u8>],
}

impl<'s> Mutator<'s> {
    pub(super) fn new(seeds: &'s [Vec<u8>]) -> Self {
        Self { seeds }
    }

    pub(super) fn next(&self, random: &mut Random) -> Vec<u8> {
        let mut document = random.of(self.seeds).clone();
        for _ in 0..=random.below(4) {
            self.change(&mut document, random);
        }
        document
    }

    fn change(&self, document: &mut Vec<u8>, random: &mut Random) {
        let length = document.len();
        let at = random.below(length + 1);
        let some = |random: &mut Random| (at + 1 + random.below(64)).min(length);
        match random.below(14) {
            0 => document.truncate(at),
            1 => {
                if let Some(byte) = document.get_mut(at) {
                    *byte ^= 1 << random.below(8);
                }
            }
            2 => document.insert(at, u8::try_from(random.below(256)).unwrap()),
            3 => drop(document.drain(at..some(random).max(at))),
            4 => {
                let piece = document[at..some(random).max(at)].to_vec();
                let to = random.below(length + 1);
                document.splice(to..to, piece);
            }
            5 => {
                let other = random.of(self.seeds);
                let from = random.below(other.len() + 1);
                let to = (from + random.below(200)).min(other.len());
                document.splice(at..at, other[from..to].iter().copied());
            }
            6 => {
                let other = random.of(self.seeds);
                document.truncate(at);
                document.extend(&other[random.below(other.len() + 1)..]);
            }
            7 => drop(document.splice(at..at, random.of(PIECES).bytes())),
            8 => drop(document.splice(at..at, random.of(VALUES).bytes())),
            _ => Self::change_token(document, random),
        }
    }

    /// Replaces, repeats, removes or wraps a value of JSON.
    fn change_token(document: &mut Vec<u8>, random: &mut Random) {
        let tokens = tokens(document);
        if tokens.is_empty() {
            return;
        }
        let token = random.of(&tokens).clone();
        let other = document[random.of(&tokens).clone()].to_vec();
        match random.below(6) {
            0 => drop(document.splice(token, other)),
            1 => drop(document.drain(token)),
            2 => {
                let end = token.end;
                document.splice(end..end, [&b","[..], &other].concat());
            }
            3 => {
                let wrapped = [&b"["[..], &document[token.clone()], b"]"].concat();
                document.splice(token, wrapped);
            }
            _ => drop(document.splice(token, random.of(VALUES).bytes())),
        }
    }
}

/// Where strings, numbers and words stand, members with their names included.
fn tokens(document: &[u8]) -> Vec<std::ops::Range<usize>> {
    let mut tokens: Vec<std::ops::Range<usize>> = Vec::new();
    let mut at = 0;
    while let Some(byte) = document.get(at) {
        let start = at;
        at += 1;
        if *byte == b'"' {
            while let Some(byte) = document.get(at).filter(|byte| **byte != b'"') {
                at += if *byte == b'\\' { 2 } else { 1 };
            }
            at = (at + 1).min(document.len());
        } else if byte.is_ascii_alphanumeric() || *byte == b'-' {
            let goes_on = |byte: &u8| byte.is_ascii_alphanumeric() || b"+-._".contains(byte);
            at += document[at..].iter().take_while(|byte| goes_on(byte)).count();
        } else {
            continue;
        }
        // A name and its value are one as well.
        let before = tokens.last().cloned();
        tokens.push(start..at);
        if let Some(before) = before
            && document[before.end..start].iter().filter(|byte| !byte.is_ascii_whitespace()).eq(b":")
        {
            tokens.push(before.start..at);
        }
    }
    tokens
}

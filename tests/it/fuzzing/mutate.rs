//! Documents made from others: bytes changed, pieces moved, tokens of JSON replaced by telling ones.

/// A small generator of numbers (`SplitMix64`).
pub(super) struct Random(u64);

impl Random {
    pub(super) fn new(start: u64) -> Self {
        Self(start.wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    /// A number below `end`, or 0.
    pub(super) fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % (end.max(1) as u64)).unwrap()
    }

    pub(super) fn of<'s, T>(&mut self, slice: &'s [T]) -> &'s T {
        &slice[self.below(slice.len())]
    }
}

/// Values of JSON that parsers stumble over.
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
    "1e-400",
    "5e-324",
    "0.1234567890125",
    "9007199254740993",
    "9007199254740993.0",
    "18446744073709551616",
    "1e16",
    "1e21",
    "1e22",
    "123456789012345678e-7",
    "{}",
    "[]",
    "[[]]",
    "{\"\":{}}",
    "[{}]",
    "\"\"",
    "\" \"",
    "\"\\u0000\"",
    "\"\\ud83d\\ude00\"",
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
    "\"0001-01-01T01:00:00+01:00\"",
    "\"2026-W08-6T14:00Z\"",
    "\"20260221T140000.5-0100\"",
    "\" 2026-02-21 14:00 +01:00 \"",
    "\"record\"",
    "\"replay\"",
    "\"1.0.0\"",
    "\"a\\r\\nb\\r\"",
    "[3,10,2,\"b\",\"a\",[2,1]]",
    "\"sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855\"",
    "\"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855\"",
    "{\"sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855\":[{\"a/b~c\":[]}]}",
];

/// Names of members: some that profiles and kinds know, some that are sorted in different ways.
const NAMES: &[&str] = &[
    "path",
    "Cwd",
    "FILE",
    "out_dir",
    "timestamp",
    "created_at",
    "ended_at",
    "tags",
    "Labels",
    "latency_ms",
    "PID",
    "trace_id",
    "output",
    "result",
    "errors",
    "metadata",
    "source_run_id",
    "nonce",
    "evidence",
    "rollback",
    "",
    " ",
    "a",
    "\\ud83d\\ude00",
    "\u{e000}",
    "\u{ffff}",
    "é",
    "\\u0065\\u0301",
    "__proto__",
    "1",
    "10",
    "9",
    "\\n",
    "\u{212a}",
];

/// What is something else in YAML, or no JSON.
const OTHERS: &[&str] = &[
    "NaN",
    "Infinity",
    "-Infinity",
    "1E400",
    ".inf",
    "0x1F",
    "0o17",
    "0777",
    "\"\\ud83d\"",
    "&a [x]",
    "*a",
    "!!str 1",
    "!!int \"1\"",
    "!!float 1",
    "! x",
    "|\n x",
    ">-\n y",
    "? x",
    "'it''s'",
    "~",
    "yes",
    "2026-02-21",
    "1_000",
    "- a\n- b",
    "{a: b}",
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
        // Half of them stay well-formed: what refuses broken documents would hide everything behind it.
        let is_gentle = random.below(2) == 0;
        for _ in 0..=random.below(4) {
            if is_gentle {
                Self::extend(&mut document, random);
            } else {
                self.change(&mut document, random);
            }
        }
        document
    }

    /// Adds a member, an element, a line or a blank where there may be one.
    fn extend(document: &mut Vec<u8>, random: &mut Random) {
        let sort = random.below(4);
        let after = [b'{', b'[', b'\n', b','][sort];
        let places: Vec<usize> = (0..document.len()).filter(|at| document[*at] == after).collect();
        if places.is_empty() {
            return;
        }
        let at = random.of(&places) + 1;
        let (name, value) = (*random.of(NAMES), *random.of(VALUES));
        let is_last = document[at..].iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&(after + 2));
        let comma = if is_last { "" } else { "," };
        let addition = match sort {
            0 => format!("\"{name}\":{value}{comma}"),
            1 => format!("{value}{comma}"),
            2 if random.below(2) == 0 => format!("\"{name}\": {value}\n"),
            2 => format!("\"{name}\": {}\n", random.of(OTHERS)),
            _ => " ".to_owned(),
        };
        document.splice(at..at, addition.into_bytes());
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
            8 => drop(document.splice(at..at, random.of(OTHERS).bytes())),
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

//! SHA-256 digests: the only module where hashes are computed, parsed and formatted.
//!
//! A [`Digest`] is 32 bytes with one conversion from text and one to text. Digests with different meanings have
//! different types ([`CoreHash`], [`CaptureHash`], [`BlobHash`]), so that they cannot be confused.

mod pasted;
mod sha256;

use std::fmt;
use std::io::{self, Read, Write};
use std::ops::RangeInclusive;
use std::str::FromStr;

use hmac::{KeyInit, Mac};
#[expect(clippy::disallowed_types, reason = "this is the one place")]
use sha2::Sha256;

use sha256::Computation;

pub use pasted::{PREFIX, pasted};

/// A SHA-256 digest.
///
/// `Display` prints the long form, `sha256:<64 lowercase hex>`; with a precision (`{digest:.12}`) that number of bare
/// hex digits. `FromStr` accepts both forms, in either case, and as people paste them ([`pasted`]).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest([u8; 32]);

impl Digest {
    /// Returns the digest of `bytes`.
    #[must_use]
    pub fn from_content(bytes: &[u8]) -> Self {
        let mut hasher = Hasher::new();
        hasher.update(bytes);
        hasher.finish()
    }

    /// Returns the digest of everything that `reader` returns, which need not fit into memory.
    ///
    /// # Errors
    /// Returns an error if the reader fails.
    pub fn from_reader(mut reader: impl Read) -> io::Result<Self> {
        let mut hasher = Hasher::new();
        io::copy(&mut reader, &mut hasher)?;
        Ok(hasher.finish())
    }

    /// Creates a digest from its 32 bytes.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// Returns the 32 bytes.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Returns the first eight bytes as a number, for indexes. Keys are not unique: also compare the digest.
    #[must_use]
    pub const fn key(&self) -> i64 {
        match self.0.first_chunk() {
            Some(first) => i64::from_be_bytes(*first),
            None => 0,
        }
    }

    /// Returns the range of the digests whose [`Digest::key`] is a number in a range, as an unsigned number.
    pub(crate) fn with_keys(keys: &RangeInclusive<u64>) -> RangeInclusive<Self> {
        let digest = |key: u64, rest: u8| {
            let mut bytes = [rest; 32];
            bytes.iter_mut().zip(key.to_be_bytes()).for_each(|(to, from)| *to = from);
            Self(bytes)
        };
        digest(*keys.start(), 0)..=digest(*keys.end(), u8::MAX)
    }

    /// Parses exactly `sha256:` and 64 lowercase hex digits: the form in which documents state digests.
    #[must_use]
    pub fn parse_prefixed(text: &str) -> Option<Self> {
        // Most texts of a document are examined for digests, and this compares arrays of a known size.
        const BYTES: &[u8; 7] = PREFIX.as_bytes().first_chunk().expect("it has seven bytes");
        let (prefix, digits) = text.as_bytes().split_first_chunk()?;
        if prefix == BYTES { Self::from_hex_digits(digits.try_into().ok()?) } else { None }
    }

    /// Parses exactly 64 lowercase hex digits: the form in which trace records state digests.
    #[must_use]
    pub fn parse_hex(text: &str) -> Option<Self> {
        Self::from_hex_digits(text.as_bytes().try_into().ok()?)
    }

    /// Parses 64 lowercase hex digits.
    pub(crate) fn from_hex_digits(digits: &[u8; 64]) -> Option<Self> {
        decode(digits, hex_value).map(Self)
    }

    /// Parses either form, where a format specifies one and users write the other.
    #[must_use]
    pub fn parse_either(text: &str) -> Option<Self> {
        Self::parse_prefixed(text).or_else(|| Self::parse_hex(text))
    }

    /// Returns the 64 lowercase hex digits without the prefix, as ASCII.
    #[must_use]
    pub fn hex_digits(&self) -> [u8; 64] {
        let mut text = [0; 64];
        for (pair, byte) in text.as_chunks_mut::<2>().0.iter_mut().zip(self.0) {
            *pair = [hex_digit(byte >> 4), hex_digit(byte & 15)];
        }
        text
    }

    /// Returns the 64 lowercase hex digits without the prefix.
    #[must_use]
    pub fn hex(&self) -> String {
        format!("{self:.64}")
    }
}

fn decode_hex(text: &str) -> Option<[u8; 32]> {
    decode(text.as_bytes().try_into().ok()?, |digit| hex_value(digit.to_ascii_lowercase()))
}

fn decode(digits: &[u8; 64], value: impl Fn(u8) -> u8) -> Option<[u8; 32]> {
    // Plain loops over all digits without an early exit, so that the compiler can vectorize them, and without `zip`, which
    // it does not always inline.
    let mut values = *digits;
    let mut all = 0;
    for digit in &mut values {
        *digit = value(*digit);
        all |= *digit;
    }
    let mut bytes = [0; 32];
    for (index, [high, low]) in values.as_chunks().0.iter().enumerate() {
        if let Some(byte) = bytes.get_mut(index) {
            *byte = high << 4 | low;
        }
    }
    (all < 16).then_some(bytes)
}

/// Returns the value of a lowercase hex digit, or 255 for any other byte.
#[inline]
fn hex_value(digit: u8) -> u8 {
    let decimal = digit.wrapping_sub(b'0');
    let letter = digit.wrapping_sub(b'a');
    if decimal < 10 {
        decimal
    } else if letter < 6 {
        letter + 10
    } else {
        u8::MAX
    }
}

#[inline]
fn hex_digit(value: u8) -> u8 {
    value + if value < 10 { b'0' } else { b'a' - 10 }
}

/// Returns the lowercase hex digits of `bytes`.
#[must_use]
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]).map(|digit| char::from(hex_digit(digit))).collect()
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = if let Some(digits) = f.precision() {
            digits.min(64)
        } else {
            f.write_str(PREFIX)?;
            64
        };
        let text = self.hex_digits();
        let shown = text.get(..digits).unwrap_or(&text);
        f.write_str(str::from_utf8(shown).map_err(|_| fmt::Error)?)
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The error for a text that is not a digest or a digest prefix.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParseDigestError {
    /// A character other than a hex digit follows the optional `sha256:`.
    #[error("{0:?} is not a hash: expected an optional \"sha256:\" followed by hex digits (0-9, a-f)")]
    NotHex(String),
    /// Only hex digits, but the wrong number of them.
    #[error("{text:?} has {digits} hex digit{}; {expected}", if *.digits == 1 { "" } else { "s" })]
    Length {
        /// The text as given.
        text: String,
        /// The number of hex digits.
        digits: usize,
        /// A description of what is accepted.
        expected: &'static str,
    },
}

impl FromStr for Digest {
    type Err = ParseDigestError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if let Some(digest) = Self::parse_prefixed(text) {
            return Ok(digest);
        }
        let hex = hex_digits(text)?;
        decode_hex(&hex).map(Self).ok_or_else(|| ParseDigestError::Length {
            text: text.to_owned(),
            digits: hex.len(),
            expected: "a full hash has 64",
        })
    }
}

fn hex_digits(text: &str) -> Result<String, ParseDigestError> {
    let pasted = pasted(text);
    let hex = pasted.strip_prefix(PREFIX).unwrap_or(&pasted);
    if hex.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        Ok(hex.to_owned())
    } else {
        Err(ParseDigestError::NotHex(text.to_owned()))
    }
}

impl serde::Serialize for Digest {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> serde::Deserialize<'de> for Digest {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

macro_rules! digest_of {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub Digest);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(&self.0, f)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(&self.0, f)
            }
        }

        impl FromStr for $name {
            type Err = ParseDigestError;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                text.parse().map(Self)
            }
        }
    };
}

digest_of! {
    /// The identity of an artifact: the digest of the canonical form of the part that identical recordings share.
    CoreHash
}
digest_of! {
    /// The identity of one exact byte form of an artifact. For a single-file artifact, the digest of that file.
    CaptureHash
}
digest_of! {
    /// The digest of stored bytes.
    BlobHash
}

/// The first hex digits of a digest, at least [`DigestPrefix::MIN_DIGITS`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DigestPrefix {
    low: Digest,
    high: Digest,
    digits: usize,
}

impl DigestPrefix {
    /// Minimum number of digits. Shorter prefixes are rejected: in a vault of any size they would be ambiguous.
    pub const MIN_DIGITS: usize = 6;

    /// Returns the smallest and the largest digest that begin with this prefix.
    #[must_use]
    pub fn range(&self) -> (Digest, Digest) {
        (self.low, self.high)
    }

    /// Returns the digest if the prefix is complete.
    #[must_use]
    pub fn whole(&self) -> Option<Digest> {
        (self.low == self.high).then_some(self.low)
    }

    /// Returns whether `digest` begins with this prefix.
    #[must_use]
    pub fn matches(&self, digest: &Digest) -> bool {
        (self.low..=self.high).contains(digest)
    }
}

impl From<Digest> for DigestPrefix {
    fn from(digest: Digest) -> Self {
        Self { low: digest, high: digest, digits: 64 }
    }
}

impl serde::Serialize for DigestPrefix {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> serde::Deserialize<'de> for DigestPrefix {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

impl FromStr for DigestPrefix {
    type Err = ParseDigestError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let hex = hex_digits(text)?;
        let bound = |fill: char| {
            let filled: String =
                hex.chars().chain(std::iter::repeat_n(fill, 64_usize.saturating_sub(hex.len()))).collect();
            decode_hex(&filled).map(Digest)
        };
        match (bound('0'), bound('f')) {
            (Some(low), Some(high)) if hex.len() >= Self::MIN_DIGITS => {
                Ok(Self { low, high, digits: hex.len() })
            }
            _ => Err(ParseDigestError::Length {
                text: text.to_owned(),
                digits: hex.len(),
                expected: "a hash prefix has at least 6 and at most 64",
            }),
        }
    }
}

impl fmt::Display for DigestPrefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = self.digits;
        write!(f, "{:.digits$}", self.low)
    }
}

/// The result of resolving a prefix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PrefixResolution<T> {
    /// No digest begins with it.
    None,
    /// Exactly one match.
    One(T),
    /// Several matches, in the order of their digests.
    Ambiguous(Vec<T>),
}

impl<T> FromIterator<T> for PrefixResolution<T> {
    fn from_iter<I: IntoIterator<Item = T>>(candidates: I) -> Self {
        let mut candidates: Vec<T> = candidates.into_iter().collect();
        match (candidates.pop(), candidates.is_empty()) {
            (None, _) => Self::None,
            (Some(only), true) => Self::One(only),
            (Some(last), false) => {
                candidates.push(last);
                Self::Ambiguous(candidates)
            }
        }
    }
}

/// A digest computation over bytes that arrive in pieces.
pub struct Hasher(Computation);

impl Hasher {
    /// Creates a hasher without input.
    #[must_use]
    pub fn new() -> Self {
        Self(Computation::new())
    }

    /// Adds `bytes` to the input.
    pub fn update(&mut self, bytes: &[u8]) {
        #[cfg(test)]
        HASHED.set(HASHED.get() + bytes.len());
        self.0.update(bytes);
    }

    /// Returns the digest of the input.
    #[must_use]
    pub fn finish(self) -> Digest {
        Digest(self.0.finish())
    }
}

#[cfg(test)]
thread_local! {
    static HASHED: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// Returns how many bytes this thread has hashed.
#[cfg(test)]
pub(crate) fn hashed_bytes() -> usize {
    HASHED.get()
}

impl Default for Hasher {
    fn default() -> Self {
        Self::new()
    }
}

impl Write for Hasher {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Returns whether `code` is the HMAC-SHA-256 of `message` under `key`. The comparison takes constant time.
#[must_use]
#[expect(clippy::disallowed_types, reason = "this is the one place")]
pub fn hmac_matches(key: &[u8], message: &[u8], code: &Digest) -> bool {
    hmac::Hmac::<Sha256>::new_from_slice(key).is_ok_and(|mut mac| {
        mac.update(message);
        mac.verify_slice(code.as_bytes()).is_ok()
    })
}

/// Returns the HMAC-SHA-256 of `message` under `key`, which may have any length.
#[cfg(feature = "gateway")]
#[expect(clippy::disallowed_types, reason = "this is the one place")]
pub(crate) fn hmac(key: &[u8], message: &[u8]) -> Option<Digest> {
    let mut mac = hmac::Hmac::<Sha256>::new_from_slice(key).ok()?;
    mac.update(message);
    Some(Digest::from_bytes(mac.finalize().into_bytes().into()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const EMPTY: &str = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

    #[test]
    fn text_forms() {
        let digest = Digest::from_content(b"");
        assert_eq!(digest.to_string(), EMPTY);
        assert_eq!(format!("{digest:.12}"), "e3b0c44298fc");
        assert_eq!(digest.hex(), EMPTY[7..]);
        assert_eq!(EMPTY[7..].to_uppercase().parse(), Ok(digest));
        assert_eq!(EMPTY.to_uppercase().parse(), Ok(digest));
        assert_eq!(format!("http://127.0.0.1:4780/prompt/{EMPTY}").parse(), Ok(digest));
        assert_eq!(Digest::parse_prefixed(EMPTY), Some(digest));
        assert_eq!(Digest::parse_prefixed(&EMPTY[7..]), None);
        assert_eq!(Digest::parse_hex(&EMPTY[7..].to_uppercase()), None);
        assert_eq!([EMPTY, &EMPTY[7..]].map(Digest::parse_either), [Some(Digest::from_content(b"")); 2]);
        assert_eq!(Digest::parse_either(&EMPTY[1..]), None);
    }

    #[test]
    fn refused_texts() {
        for text in ["", "sha256:", "e3b0c4429", &EMPTY[..70], "md5:0011", "é"] {
            assert!(text.parse::<Digest>().is_err(), "{text}");
            assert_eq!(Digest::parse_prefixed(text), None, "{text}");
        }
        let message = "sha256:12345".parse::<DigestPrefix>().unwrap_err().to_string();
        assert_eq!(message, "\"sha256:12345\" has 5 hex digits; a hash prefix has at least 6 and at most 64");
        let message = "4".parse::<DigestPrefix>().unwrap_err().to_string();
        assert!(message.starts_with("\"4\" has 1 hex digit; "), "{message}");
    }

    #[test]
    fn hmac_of_rfc_4231_case_2() {
        let code = "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843".parse().unwrap();
        assert!(hmac_matches(b"Jefe", b"what do ya want for nothing?", &code));
        assert!(!hmac_matches(b"jefe", b"what do ya want for nothing?", &code));
    }

    proptest! {
        #[test]
        fn text_round_trip(bytes: [u8; 32]) {
            let digest = Digest::from_bytes(bytes);
            prop_assert_eq!(digest.to_string().parse(), Ok(digest));
            prop_assert_eq!(digest.hex().parse(), Ok(digest));
        }

        #[test]
        fn a_prefix_resolves_to_exactly_what_begins_with_it(digests: Vec<[u8; 2]>, length in 6_usize..=64, pick: prop::sample::Index) {
            // Two varying leading bytes make shared prefixes likely.
            let mut digests: Vec<Digest> = digests.into_iter().map(|[a, b]| {
                let mut bytes = [7; 32];
                (bytes[0], bytes[2]) = (a & 3, b);
                Digest::from_bytes(bytes)
            }).collect();
            digests.sort_unstable();
            digests.dedup();
            prop_assume!(!digests.is_empty());
            let text = &pick.get(&digests).hex()[..length];
            let prefix: DigestPrefix = text.parse().unwrap();
            prop_assert_eq!(prefix.to_string(), text);
            let expected: Vec<Digest> = digests.iter().copied().filter(|digest| digest.hex().starts_with(text)).collect();
            let found: PrefixResolution<Digest> = digests.iter().copied().filter(|digest| prefix.matches(digest)).collect();
            match found {
                PrefixResolution::None => prop_assert!(expected.is_empty()),
                PrefixResolution::One(digest) => prop_assert_eq!(vec![digest], expected),
                PrefixResolution::Ambiguous(all) => prop_assert_eq!(all, expected),
            }
        }
    }
}

//! Names of objects.

use std::fmt;

use rustls::crypto::ring;

use crate::digest::hex;
use crate::storage::{ErrorKind, Result, StorageError};

/// A random name, which no two objects share: who writes an object has no competitor, and a deleted name is never used
/// again.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(in crate::storage) struct ObjectName(pub(in crate::storage) [u8; 16]);

impl ObjectName {
    /// Returns a new name.
    ///
    /// # Errors
    /// Returns an error if the system has no random numbers.
    pub(in crate::storage) fn new() -> Result<Self> {
        let mut bytes = [0; 16];
        ring::default_provider()
            .secure_random
            .fill(&mut bytes)
            .map_err(|_| StorageError::new(ErrorKind::Io, "the system returns no random numbers"))?;
        Ok(Self(bytes))
    }

    /// Parses the text of a name.
    pub(in crate::storage) fn parse(text: &str) -> Option<Self> {
        let mut bytes = [0; 16];
        let (pairs, rest) = text.as_bytes().as_chunks::<2>();
        if pairs.len() != bytes.len() || !rest.is_empty() {
            return None;
        }
        for (byte, pair) in bytes.iter_mut().zip(pairs) {
            let pair = std::str::from_utf8(pair).ok().filter(|pair| !pair.starts_with('+'))?;
            *byte = u8::from_str_radix(pair, 16).ok()?;
        }
        Some(Self(bytes)).filter(|name| name.to_string() == text)
    }

    /// Returns the key of the object with blobs. The first digits divide listings into parts.
    pub(in crate::storage) fn key(self) -> String {
        let text = self.to_string();
        let (first, _) = text.split_at(2);
        format!("{BLOBS}/{first}/{text}")
    }
}

/// The directory of objects with blobs.
pub(super) const BLOBS: &str = "blobs";

/// The directory of objects that show how a storage behaves, each deleted at once.
pub(super) const PROBES: &str = "probe";

impl fmt::Display for ObjectName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex(&self.0))
    }
}

impl fmt::Debug for ObjectName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_parsed_as_they_are_shown() {
        let name = ObjectName::new().unwrap();
        assert_ne!(name, ObjectName::new().unwrap());
        assert_eq!(ObjectName::parse(&name.to_string()), Some(name));
        let name = ObjectName([0xab; 16]);
        assert_eq!(name.key(), "blobs/ab/abababababababababababababababab");
        for text in ["", "ab", "+bababababababababababababababab", "ABABABABABABABABABABABABABABABAB"] {
            assert_eq!(ObjectName::parse(text), None);
        }
    }
}

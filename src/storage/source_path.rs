//! Paths that captures were read from.

use std::ffi::OsStr;

/// The path of the file or directory that a capture was read from when it was first added, or the name of another
/// source. It is text that anyone may have chosen, and names nothing that still has to exist.
///
/// Bytes that are not UTF-8 are replaced, and so is U+0000. Of a longer path, only the end is kept.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SourcePath(String);

/// The replacement of the beginning of a path that is too long.
const ELLIPSIS: &str = "…";

impl SourcePath {
    /// Maximum length in bytes. Longer ones would make every journal entry long.
    pub const MAX_BYTES: usize = 1_024;

    /// Creates the form of a path or name in which it is recorded, or `None` if it is empty.
    #[must_use]
    pub fn new(path: &OsStr) -> Option<Self> {
        let path = path.to_string_lossy().replace('\0', "\u{fffd}");
        if path.is_empty() {
            return None;
        }
        if path.len() <= Self::MAX_BYTES {
            return Some(Self(path));
        }
        let begin = path.ceil_char_boundary(path.len() - (Self::MAX_BYTES - ELLIPSIS.len()));
        let end = path.get(begin..).unwrap_or_default();
        Some(Self(format!("{ELLIPSIS}{end}")))
    }

    /// Returns whether `text` is in the form in which paths are recorded.
    #[must_use]
    pub fn is_valid(text: &str) -> bool {
        !text.is_empty() && text.len() <= Self::MAX_BYTES && !text.contains('\0')
    }

    /// Returns the text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recorded(path: &str) -> Option<String> {
        SourcePath::new(OsStr::new(path)).map(|path| path.as_str().to_owned())
    }

    #[test]
    fn a_path_is_kept_as_it_is() {
        for path in ["runs/a.json", "/r/\u{1b}[31m\n\u{202e}", "-", "…", "é"] {
            assert_eq!(recorded(path).as_deref(), Some(path));
            assert!(SourcePath::is_valid(path));
        }
        assert_eq!(recorded(""), None);
        assert!(!SourcePath::is_valid(""));
    }

    #[test]
    fn text_that_no_engine_could_store_is_replaced() {
        assert_eq!(recorded("a\0b").as_deref(), Some("a\u{fffd}b"));
        assert!(!SourcePath::is_valid("a\0b"));
        #[cfg(unix)]
        {
            use std::os::unix::ffi::OsStrExt;
            let path = SourcePath::new(OsStr::from_bytes(b"a\xffb"));
            assert_eq!(path.unwrap().as_str(), "a\u{fffd}b");
        }
    }

    #[test]
    fn the_end_of_a_long_path_is_kept() {
        let longest = "x".repeat(SourcePath::MAX_BYTES);
        assert_eq!(recorded(&longest).as_ref(), Some(&longest));
        for unit in ["x", "é", "\u{10000}"] {
            let path = format!("/{}/end", unit.repeat(SourcePath::MAX_BYTES));
            let kept = recorded(&path).unwrap();
            assert!(SourcePath::is_valid(&kept) && kept.len() > SourcePath::MAX_BYTES - 4, "{}", kept.len());
            assert!(kept.starts_with(ELLIPSIS) && kept.ends_with("/end"), "{kept}");
            assert!(path.ends_with(kept.trim_start_matches(ELLIPSIS)));
        }
    }
}

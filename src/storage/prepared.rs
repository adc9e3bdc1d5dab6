//! Artifacts that are ready to be stored, and the paths that captures were read from.

use std::any::Any;
use std::ffi::OsStr;
use std::fmt;

use crate::artifact::Admitted;
use crate::digest::Digest;
use crate::storage::CaptureTarget;

/// An artifact that an engine has prepared for storage, with what it made for that, such as compressed bytes.
pub struct Prepared {
    admitted: Admitted,
    embedded: Vec<Prepared>,
    digests: Vec<Digest>,
    source_path: Option<SourcePath>,
    private: Box<dyn Any + Send + Sync>,
}

impl Prepared {
    /// Prepares `admitted` and the artifacts embedded in it. `encode` returns what the engine keeps for each of them;
    /// it gets the artifact and [`Prepared::digests`].
    pub(super) fn new<T: Send + Sync + 'static>(
        mut admitted: Admitted,
        encode: &dyn Fn(&Admitted, &[Digest]) -> T,
    ) -> Self {
        let digests = removal_digests(&admitted);
        let embedded = admitted.take_embedded().into_iter().map(|part| Self::new(part, encode)).collect();
        let private = Box::new(encode(&admitted, &digests));
        Self { admitted, embedded, digests, source_path: None, private }
    }

    /// Sets the paths that are recorded with its capture and with those of the artifacts embedded in it, if they are new.
    /// `path_of` returns the path of each artifact.
    pub fn set_source_paths(&mut self, path_of: &dyn Fn(&Admitted) -> Option<SourcePath>) {
        for embedded in &mut self.embedded {
            embedded.set_source_paths(path_of);
        }
        self.source_path = path_of(&self.admitted);
    }

    /// Returns the path that is recorded with its capture.
    #[must_use]
    pub fn source_path(&self) -> Option<&str> {
        self.source_path.as_ref().map(SourcePath::as_str)
    }

    /// Returns the artifact.
    #[must_use]
    pub fn admitted(&self) -> &Admitted {
        &self.admitted
    }

    /// Returns the artifacts embedded in it, which are stored with it, before it.
    #[must_use]
    pub fn embedded(&self) -> &[Self] {
        &self.embedded
    }

    /// Returns it and all artifacts embedded in it, those that are embedded first.
    #[must_use]
    pub fn parts(&self) -> Vec<&Self> {
        self.embedded.iter().flat_map(Self::parts).chain([self]).collect()
    }

    /// Returns its capture and those of all artifacts embedded in it.
    #[must_use]
    pub fn targets(&self) -> Vec<CaptureTarget> {
        let target =
            |admitted: &Admitted| CaptureTarget { capture: admitted.capture(), artifact: admitted.core() };
        self.parts().into_iter().map(|part| target(&part.admitted)).collect()
    }

    /// Returns every digest under which it or an embedded artifact may have been removed, sorted.
    pub(super) fn digests(&self) -> &[Digest] {
        &self.digests
    }

    /// Returns what the engine made, or `None` if another engine prepared this.
    pub(super) fn private<T: 'static>(&self) -> Option<&T> {
        self.private.downcast_ref()
    }
}

impl fmt::Debug for Prepared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Prepared").field("core", &self.admitted.core()).finish_non_exhaustive()
    }
}

/// Returns every digest under which `admitted` and the artifacts embedded in it may have been removed: core hashes,
/// capture hashes and the hashes of files. They are sorted.
pub(super) fn removal_digests(admitted: &Admitted) -> Vec<Digest> {
    let files = admitted.members().iter().map(|member| member.blob().0);
    let mut digests: Vec<Digest> = files.chain([admitted.core().0, admitted.capture().0]).collect();
    digests.extend(admitted.embedded().iter().flat_map(removal_digests));
    digests.sort_unstable();
    digests.dedup();
    digests
}

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

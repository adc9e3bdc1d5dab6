//! Artifacts that are ready to be stored.

use std::any::Any;
use std::fmt;

use crate::artifact::Admitted;
use crate::digest::Digest;
use crate::storage::{CaptureTarget, SourcePath};

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

impl AsRef<Admitted> for Prepared {
    fn as_ref(&self) -> &Admitted {
        &self.admitted
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

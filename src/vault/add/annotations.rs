//! Annotations and source paths that everything gets that is added.

use std::collections::{BTreeMap, HashMap};
use std::ffi::OsStr;
use std::sync::{Mutex, PoisonError};

use chrono::{DateTime, Utc};

use crate::artifact::Admitted;
use crate::digest::{CaptureHash, CoreHash};
use crate::storage::{
    Annotation, BUSY_TIMEOUT, MAX_NOTE_BYTES, Prepared, Result, SourcePath, Storage, StorageError,
    Transaction, check_labels, is_note,
};

/// Annotations for all artifacts of an addition, whether they are new or were stored before. What is embedded in an
/// artifact, such as the session of a pack, does not get them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CommonAnnotations {
    /// The labels, by key. They replace the values of the same keys.
    pub labels: BTreeMap<String, String>,
    /// The note. It replaces any other.
    pub note: Option<String>,
}

impl CommonAnnotations {
    /// No annotations.
    pub(crate) const NONE: Self = Self { labels: BTreeMap::new(), note: None };

    /// Returns whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.labels.is_empty() && self.note.is_none()
    }

    /// Checks that the labels and the note are valid.
    ///
    /// # Errors
    /// Returns an error of the kind [`Invalid`](crate::storage::ErrorKind::Invalid) if a label or the note is not
    /// valid.
    pub fn check(&self) -> Result<()> {
        check_labels(&self.labels)?;
        if self.note.as_ref().is_some_and(|note| !is_note(note)) {
            let message = format!("a note must not be blank, and has at most {MAX_NOTE_BYTES} bytes");
            return Err(StorageError::invalid(message));
        }
        Ok(())
    }

    /// Sets them on artifacts at the time `at`, in one transaction. Those that were removed in the meantime are skipped.
    pub(super) fn set(&self, storage: &dyn Storage, of: &[CoreHash], at: DateTime<Utc>) -> Result<()> {
        if self.is_empty() || of.is_empty() {
            return Ok(());
        }
        let mut change = storage.transaction(at, BUSY_TIMEOUT)?;
        let stored = change.snapshot().stored_artifacts(of)?;
        let cores: Vec<CoreHash> = stored.into_iter().map(|artifact| artifact.core).collect();
        if self.annotate(&mut *change, &cores)? {
            change.commit()?;
        }
        Ok(())
    }

    fn annotate(&self, change: &mut dyn Transaction, cores: &[CoreHash]) -> Result<bool> {
        let mut is_changed = change.annotate(&Annotation::SetLabels { cores, labels: &self.labels })?;
        if let Some(text) = self.note.as_deref() {
            for core in cores.iter().copied() {
                is_changed |= change.annotate(&Annotation::SetNote { core, text: Some(text) })?;
            }
        }
        Ok(is_changed)
    }
}

/// The source paths that an addition records with new captures.
#[derive(Clone, Copy)]
pub(in crate::vault) enum SourcePaths<'a> {
    /// None.
    LeftOut,
    /// Those of the inputs. What is embedded in an artifact, or stored with it, has the path of that artifact.
    OfInputs,
    /// Those that were recorded elsewhere.
    Of(&'a HashMap<(CoreHash, CaptureHash), SourcePath>),
    /// Those that were recorded elsewhere, which are taken out when they are set.
    Once(&'a Mutex<HashMap<(CoreHash, CaptureHash), SourcePath>>),
}

impl SourcePaths<'_> {
    /// Sets the paths of an artifact that was read from `path`.
    pub(super) fn set(self, path: &OsStr, prepared: &mut Prepared) {
        match self {
            Self::LeftOut => {}
            Self::OfInputs => {
                let path = SourcePath::new(path);
                prepared.set_source_paths(&|_| path.clone());
            }
            Self::Of(paths) => {
                let key = |admitted: &Admitted| (admitted.core(), admitted.capture());
                prepared.set_source_paths(&|admitted| paths.get(&key(admitted)).cloned());
            }
            Self::Once(paths) => {
                let key = |admitted: &Admitted| (admitted.core(), admitted.capture());
                let take = |admitted: &Admitted| {
                    paths.lock().unwrap_or_else(PoisonError::into_inner).remove(&key(admitted))
                };
                prepared.set_source_paths(&take);
            }
        }
    }
}

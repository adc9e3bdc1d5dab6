//! Which source paths an addition records.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::sync::{Mutex, PoisonError};

use crate::artifact::Admitted;
use crate::digest::{CaptureHash, CoreHash};
use crate::storage::{Prepared, SourcePath};

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

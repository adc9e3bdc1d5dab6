//! Open directories and their entries.
//!
//! The target of a path can change at any time: anyone who may write in a directory can replace a component of a path
//! by a symbolic link. Therefore a path is used only to open a directory, the directory is compared with the expected
//! one, and files are read, renamed and removed by name within the open directory. Where the system has no such calls
//! (not Unix), paths are used.

mod entry;
mod path;
#[cfg(not(unix))]
mod portable;
#[cfg(unix)]
mod unix;

#[cfg(not(unix))]
use portable as system;
#[cfg(unix)]
use unix as system;

pub(super) use entry::{FileId, FileKind, FileState, OpenDirEntry, now};
pub use path::FoundPath;
pub(super) use path::{ReopenResult, is_no_directory, parent, replaced};
pub(super) use system::OpenDir;

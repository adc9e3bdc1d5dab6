//! Damage to the log of an engine that writes changes to a log first.

use std::fmt;
use std::path::PathBuf;

/// A kind of damage to a write-ahead log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogDefect {
    /// The header does not verify, so that no part of the log can be read.
    Header,
    /// A frame does not verify, so that neither it nor those after it can be read.
    Frame {
        /// The number of the frame, from 1.
        number: u64,
    },
}

/// A write-ahead log with committed changes after a part that does not verify, found before SQLite read it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogDamage {
    /// The defect.
    pub defect: LogDefect,
    /// Number of frames that the log has.
    pub frames: u64,
    /// Number of frames that cannot be read.
    pub unreadable: u64,
    /// Path of the copy of the log, or `None` if no file can be created beside the vault; the log then remains
    /// unchanged.
    pub copy: Option<PathBuf>,
}

impl fmt::Display for LogDamage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { defect, frames, unreadable, copy } = self;
        match defect {
            LogDefect::Header => write!(f, "the header of the write-ahead log is damaged")?,
            LogDefect::Frame { number } => {
                write!(f, "frame {number} of {frames} of the write-ahead log failed verification")?;
            }
        }
        write!(f, "; {unreadable} of {frames} frames cannot be read, and the changes in them are missing")?;
        match copy {
            Some(copy) => write!(f, "; the log was saved as {}", copy.display()),
            None => write!(f, "; nothing could be written next to the vault, and the log was left unchanged"),
        }
    }
}

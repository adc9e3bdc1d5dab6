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
    /// The log ends before its last committed frame.
    CutOff,
    /// The log is missing, but one existed.
    Missing,
    /// The log belongs to another vault.
    Foreign,
}

/// A write-ahead log that does not contain everything that was committed, found before SQLite read it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogDamage {
    /// The defect.
    pub defect: LogDefect,
    /// Number of frames that the log has or had.
    pub frames: u64,
    /// Number of frames that cannot be read.
    pub unreadable: u64,
    /// Path of the copy of the log, or `None` if no file can be created beside the vault; the log then remains
    /// unchanged.
    pub copy: Option<PathBuf>,
    /// The first and last known journal entries that are in the unreadable frames but not in the vault.
    pub entries: Option<(i64, i64)>,
}

impl fmt::Display for LogDamage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { defect, frames, unreadable, copy, entries } = self;
        match defect {
            LogDefect::Header => write!(f, "the header of the write-ahead log is damaged")?,
            LogDefect::Frame { number } => {
                write!(f, "frame {number} of {frames} of the write-ahead log failed verification")?;
            }
            LogDefect::CutOff => write!(f, "the write-ahead log was truncated")?,
            LogDefect::Missing => write!(f, "the write-ahead log is missing")?,
            LogDefect::Foreign => write!(f, "the write-ahead log belongs to another vault")?,
        }
        match defect {
            LogDefect::Foreign if *unreadable == 0 => {}
            _ => write!(f, "; {unreadable} of {frames} committed frames cannot be read")?,
        }
        match entries.filter(|_| *defect != LogDefect::Foreign) {
            Some((first, last)) if first == last => {
                write!(f, "; entry {first} of the journal may be missing")?;
            }
            Some((first, last)) => {
                write!(f, "; entries {first} to {last} of the journal may be missing")?;
            }
            None => write!(f, "; it is not known which entries of the journal are missing")?,
        }
        match copy {
            Some(copy) => write!(f, "; what remains of the log was saved as {}", copy.display()),
            None => write!(f, "; nothing could be written next to the vault, and the log was left unchanged"),
        }
    }
}

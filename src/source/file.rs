//! Files, read no further than the limits allow.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use super::ExamineOptions;
use crate::archive::Format;
use crate::artifact::document;
use crate::canonical::reader::Limits;
use crate::verify::Report;

/// Enough of a file to tell text from anything else, and most kinds from each other.
pub(super) const HEAD_BYTES: u64 = 64 << 10;

/// A file of which the beginning was read.
pub(super) struct OpenFile {
    pub(super) file: File,
    size: u64,
    pub(super) head: Vec<u8>,
}

pub(super) enum Contents {
    Whole(Vec<u8>),
    TooLarge { head: Vec<u8>, report: Report },
}

impl OpenFile {
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let mut file = File::open(path)?;
        let size = file.metadata()?.len();
        let mut head = Vec::new();
        file.by_ref().take(HEAD_BYTES).read_to_end(&mut head)?;
        Ok(Self { file, size, head })
    }

    /// Reads the rest, but no more than the limit allows: a file may also grow while it is read.
    pub(super) fn read(self, options: &ExamineOptions) -> io::Result<Contents> {
        let Self { file, size, head } = self;
        let limit = options.admit.limits.bytes.min(Limits::MAX_BYTES);
        let too_large = |head, size| {
            let report = document::too_large(size, limit).into();
            Ok(Contents::TooLarge { head, report })
        };
        if size > limit {
            return too_large(head, size);
        }
        let mut bytes = head;
        bytes.reserve_exact(usize::try_from(size).unwrap_or(0).saturating_sub(bytes.len()));
        let left = (limit + 1).saturating_sub(bytes.len() as u64);
        file.take(left).read_to_end(&mut bytes)?;
        match bytes.len() as u64 {
            size if size > limit => too_large(bytes, size),
            _ => Ok(Contents::Whole(bytes)),
        }
    }
}

/// About how many bytes examining the file at `path` takes into memory. What can be unpacked to any size weighs as much
/// as anything can.
pub(super) fn weigh(path: &Path) -> u64 {
    let mut head = [0; 4];
    let read = File::open(path).and_then(|mut file| {
        let size = file.metadata()?.len();
        let filled = file.read(&mut head)?;
        Ok(if Format::can_grow(head.get(..filled).unwrap_or_default()) { u64::MAX } else { size })
    });
    read.unwrap_or_default()
}

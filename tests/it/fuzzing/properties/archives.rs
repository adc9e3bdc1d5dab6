//! Archives, told by their first bytes or not.

use std::io::Cursor;

use runvault::artifact::DirectoryEntry;
use runvault::intake::archive::{self, ArchiveFormat, ArchiveLimits};
use runvault::intake::{self, ExamineOptions};

use super::documents::packed_again;
use super::{check_admitted, kind, repair};

/// So much may come out of an archive here.
const LIMITS: ArchiveLimits = ArchiveLimits { bytes: 1 << 20, entries: 1_000 };

/// Whatever is taken for an archive, what comes out is bounded, and a pack that comes out is the same when it is packed
/// again.
pub(super) fn archive(data: &[u8]) {
    for data in repair::archives(data) {
        for format in [ArchiveFormat::Zip, ArchiveFormat::Tar, ArchiveFormat::TarGz] {
            let is_member = |name: &str| kind("pack").members().contains(&name);
            let contents = archive::read(format, Cursor::new(&data), &is_member, LIMITS);
            assert!(contents.entries.len() <= LIMITS.entries);
            let bytes = |entry: &DirectoryEntry| entry.bytes().map_or(0, <[u8]>::len) as u64;
            assert!(contents.entries.iter().map(bytes).sum::<u64>() <= LIMITS.bytes);
        }
        if let Ok(admitted) = intake::examine_document(data, "", &ExamineOptions::default()) {
            check_admitted(&admitted);
            if admitted.kind().is_of_directories() {
                packed_again(&admitted);
            }
        }
    }
}

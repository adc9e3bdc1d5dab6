//! Archives, told by their first bytes or not.

use std::io::Cursor;

use runvault::artifact::Entry;
use runvault::intake::archive::{self, Format, Limits};
use runvault::intake::{self, ExamineOptions};

use super::documents::packed_again;
use super::{check_admitted, kind, repair};

/// So much may come out of an archive here.
const LIMITS: Limits = Limits { bytes: 1 << 20, entries: 1_000 };

/// Whatever is taken for an archive, what comes out is bounded, and a pack that comes out is the same when it is packed
/// again.
pub(super) fn archive(data: &[u8]) {
    for data in repair::archives(data) {
        for format in [Format::Zip, Format::Tar, Format::TarGz] {
            let is_member = |name: &str| kind("pack").members().contains(&name);
            let contents = archive::read(format, Cursor::new(&data), &is_member, LIMITS);
            assert!(contents.entries.len() <= LIMITS.entries);
            let bytes = |entry: &Entry| entry.bytes().map_or(0, <[u8]>::len) as u64;
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

//! Stored bytes: compressed on the way in, hashed on the way out.

use std::cell::RefCell;
use std::io;

use zstd::bulk::{Compressor, Decompressor};

use super::error::PayloadDefect;
use crate::artifact::Admitted;
use crate::digest::{BlobHash, Digest};

/// Level 3 costs a few milliseconds a megabyte and halves typical documents.
const LEVEL: i32 = 3;

const RAW: i64 = 0;
const ZSTD: i64 = 1;

/// An artifact whose files are compressed and ready to be stored. Preparing needs no database, so that threads can do it
/// beside the one that writes.
pub struct Prepared {
    pub(super) admitted: Admitted,
    pub(super) payloads: Vec<Payload>,
    /// The artifacts that are part of it.
    pub(super) embedded: Vec<Prepared>,
}

/// Stored bytes and how they are encoded.
pub(super) struct Payload {
    pub(super) encoding: i64,
    /// Empty if the encoding is raw: then the member's own bytes are stored.
    pub(super) compressed: Vec<u8>,
}

thread_local! {
    /// Setting up a compressor costs more than compressing a small document.
    static COMPRESSOR: RefCell<Option<Compressor<'static>>> = RefCell::new(Compressor::new(LEVEL).ok());
}

impl Prepared {
    /// Compresses the files of `admitted` and of the artifacts that are part of it.
    #[must_use]
    pub fn new(mut admitted: Admitted) -> Self {
        let embedded = admitted.take_embedded().into_iter().map(Self::new).collect();
        let payloads = admitted.members().iter().map(|member| Payload::of(member.bytes())).collect();
        Self { admitted, payloads, embedded }
    }

    /// The artifact.
    #[must_use]
    pub fn admitted(&self) -> &Admitted {
        &self.admitted
    }
}

impl AsRef<Admitted> for Prepared {
    fn as_ref(&self) -> &Admitted {
        &self.admitted
    }
}

impl Payload {
    fn of(bytes: &[u8]) -> Self {
        let compressed = COMPRESSOR.with_borrow_mut(|compressor| compressor.as_mut()?.compress(bytes).ok());
        match compressed {
            Some(compressed) if compressed.len() < bytes.len() => Self { encoding: ZSTD, compressed },
            _ => Self { encoding: RAW, compressed: Vec::new() },
        }
    }
}

/// The original bytes of a payload, whose hash must be `blob` and whose length must be `size`.
pub(super) fn restore(
    encoding: i64,
    stored: Vec<u8>,
    size: usize,
    blob: BlobHash,
) -> Result<Vec<u8>, PayloadDefect> {
    let bytes = match encoding {
        RAW => stored,
        ZSTD => decompress(&stored, size)
            .map_err(|error| PayloadDefect::Compression { blob, message: error.to_string() })?,
        other => {
            let message = format!("unknown encoding {other}");
            return Err(PayloadDefect::Compression { blob, message });
        }
    };
    let actual = BlobHash(Digest::of(&bytes));
    if actual == blob { Ok(bytes) } else { Err(PayloadDefect::Hash { blob, actual }) }
}

fn decompress(stored: &[u8], size: usize) -> io::Result<Vec<u8>> {
    // The frame says how large its content is. Trusting a damaged `size` instead could ask for any amount of memory.
    let content = zstd::zstd_safe::get_frame_content_size(stored).ok().flatten();
    if content != Some(size as u64) {
        return Err(io::Error::other(format!("its size is not {size} bytes")));
    }
    Decompressor::new()?.decompress(stored, size)
}

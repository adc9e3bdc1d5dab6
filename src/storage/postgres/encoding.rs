//! The encoding of stored bytes, wherever they are.
//!
//! They are compressed with zstd in the threads that prepare artifacts, and stored plain if that does not make them
//! smaller: the network, the write-ahead log and every replica carry each byte again, and the server's own compression is
//! both slower and weaker.

use std::io::{self, Read as _};

use zstd::stream::read::Decoder;

use crate::digest::{BlobHash, Digest};
use crate::storage::PayloadDefect;
use crate::storage::compression::{LEVEL, LONG_TRANSCRIPT, compress_parts};

const PLAIN: i64 = 0;
const ZSTD: i64 = 1;

/// Encoded bytes of a member.
pub(super) struct EncodedMember {
    pub(super) encoding: i64,
    pub(super) bytes: Vec<u8>,
}

/// Encodes the bytes of a member, of a document that `grows` or not.
pub(super) fn encoded(bytes: &[u8], grows: bool) -> EncodedMember {
    let compressed = if grows && bytes.len() >= LONG_TRANSCRIPT {
        compress_parts(bytes.len() as u64, true, &mut |out| out.write_all(bytes))
    } else {
        zstd::bulk::compress(bytes, LEVEL)
    };
    match compressed {
        Ok(compressed) if compressed.len() < bytes.len() => {
            EncodedMember { encoding: ZSTD, bytes: compressed }
        }
        _ => EncodedMember { encoding: PLAIN, bytes: bytes.to_vec() },
    }
}

/// Decodes stored bytes, and hashes them.
pub(super) fn decoded(
    blob: BlobHash,
    size: u64,
    encoding: i64,
    stored: Vec<u8>,
) -> std::result::Result<Vec<u8>, PayloadDefect> {
    let compression = |message: String| PayloadDefect::Compression { blob, message };
    let bytes = match encoding {
        PLAIN => stored,
        ZSTD => decompressed(&stored, size).map_err(|error| compression(error.to_string()))?,
        other => return Err(compression(format!("the encoding {other} is unknown"))),
    };
    let actual = BlobHash(Digest::from_content(&bytes));
    if actual == blob { Ok(bytes) } else { Err(PayloadDefect::Hash { blob, actual }) }
}

/// Decompresses `stored`. Fails if the result does not have exactly `size` bytes; decompression stops after `size` + 1
/// bytes, and memory is allocated only as bytes are decompressed.
fn decompressed(stored: &[u8], size: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    Decoder::new(stored)?.take(size.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 == size {
        return Ok(bytes);
    }
    Err(io::Error::new(io::ErrorKind::InvalidData, "the size differs"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_come_back_and_are_hashed() {
        for bytes in [&b""[..], b"short", &[7; 5_000]] {
            let blob = BlobHash(Digest::from_content(bytes));
            let EncodedMember { encoding, bytes: stored } = encoded(bytes, false);
            assert!(stored.len() <= bytes.len());
            let size = bytes.len() as u64;
            assert_eq!(decoded(blob, size, encoding, stored.clone()).unwrap(), bytes);
            let other = BlobHash(Digest::from_content(b"other"));
            assert!(matches!(decoded(other, size, encoding, stored), Err(PayloadDefect::Hash { .. })));
        }
        let blob = BlobHash(Digest::from_content(&[7; 5_000]));
        let stored = encoded(&[7; 5_000], false).bytes;
        // The size limits what is decompressed.
        assert!(matches!(decoded(blob, 10, ZSTD, stored), Err(PayloadDefect::Compression { .. })));
        assert!(matches!(decoded(blob, 10, 9, Vec::new()), Err(PayloadDefect::Compression { .. })));
    }
}

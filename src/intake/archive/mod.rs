//! Zip and tar archives read as directories, entries in, bytes out, nothing unpacked to disk; and written.
//!
//! Archives are untrusted input. Entries are listed, never followed; only files with the requested names are read; the
//! number of entries, their total size and the decompression ratio are limited.

mod flat;
mod format;
mod read;

use std::io::{self, Cursor, Write};

use flate2::{Compression, GzBuilder};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, DateTime, ZipWriter};

use crate::artifact::MemberBytes;
use read::most_bytes;

pub use format::{ArchiveError, ArchiveFormat, decompressed_name, is_compressed, is_tar_name, unread};
pub use read::{ArchiveContents, ArchiveLimits, decompress, decompressed_head, read, read_files};

/// Readable by everyone, writable by the owner; independent of the machine that writes the archive.
const MODE: u32 = 0o644;

/// Writes an archive of `files` to `out`. The output is deterministic: entries are sorted by name, and all times,
/// owners and modes are the same. If the compression ratio is so high that the archive would be rejected as a
/// decompression bomb, it is written uncompressed.
///
/// # Errors
/// Returns an error if `out` cannot be written to.
pub fn write(format: ArchiveFormat, files: &[MemberBytes<'_>], out: &mut dyn Write) -> io::Result<()> {
    let mut files = files.to_vec();
    files.sort_unstable_by_key(|file| file.name);
    let size: u64 = files.iter().map(|file| file.bytes.len() as u64).sum();
    let mut packed = pack(format, &files, Compression::default())?;
    if format != ArchiveFormat::Tar && size > most_bytes(packed.len() as u64) {
        packed = pack(format, &files, Compression::none())?;
    }
    out.write_all(&packed)
}

fn pack(format: ArchiveFormat, files: &[MemberBytes<'_>], compression: Compression) -> io::Result<Vec<u8>> {
    match format {
        ArchiveFormat::Zip => zip(files, compression),
        ArchiveFormat::Tar => tar(files, Vec::new()),
        ArchiveFormat::TarGz => {
            // 255: unknown operating system.
            let packer = GzBuilder::new().mtime(0).operating_system(255);
            tar(files, packer.write(Vec::new(), compression))?.finish()
        }
        ArchiveFormat::TarZst => {
            if compression.level() == 0 {
                return tar(files, Vec::new()).map(|tar| stored_zstd(&tar));
            }
            let mut packer = zstd::Encoder::new(Vec::new(), zstd::DEFAULT_COMPRESSION_LEVEL)?;
            packer.include_checksum(true)?;
            tar(files, packer)?.finish()
        }
    }
}

/// Returns a zstd frame that stores `bytes` uncompressed (RFC 8878, sections 3.1.1.1 and 3.1.1.2): no compression level
/// does.
fn stored_zstd(bytes: &[u8]) -> Vec<u8> {
    const BLOCK_BYTES: usize = 1 << 17;
    /// No content size, no checksum, no dictionary; a window of one block.
    const FRAME: [u8; 6] = [0x28, 0xb5, 0x2f, 0xfd, 0, (17 - 10) << 3];
    let mut frame = FRAME.to_vec();
    let blocks = bytes.chunks(BLOCK_BYTES);
    let last = blocks.len().saturating_sub(1);
    for (index, block) in blocks.enumerate() {
        // The size fits in 21 bits; block type 0 means uncompressed.
        let header = usize::from(index == last) | block.len() << 3;
        let [low, middle, high, ..] = header.to_le_bytes();
        frame.extend_from_slice(&[low, middle, high]);
        frame.extend_from_slice(block);
    }
    frame
}

fn tar<W: Write>(files: &[MemberBytes<'_>], out: W) -> io::Result<W> {
    let mut archive = tar::Builder::new(out);
    for file in files {
        let mut header = tar::Header::new_ustar();
        header.set_size(file.bytes.len() as u64);
        header.set_mode(MODE);
        header.set_mtime(0);
        header.set_uid(0);
        header.set_gid(0);
        archive.append_data(&mut header, file.name, file.bytes)?;
    }
    archive.into_inner()
}

fn zip(files: &[MemberBytes<'_>], compression: Compression) -> io::Result<Vec<u8>> {
    let method = match compression.level() {
        0 => CompressionMethod::Stored,
        _ => CompressionMethod::Deflated,
    };
    let options = SimpleFileOptions::default()
        .compression_method(method)
        .last_modified_time(DateTime::DEFAULT)
        .unix_permissions(MODE);
    let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
    for file in files {
        archive.start_file(file.name, options)?;
        archive.write_all(file.bytes)?;
    }
    Ok(archive.finish()?.into_inner())
}

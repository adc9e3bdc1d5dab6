//! The container of a bundle: a tar file in a zstd frame, with one canonical form for writing and few accepted forms
//! for reading.

use std::cell::Cell;
use std::io::{self, Cursor, Read, Write};
use std::rc::Rc;

use tar::Header;
use zstd::stream::{read::Decoder, write::Encoder};

const BLOCK: usize = 512;
const MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
const LEVEL: i32 = 6;
/// 32 MiB: large enough to compress an artifact with those about a thousand before it.
const WINDOW_LOG: u32 = 25;
/// Maximum window that any `zstd` reads without options.
const MAX_WINDOW_LOG: u32 = 27;
/// Uncompressed size up to which the compression ratio is not limited.
const FREE_BYTES: u64 = 64 << 20;
/// Maximum compression ratio beyond that size.
const MAX_RATIO: u64 = 200;
/// Maximum bytes after the last entry: `tar` programs pad their last record.
const MAX_TAIL_BYTES: u64 = 1 << 20;

/// The magic number of a skippable zstd frame, before its size. Decompressors skip such frames.
const SKIPPABLE: [u8; 4] = [0x50, 0x2a, 0x4d, 0x18];
/// Padding is written for this many further bytes of content.
const PADDED_AHEAD: u64 = 64 << 20;
/// The number of bytes compressed between checks of the ratio.
const CHUNK: usize = 1 << 20;

/// A writer of entries. The same entries give the same bytes.
pub(super) struct Packer<W: Write>(tar::Builder<RatioLimitedEncoder<W>>);

impl<W: Write> Packer<W> {
    /// Starts a bundle of entries of these sizes.
    pub(super) fn new(out: W, sizes: impl Iterator<Item = u64>) -> io::Result<Self> {
        let total: u64 = sizes.map(|size| padded(size) + BLOCK as u64).sum::<u64>() + 2 * BLOCK as u64;
        Ok(Self(tar::Builder::new(RatioLimitedEncoder::new(out, total)?)))
    }

    pub(super) fn entry(&mut self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let mut header = Header::new_ustar();
        header.set_size(bytes.len() as u64);
        header.set_mode(0o644);
        header.set_mtime(0);
        header.set_uid(0);
        header.set_gid(0);
        self.0.append_data(&mut header, name, bytes)
    }

    pub(super) fn finish(self) -> io::Result<W> {
        self.0.into_inner()?.finish()
    }
}

/// Compresses to zstd frames that readers do not reject as a decompression bomb: beyond [`FREE_BYTES`], the
/// decompressed size is at no point more than [`MAX_RATIO`] times the compressed size. If the content compresses
/// better, the frame ends, and a skippable frame adds padding.
struct RatioLimitedEncoder<W: Write> {
    /// `None` only between two frames.
    encoder: Option<Encoder<'static, ContainerWriteCounter<W>>>,
    /// The number of bytes compressed so far.
    output_bytes: u64,
}

/// A writer that counts the bytes written through it.
struct ContainerWriteCounter<W> {
    out: W,
    written: u64,
}

impl<W: Write> Write for ContainerWriteCounter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.out.write(bytes)?;
        self.written += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

impl<W: Write> RatioLimitedEncoder<W> {
    fn new(out: W, total: u64) -> io::Result<Self> {
        let mut encoder = encoder(ContainerWriteCounter { out, written: 0 })?;
        if total <= FREE_BYTES {
            // Compressing a small bundle takes only as much memory as it needs. It has one frame.
            encoder.set_pledged_src_size(Some(total))?;
        }
        Ok(Self { encoder: Some(encoder), output_bytes: 0 })
    }

    fn finish(self) -> io::Result<W> {
        let encoder = self.encoder.ok_or(io::ErrorKind::BrokenPipe)?;
        Ok(encoder.finish()?.out)
    }

    /// Returns the encoder for `more` bytes, in a new frame after padding if they could exceed the ratio.
    fn encoder_for(&mut self, more: u64) -> io::Result<&mut Encoder<'static, ContainerWriteCounter<W>>> {
        let end = self.output_bytes + more;
        let written = self.encoder.as_ref().map_or(0, |encoder| encoder.get_ref().written);
        if end > FREE_BYTES
            && end > written.saturating_mul(MAX_RATIO)
            && let Some(encoder) = self.encoder.take()
        {
            let mut sized = encoder.finish()?;
            let needed = (end + PADDED_AHEAD).div_ceil(MAX_RATIO);
            pad(&mut sized, needed)?;
            self.encoder = Some(self::encoder(sized)?);
        }
        self.encoder.as_mut().ok_or_else(|| io::ErrorKind::BrokenPipe.into())
    }
}

impl<W: Write> Write for RatioLimitedEncoder<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let chunk = bytes.get(..CHUNK).unwrap_or(bytes);
        self.encoder_for(chunk.len() as u64)?.write_all(chunk)?;
        self.output_bytes += chunk.len() as u64;
        Ok(chunk.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.encoder.as_mut().map_or(Ok(()), Write::flush)
    }
}

fn encoder<W: Write>(out: W) -> io::Result<Encoder<'static, W>> {
    let mut encoder = Encoder::new(out, LEVEL)?;
    encoder.include_checksum(true)?;
    encoder.long_distance_matching(true)?;
    encoder.window_log(WINDOW_LOG)?;
    Ok(encoder)
}

/// Writes a skippable frame, so that `needed` bytes are written in total.
fn pad<W: Write>(sized: &mut ContainerWriteCounter<W>, needed: u64) -> io::Result<()> {
    let head = SKIPPABLE.len() as u64 + 4;
    let missing = needed.saturating_sub(sized.written + head);
    let size = u32::try_from(missing).map_err(io::Error::other)?;
    sized.write_all(&SKIPPABLE)?;
    sized.write_all(&size.to_le_bytes())?;
    io::copy(&mut io::repeat(0).take(missing), sized).map(drop)
}

fn padded(size: u64) -> u64 {
    size.next_multiple_of(BLOCK as u64)
}

/// The reason that a container cannot be read.
#[derive(Debug)]
pub(super) enum ContainerError {
    /// An I/O error.
    Io(io::Error),
    /// The container is malformed.
    Broken(String),
    /// It has an entry that is not part of a bundle.
    Entry(String),
    /// Its compression ratio exceeds the limit, as that of a decompression bomb does.
    TooDense,
}

impl From<io::Error> for ContainerError {
    fn from(error: io::Error) -> Self {
        let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<CompressionRatioExceeded>());
        if inner.is_some() {
            Self::TooDense
        } else if error.raw_os_error().is_some() {
            Self::Io(error)
        } else if error.kind() == io::ErrorKind::UnexpectedEof {
            Self::Broken("unexpected end of data".to_owned())
        } else {
            Self::Broken(error.to_string())
        }
    }
}

#[derive(Debug, thiserror::Error)]
#[error("the compressed data expands to more than {MAX_RATIO} times its size")]
struct CompressionRatioExceeded;

/// Returns the message for [`ContainerError::TooDense`].
pub(super) fn too_dense() -> String {
    CompressionRatioExceeded.to_string()
}

/// The header of an entry.
pub(super) struct ContainerEntryHeader {
    pub(super) name: String,
    pub(super) size: u64,
}

/// A reader of entries.
pub(super) struct Unpacker<'r> {
    input: Box<dyn Read + 'r>,
}

impl<'r> Unpacker<'r> {
    pub(super) fn new(mut input: impl Read + 'r) -> Result<Self, ContainerError> {
        let mut magic = Vec::new();
        input.by_ref().take(MAGIC.len() as u64).read_to_end(&mut magic)?;
        let is_compressed = magic == MAGIC;
        let input = Cursor::new(magic).chain(input);
        if !is_compressed {
            return Ok(Self { input: Box::new(io::BufReader::new(input)) });
        }
        let input_bytes = Rc::new(Cell::new(0));
        let mut decoder = Decoder::new(ContainerReadCounter { input, input_bytes: Rc::clone(&input_bytes) })?;
        decoder.window_log_max(MAX_WINDOW_LOG)?;
        let bounded = RatioLimitedReader { input: decoder, input_bytes, output_bytes: 0 };
        Ok(Self { input: Box::new(io::BufReader::with_capacity(1 << 16, bounded)) })
    }

    /// Returns the next entry; `None` at the end, which is verified.
    pub(super) fn next(&mut self) -> Result<Option<ContainerEntryHeader>, ContainerError> {
        let mut block = [0; BLOCK];
        self.input.read_exact(&mut block)?;
        if block.iter().all(|byte| *byte == 0) {
            return self.end().map(|()| None);
        }
        let header = Header::from_byte_slice(&block);
        let mut sealed = header.clone();
        sealed.set_cksum();
        if !matches!((header.cksum(), sealed.cksum()), (Ok(recorded), Ok(actual)) if recorded == actual) {
            return Err(ContainerError::Broken(
                "a header has the wrong checksum, or this is not a tar file".to_owned(),
            ));
        }
        let name = String::from_utf8_lossy(&header.path_bytes()).into_owned();
        let sort = header.entry_type();
        if !sort.is_file() {
            let sort = char::from(sort.as_byte()).escape_default().to_string();
            return Err(ContainerError::Entry(format!(
                "{name:?} is not a regular file, it has the type {sort:?}"
            )));
        }
        match header.entry_size() {
            Ok(size) => Ok(Some(ContainerEntryHeader { name, size })),
            Err(_) => Err(ContainerError::Broken(format!("the size of {name:?} is not a number"))),
        }
    }

    /// Copies the contents of the current entry to `out`.
    pub(super) fn copy(
        &mut self,
        head: &ContainerEntryHeader,
        out: &mut dyn Write,
    ) -> Result<(), ContainerError> {
        let copied = io::copy(&mut self.input.by_ref().take(head.size), out)?;
        if copied < head.size {
            return Err(ContainerError::Broken("unexpected end of data".to_owned()));
        }
        let padding = padded(head.size) - head.size;
        let skipped = io::copy(&mut self.input.by_ref().take(padding), &mut io::sink())?;
        if skipped < padding {
            return Err(ContainerError::Broken("unexpected end of data".to_owned()));
        }
        Ok(())
    }

    /// Returns an error unless only a limited number of zeros follows: programs that read on would find other contents.
    fn end(&mut self) -> Result<(), ContainerError> {
        let mut second = [0; BLOCK];
        self.input.read_exact(&mut second)?;
        let mut tail = Vec::new();
        self.input.by_ref().take(MAX_TAIL_BYTES + 1).read_to_end(&mut tail)?;
        if tail.len() as u64 > MAX_TAIL_BYTES || second.iter().chain(&tail).any(|byte| *byte != 0) {
            return Err(ContainerError::Broken("there is data after its end".to_owned()));
        }
        Ok(())
    }
}

/// A reader that counts the bytes read from it.
struct ContainerReadCounter<R> {
    input: R,
    input_bytes: Rc<Cell<u64>>,
}

impl<R: Read> Read for ContainerReadCounter<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.input.read(buffer)?;
        self.input_bytes.set(self.input_bytes.get() + read as u64);
        Ok(read)
    }
}

/// A reader that limits its output by the compression ratio.
struct RatioLimitedReader<R> {
    input: R,
    input_bytes: Rc<Cell<u64>>,
    output_bytes: u64,
}

impl<R: Read> Read for RatioLimitedReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.input.read(buffer)?;
        self.output_bytes += read as u64;
        if self.output_bytes > FREE_BYTES.max(self.input_bytes.get().saturating_mul(MAX_RATIO)) {
            return Err(io::Error::other(CompressionRatioExceeded));
        }
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_very_dense_is_padded_so_that_it_can_be_read() {
        let zeros = vec![0; 75 << 20];
        let mut writer = Packer::new(Vec::new(), [zeros.len() as u64; 3].into_iter()).unwrap();
        for name in ["a", "b", "c"] {
            writer.entry(name, &zeros).unwrap();
        }
        let packed = writer.finish().unwrap();
        assert!(packed.len() < 3 << 20, "{}", packed.len());
        let mut unpacker = Unpacker::new(packed.as_slice()).unwrap();
        for name in ["a", "b", "c"] {
            let head = unpacker.next().unwrap().unwrap();
            assert_eq!((&*head.name, head.size), (name, zeros.len() as u64));
            unpacker.copy(&head, &mut io::sink()).unwrap();
        }
        assert!(unpacker.next().unwrap().is_none());
    }

    #[test]
    fn what_is_small_has_one_frame_of_its_size() {
        let mut writer = Packer::new(Vec::new(), [5].into_iter()).unwrap();
        writer.entry("a", b"bytes").unwrap();
        let packed = writer.finish().unwrap();
        let size = zstd::zstd_safe::get_frame_content_size(&packed).unwrap();
        assert_eq!(size, Some(2 * 512 + 2 * 512));
        assert!(!packed.windows(4).any(|window| window == SKIPPABLE));
    }
}

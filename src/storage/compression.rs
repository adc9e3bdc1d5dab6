//! Compression of long documents, as all engines do it.

use std::io::{self, Write};

use zstd::stream::write::Encoder;

/// The compression level. It costs a few milliseconds per megabyte; higher ones gain little on documents.
pub(super) const LEVEL: i32 = 3;

/// Size in bytes above which what a document repeats is looked for at any distance, if it grows: transcripts repeat their
/// history, and images in it. That takes as much memory as the document.
pub(super) const LONG_TRANSCRIPT: usize = 4 << 20;

/// The logarithms of the window sizes of frames of long texts: at most 128 MiB, which every decoder accepts.
const MAX_WINDOW_LOG: u32 = 27;
const MIN_WINDOW_LOG: u32 = 10;

/// Compresses a text of `size` bytes, which `write` supplies in parts, into one frame. The text is never in memory as a
/// whole unless it is searched for repetitions `at_any_distance`, and the frame grows as it is written.
///
/// # Errors
/// Returns the error of `write`, or an error if the parts do not add up to `size` bytes.
pub(super) fn compress_parts(
    size: u64,
    at_any_distance: bool,
    write: &mut dyn FnMut(&mut dyn Write) -> io::Result<()>,
) -> io::Result<Vec<u8>> {
    let mut encoder = Encoder::new(Vec::new(), LEVEL)?;
    encoder.set_pledged_src_size(Some(size))?;
    encoder.include_contentsize(true)?;
    if at_any_distance {
        encoder.long_distance_matching(true)?;
        encoder.window_log((size.max(1).ilog2() + 1).clamp(MIN_WINDOW_LOG, MAX_WINDOW_LOG))?;
    }
    write(&mut encoder)?;
    encoder.finish()
}

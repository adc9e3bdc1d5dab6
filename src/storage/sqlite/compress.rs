//! Compression, optionally with a dictionary or against a similar text, and the content of a payload before it.

use std::borrow::Cow;
use std::cell::RefCell;
use std::io;

use zstd::dict::{DecoderDictionary, EncoderDictionary};
use zstd::zstd_safe::{self, CCtx, DCtx};

use super::digest_stripping::{self, StrippedText};
use super::error::PayloadDefect;
use crate::digest::{BlobHash, Digest};
use crate::storage::compression::LEVEL;

/// The level for deltas, which are short and worth a longer search.
const DIFFERENCE_LEVEL: i32 = 3;

thread_local! {
    // Setting up a context costs more than compressing a small document.
    static COMPRESS: RefCell<Option<CCtx<'static>>> = RefCell::new(CCtx::try_create());
    static DECOMPRESS: RefCell<Option<DCtx<'static>>> = RefCell::new(DCtx::try_create());
}

/// A dictionary of common document content, prepared for compression.
pub(super) struct Dictionary {
    digest: Digest,
    bytes: Vec<u8>,
    encoder: EncoderDictionary<'static>,
    /// The last journal entry when collecting its training documents began.
    begun: i64,
    /// The digests of the artifacts that it was trained on before they were stored, and that may never be stored; empty
    /// for a dictionary that was trained on stored artifacts.
    sources: Vec<Digest>,
}

/// A dictionary prepared for decompression only, which is cheaper to set up.
pub(super) type DecompressionDictionary = DecoderDictionary<'static>;

impl Dictionary {
    /// Creates a dictionary from `bytes`, or returns `None` if they are not one.
    pub(super) fn new(bytes: Vec<u8>, begun: i64) -> Option<Self> {
        let encoder = EncoderDictionary::try_copy(&bytes, LEVEL).ok()?;
        Some(Self { digest: Digest::from_content(&bytes), bytes, encoder, begun, sources: Vec::new() })
    }

    /// Trains a dictionary on `samples`.
    pub(super) fn train(samples: &[Vec<u8>], size: usize, begun: i64) -> Option<Self> {
        // `from_samples` would copy byte by byte.
        let sizes: Vec<usize> = samples.iter().map(Vec::len).collect();
        Self::new(zstd::dict::from_continuous(&samples.concat(), &sizes, size).ok()?, begun)
    }

    /// Sets the digests of the artifacts that it was trained on before they were stored.
    pub(super) fn made_of(self, sources: Vec<Digest>) -> Self {
        Self { sources, ..self }
    }

    /// Returns the digests of the artifacts that it was trained on before they were stored.
    pub(super) fn sources(&self) -> &[Digest] {
        &self.sources
    }

    /// Returns the SHA-256 of the dictionary's bytes.
    pub(super) fn digest(&self) -> Digest {
        self.digest
    }

    /// Returns the stored form of the dictionary.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns the number of the journal entry after which removed content may still be in the dictionary.
    pub(super) fn begun(&self) -> i64 {
        self.begun
    }
}

/// Prepares a stored dictionary for decompression.
pub(super) fn reader(bytes: &[u8]) -> io::Result<DecompressionDictionary> {
    DecoderDictionary::try_copy(bytes)
}

/// Compresses `text` into one frame, or returns `None` if memory cannot be allocated.
pub(super) fn compress(text: &[u8], dictionary: Option<&Dictionary>) -> Option<Vec<u8>> {
    compress_by(text, |context, frame| match dictionary {
        Some(dictionary) => context.compress_using_cdict(frame, text, dictionary.encoder.as_cdict()),
        None => context.compress(frame, text, LEVEL),
    })
}

/// Compresses `text` into one frame that contains only what differs from `base`.
pub(super) fn difference(text: &[u8], base: &[u8]) -> Option<Vec<u8>> {
    compress_by(text, |context, frame| context.compress_using_dict(frame, text, base, DIFFERENCE_LEVEL))
}

/// A delta base for many texts, prepared once.
pub(super) struct DeltaCodec {
    encoder: EncoderDictionary<'static>,
    decoder: DecompressionDictionary,
}

impl DeltaCodec {
    /// Prepares `bytes` as a base, or returns `None` if memory cannot be allocated.
    pub(super) fn new(bytes: &[u8]) -> Option<Self> {
        let encoder = EncoderDictionary::try_copy(bytes, DIFFERENCE_LEVEL).ok()?;
        Some(Self { encoder, decoder: reader(bytes).ok()? })
    }

    /// Compresses `text` against the base, as [`difference`] does, and returns the frame if it can be decompressed
    /// again.
    pub(super) fn difference(&self, text: &[u8]) -> Option<Vec<u8>> {
        let compress = |context: &mut CCtx<'static>, frame: &mut Vec<u8>| {
            context.compress_using_cdict(frame, text, self.encoder.as_cdict())
        };
        let frame = compress_by(text, compress)?;
        let again = decompress(&frame, FrameDependency::Dictionary(&self.decoder), text.len()).ok()?;
        (again == text).then_some(frame)
    }
}

fn compress_by(
    text: &[u8],
    work: impl FnOnce(&mut CCtx<'static>, &mut Vec<u8>) -> zstd_safe::SafeResult,
) -> Option<Vec<u8>> {
    COMPRESS.with_borrow_mut(|context| {
        let mut frame = Vec::with_capacity(zstd_safe::compress_bound(text.len()));
        work(context.as_mut()?, &mut frame).ok()?;
        frame.shrink_to_fit();
        Some(frame)
    })
}

/// The dictionary or base that is required to decompress a frame.
#[derive(Clone, Copy)]
pub(super) enum FrameDependency<'b> {
    Nothing,
    Dictionary(&'b DecompressionDictionary),
    /// The base of a delta.
    Base(&'b [u8]),
}

/// Decompresses a frame. Its header states the length of the text, which must not exceed `limit`: trusting any other
/// stored size could allocate any amount of memory.
pub(super) fn decompress(frame: &[u8], dependency: FrameDependency<'_>, limit: usize) -> io::Result<Vec<u8>> {
    let size = zstd_safe::get_frame_content_size(frame).ok().flatten();
    let size = size.and_then(|size| usize::try_from(size).ok()).filter(|size| *size <= limit);
    let Some(size) = size else {
        return Err(io::Error::other(format!("its size is not within {limit} bytes")));
    };
    DECOMPRESS.with_borrow_mut(|context| {
        let context = context.as_mut().ok_or(io::ErrorKind::OutOfMemory)?;
        let mut text = Vec::new();
        text.try_reserve_exact(size).map_err(|_| io::ErrorKind::OutOfMemory)?;
        let outcome = match dependency {
            FrameDependency::Nothing => context.decompress(&mut text, frame),
            FrameDependency::Dictionary(dictionary) => {
                context.decompress_using_ddict(&mut text, frame, dictionary.as_ddict())
            }
            FrameDependency::Base(base) => context.decompress_using_dict(&mut text, frame, base),
        };
        match outcome {
            Ok(length) if length == size => Ok(text),
            Ok(length) => Err(io::Error::other(format!("it has {length} bytes of {size}"))),
            Err(code) => Err(io::Error::other(zstd_safe::get_error_name(code))),
        }
    })
}

/// The content of a payload: text, and the digests that were stripped from it.
#[derive(Default, PartialEq, Eq)]
pub(super) struct PayloadContent {
    pub(super) text: Vec<u8>,
    pub(super) digests: Vec<u8>,
}

impl PayloadContent {
    /// Creates the content of bytes that are not stored yet. Returns `None` if they cannot be stripped and are not
    /// UTF-8.
    pub(super) fn parse(bytes: &[u8]) -> Option<Self> {
        match digest_stripping::strip(bytes) {
            Some(stripped) => Some(stripped.into()),
            None if std::str::from_utf8(bytes).is_ok() => {
                Some(Self { text: bytes.to_vec(), digests: Vec::new() })
            }
            None => None,
        }
    }

    /// Returns the bytes of `blob`, up to `limit`, after checking their hash.
    pub(super) fn bytes(
        &self,
        blob: BlobHash,
        limit: usize,
        is_cut: bool,
    ) -> Result<Cow<'_, [u8]>, PayloadDefect> {
        let bytes = if is_cut {
            let digests = as_digests(&self.digests);
            let bytes = digests.and_then(|digests| digest_stripping::restore(&self.text, &digests, limit));
            Cow::Owned(bytes.ok_or_else(|| defect(blob, "its digests do not match its text"))?)
        } else {
            Cow::Borrowed(self.text.as_slice())
        };
        let actual = BlobHash(Digest::from_content(&bytes));
        if actual == blob { Ok(bytes) } else { Err(PayloadDefect::Hash { blob, actual }) }
    }

    /// Returns the stripped digests.
    pub(super) fn digests(&self) -> impl Iterator<Item = Digest> {
        let (digests, _) = self.digests.as_chunks::<32>();
        digests.iter().map(|bytes| Digest::from_bytes(*bytes))
    }

    /// Returns the deltas of `digests` and `text` against this content, if they can be decompressed again.
    pub(super) fn delta(&self, digests: &[u8], text: &[u8]) -> Option<(Vec<u8>, Vec<u8>)> {
        let make = |ours: &[u8], theirs: &[u8]| {
            let frame = difference(ours, theirs)?;
            let again = decompress(&frame, FrameDependency::Base(theirs), ours.len()).ok()?;
            (again == ours).then_some(frame)
        };
        Some((make(digests, &self.digests)?, make(text, &self.text)?))
    }
}

impl From<StrippedText> for PayloadContent {
    fn from(StrippedText { text, digests }: StrippedText) -> Self {
        Self { text, digests: as_bytes(&digests) }
    }
}

/// Concatenates digests.
pub(super) fn as_bytes(digests: &[Digest]) -> Vec<u8> {
    digests.iter().flat_map(Digest::as_bytes).copied().collect()
}

/// Splits concatenated digests; returns `None` if bytes are left over.
pub(super) fn as_digests(bytes: &[u8]) -> Option<Vec<Digest>> {
    let (digests, rest) = bytes.as_chunks::<32>();
    rest.is_empty().then(|| digests.iter().map(|bytes| Digest::from_bytes(*bytes)).collect())
}

/// Returns the error that a payload cannot be decoded.
pub(super) fn defect(blob: BlobHash, message: &str) -> PayloadDefect {
    PayloadDefect::Compression { blob, message: message.to_owned() }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn texts_come_back(text: Vec<u8>, base: Vec<u8>) {
            let frame = compress(&text, None).unwrap();
            prop_assert_eq!(&decompress(&frame, FrameDependency::Nothing, text.len()).unwrap(), &text);
            let frames = [difference(&text, &base), DeltaCodec::new(&base).and_then(|base| base.difference(&text))];
            for frame in frames.into_iter().flatten() {
                prop_assert_eq!(&decompress(&frame, FrameDependency::Base(&base), text.len()).unwrap(), &text);
            }
        }

        #[test]
        fn whatever_is_no_frame_is_refused(frame: Vec<u8>, base: Vec<u8>) {
            prop_assert!(decompress(&frame, FrameDependency::Base(&base), 1 << 20).is_err());
        }
    }

    #[test]
    fn a_dictionary_helps_with_what_it_was_trained_on() {
        let text = |n: u64| {
            format!("{{\"step\": {n}, \"tool\": \"search\", \"result\": \"found {} files\"}}", n * 7919)
        };
        let samples: Vec<Vec<u8>> = (0..500).map(|n| text(n).into_bytes()).collect();
        let dictionary = Dictionary::train(&samples, 4096, 0).unwrap();
        let text = text(12_345);
        let frame = compress(text.as_bytes(), Some(&dictionary)).unwrap();
        assert!(frame.len() * 2 < compress(text.as_bytes(), None).unwrap().len());
        let reader = reader(dictionary.bytes()).unwrap();
        assert_eq!(decompress(&frame, FrameDependency::Dictionary(&reader), 1000).unwrap(), text.as_bytes());
        assert!(decompress(&frame, FrameDependency::Dictionary(&reader), text.len() - 1).is_err());
    }

    #[test]
    fn a_difference_is_short() {
        let base: Vec<u8> =
            (0..20_000_u32).flat_map(|n| n.wrapping_mul(2_654_435_761).to_le_bytes()).collect();
        let mut text = base.clone();
        text[40_000] ^= 1;
        let frame = difference(&text, &base).unwrap();
        assert!(frame.len() < 60, "{}", frame.len());
    }
}

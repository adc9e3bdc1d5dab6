//! Decodes compressed bodies, event streams of AWS, and the events of streams while they arrive.

use std::borrow::Cow;
use std::io::{self, Write};

use axum::http::HeaderMap;
use axum::http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use brotli_decompressor::DecompressorWriter;
use flate2::write::MultiGzDecoder;
use flate2::{Decompress, FlushDecompress, Status};

use super::connection::elements;
use crate::calls::aws_events::{self, AwsEventReader};

/// Maximum number of codings of a body.
const MAX_CODINGS: usize = 3;

/// The number of bytes that Brotli decodes at a time.
const PART: usize = 4_096;

/// Decodes a body that has content codings, such as `gzip`, or is an event stream of AWS.
#[derive(Default)]
pub(super) struct BodyDecoder {
    /// The codings, the one that was applied last first.
    codings: Vec<(String, Box<dyn Coding>)>,
    /// Whether there was no data yet.
    is_empty: bool,
}

/// The reason that a body cannot be decoded.
#[derive(Debug, PartialEq, thiserror::Error)]
pub(super) enum DecodingFailure {
    /// It has a coding that is not known, or is too large.
    #[error("{0}")]
    Unsupported(String),
    /// Its data ends early, or is not that of the coding.
    #[error("has {coding} data that is damaged or incomplete: {reason}")]
    Damaged {
        /// The coding.
        coding: String,
        /// What is wrong, for people.
        reason: String,
    },
}

impl BodyDecoder {
    /// Returns the decoder for a body with these headers, which decodes at most `limit` bytes; one that changes nothing if it
    /// is not compressed, and no event stream of AWS.
    pub(super) fn new(headers: &HeaderMap, limit: usize) -> Result<Self, DecodingFailure> {
        let names =
            elements(headers, &CONTENT_ENCODING).map(|name| String::from_utf8_lossy(name).to_lowercase());
        let names: Vec<String> = names.filter(|name| name != "identity").collect();
        if names.len() > MAX_CODINGS {
            let reason = format!("has more than {MAX_CODINGS} content codings");
            return Err(DecodingFailure::Unsupported(reason));
        }
        let decoder = |name: String| match coding(&name, limit) {
            Some(decoder) => Ok((name, decoder)),
            None => {
                Err(DecodingFailure::Unsupported(format!("has a content coding that is not known: {name}")))
            }
        };
        let mut codings = names.into_iter().rev().map(decoder).collect::<Result<Vec<_>, _>>()?;
        let content_type = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
        if content_type.is_some_and(aws_events::is_type) {
            codings.push(("event stream".to_owned(), Box::new(AwsEventReader::default())));
        }
        Ok(Self { codings, is_empty: true })
    }

    /// Returns whether the body is recorded as it arrives.
    pub(super) fn is_identity(&self) -> bool {
        self.codings.is_empty()
    }

    /// Decodes the next part of the body.
    pub(super) fn decode(&mut self, data: &[u8]) -> Result<Vec<u8>, DecodingFailure> {
        self.is_empty &= data.is_empty();
        self.codings.iter_mut().try_fold(data.to_vec(), |data, (name, coding)| {
            coding.decode(&data).map_err(|error| failure(name, &error))
        })
    }

    /// Returns what is left at the end of the body. An empty body is complete, whatever its codings.
    pub(super) fn finish(&mut self) -> Result<Vec<u8>, DecodingFailure> {
        let mut left = Vec::new();
        if self.is_empty {
            return Ok(left);
        }
        for (name, coding) in &mut self.codings {
            let decoded = coding.decode(&left).and_then(|decoded| Ok([decoded, coding.finish()?].concat()));
            left = decoded.map_err(|error| failure(name, &error))?;
        }
        Ok(left)
    }
}

/// Returns a body with these headers without its content codings.
pub(super) fn decoded<'b>(
    headers: &HeaderMap,
    body: &'b [u8],
    limit: usize,
) -> Result<Cow<'b, [u8]>, DecodingFailure> {
    let mut decoder = BodyDecoder::new(headers, limit)?;
    if decoder.is_identity() {
        return Ok(Cow::Borrowed(body));
    }
    Ok(Cow::Owned([decoder.decode(body)?, decoder.finish()?].concat()))
}

fn failure(name: &str, error: &io::Error) -> DecodingFailure {
    match error.kind() {
        io::ErrorKind::FileTooLarge | io::ErrorKind::Unsupported => {
            DecodingFailure::Unsupported(error.to_string())
        }
        _ => DecodingFailure::Damaged { coding: name.to_owned(), reason: error.to_string() },
    }
}

/// Decoded bytes, up to a limit.
struct BoundedBuffer {
    bytes: Vec<u8>,
    left: usize,
    limit: usize,
}

impl Write for BoundedBuffer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.left = self.left.checked_sub(bytes.len()).ok_or_else(|| {
            let reason = format!("has more than {} bytes after it is decompressed", self.limit);
            io::Error::new(io::ErrorKind::FileTooLarge, reason)
        })?;
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A content coding.
trait Coding: Send {
    /// Decodes a part of the body.
    fn decode(&mut self, data: &[u8]) -> io::Result<Vec<u8>>;

    /// Returns what is left, and an error if the body is not complete.
    fn finish(&mut self) -> io::Result<Vec<u8>>;
}

/// Implements a coding with a writer that decodes into a buffer, and the function that ends it.
macro_rules! coding {
    ($writer:ty, $finish:expr) => {
        impl Coding for $writer {
            fn decode(&mut self, data: &[u8]) -> io::Result<Vec<u8>> {
                self.write_all(data)?;
                self.flush()?;
                Ok(std::mem::take(&mut self.get_mut().bytes))
            }

            fn finish(&mut self) -> io::Result<Vec<u8>> {
                let finish: fn(&mut Self) -> io::Result<()> = $finish;
                finish(self)?;
                Ok(std::mem::take(&mut self.get_mut().bytes))
            }
        }
    };
}

coding!(MultiGzDecoder<BoundedBuffer>, MultiGzDecoder::try_finish);
coding!(DecompressorWriter<BoundedBuffer>, DecompressorWriter::close);
coding!(zstd::stream::write::Decoder<'static, BoundedBuffer>, zstd::stream::write::Decoder::do_finish);

/// Decodes `deflate`: the writer of the crate does not say whether the data has ended.
struct Zlib {
    decoder: Decompress,
    buffer: BoundedBuffer,
    has_ended: bool,
}

impl Coding for Zlib {
    fn decode(&mut self, data: &[u8]) -> io::Result<Vec<u8>> {
        let mut rest = data;
        let mut part = [0; PART];
        while !self.has_ended {
            let (read, written) = (self.decoder.total_in(), self.decoder.total_out());
            let status = self.decoder.decompress(rest, &mut part, FlushDecompress::None)?;
            let read = usize::try_from(self.decoder.total_in() - read).unwrap_or(usize::MAX);
            let written = usize::try_from(self.decoder.total_out() - written).unwrap_or(usize::MAX);
            self.buffer.write_all(part.get(..written).unwrap_or_default())?;
            rest = rest.get(read..).unwrap_or_default();
            self.has_ended = status == Status::StreamEnd;
            if read == 0 && written == 0 {
                break;
            }
        }
        Ok(std::mem::take(&mut self.buffer.bytes))
    }

    fn finish(&mut self) -> io::Result<Vec<u8>> {
        if self.has_ended {
            return Ok(Vec::new());
        }
        Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the data has no end"))
    }
}

/// The text is that which is recorded. It is little longer than the messages.
impl Coding for AwsEventReader {
    fn decode(&mut self, data: &[u8]) -> io::Result<Vec<u8>> {
        Ok(self.read(data).into_bytes())
    }

    fn finish(&mut self) -> io::Result<Vec<u8>> {
        AwsEventReader::finish(self).map(|()| Vec::new())
    }
}

fn coding(name: &str, limit: usize) -> Option<Box<dyn Coding>> {
    let buffer = BoundedBuffer { bytes: Vec::new(), left: limit, limit };
    Some(match name {
        "gzip" | "x-gzip" => Box::new(MultiGzDecoder::new(buffer)),
        "deflate" => Box::new(Zlib { decoder: Decompress::new(true), buffer, has_ended: false }),
        "br" => Box::new(DecompressorWriter::new(buffer, PART)),
        "zstd" => Box::new(zstd::stream::write::Decoder::new(buffer).ok()?),
        _ => return None,
    })
}

/// Removes and returns the first event of a stream that is complete.
pub(super) fn take_event(buffer: &mut Vec<u8>) -> Option<Vec<u8>> {
    let ends = [&b"\n\n"[..], b"\r\n\r\n", b"\r\r"].into_iter();
    let found = ends.filter_map(|end| Some((memchr::memmem::find(buffer, end)?, end.len()))).min();
    let (at, length) = found?;
    let rest = buffer.split_off(at + length);
    Some(std::mem::replace(buffer, rest))
}

/// Returns the data of an event.
pub(super) fn data_of(event: &[u8]) -> Vec<u8> {
    let lines = event.split(|byte| matches!(byte, b'\n' | b'\r'));
    let data = lines.filter_map(|line| line.strip_prefix(b"data:"));
    data.flat_map(|data| data.strip_prefix(b" ").unwrap_or(data)).copied().collect()
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn headers(encoding: &str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_ENCODING, HeaderValue::from_str(encoding).unwrap());
        headers
    }

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    fn zlib(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::best());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    /// The text `abc` in all codings.
    fn coded() -> Vec<(&'static str, Vec<u8>)> {
        let zstd = zstd::encode_all(&b"abc"[..], 1).unwrap();
        vec![
            ("identity", b"abc".to_vec()),
            ("gzip", gzip(b"abc")),
            ("X-GZIP", [gzip(b"a"), gzip(b"bc")].concat()),
            ("deflate", zlib(b"abc")),
            ("br", b"\x0b\x01\x80abc\x03".to_vec()),
            ("zstd, identity, gzip", gzip(&zstd)),
            ("gzip, zstd", zstd::encode_all(&*gzip(b"abc"), 1).unwrap()),
            ("zstd", zstd),
        ]
    }

    #[test]
    fn bodies_are_decoded_in_parts_of_any_size() {
        for (encoding, body) in coded() {
            assert_eq!(*decoded(&headers(encoding), &body, 100).unwrap(), *b"abc", "{encoding}");
            let mut decoder = BodyDecoder::new(&headers(encoding), 100).unwrap();
            let mut parts: Vec<u8> = body.chunks(1).flat_map(|byte| decoder.decode(byte).unwrap()).collect();
            parts.append(&mut decoder.finish().unwrap());
            assert_eq!(parts, b"abc", "{encoding}");
        }
    }

    #[test]
    fn bodies_without_their_end_are_incomplete() {
        for (encoding, body) in coded().into_iter().filter(|(encoding, _)| *encoding != "identity") {
            // A complete member of gzip is a body.
            let complete = if encoding == "X-GZIP" { gzip(b"a").len() } else { 0 };
            for length in (1..body.len()).filter(|length| *length != complete) {
                let part = body.get(..length).unwrap();
                let failure = decoded(&headers(encoding), part, 100);
                assert!(
                    matches!(failure, Err(DecodingFailure::Damaged { .. })),
                    "{encoding} {length}: {failure:?}"
                );
            }
            assert_eq!(*decoded(&headers(encoding), b"", 100).unwrap(), *b"", "{encoding}");
        }
    }

    #[test]
    fn what_is_too_large_or_damaged_or_not_known_is_an_error() {
        let failed = |encoding, body: &[u8]| decoded(&headers(encoding), body, 100).unwrap_err().to_string();
        for encoding in ["gzip", "deflate", "zstd"] {
            let body = match encoding {
                "gzip" => gzip(&[0; 10_000]),
                "deflate" => zlib(&[0; 10_000]),
                _ => zstd::encode_all(&[0; 10_000][..], 1).unwrap(),
            };
            assert_eq!(failed(encoding, &body), "has more than 100 bytes after it is decompressed");
        }
        assert_eq!(
            failed("gzip, gzip", &gzip(&gzip(&[0; 10_000]))),
            "has more than 100 bytes after it is decompressed"
        );
        assert!(failed("zstd", b"abcd").starts_with("has zstd data that is damaged"));
        assert_eq!(failed("lzma", b""), "has a content coding that is not known: lzma");
        assert_eq!(failed("br,br,br,br", b""), "has more than 3 content codings");
    }

    #[test]
    fn events_are_taken_when_they_are_complete() {
        let mut buffer = b"event: message\ndata: {\"a\":\ndata: 1}\n\ndata:{}\r\n\r\ndata: {".to_vec();
        let mut taken = Vec::new();
        while let Some(event) = take_event(&mut buffer) {
            taken.push(String::from_utf8(data_of(&event)).unwrap());
        }
        assert_eq!(taken, ["{\"a\":1}", "{}"]);
        assert_eq!(buffer, b"data: {");
    }
}

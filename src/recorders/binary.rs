//! Bytes in texts, and compressed bytes.

use std::io::Read;

use base64::Engine;
use base64::alphabet::STANDARD;
use base64::engine::{GeneralPurpose, GeneralPurposeConfig};
use flate2::read::{DeflateDecoder, MultiGzDecoder, ZlibDecoder};

use super::reading::{Fault, RecorderResult, SYNTAX};
use crate::json::reader::Limit;

/// The first bytes of compressed files.
pub(super) const GZIP: &[u8] = b"\x1f\x8b";
pub(super) const ZSTD: &[u8] = b"\x28\xb5\x2f\xfd";

/// The number of bytes that may still be decompressed.
#[derive(Debug)]
pub(super) struct DecodingBudget {
    left: u64,
    limit: u64,
}

/// The number of compressed bytes that are read at a time.
const PART: usize = 4096;

/// The reason that bytes are not decoded.
pub(super) type DecodeFailure = String;

impl DecodingBudget {
    pub(super) fn new(limit: u64) -> Self {
        Self { left: limit, limit }
    }

    /// Returns a body without its content encodings. The inner error says why that is not possible.
    ///
    /// # Errors
    /// Returns a fault if the body exceeds the limit.
    pub(super) fn decoded(
        &mut self,
        body: Vec<u8>,
        encodings: &str,
        location: &str,
    ) -> RecorderResult<Result<Vec<u8>, DecodeFailure>> {
        let mut body = body;
        for encoding in encodings.rsplit(',').map(|encoding| encoding.trim().to_ascii_lowercase()) {
            let reader = match decoder(&encoding, &body) {
                Ok(Some(reader)) => reader,
                Ok(None) => continue,
                Err(failure) => return Ok(Err(failure)),
            };
            let mut plain = Vec::new();
            let read = reader.take(self.left.saturating_add(1)).read_to_end(&mut plain);
            self.left = self.left.checked_sub(plain.len() as u64).ok_or_else(|| {
                let limit = self.limit;
                let message = format!("the decompressed bodies exceed the limit of {limit} bytes");
                Fault::beyond(Limit::Bytes, location, message)
            })?;
            if let Err(error) = read {
                return Ok(Err(format!("its {encoding} data is damaged: {error}")));
            }
            body = plain;
        }
        Ok(Ok(body))
    }
}

/// Returns the content of a file that is compressed with gzip; `None` if it is not.
///
/// # Errors
/// Returns a fault if the content has more than `limit` bytes or is damaged.
pub(super) fn unpacked(bytes: &[u8], limit: u64) -> RecorderResult<Option<Vec<u8>>> {
    if !bytes.starts_with(GZIP) {
        return Ok(None);
    }
    let location = "the document";
    let mut plain = Vec::new();
    let read = MultiGzDecoder::new(bytes).take(limit.saturating_add(1)).read_to_end(&mut plain);
    if plain.len() as u64 > limit {
        let message = format!("the decompressed file exceeds the limit of {limit} bytes");
        return Err(Fault::beyond(Limit::Bytes, location, message));
    }
    read.map_err(|error| Fault::new(SYNTAX, location, format!("its gzip data is damaged: {error}")))?;
    Ok(Some(plain))
}

/// Returns a reader of a body without its content encoding; `None` if the body does not have it. Some recorders decompress
/// bodies and keep the header.
fn decoder<'b>(encoding: &str, body: &'b [u8]) -> Result<Option<Box<dyn Read + 'b>>, DecodeFailure> {
    let reader: Box<dyn Read + 'b> = match encoding {
        "" | "identity" => return Ok(None),
        "gzip" | "x-gzip" if !body.starts_with(GZIP) => return Ok(None),
        "zstd" if !body.starts_with(ZSTD) => return Ok(None),
        "deflate" if body.first().is_some_and(|first| b"{[ed".contains(first)) => return Ok(None),
        "gzip" | "x-gzip" => Box::new(MultiGzDecoder::new(body)),
        "deflate" if body.first().is_some_and(|first| first & 0x0f == 8) => Box::new(ZlibDecoder::new(body)),
        "deflate" => Box::new(DeflateDecoder::new(body)),
        // Not every encoding has a mark at its beginning, but no encoded body is text.
        _ if str::from_utf8(body).is_ok() => return Ok(None),
        "br" => Box::new(brotli_decompressor::Decompressor::new(body, PART)),
        "zstd" => Box::new(zstd_reader(body).map_err(|error| format!("its zstd data is damaged: {error}"))?),
        other => return Err(format!("its content encoding {other:?} is not supported")),
    };
    Ok(Some(reader))
}

fn zstd_reader(body: &[u8]) -> std::io::Result<impl Read + '_> {
    // The window determines the memory that the decoder uses.
    let mut decoder = zstd::stream::read::Decoder::new(body)?;
    decoder.window_log_max(27)?;
    Ok(decoder)
}

/// Base64 with padding. The last bits that belong to no byte can have any value.
const BASE64: GeneralPurpose =
    GeneralPurpose::new(&STANDARD, GeneralPurposeConfig::new().with_decode_allow_trailing_bits(true));

/// Decodes Base64 with padding; white space is ignored. Returns `None` if it is damaged.
pub(super) fn base64(text: &str) -> Option<Vec<u8>> {
    let digits: Vec<u8> = text.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
    BASE64.decode(digits).ok()
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn base64_is_decoded() {
        for (text, bytes) in [("", ""), ("Zg==", "f"), ("Zm8=", "fo"), ("Zm9v\nYmFy\n", "foobar")] {
            assert_eq!(base64(text).unwrap(), bytes.as_bytes(), "{text}");
        }
        assert_eq!(base64("/+++").unwrap(), [255, 239, 190]);
        for damaged in ["Z", "Zg", "Zg=", "Z===", "Zg==Zg==", "Z!==", "\u{e4}A=="] {
            assert_eq!(base64(damaged), None, "{damaged}");
        }
    }

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn bodies_are_decompressed_within_the_limit() {
        let mut budget = DecodingBudget::new(100);
        let decoded = |budget: &mut DecodingBudget, body: &[u8], encoding| {
            budget.decoded(body.to_vec(), encoding, "here")
        };
        assert_eq!(decoded(&mut budget, &gzip(b"abc"), "gzip").unwrap().unwrap(), b"abc");
        assert_eq!(decoded(&mut budget, &gzip(&gzip(b"abc")), "gzip, gzip").unwrap().unwrap(), b"abc");
        assert_eq!(decoded(&mut budget, b"{}", "gzip").unwrap().unwrap(), b"{}");
        let packed = zstd::encode_all(&b"abc"[..], 1).unwrap();
        assert_eq!(decoded(&mut budget, &packed, "zstd").unwrap().unwrap(), b"abc");
        assert!(decoded(&mut budget, &gzip(b"abc")[..15], "gzip").unwrap().is_err());
        let packed = b"\x0b\x01\x80abc\x03";
        assert_eq!(decoded(&mut budget, packed, "br").unwrap().unwrap(), b"abc");
        assert_eq!(decoded(&mut budget, b"{}", "br").unwrap().unwrap(), b"{}");
        assert!(decoded(&mut budget, &packed[..5], "br").unwrap().is_err());
        assert!(decoded(&mut budget, b"\xff", "lzma").unwrap().is_err());
        assert!(decoded(&mut budget, &gzip(&[0; 10_000]), "gzip").is_err());
    }
}

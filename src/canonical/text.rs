//! JSON strings that escape only `"`, `\` and C0 controls, as most profiles write them.

use std::io::{self, Write};

/// Writes `text` as a JSON string.
pub(super) fn write_string(text: &str, out: &mut impl Write) -> io::Result<()> {
    // Most strings need no escapes. A loop without an early end looks at many bytes at once.
    let escapes = text.bytes().map(|byte| u8::from(byte < 0x20 || byte == b'"' || byte == b'\\'));
    if escapes.fold(0, |found, escape| found | escape) > 0 {
        return Ok(serde_json::to_writer(out, text)?);
    }
    out.write_all(b"\"")?;
    out.write_all(text.as_bytes())?;
    out.write_all(b"\"")
}

//! Notes as arguments.

use runvault::storage::{MAX_NOTE_BYTES, is_note};

/// Parses a note, for clap.
pub(crate) fn note(text: &str) -> Result<String, String> {
    if is_note(text) {
        return Ok(text.to_owned());
    }
    Err(if text.trim().is_empty() {
        "it is blank".to_owned()
    } else {
        format!("it has {} bytes, and a note at most {MAX_NOTE_BYTES}", text.len())
    })
}

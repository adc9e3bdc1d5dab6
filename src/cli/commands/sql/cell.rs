//! Cells as text.

use runvault::artifact::Cell;
use runvault::digest::{PREFIX, hex};

/// Returns whether a cell is a digest.
pub(super) fn is_hash(cell: &Cell) -> bool {
    matches!(cell, Cell::Text(text) if text.starts_with(PREFIX))
}

/// Formats a cell without loss: bytes as hex digits, NULL as an empty text.
pub(super) fn plain(cell: &Cell) -> String {
    match cell {
        Cell::Null => String::new(),
        Cell::Integer(integer) => integer.to_string(),
        Cell::Real(real) => real_text(*real),
        Cell::Text(text) => text.clone(),
        Cell::Blob(bytes) => hex(bytes),
    }
}

/// Formats a double so that it differs from an integer.
fn real_text(real: f64) -> String {
    match real {
        infinite if infinite.is_infinite() => (if infinite > 0.0 { "Inf" } else { "-Inf" }).to_owned(),
        finite => serde_json::to_string(&finite).unwrap_or_default(),
    }
}

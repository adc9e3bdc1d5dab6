//! Escaping of text from artifacts and file names for terminals.

pub(crate) use runvault::display::{brief, escaped, is_hidden, is_plain, whole};

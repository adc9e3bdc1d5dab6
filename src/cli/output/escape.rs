//! Escaping of text from artifacts and file names for terminals.

pub(crate) use runvault::display::{Escaped, brief, escaped, is_hidden, is_plain, whole};

//! The catalog: what queries read. It is what [`apply`] makes of the journal and of the bytes of artifacts.
//!
//! An entry of the journal becomes changes of rows, which an engine executes without knowing what the entry means. Rows are
//! keyed by hashes, so that they are the same for every engine. The numbers by which an engine refers to artifacts and
//! captures are those of the entries that added them.

mod apply;
mod row;

pub(crate) use apply::{apply, facts, journaled, rows_of};
pub use row::Row;
pub(crate) use row::{MentionRole, RowChange, RowKey};

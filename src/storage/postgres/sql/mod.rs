//! SQL queries, in a transaction that reads one state and cannot write.
//!
//! The views that other programs can use are in the schema. Those of kinds are temporary views of these. What SQL cannot
//! read, because it is in documents, is in temporary tables, which exist as long as the transaction. A table is filled
//! before the first query that names it.

mod cells;
mod contents;
mod query;
mod reader;

use crate::storage::interface::{ComputedView, KindView, SqlError, SqlQueries, SqlReader};
use crate::storage::postgres::vault::PostgresStorage;
use reader::PostgresSqlReader;

impl SqlQueries for PostgresStorage {
    fn reader(
        &self,
        of_kinds: &[KindView],
        computed: Vec<ComputedView>,
    ) -> Result<Box<dyn SqlReader + '_>, SqlError> {
        let reader = PostgresSqlReader::begin(self, of_kinds, computed);
        Ok(Box::new(reader.map_err(|failure| failure.at(self.address()))?))
    }
}

//! SQL queries, on a separate connection that cannot write.
//!
//! Plain views are stored in the vault's file, and any program can read them. Those of the artifacts of a kind are
//! temporary views of these: a process that does not query in SQL need not parse them. SQL cannot read compressed or packed
//! content: [`ComputedView`](crate::storage::ComputedView) views provide it row by row. Each is a temporary view over
//! two functions: `runvault_rows` returns a JSON list with one element per row of an artifact, and `runvault_cell`
//! returns one value of a row. So the planner selects the artifacts before any of their content is read, and values
//! keep their types. Virtual tables would need less code, but require unsafe code.
//!
//! Functions cannot use the connection on which they are called, so they have a separate one. Both see the same state:
//! transactions are begun on both until their journals have the same head.

mod computed;
mod reader;
mod save;

//! Questions in SQL, on a connection of their own that cannot write.
//!
//! Plain views stand in the vault's file, and any program can read them. What is compressed or packed, SQL cannot see into:
//! [`Computed`] views give it row by row. Each is a temporary view over two functions: `runvault_rows` gives as many
//! elements of a JSON list as an artifact has rows, and `runvault_cell` one value of one of them. So the planner chooses
//! the artifacts before anything of them is read, and values pass as they are. Virtual tables would do the same with
//! less, but cannot be had without unsafe code.
//!
//! Functions cannot use the connection that they are called on, so they have one of their own. Both see the same state:
//! transactions are begun on both until their journals have the same head.

mod computed;
mod error;
mod guard;
mod reader;
mod save;
mod view;

pub use computed::{Computed, RowsOf};
pub use error::SqlError;
pub use reader::{Reader, Rows, Statement};
pub use save::Saved;
pub use view::View;

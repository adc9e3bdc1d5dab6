//! An engine that keeps a vault in memory: the executable specification of the storage interface.
//!
//! It states what every engine answers, as plainly as possible: maps that are searched as a whole, no index, no cache.
//! Every answer is derived from the content alone. A snapshot shares the content with the engine; a change is made to a
//! copy, which replaces the content when it is committed.

mod engine;
mod full_text;
mod rows;
mod snapshot;
mod state;

pub use engine::MemoryStorage;

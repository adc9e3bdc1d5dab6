//! The storage interface: what an engine stores, and how the rest of the program reads and changes it.
//!
//! Everything is keyed by [`CoreHash`] and [`CaptureHash`](crate::digest::CaptureHash). No row ids, paths, SQL or other
//! vocabulary of one engine cross the interface. Methods are batched: they take all keys of a step and return one value
//! for each key, in the order of the keys, so that a remote engine needs one round trip for a step. Filters, orders,
//! limits and pages are the engine's work. Answers are complete and sorted as documented, so that every engine gives
//! the same answer for the same content.

pub mod interface;
pub mod sqlite;

pub use sqlite::*;

//! JSON parsing and serialization for hashing.
//!
//! One strict [`reader`] serves all kinds. Each canonical profile has a file of its own, because the formats differ in
//! key order, number text and escapes:
//!
//! | profile | used by | keys | numbers | strings |
//! |---|---|---|---|---|
//! | [`rfc8785`](canonical::rfc8785) | `model_io`, `contract`, `pack` | UTF-16 order | IEEE doubles as ECMAScript prints them | raw UTF-8 |
//! | [`c14n_v1`](canonical::c14n_v1) | `trace` | code point order | exact integers, floats as Python prints them | raw UTF-8 |
//! | [`replaykit`](canonical::replaykit) | `rpk` | code point order | as `c14n_v1`, floats rounded to 12 digits | normalized, ASCII |
//!
//! [`compact`] and [`pretty`] are not canonical profiles: they print values as they were written. [`ecmascript`] contains the
//! conversions and comparisons of the language that some verifiers are written in.
//!
//! Bytes in, bytes out: nothing here interprets the documents.

/// The canonical profiles.
pub mod canonical {
    pub mod c14n_v1;
    pub mod replaykit;
    pub mod rfc8785;
}
pub mod compact;
pub mod ecmascript;
pub(crate) mod members;
mod number;
pub mod pointer;
pub mod pretty;
pub mod reader;
pub(crate) mod splice;
mod text;
pub(crate) mod tokens;
mod value;

pub use number::Number;
pub use value::{Object, Value};

//! JSON as it has to be read and written for hashes to agree.
//!
//! One strict [`reader`] serves all kinds. Each canonical profile has a file of its own, because the formats differ in
//! key order, number text and escapes:
//!
//! | profile | used by | keys | numbers | strings |
//! |---|---|---|---|---|
//! | [`rfc8785`] | `model_io`, `contract`, `pack` | UTF-16 order | IEEE doubles as ECMAScript prints them | raw UTF-8 |
//! | [`c14n_v1`] | `trace` | code point order | exact integers, floats as Python prints them | raw UTF-8 |
//! | [`replaykit`] | `rpk` | code point order | as `c14n_v1`, floats rounded to 12 digits | normalised, ASCII |
//!
//! [`compact`] is none of them: it shows values as they were written. Neither is [`ecmascript`], which has the texts and
//! comparisons of the language that some formats are verified in.
//!
//! Bytes in, bytes out: nothing here knows what the documents mean.

pub mod c14n_v1;
pub mod compact;
pub mod ecmascript;
mod number;
pub mod pointer;
pub mod reader;
pub mod replaykit;
pub mod rfc8785;
mod text;
mod value;

pub use number::Number;
pub use value::{Object, Value};

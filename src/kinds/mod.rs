//! The kinds of artifacts. This is the only list of them: a new kind is a folder and a line here.

pub mod contract;
pub mod model_io;
pub mod rpk;
pub mod trace;

use crate::artifact::Kind;

/// Every kind, in the order in which they are asked whether they recognise a document.
pub static ALL: [Kind; 4] = [
    Kind::of::<model_io::ModelIo>(),
    Kind::of::<rpk::Rpk>(),
    Kind::of::<trace::Trace>(),
    Kind::of::<contract::Contract>(),
];

/// The kind named `name`.
#[must_use]
pub fn named(name: &str) -> Option<Kind> {
    ALL.into_iter().find(|kind| kind.name() == name)
}

/// The names of all kinds, as messages list them.
#[must_use]
pub fn names() -> String {
    ALL.map(Kind::name).join(", ")
}

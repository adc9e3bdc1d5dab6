//! The kinds of artifacts. This is the only list of them: a new kind is a folder and a line here.

pub mod contract;
pub mod model_io;
pub mod pack;
pub mod rpk;
pub mod trace;

use crate::artifact::{Kind, Peek, Recognition, Versions};
use crate::canonical::reader::{self, MemberNames};

/// Every kind, in the order in which they are asked whether they recognise a document.
pub static ALL: [Kind; 5] = [
    Kind::of::<model_io::ModelIo>(),
    Kind::of::<rpk::Rpk>(),
    Kind::of::<trace::Trace>(),
    Kind::of::<contract::Contract>(),
    Kind::of_directories::<pack::Pack>(),
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

/// The names of the kinds of which one artifact may be a longer version of another, each with how that is seen.
#[must_use]
pub fn versions() -> Vec<(&'static str, Versions)> {
    ALL.into_iter().filter_map(|kind| Some((kind.name(), kind.versions()?))).collect()
}

/// The kind that a document is meant to be of, told by its content, whether it is valid or not: the first that is sure,
/// else the first that thinks so.
#[must_use]
pub fn recognise(document: &[u8]) -> Option<(Kind, Recognition)> {
    let text = reader::lossy(document);
    let mut names = MemberNames::of(&text);
    let mut perhaps = None;
    for kind in ALL {
        match kind.recognises(&text, &mut names) {
            Some(Recognition::Surely) => return Some((kind, Recognition::Surely)),
            Some(Recognition::Perhaps) => perhaps = perhaps.or(Some((kind, Recognition::Perhaps))),
            None => {}
        }
    }
    perhaps
}

/// Every kind that is sure that a document is meant to be of it, told by its content, whether it is valid or not. If none is,
/// the first that thinks so.
#[must_use]
pub fn recognise_all(document: &[u8]) -> Vec<(Kind, Recognition)> {
    let text = reader::lossy(document);
    let mut names = MemberNames::of(&text);
    let recognised = ALL.into_iter().filter_map(|kind| Some((kind, kind.recognises(&text, &mut names)?)));
    let (sure, mut perhaps): (Vec<_>, Vec<_>) =
        recognised.partition(|(_, recognition)| *recognition == Recognition::Surely);
    perhaps.truncate(1);
    if sure.is_empty() { perhaps } else { sure }
}

/// The kind whose artifacts are directories like one with entries of these names; `peek` gives the beginning of a file
/// in it.
#[must_use]
pub fn recognise_directory(names: &[&str], peek: &mut Peek<'_>) -> Option<Kind> {
    ALL.into_iter().find(|kind| kind.recognises_directory(names, peek))
}

//! The kinds of artifacts. This is the only list of kinds: a new kind is a folder and a line here.

pub mod agent_session;
pub mod attachment;
pub mod contract;
pub mod model_io;
pub mod pack;
pub mod rpk;
mod runner;
pub mod trace;

use crate::artifact::{AttributeInfo, Field, HeadReader, Kind, Recognition, SuccessorCriteria};
use crate::conversation::reader::Conversation;
use crate::json::reader::{self, MemberNames, ReadError};

/// Every kind, in the order in which they recognize documents.
pub static ALL: [Kind; 7] = [
    Kind::new(&model_io::ModelIo),
    Kind::new(&rpk::Rpk),
    Kind::new(&trace::Trace),
    Kind::new(&agent_session::AgentSession),
    Kind::new(&contract::Contract),
    Kind::new(&pack::Pack),
    Kind::new(&attachment::Attachment),
];

/// The kind whose artifacts state the [`ContractTerms`] that runs are audited against.
pub const TERMS: Kind = Kind::new(&contract::Contract);

/// The kind whose artifacts are read as a [`Session`].
pub const SESSIONS: Kind = Kind::new(&model_io::ModelIo);

/// The kind of what agents keep of their sessions on disk.
pub const AGENT_SESSIONS: Kind = Kind::new(&agent_session::AgentSession);

pub(crate) use agent_session::{STARTED_BY, states_tokens_of_api};
pub(crate) use attachment::list_of_files;
pub(crate) use contract::foreign_language;
pub use contract::{
    Bounds, ContractTerms, Effect, Evidence, IoRef, KeyPath, ParsedMember, RangeBound, SchemaSource,
    comparable,
};
pub use model_io::{IMPORT_ADAPTER, INTERACTIONS, Interaction, KernelRecording, Session, SessionMode};
pub use rpk::STEPS;

/// Returns the searchable fields of all kinds.
#[must_use]
pub fn fields() -> Vec<Field> {
    Field::SHARED.into_iter().chain(ALL.into_iter().flat_map(|kind| kind.info().fields).copied()).collect()
}

/// Returns the attributes of all kinds, sorted by name.
#[must_use]
pub fn attributes() -> Vec<AttributeInfo> {
    let mut attributes: Vec<AttributeInfo> = ALL.into_iter().flat_map(Kind::attributes).copied().collect();
    attributes.sort_by_key(|attribute| attribute.name);
    attributes.dedup_by_key(|attribute| attribute.name);
    attributes
}

/// Returns the attribute of this name that artifacts of a kind can have.
#[must_use]
pub fn attribute(name: &str) -> Option<AttributeInfo> {
    ALL.into_iter().flat_map(Kind::attributes).find(|attribute| attribute.name == name).copied()
}

/// Returns the names of all attributes for messages.
#[must_use]
pub fn attribute_names() -> String {
    let names: Vec<&str> = attributes().into_iter().map(|attribute| attribute.name).collect();
    names.join(", ")
}

/// Returns the kinds of artifacts that record what an agent or a model did.
pub fn recordings() -> impl Iterator<Item = Kind> {
    ALL.into_iter().filter(|kind| kind.info().is_run || kind.info().playback.is_some())
}

/// Returns the conversation of an agent with models in a document that states its steps, and not the bodies of calls as they
/// were sent; `None` if its kind does not, or if it has steps that belong to no call.
///
/// # Errors
/// Returns an error if the document cannot be read.
pub(crate) fn conversation_of_steps(kind: Kind, parts: &[&[u8]]) -> Result<Option<Conversation>, ReadError> {
    match parts {
        parts if kind == Kind::new(&rpk::Rpk) => rpk::conversation::read(parts),
        [document] if kind == AGENT_SESSIONS => agent_session::calls::read(document),
        _ => Ok(None),
    }
}

/// Returns the kind that takes any bytes.
#[must_use]
pub fn of_any_bytes() -> Kind {
    Kind::new(&attachment::Attachment)
}

/// Returns the kind named `name`.
#[must_use]
pub fn named(name: &str) -> Option<Kind> {
    ALL.into_iter().find(|kind| kind.name() == name)
}

/// Returns the noun for an artifact of the kind named `name`, with an article, such as `a session`. Unknown kinds have
/// only their name.
#[must_use]
pub fn noun(name: &str) -> String {
    let Some(kind) = named(name) else { return format!("of kind {name}") };
    let article = if kind.noun().starts_with(['a', 'e', 'i', 'o', 'u']) { "an" } else { "a" };
    format!("{article} {}", kind.noun())
}

/// Returns the noun for an artifact of the kind named `name`, such as `session`, and of an unknown kind its name.
#[must_use]
pub fn bare_noun(name: &str) -> &str {
    match named(name) {
        Some(kind) => kind.noun(),
        None => name,
    }
}

/// Returns the kind that users call by `name`: its name or one of its nouns, in singular or plural.
#[must_use]
pub fn called(name: &str) -> Option<Kind> {
    ALL.into_iter().find(|kind| kind.is_called(name))
}

/// Returns the names of all kinds for messages.
#[must_use]
pub fn names() -> String {
    ALL.map(Kind::name).join(", ")
}

/// Returns the names of the kinds whose documents have longer versions, each with how these are detected.
#[must_use]
pub fn versions() -> Vec<(&'static str, SuccessorCriteria)> {
    ALL.into_iter().filter_map(|kind| Some((kind.name(), kind.info().versions?))).collect()
}

/// Returns the kind that a document is intended to be of, valid or not, by its content: the first that is certain, else
/// the first that is possible.
#[must_use]
pub fn recognize(document: &[u8]) -> Option<(Kind, Recognition)> {
    let text = reader::lossy(document);
    let mut names = MemberNames::new(&text);
    let mut perhaps = None;
    for kind in ALL {
        match kind.recognizes(&text, &mut names) {
            Some(Recognition::Surely) => return Some((kind, Recognition::Surely)),
            Some(Recognition::Perhaps) => perhaps = perhaps.or(Some((kind, Recognition::Perhaps))),
            None => {}
        }
    }
    perhaps
}

/// Returns every kind that certainly recognizes a document by its content, whether or not it is valid. If there is
/// none, returns the first that possibly recognizes it.
#[must_use]
pub fn recognize_all(document: &[u8]) -> Vec<(Kind, Recognition)> {
    let text = reader::lossy(document);
    let mut names = MemberNames::new(&text);
    let recognized = ALL.into_iter().filter_map(|kind| Some((kind, kind.recognizes(&text, &mut names)?)));
    let (sure, mut perhaps): (Vec<_>, Vec<_>) =
        recognized.partition(|(_, recognition)| *recognition == Recognition::Surely);
    perhaps.truncate(1);
    if sure.is_empty() { perhaps } else { sure }
}

/// Returns the kind of a directory with entries of these names; `peek` returns the beginning of a file in it.
#[must_use]
pub fn recognize_directory(names: &[&str], peek: &mut HeadReader<'_>) -> Option<Kind> {
    ALL.into_iter().find(|kind| kind.recognizes_directory(names, peek))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::artifact::AdmitOptions;
    use crate::digest::hashed_bytes;

    #[test]
    fn attributes_of_one_name_have_one_type() {
        for kind in ALL {
            assert!(kind.attributes().is_sorted_by(|one, next| one.name < next.name), "{kind:?}");
            for declared in kind.attributes() {
                assert_eq!(attribute(declared.name).unwrap().values, declared.values, "{declared:?}");
            }
        }
    }

    /// The file is hashed once, its canonical form once, and once more what the format hashes on its own: responses of
    /// sessions; steps of run packs, and prompts and responses in them; outputs of traces.
    #[test]
    fn no_byte_is_hashed_more_often_than_the_format_demands() {
        for (kind, name, times) in [
            ("model_io", "session.json", 3),
            ("rpk", "run.rpk", 4),
            ("trace", "trace.ndjson", 3),
            ("contract", "contract.yaml", 2),
        ] {
            let path = format!("{}/examples/{name}", env!("CARGO_MANIFEST_DIR"));
            let bytes = std::fs::read(path).unwrap();
            let (size, before) = (bytes.len(), hashed_bytes());
            named(kind).unwrap().admit(bytes, &AdmitOptions::default()).unwrap();
            let hashed = hashed_bytes() - before;
            assert!((size..=times * size).contains(&hashed), "{name}: {hashed} of {size} bytes");
        }
    }
}

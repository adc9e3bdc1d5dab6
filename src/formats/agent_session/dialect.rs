//! The dialects of agent sessions: which program wrote a document, and where its records are.

use std::borrow::Cow;

use super::record::SessionRecord;
use super::{atif, claude_code, codex, gemini_cli, opencode, pi};
use crate::json::reader::MemberNames;
use crate::json::{Object, Value};

/// How a program records its sessions.
pub(super) struct AgentDialect {
    /// The name of the format, which the chain of record digests begins with. It never changes.
    pub(super) name: &'static str,
    pub(super) layout: RecordLayout,
    /// Whether a session begins with the records of the one that it continues, which state that one. Then only the first record
    /// that states a session states its own.
    pub(super) copies_sessions: bool,
    /// Returns whether a document is intended to be of the dialect.
    pub(super) recognizes: fn(&mut DocumentHead<'_, '_>) -> bool,
    /// Returns what a record states.
    pub(super) read: for<'v> fn(&'v Value<'v>) -> SessionRecord<'v>,
}

/// Where the records of a document are.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum RecordLayout {
    /// Each line is a record.
    Lines,
    /// The document is one JSON object. Its first record is the object with the members `header`, and the others are the
    /// elements of the member `list`.
    Document { header: HeaderMembers, list: &'static str },
}

/// The members that are the first record of a document: those that do not change while the session grows.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct HeaderMembers {
    /// The member of the document that has them; `None` if the document does.
    pub(super) of: Option<&'static str>,
    /// Their names; `None` if they are all.
    pub(super) only: Option<&'static [&'static str]>,
    /// The names of others.
    pub(super) but: &'static [&'static str],
}

impl HeaderMembers {
    /// Returns the object with the members.
    pub(super) fn select<'v>(self, root: &Value<'v>) -> Value<'v> {
        let holder = self.of.map_or(Some(root), |name| root.get(name)).and_then(Value::as_object);
        let is_one =
            |name: &str| self.only.is_none_or(|names| names.contains(&name)) && !self.but.contains(&name);
        let members = holder.into_iter().flat_map(Object::iter).filter(|(name, _)| is_one(name));
        let members = members.map(|(name, value)| (Cow::Owned(name.to_owned()), value.clone()));
        Value::Object(Object::from_members(members.collect()))
    }
}

/// The dialects, in the order in which they recognize documents.
static DIALECTS: [AgentDialect; 7] = [
    claude_code::CLAUDE_CODE,
    codex::CODEX,
    gemini_cli::DOCUMENT,
    gemini_cli::LINES,
    opencode::OPENCODE,
    pi::PI,
    atif::ATIF,
];

/// Number of lines that are examined to recognize a dialect.
const HEAD_LINES: usize = 32;

/// The beginning of a document.
pub(super) struct DocumentHead<'h, 't> {
    pub(super) text: &'t str,
    /// The names of the members of the first object.
    pub(super) root: &'h mut MemberNames<'t>,
}

impl<'t> DocumentHead<'_, 't> {
    /// Returns whether the first object has members with all these names.
    pub(super) fn has(&mut self, names: &[&str]) -> bool {
        names.iter().all(|name| self.root.has(name))
    }

    /// Returns the first lines with objects.
    pub(super) fn lines(&self) -> impl Iterator<Item = &'t str> {
        self.text.lines().filter(|line| line.starts_with('{')).take(HEAD_LINES)
    }
}

/// Returns whether a line has members with all these names.
pub(super) fn line_has(line: &str, names: &[&str]) -> bool {
    let mut members = MemberNames::new(line);
    names.iter().all(|name| members.has(name))
}

impl AgentDialect {
    /// Returns the dialect of a document. `root` has the names of the members of its first object.
    pub(super) fn detect<'t>(text: &'t str, root: &mut MemberNames<'t>) -> Option<&'static Self> {
        let mut head = DocumentHead { text, root };
        DIALECTS.iter().find(|dialect| (dialect.recognizes)(&mut head))
    }
}

//! The form of a dialect: which documents are of it, where their records are, and what a record states.

use std::borrow::Cow;

use chrono::{DateTime, Utc};

use crate::artifact::attribute::parse_count;
use crate::conversation::message::{ConversationMessage, MessagePart};
use crate::digest::Digest;
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
    /// Whether tokens are counted by rules of the program, and not as the API of the model states them.
    pub(super) counts_tokens: bool,
    /// Returns whether a document is intended to be of the dialect.
    pub(super) recognizes: fn(&mut DocumentHead<'_, '_, '_>) -> bool,
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

/// What a record states, whatever the dialect.
#[derive(Default)]
pub(super) struct SessionRecord<'v> {
    /// The type in the words of the dialect.
    pub(super) record_type: Cow<'v, str>,
    /// Whether the type is known. Records of other types are kept, and state nothing.
    pub(super) is_known: bool,
    /// Its id, and that of the record that it follows, in dialects whose records have ids.
    pub(super) id: Option<&'v str>,
    pub(super) parent: Option<&'v str>,
    /// The session that it is of, and the agent of that session, if it is not the main one.
    pub(super) session: Option<&'v str>,
    pub(super) agent: Option<&'v str>,
    /// The session whose agent started this one, and the one that it is a copy of up to some record.
    pub(super) started_by: Option<&'v str>,
    pub(super) forked_from: Option<&'v str>,
    pub(super) time: Option<DateTime<Utc>>,
    /// When the answer ended, if the record states that in addition.
    pub(super) ended: Option<DateTime<Utc>>,
    /// What the model was asked, or the results of tools.
    pub(super) asked: Vec<ConversationMessage>,
    pub(super) answer: Option<RecordedAnswer<'v>>,
    /// Why a call of a model failed.
    pub(super) error: Option<Cow<'v, str>>,
    /// The model that answers from here on.
    pub(super) model: Option<&'v str>,
    /// Numbers of tokens in the request and in the answer of the last call.
    pub(super) tokens: Option<[Option<u64>; 2]>,
    /// The cost of the last call, in millionths of a US dollar.
    pub(super) cost: Option<i64>,
    /// The program, if the dialect does not say that, and its version.
    pub(super) program: Option<&'v str>,
    pub(super) version: Option<&'v str>,
    /// The version of the format, if that is not known.
    pub(super) unknown_version: Option<String>,
    /// The number that it states for itself, by which it follows the record before it.
    pub(super) number: Option<u64>,
    pub(super) directory: Option<&'v str>,
    /// The hash of the directory, if the program does not state the directory.
    pub(super) directory_hash: Option<Digest>,
    pub(super) branch: Option<&'v str>,
    pub(super) commit: Option<&'v str>,
    /// The files that the program says it changed.
    pub(super) files: Vec<&'v str>,
}

/// A part of an answer of a model.
#[derive(Default)]
pub(super) struct RecordedAnswer<'v> {
    /// The id that the records of one answer share. Records of answers without ids are of one answer if no other record is
    /// between them.
    pub(super) id: Option<&'v str>,
    pub(super) parts: Vec<MessagePart>,
    pub(super) finish_reason: Option<&'v str>,
    /// Whether it is all of an answer, which no other record continues.
    pub(super) is_complete: bool,
}

/// Number of lines that are examined to recognize a dialect.
const HEAD_LINES: usize = 32;

/// The beginning of a document. The names of the members of an object are read at most once, because a line can be all of a
/// large document.
pub(super) struct DocumentHead<'h, 't, 'n> {
    pub(super) text: &'t str,
    /// The names of the members of the first object.
    root: &'h mut MemberNames<'n>,
    /// The first lines with objects, with the names of their members unless that is the first object of the document.
    lines: Vec<(&'t str, Option<MemberNames<'t>>)>,
}

impl<'h, 't, 'n> DocumentHead<'h, 't, 'n> {
    /// Creates the beginning of a document whose first object has members with these names.
    pub(super) fn new(text: &'t str, root: &'h mut MemberNames<'n>) -> Self {
        // A byte order mark is reported when the document is read.
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let lines = text.lines().filter(|line| line.starts_with('{')).take(HEAD_LINES);
        let is_root =
            |line: &str| text.starts_with('{') && text.as_ptr() == line.as_ptr() && line.ends_with('}');
        let lines = lines.map(|line| (line, (!is_root(line)).then(|| MemberNames::new(line)))).collect();
        Self { text, root, lines }
    }

    /// Returns whether the first object has members with all these names.
    pub(super) fn has(&mut self, names: &[&str]) -> bool {
        has_all(self.root, names)
    }

    /// Returns whether the first line with an object is one, by its text and the names of its members.
    pub(super) fn first_line(&mut self, is_one: impl FnOnce(&str, &mut MemberNames<'_>) -> bool) -> bool {
        match self.lines.first_mut() {
            Some((line, Some(names))) => is_one(line, names),
            Some((line, None)) => is_one(line, self.root),
            None => false,
        }
    }

    /// Returns whether one of the first lines with objects is one, by its text and the names of its members.
    pub(super) fn any_line(&mut self, is_one: impl Fn(&str, &mut MemberNames<'_>) -> bool) -> bool {
        let Self { root, lines, .. } = self;
        lines.iter_mut().any(|(line, names)| match names {
            Some(names) => is_one(line, names),
            None => is_one(line, root),
        })
    }
}

/// Returns whether an object has members with all these names.
pub(super) fn has_all(members: &mut MemberNames<'_>, names: &[&str]) -> bool {
    names.iter().all(|name| members.has(name))
}

/// Returns the count that a number states.
pub(super) fn count(value: &Value<'_>) -> Option<u64> {
    parse_count(value).and_then(|number| u64::try_from(number).ok())
}

use std::fmt;
use std::io::{self, Write};

use super::directory::{ArtifactDirectory, Directory, EntryContent, MemberBytes, Peek, capture_hash};
use super::passage::{OfDirectory, OfDocument};
use super::value_budget::Room;
use super::{
    AdmitOptions, Admitted, Artifact, Draft, EventVisitor, Exchange, Joined, Member, Part, Passage, Playback,
    Recognition, Rest, Table, Versions,
};
use crate::canonical::reader::{Limits, MemberNames, ReadError};
use crate::digest::CaptureHash;
use crate::verify::{Findings, Report, RuleInfo, Violation};

/// A kind of artifact as the rest of the program sees it.
#[derive(Clone, Copy)]
pub struct Kind(&'static KindTable);

struct KindTable {
    name: &'static str,
    plural: &'static str,
    stated_by: Option<&'static str>,
    attributes: &'static [&'static str],
    is_run: bool,
    versions: Option<Versions>,
    can_be_signed: bool,
    playback: Option<Playback>,
    tables: &'static [Table],
    rules: fn() -> Vec<RuleInfo>,
    form: Form,
}

/// What an artifact of the kind is made of.
enum Form {
    Document {
        member: &'static str,
        file_names: &'static [&'static str],
        recognises: fn(&str, &mut MemberNames<'_>) -> Option<Recognition>,
        examine: fn(&[u8], &AdmitOptions, &mut Findings) -> Option<Draft>,
        write_core: fn(&[u8], &Limits, &mut dyn Write) -> io::Result<()>,
        run_events: fn(&[u8], &Limits, &mut EventVisitor<'_>) -> Result<(), ReadError>,
        exchanges: fn(&[u8], &Limits) -> Result<Vec<Exchange>, ReadError>,
        continues: fn(&[u8], &Limits) -> Option<Rest>,
        join: fn(&[u8], &Rest, &[u8], &Limits) -> Option<Joined>,
        quote: fn(&[u8], usize) -> Option<String>,
        parts: for<'d> fn(&'d [u8], &Limits) -> Result<Vec<Part<'d>>, ReadError>,
        passages: OfDocument,
    },
    Directory {
        members: &'static [&'static str],
        unreadable: RuleInfo,
        recognises: fn(&[&str], &mut Peek<'_>) -> bool,
        recognises_member: fn(&str, &[u8]) -> bool,
        incomplete: fn(&str) -> Violation,
        examine: fn(&Directory, &AdmitOptions, &mut Findings) -> Option<Draft>,
        write_core: fn(&[MemberBytes<'_>], &Limits, &mut dyn Write) -> io::Result<()>,
        run_events: fn(&[MemberBytes<'_>], &Limits, &mut EventVisitor<'_>) -> Result<(), ReadError>,
        parts: for<'d> fn(&[MemberBytes<'d>], &Limits) -> Result<Vec<Part<'d>>, ReadError>,
        passages: OfDirectory,
    },
}

impl Kind {
    /// The handle of the kind `K`, whose artifacts are documents.
    #[must_use]
    pub const fn of<K: Artifact>() -> Self {
        Self(
            &const {
                KindTable {
                    name: K::NAME,
                    plural: K::PLURAL,
                    stated_by: K::STATED_BY,
                    attributes: K::ATTRIBUTES,
                    is_run: K::IS_RUN,
                    versions: K::VERSIONS,
                    can_be_signed: K::CAN_BE_SIGNED,
                    playback: K::PLAYBACK,
                    tables: K::TABLES,
                    rules: K::rules,
                    form: Form::Document {
                        member: K::MEMBER,
                        file_names: K::FILE_NAMES,
                        recognises: K::recognises,
                        examine: K::examine,
                        write_core: K::write_core,
                        run_events: K::run_events,
                        exchanges: K::exchanges,
                        continues: K::continues,
                        join: K::join,
                        quote: K::quote,
                        parts: K::parts,
                        passages: K::passages,
                    },
                }
            },
        )
    }

    /// The handle of the kind `K`, whose artifacts are directories.
    #[must_use]
    pub const fn of_directories<K: ArtifactDirectory>() -> Self {
        Self(
            &const {
                KindTable {
                    name: K::NAME,
                    plural: K::PLURAL,
                    stated_by: K::STATED_BY,
                    attributes: K::ATTRIBUTES,
                    is_run: K::IS_RUN,
                    versions: None,
                    can_be_signed: false,
                    playback: None,
                    tables: K::TABLES,
                    rules: K::rules,
                    form: Form::Directory {
                        members: K::MEMBERS,
                        unreadable: K::UNREADABLE,
                        recognises: K::recognises,
                        recognises_member: K::recognises_member,
                        incomplete: K::incomplete,
                        examine: K::examine,
                        write_core: K::write_core,
                        run_events: K::run_events,
                        parts: K::parts,
                        passages: K::passages,
                    },
                }
            },
        )
    }

    /// The name, such as `model_io`.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.0.name
    }

    /// What people call its artifacts, such as `sessions`.
    #[must_use]
    pub fn plural(self) -> &'static str {
        self.0.plural
    }

    /// The name of the one file of its artifacts; nothing if they are directories.
    #[must_use]
    pub fn document_member(self) -> Option<&'static str> {
        match self.0.form {
            Form::Document { member, .. } => Some(member),
            Form::Directory { .. } => None,
        }
    }

    /// The relation in which it stands to everything that states its core hash, if it has a name of its own.
    #[must_use]
    pub fn stated_by(self) -> Option<&'static str> {
        self.0.stated_by
    }

    /// The names of the attributes that its artifacts may have, sorted.
    #[must_use]
    pub fn attributes(self) -> &'static [&'static str] {
        self.0.attributes
    }

    /// The rules, without those of all documents.
    #[must_use]
    pub fn rules(self) -> Vec<RuleInfo> {
        (self.0.rules)()
    }

    /// Whether its artifacts are directories. Others are single documents.
    #[must_use]
    pub fn is_of_directories(self) -> bool {
        matches!(self.0.form, Form::Directory { .. })
    }

    /// The names that the files of its artifacts may have.
    #[must_use]
    pub fn members(self) -> &'static [&'static str] {
        match &self.0.form {
            Form::Document { member, .. } => std::slice::from_ref(member),
            Form::Directory { members, .. } => members,
        }
    }

    /// Whether the format gives its documents such names.
    #[must_use]
    pub fn owns_file_name(self, file_name: &str) -> bool {
        let Form::Document { file_names, .. } = &self.0.form else {
            return false;
        };
        file_names.iter().any(|pattern| match pattern.strip_prefix('*') {
            Some(ending) => file_name.len() > ending.len() && file_name.ends_with(ending),
            None => file_name == *pattern,
        })
    }

    /// Whether `text` is meant to be a document of this kind, valid or not. `names` are the names of its root object's
    /// members as far as they could be read.
    #[must_use]
    pub fn recognises(self, text: &str, names: &mut MemberNames<'_>) -> Option<Recognition> {
        match self.0.form {
            Form::Document { recognises, .. } => recognises(text, names),
            Form::Directory { .. } => None,
        }
    }

    /// Whether a directory with entries of these names is meant to be of this kind, valid or not. `peek` gives the
    /// beginning of a file in it.
    #[must_use]
    pub fn recognises_directory(self, names: &[&str], peek: &mut Peek<'_>) -> bool {
        match self.0.form {
            Form::Document { .. } => false,
            Form::Directory { recognises, .. } => recognises(names, peek),
        }
    }

    /// The violation that a file of this name is which begins with `head`, if it has what only files of this kind's
    /// artifacts have: where it stands alone, the rest of the artifact is missing. Nothing if artifacts of this kind are
    /// single documents.
    #[must_use]
    pub fn orphan(self, file_name: &str, head: &[u8]) -> Option<Violation> {
        match self.0.form {
            Form::Directory { recognises_member, incomplete, .. } if recognises_member(file_name, head) => {
                Some(incomplete(file_name))
            }
            Form::Directory { .. } | Form::Document { .. } => None,
        }
    }

    /// Parses `document`, canonicalizes it and applies every rule.
    ///
    /// # Errors
    /// The report, if a rule of severity error is broken. Nothing else is an error: admission does no I/O.
    pub fn admit(self, document: Vec<u8>, options: &AdmitOptions) -> Result<Admitted, Report> {
        let Form::Document { member, examine, .. } = self.0.form else {
            return Err(self.unreadable("", "this is a document, neither a directory nor an archive"));
        };
        let mut findings = Findings::default();
        let room = Room::take(std::iter::once(document.as_slice()));
        let draft = examine(&document, options, &mut findings);
        drop(room);
        self.admitted(draft, findings, || {
            let member = Member::new(member, document);
            (CaptureHash(member.blob().0), vec![member])
        })
    }

    /// What `document` continues, if it is the rest of a longer document of this kind and no whole one.
    #[must_use]
    pub fn continues(self, document: &[u8], limits: &Limits) -> Option<Rest> {
        match self.0.form {
            Form::Document { continues, .. } => continues(document, limits),
            Form::Directory { .. } => None,
        }
    }

    /// Admits `document`, which is a `rest`, together with what goes before it in the admitted `beginning`.
    ///
    /// # Errors
    /// The report of the whole, with the places that violations have in `document`.
    pub fn admit_joined(
        self,
        beginning: &[u8],
        rest: &Rest,
        document: &[u8],
        options: &AdmitOptions,
    ) -> Result<Admitted, Report> {
        let limits = &options.limits;
        let joined = match self.0.form {
            Form::Document { join, .. } => join(beginning, rest, document, limits),
            Form::Directory { .. } => None,
        };
        let Some(Joined { document, lines }) = joined else {
            let message = format!("the {} that it continues is not where it should be", rest.what);
            return Err(Violation::new(rest.rule, rest.path.clone(), message).into());
        };
        let limit = limits.bytes.min(Limits::MAX_BYTES);
        if document.len() as u64 > limit {
            return Err(super::document::larger_than(limit).into());
        }
        self.admit(document, options).map_err(|report| report.after_lines(lines))
    }

    /// Applies every rule to a directory or archive that was read.
    ///
    /// # Errors
    /// The report, if a rule of severity error is broken.
    pub fn admit_directory(self, directory: Directory, options: &AdmitOptions) -> Result<Admitted, Report> {
        let Form::Directory { members: names, examine, .. } = self.0.form else {
            return Err(Violation::new(super::document::UNRECOGNISED, "", "this is not a document").into());
        };
        let mut findings = Findings::default();
        let files = directory.entries.iter().filter_map(|entry| match &entry.content {
            EntryContent::File(bytes) => Some(bytes.as_slice()),
            EntryContent::Stranger | EntryContent::Link | EntryContent::Other => None,
        });
        let room = Room::take(files);
        let draft = examine(&directory, options, &mut findings);
        drop(room);
        self.admitted(draft, findings, || {
            let files = directory.entries.into_iter().filter_map(|entry| match entry.content {
                EntryContent::File(bytes) => {
                    names.iter().find(|name| **name == entry.name).map(|name| Member::new(name, bytes))
                }
                EntryContent::Stranger | EntryContent::Link | EntryContent::Other => None,
            });
            let mut members: Vec<Member> = files.collect();
            members.sort_unstable_by(|one, other| one.name().cmp(other.name()));
            let capture = capture_hash(members.iter().map(|member| (member.name(), member.blob())));
            (capture, members)
        })
    }

    fn admitted(
        self,
        draft: Option<Draft>,
        mut findings: Findings,
        keep: impl FnOnce() -> (CaptureHash, Vec<Member>),
    ) -> Result<Admitted, Report> {
        if draft.as_ref().is_some_and(|draft| draft.pointer_bytes > super::mention::MAX_POINTER_BYTES) {
            super::document::report_pointers(&mut findings);
        }
        let report = findings.into_report();
        match draft {
            Some(mut draft) if report.is_acceptable() => {
                draft.make_sets();
                let (capture, members) = keep();
                Ok(Admitted { kind: self, capture, members, draft, report })
            }
            _ => Err(report),
        }
    }

    /// The report of something at `path` that is not what artifacts of this kind are made of.
    #[must_use]
    pub fn unreadable(self, path: &str, message: &str) -> Report {
        let rule = match self.0.form {
            Form::Document { .. } => super::document::UNRECOGNISED,
            Form::Directory { unreadable, .. } => unreadable,
        };
        Violation::new(rule, path, message).into()
    }

    /// Writes the canonical bytes whose SHA-256 is the core hash of an admitted artifact of these `members`.
    ///
    /// # Errors
    /// Those of `out`; members that were not admitted are invalid data.
    pub fn write_core(
        self,
        members: &[MemberBytes<'_>],
        limits: &Limits,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        match (&self.0.form, members) {
            (Form::Document { write_core, .. }, [only]) => write_core(only.bytes, limits, out),
            (Form::Document { .. }, _) => Err(io::ErrorKind::InvalidData.into()),
            (Form::Directory { write_core, .. }, members) => write_core(members, limits, out),
        }
    }
}

impl Kind {
    /// Whether artifacts of this kind record runs, so that contracts can be held against them.
    #[must_use]
    pub fn is_run(self) -> bool {
        self.0.is_run
    }

    /// How one of its artifacts is seen to be a longer version of another, if they are written part by part.
    #[must_use]
    pub fn versions(self) -> Option<Versions> {
        self.0.versions
    }

    /// Whether its artifacts may carry signatures.
    #[must_use]
    pub fn can_be_signed(self) -> bool {
        self.0.can_be_signed
    }

    /// Gives `visit` what an admitted artifact of these `members` recorded of a run, in order.
    ///
    /// # Errors
    /// Returns an error if a member cannot be read.
    pub fn run_events(
        self,
        members: &[MemberBytes<'_>],
        limits: &Limits,
        visit: &mut EventVisitor<'_>,
    ) -> Result<(), ReadError> {
        match (&self.0.form, members) {
            (Form::Document { run_events, .. }, [only]) => run_events(only.bytes, limits, visit),
            (Form::Document { .. }, _) => Ok(()),
            (Form::Directory { run_events, .. }, members) => run_events(members, limits, visit),
        }
    }

    /// How the responses that artifacts of this kind record are played back, if they record any themselves.
    #[must_use]
    pub fn playback(self) -> Option<Playback> {
        self.0.playback
    }

    /// What its artifacts contain, as tables.
    #[must_use]
    pub fn tables(self) -> &'static [Table] {
        self.0.tables
    }

    /// The responses that an admitted `document` recorded, in order.
    ///
    /// # Errors
    /// What keeps the document from being read.
    pub fn exchanges(self, document: &[u8], limits: &Limits) -> Result<Vec<Exchange>, ReadError> {
        match self.0.form {
            Form::Document { exchanges, .. } => exchanges(document, limits),
            Form::Directory { .. } => Ok(Vec::new()),
        }
    }

    /// What an admitted `document` says at the interaction, step or record `index`, as it is written there; nothing if the
    /// kind has no such parts.
    #[must_use]
    pub fn quote(self, document: &[u8], index: usize) -> Option<String> {
        match self.0.form {
            Form::Document { quote, .. } => quote(document, index),
            Form::Directory { .. } => None,
        }
    }

    /// What an admitted artifact of these `members` is compared by.
    ///
    /// # Errors
    /// What keeps a member from being read.
    pub fn parts<'d>(self, members: &[MemberBytes<'d>], limits: &Limits) -> Result<Vec<Part<'d>>, ReadError> {
        match (&self.0.form, members) {
            (Form::Document { parts, .. }, [only]) => parts(only.bytes, limits),
            (Form::Document { .. }, _) => Ok(Vec::new()),
            (Form::Directory { parts, .. }, members) => parts(members, limits),
        }
    }

    /// The texts of an admitted artifact of these `members` that people search, but for those of artifacts that are part
    /// of it. The same members always give the same texts in the same order.
    ///
    /// # Errors
    /// What keeps a member from being read.
    pub fn passages(self, members: &[MemberBytes<'_>], limits: &Limits) -> Result<Vec<Passage>, ReadError> {
        match (&self.0.form, members) {
            (Form::Document { passages, .. }, [only]) => passages(only.bytes, limits),
            (Form::Document { .. }, _) => Ok(Vec::new()),
            (Form::Directory { passages, .. }, members) => passages(members, limits),
        }
    }
}

impl PartialEq for Kind {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name()
    }
}

impl Eq for Kind {}

impl fmt::Debug for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

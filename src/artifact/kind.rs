use std::cmp::Ordering;
use std::fmt;
use std::io::{self, Write};
use std::ops::Deref;

use super::directory::{Directory, EntryContent, MemberBytes, manifest_of};
use super::document::ValueReservation;
use super::{
    AdmitOptions, Admitted, Artifact, ArtifactView, AttributeInfo, Draft, EventVisitor, Field,
    JoinedDocument, Member, MentionedContent, Part, Passage, Playback, PredecessorReference, StepVisitor,
    SuccessorCriteria, Table,
};
use crate::digest::{BlobHash, CaptureHash};
use crate::json::reader::{Limits, ReadError};
use crate::secrets::{self, SecretMatch, SecretPolicy};
use crate::validation::{Findings, Report, RuleInfo, Violation};

/// The declarations of a kind.
#[derive(Clone, Copy)]
#[expect(clippy::struct_excessive_bools, reason = "each is a declaration of the kind")]
pub struct KindInfo {
    /// The kind's name, such as `model_io`.
    pub name: &'static str,
    /// The noun for one of its artifacts, such as `session`.
    pub noun: &'static str,
    /// The plural noun for its artifacts, such as `sessions`, which is also the name of their SQL view.
    pub plural: &'static str,
    /// The file names that its artifacts can contain. Other files of directories are not read.
    pub members: &'static [&'static str],
    /// The rule that is broken by anything that is not a directory or cannot be read as one, if its artifacts are
    /// directories and not single documents.
    pub directory_rule: Option<RuleInfo>,
    /// File names that the format defines for its documents: whole names, or `*` and a suffix.
    pub file_names: &'static [&'static str],
    /// The relation of an artifact of this kind to every artifact that states its core hash.
    pub inverse_relation: Option<&'static str>,
    /// The attributes that its artifacts can have, sorted by name.
    pub attributes: &'static [AttributeInfo],
    /// Whether artifacts of this kind record runs, so that they can be audited against contracts.
    pub is_run: bool,
    /// How a longer version of a document is detected, if documents are written incrementally: then a document may also
    /// [continue](Artifact::continues) another.
    pub versions: Option<SuccessorCriteria>,
    /// Whether its artifacts can be signed.
    pub can_be_signed: bool,
    /// How recorded responses are replayed, if artifacts of this kind record any.
    pub playback: Option<Playback>,
    /// Whether any bytes are an artifact of this kind, whose core hash is their digest. Most documents are of such a kind
    /// only on request, and are not recognized by their content.
    pub takes_any_bytes: bool,
    /// The searchable fields that only its artifacts have.
    pub fields: &'static [Field],
    /// The SQL view of its artifacts.
    pub view: ArtifactView,
    /// The contents whose digests its artifacts state, and which a vault can have as artifacts of their own.
    pub contents: &'static [MentionedContent],
    /// The SQL tables of its contents.
    pub tables: &'static [Table],
    /// The noun for a step of the transcript of an artifact, such as `interaction`.
    pub step_noun: &'static str,
    /// The beginning of the locations within a step, before its number, and the number of the first step.
    pub step_prefix: Option<(&'static str, u64)>,
    /// The beginning of the locations within steps that follow those, before their own number from 0, and the type that
    /// only these steps have.
    pub further_steps: Option<(&'static str, &'static str)>,
    /// Whether transcripts contain the texts of the prompts that artifacts mention. Otherwise they have only digests.
    pub records_prompts: bool,
}

impl KindInfo {
    /// No declarations: a kind states its own names, members, attributes and view.
    pub const NONE: Self = Self {
        name: "",
        noun: "",
        plural: "",
        members: &[],
        directory_rule: None,
        file_names: &[],
        inverse_relation: None,
        attributes: &[],
        is_run: false,
        versions: None,
        can_be_signed: false,
        playback: None,
        takes_any_bytes: false,
        fields: &[],
        view: ArtifactView { about: "", named_by: None, columns: &[] },
        contents: &[],
        tables: &[],
        step_noun: "step",
        step_prefix: None,
        further_steps: None,
        records_prompts: false,
    };
}

/// A kind of artifact, for use by the rest of the program.
#[derive(Clone, Copy)]
pub struct Kind(&'static dyn Artifact);

/// Returns what looks like a secret in files, unless that is not looked for.
fn secrets_in(members: &[Member], policy: SecretPolicy) -> Vec<SecretMatch> {
    if policy == SecretPolicy::Ignore {
        return Vec::new();
    }
    let of_member = |member: &Member| {
        let name = if members.len() > 1 { member.name() } else { "" };
        secrets::find(member.bytes()).into_iter().map(move |found| found.within(name)).collect::<Vec<_>>()
    };
    members.iter().flat_map(of_member).collect()
}

impl Kind {
    /// Creates the handle of a kind.
    #[must_use]
    pub const fn new(artifact: &'static dyn Artifact) -> Self {
        Self(artifact)
    }

    /// Returns the members, unless the artifacts are single documents and these are not one.
    fn expected<'m, 'd>(self, members: &'m [MemberBytes<'d>]) -> Option<&'m [MemberBytes<'d>]> {
        (self.is_of_directories() || members.len() == 1).then_some(members)
    }

    /// Returns the name, such as `model_io`.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.info().name
    }

    /// Returns the noun for one of its artifacts, such as `session`.
    #[must_use]
    pub fn noun(self) -> &'static str {
        self.info().noun
    }

    /// Returns whether users call the kind by this name: its name, its noun or its plural noun, in singular or plural,
    /// with spaces, hyphens or underscores between words.
    #[must_use]
    pub fn is_called(self, name: &str) -> bool {
        let name = name.to_lowercase().replace(['-', '_'], " ");
        let name = name.strip_suffix('s').unwrap_or(&name);
        [self.name(), self.noun(), self.plural()]
            .into_iter()
            .any(|own| own.strip_suffix('s').unwrap_or(own).replace('_', " ") == *name)
    }

    /// Returns the plural noun for its artifacts, such as `sessions`.
    #[must_use]
    pub fn plural(self) -> &'static str {
        self.info().plural
    }

    /// Returns the name of the single file of its artifacts, or `None` if they are directories.
    #[must_use]
    pub fn document_member(self) -> Option<&'static str> {
        self.members().first().copied().filter(|_| !self.is_of_directories())
    }

    /// Returns the relation of its artifacts to every artifact that states their core hash, if the kind defines one.
    #[must_use]
    pub fn inverse_relation(self) -> Option<&'static str> {
        self.info().inverse_relation
    }

    /// Returns the attributes that its artifacts can have, sorted by name.
    #[must_use]
    pub fn attributes(self) -> &'static [AttributeInfo] {
        self.info().attributes
    }

    /// Returns whether its artifacts are directories and not single documents.
    #[must_use]
    pub fn is_of_directories(self) -> bool {
        self.info().directory_rule.is_some()
    }

    /// Returns the file names that its artifacts can contain.
    #[must_use]
    pub fn members(self) -> &'static [&'static str] {
        self.info().members
    }

    /// Returns whether the file name is one that the format defines for its documents.
    #[must_use]
    pub fn owns_file_name(self, file_name: &str) -> bool {
        self.info().file_names.iter().any(|pattern| match pattern.strip_prefix('*') {
            Some(ending) => file_name.len() > ending.len() && file_name.ends_with(ending),
            None => file_name == *pattern,
        })
    }

    /// Parses `document`, canonicalizes it and applies every rule.
    ///
    /// # Errors
    /// Returns the report if a rule of severity error is broken. There are no other errors: admission does no I/O.
    pub fn admit(self, document: Vec<u8>, options: &AdmitOptions) -> Result<Admitted, Report> {
        let Some(member) = self.document_member() else {
            return Err(self.unreadable("", "this is a document, neither a directory nor an archive"));
        };
        let mut findings = Findings::default();
        // Bytes that are not parsed have no values.
        let room =
            ValueReservation::take((!self.info().takes_any_bytes).then_some(document.as_slice()).into_iter());
        let draft = self.0.examine(&document, options, &mut findings);
        drop(room);
        let known =
            draft.as_ref().filter(|_| self.info().takes_any_bytes).map(|draft| BlobHash(draft.core.0));
        self.admitted(draft, findings, options.secrets, || {
            let member = match known {
                Some(blob) => Member::hashed(member, document, blob),
                None => Member::new(member, document),
            };
            (CaptureHash(member.blob().0), vec![member], None)
        })
    }

    /// Admits `document`, which is a `rest`, joined to the part of the admitted `beginning` that precedes it.
    ///
    /// # Errors
    /// Returns the report on the whole, with locations relative to `document`.
    pub fn admit_joined(
        self,
        beginning: &[u8],
        rest: &PredecessorReference,
        document: &[u8],
        options: &AdmitOptions,
    ) -> Result<Admitted, Report> {
        let limits = &options.limits;
        let Some(JoinedDocument { document, lines }) = self.0.join(beginning, rest, document) else {
            let message = format!("the {} that it continues was not found", rest.what);
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
    /// Returns the report if a rule of severity error is broken.
    pub fn admit_directory(self, directory: Directory, options: &AdmitOptions) -> Result<Admitted, Report> {
        if !self.is_of_directories() {
            return Err(Violation::new(super::document::UNRECOGNISED, "", "this is not a document").into());
        }
        let names = self.members();
        let mut findings = Findings::default();
        let files = directory.entries.iter().filter_map(|entry| match &entry.content {
            EntryContent::File(bytes) => Some(bytes.as_slice()),
            EntryContent::Unexpected | EntryContent::Link | EntryContent::Other => None,
        });
        let room = ValueReservation::take(files);
        let draft = self.0.examine_directory(&directory, options, &mut findings);
        drop(room);
        self.admitted(draft, findings, options.secrets, || {
            let files = directory.entries.into_iter().filter_map(|entry| match entry.content {
                EntryContent::File(bytes) => {
                    names.iter().find(|name| **name == entry.name).map(|name| Member::new(name, bytes))
                }
                EntryContent::Unexpected | EntryContent::Link | EntryContent::Other => None,
            });
            let mut members: Vec<Member> = files.collect();
            members.sort_unstable_by(|one, other| one.name().cmp(other.name()));
            let manifest = manifest_of(members.iter().map(|member| (member.name(), member.blob())));
            let manifest = Member::new("", manifest);
            (CaptureHash(manifest.blob().0), members, Some(manifest))
        })
    }

    fn admitted(
        self,
        draft: Option<Draft>,
        mut findings: Findings,
        policy: SecretPolicy,
        keep: impl FnOnce() -> (CaptureHash, Vec<Member>, Option<Member>),
    ) -> Result<Admitted, Report> {
        if draft.as_ref().is_some_and(|draft| draft.pointer_bytes > super::draft::MAX_POINTER_BYTES) {
            super::document::report_pointers(&mut findings);
        }
        let report = findings.into_report();
        match draft {
            Some(mut draft) if report.is_acceptable() => {
                draft.make_sets(self.attributes());
                let (capture, members, manifest) = keep();
                let secrets = secrets_in(&members, policy);
                if policy == SecretPolicy::Refuse && !secrets.is_empty() {
                    return Err(super::document::secret(&secrets));
                }
                Ok(Admitted {
                    kind: self,
                    capture,
                    members,
                    manifest,
                    draft,
                    report,
                    secrets,
                    is_derived: false,
                })
            }
            _ => Err(report),
        }
    }

    /// Returns the report on an entry at `path` that artifacts of this kind cannot contain.
    #[must_use]
    pub fn unreadable(self, path: &str, message: &str) -> Report {
        let rule = self.info().directory_rule.unwrap_or(super::document::UNRECOGNISED);
        Violation::new(rule, path, message).into()
    }

    /// Writes the canonical bytes whose SHA-256 is the core hash of an admitted artifact of these `members`.
    ///
    /// # Errors
    /// Returns an error if `out` cannot be written to, and one of kind `InvalidData` if the members were not admitted.
    pub fn write_core(self, members: &[MemberBytes<'_>], out: &mut dyn Write) -> io::Result<()> {
        self.expected(members)
            .map_or(Err(io::ErrorKind::InvalidData.into()), |members| self.0.write_core(members, out))
    }
}

impl Kind {
    /// Calls `visit` with the run events recorded in an admitted artifact of these `members`, in order.
    ///
    /// # Errors
    /// Returns an error if a member cannot be read.
    pub fn run_events(
        self,
        members: &[MemberBytes<'_>],
        visit: &mut EventVisitor<'_>,
    ) -> Result<(), ReadError> {
        self.expected(members).map_or(Ok(()), |members| self.0.run_events(members, visit))
    }

    /// Returns the parts by which an admitted artifact of these `members` is compared.
    ///
    /// # Errors
    /// Returns an error if a member cannot be read.
    pub fn parts<'d>(self, members: &[MemberBytes<'d>]) -> Result<Vec<Part<'d>>, ReadError> {
        self.expected(members).map_or(Ok(Vec::new()), |members| self.0.parts(members))
    }

    /// Returns the searchable texts of an admitted artifact of these `members`, without those of embedded artifacts.
    /// The result is deterministic.
    ///
    /// # Errors
    /// Returns an error if a member cannot be read.
    pub fn passages(self, members: &[MemberBytes<'_>]) -> Result<Vec<Passage>, ReadError> {
        self.expected(members).map_or(Ok(Vec::new()), |members| self.0.passages(members))
    }

    /// Returns the number of the step of a transcript that a location in an artifact is, or is in, such as `step 3`.
    #[must_use]
    pub fn step_at(self, place: &str) -> Option<u64> {
        if let Some(number) =
            place.strip_prefix(self.info().step_noun).and_then(|rest| rest.strip_prefix(' '))
        {
            return number.parse().ok();
        }
        let (prefix, first) = self.info().step_prefix?;
        number_after(prefix, place)?.checked_sub(first)
    }

    /// Returns the number, among the steps of a type of their own, of the step that a location is in.
    #[must_use]
    pub fn further_step_at(self, place: &str) -> Option<u64> {
        let (prefix, _) = self.info().further_steps?;
        number_after(prefix, place)
    }

    /// Returns the type of the steps that [`Kind::further_step_at`] numbers.
    #[must_use]
    pub fn further_step_type(self) -> Option<&'static str> {
        self.info().further_steps.map(|(_, step_type)| step_type)
    }

    /// Calls `visit` with the steps of the transcript of an admitted artifact of these `members`, in reading order.
    ///
    /// # Errors
    /// Returns an error if a member cannot be read.
    pub fn transcript(
        self,
        members: &[MemberBytes<'_>],
        visit: &mut StepVisitor<'_>,
    ) -> Result<(), ReadError> {
        self.expected(members).map_or(Ok(()), |members| self.0.transcript(members, visit))
    }
}

/// Returns the number that follows `prefix` in a location.
fn number_after(prefix: &str, place: &str) -> Option<u64> {
    place.strip_prefix(prefix)?.split(['/', ' ']).next()?.parse().ok()
}

/// The declarations of the kind, and what it reads from its documents.
impl Deref for Kind {
    type Target = dyn Artifact;

    fn deref(&self) -> &Self::Target {
        self.0
    }
}

impl PartialEq for Kind {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name()
    }
}

impl Eq for Kind {}

impl PartialOrd for Kind {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Kind {
    fn cmp(&self, other: &Self) -> Ordering {
        self.name().cmp(other.name())
    }
}

impl fmt::Debug for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

//! The steps of a transcript as data.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::ControlFlow;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::artifact::{
    ArtifactLocation, BodyContent, BodyRole, Kind, StepBody, StepClass, TranscriptStep, group,
};
use crate::digest::{CoreHash, Digest};
use crate::formats;
use crate::json::pretty::TruncatedText;
use crate::json::reader::{self, Limits};
use crate::storage::{ArtifactRecord, ErrorKind, Snapshot, StorageError, StoredMember};
use crate::vault::api::{PlaceSummary, Timestamp};

/// A step of a transcript.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ViewStep {
    /// The number of the step, from 0.
    pub index: u64,
    /// The type as the document or its format calls it, such as `tool.request`.
    #[serde(rename = "type")]
    pub step_type: String,
    /// The class of the type.
    pub class: StepClass,
    /// What the step is about, such as the name of a tool.
    pub title: Option<String>,
    /// The time that the step states: that of its start if it states several.
    pub time: Option<Timestamp>,
    /// The duration in milliseconds that the step states or that follows from its times.
    pub duration_ms: Option<u64>,
    /// Number of tokens in the request, if stated.
    pub tokens_in: Option<u64>,
    /// Number of tokens in the response, if stated.
    pub tokens_out: Option<u64>,
    /// How the step ended or what it may do, in the words of the document, such as `skipped`.
    pub status: Option<String>,
    /// Whether the step records a failure.
    pub failed: bool,
    /// The number of the step with the request that this one answers.
    pub answers: Option<u64>,
    /// The digest by which the step is known: its own hash, or the core hash of an artifact in the pack.
    pub digest: Option<Digest>,
    /// The size of the file that the step is about, in bytes.
    pub size: Option<u64>,
    /// The texts, values and digests of the step, in reading order.
    pub bodies: Vec<ViewBody>,
    /// The step as the document records it, as JSON or text; only if it was requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recorded: Option<ViewBody>,
}

/// A text, value or digest of a step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ViewBody {
    /// Its role.
    pub role: BodyRole,
    /// Its name, if a step has several in one role, such as `before`.
    pub name: Option<String>,
    /// The format of `text`.
    pub format: BodyFormat,
    /// The text, JSON with a line for each value; only its beginning if `omitted` is not 0. `None` if there is none.
    pub text: Option<String>,
    /// The size of the whole text, or of the bytes that are not text, in bytes.
    pub size: u64,
    /// Number of characters at the end that `text` does not contain.
    pub omitted: u64,
    /// The digest by which the content is known. The prompts and responses of other artifacts have the same.
    pub digest: Option<Digest>,
    /// Where the text comes from.
    pub source: BodySource,
}

/// The format of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum BodyFormat {
    /// Plain text.
    Text,
    /// JSON.
    Json,
    /// Bytes that are not text, and are not part of the answer.
    Binary,
    /// Nothing but a digest.
    Digest,
}

/// Where the text of a body comes from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub enum BodySource {
    /// From the artifact itself.
    Recorded,
    /// From another artifact: this one states only the digest.
    Resolved {
        /// The other artifact.
        core_hash: CoreHash,
        /// The id of its kind.
        kind: String,
        /// The location in it, if it is not all of it.
        place: Option<PlaceSummary>,
    },
    /// The artifact states only the digest, and no text with it was found.
    NotRecorded,
}

/// The digests and sizes of the files of an artifact that has several, by name.
pub(super) type FilesByName = HashMap<String, (Option<Digest>, u64)>;

/// Returns the files of an artifact of a kind whose artifacts have several.
pub(super) fn file_steps(
    snapshot: &dyn Snapshot,
    core: CoreHash,
    kind: Kind,
    members: &[StoredMember],
) -> Result<FilesByName, StorageError> {
    if !kind.is_of_directories() {
        return Ok(FilesByName::new());
    }
    let sizes = members.iter().map(|member| (member.name.clone(), (None, member.bytes.len() as u64)));
    let mut files: FilesByName = sizes.collect();
    for mention in snapshot.mentions_of(core, group::MEMBER)? {
        if let ArtifactLocation::Pointer(name) = &mention.place
            && let Some((digest, _)) = files.get_mut(name)
        {
            *digest = Some(mention.digest);
        }
    }
    Ok(files)
}

impl ViewStep {
    /// Creates the step. At most `most` characters of each text are kept; `recorded` is whether to include the step as
    /// it is recorded.
    pub(super) fn new(step: &TranscriptStep<'_>, files: &FilesByName, most: u64, recorded: bool) -> Self {
        let file = step.member.and_then(|name| files.get(name)).copied();
        Self {
            index: step.index as u64,
            step_type: step.step_type.clone().into_owned(),
            class: step.class,
            title: step.title.as_ref().map(|title| title.clone().into_owned()),
            time: step.time.map(Timestamp),
            duration_ms: step.duration_ms,
            tokens_in: step.tokens_in,
            tokens_out: step.tokens_out,
            status: step.status.as_ref().map(|status| status.clone().into_owned()),
            failed: step.failed,
            answers: step.answers.map(|answers| answers as u64),
            digest: step.digest.or_else(|| file.and_then(|(digest, _)| digest)),
            size: file.map(|(_, size)| size),
            bodies: step.bodies.iter().map(|body| ViewBody::named(body, most)).collect(),
            recorded: recorded.then(|| ViewBody::new(BodyRole::Content, &step.recorded, most)),
        }
    }
}

impl ViewBody {
    fn named(body: &StepBody<'_>, most: u64) -> Self {
        Self { name: body.name.map(str::to_owned), ..Self::new(body.role, &body.content, most) }
    }

    /// Creates a body without a name, of whose text at most `most` characters are kept.
    pub(in crate::vault) fn new(role: BodyRole, content: &BodyContent<'_>, most: u64) -> Self {
        // The digests of other texts are in no index.
        let has_digest = matches!(role, BodyRole::Context | BodyRole::Prompt | BodyRole::Response);
        let is_digest = matches!(content, BodyContent::Digest(_));
        let mut view = Self {
            role,
            name: None,
            format: BodyFormat::Digest,
            text: None,
            size: 0,
            omitted: 0,
            digest: if has_digest || is_digest { content.digest() } else { None },
            source: if is_digest { BodySource::NotRecorded } else { BodySource::Recorded },
        };
        view.fill(content, most);
        view
    }

    /// Sets the text, of which at most `most` characters are kept.
    fn fill(&mut self, content: &BodyContent<'_>, most: u64) {
        let (format, truncated) = match content {
            BodyContent::Text(text) => (BodyFormat::Text, TruncatedText::from_text(text, most)),
            BodyContent::Json(value) => (BodyFormat::Json, TruncatedText::from_value(value, most)),
            BodyContent::OwnedJson(value) => (BodyFormat::Json, TruncatedText::from_value(value, most)),
            BodyContent::Digest(_) => return,
            BodyContent::Binary(size) => {
                (self.format, self.size) = (BodyFormat::Binary, *size as u64);
                return;
            }
        };
        self.format = format;
        (self.size, self.omitted) = (truncated.size, truncated.omitted);
        self.text = Some(truncated.text);
    }
}

/// Maximum number of documents that are read for one answer.
const MAX_READ: usize = 256;

/// Adds the texts of the bodies of which the artifact `viewed` states only the digest, as far as the vault has them. At
/// most `most` characters of each are kept.
pub(super) fn resolve_texts(
    snapshot: &dyn Snapshot,
    viewed: CoreHash,
    steps: &mut [ViewStep],
    most: u64,
) -> Result<(), StorageError> {
    let unresolved = |step: &ViewStep| {
        let bodies = step.bodies.iter().filter(|body| body.source == BodySource::NotRecorded);
        bodies.filter_map(|body| Some((body.digest?, body.role))).collect::<Vec<_>>()
    };
    let unresolved_bodies: Vec<(Digest, BodyRole)> = steps.iter().flat_map(unresolved).collect();
    if unresolved_bodies.is_empty() {
        return Ok(());
    }
    let mut found = ViewBodyResolver { snapshot, viewed: Some(viewed), most, texts: HashMap::new(), read: 0 };
    found.attachments(unresolved_bodies.iter().map(|(digest, _)| *digest))?;
    found.prompts(
        unresolved_bodies.iter().filter(|(_, role)| *role == BodyRole::Prompt).map(|(digest, _)| *digest),
    )?;
    let bodies = steps.iter_mut().flat_map(|step| &mut step.bodies);
    for body in bodies.filter(|body| body.source == BodySource::NotRecorded) {
        let Some(text) = body.digest.and_then(|digest| found.texts.get(&digest)) else { continue };
        let ViewBody { format, text, size, omitted, source, .. } = text.clone();
        (body.format, body.text, body.size, body.omitted, body.source) =
            (format, text, size, omitted, source);
    }
    Ok(())
}

/// Returns the texts of prompts, as far as the vault has them. At most `most` characters of each are kept.
pub(in crate::vault) fn prompt_texts(
    snapshot: &dyn Snapshot,
    digests: &[Digest],
    most: u64,
) -> Result<HashMap<Digest, ViewBody>, StorageError> {
    let mut found = ViewBodyResolver { snapshot, viewed: None, most, texts: HashMap::new(), read: 0 };
    found.attachments(digests.iter().copied())?;
    found.prompts(digests.iter().copied())?;
    for body in found.texts.values_mut() {
        body.role = BodyRole::Prompt;
    }
    Ok(found.texts)
}

/// The texts found so far.
struct ViewBodyResolver<'s> {
    snapshot: &'s dyn Snapshot,
    /// The artifact that is viewed, which is not looked up.
    viewed: Option<CoreHash>,
    most: u64,
    texts: HashMap<Digest, ViewBody>,
    /// The number of documents read.
    read: usize,
}

impl ViewBodyResolver<'_> {
    /// Reads the artifacts whose bytes have these digests.
    fn attachments(&mut self, digests: impl Iterator<Item = Digest>) -> Result<(), StorageError> {
        let mut cores: Vec<CoreHash> = digests.map(CoreHash).collect();
        cores.sort_unstable();
        cores.dedup();
        for artifact in self.snapshot.stored_artifacts(&cores)? {
            let kind = formats::named(&artifact.kind);
            if !kind.is_some_and(|kind| kind.info().takes_any_bytes) || Some(artifact.core) == self.viewed {
                continue;
            }
            let Some(members) = self.members(&artifact)? else { continue };
            let Some(only) = members.first() else { continue };
            // States and specifications are JSON documents.
            let value = reader::read(&only.bytes, &Limits::most());
            let value = value.ok().filter(|value| value.as_array().is_some() || value.as_object().is_some());
            let content = value.map_or_else(|| BodyContent::from_bytes(&only.bytes), BodyContent::OwnedJson);
            self.add(artifact.core.0, &content, &artifact, None);
        }
        Ok(())
    }

    /// Reads the artifacts that record these prompts. Each is read once, for all prompts that it has.
    fn prompts(&mut self, digests: impl Iterator<Item = Digest>) -> Result<(), StorageError> {
        let mut missing: Vec<Digest> = digests.filter(|digest| !self.texts.contains_key(digest)).collect();
        missing.sort_unstable();
        missing.dedup();
        let kinds = formats::ALL.into_iter().filter(|kind| kind.info().records_prompts);
        let kinds: Vec<String> = kinds.map(|kind| kind.name().to_owned()).collect();
        let candidates = self.snapshot.candidates(&missing, &kinds)?;
        let mut recording: BTreeMap<CoreHash, Vec<Digest>> = BTreeMap::new();
        for (digest, candidates) in missing.iter().zip(candidates) {
            for core in candidates.into_iter().filter(|core| Some(*core) != self.viewed) {
                recording.entry(core).or_default().push(*digest);
            }
        }
        // In this order, the text of a prompt comes from the same artifact whatever else is looked up.
        let mut left: HashSet<Digest> = missing.into_iter().collect();
        for (core, prompts) in recording {
            if prompts.iter().any(|digest| left.contains(digest)) {
                self.prompts_of(core, &prompts, &mut left)?;
            }
        }
        Ok(())
    }

    /// Adds those of the prompts that are `left` which the artifact records. It is expected to record `prompts`.
    fn prompts_of(
        &mut self,
        core: CoreHash,
        prompts: &[Digest],
        left: &mut HashSet<Digest>,
    ) -> Result<(), StorageError> {
        let Some(artifact) = self.snapshot.artifact(core)? else { return Ok(()) };
        let Some(kind) = formats::named(&artifact.kind) else { return Ok(()) };
        let Some(members) = self.members(&artifact)? else { return Ok(()) };
        if let [document] = members.as_slice() {
            // A document that this program cannot interpret has no texts.
            drop(kind.requests(&document.bytes, &mut |request| {
                let digest = request.prompt_hash.filter(|digest| left.contains(digest));
                if let Some(digest) = digest
                    && let Some(text) = (request.prompt)()
                    && Digest::from_content(text.as_bytes()) == digest
                {
                    left.remove(&digest);
                    let index = u32::try_from(request.index).unwrap_or(u32::MAX);
                    let place = PlaceSummary::Index { unit: kind.info().step_noun.to_owned(), index };
                    self.add(digest, &BodyContent::Text(text.into()), &artifact, Some(place));
                }
                if left.is_empty() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            }));
        }
        if !prompts.iter().any(|digest| left.contains(digest)) {
            return Ok(());
        }
        drop(kind.transcript(&StoredMember::borrowed(&members), &mut |step| {
            let is_request_body = |role| matches!(role, BodyRole::Context | BodyRole::Prompt);
            for body in step.bodies.iter().filter(|body| is_request_body(body.role)) {
                let text = matches!(body.content, BodyContent::Text(_));
                let digest = body.content.digest().filter(|digest| text && left.remove(digest));
                if let Some(digest) = digest {
                    let index = u32::try_from(step.index).unwrap_or(u32::MAX);
                    let place = PlaceSummary::Index { unit: kind.info().step_noun.to_owned(), index };
                    self.add(digest, &body.content, &artifact, Some(place));
                }
            }
        }));
        Ok(())
    }

    fn add(
        &mut self,
        digest: Digest,
        content: &BodyContent<'_>,
        from: &ArtifactRecord,
        place: Option<PlaceSummary>,
    ) {
        let source = BodySource::Resolved { core_hash: from.core, kind: from.kind.clone(), place };
        let body = ViewBody { source, ..ViewBody::new(BodyRole::Content, content, self.most) };
        self.texts.insert(digest, body);
    }

    /// Returns the files of the preferred capture of an artifact, or `None` if they are damaged or enough was read.
    fn members(&mut self, artifact: &ArtifactRecord) -> Result<Option<Vec<StoredMember>>, StorageError> {
        if self.read == MAX_READ {
            return Ok(None);
        }
        self.read += 1;
        let Some(capture) = self.snapshot.preferred_capture(artifact.core)? else { return Ok(None) };
        match self.snapshot.read_members(artifact.core, capture.capture) {
            Ok(members) => Ok(Some(members)),
            // What is viewed is another artifact.
            Err(error) if error.kind() == ErrorKind::Damaged => Ok(None),
            Err(error) => Err(error),
        }
    }
}

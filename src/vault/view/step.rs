//! The steps of a transcript as data.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::artifact::{
    ArtifactLocation, BodyContent, BodyRole, Kind, StepBody, StepClass, TranscriptStep, group,
};
use crate::digest::{CoreHash, Digest};
use crate::json::pretty::TruncatedText;
use crate::storage::{Snapshot, StorageError, StoredMember};
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
pub(super) fn files(
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

//! The texts of digests: prompts from the runs that record them, and everything else from attachments.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::step::{BodySource, ViewBody, ViewStep};
use crate::artifact::{BodyContent, BodyRole, Kind};
use crate::digest::{CoreHash, Digest};
use crate::formats;
use crate::json::reader::{self, Limits};
use crate::storage::{ArtifactRecord, ErrorKind, Snapshot, StorageError, StoredMember};
use crate::vault::api::PlaceSummary;

/// Maximum number of documents that are read for one answer.
const MAX_READ: usize = 256;

/// Adds the texts of the bodies of which the artifact `viewed` states only the digest, as far as the vault has them. At
/// most `most` characters of each are kept.
pub(super) fn resolve(
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
            if !kind.is_some_and(Kind::takes_any_bytes) || Some(artifact.core) == self.viewed {
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
        let kinds = formats::ALL.into_iter().filter(|kind| kind.records_prompts());
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
                self.prompts_of(core, &mut left)?;
            }
        }
        Ok(())
    }

    /// Adds those of the prompts that are `left` which the artifact records.
    fn prompts_of(&mut self, core: CoreHash, left: &mut HashSet<Digest>) -> Result<(), StorageError> {
        let Some(artifact) = self.snapshot.artifact(core)? else { return Ok(()) };
        let Some(kind) = formats::named(&artifact.kind) else { return Ok(()) };
        let Some(members) = self.members(&artifact)? else { return Ok(()) };
        let visited = kind.transcript(&StoredMember::borrowed(&members), &Limits::most(), &mut |step| {
            let is_request_body = |role| matches!(role, BodyRole::Context | BodyRole::Prompt);
            for body in step.bodies.iter().filter(|body| is_request_body(body.role)) {
                let text = matches!(body.content, BodyContent::Text(_));
                let digest = body.content.digest().filter(|digest| text && left.remove(digest));
                if let Some(digest) = digest {
                    let index = u32::try_from(step.index).unwrap_or(u32::MAX);
                    let place = PlaceSummary::Index { unit: kind.step_noun().to_owned(), index };
                    self.add(digest, &body.content, &artifact, Some(place));
                }
            }
        });
        let [document] = members.as_slice() else { return Ok(()) };
        let restored = kind.requests(&document.bytes, &Limits::most(), &mut |request| {
            let digest = request.prompt_hash.filter(|digest| left.contains(digest));
            let Some((digest, text)) = digest.and_then(|digest| Some((digest, (request.prompt)()?))) else {
                return;
            };
            if Digest::from_content(text.as_bytes()) == digest {
                left.remove(&digest);
                let index = u32::try_from(request.index).unwrap_or(u32::MAX);
                let place = PlaceSummary::Index { unit: kind.step_noun().to_owned(), index };
                self.add(digest, &BodyContent::Text(text.into()), &artifact, Some(place));
            }
        });
        // A document that this program cannot interpret has no texts.
        drop((visited, restored));
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

//! Artifacts as resources: their exact bytes, by hash.

use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rmcp::model::{
    ErrorData, ListResourcesResult, MetaObject, ReadResourceResult, Resource, ResourceContents,
    ResourceTemplate,
};
use serde_json::Value;

use super::page::{self, MAX_RESULT_BYTES, McpCursor, NOTICE};
use super::work::{RecentBytes, ToolContext, ToolError};
use crate::artifact::Kind;
use crate::digest::{CoreHash, DigestPrefix};
use crate::display::brief;
use crate::formats;
use crate::storage::ErrorKind;
use crate::vault::LookupError;
use crate::vault::find::FindRequest;
use crate::vault::resolve::RequestedHashes;

/// The address of an artifact without its hash.
const ARTIFACT: &str = "runvault://artifact/";

/// What separates the hash from the number of the first byte.
const FROM: &str = "/from/";

/// Maximum length of an address in bytes. The longest that the server returns has about 120.
const MAX_ADDRESS: usize = 200;

/// Number of resources on a page of their list.
const LISTED: u64 = 50;

/// The bytes of a resource as JSON or base64 in a result. The rest is for addresses and metadata.
const ROOM: usize = MAX_RESULT_BYTES - 2_000;

/// Returns the addresses of all artifacts as templates.
pub(super) fn templates() -> Vec<ResourceTemplate> {
    let whole = ResourceTemplate::new(format!("{ARTIFACT}{{hash}}"), "artifact").with_description(format!(
        "The exact bytes of an artifact, by its core hash, if they fit into a result. {NOTICE}"
    ));
    let part = ResourceTemplate::new(format!("{ARTIFACT}{{hash}}{FROM}{{offset}}"), "artifact-part");
    let part = part.with_description(format!(
        "The bytes of an artifact from an offset on, as far as they fit into a result; the metadata of the contents have \
         the address of the next part. {NOTICE}"
    ));
    vec![whole, part]
}

/// Returns a page of the list of artifacts, those last seen first. Those of several files are omitted, because they have no
/// bytes of their own that could be read.
pub(super) fn list(work: &ToolContext<'_>, cursor: Option<&str>) -> Result<ListResourcesResult, ToolError> {
    let request = FindRequest {
        after: McpCursor::new(cursor).decode()?,
        all_versions: true,
        limit: Some(LISTED),
        ..FindRequest::default()
    };
    let answer = work.run(&request)?;
    let is_of_directories = |kind: &str| formats::named(kind).is_some_and(Kind::is_of_directories);
    let documents = answer.hits.iter().filter(|hit| !is_of_directories(&hit.artifact.kind));
    let resources = documents.map(|hit| {
        let (kind, core) = (formats::noun(&hit.artifact.kind), hit.artifact.core_hash);
        Resource::new(format!("{ARTIFACT}{core}"), format!("{:.12}", core.0)).with_description(kind)
    });
    let mut listed = ListResourcesResult::with_all_items(resources.collect());
    listed.next_cursor = answer.next.map(|next| page::encode_cursor(&next)).transpose()?;
    Ok(listed)
}

/// Returns the bytes at an address.
pub(super) fn read(work: &ToolContext<'_>, uri: &str) -> Result<ReadResourceResult, ToolError> {
    let invalid = || {
        ToolError::Invalid(format!(
            "{} is not the address of an artifact, such as {ARTIFACT}sha256:…",
            brief(uri)
        ))
    };
    // The result contains the address, so that the room for it is limited.
    if uri.len() > MAX_ADDRESS {
        return Err(invalid());
    }
    let name = uri.strip_prefix(ARTIFACT).ok_or_else(invalid)?;
    let (hash, from) = match name.split_once(FROM) {
        Some((hash, from)) => (hash, Some(from.parse::<usize>().map_err(|_| invalid())?)),
        None => (name, None),
    };
    let prefix: DigestPrefix = hash.parse().map_err(|_| invalid())?;
    work.check()?;
    let (core, bytes) = bytes(work, &prefix, from.is_some()).map_err(|error| match error {
        LookupError::SeveralMembers { .. } => {
            ToolError::Invalid(format!("{error}; the tool read_run has each of them as a step"))
        }
        error => error.into(),
    })?;
    work.check()?;
    let size = bytes.as_bytes().len();
    let part = part_of(&bytes, from.unwrap_or(0))
        .ok_or_else(|| ToolError::Invalid(format!("{core} has {size} bytes")))?;
    let end = from.unwrap_or(0) + part.len();
    let next = (end < size).then(|| format!("{ARTIFACT}{core}{FROM}{end}"));
    if let (None, Some(_)) = (from, &next) {
        return Err(ToolError::Invalid(format!(
            "{core} has {size} bytes, which do not fit into a result; read it in parts, beginning with \
             {ARTIFACT}{core}{FROM}0"
        )));
    }
    let mut meta = MetaObject::new();
    meta.insert("runvault/notice".to_owned(), NOTICE.into());
    meta.insert("runvault/size".to_owned(), size.into());
    meta.insert("runvault/next".to_owned(), next.map_or(Value::Null, Value::from));
    let contents = match part {
        ResourcePart::Text(text) => ResourceContents::text(text, uri).with_mime_type("text/plain"),
        ResourcePart::Bytes(bytes) => {
            ResourceContents::blob(STANDARD.encode(bytes), uri).with_mime_type("application/octet-stream")
        }
    };
    Ok(ReadResourceResult::new(vec![contents.with_meta(meta)]))
}

/// Returns the bytes of an artifact or a capture: those that were read last, if this is a further part of them. What the
/// catalog does not lead to is found by its full hash.
fn bytes(
    work: &ToolContext<'_>,
    prefix: &DigestPrefix,
    is_further: bool,
) -> Result<(CoreHash, Arc<RecentBytes>), LookupError> {
    let known = |key| work.recent.bytes(key).filter(|_| is_further);
    let found = || {
        let located = work.vault.locate(prefix)?;
        let core = located.artifact.core;
        let key = (core, located.capture.capture);
        match known(key) {
            Some(known) => Ok((core, known)),
            None => Ok((core, work.recent.remember_bytes(key, work.vault.read(&located)?))),
        }
    };
    let requested = RequestedHashes { artifact: Some(prefix), ..RequestedHashes::default() };
    work.vault.or_recovered(found(), &requested, |recovered| {
        // Only a full hash leads to them.
        let digest = prefix.whole()?;
        let bytes = RecentBytes::from(recovered.into_document()?);
        Some((CoreHash(digest), Arc::new(bytes)))
    })
}

/// A part of an artifact.
enum ResourcePart<'b> {
    Text(&'b str),
    Bytes(&'b [u8]),
}

impl ResourcePart<'_> {
    fn len(&self) -> usize {
        match self {
            Self::Text(text) => text.len(),
            Self::Bytes(bytes) => bytes.len(),
        }
    }
}

/// Returns the bytes from an offset on that fit into a result: as text if all of them are and the offset is not within a
/// character. `None` if the offset is behind the end.
fn part_of(bytes: &RecentBytes, from: usize) -> Option<ResourcePart<'_>> {
    if let RecentBytes::Text(text) = bytes
        && let Some(text) = text.get(from..)
    {
        let mut used = 0;
        let fits = |character: char| {
            used += match character {
                '"' | '\\' | '\n' | '\r' | '\t' => 2,
                '\0'..'\u{20}' => 6,
                other => other.len_utf8(),
            };
            used <= ROOM
        };
        let len = text.chars().take_while({
            let mut fits = fits;
            move |character| fits(*character)
        });
        let len = len.map(char::len_utf8).sum::<usize>();
        return text.get(..len).map(ResourcePart::Text);
    }
    let rest = bytes.as_bytes().get(from..)?;
    Some(ResourcePart::Bytes(rest.get(..ROOM / 4 * 3).unwrap_or(rest)))
}

/// Returns the error of the protocol for a resource that cannot be listed or read.
pub(super) fn error(error: &ToolError, message: String) -> ErrorData {
    match error {
        ToolError::Invalid(_) | ToolError::Cursor => ErrorData::invalid_params(message, None),
        ToolError::Store(error) if error.kind() == ErrorKind::Gone => {
            ErrorData::resource_not_found(message, None)
        }
        ToolError::Store(_)
        | ToolError::Lookup(LookupError::Store(_) | LookupError::Unreadable { .. })
        | ToolError::Cancelled
        | ToolError::Json(_) => ErrorData::internal_error(message, None),
        _ => ErrorData::resource_not_found(message, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole(bytes: &[u8]) -> (Vec<u8>, usize) {
        let (mut all, mut parts) = (Vec::new(), 0);
        let bytes = RecentBytes::from(bytes.to_vec());
        while let Some(part) = part_of(&bytes, all.len()).filter(|part| part.len() > 0) {
            match part {
                ResourcePart::Text(text) => {
                    assert!(serde_json::to_string(text).unwrap().len() <= ROOM + 2);
                    all.extend(text.as_bytes());
                }
                ResourcePart::Bytes(bytes) => {
                    assert!(STANDARD.encode(bytes).len() <= ROOM);
                    all.extend(bytes);
                }
            }
            parts += 1;
        }
        (all, parts)
    }

    #[test]
    fn parts_make_the_whole() {
        let text = "é\"\n\u{1}😀".repeat(20_000).into_bytes();
        let bytes: Vec<u8> = (0..=255).cycle().take(100_000).collect();
        for (bytes, least) in [(&text[..], 10), (&bytes, 6), (b"short", 1), (b"", 0)] {
            let (all, parts) = whole(bytes);
            assert!(all == bytes && parts >= least, "{parts}");
        }
        let recent = |bytes: &[u8]| RecentBytes::from(bytes.to_vec());
        assert!(part_of(&recent(b"short"), 6).is_none() && part_of(&recent("é".as_bytes()), 1).is_some());
    }
}

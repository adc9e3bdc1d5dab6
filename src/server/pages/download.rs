//! The bytes of captures and cores, and the files that pages refer to.

use std::fmt::Display;

use serde::Deserialize;

use crate::digest::DigestPrefix;
use crate::server::visit::{Download, PageError, PageRequest, ResponseContent, asset_named};
use crate::vault::resolve::{RecoveredFiles, RequestedHashes, ResolveRequest};
use crate::vault::{LocatedCapture, LookupError, Vault};

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Parameters {
    capture: Option<String>,
    member: Option<String>,
}

/// A requested capture, by the texts of an address.
struct DownloadRequest<'v> {
    vault: &'v Vault,
    artifact: ResolveRequest,
    capture: Option<DigestPrefix>,
    member: Option<String>,
    is_core: bool,
}

/// Returns the bytes of a capture, or of one of its files. What the catalog does not lead to is found by its full hash.
pub(in crate::server) fn bytes(visit: &PageRequest<'_>) -> Result<ResponseContent, PageError> {
    let request = DownloadRequest::new(visit)?;
    let member = request.member.as_deref();
    let name = |hash: &dyn Display| match member {
        Some(member) => format!("{hash:.12}-{member}"),
        None => format!("{hash:.12}"),
    };
    let (found, name) = request.or_recovered(
        |located| {
            let name = name(&located.capture.capture);
            let Some(member) = member else { return Ok((Some(visit.vault.read(located)?), name)) };
            let members = visit.vault.members(located)?.into_iter();
            Ok((members.into_iter().find(|one| one.name == member).map(|one| one.bytes), name))
        },
        |recovered| {
            let name = name(request.capture.as_ref().or(request.artifact.prefix().as_ref())?);
            let bytes = match member {
                Some(member) => recovered.into_member(member),
                None => Some(recovered.into_document()?),
            };
            Some((bytes, name))
        },
    )?;
    let no_file = || PageError::BadRequest(format!("it has no file {}", member.unwrap_or_default()));
    Ok(download(found.ok_or_else(no_file)?, &name))
}

/// Returns the canonical text that the core hash is the digest of.
pub(in crate::server) fn core(visit: &PageRequest<'_>) -> Result<ResponseContent, PageError> {
    let request = DownloadRequest { is_core: true, ..DownloadRequest::new(visit)? };
    let (core, bytes) = request.or_recovered(
        |located| Ok((located.artifact.core, visit.vault.read_core(located)?)),
        |recovered| Some((recovered.artifact?.0, recovered.core()?)),
    )?;
    Ok(download(bytes, &format!("{core:.12}.core")))
}

/// Returns the style sheet or the script.
pub(in crate::server) fn asset(visit: &PageRequest<'_>) -> Result<ResponseContent, PageError> {
    asset_named(visit.name).map(ResponseContent::Asset).ok_or(PageError::NoPage)
}

impl<'v> DownloadRequest<'v> {
    fn new(visit: &PageRequest<'v>) -> Result<Self, PageError> {
        let Parameters { capture, member } = visit.parameters()?;
        let capture = capture.map(|text| text.parse()).transpose();
        let capture = capture.map_err(|error| PageError::BadRequest(format!("{error}")))?;
        let artifact = ResolveRequest::new(visit.name);
        Ok(Self { vault: visit.vault, artifact, capture, member, is_core: false })
    }

    /// Returns what `read` returns for the requested capture or the preferred one, or what `take` makes of its files if
    /// the catalog does not lead to them.
    fn or_recovered<T>(
        &self,
        read: impl FnOnce(&LocatedCapture) -> Result<T, LookupError>,
        take: impl FnOnce(RecoveredFiles) -> Option<T>,
    ) -> Result<T, LookupError> {
        let found = || {
            let located = self.artifact.locate(self.vault)?;
            let located = match &self.capture {
                Some(capture) => self.vault.capture_of(&located, capture)?,
                None => located,
            };
            read(&located)
        };
        let artifact = self.artifact.prefix();
        let requested = RequestedHashes {
            artifact: artifact.as_ref(),
            capture: self.capture.as_ref(),
            is_core: self.is_core,
        };
        self.vault.or_recovered(found(), &requested, take)
    }
}

fn download(bytes: Vec<u8>, name: &str) -> ResponseContent {
    ResponseContent::Download(Download { file_name: safe(name), bytes })
}

/// Returns `name` with only those characters that every system permits in file names.
pub(in crate::server) fn safe(name: &str) -> String {
    let is_safe = |character: char| character.is_ascii_alphanumeric() || matches!(character, '.' | '-' | '_');
    name.chars().map(|character| if is_safe(character) { character } else { '-' }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_names_have_no_paths_or_quotes() {
        assert_eq!(safe("ab12-sub/../a\"b\r\né.json"), "ab12-sub-..-a-b---.json");
    }
}

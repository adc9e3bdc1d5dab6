//! The bytes of captures and cores, and the files that pages refer to.

use serde::Deserialize;

use super::locate;
use crate::digest::DigestPrefix;
use crate::server::assets;
use crate::server::failure::PageError;
use crate::server::visit::{Download, PageRequest, ResponseContent};
use crate::vault::{LocatedCapture, LookupError};

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Parameters {
    capture: Option<String>,
    member: Option<String>,
}

/// Returns the bytes of a capture, or of one of its files.
pub(in crate::server) fn bytes(visit: &PageRequest<'_>) -> Result<ResponseContent, PageError> {
    let parameters: Parameters = visit.parameters()?;
    let located = capture(visit, &parameters)?;
    let name = format!("{:.12}", located.capture.capture);
    let Some(member) = parameters.member else {
        let bytes = visit.vault.read(&located)?;
        return Ok(download(bytes, &name));
    };
    let members = visit.vault.members(&located)?.into_iter();
    let found = members.into_iter().find(|one| one.name == member);
    let found = found.ok_or_else(|| PageError::BadRequest(format!("it has no file {member}")))?;
    Ok(download(found.bytes, &format!("{name}-{member}")))
}

/// Returns the canonical text that the core hash is the digest of.
pub(in crate::server) fn core(visit: &PageRequest<'_>) -> Result<ResponseContent, PageError> {
    let located = capture(visit, &visit.parameters()?)?;
    let bytes = visit.vault.read_core(&located)?;
    Ok(download(bytes, &format!("{:.12}.core", located.artifact.core)))
}

/// Returns the style sheet or the script.
pub(in crate::server) fn asset(visit: &PageRequest<'_>) -> Result<ResponseContent, PageError> {
    assets::named(visit.name).map(ResponseContent::Asset).ok_or(PageError::NoPage)
}

/// Returns the requested capture, or the preferred one.
fn capture(visit: &PageRequest<'_>, parameters: &Parameters) -> Result<LocatedCapture, PageError> {
    let located = locate::named(visit)?;
    let Some(text) = &parameters.capture else { return Ok(located) };
    let prefix: DigestPrefix = text.parse().map_err(|error| PageError::BadRequest(format!("{error}")))?;
    visit.vault.capture_of(&located, &prefix).map_err(|error: LookupError| error.into())
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

//! Messages for prompts that were not recorded.

use runvault::Vault;
use runvault::digest::{CoreHash, Digest};
use runvault::display::escaped;
use runvault::vault::details::Detail;
use runvault::vault::find::{ArtifactMatch, FoundArtifact};
use runvault::vault::recordings::{RecordingsAnswer, RecordingsRequest};
use runvault::vault::replay::ReplayMiss;

use super::response_source::NAMED;
use crate::cli::args::prompt::Prompt;
use crate::cli::output::exit::CommandError;
use crate::cli::output::matches::label;
use crate::cli::output::stdout::{self, HASH};

/// The number up to which recordings are counted.
const COUNTED: u64 = 1_000;

/// Reports what is missing, and which other recordings contain it.
pub(super) fn report(
    vault: &Vault,
    miss: &ReplayMiss,
    prompt: &Prompt,
    tried: Option<CoreHash>,
) -> Result<(), CommandError> {
    match tried {
        Some(core) => stdout::error(&format!("{core:.12}: {miss}")),
        None if matches!(miss, ReplayMiss::NotRecorded { .. }) => {
            stdout::error(&format!("none of the selected sessions recorded the prompt {}", prompt.digest));
        }
        None => stdout::error(&miss.to_string()),
    }
    if !matches!(miss, ReplayMiss::NotRecorded { .. }) {
        return Ok(());
    }
    if let Some((how, hit)) = spelled_otherwise(vault, prompt, tried)? {
        stdout::message(&format!("  {} has it {how}", text(&hit)));
    }
    let RecordingsAnswer { recordings: mut others, next } = recordings(vault, prompt.digest)?;
    others.retain(|hit| Some(hit.artifact.core_hash) != tried);
    for hit in others.iter().take(NAMED) {
        stdout::message(&format!("  {} has it", text(hit)));
    }
    match (others.as_slice(), others.len().saturating_sub(NAMED)) {
        ([], _) if tried.is_some() => stdout::message("  no other session in the vault has it"),
        ([], _) => {}
        ([first, ..], more) => {
            let than = if next.is_some() { "more than " } else { "" };
            if more > 0 {
                stdout::message(&format!("  and {than}{more} more, which \"runvault find sessions\" lists"));
            }
            let (core, digest) = (first.artifact.core_hash, prompt.digest);
            stdout::message(&format!("\"runvault replay {core:.12} --prompt-hash {digest}\" replays it"));
        }
    }
    Ok(())
}

/// Returns the recordings of a prompt, with their labels.
fn recordings(vault: &Vault, prompt: Digest) -> Result<RecordingsAnswer, CommandError> {
    let details = vec![Detail::Attributes];
    let request = RecordingsRequest { limit: Some(COUNTED), details, ..RecordingsRequest::new(prompt) };
    Ok(vault.run(&request)?)
}

/// Describes a session: its hash, the location of the prompt, and its label.
fn text(hit: &FoundArtifact) -> String {
    let first = hit.matches.iter().find_map(|found| match found {
        ArtifactMatch::Mention { place, .. } => Some(escaped(&place.to_string()).to_string()),
        _ => None,
    });
    let label = label(hit.details.attributes.as_deref().unwrap_or_default());
    let (core, place) = (hit.artifact.core_hash, first.unwrap_or_default());
    format!("{HASH}{core:.12}{HASH:#} ({place}, {label})")
}

/// Returns a variant of the prompt that was recorded, and where: editors and shells change white space and line ends.
fn spelled_otherwise(
    vault: &Vault,
    prompt: &Prompt,
    tried: Option<CoreHash>,
) -> Result<Option<(&'static str, FoundArtifact)>, CommandError> {
    let Some(text) = prompt.bytes.as_ref().and_then(|bytes| std::str::from_utf8(bytes).ok()) else {
        return Ok(None);
    };
    let spellings = [
        ("without surrounding white space", text.trim().to_owned()),
        ("with a trailing line feed", format!("{text}\n")),
        ("with LF line endings", text.replace("\r\n", "\n")),
    ];
    for (how, spelling) in spellings {
        let hits = recordings(vault, Digest::from_content(spelling.as_bytes()))?.recordings;
        let here = |hit: &FoundArtifact| tried.is_none_or(|core| core == hit.artifact.core_hash);
        if let Some(hit) = hits.into_iter().find(here).filter(|_| spelling != text) {
            return Ok(Some((how, hit)));
        }
    }
    Ok(None)
}

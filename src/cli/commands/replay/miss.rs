//! Messages for prompts that were not recorded.

use runvault::Vault;
use runvault::digest::{CoreHash, Digest};
use runvault::storage::Mention;
use runvault::vault::query::{Hit, Match};
use runvault::vault::replay::Miss;
use runvault::vault::show::AttributeSummary;
use runvault::{LookupError, RecordingFilter};

use super::response_source::NAMED;
use crate::cli::args::prompt::Prompt;
use crate::cli::commands::find;
use crate::cli::output::escape::escaped;
use crate::cli::output::exit::Failure;
use crate::cli::output::place;
use crate::cli::output::stdout::{self, HASH};

/// Reports what is missing, and which other recordings contain it.
pub(super) fn report(
    vault: &Vault,
    miss: &Miss,
    prompt: &Prompt,
    tried: Option<CoreHash>,
) -> Result<(), Failure> {
    match tried {
        Some(core) => stdout::error(&format!("{core:.12}: {miss}")),
        None if matches!(miss, Miss::NotRecorded { .. }) => {
            stdout::error(&format!("none of the selected sessions recorded the prompt {}", prompt.digest));
        }
        None => stdout::error(&miss.to_string()),
    }
    if !matches!(miss, Miss::NotRecorded { .. }) {
        return Ok(());
    }
    if let Some((how, hit)) = spelled_otherwise(vault, prompt, tried)? {
        stdout::message(&format!("  {} has it {how}", text(vault, &hit)?));
    }
    let others = recordings(vault, prompt.digest)?;
    let others: Vec<&Hit> = others.iter().filter(|hit| Some(hit.artifact.core) != tried).collect();
    for hit in others.iter().take(NAMED) {
        stdout::message(&format!("  {} has it", text(vault, hit)?));
    }
    match (others.as_slice(), others.len().saturating_sub(NAMED)) {
        ([], _) if tried.is_some() => stdout::message("  no other session in the vault has it"),
        ([], _) => {}
        ([first, ..], more) => {
            if more > 0 {
                stdout::message(&format!("  and {more} more, which \"runvault find sessions\" lists"));
            }
            let (core, digest) = (first.artifact.core, prompt.digest);
            stdout::message(&format!("\"runvault replay {core:.12} --prompt-hash {digest}\" replays it"));
        }
    }
    Ok(())
}

fn recordings(vault: &Vault, prompt: Digest) -> Result<Vec<Hit>, Failure> {
    Ok(vault.recordings_of(prompt, &RecordingFilter::default()).map_err(LookupError::from)?)
}

/// Describes a session: its hash, the location of the prompt, and its label.
fn text(vault: &Vault, hit: &Hit) -> Result<String, Failure> {
    let attributes: Vec<AttributeSummary> =
        vault.attributes(&hit.artifact)?.into_iter().map(AttributeSummary::from).collect();
    let first = hit.matches.iter().find_map(|place| match place {
        Match::Mention(Mention { unit, place, .. }) => Some(escaped(&place::text(unit, place)).to_string()),
        _ => None,
    });
    let (core, place) = (hit.artifact.core, first.unwrap_or_default());
    Ok(format!("{HASH}{core:.12}{HASH:#} ({place}, {})", find::label(&attributes)))
}

/// Returns a variant of the prompt that was recorded, and where: editors and shells change white space and line ends.
fn spelled_otherwise(
    vault: &Vault,
    prompt: &Prompt,
    tried: Option<CoreHash>,
) -> Result<Option<(&'static str, Hit)>, Failure> {
    let Some(text) = prompt.bytes.as_ref().and_then(|bytes| std::str::from_utf8(bytes).ok()) else {
        return Ok(None);
    };
    let spellings = [
        ("without surrounding white space", text.trim().to_owned()),
        ("with a trailing line feed", format!("{text}\n")),
        ("with LF line endings", text.replace("\r\n", "\n")),
    ];
    for (how, spelling) in spellings {
        let hits = recordings(vault, Digest::from_content(spelling.as_bytes()))?;
        let here = |hit: &Hit| tried.is_none_or(|core| core == hit.artifact.core);
        if let Some(hit) = hits.into_iter().find(here).filter(|_| spelling != text) {
            return Ok(Some((how, hit)));
        }
    }
    Ok(None)
}

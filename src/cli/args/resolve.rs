//! Resolution of names and hashes that are not hashes of artifacts.

use runvault::artifact::Playback;
use runvault::digest::{DigestPrefix, PrefixResolution};
use runvault::storage::{Condition, Order, Page};
use runvault::vault::query::{self, Hit};
use runvault::{Located, LookupError, Vault, formats};

use crate::cli::commands::find::match_text;
use crate::cli::output::escape::brief;
use crate::cli::output::exit::Failure;
use crate::cli::output::stdout::counted;

/// The attributes that are ids of runs, in the order in which they are tried.
pub(crate) const RUN_IDS: [&str; 2] = ["run_id", "trace_id"];

/// Maximum number of artifacts listed that mention a hash.
const LISTED: usize = 5;

/// The number up to which they are counted.
const COUNTED: usize = 1_000;

/// Returns the artifact with the tag `name`, or that of the run with this id. `None` if there is none.
pub(super) fn by_name(vault: &Vault, name: &str) -> Result<Option<Located>, Failure> {
    match vault.tagged(name) {
        Err(LookupError::NoSuchTag(_)) => {}
        tagged => return Ok(Some(tagged?)),
    }
    let snapshot = vault.snapshot()?;
    for attribute in RUN_IDS {
        let has_id = Condition::Attribute { name: attribute.to_owned(), value: name.to_owned() };
        let mut hits = snapshot.find(&has_id.into(), Order::default(), &Page::all())?.items;
        let artifacts = hits.iter().map(|hit| &hit.artifact);
        let extended = query::extended(&*snapshot, &artifacts, &formats::versions())?;
        hits.retain(|hit| !extended.contains(&hit.artifact.core));
        // Other artifacts of a run, such as its export pack, have its id too.
        let is_recording = |hit: &Hit| {
            formats::named(&hit.artifact.kind).is_some_and(|kind| kind.playback() == Some(Playback::InOrder))
        };
        if hits.iter().any(is_recording) {
            hits.retain(is_recording);
        }
        match hits.as_slice() {
            [] => {}
            [only] => return Ok(Some(vault.locate(&only.artifact.core.0.into())?)),
            several => return Err(ambiguous(name, several)),
        }
    }
    Ok(None)
}

fn ambiguous(name: &str, hits: &[Hit]) -> Failure {
    let count = counted(hits.len() as u64, "artifact");
    let candidates =
        hits.iter().take(COUNTED).map(|Hit { artifact, .. }| format!("{} {}", artifact.core, artifact.kind));
    Failure::Ambiguous {
        message: format!("{} is ambiguous: {count} have this run id; give a hash", brief(name)),
        candidates: candidates.collect(),
    }
}

/// Returns the error for a hash that no artifact has, but that artifacts mention, such as that of a prompt. `None` if
/// there are none.
pub(super) fn mentioned(vault: &Vault, prefix: &DigestPrefix) -> Result<Option<Failure>, Failure> {
    let snapshot = vault.snapshot()?;
    let digest = match query::resolve_mentioned(&*snapshot, prefix, None)? {
        PrefixResolution::One(digest) => digest,
        PrefixResolution::None => return Ok(None),
        PrefixResolution::Ambiguous(digests) => {
            let message = format!(
                "no artifact has a hash that begins with {prefix}, but artifacts mention {} hashes that do; give more digits",
                digests.len()
            );
            let candidates = digests.iter().map(ToString::to_string).collect();
            return Ok(Some(Failure::Ambiguous { message, candidates }));
        }
    };
    let mentions = Condition::Mention { group: None, digest };
    let hits = snapshot.find(&mentions.into(), Order::default(), &Page::first(COUNTED + 1))?.items;
    if hits.is_empty() {
        return Ok(None);
    }
    let count = match hits.len() {
        1 => "1 artifact mentions".to_owned(),
        many @ ..=COUNTED => format!("{many} artifacts mention"),
        _ => format!("more than {COUNTED} artifacts mention"),
    };
    let because = hits.iter().take(LISTED).map(|Hit { artifact, matches }| {
        let place = matches.first().map(|found| match_text(&found.into())).unwrap_or_default();
        format!("{:.12} {} {place}", artifact.core, artifact.kind)
    });
    Ok(Some(Failure::Refused {
        message: format!(
            "{digest:.12} is not the hash of an artifact, but {count} it; \"runvault find --mentions {digest:.12}\" lists them"
        ),
        because: because.collect(),
    }))
}

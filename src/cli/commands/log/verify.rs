//! `runvault log --verify-from`

use std::io::Write;

use runvault::Vault;
use runvault::digest::Digest;
use runvault::vault::journal::{CatalogCheck, CheckJournalAnswer, CheckJournalRequest};

use crate::cli::output::exit::{CommandError, Status};
use crate::cli::output::stdout::{self, BAD, HASH, counted};
use crate::cli::output::{json, report};

/// A recorded head of the journal.
#[derive(Clone, Copy, Debug)]
pub(super) struct SavedJournalHead {
    /// The number of its entry, if it was also recorded.
    seq: Option<u64>,
    chain: Digest,
}

/// Parses a digest, or an entry number and its digest.
pub(super) fn parse_saved_head(text: &str) -> Result<SavedJournalHead, String> {
    let (seq, digest) = match text.trim().split_once(char::is_whitespace) {
        Some((seq, digest)) => {
            (Some(seq.parse().map_err(|_| format!("{seq:?} is not a number"))?), digest.trim())
        }
        None => (None, text.trim()),
    };
    let chain = digest.parse().map_err(|error: runvault::digest::ParseDigestError| error.to_string())?;
    Ok(SavedJournalHead { seq, chain })
}

/// The scope of a verification, and its output format.
pub(super) struct LogVerification {
    pub(super) known: SavedJournalHead,
    /// Whether to compare the catalog with the journal.
    pub(super) full: bool,
    pub(super) json: bool,
}

impl LogVerification {
    pub(super) fn run(&self, vault: &Vault) -> Result<Status, CommandError> {
        let SavedJournalHead { seq, chain } = self.known;
        let request = CheckJournalRequest { since: Some(chain), since_seq: seq, catalog: self.full };
        let check = vault.run(&request)?;
        if self.json {
            json::line(&mut stdout::raw(), &check)?;
            return Ok(if check.ok { Status::Done } else { Status::No });
        }
        for finding in check.catalog.iter().flat_map(|catalog| &catalog.findings) {
            report::print_text(finding, BAD)?;
        }
        let intact = self.intact(&check).map_err(CommandError::No)?;
        writeln!(stdout::text(), "{intact}; the head is {HASH}{}{HASH:#}", check.head.chain)?;
        match &check.catalog {
            None => stdout::note("only the journal was checked; --full compares the catalog with it"),
            Some(catalog) if catalog.findings.is_empty() => {
                writeln!(stdout::text(), "catalog matches the journal: {}", listed(catalog))?;
                stdout::note("stored bytes and indexes were not checked; fsck does that");
            }
            Some(catalog) => {
                let found = counted(catalog.findings.len() as u64, "finding");
                return Err(CommandError::No(format!("the catalog does not match the journal: {found}")));
            }
        }
        Ok(Status::Done)
    }

    /// Returns a summary if the journal is intact, otherwise the error.
    fn intact(&self, check: &CheckJournalAnswer) -> Result<String, String> {
        let (digest, last) = (self.known.chain, check.head.seq);
        match (check.since, &check.defect) {
            (Some(since), None) => {
                let unchanged = match since {
                    0 => "no entries before".to_owned(),
                    1 => "entry 1 unchanged".to_owned(),
                    since => format!("entries 1–{since} unchanged"),
                };
                Ok(format!("journal intact: {unchanged}, {} added", last - since))
            }
            (Some(since), Some(defect)) => {
                let is_before = check.defect_entry.is_some_and(|entry| entry <= since);
                let when = if is_before { "before" } else { "after" };
                Err(format!(
                    "history was rewritten {when} {digest:.12} was the head (entry {since}): {defect}"
                ))
            }
            (None, Some(defect)) => {
                Err(format!("history was rewritten: {defect}; {digest:.12} is not the head of any entry"))
            }
            (None, None) => match (check.found, self.known.seq) {
                (Some(found), Some(seq)) => {
                    Err(format!("{digest:.12} was the head after entry {found}, not after entry {seq}"))
                }
                _ => Err(format!(
                    "{digest:.12} was never the head of this journal, which chains up to entry {last}: it is the \
                     journal of another vault, or has since been completely rewritten or truncated"
                )),
            },
        }
    }
}

/// Formats the number of compared catalog rows.
fn listed(catalog: &CatalogCheck) -> String {
    let counts = [
        (catalog.artifacts, "artifact"),
        (catalog.captures, "capture"),
        (catalog.tags, "tag"),
        (catalog.notes, "note"),
        (catalog.pins, "pin"),
        (catalog.labels, "label"),
        (catalog.links, "manual link"),
        (catalog.tombstones, "tombstone"),
        (catalog.signatures, "signature"),
    ];
    let listed: Vec<String> = counts.iter().map(|(count, thing)| counted(*count, thing)).collect();
    listed.join(", ")
}

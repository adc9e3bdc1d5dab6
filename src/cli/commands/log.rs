//! `runvault log`

use std::io::{self, Write};

use chrono::{DateTime, Utc};
use clap::Args as ClapArgs;
use clap::builder::PossibleValuesParser;
use runvault::Vault;
use runvault::digest::Digest;
use runvault::vault::api::Timestamp;
use runvault::vault::journal::{
    ACTIONS, CatalogCheck, CheckJournalAnswer, CheckJournalRequest, JournalAnswer, JournalHeadRequest,
    JournalRequest,
};

use crate::cli::args::completing::CandidateSource;
use crate::cli::args::hash::ArtifactArg;
use crate::cli::args::vault::VaultArgs;
use crate::cli::output::exit::{CommandError, Status};
use crate::cli::output::stdout::{self, BAD, HASH, counted};
use crate::cli::output::{entries, json, report, time};

/// Show the journal of changes to the vault
///
/// Entries are printed oldest first. Each entry is chained to the previous one by its digest. Save the output of
/// --head elsewhere, and --verify-from can later prove that no entry up to it was changed; with --full, also that the
/// catalog matches the journal. docs/journal.md describes how to check the chain without runvault.
#[derive(ClapArgs)]
pub(crate) struct Args {
    /// Only entries that name this artifact, capture or other hash, or have it as their chain value
    #[arg(value_name = "HASH", conflicts_with_all = ["head", "verify_from"], add = CandidateSource::ARTIFACTS.completer())]
    about: Option<ArtifactArg>,

    /// Entries at this time or later, as for "find": 2026-11-20, yesterday, or an age like 36h
    #[arg(long, value_name = "TIME", value_parser = time::point)]
    since: Option<DateTime<Utc>>,
    /// Entries before this time
    #[arg(long, value_name = "TIME", value_parser = time::point)]
    until: Option<DateTime<Utc>>,
    /// Only entries of this action: add, seen, signature, link, unlink, tag, untag, pin, unpin, note, label, unlabel,
    /// remove, allow-removed, gc, reindex or repair
    #[arg(long, value_name = "ACTION", value_parser = PossibleValuesParser::new(ACTIONS), hide_possible_values = true)]
    action: Option<String>,
    /// Only the last N entries
    #[arg(long, value_name = "N")]
    limit: Option<u32>,

    /// Print the digest of the last entry, which --verify-from accepts
    #[arg(long, conflicts_with_all = ["since", "until", "action", "limit", "verify_from"])]
    head: bool,

    /// Recompute the chain of the whole journal and check that this digest is one of its former heads
    #[arg(long, value_name = "DIGEST", value_parser = parse_saved_head,
        conflicts_with_all = ["since", "until", "action", "limit"])]
    verify_from: Option<SavedJournalHead>,

    /// Also compare the catalog with the journal: artifacts, captures, tags, labels, notes, pins, manual links,
    /// tombstones and the states of signatures
    #[arg(long, requires = "verify_from", hide_short_help = true)]
    full: bool,

    /// Print one line of JSON for each entry
    #[arg(long)]
    json: bool,
}

impl Args {
    pub(crate) fn run(&self, vault: &VaultArgs) -> Result<Status, CommandError> {
        let vault = vault.open()?;
        match self.verify_from {
            Some(known) => {
                return LogVerification { known, full: self.full, json: self.json }.run(&vault);
            }
            None if self.head => return self.head(&vault),
            None => {}
        }
        let mut request = JournalRequest {
            since: self.since.map(Timestamp),
            until: self.until.map(Timestamp),
            action: self.action.clone(),
            about: self.about.as_ref().map(|about| about.digest(&vault)).transpose()?,
            last: self.limit,
            ..JournalRequest::default()
        };
        let mut out: Box<dyn Write> =
            if self.json { Box::new(stdout::raw()) } else { Box::new(stdout::text()) };
        let mut out = io::BufWriter::new(&mut out);
        let mut count = 0;
        loop {
            let JournalAnswer { entries, next } = vault.run(&request)?;
            count += entries.len();
            for entry in &entries {
                if self.json { json::line(&mut out, entry)? } else { entries::print(&mut out, entry)? }
            }
            request.after = next;
            if next.is_none() {
                break;
            }
        }
        out.flush()?;
        if !self.json {
            entries::note_count(count);
        }
        Ok(if count == 0 && self.limit != Some(0) { Status::No } else { Status::Done })
    }

    fn head(&self, vault: &Vault) -> Result<Status, CommandError> {
        let head = vault.run(&JournalHeadRequest {})?;
        if self.json {
            json::line(&mut stdout::raw(), &head)?;
            return Ok(Status::Done);
        }
        // The bare digest, so that it can be passed to --verify-from unchanged.
        writeln!(stdout::text(), "{HASH}{}{HASH:#}", head.chain)?;
        Ok(Status::Done)
    }
}

/// A recorded head of the journal.
#[derive(Clone, Copy, Debug)]
struct SavedJournalHead {
    /// The number of its entry, if it was also recorded.
    seq: Option<u64>,
    chain: Digest,
}

/// Parses a digest, or an entry number and its digest.
fn parse_saved_head(text: &str) -> Result<SavedJournalHead, String> {
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
struct LogVerification {
    known: SavedJournalHead,
    /// Whether to compare the catalog with the journal.
    full: bool,
    json: bool,
}

impl LogVerification {
    fn run(&self, vault: &Vault) -> Result<Status, CommandError> {
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
        (catalog.counts.artifacts, "artifact"),
        (catalog.counts.captures, "capture"),
        (catalog.counts.tags, "tag"),
        (catalog.counts.notes, "note"),
        (catalog.counts.pins, "pin"),
        (catalog.counts.labels, "label"),
        (catalog.counts.links, "manual link"),
        (catalog.counts.tombstones, "tombstone"),
        (catalog.counts.signatures, "signature"),
    ];
    let listed: Vec<String> = counts.iter().map(|(count, thing)| counted(*count, thing)).collect();
    listed.join(", ")
}

//! `runvault log --verify-from`

use std::io::Write;

use runvault::Vault;
use runvault::digest::Digest;
use runvault::storage::JournalCheck;
use runvault::storage::check::{CatalogCounts, JournalInspection};
use runvault::vault::fsck::Finding;
use runvault::vault::journal::JournalHead;
use serde::Serialize;

use crate::cli::commands::fsck::print_finding;
use crate::cli::output::exit::{Failure, Status};
use crate::cli::output::json;
use crate::cli::output::stdout::{self, HASH, counted};

/// A recorded head of the journal.
#[derive(Clone, Copy, Debug)]
pub(super) struct KnownHead {
    /// The number of its entry, if it was also recorded.
    seq: Option<u64>,
    chain: Digest,
}

/// Parses a digest, or an entry number and its digest, which is the format of earlier versions.
pub(super) fn known_head(text: &str) -> Result<KnownHead, String> {
    let (seq, digest) = match text.trim().split_once(char::is_whitespace) {
        Some((seq, digest)) => {
            (Some(seq.parse().map_err(|_| format!("{seq:?} is not a number"))?), digest.trim())
        }
        None => (None, text.trim()),
    };
    let chain = digest.parse().map_err(|error: runvault::digest::ParseDigestError| error.to_string())?;
    Ok(KnownHead { seq, chain })
}

/// The scope of a verification, and its output format.
pub(super) struct Verification {
    pub(super) known: KnownHead,
    /// Whether to compare the catalog with the journal.
    pub(super) full: bool,
    pub(super) json: bool,
}

impl Verification {
    pub(super) fn run(&self, vault: &Vault) -> Result<Status, Failure> {
        let (chain, catalog) = if self.full {
            let JournalInspection { chain, counts, findings } =
                vault.check_catalog(Some(self.known.chain))?;
            (chain, Some((counts, findings)))
        } else {
            (vault.check_journal(Some(self.known.chain))?, None)
        };
        if self.json {
            return self.print_json(&chain, catalog.as_ref());
        }
        if let Some((_, findings)) = &catalog {
            for finding in findings {
                print_finding(finding, false)?;
            }
        }
        let intact = self.intact(&chain).map_err(Failure::No)?;
        writeln!(stdout::text(), "{intact}; the head is {HASH}{}{HASH:#}", chain.head.chain)?;
        match catalog {
            None => stdout::note("only the journal was checked; --full compares the catalog with it"),
            Some((counts, findings)) if findings.is_empty() => {
                writeln!(stdout::text(), "catalog matches the journal: {}", listed(&counts))?;
                stdout::note("stored bytes and indexes were not checked; fsck does that");
            }
            Some((_, findings)) => {
                let found = counted(findings.len() as u64, "finding");
                return Err(Failure::No(format!("the catalog does not match the journal: {found}")));
            }
        }
        Ok(Status::Done)
    }

    /// Returns the entry with the recorded digest, if its number matches.
    fn since(&self, chain: &JournalCheck) -> Option<u64> {
        chain.since.filter(|since| self.known.seq.is_none_or(|seq| seq == *since))
    }

    /// Returns a summary if the journal is intact, otherwise the error.
    fn intact(&self, check: &JournalCheck) -> Result<String, String> {
        let (digest, last) = (self.known.chain, check.head.seq);
        match (self.since(check), check.defect) {
            (Some(since), None) => {
                let unchanged = match since {
                    0 => "no entries before".to_owned(),
                    1 => "entry 1 unchanged".to_owned(),
                    since => format!("entries 1–{since} unchanged"),
                };
                Ok(format!("journal intact: {unchanged}, {} added", last - since))
            }
            (Some(since), Some(defect)) => {
                let when = if defect.entry() <= since { "before" } else { "after" };
                Err(format!(
                    "history was rewritten {when} {digest:.12} was the head (entry {since}): {defect}"
                ))
            }
            (None, Some(defect)) => {
                Err(format!("history was rewritten: {defect}; {digest:.12} is not the head of any entry"))
            }
            (None, None) => match (check.since, self.known.seq) {
                (Some(since), Some(seq)) => {
                    Err(format!("{digest:.12} was the head after entry {since}, not after entry {seq}"))
                }
                _ => Err(format!(
                    "{digest:.12} was never the head of this journal, which chains up to entry {last}: it is the \
                     journal of another vault, or has since been completely rewritten or truncated"
                )),
            },
        }
    }

    fn print_json(
        &self,
        check: &JournalCheck,
        catalog: Option<&(CatalogCounts, Vec<Finding>)>,
    ) -> Result<Status, Failure> {
        let since = self.since(check);
        let defect = check.defect.map(|defect| defect.to_string());
        let ok =
            defect.is_none() && since.is_some() && catalog.is_none_or(|(_, findings)| findings.is_empty());
        let head = JournalHead::from(check.head);
        let catalog = catalog.map(|(counts, findings)| JsonCatalog::new(counts, findings));
        json::line(&mut stdout::raw(), &JsonCheck { ok, since, defect, head, catalog })?;
        Ok(if ok { Status::Done } else { Status::No })
    }
}

/// Formats the number of compared catalog rows.
pub(in crate::cli) fn listed(counts: &CatalogCounts) -> String {
    let CatalogCounts { artifacts, captures, tags, notes, pins, links, tombstones, signatures } = *counts;
    let counts = [
        (artifacts, "artifact"),
        (captures, "capture"),
        (tags, "tag"),
        (notes, "note"),
        (pins, "pin"),
        (links, "manual link"),
        (tombstones, "tombstone"),
        (signatures, "signature"),
    ];
    let listed: Vec<String> = counts.iter().map(|(count, thing)| counted(*count, thing)).collect();
    listed.join(", ")
}

#[derive(Serialize)]
struct JsonCheck<'c> {
    ok: bool,
    since: Option<u64>,
    defect: Option<String>,
    head: JournalHead,
    #[serde(skip_serializing_if = "Option::is_none")]
    catalog: Option<JsonCatalog<'c>>,
}

#[derive(Serialize)]
struct JsonCatalog<'c> {
    artifacts: u64,
    captures: u64,
    tags: u64,
    notes: u64,
    pins: u64,
    links: u64,
    tombstones: u64,
    signatures: u64,
    findings: Vec<JsonFinding<'c>>,
}

#[derive(Serialize)]
struct JsonFinding<'c> {
    finding: &'c str,
    about: &'c str,
    subject: String,
    detail: &'c str,
}

impl<'c> JsonCatalog<'c> {
    fn new(counts: &CatalogCounts, findings: &'c [Finding]) -> Self {
        let CatalogCounts { artifacts, captures, tags, notes, pins, links, tombstones, signatures } = *counts;
        let finding = |finding: &'c Finding| JsonFinding {
            finding: finding.info.id,
            about: finding.subject.type_name(),
            subject: finding.subject.name(),
            detail: &finding.detail,
        };
        let findings = findings.iter().map(finding).collect();
        Self { artifacts, captures, tags, notes, pins, links, tombstones, signatures, findings }
    }
}

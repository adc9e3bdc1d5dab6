//! Checking a vault, and mending it.
//!
//! The store looks at what it knows of: the file, its tables, stored bytes, the journal. Here, every artifact is admitted
//! again from its stored bytes, and what that gives is held against what the vault says of it.

mod artifacts;
mod reading;
mod reindex;
mod repair;
mod search;
mod signatures;
mod sources;

use std::collections::HashSet;
use std::path::PathBuf;

use crate::artifact::{KeyRing, Kind};
use crate::digest::{CoreHash, Digest};
use crate::kinds;
use crate::store::check::finding::{KIND_DIFFERS, Subject};
use crate::store::check::{Inspection, Integrity};
use crate::store::{Mended, Result, Store};

pub use crate::store::check::finding::{self, Finding, FindingInfo};
pub use signatures::SignatureCounts;

pub(crate) use reading::admit_stored;

/// Reports list so many findings and count the rest.
const MAX_FINDINGS: usize = 100_000;

/// How much is looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Depth {
    /// The file, its tables and the journal. No stored bytes are read.
    Quick,
    /// The same, and some of the artifacts as in a full check.
    Sample(Sample),
    /// Everything.
    #[default]
    Full,
}

/// Which artifacts are looked at.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// So many of a hundred.
    pub percent: f64,
    /// Each seed gives other artifacts, always the same ones of the same vault.
    pub seed: u64,
}

impl Sample {
    fn has(&self, core: CoreHash) -> bool {
        let mut bytes = self.seed.to_le_bytes().to_vec();
        bytes.extend(core.0.as_bytes());
        #[expect(clippy::cast_precision_loss, reason = "a share of the whole is good enough")]
        let share = Digest::of(&bytes).key().cast_unsigned() as f64 / u64::MAX as f64;
        share * 100.0 < self.percent
    }
}

/// How a vault is checked.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// How much is looked at.
    pub depth: Depth,
    /// Artifacts of this kind only. What is not about artifacts is checked all the same.
    pub kind: Option<Kind>,
    /// Goes on after the artifact with this core hash, where another check ended. What comes before the artifacts was
    /// checked then.
    pub after: Option<CoreHash>,
    /// What signatures are checked with; those that no key is for are only compared with what the vault says of them.
    pub keys: KeyRing,
}

/// Is told what happens.
pub trait Monitor {
    /// Something is not as it should be. No finding is told twice; calls come in an order that depends on nothing but the
    /// vault.
    fn found(&mut self, finding: &Finding);

    /// All findings about an artifact were told. `bytes` is the size of its captures. Calls come in the order of core
    /// hashes.
    fn checked(&mut self, core: CoreHash, bytes: u64);

    /// `done` of `of` parts of something else were looked at; `what` says of what.
    fn progress(&mut self, what: &'static str, done: u64, of: u64) {
        let _ = (what, done, of);
    }
}

/// What a check found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// The findings, by what they are about, sort and detail.
    pub findings: Vec<Finding>,
    /// How many more there are.
    pub omitted: u64,
    /// So many artifacts were admitted again.
    pub artifacts: u64,
    /// The size of their captures.
    pub bytes: u64,
    /// What checking the signatures gave, if there were keys.
    pub signatures: Option<SignatureCounts>,
}

impl Report {
    /// Whether nothing was found.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.findings.is_empty()
    }
}

/// Checks the vault.
///
/// # Errors
/// If nobody could look. What is damaged is a finding, not an error.
pub fn check(store: &Store, options: &Options, monitor: &mut dyn Monitor) -> Result<Report> {
    let mut teller = Teller::of(monitor);
    let inspection = store.inspect()?;
    if options.after.is_none() {
        teller.tell_all(store.check_logs()?);
        teller.tell_all(overall(&inspection, options)?);
    }
    if options.depth != Depth::Quick {
        artifacts::check(store, &inspection, options, &mut teller)?;
    }
    if options.depth == Depth::Full && options.kind.is_none() {
        search::check(store, &mut teller)?;
    }
    Ok(teller.report())
}

/// Makes everything that artifacts are found by anew from their bytes: mentions, attributes, names, warnings. Signatures are
/// checked with `keys`; what an earlier check gave of those that no key is for stays as it is. What is interrupted did a part of that, and the vault answers right at any moment. The report has what was not admitted again;
/// it stays in the vault, and what was known of it stays as it was.
///
/// # Errors
/// If the vault cannot be read or written.
pub fn reindex(store: &Store, keys: &KeyRing, monitor: &mut dyn Monitor) -> Result<Report> {
    let mut teller = Teller::of(monitor);
    reindex::reindex(store, keys, &mut teller)?;
    Ok(teller.report())
}

/// Mends what `report` found, as far as that needs no guessing, with bytes from `from`: other vaults, and directories of
/// files and archives. Signatures of what is added or indexed again are checked with `keys`. Gives what was done. What is
/// left is what another check finds.
///
/// # Errors
/// If the vault cannot be read or written, or something in `from` is not there.
pub fn repair(
    store: &Store,
    report: &Report,
    from: &[PathBuf],
    keys: &KeyRing,
    monitor: &mut dyn Monitor,
) -> Result<Vec<Mended>> {
    repair::repair(store, report, from, keys, &mut Teller::of(monitor))
}

/// What is not about single artifacts.
fn overall(inspection: &Inspection<'_>, options: &Options) -> Result<Vec<Finding>> {
    let is_full = options.depth == Depth::Full;
    let mut findings = inspection.permissions();
    findings.append(&mut inspection.integrity(if is_full { Integrity::Full } else { Integrity::Quick })?);
    findings.append(&mut inspection.structure()?);
    for known in inspection.kinds(&mut findings)? {
        let differs = |kind: Kind| {
            kind.stated_by() != known.stated_by.as_deref()
                || kind.document_member() != known.member.as_deref()
        };
        if kinds::named(&known.name).is_some_and(differs) {
            let subject = Subject::Kind(known.name.clone());
            findings.push(Finding::new(KIND_DIFFERS, subject, "this program knows it otherwise"));
        }
    }
    findings.append(&mut inspection.journal(None)?.findings);
    findings.append(&mut inspection.removed()?);
    if is_full {
        for blob in inspection.blobs_of_nothing(&mut findings)? {
            findings.append(&mut inspection.blob(blob)?);
        }
    } else {
        findings.append(&mut inspection.order_of_mentions()?);
    }
    Ok(findings)
}

/// Passes findings on to the monitor, each once.
struct Teller<'m> {
    monitor: &'m mut dyn Monitor,
    report: Report,
    told: HashSet<Digest>,
}

impl<'m> Teller<'m> {
    fn of(monitor: &'m mut dyn Monitor) -> Self {
        Self { monitor, report: Report::default(), told: HashSet::new() }
    }

    fn report(mut self) -> Report {
        self.report.findings.sort_by(|one, other| one.key().cmp(&other.key()));
        self.report
    }

    fn tell_all(&mut self, findings: Vec<Finding>) {
        for finding in findings {
            self.tell(finding);
        }
    }

    fn tell(&mut self, finding: Finding) {
        if self.report.findings.len() >= MAX_FINDINGS {
            self.report.omitted += 1;
            return;
        }
        let text = format!("{} {} {}", finding.info.id, finding.subject, finding.detail);
        if self.told.insert(Digest::of(text.as_bytes())) {
            self.monitor.found(&finding);
            self.report.findings.push(finding);
        }
    }

    fn progress(&mut self, what: &'static str, done: u64, of: u64) {
        self.monitor.progress(what, done, of);
    }

    fn checked(&mut self, core: CoreHash, bytes: u64) {
        self.report.artifacts += 1;
        self.report.bytes += bytes;
        self.monitor.checked(core, bytes);
    }
}

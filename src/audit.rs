//! Whether a run did what a contract promises.
//!
//! Each effect of a contract is looked for in what the run called and got back. The answer is one of four: pending,
//! resolved, verified or failed. What the run did against the contract beside that is reported by rule. `docs/audit.md`
//! says what counts as what; the rules AU1 to AU12 are printed by `runvault rules`.

mod collect;
mod decimal;
mod digests;
mod judge;
mod payloads;
mod pools;
mod refs;
mod rules;
mod schema;
mod schema_work;
mod sources;
mod targets;
mod verdict;

use std::collections::{HashMap, HashSet};

use crate::artifact::{Kind, MemberBytes};
use crate::canonical::Value;
use crate::canonical::reader::{Limits, ReadError};
use crate::digest::Digest;
use crate::kinds::contract::comparable;
use crate::verify::{Findings, Report};

pub use crate::kinds::contract::{Bound, Bounds, Effect, Evidence, IoRef, SchemaSource, Stated, Terms};
pub use judge::{FAILURE, SUCCESS};
pub use rules::RULES;

use collect::Collector;
use payloads::Payloads;
use rules::{EFFECTS, MODES, REQUIRED, SCHEMAS, TARGETS, UNCHECKED};

/// What an audit found.
#[derive(Clone, Debug)]
pub struct Audit {
    /// Every effect of the contract, in its order.
    pub effects: Vec<AuditedEffect>,
    /// What the run did against the contract, and what could not be checked. Errors are breaches, warnings are not.
    pub report: Report,
}

impl Audit {
    /// Whether every effect is verified, there is at least one, and nothing was done against the contract.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        let is_verified = |effect: &AuditedEffect| effect.verdict == Verdict::Verified;
        self.report.is_acceptable() && !self.effects.is_empty() && self.effects.iter().all(is_verified)
    }
}

/// What an audit says of one effect.
#[derive(Clone, Debug)]
pub struct AuditedEffect {
    /// The effect.
    pub effect: Effect,
    /// Whether it is proved.
    pub verdict: Verdict,
    /// Why, in words.
    pub because: String,
    /// The value that decided, unless the effect is pending.
    pub source: Option<EvidenceSource>,
}

/// Whether an effect is proved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// The run has no source of evidence.
    Pending,
    /// There is a source, and nothing proves success.
    Resolved,
    /// The source proves the effect.
    Verified,
    /// The source disproves the effect.
    Failed,
}

impl Verdict {
    /// The name, as programs write it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Resolved => "resolved",
            Self::Verified => "verified",
            Self::Failed => "failed",
        }
    }
}

/// A value that is evidence.
#[derive(Clone, Debug, PartialEq)]
pub struct EvidenceSource {
    /// Where it is, in words, such as `step 6`.
    pub place: String,
    /// The value, unless it is a list or an object.
    pub value: Option<Value<'static>>,
}

/// A run to be audited.
#[derive(Clone, Copy, Debug)]
pub struct AuditedRun<'r> {
    /// Its kind.
    pub kind: Kind,
    /// Its files.
    pub members: &'r [MemberBytes<'r>],
    /// The digests that stand for its files, by their names. A file may have several.
    pub digests: &'r [(String, Digest)],
}

/// Bytes that the vault has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    /// What they are, in words.
    pub name: String,
    /// The bytes.
    pub bytes: Vec<u8>,
}

/// Why a run could not be audited.
#[derive(Debug, thiserror::Error)]
pub enum AuditError<E> {
    /// A file of the run cannot be read by this program, though its bytes are intact.
    #[error(transparent)]
    Unreadable(#[from] ReadError),
    /// The vault could not be asked for bytes.
    #[error("the vault cannot be asked for bytes")]
    Vault(#[source] E),
}

/// Holds a run against a contract. `held` gives the bytes that the vault has for a digest.
///
/// The work is linear in the sizes of the contract and the run.
///
/// # Errors
/// [`AuditError::Unreadable`] if the run cannot be read, [`AuditError::Vault`] with the error of `held`.
pub fn audit<E>(
    terms: &Terms,
    run: &AuditedRun<'_>,
    held: &mut dyn FnMut(Digest) -> Result<Option<Held>, E>,
) -> Result<Audit, AuditError<E>> {
    let mut schemas = HashMap::new();
    for digest in payloads::named(terms) {
        if let Some(bytes) = held(digest).map_err(AuditError::Vault)? {
            schemas.insert(digest, bytes);
        }
    }
    let mut collector = Collector::new(terms, run.digests, Payloads::new(terms, schemas));
    run.kind.run_events(run.members, &Limits::most(), &mut |event| collector.take(&event))?;
    let known = digests::known(&verdict::digests(&collector), run, held)?;
    let effects = verdict::of_all(&collector, &known);
    let mut findings = Findings::default();
    if terms.effects.is_empty() {
        findings.of(EFFECTS).add("/effects", "the contract states no effects, so there is nothing to verify");
    }
    let with_evidence: HashSet<&str> = effects
        .iter()
        .filter(|effect| matches!(effect.verdict, Verdict::Resolved | Verdict::Verified))
        .map(|effect| effect.effect.target.as_str())
        .collect();
    collector.refs.report(&|name: &str| with_evidence.contains(name), &mut findings);
    collector.payloads.report(&mut findings);
    Ok(Audit { effects, report: findings.into_report() })
}

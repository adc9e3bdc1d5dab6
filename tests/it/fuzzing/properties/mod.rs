//! What must hold for any bytes at all, one property for each parser.
//!
//! Here they stand once. The targets in `fuzz/` call them with what libFuzzer finds, and `cargo test` with what the
//! generator beside this makes of the corpus. A property that does not hold panics.

mod archives;
mod damaged;
mod documents;
mod ingest;
mod json;
mod repair;
pub(crate) mod seeds;
mod vaults;

use std::convert::Infallible;
use std::path::Path;

use runvault::artifact::{AdmitOptions, Admitted, Cell, ColumnType, Kind, MemberBytes, Playback, document};
use runvault::digest::Digest;
use runvault::formats;
use runvault::json::reader::{self, Limits};
use runvault::validation::{Report, Severity};
use runvault::vault::audit::{AuditedRun, ContractTerms, Verdict, audit};

/// A parser under test.
pub(crate) struct Target {
    /// The name, which is that of the cargo-fuzz target as well.
    pub(crate) name: &'static str,
    /// The property.
    pub(crate) holds: fn(&[u8]),
    /// Where to begin; the argument is the root of the repository.
    pub(crate) seeds: fn(&Path) -> Vec<Vec<u8>>,
}

/// All of them. A new parser is a property, a line here and a file in `fuzz/fuzz_targets`.
pub(crate) const TARGETS: &[Target] = &[
    Target { name: "json", holds: json::json, seeds: seeds::json },
    Target { name: "model_io", holds: documents::model_io, seeds: seeds::model_io },
    Target { name: "rpk", holds: documents::rpk, seeds: seeds::rpk },
    Target { name: "trace", holds: documents::trace, seeds: seeds::trace },
    Target { name: "contract", holds: documents::contract, seeds: seeds::contract },
    Target { name: "yaml", holds: documents::yaml, seeds: seeds::yaml },
    Target { name: "pack", holds: documents::pack, seeds: seeds::pack },
    Target { name: "archive", holds: archives::archive, seeds: seeds::archive },
    Target { name: "recognition", holds: documents::recognition, seeds: seeds::recognition },
    Target { name: "verify_and_add", holds: ingest::verify_and_add, seeds: seeds::recognition },
    Target { name: "bundle", holds: vaults::bundles, seeds: vaults::bundle_seeds },
    Target { name: "journal", holds: vaults::journal, seeds: vaults::journal_seeds },
    Target { name: "vault", holds: damaged::vault, seeds: damaged::seeds },
];

/// Runs the property of the target `name` on `data`.
#[allow(dead_code, reason = "the driver in the tests has the whole list")]
pub(crate) fn run(name: &str, data: &[u8]) {
    let target = TARGETS.iter().find(|target| target.name == name);
    (target.unwrap_or_else(|| panic!("there is no target {name}")).holds)(data);
}

/// Admits `document` twice. The answers must be equal, and fit together.
fn admit(kind: Kind, document: &[u8]) -> Result<Admitted, Report> {
    let options = AdmitOptions::default();
    let outcome = kind.admit(document.to_vec(), &options);
    match (&outcome, kind.admit(document.to_vec(), &options)) {
        (Ok(one), Ok(other)) => {
            assert_eq!((one.core(), one.capture()), (other.core(), other.capture()));
            assert_eq!(one.report(), other.report());
            assert_eq!(one.draft().mentions, other.draft().mentions);
            assert_eq!(one.draft().attributes, other.draft().attributes);
            assert_eq!(one.members()[0].bytes(), document);
            check_admitted(one);
        }
        (Err(one), Err(other)) => {
            assert_eq!(one, &other);
            check_rejected(kind, one);
        }
        _ => panic!("admission depends on something else than the document"),
    }
    outcome
}

fn check_admitted(admitted: &Admitted) {
    assert!(admitted.report().is_acceptable());
    check_report(admitted.kind(), admitted.report());
    assert_eq!(Digest::from_content(&core(admitted)), admitted.core().0, "the core is not what was hashed");
    let draft = admitted.draft();
    assert!(draft.mentions.is_sorted() && draft.attributes.is_sorted());
    check_audit(admitted);
    check_playback(admitted);
    check_tables(admitted);
    check_passages(admitted);
    for embedded in admitted.embedded() {
        check_admitted(embedded);
    }
}

/// Every run can be held against a contract. What it says of an effect has a source, or else is pending.
fn check_audit(admitted: &Admitted) {
    const CONTRACT: &[u8] = br#"{"io_refs": [{"ref": "service:a", "schema": {"type": "object"}, "required": true, "mode": "mutate"},
        {"ref": "artifact:b", "schema": {"enum": [1]}, "required": true, "mode": "read"}],
        "effects": [{"name": "status", "target": "service:a", "evidence": {"type": "status", "metric": "status"}},
        {"name": "hash", "target": "service:a", "evidence": {"type": "hash", "path": "/a"}},
        {"name": "range", "target": "artifact:b", "evidence": {"type": "range", "path": "", "metric": "n", "max": 9}}]}"#;
    let terms = ContractTerms::read(CONTRACT).unwrap();
    let members = members(admitted);
    let run = AuditedRun { kind: admitted.kind(), members: &members, digests: &[], declared_digests: &[] };
    let audit = audit(&terms, &run, &mut |_| Ok::<_, Infallible>(None)).unwrap();
    assert_eq!(audit.effects.len(), terms.effects.len());
    for effect in &audit.effects {
        assert_eq!(effect.source.is_none(), effect.verdict == Verdict::Pending);
        assert!(admitted.kind().info().is_run || effect.source.is_none());
    }
}

/// What was recorded can be played, with the prompts that the artifact is found by.
fn check_playback(admitted: &Admitted) {
    let kind = admitted.kind();
    let document = admitted.members()[0].bytes();
    let exchanges = kind.exchanges(document).unwrap();
    let mentioned =
        |digest: &Digest| admitted.draft().mentions.iter().any(|mention| mention.digest == *digest);
    assert!(exchanges.is_empty() || kind.info().playback.is_some());
    for exchange in exchanges.iter().take(100) {
        assert!(kind.info().playback != Some(Playback::ByPrompt) || exchange.prompts.len() == 1);
        assert!(exchange.prompts.iter().take(100).all(mentioned));
    }
}

/// Tables have as many rows as the artifact says, each with a cell for every column, and JSON where they say so.
fn check_tables(admitted: &Admitted) {
    for table in admitted.kind().info().tables {
        let rows = (table.rows)(&members(admitted)).unwrap();
        let mut attributes = admitted.draft().attributes.iter();
        let stated = attributes.find(|attribute| attribute.name == table.name).unwrap();
        assert_eq!(rows.len().to_string(), stated.value, "{}", table.name);
        for row in rows.iter().take(100) {
            assert_eq!(row.len(), table.columns.len(), "{}", table.name);
            for (cell, column) in row.iter().zip(table.columns) {
                if let (Cell::Text(text), ColumnType::Json) = (cell, column.sort) {
                    reader::read_keeping_overflow(text.as_bytes(), &Limits::most()).unwrap();
                }
            }
        }
    }
}

/// The texts that are searched are always the same, and none is blank.
fn check_passages(admitted: &Admitted) {
    let passages = || admitted.kind().passages(&members(admitted)).unwrap();
    assert_eq!(passages(), passages());
    assert!(passages().iter().all(|passage| !passage.text.trim().is_empty()));
}

fn check_rejected(kind: Kind, report: &Report) {
    assert!(!report.is_acceptable());
    assert!(report.violations().iter().any(|violation| violation.severity == Severity::Error));
    check_report(kind, report);
}

/// Rules that are reported are those that `runvault rules` explains, and reports stay within their limits.
fn check_report(kind: Kind, report: &Report) {
    let rules: Vec<&str> = document::rules().iter().chain(&kind.rules()).map(|rule| rule.id).collect();
    for violation in report.violations() {
        assert!(rules.contains(&violation.rule_id.as_ref()), "{violation:?}");
    }
    let key = |index: usize| {
        let violation = &report.violations()[index];
        [violation.rule_id.as_ref(), &violation.path, &violation.message]
            .map(|text| text.encode_utf16().collect::<Vec<_>>())
    };
    assert!((1..report.violations().len()).all(|index| key(index - 1) <= key(index)));
    assert!(report.violations().len() <= Report::MAX_ERRORS + Report::MAX_WARNINGS);
}

fn members(admitted: &Admitted) -> Vec<MemberBytes<'_>> {
    let members = admitted.members().iter();
    members.map(|member| MemberBytes { name: member.name(), bytes: member.bytes() }).collect()
}

/// The canonical bytes whose digest is the core hash.
fn core(admitted: &Admitted) -> Vec<u8> {
    let mut core = Vec::new();
    admitted.kind().write_core(&members(admitted), &mut core).unwrap();
    core
}

fn kind(name: &str) -> Kind {
    formats::named(name).unwrap()
}

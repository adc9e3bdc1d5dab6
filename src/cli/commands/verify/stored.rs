//! Artifacts in the vault as arguments of `runvault verify`.

use std::io::{self, Write};

use runvault::artifact::SignaturePolicy;
use runvault::digest::CaptureHash;
use runvault::display::escaped;
use runvault::intake::ExamineOptions;
use runvault::vault::add::Summary;
use runvault::vault::verify::{CheckedSignature, VerifiedCapture, VerifyRequest};
use runvault::{LocatedCapture, Vault, formats};

use super::printer::VerifyPrinter;
use crate::cli::args::hash::ArtifactArg;
use crate::cli::args::vault::VaultArgs;
use crate::cli::output::exit::CommandError;
use crate::cli::output::signature::{self, CaptureSignatureStatus};
use crate::cli::output::stdout::{self, BAD, GOOD, HASH};
use crate::cli::output::{json, report};

/// The artifacts to check.
pub(super) struct VaultVerification<'o> {
    vault: Vault,
    options: &'o ExamineOptions,
    /// The artifacts, each with the capture that was named, if any.
    located: Vec<(LocatedCapture, Option<CaptureHash>)>,
}

impl<'o> VaultVerification<'o> {
    /// Looks up the artifacts in the arguments; `None` if there are none.
    pub(super) fn locate(
        named: &[(&str, ArtifactArg)],
        options: &'o ExamineOptions,
        vault: &VaultArgs,
    ) -> Result<Option<Self>, CommandError> {
        let Some((first, _)) = named.first() else { return Ok(None) };
        // If something is not found, nothing was verified, so this is never the negative result.
        let no_file = |text: &str, error: String| {
            CommandError::CouldNotRun(format!("there is no file {text}; {error}"))
        };
        let vault = vault.open().map_err(|error| no_file(first, error.to_string()))?;
        let mut located = Vec::new();
        for (text, named) in named {
            let found = named.locate(&vault).map_err(|error| no_file(text, error.to_string()))?;
            if let Some(kind) = options.kind.filter(|kind| kind.name() != found.artifact.kind) {
                let (found, kind) = (formats::noun(&found.artifact.kind), formats::noun(kind.name()));
                return Err(CommandError::No(format!("{text} is {found}, not {kind}")));
            }
            let only = named.is_capture(&found).then_some(found.capture.capture);
            located.push((found, only));
        }
        Ok(Some(Self { vault, options, located }))
    }

    /// Checks the artifacts, prints the results, and counts them.
    pub(super) fn verify(
        &self,
        printer: &mut VerifyPrinter,
        summary: &mut Summary,
    ) -> Result<(), CommandError> {
        for (LocatedCapture { artifact, .. }, only) in &self.located {
            // One artifact is one page.
            let request = VerifyRequest {
                artifacts: vec![artifact.core],
                capture: *only,
                require_signature: self.options.admit.signature_policy == SignaturePolicy::Require,
                keys: self.options.admit.signing_keys.clone(),
                ..VerifyRequest::default()
            };
            for verified in self.vault.run(&request)?.captures {
                *if verified.ok { &mut summary.verified } else { &mut summary.rejected } += 1;
                summary.bytes += verified.size;
                printer.print(verified.size, |printer| print(&verified, printer));
            }
        }
        Ok(())
    }
}

fn print(verified: &VerifiedCapture, printer: &VerifyPrinter) -> io::Result<()> {
    if printer.json {
        return json::line(&mut stdout::raw(), verified);
    }
    let VerifiedCapture { kind, ok, core_hash, capture_hash, .. } = verified;
    let kind = formats::bare_noun(kind);
    let (word, style) = if *ok { ("good", GOOD) } else { ("bad", BAD) };
    let mut out = stdout::text();
    writeln!(
        out,
        "{style}{word:<7}{style:#} {kind:<11} {HASH}{core_hash:.12}{HASH:#} capture {HASH}{capture_hash:.12}{HASH:#}"
    )?;
    writeln!(out, "  {}", result(verified))?;
    let omitted = verified.violations_omitted.unwrap_or(0);
    report::write_listed(&mut out, &verified.violations, omitted, printer.most())
}

/// Describes the result of a verification.
fn result(verified: &VerifiedCapture) -> String {
    match (&verified.damage, verified.computed_core_hash) {
        (Some(damage), _) => format!("the stored bytes are damaged: {}", escaped(damage)),
        (None, None) => "bytes intact, rules broken".to_owned(),
        (None, Some(core)) if core != verified.core_hash => {
            format!("bytes intact, rules satisfied, different core hash: {core}")
        }
        (None, Some(_)) => {
            let signature = match &verified.signature {
                Some(CheckedSignature { signature, key_id }) => {
                    signature::text_of((*signature).into(), key_id.as_deref())
                }
                None => signature::text_of(CaptureSignatureStatus::Unsigned, None),
            };
            format!("bytes intact, rules satisfied, core hash correct, {signature}")
        }
    }
}

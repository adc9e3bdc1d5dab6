//! One side of a comparison.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use runvault::Vault;
use runvault::artifact::{AdmitOptions, Kind};
use runvault::digest::{CaptureHash, CoreHash};
use runvault::intake::{self, DocumentVerdict, ExamineOptions, Input, InputItem, Inputs, Rejection};
use runvault::json::reader::Limits;
use runvault::vault::captures::CapturesRequest;
use runvault::vault::diff::Side;

use crate::cli::args::hash::ArtifactArg;
use crate::cli::args::vault::VaultArgs;
use crate::cli::commands::captures::say_which;
use crate::cli::output::exit::CommandError;
use crate::cli::output::json;
use crate::cli::output::report;
use crate::cli::output::stdout;

/// Loads the artifact that `text` identifies: a hash or @ and a tag if it has that form, otherwise a path, otherwise a name
/// in the vault.
pub(super) fn load(
    text: &OsStr,
    vault: &VaultArgs,
    kind: Option<Kind>,
    limits: Limits,
) -> Result<Side, CommandError> {
    match named(text) {
        Some(named @ ArtifactArg::Name(..)) if named.resolves(vault) => stored(text, &named, vault),
        None | Some(ArtifactArg::Name(..)) => file(Path::new(text), kind, limits),
        Some(named) => stored(text, &named, vault),
    }
}

fn stored(text: &OsStr, named: &ArtifactArg, vault: &VaultArgs) -> Result<Side, CommandError> {
    let name = text.to_string_lossy().into_owned();
    let is_file_as_well = Path::new(text).exists();
    let hint = if is_file_as_well {
        format!("; for the file with this name, write ./{name}")
    } else {
        String::new()
    };
    let could_not = |error: String| CommandError::CouldNotRun(format!("{error}{hint}"));
    let vault = vault.open().map_err(|error| could_not(error.to_string()))?;
    let located = named.locate(&vault).map_err(|error| could_not(with_candidates(error)))?;
    let (core, capture) = (located.artifact.core, located.capture.capture);
    if !named.is_capture(&located) {
        say_which(&vault, core, capture)?;
    }
    let side = Side::stored(&vault, core, Some(capture))?;
    Ok(side.named(name, None))
}

/// The captures of an artifact, the preferred one first.
pub(super) struct Captures {
    vault: Vault,
    core: CoreHash,
    pub(super) hashes: Vec<CaptureHash>,
}

impl Captures {
    /// Reads a capture.
    pub(super) fn read(&self, hash: CaptureHash) -> Result<Side, CommandError> {
        let side = Side::stored(&self.vault, self.core, Some(hash))?;
        Ok(side.named(format!("capture {hash:.12}"), None))
    }
}

/// Lists the captures of the artifact that `text` identifies.
pub(super) fn captures(text: &OsStr, vault: &VaultArgs) -> Result<Captures, CommandError> {
    let named = named(text).ok_or_else(|| {
        let message = "one hash with --all compares the captures of an artifact; for files, give two";
        CommandError::Usage(message.to_owned())
    })?;
    let vault = vault.open()?;
    let located = named.locate(&vault).map_err(|error| CommandError::CouldNotRun(with_candidates(error)))?;
    let (core, first) = (located.artifact.core, located.capture.capture);
    let captures = vault.run(&CapturesRequest::new(core))?.captures.into_iter();
    let others = captures.map(|capture| capture.capture_hash).filter(|hash| *hash != first);
    Ok(Captures { hashes: std::iter::once(first).chain(others).collect(), core, vault })
}

fn file(path: &Path, kind: Option<Kind>, limits: Limits) -> Result<Side, CommandError> {
    let name = path.to_string_lossy().into_owned();
    if !path.exists() {
        return Err(CommandError::CouldNotRun(format!(
            "there is no file, artifact, tag or run named {name}"
        )));
    }
    let item = only_item(path, kind)?;
    let options = ExamineOptions {
        kind,
        admit: AdmitOptions { limits, ..AdmitOptions::default() },
        ..ExamineOptions::default()
    };
    let verdict =
        intake::examine(item, &options).map_err(|error| CommandError::CouldNotRun(error.to_string()))?;
    match verdict {
        DocumentVerdict::Admitted(admitted) => {
            Ok(Side::admitted(&admitted).named(name, json::bytes_of(path.as_os_str())))
        }
        DocumentVerdict::Rejected(rejection) => Err(rejected(&name, &rejection)),
        DocumentVerdict::NoArtifact => Err(CommandError::CouldNotRun(format!("{name} is not an artifact"))),
    }
}

/// Returns the single artifact at a path. A directory is accepted only if it is a pack.
fn only_item(path: &Path, kind: Option<Kind>) -> Result<InputItem, CommandError> {
    match Inputs::new(vec![Input::Path(PathBuf::from(path))]).with_kind(kind).next() {
        Some(Ok(item @ (InputItem::Named(_) | InputItem::Directory { named: true, .. }))) => Ok(item),
        Some(Err(error)) => Err(CommandError::CouldNotRun(error.to_string())),
        _ => {
            let name = path.display();
            Err(CommandError::CouldNotRun(format!("{name} is a directory but not a pack; name a file in it")))
        }
    }
}

/// Formats a lookup error. A failed lookup is always an error of the command, never a negative result of the
/// comparison.
fn with_candidates(failure: CommandError) -> String {
    match failure {
        CommandError::Ambiguous { message, candidates: lines }
        | CommandError::Refused { message, because: lines } => {
            format!("{message}: {}", lines.join(", "))
        }
        failure => failure.to_string(),
    }
}

/// Parses an artifact argument, unless it is a name that a file has.
fn named(text: &OsStr) -> Option<ArtifactArg> {
    let named = text.to_str()?.parse().ok()?;
    let is_file = matches!(named, ArtifactArg::Name(..)) && Path::new(text).symlink_metadata().is_ok();
    (!is_file).then_some(named)
}

fn rejected(name: &str, rejection: &Rejection) -> CommandError {
    let mut listed = Vec::new();
    // Writing to memory cannot fail.
    let _ = report::write(&mut listed, &rejection.report, report::LISTED);
    stdout::message(String::from_utf8_lossy(&listed).trim_end());
    let kind = rejection.kind.map_or("artifact", Kind::noun);
    CommandError::CouldNotRun(format!("{name} is not a valid {kind} and cannot be compared"))
}

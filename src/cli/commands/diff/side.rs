//! One side of a comparison.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use runvault::artifact::{AdmitOptions, Admitted, Kind, MemberBytes};
use runvault::digest::{CaptureHash, CoreHash};
use runvault::formats;
use runvault::intake::{self, ExamineOptions, Input, Inputs, Item, Rejection, Verdict};
use runvault::json::reader::Limits;
use runvault::{Located, Vault};

use crate::cli::args::hash::Named;
use crate::cli::args::vault::VaultArgs;
use crate::cli::commands::captures;
use crate::cli::output::exit::Failure;
use crate::cli::output::report;
use crate::cli::output::stdout;

/// An artifact with its files.
pub(super) struct Side {
    /// Its name as given by the user.
    pub(super) name: String,
    /// The name as the system represents it, if it is a path.
    pub(super) path: Option<OsString>,
    pub(super) kind: Kind,
    pub(super) core: CoreHash,
    /// The capture hash; `None` for a file.
    pub(super) capture: Option<CaptureHash>,
    members: Vec<(String, Vec<u8>)>,
}

impl Side {
    /// Loads the artifact that `text` identifies: a hash or @ and a tag if it has that form, otherwise a path, otherwise
    /// a name in the vault.
    pub(super) fn load(text: &OsStr, vault: &VaultArgs, limits: Limits) -> Result<Self, Failure> {
        match named(text) {
            Some(named @ Named::Name(..)) if named.resolves(vault) => Self::stored(text, &named, vault),
            None | Some(Named::Name(..)) => Self::file(Path::new(text), limits),
            Some(named) => Self::stored(text, &named, vault),
        }
    }

    pub(super) fn members(&self) -> Vec<MemberBytes<'_>> {
        self.members.iter().map(|(name, bytes)| MemberBytes { name, bytes }).collect()
    }

    fn stored(text: &OsStr, named: &Named, vault: &VaultArgs) -> Result<Self, Failure> {
        let name = text.to_string_lossy().into_owned();
        let is_file_as_well = Path::new(text).exists();
        let hint = if is_file_as_well {
            format!("; for the file with this name, write ./{name}")
        } else {
            String::new()
        };
        let could_not = |error: String| Failure::CouldNotRun(format!("{error}{hint}"));
        let vault = vault.open().map_err(|error| could_not(error.to_string()))?;
        let located = named.locate(&vault).map_err(|error| could_not(with_candidates(error)))?;
        let kind = formats::named(&located.artifact.kind)
            .ok_or_else(|| could_not(format!("this version of runvault does not know the kind of {name}")))?;
        if !named.is_capture(&located) {
            captures::say_which(&vault, &located)?;
        }
        Self::located(&vault, &located, name, kind)
    }

    /// Loads the captures of the artifact that `text` identifies: the preferred one first, then the others.
    pub(super) fn captures(text: &OsStr, vault: &VaultArgs) -> Result<Vec<Self>, Failure> {
        let name = text.to_string_lossy().into_owned();
        let named = named(text).ok_or_else(|| {
            let message = "one hash with --all compares the captures of an artifact; for files, give two";
            Failure::Usage(message.to_owned())
        })?;
        let vault = vault.open()?;
        let located = named.locate(&vault).map_err(|error| Failure::CouldNotRun(with_candidates(error)))?;
        let kind = formats::named(&located.artifact.kind).ok_or_else(|| {
            Failure::CouldNotRun(format!("this version of runvault does not know the kind of {name}"))
        })?;
        let captures = vault.captures(&located.artifact)?;
        let others = captures.into_iter().filter(|capture| capture.capture != located.capture.capture);
        let mut sides = Vec::new();
        for capture in std::iter::once(located.capture.clone()).chain(others) {
            let name = format!("capture {:.12}", capture.capture);
            let located = Located { artifact: located.artifact.clone(), capture };
            sides.push(Self::located(&vault, &located, name, kind)?);
        }
        Ok(sides)
    }

    fn located(vault: &Vault, located: &Located, name: String, kind: Kind) -> Result<Self, Failure> {
        let members = vault.members(located)?.into_iter();
        let members = members.map(|member| (member.name, member.bytes)).collect();
        let capture = Some(located.capture.capture);
        Ok(Self { name, path: None, kind, core: located.artifact.core, capture, members })
    }

    fn file(path: &Path, limits: Limits) -> Result<Self, Failure> {
        let name = path.to_string_lossy().into_owned();
        if !path.exists() {
            return Err(Failure::CouldNotRun(format!("{name} is neither a hash nor a file")));
        }
        let item = only_item(path)?;
        let options = ExamineOptions {
            admit: AdmitOptions { limits, ..AdmitOptions::default() },
            ..ExamineOptions::default()
        };
        let verdict =
            intake::examine(item, &options).map_err(|error| Failure::CouldNotRun(error.to_string()))?;
        match verdict {
            Verdict::Admitted(admitted) => Ok(Self::admitted(name, path, &admitted)),
            Verdict::Rejected(rejection) => Err(rejected(&name, &rejection)),
            Verdict::NoArtifact => Err(Failure::CouldNotRun(format!("{name} is not an artifact"))),
        }
    }

    fn admitted(name: String, path: &Path, admitted: &Admitted) -> Self {
        let members = admitted.members().iter();
        let members = members.map(|member| (member.name().to_owned(), member.bytes().to_vec())).collect();
        Self {
            name,
            path: Some(path.as_os_str().to_owned()),
            kind: admitted.kind(),
            core: admitted.core(),
            capture: None,
            members,
        }
    }
}

/// Returns the single artifact at a path. A directory is accepted only if it is a pack.
fn only_item(path: &Path) -> Result<Item, Failure> {
    match Inputs::new(vec![Input::Path(PathBuf::from(path))]).next() {
        Some(Ok(item @ (Item::Named(_) | Item::Directory { named: true, .. }))) => Ok(item),
        Some(Err(error)) => Err(Failure::CouldNotRun(error.to_string())),
        _ => {
            let name = path.display();
            Err(Failure::CouldNotRun(format!("{name} is a directory but not a pack; name a file in it")))
        }
    }
}

/// Formats a lookup error. A failed lookup is always an error of the command, never a negative result of the
/// comparison.
fn with_candidates(failure: Failure) -> String {
    match failure {
        Failure::Ambiguous { message, candidates: lines } | Failure::Refused { message, because: lines } => {
            format!("{message}: {}", lines.join(", "))
        }
        failure => failure.to_string(),
    }
}

/// Parses an artifact argument, unless it is a name that a file has.
fn named(text: &OsStr) -> Option<Named> {
    let named = text.to_str()?.parse().ok()?;
    let is_file = matches!(named, Named::Name(..)) && Path::new(text).symlink_metadata().is_ok();
    (!is_file).then_some(named)
}

fn rejected(name: &str, rejection: &Rejection) -> Failure {
    let mut listed = Vec::new();
    // Writing to memory cannot fail.
    let _ = report::write(&mut listed, &rejection.report, report::LISTED);
    stdout::message(String::from_utf8_lossy(&listed).trim_end());
    let kind = rejection.kind.map_or("artifact", Kind::name);
    Failure::CouldNotRun(format!("{name} is not a valid {kind} and cannot be compared"))
}

//! What "add" and "verify" read, and how strictly.

use std::io::Read;
use std::path::PathBuf;

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use runvault::artifact::{AdmitOptions, Kind, SigningKey};
use runvault::kinds;
use runvault::source::{ExamineOptions, Input, Inputs};

use super::exit::Failure;
use super::limits::LimitArgs;
use super::{output, settings};

/// Files and how they are checked.
#[derive(Args)]
pub(crate) struct InputArgs {
    /// Files, directories (with all that is in them), packs as directories or archives, or - for standard input
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,

    /// Insist on a kind instead of recognising it by content
    #[arg(long, value_parser = a_kind())]
    kind: Option<Kind>,

    /// Reject every file in a directory that is not an artifact, instead of skipping it
    #[arg(long)]
    strict: bool,

    #[command(flatten)]
    pub(crate) checks: CheckArgs,
}

/// How documents are checked.
#[derive(Args)]
pub(crate) struct CheckArgs {
    /// Check rpk signatures with the key in this file. Default: the key in `RUNVAULT_SIGNING_KEY`, else the setting
    /// signing-key-file
    #[arg(long, value_name = "FILE")]
    signing_key_file: Option<PathBuf>,

    /// Refuse rpk files that are not signed; give a key as well to have signatures checked
    #[arg(long)]
    require_signature: bool,

    #[command(flatten)]
    limits: LimitArgs,
}

impl InputArgs {
    /// The inputs; standard input is read here.
    pub(crate) fn inputs(&self) -> Result<Inputs, Failure> {
        let input = |path: &PathBuf| match path.to_str() {
            Some("-") => self.standard_input(),
            _ => Ok(Input::Path(path.clone())),
        };
        let inputs = self.paths.iter().map(input).collect::<Result<_, _>>().map(Inputs::new);
        // What was named is never skipped, and neither is a directory in which nothing is recognised.
        inputs.map(|inputs| inputs.of_kind(self.kind).with_ends())
    }

    /// Whether standard input is one of them.
    pub(crate) fn has_standard_input(&self) -> bool {
        self.paths.iter().any(|path| path.to_str() == Some("-"))
    }

    fn standard_input(&self) -> Result<Input, Failure> {
        let mut bytes = Vec::new();
        // One more than allowed is enough to be refused.
        let mut limited = std::io::stdin().lock().take(self.checks.limits.limits()?.bytes.saturating_add(1));
        limited
            .read_to_end(&mut bytes)
            .map_err(|error| Failure::CouldNotRun(format!("cannot read standard input: {error}")))?;
        Ok(Input::Document { name: "-".to_owned(), bytes })
    }

    /// How to examine.
    pub(crate) fn options(&self) -> Result<ExamineOptions, Failure> {
        Ok(ExamineOptions { strict: self.strict, ..self.checks.options(self.kind)? })
    }
}

impl CheckArgs {
    /// How to examine documents of a kind, or of any.
    pub(crate) fn options(&self, kind: Option<Kind>) -> Result<ExamineOptions, Failure> {
        let signing_key = self.signing_key()?;
        if self.require_signature && signing_key.is_none() {
            output::note("note: signatures must be there, but are not checked: no signing key was given");
        }
        Ok(ExamineOptions {
            kind,
            admit: AdmitOptions {
                limits: self.limits.limits()?,
                signing_key,
                require_signature: self.require_signature,
            },
            allow_removed: false,
            strict: false,
        })
    }

    /// So many violations of one document are told; nothing if nobody said how many.
    pub(crate) fn listed(&self) -> Result<Option<usize>, Failure> {
        self.limits.violations()
    }

    fn signing_key(&self) -> Result<Option<SigningKey>, Failure> {
        let (text, origin) = match self.signing_key_source()? {
            None => return Ok(None),
            Some(KeySource::Variable(text)) => (text, KEY_VARIABLE.to_owned()),
            Some(KeySource::File(path)) => {
                let name = path.display().to_string();
                let text = std::fs::read_to_string(&path).map_err(|error| {
                    Failure::CouldNotRun(format!("cannot read the signing key {name}: {error}"))
                })?;
                (text, name)
            }
        };
        SigningKey::new(&text).map(Some).map_err(|error| Failure::Usage(format!("{origin}: {error}")))
    }

    /// The argument goes before the variable that holds the key itself, and that before the setting.
    fn signing_key_source(&self) -> Result<Option<KeySource>, Failure> {
        if let Some(path) = &self.signing_key_file {
            return Ok(Some(KeySource::File(path.clone())));
        }
        match std::env::var(KEY_VARIABLE) {
            // This is how many systems pass a secret that is not set.
            Ok(text) if text.is_empty() => {}
            Ok(text) => return Ok(Some(KeySource::Variable(text))),
            Err(std::env::VarError::NotPresent) => {}
            // The error would tell what the key is.
            Err(std::env::VarError::NotUnicode(_)) => {
                return Err(Failure::Usage(format!("{KEY_VARIABLE} is not valid UTF-8")));
            }
        }
        Ok(settings::SIGNING_KEY_FILE.get_path()?.map(KeySource::File))
    }
}

/// Holds the key itself.
const KEY_VARIABLE: &str = "RUNVAULT_SIGNING_KEY";

/// Where a signing key comes from.
enum KeySource {
    Variable(String),
    File(PathBuf),
}

pub(crate) fn a_kind() -> impl TypedValueParser<Value = Kind> {
    let names = PossibleValuesParser::new(kinds::ALL.map(Kind::name));
    names.try_map(|name| kinds::named(&name).ok_or("no such kind"))
}

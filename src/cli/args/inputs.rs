//! Inputs of "add" and "verify", among them the directories in which agents keep their sessions, and how strictly they are
//! checked.

use std::cell::OnceCell;
use std::collections::{HashMap, HashSet};
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

use clap::Args;
use runvault::artifact::{AdmitOptions, Kind, SignaturePolicy};
use runvault::digest::Digest;
use runvault::display::escaped;
use runvault::formats;
use runvault::intake::archive::decompressed_name;
use runvault::intake::{AgentContent, AgentDirectory, ExamineOptions, Input, Inputs, agent_directories};
use runvault::json::reader::Limits;
use runvault::secrets::{SecretMatch, SecretPolicy};
use runvault::vault::add::CommonAnnotations;
use runvault::vault::agents::{self, AgentFiles};
use runvault::vault::details::CaptureSummary;

use super::bounds::{bytes, depth, entries, values, violations};
use super::completing::CandidateSource;
use super::hash::ArtifactArg;
use super::keys::KeyArgs;
use super::label::LabelArgs;
use super::settings;
use super::vault::VaultArgs;
use crate::cli::output::exit::CommandError;
use crate::cli::output::{disk, stdout};

/// Files and how they are checked.
#[derive(Args)]
pub(crate) struct InputArgs {
    /// Files, directories (recursively), packs as directories or archives, or - for standard input
    #[arg(required_unless_present = "agents", value_name = "PATH")]
    paths: Vec<PathBuf>,

    #[command(flatten)]
    agents: AgentArgs,

    /// Require this kind instead of recognizing it by content; attachments must be requested explicitly
    #[arg(long, visible_alias = "as", value_name = "KIND", value_parser = kind, add = CandidateSource::Kinds.completer())]
    kind: Option<Kind>,

    /// Reject every file in a directory that is not an artifact, instead of skipping it
    #[arg(long, hide_short_help = true)]
    strict: bool,

    #[command(flatten)]
    pub(crate) checks: CheckArgs,
}

/// How documents are checked.
#[derive(Args)]
pub(crate) struct CheckArgs {
    #[command(flatten)]
    keys: KeyArgs,

    /// Reject run packs that are not signed and, if a key is given, those signed with a key id that no given key has
    #[arg(long, hide_short_help = true)]
    require_signature: bool,

    #[command(flatten)]
    limits: LimitArgs,
}

impl InputArgs {
    /// Returns the inputs; reads standard input.
    pub(crate) fn inputs(&self) -> Result<Inputs, CommandError> {
        self.inputs_of(&self.paths, self.agents.existing()?)
    }

    /// Returns what adds the files of agents, and sessions in databases.
    pub(crate) fn agent_files(&self) -> AgentFiles {
        self.agents.files()
    }

    fn inputs_of(&self, paths: &[PathBuf], agents: &[PathBuf]) -> Result<Inputs, CommandError> {
        let input = |path: &PathBuf| match path.to_str() {
            Some("-") => self.standard_input(),
            _ => disk::expect_path(path).map(|()| Input::Path(path.clone())),
        };
        let mut inputs = paths.iter().map(input).collect::<Result<Vec<Input>, _>>()?;
        let found = |path: &PathBuf| {
            if path.is_dir() { Input::Directory(path.clone()) } else { Input::Path(path.clone()) }
        };
        inputs.extend(agents.iter().map(found));
        // Named paths are never skipped, nor are directories in which nothing is recognized.
        Ok(Inputs::new(inputs).with_kind(self.kind()).with_ends())
    }

    /// Separates paths that do not exist and may identify artifacts in the vault from the other inputs.
    #[expect(clippy::type_complexity, reason = "two lists, each described above")]
    pub(crate) fn split(
        &self,
        vault: &VaultArgs,
    ) -> Result<(Vec<(&str, ArtifactArg)>, Option<Inputs>), CommandError> {
        let (mut stored, mut paths) = (Vec::new(), Vec::new());
        for path in &self.paths {
            let is_file = path.to_str() == Some("-") || std::fs::symlink_metadata(path).is_ok();
            let text = path.to_str().filter(|_| !is_file);
            match text.and_then(|text| Some((text, text.parse().ok()?))) {
                Some((_, named @ ArtifactArg::Name(..))) if !named.resolves(vault) => {
                    paths.push(path.clone());
                }
                Some(named) => stored.push(named),
                None => paths.push(path.clone()),
            }
        }
        let agents = self.agents.existing()?;
        let is_given = !paths.is_empty() || !agents.is_empty();
        let inputs = is_given.then(|| self.inputs_of(&paths, agents)).transpose()?;
        Ok((stored, inputs))
    }

    /// Returns whether standard input is one of them.
    pub(crate) fn has_standard_input(&self) -> bool {
        self.paths.iter().any(|path| path.to_str() == Some("-"))
    }

    /// Returns the paths to count for progress; `None` if standard input is one of the inputs.
    pub(crate) fn files(&self) -> Option<Vec<PathBuf>> {
        (!self.has_standard_input()).then(|| self.files_and_agents().ok()).flatten()
    }

    fn files_and_agents(&self) -> Result<Vec<PathBuf>, CommandError> {
        Ok(self.paths.iter().cloned().chain(self.agents.existing()?.iter().cloned()).collect())
    }

    fn kind(&self) -> Option<Kind> {
        self.kind.or(self.agents.kind())
    }

    fn standard_input(&self) -> Result<Input, CommandError> {
        let mut bytes = Vec::new();
        // One byte more than allowed is enough to reject it.
        let mut limited = std::io::stdin().lock().take(self.checks.limits.limits()?.bytes.saturating_add(1));
        limited
            .read_to_end(&mut bytes)
            .map_err(|error| CommandError::CouldNotRun(format!("cannot read standard input: {error}")))?;
        Ok(Input::Document { name: "-".to_owned(), bytes })
    }

    /// Returns the examination options.
    pub(crate) fn options(&self) -> Result<ExamineOptions, CommandError> {
        Ok(ExamineOptions { strict: self.strict, ..self.checks.options(self.kind())? })
    }
}

impl CheckArgs {
    /// Returns the examination options for documents of a kind, or of any.
    pub(crate) fn options(&self, kind: Option<Kind>) -> Result<ExamineOptions, CommandError> {
        let signing_keys = self.keys.ring()?;
        if self.require_signature && signing_keys.is_empty() {
            stdout::message(
                "note: signatures are required but not checked, because no signing key was given",
            );
        }
        Ok(ExamineOptions {
            kind,
            admit: AdmitOptions {
                limits: self.limits.limits()?,
                signing_keys,
                signature_policy: if self.require_signature {
                    SignaturePolicy::Require
                } else {
                    SignaturePolicy::RejectWrong
                },
                ..AdmitOptions::default()
            },
            allow_removed: false,
            strict: false,
            without_source_path: false,
        })
    }

    /// Returns the maximum number of violations listed per document; `None` if not given.
    pub(crate) fn listed(&self) -> Result<Option<usize>, CommandError> {
        self.limits.violations()
    }
}

/// Limits. Each is a setting as well; arguments go before settings.
#[derive(Args)]
pub(crate) struct LimitArgs {
    /// Maximum document size in bytes; k, M and G stand for KiB, MiB and GiB. Default: the setting max-size, else 256M
    #[arg(long = "max-size", value_name = "BYTES", help_heading = "Limits", value_parser = bytes, hide_short_help = true)]
    size: Option<u64>,

    /// Maximum nesting depth. Default: the setting max-depth, else 128
    #[arg(long = "max-depth", value_name = "N", help_heading = "Limits", value_parser = depth, hide_short_help = true)]
    depth: Option<usize>,

    /// Maximum number of values in a JSON text. Default: the setting max-values, else 10000000
    #[arg(long = "max-values", value_name = "N", help_heading = "Limits", value_parser = values, hide_short_help = true)]
    values: Option<usize>,

    /// Maximum number of entries in a pack, including those that are not read. Default: the setting max-entries, else
    /// 10000
    #[arg(long = "max-entries", value_name = "N", help_heading = "Limits", value_parser = entries, hide_short_help = true)]
    entries: Option<usize>,

    /// Maximum violations reported per document. Default: the setting max-violations, else 20, with --json all
    #[arg(long = "max-violations", value_name = "N", help_heading = "Limits", value_parser = violations, hide_short_help = true)]
    violations: Option<usize>,
}

impl LimitArgs {
    /// Returns the limits of documents.
    pub(crate) fn limits(&self) -> Result<Limits, CommandError> {
        let default = Limits::default();
        Ok(Limits {
            bytes: settings::MAX_SIZE.unless(self.size)?.unwrap_or(default.bytes),
            depth: settings::MAX_DEPTH.unless(self.depth)?.unwrap_or(default.depth),
            values: settings::MAX_VALUES.unless(self.values)?.unwrap_or(default.values),
            entries: settings::MAX_ENTRIES.unless(self.entries)?.unwrap_or(default.entries),
        })
    }

    /// Returns the maximum number of violations listed.
    pub(crate) fn violations(&self) -> Result<Option<usize>, CommandError> {
        settings::MAX_VIOLATIONS.unless(self.violations)
    }
}

/// What is done about secrets.
#[derive(Args)]
pub(crate) struct SecretArgs {
    /// Refuse to store what looks like a key or a card number
    ///
    /// Without this, there is only a warning. The setting refuse-secrets changes the default.
    #[arg(long, hide_short_help = true)]
    refuse_secrets: bool,
}

impl SecretArgs {
    /// Returns what is done.
    pub(crate) fn policy(&self) -> Result<SecretPolicy, CommandError> {
        let refuses = self.refuse_secrets || settings::refuse_secrets()?;
        Ok(if refuses { SecretPolicy::Refuse } else { SecretPolicy::Report })
    }
}

/// Warns of secrets in what has this name.
pub(crate) fn warn_of_secrets(name: &str, secrets: &[SecretMatch]) {
    for found in secrets {
        let text = found.to_string();
        stdout::warning(&format!("{}: {}", escaped(name), escaped(&text)));
    }
}

/// Options for what is recorded with every artifact that is added: labels, the source path, found secrets.
#[derive(Args)]
pub(crate) struct RecordedArgs {
    #[command(flatten)]
    labels: LabelArgs,

    /// Do not record source paths
    ///
    /// Without this, each new capture is stored with the path that it was read from, as it was given or found. The
    /// setting source-path changes the default.
    #[arg(long, hide_short_help = true)]
    no_source_path: bool,

    #[command(flatten)]
    secrets: SecretArgs,
}

impl RecordedArgs {
    /// Returns `options` with the treatment of source paths and of secrets.
    pub(crate) fn options(&self, options: ExamineOptions) -> Result<ExamineOptions, CommandError> {
        let without_source_path = self.no_source_path || !settings::source_path()?;
        let mut options = ExamineOptions { without_source_path, ..options };
        options.admit.secrets = self.secrets.policy()?;
        Ok(options)
    }

    /// Returns the labels and this note.
    pub(crate) fn annotations(&self, note: Option<String>) -> Result<CommonAnnotations, CommandError> {
        Ok(CommonAnnotations { labels: self.labels.labels()?, note })
    }
}

/// Parses any name of a kind, for clap: its id, such as `model_io`, or its noun in singular or plural.
pub(crate) fn kind(text: &str) -> Result<Kind, String> {
    formats::called(text).ok_or_else(|| {
        let plurals = formats::ALL.map(Kind::plural).join(", ");
        format!("expected one of {}, or {plurals}", formats::names())
    })
}

/// Whether to read the sessions of agents.
#[derive(Args)]
pub(crate) struct AgentArgs {
    /// Add the sessions that Claude Code, Codex, Gemini CLI, opencode and Pi keep of this user, and no other kinds
    ///
    /// The files that belong to a session are added with it. The environment variables of these programs say where they are.
    #[arg(long, conflicts_with = "kind")]
    agents: bool,

    /// What exists of the directories.
    #[arg(skip)]
    existing: OnceCell<Vec<PathBuf>>,
}

impl AgentArgs {
    /// Returns the kind that is required, if the sessions of agents are.
    pub(crate) fn kind(&self) -> Option<Kind> {
        self.agents.then_some(formats::AGENT_SESSIONS)
    }

    /// Returns the directories, if they are to be read. They need not exist.
    pub(crate) fn directories(&self) -> Vec<AgentDirectory> {
        if self.agents { directories() } else { Vec::new() }
    }

    /// Returns what adds the files in the directories, and sessions in databases.
    pub(crate) fn files(&self) -> AgentFiles {
        AgentFiles::new(self.directories())
    }

    /// Returns the directories that exist, and the databases in them, if they are to be read.
    pub(crate) fn existing(&self) -> Result<&[PathBuf], CommandError> {
        let existing = self.existing.get_or_init(|| {
            let paths = |AgentDirectory { path, content, .. }| match content {
                AgentContent::Databases => agents::databases_in(&path),
                _ if path.is_dir() => vec![path],
                _ => Vec::new(),
            };
            self.directories().into_iter().flat_map(paths).collect()
        });
        if existing.is_empty() && self.agents {
            let names: Vec<String> =
                self.directories().iter().map(|directory| directory.path.display().to_string()).collect();
            return Err(CommandError::CouldNotRun(format!(
                "no program keeps sessions of this user: none of these directories exists: {}",
                names.join(", ")
            )));
        }
        Ok(existing)
    }
}

/// Returns the paths of the directories with databases, and those of the others.
pub(crate) fn databases_and_others(directories: Vec<AgentDirectory>) -> (Vec<PathBuf>, Vec<PathBuf>) {
    let (databases, others): (Vec<_>, Vec<_>) =
        directories.into_iter().partition(|directory| directory.content == AgentContent::Databases);
    let paths = |all: Vec<AgentDirectory>| all.into_iter().map(|directory| directory.path).collect();
    (paths(databases), paths(others))
}

/// Returns the directories of sessions of this user.
fn directories() -> Vec<AgentDirectory> {
    let home = etcetera::home_dir().ok();
    agent_directories(home.as_deref(), &|name| std::env::var_os(name))
}

/// The files that are in the directories of agents.
pub(crate) struct SessionFiles {
    /// Their names without the ending of a compressed file: programs compress sessions, and move them to other directories.
    names: HashSet<String>,
    /// Their paths by their sizes.
    sizes: HashMap<u64, Vec<PathBuf>>,
}

impl SessionFiles {
    /// Lists the files. Directories that cannot be read have none.
    pub(crate) fn list() -> Self {
        let mut files = Self { names: HashSet::new(), sizes: HashMap::new() };
        let (databases, mut waiting) = databases_and_others(directories());
        files.names.extend(databases.iter().flat_map(|path| agents::sessions_in(path)));
        while let Some(directory) = waiting.pop() {
            for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
                // Links are not followed.
                match entry.metadata() {
                    Ok(found) if found.is_dir() => waiting.push(entry.path()),
                    Ok(found) => {
                        files.names.extend(name_of(&entry.path()));
                        files.sizes.entry(found.len()).or_default().push(entry.path());
                    }
                    Err(_) => {}
                }
            }
        }
        files
    }

    /// Returns whether the file that a capture was read from is on disk: at its path, compressed beside it, or in a directory of
    /// an agent under its name or with its bytes. Paths that are not absolute may be of any directory.
    pub(crate) fn has(&self, path: &str, capture: &CaptureSummary) -> bool {
        let file = Path::new(path);
        let is_compressed =
            || ["gz", "zst"].iter().any(|ending| Path::new(&format!("{path}.{ending}")).exists());
        !file.is_absolute()
            || file.exists()
            || is_compressed()
            || name_of(file).is_some_and(|name| self.names.contains(&name))
            || self.sizes.get(&capture.size).into_iter().flatten().any(|path| has_bytes(path, capture))
    }
}

fn has_bytes(path: &Path, capture: &CaptureSummary) -> bool {
    File::open(path).and_then(Digest::from_reader).is_ok_and(|digest| digest == capture.capture_hash.0)
}

fn name_of(path: &Path) -> Option<String> {
    let name = path.file_name()?.to_str()?;
    Some(decompressed_name(name).unwrap_or(name).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_has_several_names() {
        let found = |text: &str| kind(text).map(Kind::name);
        for name in ["model_io", "model-io", "session", "sessions", "Session"] {
            assert_eq!(found(name), Ok("model_io"), "{name}");
        }
        for name in ["rpk", "run", "runs", "run pack", "run-packs"] {
            assert_eq!(found(name), Ok("rpk"), "{name}");
        }
        for name in ["pack", "packs", "export pack", "export-packs"] {
            assert_eq!(found(name), Ok("pack"), "{name}");
        }
        assert_eq!((found("trace"), found("contracts")), (Ok("trace"), Ok("contract")));
        let error = found("recording").unwrap_err();
        assert!(error.contains("model_io, rpk, ") && error.contains("sessions, runs, "), "{error}");
    }

    #[test]
    fn no_name_is_of_two_kinds() {
        for one in formats::ALL {
            for name in [one.name(), one.noun(), one.plural()] {
                let called = formats::ALL.into_iter().filter(|kind| kind.is_called(name)).count();
                assert_eq!(called, 1, "{name}");
            }
        }
    }
}

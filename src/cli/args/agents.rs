//! The directories in which agents keep their sessions.

use std::cell::OnceCell;
use std::collections::{HashMap, HashSet};
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use clap::Args;
use runvault::artifact::Kind;
use runvault::digest::Digest;
use runvault::formats;
use runvault::intake::archive::decompressed_name;
use runvault::intake::{AgentContent, AgentDirectory, agent_directories};
use runvault::vault::agents::{self, AgentFiles};
use runvault::vault::details::CaptureSummary;

use crate::cli::output::exit::CommandError;

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

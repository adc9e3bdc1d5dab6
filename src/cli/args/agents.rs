//! The directories in which agents keep their sessions.

use std::collections::{HashMap, HashSet};
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use clap::Args;
use runvault::artifact::Kind;
use runvault::digest::Digest;
use runvault::formats;
use runvault::intake::agent_directories;
use runvault::intake::archive::decompressed_name;
use runvault::vault::details::CaptureSummary;

use crate::cli::output::exit::CommandError;

/// Whether to read the sessions of agents.
#[derive(Args)]
pub(crate) struct AgentArgs {
    /// Add the sessions that Claude Code, Codex, Gemini CLI and Pi keep of this user, and no other kinds; their
    /// environment variables say where
    #[arg(long, conflicts_with = "kind")]
    agents: bool,
}

impl AgentArgs {
    /// Returns the kind that is required, if the sessions of agents are.
    pub(crate) fn kind(&self) -> Option<Kind> {
        self.agents.then_some(formats::AGENT_SESSIONS)
    }

    /// Returns the directories, if they are to be read. They need not exist.
    pub(crate) fn directories(&self) -> Vec<PathBuf> {
        if self.agents { directories() } else { Vec::new() }
    }

    /// Returns the directories that exist, if they are to be read.
    pub(crate) fn existing(&self) -> Result<Vec<PathBuf>, CommandError> {
        let all = self.directories();
        let existing: Vec<PathBuf> = all.iter().filter(|path| path.is_dir()).cloned().collect();
        if existing.is_empty() && !all.is_empty() {
            let names: Vec<String> = all.iter().map(|path| path.display().to_string()).collect();
            return Err(CommandError::CouldNotRun(format!(
                "no program keeps sessions of this user: none of these directories exists: {}",
                names.join(", ")
            )));
        }
        Ok(existing)
    }
}

/// Returns the directories of sessions of this user.
pub(crate) fn directories() -> Vec<PathBuf> {
    let home = etcetera::home_dir().ok();
    let found = agent_directories(home.as_deref(), &|name| std::env::var_os(name));
    found.into_iter().map(|directory| directory.path).collect()
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
        let mut waiting = directories();
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

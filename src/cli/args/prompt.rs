//! Prompts as arguments.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use clap::Args;
use runvault::Vault;
use runvault::digest::{Digest, DigestPrefix};
use runvault::json::reader::Limits;

use crate::cli::args::hash;
use crate::cli::output::exit::CommandError;

/// Which prompt is asked.
#[derive(Args)]
pub(crate) struct PromptArgs {
    /// The prompt
    #[arg(long, value_name = "TEXT", group = "asked")]
    prompt: Option<String>,
    /// Read the prompt from a file, byte for byte; - is standard input
    #[arg(long, value_name = "FILE", group = "asked", hide_short_help = true)]
    prompt_file: Option<PathBuf>,
    /// The SHA-256 of the prompt
    #[arg(long, value_name = "HASH", group = "asked", value_parser = hash::prefix, hide_short_help = true)]
    prompt_hash: Option<DigestPrefix>,
}

/// The requested prompt.
pub(crate) struct Prompt {
    pub(crate) digest: Digest,
    /// The prompt itself, if given as text.
    pub(crate) bytes: Option<Vec<u8>>,
}

impl Prompt {
    fn from_bytes(bytes: Vec<u8>) -> Self {
        Self { digest: Digest::from_content(&bytes), bytes: Some(bytes) }
    }
}

impl PromptArgs {
    /// Returns whether a prompt was given.
    pub(crate) fn is_given(&self) -> bool {
        self.prompt.is_some() || self.prompt_file.is_some() || self.prompt_hash.is_some()
    }

    /// Returns the prompt, if one was given.
    pub(crate) fn prompt(&self, vault: &Vault) -> Result<Option<Prompt>, CommandError> {
        let prompt = match (&self.prompt, &self.prompt_file, &self.prompt_hash) {
            (Some(text), ..) => Prompt::from_bytes(text.clone().into_bytes()),
            (None, Some(path), _) => Prompt::from_bytes(read(path)?),
            (None, None, Some(prefix)) => Prompt {
                digest: hash::mentioned(vault, prefix, Some(runvault::artifact::group::PROMPT))?,
                bytes: None,
            },
            (None, None, None) => return Ok(None),
        };
        Ok(Some(prompt))
    }
}

fn read(path: &Path) -> Result<Vec<u8>, CommandError> {
    let limit = Limits::default().bytes;
    let mut bytes = Vec::new();
    let read = match path.to_str() {
        Some("-") => io::stdin().lock().take(limit + 1).read_to_end(&mut bytes),
        _ => File::open(path).and_then(|file| file.take(limit + 1).read_to_end(&mut bytes)),
    };
    let cannot =
        |why: String| CommandError::CouldNotRun(format!("cannot read the prompt {}: {why}", path.display()));
    match read {
        Ok(count) if count as u64 > limit => {
            Err(cannot(format!("it has more than {limit} bytes; --prompt-hash has no limit")))
        }
        Ok(_) => Ok(bytes),
        Err(error) => Err(cannot(error.to_string())),
    }
}

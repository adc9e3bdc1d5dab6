//! Hashes, tags, "latest" and prompts as arguments.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use clap::Args;
use runvault::LocatedCapture;
use runvault::LookupError;
use runvault::Vault;
use runvault::digest::{Digest, DigestPrefix, pasted};
use runvault::display::{brief, is_plain};
use runvault::json::reader::Limits;
use runvault::storage::{MAX_TAG_BYTES, is_tag};
use runvault::vault::details::RUN_IDS;
use runvault::vault::find::{ArtifactFilter, Condition};
use runvault::vault::resolve::{DigestsRequest, ResolveRequest};

use crate::cli::args::vault::VaultArgs;
use crate::cli::output::exit::CommandError;

/// Parses a hash or a prefix of one, for clap.
pub(crate) fn prefix(text: &str) -> Result<DigestPrefix, String> {
    text.parse().map_err(|error: runvault::digest::ParseDigestError| error.to_string())
}

/// An artifact argument: anything by which a person may know an artifact.
#[derive(Clone)]
pub(crate) enum ArtifactArg {
    /// A core hash, a capture's own hash, or a prefix of one, with the text, which may also be a name.
    Hash(DigestPrefix, String),
    /// @ and a tag.
    Tag(String),
    /// The artifact that was added or seen again last, or a number of artifacts before it.
    Latest(u64),
    /// A tag without @, or the id of a run, with the reason that it is none of the above.
    Name(String, String),
}

impl FromStr for ArtifactArg {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let pasted = &*pasted(text);
        Self::parse_strict(pasted).or_else(|error| {
            let is_name = !pasted.starts_with('@') && !pasted.is_empty() && is_plain(text.as_bytes());
            if is_name { Ok(Self::Name(text.trim().to_owned(), error)) } else { Err(error) }
        })
    }
}

impl ArtifactArg {
    /// Parses a hash, @ and a tag, or latest: not a name that could also be that of a file.
    pub(crate) fn parse_strict(text: &str) -> Result<Self, String> {
        if let Some(name) = text.strip_prefix('@') {
            return tag_name(name).map(Self::Tag);
        }
        match text.strip_prefix("latest") {
            Some(back) => parse_latest(back).map(Self::Latest),
            None => prefix(text).map(|prefix| Self::Hash(prefix, text.to_owned())).map_err(|error| {
                format!("{error}; use @NAME for a tag, or latest for the artifact that was added or seen again last")
            }),
        }
    }
}

/// Returns whether the text can only be a name: it is neither a hash with too few digits nor a form of `latest`.
fn is_name(text: &str) -> bool {
    is_tag(text) && !text.starts_with("latest") && !text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Parses the rest of `latest`, such as `~2`.
fn parse_latest(rest: &str) -> Result<u64, String> {
    if rest.is_empty() {
        return Ok(0);
    }
    let back = rest.strip_prefix('~').filter(|back| back.bytes().all(|byte| byte.is_ascii_digit()));
    back.and_then(|back| back.parse().ok()).ok_or_else(|| {
        "latest is the artifact that was added or seen again last, latest~1 the one before, latest~2 the one before that"
            .to_owned()
    })
}

impl ArtifactArg {
    /// Returns a hash of the artifact. A hash that was given need not be in the vault.
    pub(crate) fn prefix(&self, vault: &Vault) -> Result<DigestPrefix, CommandError> {
        match self {
            Self::Hash(prefix, _) => Ok(*prefix),
            _ => Ok(self.locate(vault)?.artifact.core.0.into()),
        }
    }

    /// Returns the text that can be the id or the name of a run.
    pub(crate) fn name(&self) -> Option<&str> {
        match self {
            Self::Hash(_, text) | Self::Name(text, _) => Some(text),
            Self::Tag(_) | Self::Latest(_) => None,
        }
    }

    /// Returns the hash, if one was given.
    pub(crate) fn hash(&self) -> Option<&DigestPrefix> {
        match self {
            Self::Hash(prefix, _) => Some(prefix),
            Self::Tag(_) | Self::Latest(_) | Self::Name(..) => None,
        }
    }

    /// Returns the hash that is meant: that of an artifact or a capture, also a removed one, or one that is only mentioned.
    pub(crate) fn digest(&self, vault: &Vault) -> Result<Digest, CommandError> {
        self.digest_of(vault).map_err(|error| self.explained(error))
    }

    fn digest_of(&self, vault: &Vault) -> Result<Digest, LookupError> {
        self.request(true).digest(vault)
    }

    /// Returns the condition that an artifact has the hash or mentions it, or is of the run. Other names stand for the hash
    /// of their artifact.
    pub(crate) fn about(&self, vault: &Vault) -> Result<Condition, CommandError> {
        match self.digest_of(vault) {
            Ok(digest) => Ok(Condition::About { digest }),
            Err(LookupError::AmbiguousName { name, .. }) => {
                let filter = |attribute: &str| ArtifactFilter {
                    conditions: vec![Condition::attribute(attribute, &name)],
                    ..ArtifactFilter::default()
                };
                let [first, last] = RUN_IDS;
                let attribute = if vault.count(&filter(first))? > 0 { first } else { last };
                Ok(Condition::attribute(attribute, &name))
            }
            Err(error) => Err(self.explained(error)),
        }
    }

    /// Looks up the artifact, which must be in the vault.
    pub(crate) fn locate(&self, vault: &Vault) -> Result<LocatedCapture, CommandError> {
        self.resolved(vault, false).map_err(|error| self.explained(error))
    }

    /// Like [`ArtifactArg::locate`], but resolves a hash that captures of several artifacts have to the first of them.
    pub(crate) fn locate_bytes(&self, vault: &Vault) -> Result<LocatedCapture, CommandError> {
        self.resolved(vault, true).map_err(|error| self.explained(error))
    }

    fn resolved(&self, vault: &Vault, any_artifact: bool) -> Result<LocatedCapture, LookupError> {
        self.request(any_artifact).locate(vault)
    }

    fn request(&self, any_artifact: bool) -> ResolveRequest {
        let text = match self {
            Self::Hash(_, text) | Self::Name(text, _) => text.clone(),
            Self::Tag(name) => format!("@{name}"),
            Self::Latest(back) => format!("latest~{back}"),
        };
        ResolveRequest { text, any_artifact }
    }

    /// Returns the failure of a command for a failed lookup.
    fn explained(&self, error: LookupError) -> CommandError {
        match (error, self) {
            (LookupError::NoSuchName { name, similar }, Self::Name(given, reason)) => {
                let near = similar_text(&similar);
                let message =
                    format!("no tag or run in the vault has the name {}{near}; {reason}", brief(&name));
                if Path::new(given).is_file() {
                    CommandError::Usage(format!(
                        "{message}; it is a file: \"runvault verify\" checks files, and \"runvault add\" stores them"
                    ))
                } else if is_name(given) {
                    CommandError::No(message)
                } else {
                    CommandError::Usage(message)
                }
            }
            (error, _) => error.into(),
        }
    }

    /// Returns whether the vault exists and has the artifact.
    pub(crate) fn resolves(&self, vault: &VaultArgs) -> bool {
        vault.open().is_ok_and(|vault| self.locate(&vault).is_ok())
    }

    /// Returns whether the argument, which is resolved as `located`, is a single capture rather than an artifact.
    pub(crate) fn is_capture(&self, located: &LocatedCapture) -> bool {
        self.hash().is_some_and(|prefix| {
            !prefix.matches(&located.artifact.core.0) && prefix.matches(&located.capture.capture.0)
        })
    }

    /// Looks up the artifact for commands on whole artifacts: a capture's own hash is rejected.
    pub(crate) fn locate_artifact(&self, vault: &Vault) -> Result<LocatedCapture, CommandError> {
        let located = self.locate(vault)?;
        if self.is_capture(&located) {
            let prefix = self.hash().map(ToString::to_string).unwrap_or_default();
            return Err(CommandError::Usage(format!(
                "{prefix} is a capture of {}; this command needs an artifact, give the core hash",
                located.artifact.core
            )));
        }
        Ok(located)
    }
}

/// Returns an addition to a message with values that are similar to one that does not exist.
pub(crate) fn similar_text(similar: &[String]) -> String {
    if similar.is_empty() {
        return String::new();
    }
    let similar: Vec<String> = similar.iter().map(|value| brief(value).to_string()).collect();
    format!("; similar: {}", similar.join(", "))
}

/// Parses the name of a tag, for clap.
pub(crate) fn tag_name(text: &str) -> Result<String, String> {
    let text = text.strip_prefix('@').unwrap_or(text);
    if is_tag(text) {
        Ok(text.to_owned())
    } else {
        Err(format!("a tag consists of 1 to {MAX_TAG_BYTES} characters of a-z, A-Z, 0-9, - _ . /"))
    }
}

/// Parses the name of a tag that is set, for clap.
pub(crate) fn new_tag(text: &str) -> Result<String, String> {
    let name = tag_name(text)?;
    if name.parse::<DigestPrefix>().is_ok() {
        return Err(format!("{name} cannot be a tag: it has the form of a hash"));
    }
    Ok(name)
}

/// Resolves a prefix among the mentioned digests.
pub(crate) fn mentioned(
    vault: &Vault,
    prefix: &DigestPrefix,
    group: Option<&str>,
) -> Result<Digest, CommandError> {
    Ok(DigestsRequest { prefix: *prefix, group: group.map(str::to_owned) }.only(vault)?)
}

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
    #[arg(long, value_name = "HASH", group = "asked", value_parser = prefix, hide_short_help = true)]
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
            (None, Some(path), _) => Prompt::from_bytes(read_prompt(path)?),
            (None, None, Some(prefix)) => Prompt {
                digest: mentioned(vault, prefix, Some(runvault::artifact::group::PROMPT))?,
                bytes: None,
            },
            (None, None, None) => return Ok(None),
        };
        Ok(Some(prompt))
    }
}

fn read_prompt(path: &Path) -> Result<Vec<u8>, CommandError> {
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

//! Hashes, tags and "latest" as arguments.

use std::str::FromStr;

use runvault::digest::DigestPrefix;
use runvault::storage::{MAX_TAG_BYTES, is_tag};
use runvault::{Located, LookupError, Vault};

use crate::cli::output::exit::Failure;

/// Number of digits of shortened hashes: enough for every command.
pub(crate) const DIGITS: usize = 12;

/// Parses a hash or a prefix of one, for clap.
pub(crate) fn prefix(text: &str) -> Result<DigestPrefix, String> {
    text.parse().map_err(|error: runvault::digest::ParseDigestError| error.to_string())
}

/// An artifact argument: a core hash, a capture's own hash, a prefix of one, @ and a tag, or the artifact that arrived
/// last or a number of artifacts before it.
#[derive(Clone)]
pub(crate) enum Named {
    Hash(DigestPrefix),
    Tag(String),
    Latest(u64),
}

impl FromStr for Named {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Some(name) = text.strip_prefix('@') {
            return tag(name).map(Self::Tag);
        }
        match text.strip_prefix("latest") {
            Some(back) => latest(back).map(Self::Latest),
            None => prefix(text).map(Self::Hash).map_err(|error| {
                format!("{error}; use @NAME for a tag, or latest for the artifact that arrived last")
            }),
        }
    }
}

/// Parses the rest of `latest`, such as `~2`.
fn latest(rest: &str) -> Result<u64, String> {
    if rest.is_empty() {
        return Ok(0);
    }
    let back = rest.strip_prefix('~').filter(|back| back.bytes().all(|byte| byte.is_ascii_digit()));
    back.and_then(|back| back.parse().ok()).ok_or_else(|| {
        "latest is the artifact that arrived last, latest~1 the one before, latest~2 the one before that"
            .to_owned()
    })
}

impl Named {
    /// Returns a hash of the artifact.
    pub(crate) fn prefix(&self, vault: &Vault) -> Result<DigestPrefix, LookupError> {
        match self {
            Self::Hash(prefix) => Ok(*prefix),
            Self::Tag(name) => Ok(vault.tagged(name)?.artifact.core.0.into()),
            Self::Latest(back) => Ok(vault.latest(*back)?.artifact.core.0.into()),
        }
    }

    /// Returns the hash, if one was given.
    pub(crate) fn hash(&self) -> Option<&DigestPrefix> {
        match self {
            Self::Hash(prefix) => Some(prefix),
            Self::Tag(_) | Self::Latest(_) => None,
        }
    }

    /// Looks up the artifact, which must be in the vault.
    pub(crate) fn locate(&self, vault: &Vault) -> Result<Located, LookupError> {
        match self {
            Self::Hash(prefix) => vault.locate(prefix),
            Self::Tag(name) => vault.tagged(name),
            Self::Latest(back) => vault.latest(*back),
        }
    }

    /// Returns whether the argument, which is resolved as `located`, is a single capture rather than an artifact.
    pub(crate) fn is_capture(&self, located: &Located) -> bool {
        self.hash().is_some_and(|prefix| !prefix.matches(&located.artifact.core.0))
    }

    /// Looks up the artifact for commands on whole artifacts: a capture's own hash is rejected.
    pub(crate) fn locate_artifact(&self, vault: &Vault) -> Result<Located, Failure> {
        let located = self.locate(vault)?;
        if self.is_capture(&located) {
            let prefix = self.hash().map(ToString::to_string).unwrap_or_default();
            return Err(Failure::Usage(format!(
                "{prefix} is a capture of {}; this command needs an artifact, give the core hash",
                located.artifact.core
            )));
        }
        Ok(located)
    }
}

/// Parses the name of a tag, for clap.
pub(crate) fn tag(text: &str) -> Result<String, String> {
    let text = text.strip_prefix('@').unwrap_or(text);
    if is_tag(text) {
        Ok(text.to_owned())
    } else {
        Err(format!("a tag consists of 1 to {MAX_TAG_BYTES} characters of a-z, A-Z, 0-9, - _ . /"))
    }
}

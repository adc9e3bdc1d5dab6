//! Hashes, tags and "latest" as arguments.

use std::str::FromStr;

use runvault::digest::DigestPrefix;
use runvault::store::{MAX_TAG_BYTES, is_tag};
use runvault::{Located, LookupError, Vault};

use super::exit::Failure;

/// Where hashes are not shown whole, so many of their digits are: enough for every command.
pub(crate) const DIGITS: usize = 12;

/// A hash or a prefix of one, for clap.
pub(crate) fn prefix(text: &str) -> Result<DigestPrefix, String> {
    text.parse().map_err(|error: runvault::digest::ParseDigestError| error.to_string())
}

/// An artifact as an argument: a core hash, a capture's own hash, the first digits of one, @ and a tag, or the artifact that
/// arrived last, or so many before that.
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
                format!("{error}; @NAME stands for a tag, and latest for what arrived last")
            }),
        }
    }
}

/// How far the rest of `latest`, such as `~2`, goes back.
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
    /// A hash of what it stands for.
    pub(crate) fn prefix(&self, vault: &Vault) -> Result<DigestPrefix, LookupError> {
        match self {
            Self::Hash(prefix) => Ok(*prefix),
            Self::Tag(name) => Ok(vault.tagged(name)?.artifact.core.0.into()),
            Self::Latest(back) => Ok(vault.latest(*back)?.artifact.core.0.into()),
        }
    }

    /// The hash, if one was given.
    pub(crate) fn hash(&self) -> Option<&DigestPrefix> {
        match self {
            Self::Hash(prefix) => Some(prefix),
            Self::Tag(_) | Self::Latest(_) => None,
        }
    }

    /// What it stands for, which must be in the vault.
    pub(crate) fn locate(&self, vault: &Vault) -> Result<Located, LookupError> {
        match self {
            Self::Hash(prefix) => vault.locate(prefix),
            Self::Tag(name) => vault.tagged(name),
            Self::Latest(back) => vault.latest(*back),
        }
    }

    /// Whether what it stands for, which is `located`, is one capture and not an artifact.
    pub(crate) fn is_capture(&self, located: &Located) -> bool {
        self.hash().is_some_and(|prefix| !prefix.matches(&located.artifact.core.0))
    }

    /// What it stands for, for commands that are about whole artifacts: a capture's own hash is not meant.
    pub(crate) fn locate_artifact(&self, vault: &Vault) -> Result<Located, Failure> {
        let located = self.locate(vault)?;
        if self.is_capture(&located) {
            let prefix = self.hash().map(ToString::to_string).unwrap_or_default();
            return Err(Failure::Usage(format!(
                "{prefix} is a capture of {}; this is done to whole artifacts, give the core hash",
                located.artifact.core
            )));
        }
        Ok(located)
    }
}

/// The name of a tag, for clap.
pub(crate) fn tag(text: &str) -> Result<String, String> {
    let text = text.strip_prefix('@').unwrap_or(text);
    if is_tag(text) {
        Ok(text.to_owned())
    } else {
        Err(format!("a tag has 1 to {MAX_TAG_BYTES} of the letters a-z and A-Z, digits, and - _ . /"))
    }
}

//! Hashes and tags as arguments.

use std::str::FromStr;

use runvault::digest::DigestPrefix;
use runvault::store::{MAX_TAG_BYTES, is_tag};
use runvault::{Located, LookupError, Vault};

use super::exit::Failure;

/// A hash or a prefix of one, for clap.
pub(crate) fn prefix(text: &str) -> Result<DigestPrefix, String> {
    text.parse().map_err(|error: runvault::digest::ParseDigestError| error.to_string())
}

/// An artifact as an argument: a core hash, a capture's own hash, the first digits of one, or @ and a tag.
#[derive(Clone)]
pub(crate) enum Named {
    Hash(DigestPrefix),
    Tag(String),
}

impl FromStr for Named {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.strip_prefix('@') {
            Some(name) => tag(name).map(Self::Tag),
            None => prefix(text).map(Self::Hash),
        }
    }
}

impl Named {
    /// A hash of what it stands for.
    pub(crate) fn prefix(&self, vault: &Vault) -> Result<DigestPrefix, LookupError> {
        match self {
            Self::Hash(prefix) => Ok(*prefix),
            Self::Tag(name) => Ok(vault.tagged(name)?.artifact.core.0.into()),
        }
    }

    /// What it stands for, which must be in the vault.
    pub(crate) fn locate(&self, vault: &Vault) -> Result<Located, LookupError> {
        match self {
            Self::Hash(prefix) => vault.locate(prefix),
            Self::Tag(name) => vault.tagged(name),
        }
    }

    /// The same for commands that are about whole artifacts: a capture's own hash is not meant.
    pub(crate) fn locate_artifact(&self, vault: &Vault) -> Result<Located, Failure> {
        let located = self.locate(vault)?;
        match self {
            Self::Hash(prefix) if !prefix.matches(&located.artifact.core.0) => Err(Failure::Usage(format!(
                "{prefix} is a capture of {}; this is done to whole artifacts, give the core hash",
                located.artifact.core
            ))),
            _ => Ok(located),
        }
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

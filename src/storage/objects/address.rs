//! The address of object storage: `s3://BUCKET/PREFIX`, `gs://BUCKET/PREFIX`, `az://CONTAINER/PREFIX` or
//! `file:///DIRECTORY`.
//!
//! It has no credentials: those are found where the tools of the provider find them. So the address can be shown, and
//! what could contain credentials is refused without showing it.

use std::fmt;
use std::path::PathBuf;

use object_store::path::Path;

use crate::storage::{Result, StorageError};

/// Where objects are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::storage) enum ObjectAddress {
    /// In a directory.
    Directory(PathBuf),
    /// In a bucket of a provider, under a prefix.
    Bucket {
        /// The provider.
        provider: ObjectStorageProvider,
        /// The bucket, or the container.
        bucket: String,
        /// The beginning of all keys; may be empty.
        prefix: Path,
    },
}

/// A provider of object storage, or what has the same interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::storage) enum ObjectStorageProvider {
    /// Amazon S3, and the many servers with its interface.
    S3,
    /// Google Cloud Storage.
    Google,
    /// Azure Blob Storage.
    Azure,
}

impl ObjectStorageProvider {
    const ALL: [Self; 3] = [Self::S3, Self::Google, Self::Azure];

    fn scheme(self) -> &'static str {
        match self {
            Self::S3 => "s3",
            Self::Google => "gs",
            Self::Azure => "az",
        }
    }
}

impl ObjectAddress {
    /// Parses an address.
    ///
    /// # Errors
    /// Returns an error of the kind `Invalid` if it is not one. The message has no part of it.
    pub(in crate::storage) fn parse(text: &str) -> Result<Self> {
        let (scheme, rest) = text.split_once("://").ok_or_else(|| invalid(FORMS))?;
        if scheme == "file" {
            let is_absolute = rest.starts_with('/') && !rest.trim_matches('/').is_empty();
            return if is_absolute { Ok(Self::Directory(rest.into())) } else { Err(invalid(FORMS)) };
        }
        let provider = ObjectStorageProvider::ALL.into_iter().find(|provider| provider.scheme() == scheme);
        let provider = provider.ok_or_else(|| invalid(FORMS))?;
        let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_');
        if bucket.is_empty() || !bucket.bytes().all(fits) {
            return Err(invalid("a bucket has only letters, digits and .-_, and no user or port"));
        }
        if prefix.contains(['?', '#']) {
            return Err(invalid("it has no parameters"));
        }
        let prefix = Path::parse(prefix).map_err(|_| invalid("the prefix is not a valid key"))?;
        Ok(Self::Bucket { provider, bucket: bucket.to_owned(), prefix })
    }
}

const FORMS: &str =
    "it is file:///DIRECTORY, s3://BUCKET/PREFIX, gs://BUCKET/PREFIX or az://CONTAINER/PREFIX";

fn invalid(reason: &str) -> StorageError {
    StorageError::invalid(format!("the address of the object storage is not valid: {reason}"))
}

impl fmt::Display for ObjectAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Directory(path) => write!(f, "file://{}", path.display()),
            Self::Bucket { provider, bucket, prefix } => {
                write!(f, "{}://{bucket}", provider.scheme())?;
                if prefix.as_ref().is_empty() { Ok(()) } else { write!(f, "/{prefix}") }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::ErrorKind;

    #[test]
    fn addresses_are_shown_as_they_were_given() {
        for text in ["s3://runs", "s3://runs/team/a", "gs://runs.example/x", "az://runs/x", "file:///srv/a b"]
        {
            assert_eq!(ObjectAddress::parse(text).unwrap().to_string(), text);
        }
        assert_eq!(ObjectAddress::parse("s3://runs/team/").unwrap().to_string(), "s3://runs/team");
    }

    #[test]
    fn what_could_contain_credentials_is_refused_and_not_shown() {
        for text in [
            "s3cret",
            "file://s3cret",
            "file:///",
            "ftp://s3cret/x",
            "s3://key:s3cret@runs/x",
            "s3://runs:s3cret/x",
            "s3://runs/x?secret=s3cret",
            "s3://runs/x#s3cret",
            "s3://runs//s3cret//",
            "s3:///s3cret",
        ] {
            let error = ObjectAddress::parse(text).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Invalid, "{text}");
            assert!(!format!("{error} {error:?}").contains("s3cret"), "{error:?}");
        }
    }
}

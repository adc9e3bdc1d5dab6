//! The address of object storage, `s3://BUCKET/PREFIX`, `gs://BUCKET/PREFIX`, `az://CONTAINER/PREFIX` or
//! `file:///DIRECTORY`, and clients of the providers.
//!
//! An address has no credentials: those are found where the tools of the provider find them. So the address can be shown,
//! and what could contain credentials is refused without showing it.

use std::error::Error as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use std::{fmt, io};

use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store::azure::{AzureConfigKey, MicrosoftAzureBuilder};
use object_store::client::{HttpError, HttpErrorKind};
use object_store::gcp::{GoogleCloudStorageBuilder, GoogleConfigKey};
use object_store::path::Path;
use object_store::{BackoffConfig, ClientConfigKey, Error, ObjectStore, RetryConfig};

use crate::files;
use crate::storage::objects::uploads::MultipartUploadClient;
use crate::storage::{ErrorKind, Result, StorageError};

/// How long the client repeats a request that the server refuses, with growing pauses.
const RETRY: RetryConfig = RetryConfig {
    backoff: BackoffConfig {
        init_backoff: Duration::from_millis(100),
        max_backoff: Duration::from_secs(5),
        base: 2.0,
    },
    max_retries: 7,
    retry_timeout: Duration::from_mins(1),
};

/// How long a request may take if the environment does not say: enough for a pack over a slow connection.
const TIMEOUT: &str = "120 seconds";

/// Returns the error for settings that the environment has. It names no value.
pub(super) fn invalid_settings(name: &str, error: &Error) -> StorageError {
    let reason = match error {
        Error::UnknownConfigurationKey { key, .. } => format!("the setting {key} is unknown"),
        _ => "the environment has no valid settings or credentials for it".to_owned(),
    };
    StorageError::new(ErrorKind::Invalid, format!("{name}: {reason}"))
}

/// A client, and the lister of unfinished multipart uploads, if the provider has one.
type ObjectStorageClient = (Arc<dyn ObjectStore>, Option<MultipartUploadClient>);

/// Returns a client with the settings and credentials that the environment has.
pub(super) fn connect(
    provider: ObjectStorageProvider,
    bucket: &str,
) -> object_store::Result<ObjectStorageClient> {
    // The client takes the cryptography of the process. If there is one already, it is as good.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let timeout = ClientConfigKey::Timeout;
    Ok(match provider {
        ObjectStorageProvider::S3 => {
            let mut builder = AmazonS3Builder::from_env().with_bucket_name(bucket).with_retry(RETRY);
            let key = AmazonS3ConfigKey::Client(timeout);
            if builder.get_config_value(&key).is_none() {
                builder = builder.with_config(key, TIMEOUT);
            }
            let store = Arc::new(builder.build()?);
            (Arc::clone(&store) as _, Some(MultipartUploadClient::new(store)?))
        }
        ObjectStorageProvider::Google => {
            let mut builder =
                GoogleCloudStorageBuilder::from_env().with_bucket_name(bucket).with_retry(RETRY);
            let key = GoogleConfigKey::Client(timeout);
            if builder.get_config_value(&key).is_none() {
                builder = builder.with_config(key, TIMEOUT);
            }
            (Arc::new(builder.build()?), None)
        }
        ObjectStorageProvider::Azure => {
            let mut builder = MicrosoftAzureBuilder::from_env().with_container_name(bucket).with_retry(RETRY);
            let key = AzureConfigKey::Client(timeout);
            if builder.get_config_value(&key).is_none() {
                builder = builder.with_config(key, TIMEOUT);
            }
            (Arc::new(builder.build()?), None)
        }
    })
}

/// Returns the storage error for an error of `key` in the store with this name.
pub(super) fn failure(store: &str, key: &str, error: &Error) -> StorageError {
    let (kind, reason) = described(error);
    let message =
        if key.is_empty() { format!("{store}: {reason}") } else { format!("{store}: {key}: {reason}") };
    StorageError::new(kind, message).with_source(reason)
}

/// Returns whether the same request may succeed later.
pub(super) fn is_transient(error: &Error) -> bool {
    match error {
        Error::Generic { .. } => status(error).is_none_or(|status| {
            // A request that is not valid, such as for a part that an object does not have, stays so.
            !(400..500).contains(&status) || [408, 429].contains(&status)
        }),
        Error::JoinError { .. } => true,
        _ => false,
    }
}

fn described(error: &Error) -> (ErrorKind, String) {
    let (kind, reason) = match error {
        Error::NotFound { .. } => (ErrorKind::Missing, "the object or its bucket does not exist"),
        Error::AlreadyExists { .. } => (ErrorKind::Exists, "the object exists already"),
        Error::PermissionDenied { .. } => (ErrorKind::Connection, "access is denied"),
        Error::Unauthenticated { .. } => (ErrorKind::Connection, "the credentials are not accepted"),
        Error::NotSupported { .. } | Error::NotImplemented { .. } => {
            (ErrorKind::Unsupported, "the object storage does not support this")
        }
        _ => return described_cause(error),
    };
    (kind, reason.to_owned())
}

/// Returns the kind and the reason that the causes of an error state.
fn described_cause(error: &Error) -> (ErrorKind, String) {
    let mut cause = error.source();
    while let Some(error) = cause {
        if let Some(error) = error.downcast_ref::<HttpError>() {
            let reason = match error.kind() {
                HttpErrorKind::Connect => "the server cannot be reached",
                HttpErrorKind::Timeout => "the server did not answer in time",
                HttpErrorKind::Interrupted => "the connection was lost",
                _ => "the request failed",
            };
            return (ErrorKind::Connection, reason.to_owned());
        }
        if let Some(error) = error.downcast_ref::<io::Error>() {
            let is_full = [io::ErrorKind::StorageFull, io::ErrorKind::QuotaExceeded].contains(&error.kind());
            let kind = if is_full { ErrorKind::Full } else { ErrorKind::Io };
            return (kind, files::describe(error));
        }
        cause = error.source();
    }
    let reason = status(error).map_or_else(
        || "the request failed".to_owned(),
        |status| format!("the server answered with the status {status}"),
    );
    (ErrorKind::Connection, reason)
}

/// Returns the number of the status that the text of an error names. The type that has it is not public.
fn status(error: &Error) -> Option<u16> {
    let text = error.to_string();
    let (_, after) = text.split_once("status code: ")?;
    after.get(..3)?.parse().ok()
}

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
    fn messages_have_no_part_of_what_a_server_answered() {
        let text = "Server returned non-2xx status code: 503 Service Unavailable: <Key>s3cret</Key>";
        let error = Error::Generic { store: "S3", source: text.into() };
        let failed = failure("s3://runs", "blobs/x", &error);
        assert_eq!(failed.to_string(), "s3://runs: blobs/x: the server answered with the status 503");
        assert!(!format!("{failed:?}").contains("s3cret"));
        assert_eq!(failed.kind(), ErrorKind::Connection);
        assert!(is_transient(&error));
        for (status, is_expected) in [(416, false), (400, false), (408, true), (429, true), (500, true)] {
            let text = format!("Server returned non-2xx status code: {status} x");
            let error = Error::Generic { store: "S3", source: text.into() };
            assert_eq!(is_transient(&error), is_expected, "{status}");
        }
        let full = io::Error::from(io::ErrorKind::StorageFull);
        let error = Error::Generic { store: "LocalFileSystem", source: full.into() };
        assert!(matches!(described_cause(&error), (ErrorKind::Full, _)));
    }

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

//! Clients of providers, with the settings and credentials that the environment has.

use std::sync::Arc;
use std::time::Duration;

use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store::azure::{AzureConfigKey, MicrosoftAzureBuilder};
use object_store::gcp::{GoogleCloudStorageBuilder, GoogleConfigKey};
use object_store::{BackoffConfig, ClientConfigKey, Error, ObjectStore, RetryConfig};

use super::address::ObjectStorageProvider;
use super::uploads::MultipartUploadClient;
use crate::storage::{ErrorKind, StorageError};

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

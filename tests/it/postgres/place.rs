//! Where the bytes of a vault are beside a database: a new directory, or the bucket that `RUNVAULT_TEST_OBJECTS` names.

use std::io::Write as _;
use std::sync::Once;
use std::sync::atomic::{AtomicU32, Ordering};

/// Empty object storage.
pub(crate) struct Place {
    address: String,
    directory: Option<tempfile::TempDir>,
}

impl Place {
    /// Returns a new directory, which is removed when this is dropped.
    pub(crate) fn directory() -> Self {
        let directory = tempfile::tempdir().unwrap();
        Self { address: format!("file://{}", directory.path().display()), directory: Some(directory) }
    }

    /// Returns a new prefix in the bucket, or `None` if there is none. The environment has its endpoint and credentials.
    pub(crate) fn bucket() -> Option<Self> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        static SKIPPED: Once = Once::new();
        let Some(url) = std::env::var("RUNVAULT_TEST_OBJECTS").ok().filter(|url| !url.is_empty()) else {
            // Not by a macro, whose output is shown for failures only.
            SKIPPED.call_once(|| {
                let reason = b"skipped: vaults with bytes in a bucket; RUNVAULT_TEST_OBJECTS names none\n";
                let _ = std::io::stderr().write_all(reason);
            });
            return None;
        };
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        // Process ids come again, and the bucket may have what an earlier test left.
        let directory = tempfile::tempdir().unwrap();
        let name = directory.path().file_name().unwrap().to_str().unwrap().replace('.', "");
        let address = format!("{}/{}-{number}-{name}", url.trim_end_matches('/'), std::process::id());
        Some(Self { address, directory: None })
    }

    /// Returns the directory, if it is one.
    pub(crate) fn path(&self) -> Option<&std::path::Path> {
        self.directory.as_ref().map(tempfile::TempDir::path)
    }

    /// Returns the address of a vault in a schema of a database, with its bytes here.
    pub(crate) fn address_with(&self, database: &str) -> String {
        format!("{database}&blobs={}", self.address)
    }
}

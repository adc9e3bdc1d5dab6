//! The database that `RUNVAULT_TEST_ENGINE` names. Each test has a schema of its own, which is dropped when it ends.

use std::io::Write as _;
use std::sync::Once;
use std::sync::atomic::{AtomicU32, Ordering};

use postgres::{Client, NoTls};

/// A schema that is dropped with the vault in it.
pub(crate) struct Schema {
    url: String,
    name: String,
}

impl Schema {
    /// Returns a name for a schema that no other test has, or `None` if there is no database.
    pub(crate) fn new() -> Option<Self> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        static SKIPPED: Once = Once::new();
        let Some(url) = std::env::var("RUNVAULT_TEST_ENGINE").ok().filter(|url| !url.is_empty()) else {
            // Not by a macro, whose output is shown for failures only.
            SKIPPED.call_once(|| {
                let reason = b"skipped: vaults in PostgreSQL; RUNVAULT_TEST_ENGINE names no database\n";
                let _ = std::io::stderr().write_all(reason);
            });
            return None;
        };
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        Some(Self { url, name: format!("suite_{}_{number}", std::process::id()) })
    }

    /// Returns the address of a vault in the schema.
    pub(crate) fn address(&self) -> String {
        let separator = if self.url.contains('?') { '&' } else { '?' };
        format!("{}{separator}schema={}", self.url, self.name)
    }

    /// Returns its name.
    #[allow(dead_code, reason = "one of the two crates that have this file needs it")]
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Returns a connection that is not of the engine.
    pub(crate) fn client(&self) -> Client {
        let mut client = Client::connect(&self.url, NoTls).unwrap();
        client.batch_execute(&format!("SET search_path TO {}", self.name)).unwrap();
        client
    }
}

impl Drop for Schema {
    fn drop(&mut self) {
        let drop = format!("SET client_min_messages TO error; DROP SCHEMA IF EXISTS {} CASCADE", self.name);
        self.client().batch_execute(&drop).unwrap();
    }
}

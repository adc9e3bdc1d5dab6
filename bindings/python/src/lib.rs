//! runvault for Python: the native half of the package `runvault`.
//!
//! Requests and answers cross the border as JSON, in the form of `docs/api.json`; bytes cross it as bytes. The
//! interpreter is never held while a vault works, and is asked for signals meanwhile: see [`interrupt`].

mod add;
mod errors;
mod gateway;
mod interrupt;
mod player;
mod sql;
mod vault;

use pyo3::prelude::*;

/// Returns the SHA-256 of `content`, as `sha256:` and hex digits.
#[pyfunction]
fn digest(content: &[u8]) -> String {
    runvault::digest::Digest::from_content(content).to_string()
}

/// Returns the `OpenAPI` document of all operations, as JSON.
#[pyfunction]
fn api() -> PyResult<String> {
    errors::to_json(&runvault::vault::api::document())
}

/// The native module.
#[pymodule]
mod _native {
    #[pymodule_export]
    use super::gateway::{Gateway, key_variables};
    #[pymodule_export]
    use super::player::Player;
    #[pymodule_export]
    use super::sql::SqlRows;
    #[pymodule_export]
    use super::vault::Vault;
    #[pymodule_export]
    use super::{api, digest};
}

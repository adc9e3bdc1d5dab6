//! A request for a page, and what is returned for it.

use std::error::Error;

use axum::extract::Query;
use axum::http::Uri;
use maud::Markup;
use serde::de::DeserializeOwned;

use super::assets::Asset;
use super::failure::PageError;
use crate::vault::Vault;
use crate::vault::api::Operation;

/// Returns what a person can do about an error, if anything.
pub type Hint = fn(&(dyn Error + 'static)) -> Option<&'static str>;

/// A request for a page.
pub(super) struct PageRequest<'v> {
    pub(super) vault: &'v Vault,
    /// The part of the path that names an artifact; empty if the page is not of one.
    pub(super) name: &'v str,
    pub(super) uri: &'v Uri,
    pub(super) medium: Medium,
}

/// The medium of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Medium {
    /// The response to a request.
    Response,
    /// A file, which is read at any time.
    File,
}

/// The content of a response.
pub(super) enum ResponseContent {
    Page(HtmlPage),
    /// The page has this address.
    Redirect(String),
    Download(Download),
    Asset(&'static Asset),
}

/// A page without its frame.
pub(super) struct HtmlPage {
    pub(super) title: String,
    /// The path of the section in the navigation.
    pub(super) section: &'static str,
    pub(super) body: Markup,
}

/// Bytes to be saved as a file.
pub(super) struct Download {
    pub(super) bytes: Vec<u8>,
    pub(super) file_name: String,
}

impl PageRequest<'_> {
    /// Runs an operation of the vault.
    pub(super) fn run<O: Operation>(&self, request: &O) -> Result<O::Answer, PageError>
    where
        PageError: From<O::Error>,
    {
        Ok(self.vault.run(request)?)
    }

    /// Parses the parameters of the address.
    pub(super) fn parameters<T: DeserializeOwned>(&self) -> Result<T, PageError> {
        match Query::try_from_uri(self.uri) {
            Ok(Query(parameters)) => Ok(parameters),
            Err(error) => Err(PageError::BadRequest(error.body_text())),
        }
    }
}

//! The parts that tools share: their arguments and description, their errors, the context of a call, and what was read last.

use std::error::Error;
use std::sync::Arc;

use parking_lot::Mutex;
use rmcp::handler::server::tool::schema_for_input;
use rmcp::model::{CallToolResult, JsonObject, Tool, ToolAnnotations};
use rmcp::schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::digest::{CaptureHash, CoreHash};
use crate::storage::StorageError;
use crate::vault::api::Operation;
use crate::vault::resolve::{LocatedCapture, ResolveRequest};
use crate::vault::search::SearchError;
use crate::vault::view::{ViewAnswer, ViewBody, ViewRequest, ViewStep};
use crate::vault::{LookupError, Vault};

/// The reason why a tool has no result.
#[derive(Debug, thiserror::Error)]
pub(super) enum ToolError {
    /// An argument is not valid.
    #[error("{0}")]
    Invalid(String),
    /// The cursor is not one of this tool.
    #[error("the cursor is not one that this tool returned")]
    Cursor,
    /// The server does not change the vault.
    #[error("the server is read only: it was started without permission to change the vault")]
    ReadOnly,
    /// The client cancelled the request.
    #[error("the request was cancelled")]
    Cancelled,
    /// The answer cannot be written as JSON.
    #[error("the answer cannot be written as JSON: {0}")]
    Json(#[from] serde_json::Error),
    /// The artifact cannot be found or read.
    #[error(transparent)]
    Lookup(#[from] LookupError),
    /// The search is not possible.
    #[error(transparent)]
    Search(#[from] SearchError),
    /// The vault cannot be read or written.
    #[error(transparent)]
    Store(#[from] StorageError),
}

impl ToolError {
    /// Returns the error that a hint can be given for.
    pub(super) fn cause(&self) -> &(dyn Error + 'static) {
        match self {
            Self::Lookup(error) => error,
            Self::Search(error) => error,
            Self::Store(error) => error,
            _ => self,
        }
    }
}

/// A capture of an artifact.
type RecentKey = (CoreHash, CaptureHash);

/// The last transcript and the last bytes that were read.
#[derive(Default)]
pub(super) struct RecentReads {
    view: Mutex<Option<(ViewRequest, Arc<RecentView>)>>,
    bytes: Mutex<Option<(RecentKey, Arc<RecentBytes>)>>,
}

/// A part of a transcript.
pub(super) struct RecentView {
    /// The answer without the steps.
    pub(super) answer: ViewAnswer,
    /// The steps without their bodies, and the bodies.
    pub(super) steps: Vec<(ViewStep, Vec<ViewBody>)>,
    /// The number of the first step after those.
    pub(super) next: Option<u64>,
}

/// The bytes of a document.
pub(super) enum RecentBytes {
    Text(String),
    Binary(Vec<u8>),
}

impl RecentReads {
    /// Returns the transcript that was read last, if `request` is for a part of it that begins in it.
    pub(super) fn view(&self, request: &ViewRequest) -> Option<Arc<RecentView>> {
        let last = self.view.lock();
        let (known, view) = last.as_ref()?;
        let is_same = ViewRequest { from: request.from, ..known.clone() } == *request;
        let begins_in_it = known.from <= request.from && view.next.is_none_or(|next| request.from < next);
        (is_same && begins_in_it).then(|| Arc::clone(view))
    }

    /// Remembers the answer to a request for a transcript.
    pub(super) fn remember_view(&self, request: ViewRequest, answer: ViewAnswer) -> Arc<RecentView> {
        let view = Arc::new(RecentView::from(answer));
        *self.view.lock() = Some((request, Arc::clone(&view)));
        view
    }

    /// Returns the bytes of a capture, if they were read last.
    pub(super) fn bytes(&self, of: RecentKey) -> Option<Arc<RecentBytes>> {
        let last = self.bytes.lock();
        last.as_ref().filter(|(known, _)| *known == of).map(|(_, bytes)| Arc::clone(bytes))
    }

    /// Remembers the bytes of a capture.
    pub(super) fn remember_bytes(&self, of: RecentKey, bytes: Vec<u8>) -> Arc<RecentBytes> {
        let bytes = Arc::new(RecentBytes::from(bytes));
        *self.bytes.lock() = Some((of, Arc::clone(&bytes)));
        bytes
    }
}

impl From<ViewAnswer> for RecentView {
    fn from(mut answer: ViewAnswer) -> Self {
        let next = answer.next.take();
        // What is kept answers requests for other pages, too.
        answer.previous = None;
        let steps = std::mem::take(&mut answer.steps).into_iter().map(|mut step| {
            let bodies = std::mem::take(&mut step.bodies);
            (step, bodies)
        });
        let steps = steps.collect();
        Self { answer, steps, next }
    }
}

impl From<Vec<u8>> for RecentBytes {
    fn from(bytes: Vec<u8>) -> Self {
        String::from_utf8(bytes).map_or_else(|error| Self::Binary(error.into_bytes()), Self::Text)
    }
}

impl RecentBytes {
    /// Returns the bytes.
    pub(super) fn as_bytes(&self) -> &[u8] {
        match self {
            Self::Text(text) => text.as_bytes(),
            Self::Binary(bytes) => bytes,
        }
    }
}

/// The work on a request.
pub(super) struct ToolContext<'w> {
    pub(super) vault: &'w Vault,
    /// Whether the vault may be changed.
    pub(super) may_write: bool,
    /// What was read last.
    pub(super) recent: &'w RecentReads,
    is_cancelled: &'w dyn Fn() -> bool,
}

impl<'w> ToolContext<'w> {
    pub(super) fn new(
        vault: &'w Vault,
        may_write: bool,
        recent: &'w RecentReads,
        is_cancelled: &'w dyn Fn() -> bool,
    ) -> Self {
        Self { vault, may_write, recent, is_cancelled }
    }

    /// Returns [`ToolError::Cancelled`] if the client cancelled the request.
    pub(super) fn check(&self) -> Result<(), ToolError> {
        if (self.is_cancelled)() { Err(ToolError::Cancelled) } else { Ok(()) }
    }

    /// Runs an operation of the vault, unless the request was cancelled.
    pub(super) fn run<O: Operation>(&self, request: &O) -> Result<O::Answer, ToolError>
    where
        ToolError: From<O::Error>,
    {
        self.check()?;
        Ok(self.vault.run(request)?)
    }

    /// Returns a part of a transcript: the one that was read last, if this is a further page of it.
    pub(super) fn view(&self, request: ViewRequest, is_further: bool) -> Result<Arc<RecentView>, ToolError> {
        if let Some(view) = self.recent.view(&request).filter(|_| is_further) {
            return Ok(view);
        }
        let answer = self.run(&request)?;
        Ok(self.recent.remember_view(request, answer))
    }

    /// Returns the artifact that a text refers to.
    pub(super) fn artifact(&self, text: &str) -> Result<CoreHash, ToolError> {
        Ok(self.locate(text)?.artifact.core)
    }

    /// Returns the artifact and the capture that a text refers to.
    pub(super) fn locate(&self, text: &str) -> Result<LocatedCapture, ToolError> {
        self.check()?;
        Ok(ResolveRequest::new(text).locate(self.vault)?)
    }
}

/// The arguments of a tool. Their documentation describes them to clients.
pub(super) trait ToolArguments: DeserializeOwned + JsonSchema + 'static {
    const NAME: &'static str;
    const TITLE: &'static str;
    const DESCRIPTION: &'static str;
    /// Whether it changes the vault.
    const CHANGES: bool = false;

    /// Does what the tool is for.
    fn call(&self, work: &ToolContext<'_>) -> Result<CallToolResult, ToolError>;
}

/// A tool.
pub(in crate::mcp) struct ToolInfo {
    pub(in crate::mcp) name: &'static str,
    pub(in crate::mcp) changes: bool,
    title: &'static str,
    description: &'static str,
    schema: fn(Tool) -> Tool,
    call: fn(&ToolContext<'_>, JsonObject) -> Result<CallToolResult, ToolError>,
}

impl ToolInfo {
    /// Creates the tool with these arguments.
    pub(super) const fn new<T: ToolArguments>() -> Self {
        Self {
            name: T::NAME,
            changes: T::CHANGES,
            title: T::TITLE,
            description: T::DESCRIPTION,
            schema: with_schema::<T>,
            call: call_with::<T>,
        }
    }

    /// Returns the description of the tool for clients.
    pub(in crate::mcp) fn describe(&self) -> Tool {
        let annotations = ToolAnnotations::with_title(self.title)
            .read_only(!self.changes)
            .destructive(self.changes)
            .idempotent(true)
            .open_world(false);
        let tool = Tool::new(self.name, self.description, JsonObject::new());
        (self.schema)(tool).with_title(self.title).with_annotations(annotations)
    }

    /// Calls the tool.
    pub(in crate::mcp) fn call(
        &self,
        work: &ToolContext<'_>,
        arguments: JsonObject,
    ) -> Result<CallToolResult, ToolError> {
        if self.changes && !work.may_write {
            return Err(ToolError::ReadOnly);
        }
        work.check()?;
        (self.call)(work, arguments)
    }
}

fn with_schema<T: ToolArguments>(mut tool: Tool) -> Tool {
    // A type with members has the schema of an object, so there is no other case.
    if let Ok(schema) = schema_for_input::<T>() {
        tool.input_schema = schema;
    }
    tool
}

fn call_with<T: ToolArguments>(
    work: &ToolContext<'_>,
    arguments: JsonObject,
) -> Result<CallToolResult, ToolError> {
    let arguments: T = serde_json::from_value(Value::Object(arguments))
        .map_err(|error| ToolError::Invalid(format!("the arguments are not valid: {error}")))?;
    arguments.call(work)
}

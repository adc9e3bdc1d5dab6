//! Common parts of tools.

use rmcp::handler::server::tool::schema_for_input;
use rmcp::model::{CallToolResult, JsonObject, Tool, ToolAnnotations};
use rmcp::schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::mcp::work::{ToolContext, ToolError};

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
            call: call::<T>,
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

fn call<T: ToolArguments>(
    work: &ToolContext<'_>,
    arguments: JsonObject,
) -> Result<CallToolResult, ToolError> {
    let arguments: T = serde_json::from_value(Value::Object(arguments))
        .map_err(|error| ToolError::Invalid(format!("the arguments are not valid: {error}")))?;
    arguments.call(work)
}

//! The tool `annotate`.

use std::collections::BTreeMap;

use rmcp::model::CallToolResult;
use rmcp::schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use crate::mcp::page::ResultPage;
use crate::mcp::work::ToolArguments;
use crate::mcp::work::{ToolContext, ToolError};
use crate::vault::annotate::{SetLabelsRequest, SetNoteRequest};

/// What to note.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(crate = "rmcp::schemars")]
pub(super) struct Arguments {
    /// The artifact: its hash, the first 6 or more digits of it, `@tag`, a run id, or `latest`.
    artifact: String,
    /// The text of the note, which replaces any other note of the artifact.
    #[serde(default)]
    note: Option<String>,
    /// Labels, by key, which replace the values of the same keys, instead of a note.
    #[serde(default)]
    labels: BTreeMap<String, String>,
}

impl ToolArguments for Arguments {
    const NAME: &'static str = "annotate";
    const TITLE: &'static str = "Set a note or labels";
    const DESCRIPTION: &'static str = "Sets the note or labels of an artifact. The artifact itself is not changed, and the journal \
        of the vault records the change.";
    const CHANGES: bool = true;

    fn call(&self, work: &ToolContext<'_>) -> Result<CallToolResult, ToolError> {
        // Each is a transaction of its own.
        let note = match (&self.note, self.labels.is_empty()) {
            (Some(note), true) => Some(note),
            (None, false) => None,
            _ => return Err(ToolError::Invalid("give either note or labels".to_owned())),
        };
        let core_hash = work.artifact(&self.artifact)?;
        let answer = match note {
            Some(note) => work.run(&SetNoteRequest { core_hash, text: note.clone() })?,
            None => {
                work.run(&SetLabelsRequest { core_hashes: vec![core_hash], labels: self.labels.clone() })?
            }
        };
        let mut page = ResultPage::new(json!({"changed": answer.changed}), "artifacts");
        page.push(json!({"core_hash": core_hash}));
        page.into_result(None)
    }
}

//! The tool `who_saw_prompt`.

use rmcp::model::CallToolResult;
use rmcp::schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::artifact::group;
use crate::digest::{Digest, DigestPrefix};
use crate::mcp::page::{self, McpCursor, fitting_page, remove_empty};
use crate::mcp::work::ToolArguments;
use crate::mcp::work::{ToolContext, ToolError};
use crate::vault::find::{ArtifactFilter, Condition, Cursor, FindRequest, FoundArtifact};
use crate::vault::resolve::DigestsRequest;

/// Maximum number of artifacts of a result.
const MOST: usize = 50;

/// Maximum number of places that are listed of an artifact.
const PLACES: usize = 20;

/// Which prompt.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(crate = "rmcp::schemars")]
pub(super) struct Arguments {
    /// The exact text of the prompt.
    #[serde(default)]
    prompt: Option<String>,
    /// Its SHA-256, or the first 6 or more digits of it, instead of the text.
    #[serde(default)]
    prompt_hash: Option<String>,
    #[serde(default)]
    cursor: McpCursor,
}

impl ToolArguments for Arguments {
    const NAME: &'static str = "who_saw_prompt";
    const TITLE: &'static str = "Find who saw a prompt";
    const DESCRIPTION: &'static str = "Finds all runs and sessions in which a model got exactly this prompt, and where: read_run \
        with the index as step shows the answer.";

    fn call(&self, work: &ToolContext<'_>) -> Result<CallToolResult, ToolError> {
        let digest = self.digest(work)?;
        let after: Option<Cursor> = self.cursor.decode()?;
        let mention = Condition::Mention { group: Some(group::PROMPT.to_owned()), digest };
        let filter = ArtifactFilter { conditions: vec![mention], ..ArtifactFilter::default() };
        let request = FindRequest { filter, after, all_versions: true, ..FindRequest::default() };
        fitting_page(MOST, &json!({"prompt_hash": digest}), "artifacts", &mut |limit| {
            let mut found = Vec::new();
            let request = FindRequest { limit: Some(limit as u64), ..request.clone() };
            let answer = request.visit::<ToolError>(work.vault, &mut |hit| {
                work.check()?;
                found.push(item(&hit)?);
                Ok(())
            })?;
            Ok((found, answer.next.map(|next| page::encode_cursor(&next)).transpose()?))
        })
    }
}

impl Arguments {
    fn digest(&self, work: &ToolContext<'_>) -> Result<Digest, ToolError> {
        let hash = match (&self.prompt, &self.prompt_hash) {
            (Some(prompt), None) => return Ok(Digest::from_content(prompt.as_bytes())),
            (None, Some(hash)) => hash,
            _ => return Err(ToolError::Invalid("give either prompt or prompt_hash".to_owned())),
        };
        let prefix: DigestPrefix =
            hash.parse().map_err(|error| ToolError::Invalid(format!("{hash:?}: {error}")))?;
        work.check()?;
        Ok(DigestsRequest { prefix, group: Some(group::PROMPT.to_owned()) }.only(work.vault)?)
    }
}

/// Returns an artifact with the first places of the prompt in it.
fn item(hit: &FoundArtifact) -> Result<Value, ToolError> {
    let mut item = serde_json::to_value(hit)?;
    let mut omitted = 0;
    if let Some(places) = item.get_mut("matches").and_then(Value::as_array_mut) {
        omitted = places.len().saturating_sub(PLACES);
        places.truncate(PLACES);
        // The digest is the same everywhere.
        places.iter_mut().filter_map(Value::as_object_mut).for_each(|place| drop(place.remove("digest")));
    }
    if let Some(members) = item.as_object_mut().filter(|_| omitted > 0) {
        members.insert("more_matches".to_owned(), omitted.into());
    }
    remove_empty(&mut item);
    Ok(item)
}

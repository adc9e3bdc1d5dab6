//! The tool `search`.

use rmcp::model::CallToolResult;
use rmcp::schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::find_runs::kind;
use crate::mcp::page::{self, McpCursor, ResultPage, remove_empty};
use crate::mcp::work::ToolArguments;
use crate::mcp::work::{ToolContext, ToolError};
use crate::vault::find::ArtifactFilter;
use crate::vault::search::SearchRequest;

/// Maximum number of passages of a result.
const MOST: u64 = 50;

/// What to search for.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(crate = "rmcp::schemars")]
pub(super) struct Arguments {
    /// The words: all must be in one passage. A phrase is in quotation marks, `word*` is any word that begins so, and `OR`
    /// separates alternatives.
    words: String,
    /// Only passages in these fields, such as `prompt` or `response`; all if empty.
    #[serde(default)]
    fields: Vec<String>,
    /// Only artifacts of this kind: `session`, `run pack`, `trace`, `contract`, `export pack` or `attachment`.
    #[serde(default)]
    kind: Option<String>,
    /// Whether to return every passage, and not only the best one of each artifact.
    #[serde(default)]
    every_passage: bool,
    #[serde(default)]
    cursor: McpCursor,
}

impl ToolArguments for Arguments {
    const NAME: &'static str = "search";
    const TITLE: &'static str = "Search the text of runs";
    const DESCRIPTION: &'static str = "Searches prompts, responses, tool calls and other text, and returns passages, the most \
        relevant first. The vault must have a search index, unless the server may build it; is_current says whether everything is in it.";

    fn call(&self, work: &ToolContext<'_>) -> Result<CallToolResult, ToolError> {
        let mut from: u64 = self.cursor.decode()?.unwrap_or(0);
        if work.may_write {
            work.vault.catch_up_search(&mut |_| {})?;
        }
        let kinds = self.kind.as_deref().map(kind).transpose()?.into_iter().collect();
        let answer = work.run(&SearchRequest {
            words: self.words.clone(),
            fields: self.fields.clone(),
            filter: ArtifactFilter { kinds, ..ArtifactFilter::default() },
            every_passage: self.every_passage,
            limit: from.saturating_add(MOST),
            ..SearchRequest::default()
        })?;
        let index = work.vault.search_index()?;
        let header = json!({"is_current": index.is_some_and(|index| index.is_current && index.waiting == 0)});
        let mut page = ResultPage::new(header, "passages");
        let mut is_more = answer.is_more;
        for hit in answer.hits.iter().skip(usize::try_from(from).unwrap_or(usize::MAX)) {
            let mut item = serde_json::to_value(hit)?;
            remove_empty(&mut item);
            if !page.push(item) {
                is_more = true;
                break;
            }
            from += 1;
        }
        page.into_result(is_more.then(|| page::encode_cursor(&from)).transpose()?)
    }
}

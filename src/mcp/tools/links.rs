//! The tool `links`.

use rmcp::model::CallToolResult;
use rmcp::schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use crate::mcp::page::{self, McpCursor, ResultPage, remove_empty};
use crate::mcp::work::ToolArguments;
use crate::mcp::work::{ToolContext, ToolError};
use crate::vault::links::{Direction, LinksRequest};

/// Maximum number of links that are followed.
const MOST: u64 = 2_000;

/// Whose links.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(crate = "rmcp::schemars")]
pub(super) struct Arguments {
    /// The artifact: its hash, the first 6 or more digits of it, `@tag`, a run id, or `latest`.
    artifact: String,
    /// The maximum distance from the artifact, in links, from 1 to 8.
    #[serde(default = "one")]
    #[schemars(range(min = 1, max = 8))]
    depth: u8,
    /// Only links of this relation, such as `replays` or `contains`.
    #[serde(default)]
    relation: Option<String>,
    /// Only links from the artifact (`out`) or to it (`in`).
    #[serde(default)]
    direction: Option<McpLinkDirection>,
    /// Also follow links that may be coincidences, such as `replays`. They are always listed.
    #[serde(default)]
    coincident: bool,
    #[serde(default)]
    cursor: McpCursor,
}

/// The direction of a link.
#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(crate = "rmcp::schemars", rename = "Direction")]
enum McpLinkDirection {
    Out,
    In,
}

/// Returns the default depth.
fn one() -> u8 {
    1
}

impl ToolArguments for Arguments {
    const NAME: &'static str = "links";
    const TITLE: &'static str = "List links";
    const DESCRIPTION: &'static str = "Lists what an artifact is linked with: the session that a run replays, the pack that \
        contains it, other histories of the run, contracts, and manual links; with the reason for each link.";

    fn call(&self, work: &ToolContext<'_>) -> Result<CallToolResult, ToolError> {
        let mut from: usize = self.cursor.decode()?.unwrap_or(0);
        if !(1..=8).contains(&self.depth) {
            return Err(ToolError::Invalid("the depth is from 1 to 8".to_owned()));
        }
        let artifact = work.artifact(&self.artifact)?;
        let answer = work.run(&LinksRequest {
            artifact,
            depth: self.depth,
            relation: self.relation.clone(),
            direction: self.direction.map(|direction| match direction {
                McpLinkDirection::Out => Direction::Out,
                McpLinkDirection::In => Direction::In,
            }),
            coincident: self.coincident,
            limit: Some(MOST),
        })?;
        let header = json!({
            "core_hash": artifact,
            "left_out": answer.left_out,
            "not_followed": answer.not_followed,
            "only_coincident": answer.only_coincident,
        });
        let mut page = ResultPage::new(header, "links");
        let links = answer.links();
        for link in links.iter().skip(from) {
            let mut item = serde_json::to_value(link)?;
            remove_empty(&mut item);
            if !page.push(item) {
                break;
            }
            from += 1;
        }
        page.into_result((from < links.len()).then(|| page::encode_cursor(&from)).transpose()?)
    }
}

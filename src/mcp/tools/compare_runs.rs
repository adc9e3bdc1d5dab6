//! The tool `compare_runs`.

use rmcp::model::CallToolResult;
use rmcp::schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use crate::mcp::page::{self, McpCursor, ResultPage};
use crate::mcp::work::ToolArguments;
use crate::mcp::work::{ToolContext, ToolError};
use crate::vault::diff::{ComparedArtifact, DiffExtent, DiffRequest};

/// Maximum number of changes of a result.
const MOST: u64 = 50;

/// What to compare.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(crate = "rmcp::schemars")]
pub(super) struct Arguments {
    /// The first run or other artifact: its hash, the first 6 or more digits of it, `@tag`, a run id, or `latest`.
    one: String,
    /// The second one, of the same kind.
    other: String,
    /// Whether to include values that vary between identical runs, such as times.
    #[serde(default)]
    all: bool,
    #[serde(default)]
    cursor: McpCursor,
}

impl ToolArguments for Arguments {
    const NAME: &'static str = "compare_runs";
    const TITLE: &'static str = "Compare two runs";
    const DESCRIPTION: &'static str = "Compares two runs or other artifacts of one kind step by step: where they first differ, \
        what was changed, moved, removed or inserted, and the values. Long values are shortened; read_run has all of them.";

    fn call(&self, work: &ToolContext<'_>) -> Result<CallToolResult, ToolError> {
        let mut after: u64 = self.cursor.decode()?.unwrap_or(0);
        let artifact = |text| {
            Ok::<_, ToolError>(ComparedArtifact { core_hash: work.artifact(text)?, capture_hash: None })
        };
        let request = DiffRequest {
            ignore: Vec::new(),
            one: artifact(&self.one)?,
            other: artifact(&self.other)?,
            all: self.all,
            extent: DiffExtent::default(),
            limit: Some(MOST),
            after: Some(after),
        };
        let mut answer = work.run(&request)?;
        let changes = answer.changes.take().unwrap_or_default();
        let is_last = answer.next.take().is_none();
        let mut header = serde_json::to_value(&answer)?;
        // It is the first change.
        if let (Value::Object(members), false) = (&mut header, self.all && after == 0) {
            members.remove("first_divergence");
        }
        let mut page = ResultPage::new(header, "changes");
        let mut is_more = !is_last;
        for change in changes {
            work.check()?;
            if !page.push(serde_json::to_value(change)?) {
                is_more = true;
                break;
            }
            after += 1;
        }
        page.into_result(is_more.then(|| page::encode_cursor(&after)).transpose()?)
    }
}

//! The tool `find_runs`.

use std::collections::BTreeMap;

use rmcp::model::CallToolResult;
use rmcp::schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use crate::artifact::AttributeInfo;
use crate::clock;
use crate::formats;
use crate::mcp::page::{self, McpCursor, fitting_page, remove_empty};
use crate::mcp::work::ToolArguments;
use crate::mcp::work::{ToolContext, ToolError};
use crate::vault::api::Timestamp;
use crate::vault::find::{ArtifactFilter, Condition, Cursor, FindPeriod};
use crate::vault::list::ListRequest;

/// Maximum number of runs of a result.
const MOST: usize = 50;

/// Which runs to find.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(crate = "rmcp::schemars")]
pub(super) struct Arguments {
    /// Only artifacts of this kind: `session`, `run pack`, `trace`, `contract`, `export pack` or `attachment`.
    #[serde(default)]
    kind: Option<String>,
    /// Only runs with these attributes, by name, such as `{"model_id": "gpt-5"}` or `{"model_id": "gpt-*"}`.
    #[serde(default)]
    attributes: BTreeMap<String, String>,
    /// Only runs with these labels, by key.
    #[serde(default)]
    labels: BTreeMap<String, String>,
    /// Only runs with failed steps.
    #[serde(default)]
    with_errors: bool,
    /// Only runs that were created at this time or later: RFC 3339, `2026-11-20`, `yesterday`, or an age such as `7d`.
    #[serde(default)]
    since: Option<String>,
    /// Only runs that were created before this time.
    #[serde(default)]
    until: Option<String>,
    #[serde(default)]
    cursor: McpCursor,
}

impl ToolArguments for Arguments {
    const NAME: &'static str = "find_runs";
    const TITLE: &'static str = "Find runs";
    const DESCRIPTION: &'static str = "Lists runs and other artifacts, the last created first, with models, times, \
        numbers of steps, tokens, costs, errors, tags and labels. All conditions must hold.";

    fn call(&self, work: &ToolContext<'_>) -> Result<CallToolResult, ToolError> {
        let after: Option<Cursor> = self.cursor.decode()?;
        let filter = self.filter()?;
        fitting_page(MOST, &json!({}), "rows", &mut |limit| {
            let answer = work.run(&ListRequest {
                filter: filter.clone(),
                limit: Some(limit as u64),
                after: after.clone(),
                ..ListRequest::default()
            })?;
            let mut rows = Vec::with_capacity(answer.rows.len());
            for row in answer.rows {
                let mut row = serde_json::to_value(row)?;
                remove_empty(&mut row);
                rows.push(row);
            }
            Ok((rows, answer.next.map(|next| page::encode_cursor(&next)).transpose()?))
        })
    }
}

impl Arguments {
    fn filter(&self) -> Result<ArtifactFilter, ToolError> {
        if let Some(name) = self.attributes.keys().find(|name| formats::attribute(name).is_none()) {
            let known = formats::attribute_names();
            return Err(ToolError::Invalid(format!(
                "there is no attribute {name:?}; expected one of {known}"
            )));
        }
        let attributes = self.attributes.iter().map(|(name, value)| Condition::attribute(name, value));
        let labels = self.labels.iter().map(|(key, value)| Condition::label(key, Some(value)));
        let failed = self.with_errors.then(|| Condition::Range {
            name: AttributeInfo::ERRORS.name.to_owned(),
            least: Some(1),
            most: None,
        });
        let (since, until) = (time(self.since.as_deref())?, time(self.until.as_deref())?);
        let is_timed = since.is_some() || until.is_some();
        Ok(ArtifactFilter {
            kinds: self.kind.as_deref().map(kind).transpose()?.into_iter().collect(),
            conditions: attributes.chain(labels).chain(failed).collect(),
            period: is_timed.then(|| FindPeriod { since, until, ..FindPeriod::default() }),
            digits: None,
        })
    }
}

/// Returns the id of the kind that is called so.
pub(super) fn kind(name: &str) -> Result<String, ToolError> {
    let kind = formats::called(name).map(|kind| kind.name().to_owned());
    kind.ok_or_else(|| {
        ToolError::Invalid(format!("there is no kind {name:?}; expected one of {}", formats::names()))
    })
}

fn time(text: Option<&str>) -> Result<Option<Timestamp>, ToolError> {
    let parse = |text: &str| {
        let time = clock::parse_time(text, clock::now()).map(Timestamp);
        time.map_err(|error| ToolError::Invalid(format!("{text:?}: {error}")))
    };
    text.map(parse).transpose()
}

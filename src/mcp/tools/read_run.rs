//! The tool `read_run`.

use rmcp::model::CallToolResult;
use rmcp::schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::tool::ToolArguments;
use crate::digest::CoreHash;
use crate::mcp::cursor::{self, McpCursor};
use crate::mcp::failure::ToolError;
use crate::mcp::page::{ResultPage, fitting_page, fitting_text};
use crate::mcp::text::remove_empty;
use crate::mcp::work::ToolContext;
use crate::vault::view::{ViewAnswer, ViewBody, ViewFilter, ViewRequest};

/// Maximum number of steps of an outline.
const MOST: usize = 100;

/// Maximum number of characters of each text in an outline.
const PREVIEW: u64 = 160;

/// What a part of a text takes beside the text.
const AROUND: usize = 1_000;

/// What to read.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(crate = "rmcp::schemars")]
pub(super) struct Arguments {
    /// The run or other artifact: its hash, the first 6 or more digits of it, `@tag`, a run id, or `latest`.
    artifact: String,
    /// The number of a step, from 0, to read its whole text. Without it, the result is the outline of all steps.
    #[serde(default)]
    step: Option<u64>,
    /// Which steps the outline has: `all`, `tools` or `errors`.
    #[serde(default)]
    only: StepSelection,
    #[serde(default)]
    cursor: McpCursor,
}

/// A selection of steps.
#[derive(Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(crate = "rmcp::schemars")]
enum StepSelection {
    #[default]
    All,
    Tools,
    Errors,
}

impl ToolArguments for Arguments {
    const NAME: &'static str = "read_run";
    const TITLE: &'static str = "Read a run";
    const DESCRIPTION: &'static str = "Reads a run or another artifact as a transcript. Without a step: its outline, with the \
        beginning of each text. With a step: the whole texts of that step, in parts if they are long.";

    fn call(&self, work: &ToolContext<'_>) -> Result<CallToolResult, ToolError> {
        let artifact = work.artifact(&self.artifact)?;
        match self.step {
            None => self.outline(work, artifact),
            Some(step) => self.texts(work, artifact, step),
        }
    }
}

impl Arguments {
    fn outline(&self, work: &ToolContext<'_>, artifact: CoreHash) -> Result<CallToolResult, ToolError> {
        let from = self.cursor.decode()?.unwrap_or(0);
        let only = match self.only {
            StepSelection::All => None,
            StepSelection::Tools => Some(ViewFilter::Tools),
            StepSelection::Errors => Some(ViewFilter::Errors),
        };
        let request = ViewRequest { from, only, max_text: Some(PREVIEW), ..ViewRequest::new(artifact) };
        let mut answer = work.run(&ViewRequest { limit: Some(MOST as u64), ..request })?;
        let steps = std::mem::take(&mut answer.steps);
        let last = answer.next.take();
        let mut items = Vec::with_capacity(steps.len());
        for step in &steps {
            let mut item = serde_json::to_value(step)?;
            remove_empty(&mut item);
            items.push(item);
        }
        let header = header(&answer)?;
        fitting_page(MOST, &header, "outline", &mut |limit| {
            let next = steps.get(limit).map(|step| step.index).or(last);
            let items = items.iter().take(limit).cloned().collect();
            Ok((items, next.map(|next| cursor::encode(&next)).transpose()?))
        })
    }

    fn texts(
        &self,
        work: &ToolContext<'_>,
        artifact: CoreHash,
        number: u64,
    ) -> Result<CallToolResult, ToolError> {
        let (mut at, mut from) = self.cursor.decode()?.unwrap_or((0, 0));
        let request = ViewRequest { from: number, to: Some(number), ..ViewRequest::new(artifact) };
        let answer = work.run(&request)?;
        let Some(step) = answer.steps.first() else {
            let (noun, total) = (&answer.step_noun, answer.total);
            return Err(ToolError::Invalid(format!("there is no {noun} {number}: {artifact} has {total}")));
        };
        let mut outline = step.clone();
        let bodies = std::mem::take(&mut outline.bodies);
        let mut header = json!({"core_hash": artifact, "kind": answer.artifact.kind, "step": outline});
        remove_empty(&mut header);
        let mut page = ResultPage::new(header, "texts");
        let mut next = None;
        while let Some(body) = bodies.get(at) {
            work.check()?;
            let (item, end) = part(body, from, page.left().saturating_sub(AROUND))?;
            let text = body.text.as_deref().unwrap_or_default();
            let is_empty = end == from && end < text.len();
            if is_empty || !page.push(item) {
                next = Some(cursor::encode(&(at, from))?);
                break;
            }
            (at, from) = if end < text.len() { (at, end) } else { (at + 1, 0) };
        }
        page.into_result(next)
    }
}

/// Returns what is known of an artifact before its steps.
fn header(answer: &ViewAnswer) -> Result<Value, ToolError> {
    let mut header = serde_json::to_value(answer)?;
    if let Value::Object(members) = &mut header {
        members.remove("steps");
    }
    remove_empty(&mut header);
    Ok(header)
}

/// Returns the part of a text from a byte on that fits, and where it ends.
fn part(body: &ViewBody, from: usize, left: usize) -> Result<(Value, usize), ToolError> {
    let text = body.text.as_deref().unwrap_or_default();
    let rest = text.get(from..).ok_or(ToolError::Cursor)?;
    let end = from + fitting_text(rest, left);
    let part = text.get(from..end).map(str::to_owned).filter(|_| body.text.is_some());
    let mut item = serde_json::to_value(ViewBody { text: part, ..body.clone() })?;
    if let Value::Object(members) = &mut item {
        members.insert("offset".to_owned(), from.into());
    }
    remove_empty(&mut item);
    Ok((item, end))
}

//! The tool `read_run`.

use rmcp::model::CallToolResult;
use rmcp::schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::mcp::page::{self, McpCursor, ResultPage, fitting_page, fitting_text, remove_empty};
use crate::mcp::work::ToolArguments;
use crate::mcp::work::{ToolContext, ToolError};
use crate::vault::view::{ViewBody, ViewFilter, ViewRequest, ViewStep};

/// Maximum number of steps of an outline.
const MOST: usize = 100;

/// Number of steps that are read at a time, for several pages.
const READ: u64 = 10_000;

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
        let located = work.locate(&self.artifact)?;
        let capture = Some(located.capture.capture);
        let request = ViewRequest { capture, ..ViewRequest::new(located.artifact.core) };
        match self.step {
            None => self.outline(work, &request),
            Some(step) => self.texts(work, &request, step),
        }
    }
}

impl Arguments {
    fn outline(&self, work: &ToolContext<'_>, request: &ViewRequest) -> Result<CallToolResult, ToolError> {
        let further: Option<u64> = self.cursor.decode()?;
        let from = further.unwrap_or(0);
        let only = match self.only {
            StepSelection::All => None,
            StepSelection::Tools => Some(ViewFilter::Tools),
            StepSelection::Errors => Some(ViewFilter::Errors),
        };
        let request =
            ViewRequest { from, only, max_text: Some(PREVIEW), limit: Some(READ), ..request.clone() };
        let view = work.view(request, further.is_some())?;
        let begin = view.steps.partition_point(|(step, _)| step.index < from);
        let steps = view.steps.get(begin..).unwrap_or_default();
        let mut items = Vec::new();
        for (step, bodies) in steps.iter().take(MOST) {
            let mut item = serde_json::to_value(ViewStep { bodies: bodies.clone(), ..step.clone() })?;
            remove_empty(&mut item);
            items.push(item);
        }
        let mut header = serde_json::to_value(&view.answer)?;
        if let Value::Object(members) = &mut header {
            members.remove("steps");
        }
        remove_empty(&mut header);
        fitting_page(MOST, &header, "outline", &mut |limit| {
            let next = steps.get(limit).map(|(step, _)| step.index).or(view.next);
            let items = items.iter().take(limit).cloned().collect();
            Ok((items, next.map(|next| page::encode_cursor(&next)).transpose()?))
        })
    }

    fn texts(
        &self,
        work: &ToolContext<'_>,
        request: &ViewRequest,
        number: u64,
    ) -> Result<CallToolResult, ToolError> {
        let further = self.cursor.decode()?;
        let (mut at, mut from) = further.unwrap_or((0, 0));
        let artifact = request.artifact;
        let view =
            work.view(ViewRequest { from: number, to: Some(number), ..request.clone() }, further.is_some())?;
        let Some((step, bodies)) = view.steps.first() else {
            let (noun, total) = (&view.answer.step_noun, view.answer.total);
            return Err(ToolError::Invalid(format!("there is no {noun} {number}: {artifact} has {total}")));
        };
        let mut header = json!({"core_hash": artifact, "kind": view.answer.artifact.kind, "step": step});
        remove_empty(&mut header);
        let mut page = ResultPage::new(header, "texts");
        let mut next = None;
        while let Some(body) = bodies.get(at) {
            work.check()?;
            let (item, end) = part(body, from, page.left().saturating_sub(AROUND))?;
            let text = body.text.as_deref().unwrap_or_default();
            let is_empty = end == from && end < text.len();
            if is_empty || !page.push(item) {
                next = Some(page::encode_cursor(&(at, from))?);
                break;
            }
            (at, from) = if end < text.len() { (at, end) } else { (at + 1, 0) };
        }
        page.into_result(next)
    }
}

/// Returns the part of a text from a byte on that fits, and where it ends.
fn part(body: &ViewBody, from: usize, left: usize) -> Result<(Value, usize), ToolError> {
    let text = body.text.as_deref().unwrap_or_default();
    let rest = text.get(from..).ok_or(ToolError::Cursor)?;
    let end = from + fitting_text(rest, left);
    let part = text.get(from..end).map(str::to_owned).filter(|_| body.text.is_some());
    // Without a copy of the whole text.
    let ViewBody { role, name, format, text: _, size, omitted, digest, source } = body;
    let (name, source) = (name.clone(), source.clone());
    let (role, format, size, omitted, digest) = (*role, *format, *size, *omitted, *digest);
    let mut item =
        serde_json::to_value(ViewBody { role, name, format, text: part, size, omitted, digest, source })?;
    if let Value::Object(members) = &mut item {
        members.insert("offset".to_owned(), from.into());
    }
    remove_empty(&mut item);
    Ok((item, end))
}

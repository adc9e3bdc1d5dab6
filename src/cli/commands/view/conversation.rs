//! Conversations, as they are printed.

use std::io;

use anstyle::Style;
use runvault::display::brief;
use runvault::json::reader::{self, Limits};
use runvault::json::{Value, compact};
use runvault::vault::view::{
    Conversation, ConversationCall, ConversationMessage, ConversationThread, MessageMedia, MessagePart,
    MessageRole, MessageToolCall, MessageToolResult,
};

use super::printer::{INDENT, LINES, TranscriptPrinter, milliseconds};
use crate::cli::output::fit;
use crate::cli::output::stdout::{self, BAD, FAINT, NAME, counted};

/// Maximum number of lines of instructions, of thoughts and of what tools return that are not printed completely.
const FEW_LINES: usize = 6;

/// The reasons for which an answer ends as it should.
const ENDED: &[&str] = &["COMPLETE", "STOP", "completed", "end_turn", "stop", "tool_calls", "tool_use"];

/// Prints the calls of a conversation.
pub(super) fn print(printer: &mut TranscriptPrinter<'_>, conversation: &Conversation) -> io::Result<()> {
    let mut last_thread = 0;
    for call in &conversation.calls {
        writeln!(printer.out)?;
        if call.thread != last_thread {
            let thread = conversation.threads.get(usize::try_from(call.thread).unwrap_or(usize::MAX));
            printer.lines(&of_thread(call.thread, thread), 0, FAINT)?;
        }
        last_thread = call.thread;
        print_call(printer, call)?;
    }
    Ok(())
}

/// Describes a thread at the beginning of a call of it.
fn of_thread(number: u64, thread: Option<&ConversationThread>) -> String {
    match thread.and_then(|thread| thread.parent) {
        Some(parent) => format!("thread {number}, which branches off from thread {parent}"),
        None => format!("thread {number}"),
    }
}

fn print_call(printer: &mut TranscriptPrinter<'_>, call: &ConversationCall) -> io::Result<()> {
    printer.title(
        call.step,
        &call.model,
        call.error.is_some(),
        &format!("{} {}", call.provider, call.endpoint),
    )?;
    let mut facts = Vec::new();
    facts.extend(call.requested_at.map(|time| printer.time(time.0)));
    facts.extend(call.duration_ms.map(milliseconds));
    facts.extend(call.tokens_in.map(|tokens| format!("{} in", counted(tokens, "token"))));
    facts.extend(call.tokens_out.map(|tokens| format!("{} out", counted(tokens, "token"))));
    let reason = call.finish_reason.as_deref().filter(|reason| !ENDED.contains(reason));
    facts.extend(reason.map(|reason| brief(reason).to_string()));
    printer.lines(&facts.join(", "), INDENT, FAINT)?;
    for message in call.messages.iter().chain(&call.answers) {
        print_message(printer, message)?;
    }
    match &call.error {
        Some(error) => text(printer, "error", error, BAD, LINES),
        None => Ok(()),
    }
}

fn print_message(printer: &mut TranscriptPrinter<'_>, message: &ConversationMessage) -> io::Result<()> {
    let (label, most) = match message.role {
        MessageRole::System => ("system", FEW_LINES),
        MessageRole::User => ("user", LINES),
        MessageRole::Assistant => ("assistant", LINES),
        MessageRole::Tool => ("tool", FEW_LINES),
    };
    message.parts.iter().try_for_each(|part| print_part(printer, part, label, most))
}

fn print_part(
    printer: &mut TranscriptPrinter<'_>,
    part: &MessagePart,
    label: &str,
    most: usize,
) -> io::Result<()> {
    match part {
        MessagePart::Text { text: said } => text(printer, label, said, Style::new(), most),
        MessagePart::Thinking { text: thought } if thought.is_empty() => {
            printer.labeled("thinking", &[format!("{FAINT}(not stated){FAINT:#}")])
        }
        MessagePart::Thinking { text: thought } => text(printer, "thinking", thought, FAINT, FEW_LINES),
        MessagePart::Refusal { text: said } => text(printer, "refusal", said, BAD, most),
        MessagePart::Media(media) => {
            printer.labeled(label, &[format!("{FAINT}{}{FAINT:#}", described(media))])
        }
        MessagePart::ToolCall(call) => print_tool_call(printer, call),
        MessagePart::ToolResult(result) => print_result(printer, result),
        MessagePart::Embeddings { count, dimensions } => {
            let vectors = format!("{} of {}", counted(*count, "vector"), counted(*dimensions, "number"));
            printer.labeled(label, &[format!("{FAINT}{vectors}{FAINT:#}")])
        }
        MessagePart::Unrecorded { digest } => {
            printer.labeled(label, &[format!("{FAINT}not recorded, {digest}{FAINT:#}")])
        }
        MessagePart::Other { value } => text(printer, label, value, Style::new(), most),
    }
}

/// Prints a call of a tool and its result.
fn print_tool_call(printer: &mut TranscriptPrinter<'_>, call: &MessageToolCall) -> io::Result<()> {
    let mut lines = vec![format!("{NAME}{}{NAME:#}", brief(&call.name))];
    let mut tree = Vec::new();
    match reader::read(call.arguments.as_bytes(), &Limits::most()) {
        Ok(arguments) => add_members(&arguments, 0, &mut tree),
        Err(_) => tree.push(call.arguments.clone()),
    }
    let shown = shortened(printer, &tree.join("\n"), call.arguments.len(), Style::new(), LINES);
    lines.extend(shown.into_iter().filter(|_| !tree.is_empty()));
    printer.labeled("call", &lines)?;
    call.result.as_ref().map_or(Ok(()), |result| print_result(printer, result))
}

fn print_result(printer: &mut TranscriptPrinter<'_>, result: &MessageToolResult) -> io::Result<()> {
    let (label, style) = if result.is_error { ("error", BAD) } else { ("result", Style::new()) };
    if result.parts.is_empty() {
        return printer.labeled(label, &[format!("{FAINT}(empty){FAINT:#}")]);
    }
    result.parts.iter().try_for_each(|part| match part {
        MessagePart::Text { text: returned } | MessagePart::Other { value: returned } => {
            let tree = reader::read(returned.as_bytes(), &Limits::most()).ok();
            let mut lines = Vec::new();
            match tree.filter(|value| value.as_object().is_some()) {
                Some(value) => add_members(&value, 0, &mut lines),
                None => lines.push(returned.clone()),
            }
            text(printer, label, &lines.join("\n"), style, FEW_LINES)
        }
        part => print_part(printer, part, label, FEW_LINES),
    })
}

/// Adds the members of a value as lines in their order, each below the one that it is in.
fn add_members(value: &Value<'_>, depth: usize, lines: &mut Vec<String>) {
    let pad = "  ".repeat(depth);
    let mut add = |name: &str, value: &Value<'_>| match value {
        Value::Object(members) if members.iter().len() > 0 => {
            lines.push(format!("{pad}{name}:"));
            add_members(value, depth + 1, lines);
        }
        Value::Array(elements)
            if elements.iter().any(|one| matches!(one, Value::Object(_) | Value::Array(_))) =>
        {
            lines.push(format!("{pad}{name}:"));
            add_members(value, depth + 1, lines);
        }
        Value::String(text) if text.contains('\n') => {
            lines.push(format!("{pad}{name}:"));
            lines.extend(text.lines().map(|line| format!("{pad}  {line}")));
        }
        Value::String(text) => lines.push(format!("{pad}{name}: {text}")),
        other => lines.push(format!("{pad}{name}: {}", compact::text(other))),
    };
    match value {
        Value::Object(members) => members.iter().for_each(|(name, value)| add(name, value)),
        Value::Array(elements) => {
            for (at, value) in elements.iter().enumerate() {
                add(&at.to_string(), value);
            }
        }
        Value::String(text) => lines.push(text.to_string()),
        other => lines.push(compact::text(other)),
    }
}

/// Prints a text beside its label: its beginning if it has too many lines.
fn text(
    printer: &mut TranscriptPrinter<'_>,
    label: &str,
    text: &str,
    style: Style,
    most: usize,
) -> io::Result<()> {
    printer.labeled(label, &shortened(printer, text, text.len(), style, most))
}

/// Returns the lines of a text, or of the beginning of one that has this size and too many lines.
fn shortened(
    printer: &TranscriptPrinter<'_>,
    text: &str,
    size: usize,
    style: Style,
    most: usize,
) -> Vec<String> {
    let most = if printer.full { usize::MAX } else { most };
    let (lines, is_cut) = fit::folded(text, printer.room(), most);
    let mut lines: Vec<String> = lines.into_iter().map(|line| format!("{style}{line}{style:#}")).collect();
    if is_cut {
        lines.extend(printer.cut(size as u64));
    }
    lines
}

/// Describes a file.
fn described(media: &MessageMedia) -> String {
    let MessageMedia { media_type, name, location, size } = media;
    let mut facts = vec![brief(media_type).to_string()];
    facts.extend(name.iter().chain(location).map(|text| brief(text).to_string()));
    facts.extend(size.map(stdout::size));
    facts.join(", ")
}

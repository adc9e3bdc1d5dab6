//! Conversations, also of runs that are being recorded, as they are printed.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::thread;
use std::time::Duration;

use anstyle::Style;
use runvault::Vault;
use runvault::display::{brief, escaped};
use runvault::json::reader::{self, Limits};
use runvault::json::{Value, compact};
use runvault::vault::resolve::ResolveRequest;
use runvault::vault::unfinished::{
    UnfinishedConversationAnswer, UnfinishedConversationRequest, UnfinishedRun, UnfinishedRunState,
};
use runvault::vault::view::{
    Conversation, ConversationCall, ConversationMessage, ConversationThread, MessageMedia, MessagePart,
    MessageRole, MessageToolCall, MessageToolResult, ViewRequest,
};

use super::printer::{INDENT, LINES, ROLE_WIDTH, TranscriptPrinter, milliseconds};
use super::show;
use crate::cli::args::hash::ArtifactArg;
use crate::cli::args::vault::VaultArgs;
use crate::cli::output::exit::CommandError;
use crate::cli::output::report::Fields;
use crate::cli::output::stdout::{self, BAD, CAUTION, FAINT, NAME, counted};
use crate::cli::output::{fit, json, terminal, time};

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

/// How often calls that have ended are looked for.
const INTERVAL: Duration = Duration::from_millis(500);

/// Prints a run that is being recorded.
pub(super) struct UnfinishedRunPrinter<'v> {
    vault: &'v Vault,
    request: UnfinishedConversationRequest,
    full: bool,
}

impl<'v> UnfinishedRunPrinter<'v> {
    pub(super) fn new(args: &VaultArgs, vault: &'v Vault, hash: &ArtifactArg, full: bool) -> Self {
        // Without the directory of a user, there is none with runs of a database.
        let (directory, run) = (args.recordings().ok(), hash.name().map(str::to_owned));
        Self { vault, request: UnfinishedConversationRequest { directory, run }, full }
    }

    /// Prints the calls so far. Returns false if there is no such run.
    pub(super) fn print_once(&self, as_json: bool) -> Result<bool, CommandError> {
        let answer = self.vault.run(&self.request)?;
        let Some(run) = &answer.run else { return Ok(false) };
        if as_json {
            let mut out = io::BufWriter::new(stdout::raw());
            json::stream(&mut out, &answer)?;
            out.flush()?;
            return Ok(true);
        }
        let mut out = io::BufWriter::new(stdout::text());
        heading(&mut out, run)?;
        print(&mut TranscriptPrinter::new(&mut out, self.full), &answer.conversation)?;
        out.flush()?;
        stdout::note(&format!("{} so far", counted(run.calls, "call")));
        Ok(true)
    }

    /// Prints the calls as they end, until the run is finished or its process has ended. Returns false if there is no such
    /// run.
    pub(super) fn follow(&self) -> Result<bool, CommandError> {
        let mut out = stdout::text();
        let (mut printed, mut request, mut last) = (PrintedCalls::default(), self.request.clone(), None);
        loop {
            let UnfinishedConversationAnswer { run, conversation } = self.vault.run(&request)?;
            let Some(run) = run else { break };
            if last.is_none() {
                // Its end would not be seen there before the run's.
                terminal::forbid();
                heading(&mut out, &run)?;
            }
            printed.print(&mut out, conversation, self.full)?;
            out.flush()?;
            let UnfinishedRun { run_id, state, calls, .. } = run;
            if state == UnfinishedRunState::Interrupted {
                stdout::note(&format!(
                    "{}; the process that recorded the run has ended",
                    counted(calls, "call")
                ));
                return Ok(true);
            }
            request.run = Some(run_id.clone());
            last = Some(run_id);
            thread::sleep(INTERVAL);
        }
        let Some(run_id) = last else { return Ok(false) };
        let artifact = ResolveRequest::new(&run_id).locate(self.vault)?.artifact.core;
        let answer = self.vault.run(&ViewRequest { conversation: true, ..ViewRequest::new(artifact) })?;
        printed.print(&mut out, answer.conversation.unwrap_or_default(), self.full)?;
        out.flush()?;
        stdout::note(&format!("{}; stored as {artifact:.12}", counted(answer.total, &answer.step_noun)));
        Ok(true)
    }
}

/// The calls that were printed: the number of those whose requests were made in each millisecond. Their own numbers change
/// when the run is stored.
#[derive(Default)]
struct PrintedCalls(BTreeMap<Option<i64>, usize>);

impl PrintedCalls {
    /// Prints the calls that were not printed before.
    fn print(&mut self, out: &mut dyn Write, mut conversation: Conversation, full: bool) -> io::Result<()> {
        let mut found: BTreeMap<Option<i64>, usize> = BTreeMap::new();
        conversation.calls.retain(|call| {
            let at = call.requested_at.map(|at| at.0.timestamp_millis());
            let count = found.entry(at).or_default();
            *count += 1;
            self.0.get(&at).is_none_or(|printed| *count > *printed)
        });
        self.0 = found;
        print(&mut TranscriptPrinter::new(out, full), &conversation)
    }
}

/// Prints what is known of a run besides its calls.
fn heading(out: &mut dyn Write, run: &UnfinishedRun) -> io::Result<()> {
    writeln!(out, "{CAUTION}{}{CAUTION:#} {NAME}{}{NAME:#}", run.state.name(), escaped(&run.run_id))?;
    let mut fields = Fields::new(ROLE_WIDTH);
    if run.failed > 0 {
        fields.push("failed", counted(run.failed, "call"), BAD);
    }
    if let Some(at) = run.started_at {
        fields.push("since", time::shown(at.0), Style::new());
    }
    let models: Vec<String> = run.models.iter().map(|model| brief(model).to_string()).collect();
    if !models.is_empty() {
        fields.push("model", models.join(", "), Style::new());
    }
    show::labels(&run.labels, &mut fields);
    fields.write(out)
}

//! Text and JSON output of `diff`.

use std::io::{self, Write};

use anstyle::Style;
use runvault::display::{brief, escaped};
use runvault::formats;
use runvault::json::Value;
use runvault::vault::api::JsonValue;
use runvault::vault::diff::{
    ArtifactComparison, ChangeType, ChangedValue, DiffAnswer, DiffExtent, PartChange, TextDiffSpan, words,
};
use serde::ser::{Serialize, Serializer};

use crate::cli::output::links::fitting_hash;
use crate::cli::output::stdout::{BAD, CAUTION, FAINT, GOOD, HASH};
use crate::cli::output::{fit, json, terminal};

/// The comparison to print.
pub(super) struct DiffOutput<'d> {
    pub(super) comparison: &'d ArtifactComparison<'d>,
    /// Everything except the changes.
    pub(super) answer: &'d DiffAnswer,
    /// Whether the first artifact is the expected one.
    pub(super) expected: bool,
    pub(super) extent: DiffExtent,
}

/// Maximum number of differences listed; `--json` lists all.
const LISTED: usize = 200;

/// Maximum number of differing values listed per part.
const LISTED_VALUES: usize = 20;

/// Number of common characters shown around a difference.
const CONTEXT_CHARACTERS: usize = 40;

/// Approximate width of the mark for omitted text.
const MARK_CHARACTERS: usize = 22;

/// Maximum size of texts that are compared word by word for display.
const MAX_WORDS_BYTES: usize = 1 << 20;

/// Returns the number of characters per line.
pub(super) fn width() -> usize {
    terminal::width().unwrap_or(100).clamp(40, 400)
}

/// Prints the comparison.
pub(super) fn print(out: &mut dyn Write, outcome: &DiffOutput<'_>, width: usize) -> io::Result<()> {
    print_verdict(out, outcome)?;
    let answer = outcome.answer;
    let kind = formats::bare_noun(&answer.kind);
    for (sign, style, side) in [("-", BAD, &answer.one), ("+", GOOD, &answer.other)] {
        let name = brief(&side.name).to_string();
        let core = fitting_hash(side.core_hash, 2 + kind.len() + 1 + 1 + fit::width(&name));
        writeln!(out, "{style}{sign}{style:#} {kind} {HASH}{core}{HASH:#} {name}")?;
    }
    let most = match outcome.extent {
        DiffExtent::All => LISTED,
        DiffExtent::First => 1,
        DiffExtent::Counts => 0,
    };
    if outcome.extent != DiffExtent::First {
        let counts = answer.counts;
        let (same, changed, moved) = (counts.same, counts.changed, counts.moved);
        let (removed, inserted) = (counts.removed, counts.inserted);
        writeln!(
            out,
            "{FAINT}{same} same, {changed} changed, {moved} moved, {removed} removed, {inserted} inserted{FAINT:#}"
        )?;
    }
    let mut changes = outcome.comparison.changes();
    let mut apart = true;
    for change in changes.by_ref().take(most) {
        // Single-line changes are grouped without blank lines.
        if apart || !change.values.is_empty() {
            writeln!(out)?;
        }
        apart = !change.values.is_empty();
        print_change(out, outcome, &change, width)?;
    }
    let left = if outcome.extent == DiffExtent::All { changes.count() } else { 0 };
    if left > 0 {
        writeln!(out, "\n{FAINT}and {left} more; --json lists them{FAINT:#}")?;
    }
    Ok(())
}

/// Prints the first line, which summarises the result.
fn print_verdict(out: &mut dyn Write, outcome: &DiffOutput<'_>) -> io::Result<()> {
    let answer = outcome.answer;
    match &answer.first_divergence {
        Some(first) => {
            let lead = if outcome.expected { "not as expected" } else { "first divergence" };
            let says = escaped(&says(outcome, first)).to_string();
            writeln!(out, "{BAD}{lead}{BAD:#}: {}: {says}", brief(first.place()))
        }
        None if answer.same_core => {
            writeln!(out, "{GOOD}identical core{GOOD:#} {HASH}{}{HASH:#}", answer.one.core_hash)
        }
        None => {
            writeln!(out, "{GOOD}no divergence{GOOD:#}: the cores differ, but nothing that is compared does")
        }
    }
}

fn says(outcome: &DiffOutput<'_>, change: &PartChange) -> String {
    let (first, second) = if outcome.expected {
        ("missing", "not expected")
    } else {
        ("only in the first", "only in the second")
    };
    match change.change {
        ChangeType::Removed => first.to_owned(),
        ChangeType::Inserted => second.to_owned(),
        ChangeType::Moved if change.other == change.one => "in a different order".to_owned(),
        ChangeType::Moved => format!("moved to {}", change.other.as_deref().unwrap_or_default()),
        ChangeType::Changed | ChangeType::Ephemeral | ChangeType::Spelling => change.says.clone(),
    }
}

fn print_change(
    out: &mut dyn Write,
    outcome: &DiffOutput<'_>,
    change: &PartChange,
    width: usize,
) -> io::Result<()> {
    let style = match change.change {
        ChangeType::Changed => CAUTION,
        ChangeType::Removed => BAD,
        ChangeType::Inserted => GOOD,
        ChangeType::Moved | ChangeType::Ephemeral | ChangeType::Spelling => FAINT,
    };
    let now = change.other.as_deref();
    let now = now.filter(|other| change.change == ChangeType::Changed && *other != change.place());
    let now = now.map(|other| format!(" (now {})", brief(other))).unwrap_or_default();
    let (word, place) = (word(change.change), brief(change.place()));
    let says = match change.change {
        ChangeType::Removed | ChangeType::Inserted => String::new(),
        _ => format!(": {}", escaped(&says(outcome, change))),
    };
    writeln!(out, "{style}{word}{style:#} {place}{now}{says}")?;
    for value in change.values.iter().take(LISTED_VALUES) {
        print_value(out, value, width)?;
    }
    match change.values.len().saturating_sub(LISTED_VALUES) {
        0 => Ok(()),
        more => writeln!(out, "  {FAINT}and {more} more; --json lists them{FAINT:#}"),
    }
}

fn print_value(out: &mut dyn Write, change: &ChangedValue, width: usize) -> io::Result<()> {
    let mark = match (change.ephemeral, change.spelling) {
        (true, _) => format!(" {FAINT}(ephemeral){FAINT:#}"),
        (false, true) => format!(" {FAINT}(spelling){FAINT:#}"),
        (false, false) => String::new(),
    };
    if !change.pointer.is_empty() {
        writeln!(out, "  {}{mark}", brief(&change.pointer))?;
    }
    let (old, new) = (change.old.as_ref(), change.new.as_ref());
    let (old, new) = (old.map(|JsonValue(value)| value), new.map(|JsonValue(value)| value));
    if let (Some(Value::String(old)), Some(Value::String(new))) = (old, new)
        && let Some(spans) = worded(old, new)
    {
        return print_words(out, &spans, width);
    }
    for (sign, style, value) in [("-", BAD, old), ("+", GOOD, new)] {
        match value {
            // A whole part is easier to read member by member.
            Some(Value::Object(object)) if change.pointer.is_empty() => {
                for (name, member) in object.iter().take(LISTED_VALUES) {
                    let lead = format!("{sign} {}: ", brief(name));
                    print_line(out, &lead, style, &value_text(member), width)?;
                }
            }
            Some(value) => print_line(out, &format!("{sign} "), style, &value_text(value), width)?,
            None => {}
        }
    }
    Ok(())
}

/// Prints as much of `text` as fits on a line after `lead`, which is already escaped.
fn print_line(out: &mut dyn Write, lead: &str, style: Style, text: &str, width: usize) -> io::Result<()> {
    let room = width.saturating_sub(INDENT + lead.chars().count());
    // The omission mark takes up space too.
    let most = if text.chars().count() > room { room.saturating_sub(MARK_CHARACTERS) } else { room };
    writeln!(out, "{:INDENT$}{style}{lead}{}{style:#}", "", escaped(text).up_to(most.max(10)))
}

/// Returns the word-level difference of two texts, if they share enough for it to be easier to read.
fn worded<'t>(old: &'t str, new: &'t str) -> Option<Vec<TextDiffSpan<'t>>> {
    // Names, hashes and dates are compared as a whole.
    let are_prose = [old, new].iter().all(|text| text.contains(char::is_whitespace));
    if !are_prose || old.len() + new.len() > MAX_WORDS_BYTES {
        return None;
    }
    let spans = words(old, new);
    let common: usize = spans
        .iter()
        .map(|span| match span {
            TextDiffSpan::Same(text) => text.chars().filter(|character| character.is_alphanumeric()).count(),
            TextDiffSpan::Removed(_) | TextDiffSpan::Added(_) => 0,
        })
        .sum();
    (common * 3 >= old.chars().count().min(new.chars().count()) && common > 0).then_some(spans)
}

fn print_words(out: &mut dyn Write, spans: &[TextDiffSpan<'_>], width: usize) -> io::Result<()> {
    let mut line = WrappedLine { out, width, column: 0, has_gap: false };
    let last = spans.len().saturating_sub(1);
    for (index, span) in spans.iter().enumerate() {
        match span {
            TextDiffSpan::Same(text) => line.put(&context(text, index == 0, index == last), Style::new())?,
            TextDiffSpan::Removed(text) => line.put(&format!("[-{}-]", escaped(text)), BAD)?,
            TextDiffSpan::Added(text) => line.put(&format!("{{+{}+}}", escaped(text)), GOOD)?,
        }
    }
    writeln!(line.out)
}

/// Returns the text around a difference: the end of the text before the first, and the start of the text after the
/// last.
fn context(text: &str, is_first: bool, is_last: bool) -> String {
    let count = text.chars().count();
    let most = CONTEXT_CHARACTERS * if is_first || is_last { 1 } else { 2 };
    if count <= most + 1 {
        return escaped(text).to_string();
    }
    let begin: String =
        if is_first { String::new() } else { text.chars().take(CONTEXT_CHARACTERS).collect() };
    let end = count - if is_last { 0 } else { CONTEXT_CHARACTERS };
    let end: String = if is_last { String::new() } else { text.chars().skip(end).collect() };
    format!("{}…{}", escaped(&begin), escaped(&end))
}

/// A text that is wrapped at words into indented lines.
struct WrappedLine<'o> {
    out: &'o mut dyn Write,
    width: usize,
    column: usize,
    /// Whether a space precedes the next word, unless the line ends there.
    has_gap: bool,
}

const INDENT: usize = 4;

impl WrappedLine<'_> {
    /// Writes `text`, which is already escaped.
    fn put(&mut self, text: &str, style: Style) -> io::Result<()> {
        for piece in text.split_inclusive(' ') {
            let word = piece.strip_suffix(' ').unwrap_or(piece);
            let length = fit::width(word);
            if self.column > INDENT && self.column + usize::from(self.has_gap) + length > self.width {
                self.column = 0;
                writeln!(self.out)?;
            }
            let gap = match (self.column, self.has_gap) {
                (0, _) => INDENT,
                (_, has_gap) => usize::from(has_gap),
            };
            write!(self.out, "{:gap$}{style}{word}{style:#}", "")?;
            self.column += gap + length;
            self.has_gap = piece.len() > word.len();
        }
        Ok(())
    }
}

/// Returns the word for the type of a change.
fn word(sort: ChangeType) -> &'static str {
    match sort {
        ChangeType::Changed => "changed",
        ChangeType::Moved => "moved",
        ChangeType::Removed => "removed",
        ChangeType::Inserted => "inserted",
        ChangeType::Ephemeral => "ephemeral",
        ChangeType::Spelling => "spelling",
    }
}

/// Formats a value as one line of JSON, with numbers as written.
pub(super) fn value_text(value: &Value<'_>) -> String {
    let mut text = String::new();
    write_value(value, &mut text);
    text
}

fn write_value(value: &Value<'_>, out: &mut String) {
    let string = |text: &str| serde_json::to_string(text).unwrap_or_default();
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(truth) => out.push_str(if *truth { "true" } else { "false" }),
        Value::String(text) => out.push_str(&string(text)),
        Value::Number(number) => out.push_str(number.literal()),
        Value::Array(elements) => {
            out.push('[');
            for (index, element) in elements.iter().enumerate() {
                out.push_str(if index > 0 { ", " } else { "" });
                write_value(element, out);
            }
            out.push(']');
        }
        Value::Object(object) => {
            out.push('{');
            for (index, (name, member)) in object.iter().enumerate() {
                out.push_str(if index > 0 { ", " } else { "" });
                out.push_str(&string(name));
                out.push_str(": ");
                write_value(member, out);
            }
            out.push('}');
        }
    }
}

/// The answer, with its changes computed during output.
#[derive(serde::Serialize)]
struct DiffDocument<'d> {
    #[serde(flatten)]
    answer: &'d DiffAnswer,
    #[serde(skip_serializing_if = "Option::is_none")]
    changes: Option<Changes<'d>>,
}

/// The changes, computed one at a time during output, because there may be very many.
struct Changes<'d> {
    comparison: &'d ArtifactComparison<'d>,
    most: usize,
}

impl Serialize for Changes<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.comparison.changes().take(self.most))
    }
}

/// Writes the document, or the requested part of it.
pub(super) fn print_json(out: &mut dyn Write, outcome: &DiffOutput<'_>) -> io::Result<()> {
    let DiffOutput { answer, comparison, .. } = outcome;
    let most = match outcome.extent {
        DiffExtent::All => Some(usize::MAX),
        DiffExtent::First => Some(1),
        DiffExtent::Counts => None,
    };
    json::line(out, &DiffDocument { answer, changes: most.map(|most| Changes { comparison, most }) })
}

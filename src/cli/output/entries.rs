//! Output of journal entries.

use std::io::{self, Write};

use anstream::adapter::strip_str;
use anstyle::Style;
use chrono::DateTime;
use runvault::digest::Digest;
use runvault::display::escaped;
use runvault::formats;
use runvault::vault::journal::JournalEntry;
use serde_json::{Map, Value};

use super::fit::{self, TrailingLayout};
use super::stdout::{self, FAINT, HASH, counted};
use super::{terminal, time};

/// Reports the number of entries.
pub(crate) fn note_count(count: usize) {
    stdout::note(&if count == 1 { "1 entry".to_owned() } else { format!("{count} entries") });
}

/// Prints an entry on a line, or on several on a narrow terminal.
pub(crate) fn print(out: &mut dyn Write, row: &JournalEntry) -> io::Result<()> {
    let members = &row.entry;
    let text = |name: &str| members.get(name).and_then(Value::as_str);
    let action = escaped(text("action").unwrap_or("?")).to_string();
    let mut said = Vec::new();
    said.extend(text("actor").map(|actor| format!("by {}", escaped(actor))));
    said.extend(text("note").or(text("reason")).map(|said| format!("\"{}\"", escaped(said))));
    let (at, what) = (at(members), what(members));
    let begin = format!("{:>6} {FAINT}{at}{FAINT:#} {action}", row.seq);
    let whole = format!("{:>6} {FAINT}{at}{FAINT:#} {action:<7} {what}", row.seq);
    let said = said.join(" ");
    let trail = |used| TrailingLayout { used, below: BELOW, least: usize::MAX };
    if terminal::width().is_none_or(|width| fit::width(&whole) <= width) {
        write!(out, "{whole}")?;
        return trail(fit::width(&whole)).write(out, &said, FAINT);
    }
    write!(out, "{begin}")?;
    trail(fit::width(&begin)).write(out, &format!("{} {said}", strip_str(&what)), Style::new())
}

/// The indent of text that does not fit next to an entry: it is below it, under its time.
const BELOW: usize = 7;

/// Describes the subject of an entry.
fn what(members: &Map<String, Value>) -> String {
    let text = |name: &str| escaped(members.get(name).and_then(Value::as_str).unwrap_or("?")).to_string();
    let kind = || match members.get("kind").and_then(Value::as_str) {
        Some(kind) => escaped(formats::bare_noun(kind)).to_string(),
        None => "?".to_owned(),
    };
    let number = |name: &str| members.get(name).and_then(Value::as_u64).unwrap_or(0);
    let size = |name: &str| stdout::size(number(name));
    let hash = |name: &str| {
        let digest = members.get(name).and_then(Value::as_str).and_then(Digest::parse_prefixed);
        digest.map_or_else(|| "?".to_owned(), |digest| format!("{HASH}{digest:.12}{HASH:#}"))
    };
    match members.get("action").and_then(Value::as_str) {
        Some("add") => format!("{:<11} {} {}", kind(), hash("core"), size("size")),
        Some("link" | "unlink") => format!("{} {} {}", hash("source"), text("relation"), hash("target")),
        Some("tag" | "untag") => format!("{} @{}", hash("core"), text("name")),
        Some("label" | "unlabel") => labels(members),
        Some("pin" | "unpin") => hash("core"),
        Some("seen") => artifacts(members),
        Some("signature") => {
            let has_key_id = members.contains_key("key_id");
            let key_id = if has_key_id { format!(", key id {}", text("key_id")) } else { String::new() };
            format!("{} of {}: {}{key_id}", hash("capture"), hash("core"), text("state"))
        }
        Some("note") if members.contains_key("note") => hash("core"),
        Some("note") => format!("{} removed", hash("core")),
        Some("remove") => {
            let captures = members.get("captures").and_then(Value::as_array).map_or(0, Vec::len);
            let captures = counted(captures as u64, "capture");
            format!("{:<11} {} {captures}, {}", kind(), hash("core"), size("size"))
        }
        Some("allow-removed") => format!("{:<11} {}", kind(), hash("core")),
        Some("gc") => format!("{} before, {} after", size("bytes_before"), size("bytes_after")),
        _ => {
            let own = |name: &&String| !["action", "actor", "at", "note", "reason"].contains(&name.as_str());
            let own = members.keys().filter(own).map(|name| format!("{name}={}", members[name]));
            escaped(&own.collect::<Vec<_>>().join(" ")).to_string()
        }
    }
}

/// Describes the artifacts of an entry about several: the first one, and how many more there are.
fn artifacts(members: &Map<String, Value>) -> String {
    let cores = members.get("cores").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let first = cores.first().and_then(Value::as_str).and_then(Digest::parse_prefixed);
    let first = first.map_or_else(|| "?".to_owned(), |digest| format!("{HASH}{digest:.12}{HASH:#}"));
    match cores.len().saturating_sub(1) {
        0 => first,
        more => format!("{first} and {more} more"),
    }
}

/// Describes an entry about labels.
fn labels(members: &Map<String, Value>) -> String {
    let set = members.get("labels").and_then(Value::as_object).into_iter().flatten();
    let set = set.map(|(key, value)| format!("{}={}", escaped(key), escaped(value.as_str().unwrap_or("?"))));
    let removed = members.get("keys").and_then(Value::as_array).into_iter().flatten();
    let removed = removed.map(|key| escaped(key.as_str().unwrap_or("?")).to_string());
    format!("{} {}", artifacts(members), set.chain(removed).collect::<Vec<_>>().join(", "))
}

/// Formats the time of an entry.
fn at(members: &Map<String, Value>) -> String {
    let text = members.get("at").and_then(Value::as_str).unwrap_or("?");
    DateTime::parse_from_rfc3339(text)
        .map_or_else(|_| escaped(text).to_string(), |at| time::display(at.to_utc()))
}

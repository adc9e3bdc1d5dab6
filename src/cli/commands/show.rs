//! `runvault show`

use std::collections::BTreeMap;
use std::io::{self, Write};

use anstyle::Style;
use clap::Args as ClapArgs;
use runvault::display::{brief, escaped};
use runvault::storage::{MAX_NOTE_BYTES, TimeBasis};
use runvault::vault::api::SignatureName;
use runvault::vault::columns::ColumnContext;
use runvault::vault::details::{AttributeSummary, CaptureSummary};
use runvault::vault::journal::{JournalAnswer, JournalRequest};
use runvault::vault::show::{ArtifactPin, ExtensionSummary, ShowAnswer, ShowRequest};
use runvault::{Vault, clock, formats};

use crate::cli::args::completing::CandidateSource;
use crate::cli::args::hash::ArtifactArg;
use crate::cli::args::vault::VaultArgs;
use crate::cli::output::exit::{CommandError, Status};
use crate::cli::output::fit::TrailingLayout;
use crate::cli::output::hits::LineTemplate;
use crate::cli::output::report::Fields;
use crate::cli::output::stdout::{self, FAINT, HASH, NAME, counted};
use crate::cli::output::{entries, json, links, matches, report, time};

/// Show an artifact's metadata and links
///
/// Prints its kind, attributes, captures, tags, note, labels and links. With --history, prints what happened to it.
#[derive(ClapArgs)]
pub(crate) struct Args {
    /// The artifact: a hash, a prefix of one, a tag, a run id, or latest
    #[arg(add = CandidateSource::ARTIFACTS.completer())]
    hash: ArtifactArg,

    /// Print one line in this format, such as '{{kind}} {{size}}'; the names are those of "find --columns"
    #[arg(long, value_name = "TEXT", hide_short_help = true)]
    format: Option<LineTemplate>,

    /// Print the journal entries about it instead, newest first; also those about an artifact that was removed
    #[arg(long, conflicts_with = "format")]
    history: bool,

    /// Print one JSON document with everything, or one line for each entry of the history
    #[arg(long, conflicts_with = "format")]
    json: bool,
}

impl Args {
    pub(crate) fn run(&self, vault: &VaultArgs) -> Result<Status, CommandError> {
        let vault = vault.open()?;
        if self.history {
            return self.print_history(&vault);
        }
        let artifact = self.hash.locate(&vault)?.artifact.core;
        let description = vault.run(&ShowRequest { artifact })?;
        if let Some(template) = &self.format {
            let (artifact, details) = description.into_details();
            let (artifact, details, by) = (&artifact, &details, TimeBasis::LastSeen);
            let subject = ColumnContext { artifact, details, matches: &[], by, now: clock::now(), row: None };
            writeln!(stdout::text(), "{}", template.fill(&subject))?;
        } else if self.json {
            json::line(&mut stdout::raw(), &description)?;
        } else {
            print(&mut stdout::text(), &description)?;
        }
        Ok(Status::Done)
    }
}

impl Args {
    fn print_history(&self, vault: &Vault) -> Result<Status, CommandError> {
        let about = match self.hash.locate(vault) {
            Ok(located) => located.artifact.core.0,
            Err(_) => self.hash.digest(vault)?,
        };
        let mut request = JournalRequest { about: Some(about), ..JournalRequest::default() };
        let mut history = Vec::new();
        loop {
            let JournalAnswer { mut entries, next } = vault.run(&request)?;
            history.append(&mut entries);
            request.after = next;
            if next.is_none() {
                break;
            }
        }
        let mut out: Box<dyn Write> =
            if self.json { Box::new(stdout::raw()) } else { Box::new(stdout::text()) };
        let mut out = io::BufWriter::new(&mut out);
        for entry in history.iter().rev() {
            if self.json { json::line(&mut out, entry)? } else { entries::print(&mut out, entry)? }
        }
        out.flush()?;
        if !self.json {
            entries::note_count(history.len());
        }
        Ok(if history.is_empty() { Status::No } else { Status::Done })
    }
}

/// Maximum number of values listed per attribute; `--json` lists all.
const LISTED: usize = 8;

/// The maximum number of captures, and of links, in the list.
const MAX_LISTED: usize = 100;

fn print(out: &mut dyn Write, description: &ShowAnswer) -> io::Result<()> {
    let ShowAnswer { artifact, mentions, captures, links, .. } = description;
    links::heading(out, &artifact.kind, artifact.core_hash)?;
    let mut fields = Fields::new("mentions".len());
    let mut seen = time::shown(artifact.seen_at.0);
    if artifact.added_at < artifact.seen_at {
        seen = format!("{seen}, first {}", time::shown(artifact.added_at.0));
    }
    fields.push("seen", seen, Style::new());
    marks(description, &mut fields);
    extensions(description, &mut fields);
    attributes(&description.attributes, &mut fields);
    let counts: Vec<String> =
        mentions.iter().map(|mention| format!("{} {}", mention.count, brief(&mention.role))).collect();
    if !counts.is_empty() {
        fields.push("mentions", counts.join(", "), Style::new());
    }
    if captures.len() > 1 {
        let (count, core) = (captures.len(), artifact.core_hash);
        let preferred = captures.iter().find(|capture| capture.preferred);
        let used =
            preferred.map(|capture| format!("{:.12} is used; ", capture.capture_hash)).unwrap_or_default();
        let line = format!("{count}; {used}\"runvault diff --all {core:.12}\" compares them");
        fields.push("captures", line, Style::new());
    }
    fields.write(out)?;
    let can_be_signed = formats::named(&artifact.kind).is_some_and(|kind| kind.info().can_be_signed);
    for capture in captures.iter().take(MAX_LISTED) {
        print_capture(out, &fields, capture, can_be_signed)?;
    }
    if let more @ 1.. = captures.len().saturating_sub(MAX_LISTED) {
        fields.lead(out, "")?;
        writeln!(out, "and {more} more captures; --json lists them")?;
    }
    if !links.is_empty() {
        writeln!(out, "  {FAINT}links{FAINT:#}")?;
        for link in links.iter().take(MAX_LISTED) {
            links::print(out, "    ", link)?;
        }
    }
    if let more @ 1.. = links.len().saturating_sub(MAX_LISTED) {
        writeln!(out, "    and {more} more; \"runvault links\" lists them")?;
    }
    Ok(())
}

/// Adds the tags, note, labels and pin of the artifact.
fn marks(description: &ShowAnswer, fields: &mut Fields) {
    if !description.tags.is_empty() {
        let tags: Vec<String> = description.tags.iter().map(|tag| format!("@{}", escaped(tag))).collect();
        fields.push("tags", tags.join(" "), NAME);
    }
    if let Some(note) = &description.note {
        fields.push("note", escaped(note).up_to(MAX_NOTE_BYTES).to_string(), Style::new());
    }
    labels(&description.labels, fields);
    if let Some(ArtifactPin { note, pinned_at }) = &description.pin {
        let why = note.as_deref().map(|note| format!(": {}", escaped(note))).unwrap_or_default();
        fields.push("pinned", format!("{}{why}", time::shown(pinned_at.0)), Style::new());
    }
}

/// Adds the labels of an artifact.
pub(crate) fn labels(labels: &BTreeMap<String, String>, fields: &mut Fields) {
    let labels: Vec<String> =
        labels.iter().map(|(key, value)| format!("{}={}", escaped(key), escaped(value))).collect();
    if !labels.is_empty() {
        fields.push("labels", labels.join(", "), Style::new());
    }
}

/// Adds the artifacts that extend the artifact.
fn extensions(ShowAnswer { artifact, extensions, .. }: &ShowAnswer, fields: &mut Fields) {
    let text = |ExtensionSummary { core_hash, length, unit }: &ExtensionSummary| {
        let length = length.map(|length| format!(" ({})", counted(length, unit))).unwrap_or_default();
        format!("{} {core_hash:.12}{length}", brief(formats::bare_noun(&artifact.kind)))
    };
    let mut texts: Vec<String> = extensions.iter().take(LISTED).map(text).collect();
    if texts.is_empty() {
        return;
    }
    if let more @ 1.. = extensions.len().saturating_sub(LISTED) {
        texts.push(format!("{more} more"));
    }
    fields.push("extended by", texts.join(", "), Style::new());
}

/// Adds the attributes of an artifact, with the first values of each.
pub(crate) fn attributes(attributes: &[AttributeSummary], fields: &mut Fields) {
    for group in attributes.chunk_by(|one, other| one.name == other.name) {
        let name = group.first().map(|first| brief(&first.name).to_string()).unwrap_or_default();
        let values: Vec<String> =
            group.iter().take(LISTED).map(|attribute| brief(&attribute.value).to_string()).collect();
        let more = match group.len().saturating_sub(LISTED) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        fields.push(name, format!("{}{more}", values.join(", ")), Style::new());
    }
}

fn print_capture(
    out: &mut dyn Write,
    fields: &Fields,
    capture: &CaptureSummary,
    can_be_signed: bool,
) -> io::Result<()> {
    let mut rest = vec![stdout::size(capture.size), time::shown(capture.added_at.0)];
    if capture.seen_at > capture.added_at {
        rest.push(format!("seen again {}", time::shown(capture.seen_at.0)));
    }
    if can_be_signed || capture.signature != SignatureName::Unsigned {
        rest.push(matches::state_text(capture.signature, capture.key_id.as_deref()));
    }
    let rest = rest.join(", ");
    let whole = capture.capture_hash.to_string();
    let room = fields.room().unwrap_or(usize::MAX);
    // If it does not fit, it is shortened to a prefix that can be typed.
    let fits = whole.len() + 1 + rest.len() <= room;
    let hash = if fits { whole } else { format!("{:.12}", capture.capture_hash) };
    fields.lead(out, "capture")?;
    write!(out, "{HASH}{hash}{HASH:#}")?;
    let below = fields.indent();
    TrailingLayout { used: below + hash.len(), below, least: usize::MAX }.write(out, &rest, Style::new())?;
    if let Some(path) = &capture.source_path {
        let from = if path == "-" { "standard input".to_owned() } else { escaped(path).to_string() };
        writeln!(out, "{:below$}from {from}", "")?;
    }
    report::write_some(out, "    ", &capture.violations, report::LISTED)
}

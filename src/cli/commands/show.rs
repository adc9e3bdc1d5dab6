//! `runvault show`

use std::io::{self, Write};

use anstyle::Style;
use clap::Args as ClapArgs;
use runvault::Description;
use runvault::artifact::{CREATED_AT, Kind, Versions};
use runvault::clock;
use runvault::digest::{CaptureHash, CoreHash};
use runvault::formats;
use runvault::storage::{Attribute, CaptureRecord, MAX_NOTE_BYTES, TimeBasis};
use runvault::validation::Violation;
use runvault::vault::query::Extension;
use serde::Serialize;

use crate::cli::args::hash::Named;
use crate::cli::args::vault::VaultArgs;
use crate::cli::commands::links::{self, JsonLink};
use crate::cli::output::columns::Subject;
use crate::cli::output::escape::{brief, escaped};
use crate::cli::output::exit::{Failure, Status};
use crate::cli::output::fields::Fields;
use crate::cli::output::fit::Trail;
use crate::cli::output::json;
use crate::cli::output::report;
use crate::cli::output::signature::{self, State};
use crate::cli::output::stdout::{self, FAINT, HASH, NAME, counted};
use crate::cli::output::template::Template;
use crate::cli::output::time;

/// Show an artifact's metadata and links.
///
/// Prints its kind, attributes, captures, tags, note and links.
#[derive(ClapArgs)]
pub(crate) struct Args {
    /// The artifact: a hash, a prefix of one, a tag, a run id, or latest
    hash: Named,

    /// Print one line in this format, such as '{{kind}} {{size}}'; the names are those of "find --columns"
    #[arg(long, value_name = "TEXT")]
    format: Option<Template>,

    /// Print one JSON document with everything
    #[arg(long, conflicts_with = "format")]
    json: bool,
}

impl Args {
    pub(crate) fn run(&self, vault: &VaultArgs) -> Result<Status, Failure> {
        let vault = vault.open()?;
        let artifact = self.hash.locate(&vault)?.artifact;
        if let Some(template) = &self.format {
            let snapshot = vault.snapshot()?;
            let line = template.fill(&Subject::new(
                &*snapshot,
                &(&artifact).into(),
                &[],
                clock::now(),
                TimeBasis::LastSeen,
            ))?;
            writeln!(stdout::text(), "{line}")?;
            return Ok(Status::Done);
        }
        let description = vault.describe(&artifact.core.0.into())?;
        if self.json {
            json::line(&mut stdout::raw(), &JsonDescription::new(&description))?;
        } else {
            print(&mut stdout::text(), &description)?;
        }
        Ok(Status::Done)
    }
}

/// Maximum number of values listed per attribute; `--json` lists all.
const LISTED: usize = 8;

/// The maximum number of captures, and of links, in the list.
const MAX_LISTED: usize = 100;

fn print(out: &mut dyn Write, description: &Description) -> io::Result<()> {
    let Description { artifact, mentions, captures, links, .. } = description;
    links::heading(out, artifact)?;
    let mut fields = Fields::new("mentions".len());
    let mut seen = time::shown(artifact.seen_at);
    if artifact.added_at < artifact.seen_at {
        seen = format!("{seen}, first {}", time::shown(artifact.added_at));
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
        let (count, core) = (captures.len(), artifact.core);
        let used = description.preferred;
        let line = format!("{count}; {used:.12} is used; \"runvault diff --all {core:.12}\" compares them");
        fields.push("captures", line, Style::new());
    }
    fields.write(out)?;
    let can_be_signed = formats::named(&artifact.kind).is_some_and(Kind::can_be_signed);
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

/// Adds the tags, note and pin of the artifact.
fn marks(description: &Description, fields: &mut Fields) {
    if !description.annotations.tags.is_empty() {
        let tags: Vec<String> =
            description.annotations.tags.iter().map(|tag| format!("@{}", escaped(&tag.name))).collect();
        fields.push("tags", tags.join(" "), NAME);
    }
    if let Some(note) = &description.annotations.note {
        let text = escaped(&note.text).up_to(MAX_NOTE_BYTES).to_string();
        fields.push("note", text, Style::new());
    }
    if let Some(pin) = &description.annotations.pin {
        let why = pin.note.as_deref().map(|note| format!(": {}", escaped(note))).unwrap_or_default();
        fields.push("pinned", format!("{}{why}", time::shown(pin.at)), Style::new());
    }
}

/// Adds the artifacts that extend the artifact.
fn extensions(description: &Description, fields: &mut Fields) {
    let mut texts: Vec<String> = description.extended_by.iter().take(LISTED).map(extension).collect();
    if texts.is_empty() {
        return;
    }
    if let more @ 1.. = description.extended_by.len().saturating_sub(LISTED) {
        texts.push(format!("{more} more"));
    }
    fields.push("extended by", texts.join(", "), Style::new());
}

fn extension(Extension { artifact, attributes }: &Extension) -> String {
    let length =
        formats::named(&artifact.kind).and_then(Kind::versions).and_then(|Versions { length, .. }| {
            let count = &attributes.iter().find(|attribute| attribute.name == length.0)?.value;
            Some(format!(" ({})", counted(count.parse().ok()?, length.1)))
        });
    format!("{} {:.12}{}", brief(&artifact.kind), artifact.core, length.unwrap_or_default())
}

fn attributes(attributes: &[Attribute], fields: &mut Fields) {
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
    capture: &CaptureRecord,
    can_be_signed: bool,
) -> io::Result<()> {
    let mut rest = vec![stdout::size(capture.size), time::shown(capture.added_at)];
    if capture.seen_at > capture.added_at {
        rest.push(format!("seen again {}", time::shown(capture.seen_at)));
    }
    if can_be_signed || capture.signature.is_some() {
        rest.push(signature::text(capture.signature.as_ref()));
    }
    let rest = rest.join(", ");
    let whole = capture.capture.to_string();
    let room = fields.room().unwrap_or(usize::MAX);
    // If it does not fit, it is shortened to a prefix that can be typed.
    let fits = whole.len() + 1 + rest.len() <= room;
    let hash = if fits { whole } else { format!("{:.12}", capture.capture) };
    fields.lead(out, "capture")?;
    write!(out, "{HASH}{hash}{HASH:#}")?;
    let below = fields.indent();
    Trail { taken: below + hash.len(), below, least: usize::MAX }.write(out, &rest, Style::new())?;
    report::write_some(out, "    ", &capture.warnings, report::LISTED)
}

#[derive(Serialize)]
struct JsonDescription<'d> {
    core_hash: CoreHash,
    kind: &'d str,
    added_at: String,
    seen_at: String,
    /// The latest creation time that it states.
    created_at: Option<&'d str>,
    attributes: Vec<JsonAttribute<'d>>,
    mentions: Vec<JsonCount<'d>>,
    captures: Vec<JsonCapture<'d>>,
    links: Vec<JsonLink<'d>>,
    extended_by: Vec<CoreHash>,
    tags: Vec<&'d str>,
    note: Option<&'d str>,
    pinned: bool,
}

#[derive(Serialize)]
struct JsonAttribute<'d> {
    name: &'d str,
    value: &'d str,
}

#[derive(Serialize)]
struct JsonCount<'d> {
    role: &'d str,
    count: u64,
}

#[derive(Serialize)]
struct JsonCapture<'d> {
    capture_hash: CaptureHash,
    /// Whether it is the preferred capture of the artifact.
    preferred: bool,
    size: u64,
    added_at: String,
    seen_at: String,
    signature: &'static str,
    key_id: Option<&'d str>,
    violations: &'d [Violation],
}

impl<'d> JsonDescription<'d> {
    fn new(description: &'d Description) -> Self {
        let Description { artifact, attributes, mentions, captures, links, extended_by, annotations, .. } =
            description;
        // They are sorted, and their order is chronological.
        let created = attributes.iter().rfind(|attribute| attribute.name == CREATED_AT);
        Self {
            core_hash: artifact.core,
            kind: &artifact.kind,
            added_at: time::exact(artifact.added_at),
            seen_at: time::exact(artifact.seen_at),
            created_at: created.map(|attribute| attribute.value.as_str()),
            attributes: attributes
                .iter()
                .map(|Attribute { name, value }| JsonAttribute { name, value })
                .collect(),
            mentions: mentions
                .iter()
                .map(|count| JsonCount { role: &count.role, count: count.count })
                .collect(),
            captures: captures
                .iter()
                .map(|capture| JsonCapture {
                    capture_hash: capture.capture,
                    preferred: capture.capture == description.preferred,
                    size: capture.size,
                    added_at: time::exact(capture.added_at),
                    seen_at: time::exact(capture.seen_at),
                    signature: State::new(capture.signature.as_ref()).name(),
                    key_id: capture.signature.as_ref().and_then(|signature| signature.key_id.as_deref()),
                    violations: &capture.warnings,
                })
                .collect(),
            links: links.iter().map(JsonLink::new).collect(),
            extended_by: extended_by.iter().map(|extension| extension.artifact.core).collect(),
            tags: annotations.tags.iter().map(|tag| tag.name.as_str()).collect(),
            note: annotations.note.as_ref().map(|note| note.text.as_str()),
            pinned: annotations.pin.is_some(),
        }
    }
}

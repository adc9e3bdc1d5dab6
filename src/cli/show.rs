//! `runvault show`

use std::io::{self, Write};

use clap::Args as ClapArgs;
use runvault::Description;
use runvault::digest::{CaptureHash, CoreHash};
use runvault::verify::Violation;
use serde::Serialize;

use super::escape::{brief, escaped};
use super::exit::{Failure, Status};
use super::hash::Named;
use super::links::{self, JsonLink};
use super::output::{self, FAINT, HASH};
use super::vault::VaultArgs;
use super::{json, report, time};

/// Tell what is known of an artifact, and what it is linked to.
///
/// Its kind, what it can be found by, its captures, its tags and its links.
#[derive(ClapArgs)]
pub(crate) struct Args {
    /// A core hash, a capture's own hash, the first digits of one, or @tag
    hash: Named,

    /// Print one JSON document with everything
    #[arg(long)]
    json: bool,
}

impl Args {
    pub(crate) fn run(&self, vault: &VaultArgs) -> Result<Status, Failure> {
        let vault = vault.open()?;
        let description = vault.describe(&self.hash.locate(&vault)?.artifact.core.0.into())?;
        if self.json {
            json::line(&mut output::raw(), &JsonDescription::of(&description))?;
        } else {
            print(&mut output::text(), &description)?;
        }
        Ok(Status::Done)
    }
}

/// So many values of one attribute are listed; `--json` lists all.
const LISTED: usize = 8;

fn print(out: &mut dyn Write, description: &Description) -> io::Result<()> {
    let Description { artifact, attributes, mentions, captures, links } = description;
    writeln!(out, "{} {HASH}{}{HASH:#}", escaped(&artifact.kind), artifact.core)?;
    let name_of = |(name, _): &(String, String)| brief(name).to_string();
    let widths = attributes.iter().map(|attribute| name_of(attribute).chars().count());
    let width = widths.max().unwrap_or(0).max("mentions".len());
    for group in attributes.chunk_by(|(one, _), (other, _)| one == other) {
        let name = group.first().map(name_of).unwrap_or_default();
        let values: Vec<String> =
            group.iter().take(LISTED).map(|(_, value)| brief(value).to_string()).collect();
        let more = group.len().saturating_sub(LISTED);
        let more = if more > 0 { format!(" {FAINT}and {more} more{FAINT:#}") } else { String::new() };
        writeln!(out, "  {FAINT}{name:<width$}{FAINT:#} {}{more}", values.join(", "))?;
    }
    let counts: Vec<String> =
        mentions.iter().map(|mention| format!("{} {}", mention.count, brief(&mention.role))).collect();
    if !counts.is_empty() {
        writeln!(out, "  {FAINT}{:<width$}{FAINT:#} {}", "mentions", counts.join(", "))?;
    }
    for capture in captures {
        let added = time::display(capture.added_at);
        let size = output::size(capture.size);
        writeln!(
            out,
            "  {FAINT}{:<width$}{FAINT:#} {HASH}{}{HASH:#} {size}, {added}",
            "capture", capture.capture
        )?;
        report::write_some(out, "    ", &capture.warnings, report::LISTED)?;
    }
    if !links.is_empty() {
        writeln!(out, "  {FAINT}links{FAINT:#}")?;
        for link in links {
            links::print(out, "    ", link)?;
        }
    }
    Ok(())
}

#[derive(Serialize)]
struct JsonDescription<'d> {
    core_hash: CoreHash,
    kind: &'d str,
    added_at: String,
    attributes: Vec<JsonAttribute<'d>>,
    mentions: Vec<JsonCount<'d>>,
    captures: Vec<JsonCapture<'d>>,
    links: Vec<JsonLink<'d>>,
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
    size: u64,
    added_at: String,
    violations: &'d [Violation],
}

impl<'d> JsonDescription<'d> {
    fn of(description: &'d Description) -> Self {
        let Description { artifact, attributes, mentions, captures, links } = description;
        Self {
            core_hash: artifact.core,
            kind: &artifact.kind,
            added_at: time::exact(artifact.added_at),
            attributes: attributes.iter().map(|(name, value)| JsonAttribute { name, value }).collect(),
            mentions: mentions
                .iter()
                .map(|count| JsonCount { role: &count.role, count: count.count })
                .collect(),
            captures: captures
                .iter()
                .map(|capture| JsonCapture {
                    capture_hash: capture.capture,
                    size: capture.size,
                    added_at: time::exact(capture.added_at),
                    violations: &capture.warnings,
                })
                .collect(),
            links: links.iter().map(JsonLink::of).collect(),
        }
    }
}

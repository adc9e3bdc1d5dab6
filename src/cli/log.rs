//! `runvault log`

use std::io::{self, Write};

use anstream::adapter::strip_str;
use anstyle::Style;
use chrono::{DateTime, Utc};
use clap::Args as ClapArgs;
use runvault::Vault;
use runvault::digest::Digest;
use runvault::store::{JournalQuery, JournalRow};
use serde::Serialize;
use serde_json::{Map, Value};

use super::escape::escaped;
use super::exit::{Failure, Status};
use super::fit::{self, Trail};
use super::output::{self, FAINT, HASH, counted};
use super::vault::VaultArgs;
use super::{json, time};

/// Print the journal: what was done to the vault, when, and by whom.
///
/// Oldest first. Every entry is chained to the one before by its digest. Write --head down elsewhere, and --verify-from
/// proves later that nothing that happened before was changed. docs/journal.md says how to check that without runvault.
#[derive(ClapArgs)]
pub(crate) struct Args {
    /// At this time or later: 2026-11-20, an RFC 3339 time, or an age like 90m, 36h, 7d, 4w
    #[arg(long, value_name = "TIME", value_parser = time::point)]
    since: Option<DateTime<Utc>>,
    /// Before this time
    #[arg(long, value_name = "TIME", value_parser = time::point)]
    until: Option<DateTime<Utc>>,
    /// Only entries of this action, such as add, link or remove
    #[arg(long, value_name = "ACTION")]
    action: Option<String>,
    /// Only the last so many
    #[arg(long, value_name = "N")]
    limit: Option<u32>,

    /// Print the number and the digest of the last entry, and nothing else
    #[arg(long, conflicts_with_all = ["since", "until", "action", "limit", "verify_from"])]
    head: bool,

    /// Compute the whole chain anew, and prove that this digest was the head of this journal once
    #[arg(long, value_name = "DIGEST", conflicts_with_all = ["since", "until", "action", "limit"])]
    verify_from: Option<Digest>,

    /// Print one line of JSON for each entry
    #[arg(long)]
    json: bool,
}

impl Args {
    pub(crate) fn run(&self, vault: &VaultArgs) -> Result<Status, Failure> {
        let vault = vault.open()?;
        match self.verify_from {
            Some(digest) => return self.verify(&vault, digest),
            None if self.head => return self.head(&vault),
            None => {}
        }
        let query = JournalQuery {
            since: self.since,
            until: self.until,
            action: self.action.clone(),
            limit: self.limit,
        };
        let mut out: Box<dyn Write> =
            if self.json { Box::new(output::raw()) } else { Box::new(output::text()) };
        let mut out = io::BufWriter::new(&mut out);
        let mut count = 0;
        vault.snapshot()?.journal::<Failure>(&query, |row| {
            count += 1;
            if self.json { Ok(json::line(&mut out, &Line::of(&row)?)?) } else { print(&mut out, &row) }
        })?;
        out.flush()?;
        if !self.json {
            output::note(&if count == 1 { "1 entry".to_owned() } else { format!("{count} entries") });
        }
        Ok(if count == 0 { Status::No } else { Status::Done })
    }

    fn head(&self, vault: &Vault) -> Result<Status, Failure> {
        let head = vault.snapshot()?.journal_head()?;
        if self.json {
            json::line(&mut output::raw(), &JsonHead { seq: head.seq, chain: head.chain })?;
        } else {
            writeln!(output::text(), "{} {HASH}{}{HASH:#}", head.seq, head.chain)?;
        }
        Ok(Status::Done)
    }

    fn verify(&self, vault: &Vault, digest: Digest) -> Result<Status, Failure> {
        let check = vault.check_journal(Some(digest))?;
        let defect = check.defect.map(|defect| defect.to_string());
        let head = JsonHead { seq: check.head.seq, chain: check.head.chain };
        if self.json {
            let defect = defect.as_deref();
            let ok = defect.is_none() && check.since.is_some();
            json::line(&mut output::raw(), &JsonCheck { ok, since: check.since, defect, head })?;
            return Ok(if ok { Status::Done } else { Status::No });
        }
        match (check.since, defect) {
            (Some(since), None) => {
                let later = match check.head.seq - since {
                    1 => "1 entry was".to_owned(),
                    later => format!("{later} entries were"),
                };
                writeln!(
                    output::text(),
                    "{digest:.12} was the head after entry {since}; nothing was changed, {later} added since; \
                     the head is {} {HASH}{}{HASH:#}",
                    head.seq,
                    head.chain
                )?;
                Ok(Status::Done)
            }
            (Some(since), Some(defect)) => {
                let at = check.defect.map_or(0, |defect| defect.entry());
                let when = if at <= since { "before" } else { "after" };
                Err(Failure::No(format!(
                    "history was rewritten {when} {digest:.12} was the head (entry {since}): {defect}"
                )))
            }
            (None, Some(defect)) => Err(Failure::No(format!(
                "history was rewritten: {defect}; and {digest:.12} is the head of no entry"
            ))),
            (None, None) => Err(Failure::No(format!(
                "{digest:.12} never was the head of this journal, which chains up to entry {}: it is the journal of \
                 another vault, or was rewritten as a whole or cut off since",
                check.head.seq
            ))),
        }
    }
}

fn print(out: &mut dyn Write, row: &JournalRow) -> Result<(), Failure> {
    let members = members(row)?;
    let text = |name: &str| members.get(name).and_then(Value::as_str);
    let action = escaped(text("action").unwrap_or("?")).to_string();
    let mut said = Vec::new();
    said.extend(text("actor").map(|actor| format!("by {}", escaped(actor))));
    said.extend(text("note").or(text("reason")).map(|said| format!("\"{}\"", escaped(said))));
    let (at, what) = (time::display(row.at), what(&members));
    let begin = format!("{:>6} {FAINT}{at}{FAINT:#} {action}", row.seq);
    let whole = format!("{:>6} {FAINT}{at}{FAINT:#} {action:<7} {what}", row.seq);
    let said = said.join(" ");
    let trail = |taken| Trail { taken, below: BELOW, least: usize::MAX };
    if output::width().is_none_or(|width| fit::width(&whole) <= width) {
        write!(out, "{whole}")?;
        return Ok(trail(fit::width(&whole)).write(out, &said, FAINT)?);
    }
    write!(out, "{begin}")?;
    Ok(trail(fit::width(&begin)).write(out, &format!("{} {said}", strip_str(&what)), Style::new())?)
}

/// What has no room beside an entry stands below it, under its time.
const BELOW: usize = 7;

/// What an entry is about, in words.
fn what(members: &Map<String, Value>) -> String {
    let text = |name: &str| escaped(members.get(name).and_then(Value::as_str).unwrap_or("?")).to_string();
    let number = |name: &str| members.get(name).and_then(Value::as_u64).unwrap_or(0);
    let size = |name: &str| output::size(number(name));
    let hash = |name: &str| {
        let digest = members.get(name).and_then(Value::as_str).and_then(Digest::stated);
        digest.map_or_else(|| "?".to_owned(), |digest| format!("{HASH}{digest:.12}{HASH:#}"))
    };
    match members.get("action").and_then(Value::as_str) {
        Some("add") => format!("{:<8} {} {}", text("kind"), hash("core"), size("size")),
        Some("link" | "unlink") => format!("{} {} {}", hash("source"), text("relation"), hash("target")),
        Some("tag" | "untag") => format!("{} @{}", hash("core"), text("name")),
        Some("pin" | "unpin") => hash("core"),
        Some("signature") => {
            let key_id = match members.contains_key("key_id") {
                true => format!(", key id {}", text("key_id")),
                false => String::new(),
            };
            format!("{} of {}: {}{key_id}", hash("capture"), hash("core"), text("state"))
        }
        Some("note") if members.contains_key("note") => hash("core"),
        Some("note") => format!("{} removed", hash("core")),
        Some("remove") => {
            let captures = members.get("captures").and_then(Value::as_array).map_or(0, Vec::len);
            let captures = counted(captures as u64, "capture");
            format!("{:<8} {} {captures}, {}", text("kind"), hash("core"), size("size"))
        }
        Some("allow-removed") => format!("{:<8} {}", text("kind"), hash("core")),
        Some("gc") => format!("{} before, {} after", size("bytes_before"), size("bytes_after")),
        _ => {
            let own = |name: &&String| !["action", "actor", "at", "note", "reason"].contains(&name.as_str());
            let own = members.keys().filter(own).map(|name| format!("{name}={}", members[name]));
            escaped(&own.collect::<Vec<_>>().join(" ")).to_string()
        }
    }
}

fn members(row: &JournalRow) -> Result<Map<String, Value>, Failure> {
    serde_json::from_str(&row.entry).map_err(|error| {
        Failure::CouldNotRun(format!("entry {} of the journal cannot be read: {error}", row.seq))
    })
}

#[derive(Serialize)]
struct Line {
    seq: u64,
    chain: Digest,
    entry: Map<String, Value>,
}

impl Line {
    fn of(row: &JournalRow) -> Result<Self, Failure> {
        Ok(Self { seq: row.seq, chain: row.chain, entry: members(row)? })
    }
}

#[derive(Serialize)]
struct JsonHead {
    seq: u64,
    chain: Digest,
}

#[derive(Serialize)]
struct JsonCheck<'c> {
    ok: bool,
    since: Option<u64>,
    defect: Option<&'c str>,
    head: JsonHead,
}

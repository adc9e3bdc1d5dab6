//! `runvault forget`

use std::io::{self, Write};

use anstyle::Style;
use chrono::Duration;
use clap::Args as ClapArgs;
use runvault::RemoveOptions;
use runvault::artifact::Kind;
use runvault::digest::CoreHash;
use runvault::retention::{Decision, Policy, Reason};
use serde::Serialize;

use super::escape::escaped;
use super::exit::{Failure, Status};
use super::fit::{self, Trail};
use super::output::{self, BAD, FAINT, GOOD, HASH, counted};
use super::vault::VaultArgs;
use super::{json, links, rm, time};

/// Remove artifacts by rules of what to keep.
///
/// An artifact is kept if any rule says so. Every kind counts for itself, and ages are counted from the newest artifact of
/// its kind. What is pinned is always kept, and so is what is in a pack that is kept. What something that is kept links to is
/// kept as well, unless --force. The rest is removed as by rm. Says of every artifact whether it is kept and why.
#[derive(ClapArgs)]
pub(crate) struct Args {
    /// Keep the newest N of each kind
    #[arg(long, value_name = "N")]
    keep_last: Option<usize>,

    /// Keep what was added within this time before the newest of its kind: 90m, 36h, 90d, 4w
    #[arg(long, value_name = "AGE", value_parser = time::length)]
    keep_within: Option<Duration>,

    /// Keep what has this tag; a * at the end stands for anything. May be given several times
    #[arg(long, value_name = "TAG")]
    keep_tag: Vec<String>,

    /// Only look at artifacts of this kind. May be given several times
    #[arg(long, value_name = "KIND", value_parser = kind)]
    kind: Vec<String>,

    /// Say what would be removed, and remove nothing
    #[arg(long)]
    dry_run: bool,

    /// Remove even what others link to; never what is pinned or in a pack that is kept
    #[arg(long)]
    force: bool,

    /// Why, in a sentence; tombstones say so. Default: the rules
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,

    /// Print one line of JSON for each artifact
    #[arg(long)]
    json: bool,
}

fn kind(text: &str) -> Result<String, String> {
    let names: Vec<&str> = runvault::kinds::ALL.into_iter().map(Kind::name).collect();
    if names.contains(&text) {
        Ok(text.to_owned())
    } else {
        Err(format!("a kind is one of {}", names.join(", ")))
    }
}

impl Args {
    pub(crate) fn run(&self, vault: &VaultArgs) -> Result<Status, Failure> {
        let policy = Policy {
            keep_last: self.keep_last,
            keep_within: self.keep_within,
            keep_tags: self.keep_tag.iter().map(|tag| tag.trim_start_matches('@').to_owned()).collect(),
            kinds: self.kind.clone(),
            ignores_links: self.force,
        };
        if !policy.keeps_something() {
            let message = "give a rule of what to keep: --keep-last, --keep-within or --keep-tag";
            return Err(Failure::Usage(message.to_owned()));
        }
        let vault = vault.open()?;
        let options = RemoveOptions {
            reason: Some(self.reason.clone().unwrap_or_else(|| self.rules())),
            ignores_links: self.force,
            with_containers: false,
            is_rehearsal: self.dry_run,
        };
        let forgetting = vault.forget(&policy, &options).map_err(rm::refusal)?;
        let mut out = io::BufWriter::new(output::text());
        for decision in &forgetting.decisions {
            if self.json {
                json::line(&mut out, &Line::of(decision))?;
            } else {
                print(&mut out, decision)?;
            }
        }
        out.flush()?;
        if !self.json {
            self.sum_up(&forgetting.decisions);
        }
        if let Some(erasure) = forgetting.removal.and_then(|removal| removal.erasure) {
            rm::warn_of_remnants(&erasure, vault.path());
        }
        Ok(Status::Done)
    }

    fn sum_up(&self, decisions: &[Decision]) {
        let leaving: Vec<&Decision> = decisions.iter().filter(|decision| !decision.is_kept()).collect();
        let size: u64 = leaving.iter().map(|decision| decision.size).sum();
        let kept = decisions.len() - leaving.len();
        let done = if self.dry_run { "to be removed" } else { "removed" };
        let leaving = counted(leaving.len() as u64, "artifact");
        output::note(&format!("{leaving} {done} ({}), {kept} kept", output::size(size)));
    }

    /// The rules as they were given.
    fn rules(&self) -> String {
        let last = self.keep_last.map(|last| format!("--keep-last {last}"));
        let within = self.keep_within.map(|within| format!("--keep-within {}", time::length_text(within)));
        let tags = self.keep_tag.iter().map(|tag| format!("--keep-tag {tag}"));
        let kinds = self.kind.iter().map(|kind| format!("--kind {kind}"));
        let rules: Vec<String> =
            ["forget".to_owned()].into_iter().chain(last).chain(within).chain(tags).chain(kinds).collect();
        rules.join(" ")
    }
}

fn print(out: &mut dyn Write, decision: &Decision) -> io::Result<()> {
    let Decision { artifact, size, reasons } = decision;
    let (style, word) = if decision.is_kept() { (GOOD, "keep") } else { (BAD, "remove") };
    let kind = escaped(&artifact.kind).to_string();
    let (core, at, size) = (artifact.core, time::shown(artifact.added_at), output::size(*size));
    let why: Vec<String> = reasons.iter().map(reason).collect();
    let why = escaped(&why.join(", ")).to_string();
    let colon = if why.is_empty() { "" } else { ":" };
    let begin = format!("{style}{word:<6}{style:#} {kind:<8} {HASH}{core:.12}{HASH:#}");
    let whole = format!("{begin} {FAINT}{at}{FAINT:#} {size}{colon}");
    let fits = output::width().is_none_or(|width| fit::width(&whole) <= width);
    // How large it is matters more than how old.
    let lead = if fits { whole } else { format!("{begin} {size}{colon}") };
    write!(out, "{lead}")?;
    Trail { taken: fit::width(&lead), below: BELOW, least: usize::MAX }.write(out, &why, Style::new())
}

/// Reasons that have no room beside a decision stand below it, under the kind.
const BELOW: usize = 7;

fn reason(reason: &Reason) -> String {
    match reason {
        Reason::Last => "last".to_owned(),
        Reason::Within => "within".to_owned(),
        Reason::Tag(name) => format!("tag {name}"),
        Reason::Pinned => "pinned".to_owned(),
        Reason::Contained(row) => format!("{} {:.12} has its bytes", row.kind, row.core),
        Reason::Linked(link) => format!("{} {} it", links::plain_target(&link.target), link.relation),
    }
}

#[derive(Serialize)]
struct Line<'d> {
    core_hash: CoreHash,
    kind: &'d str,
    added_at: String,
    size: u64,
    keep: bool,
    reasons: Vec<String>,
}

impl<'d> Line<'d> {
    fn of(decision: &'d Decision) -> Self {
        Self {
            core_hash: decision.artifact.core,
            kind: &decision.artifact.kind,
            added_at: time::exact(decision.artifact.added_at),
            size: decision.size,
            keep: decision.is_kept(),
            reasons: decision.reasons.iter().map(reason).collect(),
        }
    }
}

//! `runvault forget`

mod rules;

use std::io::{self, BufRead, IsTerminal, Write};

use anstyle::Style;
use clap::Args as ClapArgs;
use runvault::artifact::Kind;
use runvault::digest::CoreHash;
use runvault::vault::retention::{Decision, Group, Miss, Period, Plan, Policy, Reason, Share};
use runvault::{Forgetting, Vault};
use serde::Serialize;

use crate::cli::args::kind::kind;
use crate::cli::args::vault::VaultArgs;
use crate::cli::commands::links;
use crate::cli::commands::rm;
use crate::cli::output::escape::{brief, escaped};
use crate::cli::output::exit::{Failure, Status};
use crate::cli::output::fit::{self, Trail};
use crate::cli::output::json;
use crate::cli::output::stdout::{self, BAD, FAINT, GOOD, HASH, counted};
use crate::cli::output::time;

use rules::RuleArgs;

/// Apply a retention policy.
///
/// An artifact is kept if any rule matches it. Rules apply separately to each group; by default, each kind is one
/// group. Ages are counted from now. Hours, days, weeks (Monday to Sunday), months and years are in UTC. Pinned
/// artifacts and the members of kept packs are always kept. Artifacts that a kept artifact links to are kept unless
/// --force is given. All others are removed as by rm. The output gives the reason for each artifact. If more than half
/// of a kind would be removed, it asks for confirmation on a terminal; otherwise it removes nothing without --yes.
#[derive(ClapArgs)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag")]
pub(crate) struct Args {
    #[command(flatten)]
    rules: RuleArgs,

    /// Consider only artifacts of this kind. Can be repeated
    #[arg(long, value_name = "KIND", value_parser = kind)]
    kind: Vec<Kind>,

    /// Print what would be removed without removing anything
    #[arg(long)]
    dry_run: bool,

    /// Do not ask for confirmation, even if more than half of a kind would be removed
    #[arg(long)]
    yes: bool,

    /// Remove artifacts even if they are still referenced, but never if they are pinned or in a kept pack
    #[arg(long)]
    force: bool,

    /// The reason, recorded in the tombstones. Default: the rules
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,

    /// Print one line of JSON for each artifact
    #[arg(long)]
    json: bool,
}

impl Args {
    pub(crate) fn run(&self, vault: &VaultArgs) -> Result<Status, Failure> {
        let policy = Policy {
            kinds: self.kind.iter().map(|kind| kind.name().to_owned()).collect(),
            ignores_links: self.force,
            ..self.rules.policy()?
        };
        let vault = vault.open()?;
        time::warn_of_future(&vault)?;
        let plan = vault.plan_retention(policy)?;
        let large: Vec<Share> =
            plan.shares().into_iter().filter(|share| share.removed > share.total / 2).collect();
        let needs_consent = !self.dry_run && !self.yes && !large.is_empty();
        let can_ask = io::stdin().is_terminal() && io::stderr().is_terminal();
        if needs_consent && !can_ask {
            return Err(refusal(&large));
        }
        self.print(&plan)?;
        if self.dry_run {
            self.sum_up(&plan, None);
            return Ok(Status::Done);
        }
        if needs_consent && !is_allowed(&large)? {
            stdout::note("nothing was removed");
            return Ok(Status::No);
        }
        self.remove(&vault, &plan)
    }

    fn remove(&self, vault: &Vault, plan: &Plan) -> Result<Status, Failure> {
        let reason = self.reason.clone().unwrap_or_else(|| self.stated_rules());
        let forgetting = vault.forget(plan, Some(&reason)).map_err(rm::refusal)?;
        self.sum_up(plan, Some(&forgetting));
        if !forgetting.spared.is_empty() {
            let spared = counted(forgetting.spared.len() as u64, "artifact");
            stdout::note(&format!("{spared} kept: added again, tagged or linked to in the meantime"));
        }
        if let Some(erasure) = forgetting.removal.erasure {
            rm::warn_of_remnants(&erasure, vault);
        }
        Ok(Status::Done)
    }

    fn print(&self, plan: &Plan) -> Result<(), Failure> {
        let mut out = io::BufWriter::new(stdout::text());
        let mut group: Option<&Group> = None;
        for decision in &plan.decisions {
            if self.json {
                json::line(&mut out, &Line::new(decision, &plan.policy))?;
                continue;
            }
            if group != Some(&decision.group) && self.rules.has_own_groups() {
                stdout::line(&mut out, &format!("{FAINT}{}{FAINT:#}", group_text(&decision.group)))?;
            }
            group = Some(&decision.group);
            print(&mut out, decision, &plan.policy)?;
        }
        Ok(out.flush()?)
    }

    /// Prints how much was removed, or would be.
    fn sum_up(&self, plan: &Plan, done: Option<&Forgetting>) {
        if self.json {
            return;
        }
        let (count, size, did) = match done {
            Some(Forgetting { removal, .. }) => {
                let size = removal.removed.iter().map(runvault::vault::Removed::size).sum();
                (removal.removed.len(), size, "removed")
            }
            None => {
                (plan.removed().count(), plan.removed().map(|decision| decision.size).sum(), "to be removed")
            }
        };
        let kept = plan.decisions.len() - plan.removed().count();
        let kept = kept + done.map_or(0, |done| done.spared.len());
        let removed = counted(count as u64, "artifact");
        stdout::note(&format!("{removed} {did} ({}), {kept} kept", stdout::size(size)));
    }

    /// Returns the rules as given.
    fn stated_rules(&self) -> String {
        let kinds = self.kind.iter().map(|kind| format!("--kind {}", kind.name()));
        let rules: Vec<String> =
            ["forget".to_owned()].into_iter().chain(self.rules.descriptions()).chain(kinds).collect();
        rules.join(" ")
    }
}

fn share_text(Share { kind, removed, total }: &Share) -> String {
    format!("{removed} of {total} artifacts of kind {kind}")
}

fn refusal(large: &[Share]) -> Failure {
    let message = "more than half of a kind would be removed; --dry-run lists them, --yes removes them";
    Failure::Refused { message: message.to_owned(), because: large.iter().map(share_text).collect() }
}

/// Asks for confirmation of a large removal. Any answer except y and yes means no.
fn is_allowed(large: &[Share]) -> Result<bool, Failure> {
    let shares: Vec<String> = large.iter().map(|share| escaped(&share_text(share)).to_string()).collect();
    let mut err = anstream::stderr().lock();
    write!(err, "Remove {}? [y/N] ", shares.join(", ")).and_then(|()| err.flush())?;
    drop(err);
    let mut answer = String::new();
    let failed = |error| Failure::CouldNotRun(format!("cannot read the answer: {error}"));
    io::stdin().lock().read_line(&mut answer).map_err(failed)?;
    Ok(["y", "yes"].contains(&answer.trim().to_ascii_lowercase().as_str()))
}

/// Formats a group, such as `kind rpk, agent triage`. Names without values are omitted if others have one.
fn group_text(group: &Group) -> String {
    let key = |(name, values): &(String, Vec<String>)| {
        let values: Vec<String> = values.iter().map(|value| brief(value).to_string()).collect();
        (!values.is_empty()).then(|| format!("{name} {}", values.join(" ")))
    };
    let keys: Vec<String> = group.iter().filter_map(key).collect();
    match (keys.is_empty(), group.is_empty()) {
        (false, _) => keys.join(", "),
        (true, true) => "all artifacts".to_owned(),
        (true, false) => {
            let names: Vec<&str> = group.iter().map(|(name, _)| name.as_str()).collect();
            format!("no {}", names.join(", no "))
        }
    }
}

fn print(out: &mut dyn Write, decision: &Decision, policy: &Policy) -> io::Result<()> {
    let Decision { artifact, at, size, .. } = decision;
    let (style, word) = if decision.is_kept() { (GOOD, "keep") } else { (BAD, "remove") };
    let kind = escaped(&artifact.kind).to_string();
    let at = at.map_or_else(|| "undated".to_owned(), time::shown);
    let (core, size) = (artifact.core, stdout::size(*size));
    let why = escaped(&why(decision, policy).join(", ")).to_string();
    let begin = format!("{style}{word:<6}{style:#} {kind:<8} {HASH}{core:.12}{HASH:#}");
    let whole = format!("{begin} {FAINT}{at}{FAINT:#} {size}:");
    let fits = stdout::width().is_none_or(|width| fit::width(&whole) <= width);
    // The size matters more than the age, so the time is omitted first.
    let lead = if fits { whole } else { format!("{begin} {size}:") };
    write!(out, "{lead}")?;
    Trail { taken: fit::width(&lead), below: BELOW, least: usize::MAX }.write(out, &why, Style::new())
}

/// The indent of reasons that do not fit next to a decision: they are below it, under the kind.
const BELOW: usize = 7;

/// Returns the reasons that an artifact is kept, or that no rule keeps it.
fn why(decision: &Decision, policy: &Policy) -> Vec<String> {
    if decision.is_kept() {
        decision.reasons.iter().map(reason).collect()
    } else {
        decision.misses.iter().map(|because| miss(because, policy)).collect()
    }
}

fn reason(reason: &Reason) -> String {
    match reason {
        Reason::Last(count) => format!("last {count}"),
        Reason::Within(length) => format!("within {}", time::length_text(*length)),
        Reason::Newest(span) => format!("{} snapshot {span}", adjective(span.period())),
        Reason::Oldest(span) => format!("oldest {} snapshot {span}", adjective(span.period())),
        Reason::Tag { pattern, tag } if pattern.is_prefix() => format!("tag {pattern} ({tag})"),
        Reason::Tag { tag, .. } => format!("tag {tag}"),
        Reason::Pinned => "pinned".to_owned(),
        Reason::Undated => "states no creation time".to_owned(),
        Reason::Contained(row) => format!("contained in {} {:.12}", row.kind, row.core),
        Reason::Linked(link) => {
            format!("linked from {} ({})", links::plain_target(&link.target), link.relation)
        }
    }
}

fn miss(miss: &Miss, policy: &Policy) -> String {
    match miss {
        Miss::Last(count) => format!("not among the last {count}"),
        Miss::Within(length) => format!("not within {}", time::length_text(*length)),
        Miss::Superseded(span) => format!("not the {} snapshot {span}", adjective(span.period())),
        Miss::TooOld(period, count) => {
            format!(
                "not among the last {}",
                counted(*count as u64, &format!("{} snapshot", adjective(*period)))
            )
        }
        Miss::Tag => {
            let patterns: Vec<String> = policy.keep_tags.iter().map(ToString::to_string).collect();
            format!("no tag {}", patterns.join(" or "))
        }
    }
}

fn adjective(period: Period) -> &'static str {
    match period {
        Period::Hour => "hourly",
        Period::Day => "daily",
        Period::Week => "weekly",
        Period::Month => "monthly",
        Period::Year => "yearly",
    }
}

#[derive(Serialize)]
struct Line<'d> {
    core_hash: CoreHash,
    kind: &'d str,
    added_at: String,
    seen_at: String,
    by: &'static str,
    /// The time that is used.
    at: Option<String>,
    group: Vec<JsonKey<'d>>,
    size: u64,
    keep: bool,
    reasons: Vec<String>,
}

#[derive(Serialize)]
struct JsonKey<'d> {
    name: &'d str,
    values: &'d [String],
}

impl<'d> Line<'d> {
    fn new(decision: &'d Decision, policy: &Policy) -> Self {
        let Decision { artifact, group, at, size, .. } = decision;
        Self {
            core_hash: artifact.core,
            kind: &artifact.kind,
            added_at: time::exact(artifact.added_at),
            seen_at: time::exact(artifact.seen_at),
            by: time::basis_text(policy.by),
            at: at.map(time::exact),
            group: group.iter().map(|(name, values)| JsonKey { name, values }).collect(),
            size: *size,
            keep: decision.is_kept(),
            reasons: why(decision, policy),
        }
    }
}

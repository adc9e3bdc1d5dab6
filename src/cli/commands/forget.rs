//! `runvault forget`

use std::io::{self, BufRead, IsTerminal, Write};

use anstyle::Style;
use chrono::Duration;
use clap::Args as ClapArgs;
use runvault::artifact::Kind;
use runvault::display::{brief, escaped};
use runvault::storage::TimeBasis;
use runvault::vault::columns::IDENTIFYING_ATTRIBUTES;
use runvault::vault::forget::{ForgetPlan, ForgetRemoval, ForgetRequest, GroupValues, RetentionDecision};
use runvault::vault::retention::{
    GroupKey, Period, PeriodRule, Plan, Policy, Share, TagPattern, length_text,
};
use runvault::{Vault, formats};

use crate::cli::args::choice;
use crate::cli::args::completing::CandidateSource;
use crate::cli::args::inputs::kind;
use crate::cli::args::label::{self, LabelTest};
use crate::cli::args::vault::VaultArgs;
use crate::cli::commands::rm;
use crate::cli::output::exit::{CommandError, Status};
use crate::cli::output::fit::{self, TrailingLayout};
use crate::cli::output::stdout::{self, BAD, FAINT, GOOD, HASH, counted};
use crate::cli::output::{json, terminal, time};

/// Apply a retention policy
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
    #[arg(long, value_name = "KIND", value_parser = kind, add = CandidateSource::Kinds.completer())]
    kind: Vec<Kind>,

    /// Consider only artifacts with this label
    ///
    /// KEY=VALUE, or KEY for any value. Can be repeated.
    #[arg(long, value_name = "K=V", value_parser = label::test, add = CandidateSource::Labels.completer())]
    label: Vec<LabelTest>,

    /// Print what would be removed without removing anything
    #[arg(long)]
    dry_run: bool,

    /// Do not ask for confirmation, even if more than half of a kind would be removed
    #[arg(long, hide_short_help = true)]
    yes: bool,

    /// Remove artifacts even if they are still referenced, but never if they are pinned or in a kept pack
    #[arg(long, hide_short_help = true)]
    force: bool,

    /// The reason, recorded in the tombstones. Default: the rules
    #[arg(long, value_name = "TEXT", hide_short_help = true)]
    reason: Option<String>,

    /// Print one line of JSON for each artifact
    #[arg(long)]
    json: bool,
}

impl Args {
    pub(crate) fn run(&self, vault: &VaultArgs) -> Result<Status, CommandError> {
        let policy = Policy {
            kinds: self.kind.iter().map(|kind| kind.name().to_owned()).collect(),
            labels: self.label.iter().map(LabelTest::rule).collect(),
            ignore_links: self.force,
            ..self.rules.policy()?
        };
        if !self.dry_run {
            terminal::forbid();
        }
        let vault = vault.open()?;
        time::warn_of_future(&vault)?;
        let request = ForgetRequest { policy, ..ForgetRequest::default() };
        let plan = request.decide(&vault).map_err(rm::refusal)?;
        let shares = plan.shares();
        let large: Vec<&Share> = shares.iter().filter(|share| share.removed > share.total / 2).collect();
        let needs_consent = !self.dry_run && !self.yes && !large.is_empty();
        let can_ask = io::stdin().is_terminal() && io::stderr().is_terminal();
        if needs_consent && !can_ask {
            return Err(refusal(&large));
        }
        self.print(&plan)?;
        let removed = plan.removed().count();
        let kept = plan.decisions.len() - removed;
        let undated =
            plan.decisions.iter().filter(|decision| decision.is_kept() && decision.at.is_none()).count();
        if self.dry_run {
            let size = plan.removed().map(|decision| decision.size).sum();
            self.sum_up(removed, size, "to be removed", kept);
            self.note_undated(undated);
            return Ok(Status::Done);
        }
        if needs_consent && !is_allowed(&large)? {
            stdout::note("nothing was removed");
            return Ok(Status::No);
        }
        // The decisions on many artifacts take much memory.
        let planned = ForgetPlan::from(&plan);
        drop(plan);
        let status = self.remove(&vault, request.policy, planned, kept)?;
        self.note_undated(undated);
        Ok(status)
    }

    /// Removes what the printed plan removes, except what the policy keeps by now.
    fn remove(
        &self,
        vault: &Vault,
        policy: Policy,
        plan: ForgetPlan,
        kept: usize,
    ) -> Result<Status, CommandError> {
        let reason = self.reason.clone().unwrap_or_else(|| self.format_rules());
        let request = ForgetRequest { policy, plan: Some(plan), reason: Some(reason), dry_run: false };
        let current = request.decide(vault).map_err(rm::refusal)?;
        let ForgetRemoval { removed, size, spared, erasure } =
            request.remove(vault, &current).map_err(rm::refusal)?;
        self.sum_up(removed.len(), size, "removed", kept + spared.len());
        if !spared.is_empty() {
            let spared = counted(spared.len() as u64, "artifact");
            stdout::note(&format!(
                "{spared} kept: added again, tagged, labeled or linked to in the meantime"
            ));
        }
        if let Some(erasure) = erasure {
            rm::warn_of_remnants(&erasure, vault);
        }
        Ok(Status::Done)
    }

    fn print(&self, plan: &Plan) -> Result<(), CommandError> {
        let mut out = io::BufWriter::new(stdout::text());
        let mut group: Option<Vec<GroupValues>> = None;
        for decision in &plan.decisions {
            let decision = RetentionDecision::new(decision, &plan.policy);
            if self.json {
                json::line(&mut out, &decision)?;
                continue;
            }
            if group.as_ref() != Some(&decision.group) && self.rules.has_own_groups() {
                stdout::line(&mut out, &format!("{FAINT}{}{FAINT:#}", group_text(&decision.group)))?;
            }
            print(&mut out, &decision)?;
            group = Some(decision.group);
        }
        Ok(out.flush()?)
    }

    /// Prints how many artifacts of which size were removed, or would be, and how many are kept.
    fn sum_up(&self, count: usize, size: u64, did: &str, kept: usize) {
        if !self.json {
            let (removed, size) = (counted(count as u64, "artifact"), stdout::size(size));
            stdout::note(&format!("{removed} {did} ({size}), {kept} kept"));
        }
    }

    /// Prints how many artifacts are kept because they do not have the time that is used.
    fn note_undated(&self, undated: usize) {
        if !self.json && undated > 0 {
            let undated = counted(undated as u64, "artifact");
            stdout::note(&format!("{undated} kept as undated, without the time that the rules use"));
        }
    }

    /// Returns the rules as given.
    fn format_rules(&self) -> String {
        let kinds = self.kind.iter().map(|kind| format!("--kind {}", kind.name()));
        let labels = self.label.iter().map(|label| format!("--label {}", label.rule()));
        let rules = ["forget".to_owned()].into_iter().chain(self.rules.descriptions());
        rules.chain(kinds).chain(labels).collect::<Vec<_>>().join(" ")
    }
}

fn share_text(Share { kind, removed, total }: &Share) -> String {
    let plural = formats::named(kind).map_or("artifacts of an unknown kind", Kind::plural);
    format!("{removed} of {total} {plural}")
}

fn refusal(large: &[&Share]) -> CommandError {
    let message = "more than half of a kind would be removed; --dry-run lists them, --yes removes them";
    CommandError::Refused {
        message: message.to_owned(),
        because: large.iter().map(|share| share_text(share)).collect(),
    }
}

/// Asks for confirmation of a large removal. Any answer except y and yes means no.
fn is_allowed(large: &[&Share]) -> Result<bool, CommandError> {
    let shares: Vec<String> = large.iter().map(|share| escaped(&share_text(share)).to_string()).collect();
    let mut err = anstream::stderr().lock();
    write!(err, "Remove {}? [y/N] ", shares.join(", ")).and_then(|()| err.flush())?;
    drop(err);
    let mut answer = String::new();
    let failed = |error| CommandError::CouldNotRun(format!("cannot read the answer: {error}"));
    io::stdin().lock().read_line(&mut answer).map_err(failed)?;
    Ok(["y", "yes"].contains(&answer.trim().to_ascii_lowercase().as_str()))
}

/// Formats a group, such as `kind session, agent triage`. Names without values are omitted if others have one.
fn group_text(group: &[GroupValues]) -> String {
    let key = |GroupValues { name, values }: &GroupValues| {
        let text = |value: &String| {
            let text = if name == "kind" { formats::bare_noun(value) } else { value };
            brief(text).to_string()
        };
        let values: Vec<String> = values.iter().map(text).collect();
        (!values.is_empty()).then(|| format!("{name} {}", values.join(" ")))
    };
    let keys: Vec<String> = group.iter().filter_map(key).collect();
    match (keys.is_empty(), group.is_empty()) {
        (false, _) => keys.join(", "),
        (true, true) => "all artifacts".to_owned(),
        (true, false) => {
            let names: Vec<&str> = group.iter().map(|key| key.name.as_str()).collect();
            format!("no {}", names.join(", no "))
        }
    }
}

fn print(out: &mut dyn Write, decision: &RetentionDecision) -> io::Result<()> {
    let RetentionDecision { artifact, at, size, keep, reasons, .. } = decision;
    let (style, word) = if *keep { (GOOD, "keep") } else { (BAD, "remove") };
    let kind = escaped(formats::bare_noun(&artifact.kind)).to_string();
    let at = at.map_or_else(|| "undated".to_owned(), |at| time::shown(at.0));
    let (core, size) = (artifact.core_hash, stdout::size(*size));
    let why = escaped(&reasons.join(", ")).to_string();
    let begin = format!("{style}{word:<6}{style:#} {kind:<11} {HASH}{core:.12}{HASH:#}");
    // The size matters more than the age, so the time is omitted first.
    let leads = [format!("{begin} {FAINT}{at}{FAINT:#} {size}:"), format!("{begin} {size}:")];
    let fits = |lead: &String| terminal::width().is_none_or(|width| fit::width(lead) <= width);
    let lead = leads.into_iter().find(fits).unwrap_or_else(|| format!("{begin}:"));
    write!(out, "{lead}")?;
    TrailingLayout { used: fit::width(&lead), below: BELOW, least: usize::MAX }.write(out, &why, Style::new())
}

/// The indent of reasons that do not fit next to a decision: they are below it, under the kind.
const BELOW: usize = 7;

/// The word for an unlimited count, as in restic.
const UNLIMITED: &str = "unlimited";

/// The beginning of a group by the values of a label.
const LABEL: &str = "label:";

/// What to keep.
#[derive(ClapArgs)]
pub(super) struct RuleArgs {
    /// Keep the newest N of each group; 0 as the only rule keeps none
    #[arg(long, value_name = "N", value_parser = count)]
    keep_last: Option<usize>,

    /// Keep artifacts not older than this: 90m, 36h, 90d, 4w, 6M (months), 1y
    #[arg(long, value_name = "AGE", value_parser = time::length)]
    keep_within: Option<Duration>,

    /// Keep the newest of each of the last N hours that have artifacts
    #[arg(long, value_name = "N", value_parser = count, hide_short_help = true)]
    keep_hourly: Option<usize>,

    /// Keep the newest of each of the last N days that have artifacts
    ///
    /// While there are fewer than N, the oldest of all is kept too; the same applies to hours, weeks, months and
    /// years. N may be "unlimited".
    #[arg(long, value_name = "N", value_parser = count)]
    keep_daily: Option<usize>,

    /// The same for weeks, which begin on Monday
    #[arg(long, value_name = "N", value_parser = count)]
    keep_weekly: Option<usize>,

    /// The same for months
    #[arg(long, value_name = "N", value_parser = count)]
    keep_monthly: Option<usize>,

    /// The same for years
    #[arg(long, value_name = "N", value_parser = count, hide_short_help = true)]
    keep_yearly: Option<usize>,

    /// Keep artifacts with this tag; a trailing * matches any suffix. Can be repeated
    #[arg(long, value_name = "TAG", value_parser = tag, add = CandidateSource::Tags.completer())]
    keep_tag: Vec<TagPattern>,

    /// Keep artifacts with this label: KEY=VALUE or KEY
    ///
    /// KEY alone matches every value. Can be repeated.
    #[arg(long, value_name = "K=V", value_parser = label::test, add = CandidateSource::Labels.completer())]
    keep_label: Vec<LabelTest>,

    /// Which time is used. With "created" and "finished", artifacts that state no time are kept
    #[arg(long, value_name = "TIME", default_value = "last-seen", value_parser = choice::one_of(choice::TIMES), hide_short_help = true)]
    by: TimeBasis,

    /// What artifacts of a group have in common: kind, label, label:KEY, or attributes such as `model_id`, with commas
    /// between them; "" makes one group of all
    #[arg(long, value_name = "NAMES", value_delimiter = ',', value_parser = group, default_value = "kind", hide_short_help = true)]
    group_by: Vec<ForgetGrouping>,
}

/// A name of `--group-by`, with the keys that it stands for.
#[derive(Clone, Debug)]
struct ForgetGrouping {
    name: String,
    keys: Vec<GroupKey>,
}

fn count(text: &str) -> Result<usize, String> {
    if text == UNLIMITED {
        return Ok(usize::MAX);
    }
    text.parse().map_err(|_| format!("expected a number such as 7, or {UNLIMITED}"))
}

fn tag(text: &str) -> Result<TagPattern, String> {
    text.strip_prefix('@').unwrap_or(text).parse().map_err(|error| format!("{error}"))
}

fn group(text: &str) -> Result<ForgetGrouping, String> {
    let name = text.trim();
    let attribute = |name: &str| GroupKey::Attribute(name.to_owned());
    let keys = match (name, name.strip_prefix(LABEL)) {
        (_, Some(key)) => vec![GroupKey::Label(label::key(key)?)],
        ("", _) => Vec::new(),
        ("kind", _) => vec![GroupKey::Kind],
        // The attributes shown in the column of this name.
        ("label", _) => IDENTIFYING_ATTRIBUTES.map(attribute).to_vec(),
        _ if formats::attribute(name).is_some() => vec![attribute(name)],
        _ => {
            let (name, names) = (brief(name), formats::attribute_names());
            return Err(format!(
                "artifacts cannot be grouped by {name}; use kind, label, label:KEY, {names}"
            ));
        }
    };
    Ok(ForgetGrouping { name: name.to_owned(), keys })
}

impl RuleArgs {
    /// Returns the policy.
    pub(super) fn policy(&self) -> Result<Policy, CommandError> {
        let periods = self.periods().into_iter();
        let periods = periods.filter_map(|(period, count)| count.map(|count| PeriodRule { period, count }));
        let policy = Policy {
            keep_last: self.keep_last,
            keep_within: self.keep_within,
            keep_periods: periods.collect(),
            keep_tags: self.keep_tag.clone(),
            keep_labels: self.keep_label.iter().map(LabelTest::rule).collect(),
            by: self.by,
            group_by: self.keys()?,
            ..Policy::default()
        };
        if policy.keeps_something() {
            return Ok(policy);
        }
        let is_given = policy.keep_within.is_some() || !policy.keep_periods.is_empty();
        Err(CommandError::Usage(if is_given {
            "these rules keep nothing; if that is intended, use --keep-last 0".to_owned()
        } else {
            "give at least one rule: --keep-last, --keep-within, --keep-hourly, --keep-daily, --keep-weekly, \
             --keep-monthly, --keep-yearly, --keep-tag or --keep-label"
                .to_owned()
        }))
    }

    /// Returns whether artifacts are grouped by anything but their kind.
    pub(super) fn has_own_groups(&self) -> bool {
        !matches!(self.group_by.as_slice(), [only] if only.keys == [GroupKey::Kind])
    }

    fn periods(&self) -> [(Period, Option<usize>); 5] {
        [
            (Period::Hour, self.keep_hourly),
            (Period::Day, self.keep_daily),
            (Period::Week, self.keep_weekly),
            (Period::Month, self.keep_monthly),
            (Period::Year, self.keep_yearly),
        ]
    }

    fn keys(&self) -> Result<Vec<GroupKey>, CommandError> {
        if self.group_by.len() > 1 && self.group_by.iter().any(|grouping| grouping.keys.is_empty()) {
            return Err(CommandError::Usage("empty name in --group-by".to_owned()));
        }
        Ok(self.group_by.iter().flat_map(|grouping| grouping.keys.clone()).collect())
    }

    /// Returns the rules as given.
    pub(super) fn descriptions(&self) -> Vec<String> {
        let number =
            |count: usize| if count == usize::MAX { UNLIMITED.to_owned() } else { count.to_string() };
        let last = self.keep_last.map(|last| format!("--keep-last {}", number(last)));
        let within = self.keep_within.map(|within| format!("--keep-within {}", length_text(within)));
        let periods = self.periods().into_iter();
        let periods = periods
            .filter_map(|(period, count)| Some(format!("--keep-{} {}", period.adjective(), number(count?))));
        let tags = self.keep_tag.iter().map(|tag| format!("--keep-tag {tag}"));
        let labels = self.keep_label.iter().map(|label| format!("--keep-label {}", label.rule()));
        let by = (self.by != TimeBasis::LastSeen)
            .then(|| format!("--by {}", choice::name_of(choice::TIMES, &self.by)));
        let name = |grouping: &ForgetGrouping| match grouping.name.as_str() {
            "" => "''".to_owned(),
            name => name.to_owned(),
        };
        let names: Vec<String> = self.group_by.iter().map(name).collect();
        let groups = self.has_own_groups().then(|| format!("--group-by {}", names.join(",")));
        let rules = last.into_iter().chain(within).chain(periods).chain(tags).chain(labels);
        rules.chain(by).chain(groups).collect()
    }
}

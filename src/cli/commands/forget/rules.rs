//! Command-line arguments for retention rules.

use chrono::Duration;
use clap::Args;
use runvault::display::brief;
use runvault::formats;
use runvault::storage::TimeBasis;
use runvault::vault::columns::IDENTIFYING_ATTRIBUTES;
use runvault::vault::retention::{GroupKey, Period, PeriodRule, Policy, TagPattern, length_text};

use crate::cli::args::choice;
use crate::cli::args::completing::CandidateSource;
use crate::cli::args::label::{self, LabelTest};
use crate::cli::output::exit::CommandError;
use crate::cli::output::time;

/// The word for an unlimited count, as in restic.
const UNLIMITED: &str = "unlimited";

/// The beginning of a group by the values of a label.
const LABEL: &str = "label:";

/// What to keep.
#[derive(Args)]
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

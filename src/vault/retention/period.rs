//! Calendar periods, in UTC.

use std::collections::BTreeSet;
use std::fmt;

use chrono::{DateTime, Datelike, Utc};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A type of calendar period, in UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
#[schema(as = CalendarPeriod)]
pub enum Period {
    /// A full hour.
    Hour,
    /// A day, from midnight to midnight.
    Day,
    /// An ISO 8601 week, from Monday to Sunday.
    Week,
    /// A calendar month.
    Month,
    /// A calendar year.
    Year,
}

/// A particular calendar period, such as one day. Displays as `2026-11-20 15:00`, `2026-11-20`, `2026-W47`, `2026-11`
/// or `2026`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetentionSpan {
    period: Period,
    /// A time within it.
    time: DateTime<Utc>,
}

/// The result of a period rule for an artifact.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PeriodRuleResult {
    /// It is the newest of this span and kept.
    Newest(RetentionSpan),
    /// It is the oldest artifact, and kept because there are fewer spans than the rule keeps.
    Oldest(RetentionSpan),
    /// A newer artifact of this span is kept.
    Superseded(RetentionSpan),
    /// Its span is before those that are kept.
    TooOld,
}

impl Period {
    /// Returns the adjective, such as `daily`.
    #[must_use]
    pub fn adjective(self) -> &'static str {
        match self {
            Self::Hour => "hourly",
            Self::Day => "daily",
            Self::Week => "weekly",
            Self::Month => "monthly",
            Self::Year => "yearly",
        }
    }

    /// Returns the span that contains `time`.
    #[must_use]
    pub fn span(self, time: DateTime<Utc>) -> RetentionSpan {
        RetentionSpan { period: self, time }
    }

    /// Applies the rule that keeps the newest artifact of each of the last `count` non-empty spans. `times` are newest
    /// first. The oldest artifact is also kept while there are fewer spans: later ones are counted from it.
    pub(super) fn choose(self, times: &[DateTime<Utc>], count: usize) -> Vec<PeriodRuleResult> {
        let spans: BTreeSet<(i64, i64)> = times.iter().map(|time| self.span(*time).key()).collect();
        let is_short = spans.len() < count;
        let mut open: BTreeSet<(i64, i64)> = spans.into_iter().rev().take(count).collect();
        let kept = open.clone();
        let choice = |(position, time): (usize, &DateTime<Utc>)| {
            let span = self.span(*time);
            match span.key() {
                key if open.remove(&key) => PeriodRuleResult::Newest(span),
                _ if is_short && position + 1 == times.len() => PeriodRuleResult::Oldest(span),
                key if kept.contains(&key) => PeriodRuleResult::Superseded(span),
                _ => PeriodRuleResult::TooOld,
            }
        };
        times.iter().enumerate().map(choice).collect()
    }
}

impl RetentionSpan {
    /// Returns the type of period.
    #[must_use]
    pub fn period(self) -> Period {
        self.period
    }

    /// Returns a key that orders the spans of a period type, and is equal for all times of one span.
    fn key(self) -> (i64, i64) {
        const HOUR_SECONDS: i64 = 3600;
        let time = self.time;
        match self.period {
            Period::Hour => (time.timestamp().div_euclid(HOUR_SECONDS), 0),
            Period::Day => (time.num_days_from_ce().into(), 0),
            Period::Week => (time.iso_week().year().into(), time.iso_week().week().into()),
            Period::Month => (time.year().into(), time.month().into()),
            Period::Year => (time.year().into(), 0),
        }
    }
}

impl fmt::Display for RetentionSpan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let format = match self.period {
            Period::Hour => "%Y-%m-%d %H:00",
            Period::Day => "%Y-%m-%d",
            Period::Week => "%G-W%V",
            Period::Month => "%Y-%m",
            Period::Year => "%Y",
        };
        write!(f, "{}", self.time.format(format))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn times(texts: &[&str]) -> Vec<DateTime<Utc>> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    fn kept_periods(period: Period, texts: &[&str], count: usize) -> Vec<String> {
        let choices = period.choose(&times(texts), count).into_iter();
        let kept = choices.filter_map(|choice| match choice {
            PeriodRuleResult::Newest(span) => Some(span.to_string()),
            PeriodRuleResult::Oldest(span) => Some(format!("oldest {span}")),
            _ => None,
        });
        kept.collect()
    }

    #[test]
    fn periods_begin_at_midnight_utc_on_mondays_and_on_firsts() {
        let newest_first = [
            "2027-01-04T00:00:00Z",
            "2027-01-03T23:59:59Z",
            "2027-01-01T00:00:00Z",
            "2026-12-31T23:59:59.999Z",
            "2026-12-31T23:00:00Z",
            "2026-12-31T22:59:59Z",
            "2026-12-28T00:00:00Z",
            "2026-12-27T23:59:59Z",
        ];
        assert_eq!(
            kept_periods(Period::Hour, &newest_first[2..], 3),
            ["2027-01-01 00:00", "2026-12-31 23:00", "2026-12-31 22:00"]
        );
        assert_eq!(kept_periods(Period::Day, &newest_first, 3), ["2027-01-04", "2027-01-03", "2027-01-01"]);
        assert_eq!(kept_periods(Period::Week, &newest_first, 3), ["2027-W01", "2026-W53", "2026-W52"]);
        assert_eq!(kept_periods(Period::Month, &newest_first, 2), ["2027-01", "2026-12"]);
        assert_eq!(kept_periods(Period::Year, &newest_first, 2), ["2027", "2026"]);
    }

    #[test]
    fn the_oldest_is_kept_until_there_are_enough() {
        let days =
            ["2026-11-03T10:00:00Z", "2026-11-03T09:00:00Z", "2026-11-02T08:00:00Z", "2026-11-02T07:00:00Z"];
        assert_eq!(kept_periods(Period::Day, &days, 0), [""; 0]);
        assert_eq!(kept_periods(Period::Day, &days, 1), ["2026-11-03"]);
        assert_eq!(kept_periods(Period::Day, &days, 2), ["2026-11-03", "2026-11-02"]);
        assert_eq!(kept_periods(Period::Day, &days, 3), ["2026-11-03", "2026-11-02", "oldest 2026-11-02"]);
        assert_eq!(kept_periods(Period::Day, &days[..1], usize::MAX), ["2026-11-03"]);
        assert_eq!(kept_periods(Period::Day, &[], 3), [""; 0]);
    }

    proptest! {
        #[test]
        fn the_newest_of_each_of_the_last_spans_is_kept(
            seconds in prop::collection::vec(-100_000_000_000..250_000_000_000_i64, 0..40),
            count in 0..10_usize,
        ) {
            let mut times: Vec<DateTime<Utc>> =
                seconds.iter().map(|seconds| DateTime::from_timestamp(*seconds, 0).unwrap()).collect();
            times.sort_unstable_by(|one, other| other.cmp(one));
            for period in [Period::Hour, Period::Day, Period::Week, Period::Month, Period::Year] {
                let mut spans: Vec<String> = times.iter().map(|time| period.span(*time).to_string()).collect();
                spans.dedup();
                spans.truncate(count);
                let choices = period.choose(&times, count);
                let newest = choices.iter().filter_map(|choice| match choice {
                    PeriodRuleResult::Newest(span) => Some(span.to_string()),
                    _ => None,
                });
                prop_assert_eq!(newest.collect::<Vec<_>>(), spans);
            }
        }
    }
}

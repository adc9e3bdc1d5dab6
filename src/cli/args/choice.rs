//! Arguments that are one of a few values of the library, and groupings of runs.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use runvault::artifact::AttributeInfo;
use runvault::formats;
use runvault::storage::TimeBasis;
use runvault::vault::run_stats::RunGrouping;

use super::label;

/// A value with its name in arguments, and its description in `--help`.
pub(crate) type Choice<T> = (&'static str, T, &'static str);

/// Returns the parser of one of these values, for clap.
pub(crate) fn one_of<T: Clone + Send + Sync + 'static>(
    choices: &'static [Choice<T>],
) -> impl TypedValueParser<Value = T> {
    let values = choices.iter().map(|(name, _, about)| PossibleValue::new(*name).help(*about));
    PossibleValuesParser::new(values)
        .try_map(move |given| named(choices, &given).ok_or("clap checks the name before the value is read"))
}

/// Returns the value with this name.
pub(crate) fn named<T: Clone>(choices: &[Choice<T>], given: &str) -> Option<T> {
    choices.iter().find(|(name, ..)| *name == given).map(|(_, value, _)| value.clone())
}

/// Returns the name of a value.
pub(crate) fn name_of<T: PartialEq>(choices: &[Choice<T>], value: &T) -> &'static str {
    choices.iter().find(|(_, known, _)| known == value).map_or("", |(name, ..)| name)
}

/// The times of artifacts that can count.
pub(crate) const TIMES: &[Choice<TimeBasis>] = &[
    ("first-seen", TimeBasis::FirstSeen, "First added"),
    ("last-seen", TimeBasis::LastSeen, "Last added or seen again"),
    ("created", TimeBasis::Created, "Creation time as stated by the artifact, where it states one"),
    ("finished", TimeBasis::Finished, "Time of the end as stated by the artifact, where it states one"),
];

/// What runs are grouped by, as it was given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RunGroupingArg {
    /// The text, which is the title of the column of its values.
    pub(crate) text: String,
    pub(crate) grouping: RunGrouping,
}

/// The forms of the argument, for messages.
pub(crate) const RUN_GROUPINGS: &str = "model, tool, agent, day, label:KEY, or an attribute such as provider";

/// Parses `day`, `label:KEY`, `model` or the name of an attribute, for clap.
pub(crate) fn run_grouping(text: &str) -> Result<RunGroupingArg, String> {
    let grouping = match text {
        "day" => RunGrouping::Day,
        "model" => RunGrouping::Attribute { name: AttributeInfo::MODEL_ID.name.to_owned() },
        _ => match text.strip_prefix("label:") {
            Some(key) => RunGrouping::Label { key: label::key(key)? },
            // Nearly every run has another number or time.
            None => match formats::attribute(text).filter(|info| !info.values.is_ordered()) {
                Some(info) => RunGrouping::Attribute { name: info.name.to_owned() },
                None => return Err(format!("expected {RUN_GROUPINGS}")),
            },
        },
    };
    Ok(RunGroupingArg { text: text.to_owned(), grouping })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_grouped_by_attributes_labels_and_days() {
        let grouping = |text: &str| run_grouping(text).map(|parsed| parsed.grouping);
        let attribute = |name: &str| Ok(RunGrouping::Attribute { name: name.to_owned() });
        assert_eq!(grouping("model"), attribute("model_id"));
        assert_eq!(grouping("tool"), attribute("tool"));
        assert_eq!(grouping("provider"), attribute("provider"));
        assert_eq!(grouping("day"), Ok(RunGrouping::Day));
        assert_eq!(grouping("label:env"), Ok(RunGrouping::Label { key: "env".to_owned() }));
        for wrong in ["", "label", "label:", "label:a b", "tokens", "created", "modle"] {
            assert!(grouping(wrong).is_err(), "{wrong}");
        }
    }
}

//! Groupings of runs as arguments.

use runvault::artifact::AttributeInfo;
use runvault::formats;
use runvault::vault::run_stats::RunGrouping;

use crate::cli::args::label;

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

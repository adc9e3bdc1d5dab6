//! Arguments that are one of a few values of the library.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use runvault::storage::TimeBasis;

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

//! The line about a run below its heading: how many errors it had, the model, and what it took.

use std::io::{self, Write};

use runvault::artifact::AttributeInfo;
use runvault::display::brief;
use runvault::vault::view::ViewAnswer;

use crate::cli::output::stdout::{BAD, counted};
use crate::cli::output::{fit, terminal, time};

/// Prints the line, if the artifact states a model or a duration.
pub(super) fn print(out: &mut dyn Write, answer: &ViewAnswer) -> io::Result<()> {
    let values = |info: AttributeInfo| {
        let named = answer.attributes.iter().filter(move |attribute| attribute.name == info.name);
        named.map(|attribute| attribute.value.as_str())
    };
    let number = |info: AttributeInfo| values(info).filter_map(|value| info.values.number(value)).max();
    let count = |info: AttributeInfo| number(info).and_then(|number| u64::try_from(number).ok());
    let (models, duration) = (values(AttributeInfo::MODEL_ID), number(AttributeInfo::DURATION_MS));
    let mut facts: Vec<String> = models.map(|model| brief(model).to_string()).collect();
    if facts.is_empty() && duration.is_none() {
        return Ok(());
    }
    facts.extend(duration.map(time::duration));
    facts.extend(count(AttributeInfo::TOKENS).map(|tokens| counted(tokens, "token")));
    facts.push(counted(answer.total, &answer.step_noun));
    facts.extend(values(AttributeInfo::COST_USD).map(|cost| format!("{} USD", brief(cost))));
    let errors = count(AttributeInfo::ERRORS).filter(|errors| *errors > 0);
    let errors = errors.map(|errors| format!("{BAD}{}{BAD:#}", counted(errors, "error")));
    let text = errors.into_iter().chain(facts).collect::<Vec<_>>().join(", ");
    let room = terminal::width().map_or(usize::MAX, |width| width.saturating_sub(2));
    fit::fold(&text, room).iter().try_for_each(|line| writeln!(out, "  {line}"))
}

//! The number of runs of a list, and their most frequent values, each of which leads to the list of the runs that have it.

use maud::{Markup, html};

use crate::artifact::AttributeInfo;
use crate::display::{brief, counted};
use crate::server::text::{line, number};
use crate::server::visit::{PageError, PageRequest};
use crate::vault::facets::{FacetsAnswer, FacetsRequest, RunCounts, RunValueCount};
use crate::vault::find::ArtifactFilter;

/// Maximum number of values of a property.
const VALUES: usize = 8;

/// Number of recordings up to which runs are counted with the list. More are counted by a request of their own, which the
/// script of the page makes.
const MAX_RECORDINGS: u64 = 2_000;

/// The properties: title, field of the form, and name of the attribute.
const PROPERTIES: [(&str, &str, &str); 3] = [
    ("Model", "model", AttributeInfo::MODEL_ID.name),
    ("Agent", "agent", "agent"),
    ("Tool", "tool", AttributeInfo::TOOL.name),
];

/// The list whose runs are counted.
pub(super) struct FacetedList<'l> {
    pub(super) filter: &'l ArtifactFilter,
    /// Whether runs are counted however many recordings match.
    pub(super) is_requested: bool,
    /// Returns the value of a field of its form.
    pub(super) chosen: &'l dyn Fn(&str) -> &'l str,
    /// Returns the address of the same list with another value of a field.
    pub(super) address: &'l dyn Fn(&'static str, Option<&str>) -> String,
}

impl FacetedList<'_> {
    /// Shows the number of runs and their most frequent values.
    pub(super) fn facets(&self, visit: &PageRequest<'_>) -> Result<Markup, PageError> {
        let answer = visit.run(&FacetsRequest {
            filter: self.filter.clone(),
            attributes: PROPERTIES.iter().map(|(_, _, name)| (*name).to_owned()).collect(),
            // One more shows whether there are others.
            limit: Some(VALUES as u64 + 1),
            max_recordings: (!self.is_requested).then_some(MAX_RECORDINGS),
        })?;
        let FacetsAnswer { recordings, counts } = answer;
        let Some(counts) = counts else {
            return Ok(html! {
                p.facets {
                    (counted(recordings, "recording")) ". "
                    a.load href=((self.address)("facets", Some("yes"))) {
                        "Count runs by model, agent, tool, status and label"
                    }
                }
            });
        };
        Ok(html! { section.facets aria-label="Counts" { (self.shown(&counts)) } })
    }

    fn shown(&self, counts: &RunCounts) -> Markup {
        let state = |value: &str, runs: u64| (value.to_owned(), runs);
        let states = [state("yes", counts.failures), state("no", counts.successes)];
        let state_name = |value: &str| if value == "yes" { "with errors" } else { "without errors" };
        let label = |count: &RunValueCount| (format!("{}={}", count.name, count.value), count.runs);
        let value = |count: &RunValueCount| (count.value.clone(), count.runs);
        html! {
            p { strong { (counted(counts.runs, "run")) } }
            @if counts.runs > 0 {
                dl {
                    (self.values("Status", "errors", &states, &|value| html! { (state_name(value)) }))
                    @for (title, field, name) in PROPERTIES {
                        @let values: Vec<_> =
                            counts.attributes.iter().filter(|count| count.name == name).map(value).collect();
                        (self.values(title, field, &values, &|value| html! { (line(value)) }))
                    }
                    @let labels: Vec<_> = counts.labels.iter().map(label).collect();
                    (self.values("Label", "label", &labels, &|value| html! { (line(value)) }))
                }
            }
        }
    }

    /// Shows the values of a property, each with its number of runs.
    fn values(
        &self,
        title: &str,
        field: &'static str,
        values: &[(String, u64)],
        shown: &dyn Fn(&str) -> Markup,
    ) -> Markup {
        let chosen = (self.chosen)(field);
        let values: Vec<&(String, u64)> = values.iter().filter(|(_, runs)| *runs > 0).collect();
        html! {
            @if !values.is_empty() {
                div {
                    dt { (title) }
                    dd {
                        @for (value, runs) in values.iter().take(VALUES) {
                            @let is_chosen = chosen == value;
                            a.facet href=((self.address)(field, (!is_chosen).then_some(value)))
                                aria-current=[is_chosen.then_some("true")]
                                title=[is_chosen.then(|| format!("all but {} too", brief(value)))] {
                                (shown(value)) " " span.faint { (number(*runs)) }
                            }
                            " "
                        }
                        @if values.len() > VALUES { span.faint { "and others" } }
                    }
                }
            }
        }
    }
}

//! Parts that several pages show: links to artifacts, with the ids of the runs that they record and what was asked first,
//! charts and other small elements.

use std::collections::HashMap;

use chrono::{DateTime, NaiveDate};
use maud::{Markup, Render, html};

use crate::artifact::{AttributeInfo, Kind, ValueType};
use crate::digest::CoreHash;
use crate::display::{self, brief};
use crate::formats;
use crate::server::address;
use crate::server::frame::{line, long_line, number, time};
use crate::server::visit::{PageError, PageRequest};
use crate::vault::api::{ArtifactSummary, SignatureName};
use crate::vault::columns::{ArtifactColumn, ColumnContext, ColumnForm, ColumnValue};
use crate::vault::details::{AttributeSummary, RUN_IDS};
use crate::vault::find::ArtifactMatch;
use crate::vault::links::{Direction, LinkEnd};
use crate::vault::list::{ListRequest, ListRow};
use crate::vault::view::{StepClass, ViewAnswer, ViewStep};

/// Returns the first digits of a core hash as a link to its artifact.
pub(super) fn hash(core: CoreHash) -> Markup {
    html! { a.hash href=(address::artifact(core)) { (format!("{core:.12}")) } }
}

/// Returns an artifact as a link with the id of its run, if it is known, and its hash.
pub(super) fn named(core: CoreHash, run_id: Option<&str>) -> Markup {
    html! {
        @match run_id {
            Some(id) => {
                a.hash href=(address::artifact(core)) { (line(id)) }
                " " span.faint.hash { (format!("{core:.12}")) }
            },
            None => (hash(core)),
        }
    }
}

/// Returns the id of the run that an artifact with these attributes records, if it states one.
pub(super) fn run_id(attributes: &[AttributeSummary]) -> Option<&str> {
    let id = attributes.iter().find(|attribute| RUN_IDS.contains(&attribute.name.as_str()));
    id.map(|id| id.value.as_str())
}

/// Returns an artifact as a link, with its kind, the id of its run and its models.
pub(super) fn run_of_view(answer: &ViewAnswer) -> Markup {
    let models = answer.attributes.iter().filter(|one| one.name == AttributeInfo::MODEL_ID.name);
    html! {
        (kind(&answer.artifact.kind)) " " (named(answer.artifact.core_hash, run_id(&answer.attributes)))
        @for model in models.take(MAX_MODELS) { " " span.faint { (line(&model.value)) } }
    }
}

/// Returns a label as a link to the runs that have it.
pub(super) fn label(key: &str, value: &str) -> Markup {
    html! { a.tag href=(address::label(key, value)) { (line(key)) "=" (line(value)) } }
}

/// Returns the noun of a kind as a label.
pub(super) fn kind(name: &str) -> Markup {
    html! { span.kind { (line(formats::bare_noun(name))) } }
}

/// Returns the name of a relation as it is read from the artifact: `→ contains`, or `← contains` for incoming links.
pub(super) fn relation(direction: Direction, relation: &str) -> Markup {
    let (arrow, name) = match direction {
        Direction::Out => ("→", "from this artifact"),
        Direction::In => ("←", "to this artifact"),
    };
    html! { span title=(name) { (arrow) } span.hidden { " " (name) } " " (line(relation)) }
}

/// Returns the state of a signature in words.
pub(super) fn signature(state: SignatureName, key_id: Option<&str>) -> Markup {
    let (class, text) = match state {
        SignatureName::Verified => ("good", "signature verified at admission"),
        SignatureName::Unsigned => ("faint", "not signed"),
        SignatureName::Unchecked => ("caution", "signed; not checked at admission"),
        SignatureName::Wrong => ("bad", "wrong signature"),
    };
    html! {
        span class=(class) { (text) }
        @if let Some(key_id) = key_id { " (key " (line(key_id)) ")" }
    }
}

/// Returns whether an artifact of this kind can have signatures.
pub(super) fn can_be_signed(kind: &str) -> bool {
    formats::named(kind).is_some_and(|kind| kind.info().can_be_signed)
}

/// Maximum number of models that are named of a run.
pub(super) const MAX_MODELS: usize = 3;

/// Maximum number of texts in a cell.
const TEXTS: usize = 3;

/// Returns a table of these columns, each with its heading.
pub(super) fn table(label: &str, columns: &[(impl Render, ArtifactColumn)], rows: &Markup) -> Markup {
    html! {
        div.scroll tabindex="0" role="region" aria-label=(label) {
            table {
                thead { tr { @for (heading, column) in columns { th class=[alignment(*column)] { (heading) } } } }
                tbody { (rows) }
            }
        }
    }
}

/// Returns the class of the cells of a column that are not aligned to the left.
pub(super) fn alignment(column: ArtifactColumn) -> Option<&'static str> {
    (column.form() == ColumnForm::Number).then_some("right")
}

/// Returns the value of a column.
pub(super) fn value(context: &ColumnContext<'_>, column: ArtifactColumn) -> Markup {
    match context.value(column) {
        ColumnValue::Hash(core) => hash(core),
        ColumnValue::Kinds(kinds) => html! { @for name in kinds { (kind(name)) } },
        ColumnValue::Time(at) => html! { @if let Some(at) = at { (time(at)) } },
        ColumnValue::Age { since: Some(since), .. } => time(since),
        ColumnValue::Age { since: None, added, .. } => {
            html! { span.faint title="when it was added" { "added " (time(added)) } }
        }
        ColumnValue::Size(bytes) => html! { (display::size(bytes)) },
        ColumnValue::Count(count) => html! { (number(count)) },
        ColumnValue::Number(info, value) => {
            html! { @if let Some(value) = value { (attribute_number(info, value)) } }
        }
        ColumnValue::Texts(texts) => {
            let more = texts.len().saturating_sub(TEXTS);
            html! {
                @for (index, text) in texts.iter().take(TEXTS).enumerate() { @if index > 0 { ", " } (line(text)) }
                @if more > 0 { " and " (more) " more" }
            }
        }
        ColumnValue::Tags(tags) => html! { @for tag in tags { span.tag { "@" (line(tag)) } " " } },
        ColumnValue::Labels(labels) => html! { @for (key, value) in labels { (label(key, value)) " " } },
        ColumnValue::Matches(matches) => html! {
            @for (index, one) in matches.iter().enumerate() {
                @if index > 0 { ", " }
                (matched(context.artifact, one))
            }
        },
    }
}

/// Returns the value of an attribute as people write it.
pub(super) fn attribute_value(info: AttributeInfo, value: &str) -> Markup {
    let number = info.values.number(value);
    number.map_or_else(|| html! { (line(value)) }, |number| attribute_number(info, number))
}

/// Returns a number of an attribute as people write it.
fn attribute_number(info: AttributeInfo, value: i64) -> Markup {
    let text = match (info.values, u64::try_from(value)) {
        (ValueType::Time, _) => {
            return html! { @if let Some(at) = DateTime::from_timestamp_millis(value) { (time(at)) } };
        }
        (ValueType::Duration, _) => display::duration(value),
        (ValueType::Count, Ok(count)) => number(count),
        _ => info.values.value(value).unwrap_or_default(),
    };
    html! { (text) }
}

/// Returns why an artifact was found.
fn matched(artifact: &ArtifactSummary, found: &ArtifactMatch) -> Markup {
    match found {
        ArtifactMatch::Mention { role, place, .. } => {
            html! { (line(role)) " at " (place_in(artifact.core_hash, &artifact.kind, &place.to_string())) }
        }
        ArtifactMatch::Hash { .. } => html! { "has this hash" },
        ArtifactMatch::Attribute { name, value } => html! { (line(name)) " " (line(value)) },
        ArtifactMatch::Signature { signature: state, key_id, .. } => signature(*state, key_id.as_deref()),
        ArtifactMatch::Note { note } => html! { "note " (line(note)) },
        ArtifactMatch::Tag { tag } => html! { "@" (line(tag)) },
        ArtifactMatch::Pinned { .. } => html! { "pinned" },
        ArtifactMatch::Label { key, value } => html! { "label " (line(key)) "=" (line(value)) },
    }
}

/// Returns a definition list of the rows that have a value.
pub(super) fn fields(rows: &[(&str, Option<Markup>)]) -> Markup {
    html! {
        dl {
            @for (name, value) in rows {
                @if let Some(value) = value {
                    div { dt { (name) } dd { (value) } }
                }
            }
        }
    }
}

/// Returns the name of a class in the style sheet.
pub(super) fn step_class(step: &ViewStep) -> &'static str {
    match step.class {
        StepClass::Model => "model",
        StepClass::Tool => "tool",
        _ => "other",
    }
}

/// Returns whether steps took place one after the other, unlike the terms of a contract and the files of a pack.
pub(super) fn are_events(steps: &[ViewStep]) -> bool {
    steps.iter().any(|step| !matches!(step.class, StepClass::Term | StepClass::Member | StepClass::Content))
}

/// Names the steps or calls of a page, with their number if they are not all that match.
pub(super) fn page_noun(answer: &ViewAnswer) -> String {
    let ViewAnswer { conversation, steps, step_noun, matching, .. } = answer;
    let shown = conversation.as_ref().map_or(steps.len(), |conversation| conversation.calls.len()) as u64;
    if shown == *matching {
        return format!("{step_noun}s");
    }
    let first = if answer.previous.is_none() && answer.next.is_some() { "the first " } else { "" };
    format!("{first}{} of {} {step_noun}s", number(shown), number(*matching))
}

/// Formats a duration in milliseconds.
pub(super) fn duration(milliseconds: u64) -> String {
    display::duration(i64::try_from(milliseconds).unwrap_or(i64::MAX))
}

/// Describes a step in a drawing.
pub(super) fn step_label(step: &ViewStep) -> String {
    let mut label = format!("{} {}", step.index, step.step_type);
    label.extend(step.title.iter().map(|title| format!(" {title}")));
    label.extend(step.duration_ms.map(|took| format!(", {}", duration(took))));
    label.push_str(if step.failed { ", failed" } else { "" });
    brief(&label).to_string()
}

/// Returns a location in an artifact; as a link if it is in one of its steps or files.
pub(super) fn place_in(core: CoreHash, kind: &str, place: &str) -> Markup {
    let known = formats::named(kind);
    let step = known.and_then(|kind| kind.step_at(place)).map(|index| address::step(core, index));
    let file = || file_anchor(kind, place.split(' ').next().unwrap_or_default());
    let further = || Some(further_anchor(known?, known?.further_step_at(place)?));
    let address = step.or_else(|| Some(format!("{}#{}", address::artifact(core), further().or_else(file)?)));
    html! {
        @match address {
            Some(address) => a href=(address) { (line(place)) },
            None => (line(place)),
        }
    }
}

/// Returns the anchor of a step by its number among those of its type, if it has one. It is not known on a page that begins
/// among them.
pub(super) fn anchor_in_type(answer: &ViewAnswer, step: &ViewStep) -> Option<String> {
    let kind = formats::named(&answer.artifact.kind)?;
    let is_further = |step: &&ViewStep| Some(step.step_type.as_str()) == kind.further_step_type();
    let first = answer.steps.iter().find(is_further).filter(|_| is_further(&step))?.index;
    let is_first_known = first == 0 || answer.steps.iter().any(|before| before.index + 1 == first);
    is_first_known.then(|| further_anchor(kind, step.index - first))
}

fn further_anchor(kind: Kind, number: u64) -> String {
    format!("{}-{number}", kind.further_step_type().unwrap_or_default())
}

/// Returns the anchor of a file on the page of its artifact, if artifacts of this kind have files with names.
pub(super) fn file_anchor(kind: &str, name: &str) -> Option<String> {
    let members = formats::named(kind).filter(|kind| kind.is_of_directories())?.members();
    members.contains(&name).then(|| format!("file-{name}"))
}

/// A bar of a chart.
pub(super) struct Bar {
    pub(super) value: u64,
    /// The part of the value that is drawn as failures.
    pub(super) failures: u64,
    /// The text of the bar: its category and its value.
    pub(super) label: String,
    pub(super) address: Option<String>,
}

impl Bar {
    /// Creates the bar of a day, which leads to the address that `address` makes of its date and the next one. `shown` is its
    /// value for people.
    pub(super) fn of_day(
        date: NaiveDate,
        value: u64,
        shown: &str,
        address: impl Fn(&str, &str) -> String,
    ) -> Self {
        let (since, until) = (date.to_string(), date.succ_opt().unwrap_or(date).to_string());
        let label = format!("{date}: {shown}");
        Self { value, failures: 0, label, address: (value > 0).then(|| address(&since, &until)) }
    }

    /// Draws this part of the value as failures.
    pub(super) fn with_failures(self, failures: u64) -> Self {
        let more = if failures > 0 { format!(", {} failed", number(failures)) } else { String::new() };
        Self { failures: failures.min(self.value), label: self.label + &more, ..self }
    }
}

/// The height of a chart in user units; a bar is `BAR` wide.
const HEIGHT: u64 = 48;
const BAR: u64 = 8;

/// Draws a bar for each value. `title` says what the chart shows.
pub(super) fn bar_chart(title: &str, bars: &[Bar]) -> Markup {
    let most = bars.iter().map(|bar| bar.value).max().unwrap_or(0).max(1);
    let width = (bars.len() as u64).max(1) * BAR;
    html! {
        svg.bars viewBox=(format!("0 0 {width} {HEIGHT}")) preserveAspectRatio="none" role="group" aria-label=(title) {
            @for (index, bar) in bars.iter().enumerate() {
                (linked_drawing(bar.address.as_deref(), Some(&bar.label), &bar_at(index as u64 * BAR, bar, most)))
            }
        }
    }
}

fn bar_at(x: u64, bar: &Bar, most: u64) -> Markup {
    let height = |value: u64| match value {
        0 => 0,
        value => (u128::from(value) * u128::from(HEIGHT) / u128::from(most)).max(2),
    };
    let (all, failed) = (height(bar.value), height(bar.failures));
    let top = |height: u128| u128::from(HEIGHT) - height;
    html! {
        g {
            title { (bar.label) }
            rect.room x=(x) y="0" width=(BAR) height=(HEIGHT) {}
            rect.bar x=(x + 1) y=(top(all)) width=(BAR - 2) height=(all) {}
            @if failed > 0 { rect.bar.failed x=(x + 1) y=(top(failed)) width=(BAR - 2) height=(failed) {} }
        }
    }
}

/// Returns `drawing` as a link, if there is an address. What it leads to can also be reached without the drawing, so it is
/// no stop of the Tab key. A drawing without text has a `label`, which is untrusted text.
pub(super) fn linked_drawing(address: Option<&str>, label: Option<&str>, drawing: &Markup) -> Markup {
    html! {
        @match address {
            Some(address) => a href=(address) tabindex="-1" aria-label=[label.map(brief)] { (drawing) },
            None => (drawing),
        }
    }
}

/// The names of the artifacts of a page.
pub(super) struct ArtifactNames(HashMap<CoreHash, RunName>);

/// What tells a run or a contract from others.
struct RunName {
    id: Option<String>,
    excerpt: Option<String>,
}

/// The attribute with the effects of a contract.
const EFFECT: &str = "effect";

impl ArtifactNames {
    /// Reads the names of artifacts, which need not be in the vault.
    pub(super) fn read(visit: &PageRequest<'_>, mut artifacts: Vec<CoreHash>) -> Result<Self, PageError> {
        artifacts.sort_unstable();
        artifacts.dedup();
        if artifacts.is_empty() {
            // It would request all of them.
            return Ok(Self(HashMap::new()));
        }
        let attributes = [AttributeInfo::FIRST_PROMPT.name, EFFECT].map(str::to_owned).to_vec();
        let answer = visit.run(&ListRequest { artifacts, attributes, ..ListRequest::default() })?;
        Ok(Self::new(&answer.rows))
    }

    /// Returns the names that rows of a list state. The attributes of excerpts must have been requested.
    pub(super) fn new(rows: &[ListRow]) -> Self {
        let mut names = HashMap::new();
        for row in rows {
            let prompt = row.values(AttributeInfo::FIRST_PROMPT.name).into_iter().next();
            let effects = Some(row.values(EFFECT).join(", ")).filter(|effects| !effects.is_empty());
            for member in &row.members {
                let id = row.run_id.clone().or_else(|| member.details.run_id.clone());
                let is_contract = member.artifact.kind == formats::TERMS.name();
                let excerpt = if is_contract { effects.clone() } else { prompt.clone() };
                names.insert(member.artifact.core_hash, RunName { id, excerpt });
            }
        }
        Self(names)
    }

    /// Returns whether an artifact is in the vault, if its name was read.
    pub(super) fn has(&self, core: CoreHash) -> bool {
        self.0.contains_key(&core)
    }

    /// Returns the id of the run that an artifact records, if it is known.
    pub(super) fn run_id(&self, core: CoreHash) -> Option<&str> {
        self.0.get(&core)?.id.as_deref()
    }

    /// Returns the beginning of what was asked first, or the effects of a contract, if they are known.
    pub(super) fn excerpt(&self, core: CoreHash) -> Option<&str> {
        self.0.get(&core)?.excerpt.as_deref()
    }

    /// Returns an artifact as a link with the id of its run and its hash, and its excerpt.
    pub(super) fn link(&self, core: CoreHash) -> Markup {
        html! { (self.short(core)) (self.excerpt_line(core)) }
    }

    /// Returns an artifact as a link with the id of its run and its hash.
    pub(super) fn short(&self, core: CoreHash) -> Markup {
        named(core, self.run_id(core))
    }

    /// Returns the excerpt as a line of its own.
    pub(super) fn excerpt_line(&self, core: CoreHash) -> Markup {
        html! { @if let Some(excerpt) = self.excerpt(core) { " " span.excerpt { (long_line(excerpt)) } } }
    }

    /// Returns an end of a link: an artifact, or what is missing.
    pub(super) fn link_end(&self, end: &LinkEnd) -> Markup {
        let LinkEnd { core_hash, digest, name, .. } = end;
        if let Some(core) = core_hash {
            self.short(*core)
        } else {
            let missing = digest.map(|digest| format!("{digest:.12}")).or_else(|| name.clone());
            html! { span.missing { "not in the vault: " (line(&missing.unwrap_or_default())) } }
        }
    }
}

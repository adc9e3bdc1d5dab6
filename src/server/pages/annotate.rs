//! The page that changes the annotations of artifacts, and its forms, which the page of an artifact has too.

use std::collections::{BTreeMap, BTreeSet};

use axum::http::StatusCode;
use maud::{Markup, html};

use super::parts::ArtifactNames;
use super::{parts, search};
use crate::digest::CoreHash;
use crate::display::counted;
use crate::server::address;
use crate::server::frame::{block, line, long_line};
use crate::server::visit::{FormToken, HtmlPage, PageError, PageRequest, ResponseContent};
use crate::vault::annotate::{
    RemoveLabelsRequest, RemoveNoteRequest, RemoveTagRequest, SetLabelsRequest, SetNoteRequest, SetTagRequest,
};
use crate::vault::api::Operation;
use crate::vault::list::{ListRequest, ListRow};
use crate::vault::show::{ShowAnswer, ShowRequest};

/// Maximum number of artifacts that are changed at once.
const ARTIFACTS: usize = 100;

/// What the page says of a form with a token that is not valid.
const OLD_TOKEN: &str = "nothing was changed: the page is from before the server was started; send it again";

/// The fields of a form. Each form has some of them.
#[derive(Default)]
pub(super) struct AnnotationFields {
    token: String,
    /// The name of an operation.
    action: String,
    artifacts: Vec<CoreHash>,
    tag: String,
    label: String,
    key: String,
    note: Option<String>,
}

/// Makes the page for the artifacts that the address states.
pub(in crate::server) fn page(visit: &PageRequest<'_>) -> Result<ResponseContent, PageError> {
    visit.form_token.ok_or(PageError::NoPage)?;
    let fields = AnnotationFields::read(visit, visit.parameters()?)?;
    Ok(ResponseContent::Page(shown(visit, &fields, None)?))
}

/// Changes annotations as a form says. If that is not possible, the page says why, with what was entered.
pub(in crate::server) fn submit(
    visit: &PageRequest<'_>,
    fields: Vec<(String, String)>,
) -> Result<ResponseContent, PageError> {
    let token = visit.form_token.ok_or(PageError::NoPage)?;
    let fields = AnnotationFields::read(visit, fields)?;
    if !token.is(&fields.token) {
        let page = shown(visit, &fields, Some(OLD_TOKEN))?;
        return Ok(ResponseContent::Unchanged(StatusCode::FORBIDDEN, page));
    }
    match fields.change(visit) {
        Ok(()) => Ok(ResponseContent::Changed(fields.address())),
        Err(error) => {
            let page = shown(visit, &fields, Some(&error.to_string()))?;
            Ok(ResponseContent::Unchanged(error.status(), page))
        }
    }
}

impl AnnotationFields {
    /// Reads fields. Others are ignored: the form of a list, in which artifacts are selected, has some of its own.
    fn read(visit: &PageRequest<'_>, given: Vec<(String, String)>) -> Result<Self, PageError> {
        let mut fields = Self::default();
        for (name, value) in given {
            match name.as_str() {
                "csrf" => fields.token = value,
                "action" => fields.action = value,
                "tag" => fields.tag = value,
                "label" => fields.label = value,
                "key" => fields.key = value,
                // Forms are sent with the line ends of the Internet.
                "note" => fields.note = Some(value.replace("\r\n", "\n")),
                "artifact" | "run" if fields.artifacts.len() == ARTIFACTS => {
                    let message = format!("at most {ARTIFACTS} artifacts are changed at once");
                    return Err(PageError::BadRequest(message));
                }
                "artifact" | "run" => {
                    let core = search::artifact_of_text(visit, &value)?.artifact.core;
                    if !fields.artifacts.contains(&core) {
                        fields.artifacts.push(core);
                    }
                }
                _ => {}
            }
        }
        if fields.artifacts.is_empty() {
            return Err(PageError::BadRequest("select at least one run".to_owned()));
        }
        Ok(fields)
    }

    /// Runs the operation.
    fn change(&self, visit: &PageRequest<'_>) -> Result<(), PageError> {
        let core_hashes = self.artifacts.clone();
        match self.action.as_str() {
            SetTagRequest::NAME => {
                let name = self.tag.trim().trim_start_matches('@').to_owned();
                visit.run(&SetTagRequest { core_hash: self.only()?, name }).map(drop)
            }
            RemoveTagRequest::NAME => {
                // It may have been moved since the page was made.
                if !visit.run(&ShowRequest { artifact: self.only()? })?.tags.contains(&self.tag) {
                    let message = format!("the artifact does not have the tag {}", self.tag);
                    return Err(PageError::BadRequest(message));
                }
                visit.run(&RemoveTagRequest { name: self.tag.clone() }).map(drop)
            }
            SetLabelsRequest::NAME => {
                let (key, value) = self.label.trim().split_once('=').ok_or_else(|| {
                    PageError::BadRequest("a label is a key, = and a value, such as branch=main".to_owned())
                })?;
                let labels = BTreeMap::from([(key.to_owned(), value.to_owned())]);
                visit.run(&SetLabelsRequest { core_hashes, labels }).map(drop)
            }
            RemoveLabelsRequest::NAME => {
                let keys = BTreeSet::from([self.key.trim().to_owned()]);
                visit.run(&RemoveLabelsRequest { core_hashes, keys }).map(drop)
            }
            SetNoteRequest::NAME => {
                let text = self.note.clone().unwrap_or_default();
                visit.run(&SetNoteRequest { core_hash: self.only()?, text }).map(drop)
            }
            RemoveNoteRequest::NAME => visit.run(&RemoveNoteRequest { core_hash: self.only()? }).map(drop),
            other => Err(PageError::BadRequest(format!("there is no action {other}"))),
        }
    }

    /// Returns the artifact of a form for one.
    fn only(&self) -> Result<CoreHash, PageError> {
        match self.artifacts.as_slice() {
            [core] => Ok(*core),
            _ => Err(PageError::BadRequest("a tag and a note are those of one artifact".to_owned())),
        }
    }

    /// Returns the address of the page that shows the result.
    fn address(&self) -> String {
        match self.artifacts.as_slice() {
            [core] => format!("{}#facts", address::artifact(*core)),
            several => address::annotate(several),
        }
    }
}

/// Returns the page, with a message if a form did not change anything.
fn shown(
    visit: &PageRequest<'_>,
    fields: &AnnotationFields,
    message: Option<&str>,
) -> Result<HtmlPage, PageError> {
    let forms = AnnotationForms { token: visit.form_token, artifacts: &fields.artifacts, entered: fields };
    let names = ArtifactNames::read(visit, fields.artifacts.clone())?;
    let (title, content) = match fields.artifacts.as_slice() {
        [core] => {
            let rows = forms.rows(&visit.run(&ShowRequest { artifact: *core })?);
            let content = html! { p { (names.link(*core)) } (parts::fields(&rows)) };
            ("Tags, labels and note".to_owned(), content)
        }
        several => {
            let request = ListRequest { artifacts: several.to_vec(), flat: true, ..ListRequest::default() };
            let content = html! { (forms.of_several()) (labeled(&visit.run(&request)?.rows, &names)) };
            (format!("Labels of {}", counted(several.len() as u64, "artifact")), content)
        }
    };
    let body = html! {
        h1 { (title) }
        @if let Some(message) = message { p.failure role="alert" { (long_line(message)) "." } }
        (content)
    };
    Ok(HtmlPage { title, section: "", body })
}

/// Lists artifacts with their labels.
fn labeled(rows: &[ListRow], names: &ArtifactNames) -> Markup {
    html! {
        ul.listed {
            @for row in rows {
                li {
                    (parts::kind(&row.artifact.kind)) " " (names.short(row.artifact.core_hash))
                    @for (key, value) in row.each_label() { " " (parts::label(key, value)) }
                    (names.excerpt_line(row.artifact.core_hash))
                }
            }
        }
    }
}

/// The forms that change annotations.
pub(super) struct AnnotationForms<'f> {
    /// What they contain; `None` if there are no forms.
    token: Option<&'f FormToken>,
    artifacts: &'f [CoreHash],
    entered: &'f AnnotationFields,
}

/// Returns the annotations of an artifact, with forms if they can be changed.
pub(super) fn rows(visit: &PageRequest<'_>, answer: &ShowAnswer) -> [(&'static str, Option<Markup>); 3] {
    let entered = AnnotationFields::default();
    let artifacts = [answer.artifact.core_hash];
    AnnotationForms { token: visit.form_token, artifacts: &artifacts, entered: &entered }.rows(answer)
}

impl AnnotationForms<'_> {
    fn rows(&self, answer: &ShowAnswer) -> [(&'static str, Option<Markup>); 3] {
        let ShowAnswer { tags, labels, note, .. } = answer;
        let unless = |is_empty: bool, row: Markup| (self.token.is_some() || !is_empty).then_some(row);
        [
            ("tags", unless(tags.is_empty(), self.tags(tags))),
            ("labels", unless(labels.is_empty(), self.labels(labels))),
            ("note", unless(note.is_none(), self.note(note.as_deref()))),
        ]
    }

    /// Returns a form for an operation with these fields.
    fn form(&self, action: &str, fields: &Markup) -> Markup {
        html! {
            @if let Some(token) = self.token {
                form.annotate method="post" action=(address::ANNOTATE) {
                    input type="hidden" name="csrf" value=(token.text());
                    input type="hidden" name="action" value=(action);
                    @for core in self.artifacts { input type="hidden" name="artifact" value=(core); }
                    (fields)
                }
            }
        }
    }

    fn tags(&self, tags: &[String]) -> Markup {
        html! {
            @for tag in tags {
                span.tag { "@" (line(tag)) }
                (self.form(RemoveTagRequest::NAME, &html! {
                    input type="hidden" name="tag" value=(tag);
                    button aria-label=(format!("Remove the tag {tag}")) { "Remove" }
                }))
                " "
            }
            (self.form(SetTagRequest::NAME, &html! {
                input name="tag" value=(self.entered.tag) aria-label="Tag" placeholder="golden" required autocomplete="off";
                button title="A tag that another artifact has is moved" { "Set tag" }
            }))
        }
    }

    fn labels(&self, labels: &BTreeMap<String, String>) -> Markup {
        html! {
            @for (key, value) in labels {
                (parts::label(key, value))
                (self.form(RemoveLabelsRequest::NAME, &html! {
                    input type="hidden" name="key" value=(key);
                    button aria-label=(format!("Remove the label {key}")) { "Remove" }
                }))
                " "
            }
            (self.set_label())
        }
    }

    fn set_label(&self) -> Markup {
        self.form(
            SetLabelsRequest::NAME,
            &html! {
                input name="label" value=(self.entered.label) aria-label="Label" placeholder="branch=main" required autocomplete="off";
                button { "Set label" }
            },
        )
    }

    fn note(&self, note: Option<&str>) -> Markup {
        let text = self.entered.note.as_deref().or(note).unwrap_or_default();
        let set = self.form(
            SetNoteRequest::NAME,
            // The first line feed in the element is not part of its value.
            &html! {
                textarea name="note" rows="3" aria-label="Note" required { "\n" (text) }
                button { "Set note" }
            },
        );
        html! {
            @if let Some(note) = note {
                span.note { (block(note)) }
                (self.form(RemoveNoteRequest::NAME, &html! { button aria-label="Remove the note" { "Remove" } }))
                @if self.token.is_some() {
                    details open[self.entered.note.is_some()] { summary { "Change the note" } (set) }
                }
            } @else {
                (set)
            }
        }
    }

    /// Returns the forms for several artifacts, which share labels only.
    fn of_several(&self) -> Markup {
        html! {
            (self.set_label())
            " "
            (self.form(RemoveLabelsRequest::NAME, &html! {
                input name="key" value=(self.entered.key) aria-label="Key of a label" placeholder="branch" required autocomplete="off";
                button { "Remove label" }
            }))
        }
    }
}

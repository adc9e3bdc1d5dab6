//! Forms that filter lists, and pages of lists.

use maud::{Markup, html};
use serde::de::DeserializeOwned;

use crate::artifact::Kind;
use crate::formats;
use crate::server::failure::PageError;
use crate::vault::api::Timestamp;
use crate::vault::find::{FindCondition, FindCursor};

/// Returns the value of a field that is filled in.
pub(super) fn given(value: &str) -> Option<&str> {
    Some(value.trim()).filter(|value| !value.is_empty())
}

/// Parses a name as the API writes it; an empty one is the default.
pub(super) fn one_of<T: Default + DeserializeOwned>(name: &str, what: &str) -> Result<T, PageError> {
    let Some(name) = given(name) else { return Ok(T::default()) };
    serde_json::from_value(name.into())
        .map_err(|_| PageError::BadRequest(format!("there is no {what} {name}")))
}

/// Parses a date or a time.
pub(super) fn point(text: &str) -> Result<Option<Timestamp>, PageError> {
    let Some(text) = given(text) else { return Ok(None) };
    let time = chrono::DateTime::parse_from_rfc3339(text).map(|time| time.to_utc()).ok();
    let midnight = || Some(text.parse::<chrono::NaiveDate>().ok()?.and_hms_opt(0, 0, 0)?.and_utc());
    let time = time.or_else(midnight);
    let invalid = || PageError::BadRequest(format!("{text} is not a date such as 2026-11-20"));
    time.map(|time| Some(Timestamp(time))).ok_or_else(invalid)
}

/// Parses the name of a kind; any kind if it is empty.
pub(super) fn kinds(name: &str) -> Result<Vec<String>, PageError> {
    match given(name) {
        None => Ok(Vec::new()),
        Some(name) if formats::named(name).is_some() => Ok(vec![name.to_owned()]),
        Some(name) => Err(PageError::BadRequest(format!("there is no kind {name}"))),
    }
}

/// Returns the condition of the key of a label, or of a key, `=` and a value.
pub(super) fn label(text: &str) -> FindCondition {
    let (key, value) = text.split_once('=').map_or((text, None), |(key, value)| (key, Some(value)));
    FindCondition::Label { key: key.to_owned(), value: value.map(str::to_owned) }
}

/// Parses the end of the previous page, if there is one.
pub(super) fn cursor(text: &str) -> Result<Option<FindCursor>, PageError> {
    let cursor = given(text).map(serde_json::from_str).transpose();
    cursor.map_err(|_| PageError::BadRequest("the page is not valid".to_owned()))
}

/// Returns a field with these values and names.
pub(super) fn options(name: &str, options: &[(&str, &str)], chosen: &str) -> Markup {
    html! {
        select name=(name) {
            @for (value, text) in options { option value=(value) selected[*value == chosen] { (text) } }
        }
    }
}

/// Returns a field with these kinds.
pub(super) fn kind_options(kinds: &[Kind], chosen: &str) -> Markup {
    let named = kinds.iter().map(|kind| (kind.name(), kind.noun()));
    let all: Vec<(&str, &str)> = std::iter::once(("", "any")).chain(named).collect();
    options("kind", &all, chosen)
}

/// Links to the first and the next page.
pub(super) fn pages(
    after: &str,
    next: Option<&FindCursor>,
    address: &dyn Fn(Option<&str>) -> String,
) -> Markup {
    // A cursor is always JSON.
    let next = next.and_then(|next| serde_json::to_string(next).ok());
    html! {
        nav.pages aria-label="Pages" {
            @if !after.is_empty() { a href=(address(None)) { "First page" } }
            @if let Some(next) = next { a rel="next" href=(address(Some(&next))) { "Next page" } }
        }
    }
}

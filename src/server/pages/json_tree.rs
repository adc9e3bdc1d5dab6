//! JSON as a tree that can be folded. The script adds what copies a value and its place.

use maud::{Markup, html};

use crate::display::size;
use crate::json::reader::{self, Limits};
use crate::json::{Value, pointer};
use crate::server::frame::{block, line, whole};

/// Larger texts are shown as they are.
const LIMITS: Limits = Limits { bytes: 200_000, depth: 40, values: 3_000, entries: 0 };

/// A tree with more values begins folded.
const MAX_OPEN: usize = 40;

/// Maximum number of characters of a string in a line.
const LINE: usize = 300;

/// Returns an object or an array as a tree; `None` if the text is something else or too large.
pub(super) fn tree(text: &str) -> Option<Markup> {
    if !text.trim_start().starts_with(['{', '[']) {
        return None;
    }
    let root = reader::read(text.as_bytes(), &LIMITS).ok()?;
    let is_open = count(&root) <= MAX_OPEN;
    Some(html! {
        ul.json data-pointer="" data-form=(form(&root)) {
            @for child in children(&root, "") { (child_row(&child, is_open)) }
            @if is_empty(&root) { li { (empty(&root)) } }
        }
    })
}

/// A value in an object or an array.
struct JsonChild<'v> {
    /// Its name, or its number.
    name: String,
    is_element: bool,
    pointer: String,
    value: &'v Value<'v>,
}

fn children<'v>(parent: &'v Value<'_>, place: &str) -> Vec<JsonChild<'v>> {
    match parent {
        Value::Object(members) => members
            .iter()
            .map(|(name, value)| {
                let mut pointer = place.to_owned();
                pointer::push(&mut pointer, name);
                JsonChild { name: name.to_owned(), is_element: false, pointer, value }
            })
            .collect(),
        Value::Array(elements) => elements
            .iter()
            .enumerate()
            .map(|(index, value)| {
                let mut pointer = place.to_owned();
                pointer::push_index(&mut pointer, index);
                JsonChild { name: index.to_string(), is_element: true, pointer, value }
            })
            .collect(),
        _ => Vec::new(),
    }
}

fn child_row(child: &JsonChild<'_>, is_open: bool) -> Markup {
    let JsonChild { name, is_element, pointer, value } = child;
    let class = if *is_element { "key element" } else { "key" };
    let key = html! { span class=(class) { (line(name)) } };
    html! {
        li data-pointer=(whole(pointer)) data-form=(form(value)) {
            @match value {
                Value::Object(_) | Value::Array(_) if !is_empty(value) => {
                    details open[is_open] {
                        summary { (key) " " span.faint { (counted_children(value)) } }
                        ul { @for child in children(value, pointer) { (child_row(&child, is_open)) } }
                    }
                },
                Value::String(text) if text.contains('\n') || text.chars().nth(LINE).is_some() => {
                    details open[is_open] {
                        summary { (key) " " span.faint { (size(text.len() as u64)) } }
                        pre.value { (block(text)) }
                    }
                },
                Value::String(text) => { (key) " " span.value.string { (block(text)) } },
                Value::Number(number) => { (key) " " span.value.number { (whole(number.literal())) } },
                Value::Bool(value) => { (key) " " span.value.word { (value) } },
                Value::Null => { (key) " " span.value.word { "null" } },
                Value::Object(_) | Value::Array(_) => { (key) " " (empty(value)) },
            }
        }
    }
}

/// Returns the form of a value, for the script.
fn form(value: &Value<'_>) -> &'static str {
    match value {
        Value::Array(_) => "array",
        Value::Object(_) => "object",
        Value::String(_) => "string",
        _ => "literal",
    }
}

fn is_empty(value: &Value<'_>) -> bool {
    match value {
        Value::Object(members) => members.iter().len() == 0,
        Value::Array(elements) => elements.is_empty(),
        _ => false,
    }
}

fn empty(value: &Value<'_>) -> Markup {
    html! { span.value.faint { (if value.as_array().is_some() { "[]" } else { "{}" }) } }
}

fn counted_children(value: &Value<'_>) -> String {
    match value {
        Value::Object(members) => format!("{{{}}}", members.iter().len()),
        Value::Array(elements) => format!("[{}]", elements.len()),
        _ => String::new(),
    }
}

/// Returns the number of values in a value.
fn count(value: &Value<'_>) -> usize {
    match value {
        Value::Object(members) => members.iter().map(|(_, member)| 1 + count(member)).sum(),
        Value::Array(elements) => elements.iter().map(|element| 1 + count(element)).sum(),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_in_their_order_with_their_places() {
        let shown = tree(r#"{"b":1.0,"a/c":[true,{"~":"<b>"}],"d":[]}"#).unwrap().into_string();
        let places: Vec<&str> =
            shown.split("data-pointer=\"").skip(1).map(|rest| rest.split('"').next().unwrap()).collect();
        assert_eq!(places, ["", "/b", "/a~1c", "/a~1c/0", "/a~1c/1", "/a~1c/1/~0", "/d"]);
        assert!(shown.contains("<span class=\"value number\">1.0</span>"), "{shown}");
        assert!(shown.contains("<span class=\"value string\">&lt;b&gt;</span>"), "{shown}");
        assert!(shown.contains("<span class=\"value faint\">[]</span>"), "{shown}");
    }

    #[test]
    fn other_and_large_texts_are_no_trees() {
        let long = format!("[{}1]", "1,".repeat(LIMITS.values));
        let deep = format!("{}{}", "[".repeat(LIMITS.depth + 1), "]".repeat(LIMITS.depth + 1));
        for text in ["1", "\"a\"", "text", "[1] and more", "{\"a\":1,\"a\":2}", &long, &deep] {
            assert!(tree(text).is_none(), "{text}");
        }
    }

    #[test]
    fn large_trees_begin_folded() {
        let array = |count: usize| format!("[[{}1]]", "1,".repeat(count));
        assert!(tree(&array(3)).unwrap().into_string().contains("<details open>"));
        assert!(!tree(&array(MAX_OPEN)).unwrap().into_string().contains("<details open>"));
    }
}

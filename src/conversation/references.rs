//! The items of answers that later requests refer to by their ids, because the server keeps them.

use std::borrow::Cow;
use std::collections::HashMap;

use super::providers::{output_items, referenced_item};
use crate::json::{Object, Value};

/// The items of the answers of a conversation, by their ids.
#[derive(Default)]
pub(super) struct AnsweredItems(HashMap<String, Value<'static>>);

impl AnsweredItems {
    /// Adds the items of a document of an answer: a body in one piece, or an event of a stream.
    pub(super) fn add(&mut self, document: &Value<'_>) {
        for (id, item) in output_items(document) {
            self.0.insert(id.to_owned(), item.to_owned_value());
        }
    }

    /// Returns an element of a list of messages, or the item that it refers to if that was answered before.
    pub(super) fn resolve<'v>(&'v self, element: &'v Value<'v>) -> &'v Value<'v> {
        referenced_item(element).and_then(|id| self.0.get(id)).unwrap_or(element)
    }

    /// Returns a body in which the elements of a list are `elements`, with the items that they refer to.
    pub(super) fn with_list<'v>(
        &'v self,
        body: &'v Value<'v>,
        list: &str,
        elements: &'v [Value<'v>],
    ) -> Option<Value<'v>> {
        let members = body.as_object()?.iter().map(|(name, value)| {
            let value = if name == list {
                Value::Array(elements.iter().map(|element| self.resolve(element).clone()).collect())
            } else {
                value.clone()
            };
            (Cow::Borrowed(name), value)
        });
        Some(Value::Object(Object::from_members(members.collect())))
    }

    /// Returns a body with the items that the elements of its list `list` refer to; `None` if they refer to none.
    pub(super) fn resolved<'v>(&'v self, body: &'v Value<'v>, list: &str) -> Option<Value<'v>> {
        let elements = body.get(list)?.as_array()?;
        let refers = |element: &Value<'_>| referenced_item(element).is_some_and(|id| self.0.contains_key(id));
        if elements.iter().any(refers) { self.with_list(body, list, elements) } else { None }
    }
}

//! The form in which answers are compared: without ids, times and numbers of tokens, which differ in every answer.

use std::borrow::Cow;
use std::collections::HashMap;

use super::message::{MessagePart, MessageToolCall, MessageToolResult};
use super::providers::{AnsweredMessages, is_named};
use super::response::CallResponse;
use crate::json::reader::{self, Limits};
use crate::json::{Object, Value};

impl AnsweredMessages {
    /// Returns what the answer says, as a value: its messages without ids, and why it ended.
    pub(crate) fn comparable(mut self) -> Option<Value<'static>> {
        for message in &mut self.messages {
            message.parts.iter_mut().for_each(remove_ids);
        }
        let text = serde_json::to_string(&(&self.messages, &self.finish_reason)).ok()?;
        reader::read(text.as_bytes(), &Limits::most()).ok().map(|value| value.to_owned_value())
    }

    /// Returns what the answer says, as a text that is the same for two answers that say the same: without ids, and without
    /// what the model thought.
    pub(crate) fn comparable_text(&self) -> String {
        let mut lines = Vec::new();
        for part in self.messages.iter().flat_map(|message| &message.parts) {
            match part {
                MessagePart::ToolCall(MessageToolCall { name, arguments, .. }) => {
                    lines.push(Cow::Owned(format!("{name}({arguments})")));
                }
                MessagePart::Other { value } => lines.push(Cow::Borrowed(value.as_str())),
                part => lines.extend(part.as_text().map(Cow::Borrowed)),
            }
        }
        lines.join("\n")
    }
}

/// The member with what a recorded answer says, and the one with what was sent.
const ANSWER: &str = "answer";
pub(crate) const RECORDED: &str = "recorded";

/// Adds what an answer says to the object that records it. The members with what was sent become those of a member.
pub(crate) fn add_answer<'v>(recorded: &mut Object<'v>, answer: Value<'v>, is_sent: impl Fn(&str) -> bool) {
    let members = std::mem::take(recorded).into_members().into_iter();
    let (sent, mut kept): (Vec<_>, Vec<_>) = members.partition(|(name, _)| is_sent(name));
    kept.push((Cow::Borrowed(ANSWER), answer));
    kept.push((Cow::Borrowed(RECORDED), Value::Object(Object::from_members(sent))));
    *recorded = Object::from_members(kept);
}

fn remove_ids(part: &mut MessagePart) {
    match part {
        MessagePart::ToolCall(MessageToolCall { id, .. }) => *id = None,
        MessagePart::ToolResult(MessageToolResult { id, parts, .. }) => {
            *id = None;
            parts.iter_mut().for_each(remove_ids);
        }
        _ => {}
    }
}

/// The shortest value that is recognized where a request repeats it. A shorter one may be there by coincidence.
const SHORTEST: usize = 6;

/// The ids and signatures in answers, with names by the order in which they were given.
#[derive(Default)]
pub(crate) struct GeneratedValues(HashMap<String, String>);

impl GeneratedValues {
    /// Adds the values of an answer.
    pub(crate) fn add(&mut self, answer: &CallResponse) {
        answer.visit_documents(|document| self.add_members(document));
    }

    fn add_members(&mut self, value: &Value<'_>) {
        match value {
            Value::Array(elements) => elements.iter().for_each(|element| self.add_members(element)),
            Value::Object(members) => {
                for (name, member) in members.iter() {
                    match member.as_str().filter(|text| text.len() >= SHORTEST) {
                        Some(text) if is_named(name, |names| names.generated) => {
                            let number = self.0.len();
                            self.0.entry(text.to_owned()).or_insert_with(|| format!("value {number}"));
                        }
                        _ => self.add_members(member),
                    }
                }
            }
            _ => {}
        }
    }

    /// Returns a value in which the names take the place of the values.
    pub(crate) fn replace_in<'v>(&self, value: Value<'v>) -> Value<'v> {
        match value {
            Value::String(text) => match self.0.get(&*text) {
                Some(name) => Value::String(Cow::Owned(name.clone())),
                None => Value::String(text),
            },
            Value::Array(elements) => {
                Value::Array(elements.into_iter().map(|element| self.replace_in(element)).collect())
            }
            Value::Object(object) => {
                let members = object.into_members().into_iter();
                let replaced = members.map(|(name, member)| (name, self.replace_in(member)));
                Value::Object(Object::from_members(replaced.collect()))
            }
            other => other,
        }
    }
}

//! Decoding of messages and of the contents of answers: what the APIs of all providers have in common.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use crate::conversation::message::{
    ConversationMessage, MessageMedia, MessagePart, MessageRole, MessageToolCall,
};
use crate::json::members::{object, word};
use crate::json::reader::{self, Limits};
use crate::json::{Object, Value, compact};

/// How an API states messages.
#[derive(Debug)]
pub(crate) struct MessageForm {
    /// Returns what a request asks; `None` if it does not have the form of the API.
    pub(crate) request: fn(&Value<'_>) -> Option<RequestedMessages>,
    /// Reads a body in one piece, or an event of a stream. Returns false if it does not have the form of the API.
    pub(crate) answer: fn(&mut AnswerDecoder, &Value<'_>) -> bool,
}

impl MessageForm {
    pub(super) const NONE: Self = Self { request: |_| None, answer: |_, _| false };
}

/// What a request asks.
#[derive(Debug, Default)]
pub(crate) struct RequestedMessages {
    pub(crate) messages: Vec<ConversationMessage>,
    /// The names of the tools that are offered.
    pub(crate) tools: Vec<String>,
    /// The parameters, as JSON.
    pub(crate) parameters: BTreeMap<String, String>,
    /// The id of the answer that the request continues.
    pub(crate) previous_answer: Option<String>,
}

/// What an answer says.
#[derive(Debug, Default)]
pub(crate) struct AnsweredMessages {
    pub(crate) messages: Vec<ConversationMessage>,
    pub(crate) finish_reason: Option<String>,
    pub(crate) id: Option<String>,
}

impl AnsweredMessages {
    /// Returns whether there is a message, or the reason for which there is none.
    pub(crate) fn says_something(&self) -> bool {
        !self.messages.is_empty() || self.finish_reason.is_some()
    }
}

/// The type of a part that a stream states in pieces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PieceKind {
    Text,
    Thinking,
    Refusal,
}

/// A part of an answer, as far as it was read.
#[derive(Debug)]
enum DecodedPart {
    Piece(PieceKind, String),
    /// A call of a tool, whose arguments are a text.
    ToolCall(MessageToolCall),
    Whole(MessagePart),
}

/// The place of a part of an answer: the index of the choice, that of the item in it, and that of the part in the item. These are
/// numbers of the answer, so nothing is added to them.
pub(super) type PartPlace = (u64, u64, u64);

/// Decodes an answer, in one piece or event by event.
#[derive(Debug, Default)]
pub(crate) struct AnswerDecoder {
    parts: BTreeMap<PartPlace, DecodedPart>,
    pub(super) finish_reason: Option<String>,
    pub(super) id: Option<String>,
}

impl AnswerDecoder {
    /// Adds a piece of a text.
    pub(super) fn piece(&mut self, place: PartPlace, kind: PieceKind, text: Option<&str>) {
        let Some(text) = text.filter(|text| !text.is_empty()) else { return };
        match self.parts.entry(place).or_insert_with(|| DecodedPart::Piece(kind, String::new())) {
            DecodedPart::Piece(_, said) => said.push_str(text),
            DecodedPart::ToolCall(call) => call.arguments.push_str(text),
            DecodedPart::Whole(_) => {}
        }
    }

    /// Adds a piece of a text after all parts of its choice: to the last one if that is of the same kind.
    pub(super) fn append(&mut self, choice: u64, kind: PieceKind, text: Option<&str>) {
        let place = match self.last(choice) {
            Some((place, DecodedPart::Piece(last, _))) if *last == kind => *place,
            _ => self.next(choice),
        };
        self.piece(place, kind, text);
    }

    /// Returns the last part of a choice, with its place.
    fn last(&self, choice: u64) -> Option<(&PartPlace, &DecodedPart)> {
        self.parts.range((choice, 0, 0)..=(choice, u64::MAX, u64::MAX)).next_back()
    }

    /// Returns the place after all parts of a choice.
    fn next(&self, choice: u64) -> PartPlace {
        (choice, self.last(choice).map_or(0, |((_, item, _), _)| item.saturating_add(1)), 0)
    }

    /// Adds a piece of a call of a tool.
    pub(super) fn tool(
        &mut self,
        place: PartPlace,
        id: Option<&str>,
        name: Option<&str>,
        arguments: Option<&str>,
    ) {
        let new =
            || MessageToolCall { id: None, name: String::new(), arguments: String::new(), result: None };
        let part = self.parts.entry(place).or_insert_with(|| DecodedPart::ToolCall(new()));
        let DecodedPart::ToolCall(call) = part else { return };
        if let Some(id) = id.filter(|id| !id.is_empty()) {
            call.id = Some(id.to_owned());
        }
        call.name.push_str(name.unwrap_or_default());
        call.arguments.push_str(arguments.unwrap_or_default());
    }

    /// Adds a part, after all parts of its choice.
    pub(super) fn part(&mut self, choice: u64, part: MessagePart) {
        self.part_at(self.next(choice), part);
    }

    /// Adds a part, after all parts of its item.
    pub(super) fn part_in(&mut self, choice: u64, item: u64, part: MessagePart) {
        let last = self.parts.range((choice, item, 0)..=(choice, item, u64::MAX)).next_back();
        let next = last.map_or(0, |((.., last), _)| last.saturating_add(1));
        self.part_at((choice, item, next), part);
    }

    /// Sets the part at a place.
    pub(super) fn part_at(&mut self, place: PartPlace, part: MessagePart) {
        self.parts.insert(place, DecodedPart::Whole(part));
    }

    /// Sets why the answer ended, if that is stated.
    pub(super) fn finished(&mut self, reason: Option<&str>) {
        if let Some(reason) = reason {
            self.finish_reason = Some(reason.to_owned());
        }
    }

    /// Sets the id of the answer, if that is stated.
    pub(super) fn identified(&mut self, id: Option<&str>) {
        if let Some(id) = id {
            self.id = Some(id.to_owned());
        }
    }

    /// Returns what was read. `whole` puts the halves of characters together.
    pub(crate) fn finish(self, whole: impl Fn(String) -> String) -> AnsweredMessages {
        let mut choices: BTreeMap<u64, Vec<MessagePart>> = BTreeMap::new();
        for ((choice, ..), part) in self.parts {
            choices.entry(choice).or_default().push(match part {
                DecodedPart::Piece(kind, text) => {
                    let text = whole(text);
                    match kind {
                        PieceKind::Text => MessagePart::Text { text },
                        PieceKind::Thinking => MessagePart::Thinking { text },
                        PieceKind::Refusal => MessagePart::Refusal { text },
                    }
                }
                DecodedPart::ToolCall(call) => {
                    let arguments = normalized_arguments(&call.arguments);
                    MessagePart::ToolCall(MessageToolCall { arguments, ..call })
                }
                DecodedPart::Whole(part) => part,
            });
        }
        let message = |parts| ConversationMessage::new(MessageRole::Assistant, parts);
        AnsweredMessages {
            messages: choices.into_values().map(message).collect(),
            finish_reason: self.finish_reason,
            id: self.id,
        }
    }
}

/// Returns arguments as JSON without white space, or as they are if they are not JSON.
pub(crate) fn normalized(arguments: &str) -> String {
    let read = reader::read(arguments.trim().as_bytes(), &Limits::most());
    read.map_or_else(|_| arguments.to_owned(), |value| compact::text(&value))
}

/// The arguments of a call of a tool without arguments.
const NO_ARGUMENTS: &str = "{}";

/// Returns the text of arguments as [`normalized`] does. Answers state that there are none as an empty text or as `null`, which
/// clients repeat as an empty object.
fn normalized_arguments(text: &str) -> String {
    match text.trim() {
        "" | "null" => NO_ARGUMENTS.to_owned(),
        _ => normalized(text),
    }
}

/// Returns a value as arguments of a tool: a text is JSON itself.
pub(super) fn arguments(value: Option<&Value<'_>>) -> String {
    match value {
        None | Some(Value::Null) => NO_ARGUMENTS.to_owned(),
        Some(Value::String(text)) => normalized_arguments(text),
        Some(value) => compact::text(value),
    }
}

/// Returns a call of a tool.
pub(crate) fn tool_call(id: Option<&str>, name: Option<&str>, value: Option<&Value<'_>>) -> MessagePart {
    MessagePart::ToolCall(MessageToolCall {
        id: id.filter(|id| !id.is_empty()).map(str::to_owned),
        name: name.unwrap_or_default().to_owned(),
        arguments: arguments(value),
        result: None,
    })
}

/// Returns the parts of a content: one if it is a text, those of a list, and none if it is absent.
pub(crate) fn parts(
    content: Option<&Value<'_>>,
    part: fn(&Value<'_>) -> Option<MessagePart>,
) -> Vec<MessagePart> {
    let one = |value: &Value<'_>| match value {
        Value::String(text) => (!text.is_empty()).then(|| MessagePart::text(text.as_ref())),
        value => Some(part(value).unwrap_or_else(|| MessagePart::other(value))),
    };
    match content {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::Array(values)) => values.iter().filter_map(one).collect(),
        Some(value) => one(value).into_iter().collect(),
    }
}

/// Returns the role with this name. People have other names in some APIs.
pub(crate) fn role(name: Option<&str>) -> MessageRole {
    match name {
        Some("system" | "developer" | "SYSTEM") => MessageRole::System,
        Some("assistant" | "model" | "CHATBOT") => MessageRole::Assistant,
        Some("tool" | "function" | "TOOL") => MessageRole::Tool,
        _ => MessageRole::User,
    }
}

/// Returns the names of tools, which are members of the elements of a list. Gemini takes one without a list, too.
pub(super) fn tool_names(list: Option<&Value<'_>>, name: fn(&Value<'_>) -> Vec<String>) -> Vec<String> {
    let tools = list.map(|list| list.as_array().unwrap_or(std::slice::from_ref(list)));
    tools.unwrap_or_default().iter().flat_map(name).collect()
}

/// Returns the members of a request but for some, as JSON.
pub(super) fn parameters(request: &Value<'_>, others: &[&str]) -> BTreeMap<String, String> {
    let members = request.as_object().into_iter().flat_map(Object::iter);
    let stated = members.filter(|(name, value)| !others.contains(name) && !value.is_null());
    stated.map(|(name, value)| (name.to_owned(), compact::text(value))).collect()
}

/// Returns a file in a message: its content is given in Base64, as a `data:` address, or elsewhere at an address.
pub(crate) fn media(media_type: &str, name: Option<&str>, content: Option<&str>) -> MessagePart {
    let mut media = MessageMedia {
        media_type: media_type.to_owned(),
        name: name.map(str::to_owned),
        ..MessageMedia::default()
    };
    match content
        .map(|content| (content, content.strip_prefix("data:").and_then(|data| data.split_once(','))))
    {
        Some((_, Some((stated, data)))) => {
            let stated = stated.split(';').next().unwrap_or_default();
            if !stated.is_empty() {
                stated.clone_into(&mut media.media_type);
            }
            media.size = Some(decoded_len(data));
        }
        Some((location, None)) => media.location = Some(location.to_owned()),
        None => {}
    }
    MessagePart::Media(media)
}

/// Returns a file whose content is given in Base64.
pub(crate) fn encoded_media(media_type: Option<&str>, kind: &str, data: &str) -> MessagePart {
    MessagePart::Media(MessageMedia {
        media_type: media_type.unwrap_or(kind).to_owned(),
        size: Some(decoded_len(data)),
        ..MessageMedia::default()
    })
}

/// Returns the number of bytes that Base64 stands for.
fn decoded_len(data: &str) -> u64 {
    (data.trim_end_matches('=').len() as u64) * 3 / 4
}

/// Returns the text that is a member of a member.
pub(super) fn inner<'v>(value: &'v Value<'_>, member: &str, name: &str) -> Option<&'v str> {
    value.get(member).and_then(|value| word(value, name))
}

/// Returns the vectors of an answer as a part, if there are any.
pub(super) fn embeddings<'v, 'a: 'v>(
    mut vectors: impl Iterator<Item = &'v Value<'a>>,
) -> Option<MessagePart> {
    let dimensions = vectors.next()?.as_array().map_or(0, |numbers| numbers.len() as u64);
    Some(MessagePart::Embeddings { count: 1 + vectors.count() as u64, dimensions })
}

/// Returns the instructions of a request as a message, if there are any.
pub(super) fn instructions(
    content: Option<&Value<'_>>,
    part: fn(&Value<'_>) -> Option<MessagePart>,
) -> Option<ConversationMessage> {
    let parts = parts(content, part);
    (!parts.is_empty()).then(|| ConversationMessage::new(MessageRole::System, parts))
}

/// Returns a message of an API in which results of tools are parts of what a person says.
pub(crate) fn said_message(author: Option<&str>, parts: Vec<MessagePart>) -> ConversationMessage {
    let are_results =
        !parts.is_empty() && parts.iter().all(|part| matches!(part, MessagePart::ToolResult(_)));
    ConversationMessage::new(if are_results { MessageRole::Tool } else { role(author) }, parts)
}

/// Returns messages of which those of the model that follow each other are one, as they were when it answered: clients repeat an
/// answer as several of them. `add` adds a part of the next one to those before it.
pub(super) fn joined(
    messages: impl Iterator<Item = ConversationMessage>,
    add: fn(&mut Vec<MessagePart>, MessagePart),
) -> Vec<ConversationMessage> {
    let mut all: Vec<ConversationMessage> = Vec::new();
    for next in messages {
        match all.last_mut() {
            Some(last) if [last.role, next.role].iter().all(|role| *role == MessageRole::Assistant) => {
                next.parts.into_iter().for_each(|part| add(&mut last.parts, part));
            }
            _ => all.push(next),
        }
    }
    all
}

/// Returns the blocks of the contents of messages.
pub(super) fn blocks<'v, 'a>(messages: &'v [Value<'a>]) -> impl Iterator<Item = &'v Value<'a>> {
    messages.iter().filter_map(|message| message.get("content")?.as_array()).flatten()
}

/// The content of an answer.
#[derive(Debug, Default)]
pub(crate) struct AnswerContent {
    /// The text of each choice or candidate that has one, in the order of their indexes.
    pub(crate) texts: Vec<String>,
    /// The numbers of tokens, in the members in which the API states them.
    pub(crate) usage: Option<Value<'static>>,
    /// When it was made, as the API states it.
    pub(crate) created: Option<Value<'static>>,
    /// Why it is not an answer.
    pub(crate) failure: Option<AnswerFailure>,
}

/// The reason that a response is not an answer.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum AnswerFailure {
    /// The server states an error, whatever the status.
    Error(Value<'static>),
    /// The status is not one of success.
    Status(u16),
    /// The stream has no event that ends it.
    NoEnd,
    /// It ends inside a JSON document.
    CutOff,
    /// It is of a type that has content, and has none.
    Empty,
}

impl AnswerFailure {
    /// Returns the error, or the reason as a text.
    pub(crate) fn to_value(&self) -> Value<'static> {
        match self {
            Self::Error(error) => error.clone(),
            other => Value::String(Cow::Owned(other.to_string())),
        }
    }
}

impl fmt::Display for AnswerFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Error(error) => {
                let message = error.get("message").unwrap_or(error);
                message.as_str().unwrap_or("the server states an error")
            }
            Self::Status(status) => return write!(f, "HTTP status {status}"),
            Self::NoEnd => "the stream was broken off: it has no event that ends it",
            Self::CutOff => "the response was broken off inside a JSON document",
            Self::Empty => "the response is empty",
        })
    }
}

/// The place of a part of a text: the index of its choice, and of the part in that.
type TextPlace = (u64, u64, u64);

/// Reads an answer.
#[derive(Default)]
pub(crate) struct AnswerReader {
    texts: BTreeMap<TextPlace, String>,
    pub(crate) usage: BTreeMap<String, Value<'static>>,
    pub(crate) created: Option<Value<'static>>,
    pub(crate) failure: Option<AnswerFailure>,
    pub(crate) progress: StreamProgress,
    pub(crate) leaves_out_texts: bool,
}

/// How far a stream has come.
#[derive(Default)]
pub(crate) struct StreamProgress {
    /// Whether there was an event of an API whose streams have an end.
    pub(crate) is_ended_by_event: bool,
    pub(crate) has_ended: bool,
    /// The choices and candidates that have begun and not ended.
    pub(super) open: BTreeSet<u64>,
    /// The candidates that have ended.
    pub(super) ended: BTreeSet<u64>,
}

impl AnswerReader {
    pub(crate) fn without_texts() -> Self {
        Self { leaves_out_texts: true, ..Self::default() }
    }

    pub(crate) fn fail(&mut self, error: &Value<'_>) {
        self.failure.get_or_insert_with(|| AnswerFailure::Error(error.to_owned_value()));
    }

    pub(super) fn has_texts(&self) -> bool {
        !self.texts.is_empty()
    }

    /// Adds a text, or the texts of parts, without what the model thought.
    pub(crate) fn add(&mut self, place: TextPlace, content: Option<&Value<'_>>) {
        let said = self.texts.entry(place).or_default();
        match content.filter(|_| !self.leaves_out_texts) {
            Some(Value::String(text)) => said.push_str(text),
            Some(Value::Array(parts)) => {
                let shown = parts.iter().filter(|part| part.get("thought") != Some(&Value::Bool(true)));
                said.extend(shown.filter_map(|part| word(part, "text")));
            }
            _ => {}
        }
    }

    /// Returns what was read. `whole` puts the halves of characters together.
    pub(crate) fn finish(self, whole: impl Fn(String) -> String) -> AnswerContent {
        let mut texts: BTreeMap<u64, String> = BTreeMap::new();
        for ((choice, ..), text) in self.texts {
            texts.entry(choice).or_default().push_str(&text);
        }
        let texts = texts.into_values().filter(|text| !text.is_empty()).map(whole).collect();
        let usage = object(self.usage.iter().map(|(name, count)| (name.as_str(), count.clone())));
        let usage = (!self.usage.is_empty()).then(|| usage.to_owned_value());
        AnswerContent { texts, usage, created: self.created, failure: self.failure }
    }
}

/// Returns the error that a document states beside what it would otherwise have.
pub(crate) fn stated_error<'v, 'a>(value: &'v Value<'a>) -> Option<&'v Value<'a>> {
    value.get("error").filter(|error| match error {
        Value::String(text) => !text.is_empty(),
        Value::Object(members) => members.iter().len() > 0,
        other => **other == Value::Bool(true),
    })
}

/// Returns the type of an event.
pub(crate) fn type_of<'v>(event: &'v Value<'_>) -> &'v str {
    word(event, "type").unwrap_or_default()
}

/// Returns the elements of a list, each with the index that it states, or else with its position.
pub(super) fn indexed<'v, 'a>(
    value: &'v Value<'a>,
    name: &str,
) -> impl Iterator<Item = (u64, &'v Value<'a>)> {
    let elements = value.get(name).and_then(Value::as_array).unwrap_or_default();
    (0..).zip(elements).map(|(position, one)| (number(one, "index").unwrap_or(position), one))
}

/// Returns the number that is a member.
pub(crate) fn number(value: &Value<'_>, name: &str) -> Option<u64> {
    value.get(name)?.as_number()?.literal().parse().ok()
}

/// Returns whether a member states a value.
pub(super) fn states(value: &Value<'_>, name: &str) -> bool {
    value.get(name).is_some_and(|value| !value.is_null())
}

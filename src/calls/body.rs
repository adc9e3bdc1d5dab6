//! The texts in the body of a request or a response: those of a JSON document, or of the events or lines of a stream.

use std::borrow::Cow;
use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::ops::Range;

use super::events;
use super::providers::{answer_forms, is_named};
use crate::json::Value;

/// The members with which events say to which part of an answer they belong.
const INDEXES: [&str; 4] = ["index", "output_index", "content_index", "item_id"];

/// A part of a body: all of it, or a line of a stream.
pub(crate) struct BodyPart<'b> {
    /// The text before its data, such as `data: `.
    pub(crate) before: &'b str,
    pub(crate) text: &'b str,
    pub(crate) data: PartData<'b>,
    /// The end of the line.
    pub(crate) after: &'b str,
}

/// The data of a part.
pub(crate) enum PartData<'b> {
    Json(Value<'b>),
    /// The text of an event that is not JSON.
    Text,
    /// A line that has no data, or the body of a response that is not JSON.
    Other,
    /// It begins as JSON and is not: its strings cannot be read.
    Unreadable,
}

/// The digest of the location of an answer or of the form of a location, with a name: the same for all strings of a
/// conversation.
type ConversationKey = u64;

/// A string in a body.
#[derive(Debug)]
pub(crate) struct BodyString<'p> {
    /// The digest of its location, which is the same in all events that continue a text.
    location: u64,
    /// The conversation that it is a part of; `None` if it can be no part of a longer text.
    conversation: Option<ConversationKey>,
    /// The name of the innermost member that contains it.
    name: &'p str,
    pub(crate) text: Cow<'p, str>,
}

/// Texts that continue each other, in the order in which they do: the parts of each, and then the next text.
#[derive(Debug, Default)]
pub(crate) struct Conversation {
    /// All of it.
    pub(crate) text: String,
    /// The positions of its strings, and the place of each in the text.
    pub(crate) strings: Vec<(usize, Range<usize>)>,
    /// The strings of each text in it, which has one location.
    pub(crate) texts: Vec<Range<usize>>,
    /// Whether its strings can be parts of longer ones.
    pub(crate) is_continued: bool,
}

impl Conversation {
    /// Returns the place of some of the strings in the text.
    pub(crate) fn place(&self, strings: &Range<usize>) -> Range<usize> {
        let of = self.strings.get(strings.clone()).unwrap_or_default();
        let start = of.first().map_or(0, |(_, place)| place.start);
        start..of.last().map_or(start, |(_, place)| place.end)
    }

    fn push(&mut self, position: usize, text: &str) {
        let start = self.text.len();
        self.text.push_str(text);
        self.strings.push((position, start..self.text.len()));
    }
}

/// Returns the parts of a body: one if it is a JSON document, otherwise its lines.
pub(crate) fn parts(body: &str) -> Vec<BodyPart<'_>> {
    each_part(body, false).collect()
}

/// Returns the parts of a body, of which each is read when it is asked for. One piece can be read as an outline.
fn each_part(body: &str, is_outline: bool) -> Box<dyn Iterator<Item = BodyPart<'_>> + '_> {
    let text = body.strip_prefix('\u{feff}').unwrap_or(body);
    let mark = body.strip_suffix(text).unwrap_or_default();
    let only = |data| Box::new(std::iter::once(BodyPart { before: mark, text, data, after: "" }));
    if let Some(value) = events::read(text, is_outline).filter(has_strings) {
        return only(PartData::Json(value));
    }
    let first = text.trim_start().lines().next().unwrap_or_default();
    if begins_as_json(text) && read(first).is_none() {
        return only(PartData::Unreadable);
    }
    let mark =
        (!mark.is_empty()).then_some(BodyPart { before: mark, text: "", data: PartData::Other, after: "" });
    Box::new(mark.into_iter().chain(text.split_inclusive(['\n', '\r']).map(line)))
}

fn line(line: &str) -> BodyPart<'_> {
    let content = line.trim_end_matches(['\n', '\r']);
    let (content, after) = line.split_at(content.len());
    let text = content.strip_prefix("data:");
    let is_data = text.is_some();
    let text = text.map_or(content, |text| text.strip_prefix(' ').unwrap_or(text));
    let before = content.strip_suffix(text).unwrap_or_default();
    let data = match read(text) {
        Some(value) => PartData::Json(value),
        None if text.trim() == "[DONE]" => PartData::Other,
        None if begins_as_json(text) => PartData::Unreadable,
        None if is_data => PartData::Text,
        None => PartData::Other,
    };
    BodyPart { before, text, data, after }
}

/// Returns whether a text begins as a document that can have strings.
pub(super) fn begins_as_json(text: &str) -> bool {
    text.trim_start().starts_with(['{', '[']) && text.contains('"')
}

pub(super) fn read(text: &str) -> Option<Value<'_>> {
    events::read(text, false).filter(has_strings)
}

/// Returns whether a value can have strings. A number can be a part of a text that is not JSON.
fn has_strings(value: &Value<'_>) -> bool {
    matches!(value, Value::Object(_) | Value::Array(_) | Value::String(_))
}

/// Returns the strings of the parts, in their order.
pub(crate) fn strings<'p>(parts: &'p [BodyPart<'_>]) -> Vec<BodyString<'p>> {
    collected(parts.len() > 1, |reader| parts.iter().for_each(|part| reader.part(part)))
}

/// Returns the strings of a document.
pub(super) fn strings_of<'v>(value: &'v Value<'_>) -> Vec<BodyString<'v>> {
    collected(false, |reader| reader.read(value, Place::default()))
}

fn collected<'p>(is_stream: bool, read: impl FnOnce(&mut StringReader<'_, 'p>)) -> Vec<BodyString<'p>> {
    let (locations, mut found) = (Locations::default(), Vec::new());
    read(&mut StringReader { locations: &locations, is_stream, found: &mut |string| found.push(string) });
    found
}

/// A step to a location in a document.
#[derive(Clone, Copy, Hash)]
enum Step<'s> {
    Name(&'s str),
    Position(usize),
    /// The indexes that an object states.
    Stated(&'s str),
}

/// Makes digests of locations. A location is not written out: it can be long, and contain many strings.
#[derive(Default)]
struct Locations {
    hasher: RandomState,
}

impl Locations {
    fn inside(&self, location: u64, step: Step<'_>) -> u64 {
        self.hasher.hash_one((location, step))
    }

    fn member<'p>(&self, place: &Place<'p>, name: &'p str) -> Place<'p> {
        // The beginning of a block is continued by its deltas.
        let step = Step::Name(if name == "content_block" { "delta" } else { name });
        let is_apart =
            is_named(name, |names| names.descriptions) || is_named(name, |names| names.probabilities);
        Place {
            location: self.inside(place.location, step),
            form: self.inside(place.form, step),
            name,
            is_apart: place.is_apart || is_apart,
            ..*place
        }
    }
}

/// Where a string is.
#[derive(Clone, Copy, Default)]
struct Place<'p> {
    location: u64,
    /// The location without indexes.
    form: u64,
    /// The location of the answer that it belongs to, if there can be several.
    alternative: Option<u64>,
    name: &'p str,
    /// Whether it is part of no conversation.
    is_apart: bool,
}

struct StringReader<'l, 'p> {
    locations: &'l Locations,
    is_stream: bool,
    /// Receives the strings.
    found: &'l mut dyn FnMut(BodyString<'p>),
}

impl<'p> StringReader<'_, 'p> {
    fn part(&mut self, part: &'p BodyPart<'_>) {
        match &part.data {
            PartData::Json(Value::Array(events)) => {
                // Gemini sends events as an array, of which each element continues the text of the one before.
                self.is_stream = true;
                for event in events {
                    self.read(event, Place::default());
                }
            }
            PartData::Json(value) => self.read(value, Place::default()),
            PartData::Text => {
                let location = self.locations.inside(0, Step::Name("data"));
                self.read_text(
                    Cow::Borrowed(part.text),
                    Place { location, name: "data", ..Place::default() },
                );
            }
            PartData::Other | PartData::Unreadable => {}
        }
    }

    fn read(&mut self, value: &'p Value<'_>, place: Place<'p>) {
        match value {
            Value::String(text) => self.read_text(Cow::Borrowed(text), place),
            Value::Array(elements) => {
                if let Some(text) = spelled(elements) {
                    self.read_text(Cow::Owned(text), Place { is_apart: true, ..place });
                    return;
                }
                for (position, element) in elements.iter().enumerate() {
                    let has_index = !index(element).is_empty();
                    let location = if has_index {
                        place.location
                    } else {
                        self.locations.inside(place.location, Step::Position(position))
                    };
                    self.read(element, Place { location, ..place });
                }
            }
            Value::Object(members) => {
                let place = self.inside(value, place);
                for (name, member) in members.iter() {
                    let place = self.locations.member(&place, name);
                    self.read(member, place);
                }
            }
            _ => {}
        }
    }

    /// Returns the place of the members of an object.
    fn inside(&mut self, object: &Value<'_>, mut place: Place<'p>) -> Place<'p> {
        let stated = index(object);
        if !stated.is_empty() {
            place.location = self.locations.inside(place.location, Step::Stated(&stated));
        }
        if is_named(place.name, |names| names.alternatives) {
            place.alternative = Some(place.location);
        }
        place
    }

    fn read_text(&mut self, text: Cow<'p, str>, place: Place<'p>) {
        let Place { location, form, alternative, name, is_apart } = place;
        let class = if is_named(name, |names| names.messages) { "text" } else { name };
        // Events state a text in several forms, each of which is complete.
        let owner = alternative.unwrap_or(if self.is_stream { form } else { 0 });
        let is_continued = !is_apart && !is_named(name, |names| names.repeated);
        let conversation = is_continued.then(|| self.locations.inside(owner, Step::Name(class)));
        (self.found)(BodyString { location, conversation, name, text });
    }
}

/// Returns the text that an array spells by the numbers of its bytes.
pub(super) fn spelled(elements: &[Value<'_>]) -> Option<String> {
    let byte = |element: &Value<'_>| match element {
        Value::Number(number) => number.literal().parse::<u8>().ok(),
        _ => None,
    };
    let bytes = elements.iter().map(byte).collect::<Option<Vec<u8>>>().filter(|bytes| !bytes.is_empty())?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// Returns the indexes that an object states; empty if there are none.
fn index(value: &Value<'_>) -> String {
    let stated = INDEXES.iter().filter_map(|name| match value.get(name)? {
        Value::Number(number) => Some(format!("#{}", number.literal())),
        Value::String(text) => Some(format!("#{text}")),
        _ => None,
    });
    stated.collect()
}

/// Returns the conversations that strings make, in the order of the first string of each.
pub(crate) fn conversations(strings: &[BodyString<'_>]) -> Vec<Conversation> {
    // The number of the conversation of each string, and that of its text in it.
    let mut numbers = HashMap::new();
    let mut texts: Vec<Vec<Vec<usize>>> = Vec::new();
    let mut text_numbers = HashMap::new();
    let mut apart = Vec::new();
    for (position, string) in strings.iter().enumerate() {
        let number = match string.conversation {
            Some(key) => *numbers.entry(key).or_insert(texts.len()),
            None => texts.len(),
        };
        if number == texts.len() {
            texts.push(Vec::new());
            apart.push(string.conversation.is_none());
        }
        let Some(of) = texts.get_mut(number) else { continue };
        let text = *text_numbers.entry((number, string.location)).or_insert(of.len());
        match of.get_mut(text) {
            Some(text) => text.push(position),
            None => of.push(vec![position]),
        }
    }
    let made = texts.into_iter().zip(apart).map(|(texts, is_apart)| {
        let mut made = Conversation { is_continued: !is_apart, ..Conversation::default() };
        for text in texts {
            let first = made.strings.len();
            for position in text {
                made.push(position, strings.get(position).map_or("", |string| &string.text));
            }
            made.texts.push(first..made.strings.len());
        }
        made
    });
    made.collect()
}

/// The texts of conversations, of which each string is added when it is read.
#[derive(Default)]
struct TextCollector<'p> {
    /// The texts of each conversation, in the order of the first string of each.
    conversations: Vec<Vec<Cow<'p, str>>>,
    numbers: HashMap<ConversationKey, usize>,
    /// The numbers of texts in their conversations, by that of the conversation and the location.
    text_numbers: HashMap<(usize, u64), usize>,
    /// The strings that are part of no conversation, with a line for each.
    apart: Option<String>,
}

impl<'p> TextCollector<'p> {
    fn add(&mut self, string: BodyString<'p>) {
        let BodyString { location, conversation, text, .. } = string;
        let Some(key) = conversation else {
            let apart = self.apart.get_or_insert_default();
            if !apart.is_empty() {
                apart.push('\n');
            }
            apart.push_str(&text);
            return;
        };
        let number = *self.numbers.entry(key).or_insert(self.conversations.len());
        if number == self.conversations.len() {
            self.conversations.push(Vec::new());
        }
        let Some(texts) = self.conversations.get_mut(number) else { return };
        let position = *self.text_numbers.entry((number, location)).or_insert(texts.len());
        match texts.get_mut(position) {
            Some(before) => before.to_mut().push_str(&text),
            None => texts.push(text),
        }
    }

    /// Calls `visit` with what escapes in the texts stand for, with the texts of each conversation together, and with the
    /// strings that are part of none.
    fn visit(self, visit: &mut dyn FnMut(&str)) {
        for text in self.conversations.iter().flatten() {
            if begins_as_json(text) && read(text).is_some() {
                // Arguments of tools are JSON in a string.
                visit_decoded(text, visit);
            } else if text.contains('\\') {
                // In an outline, a long string is as it was written.
                pieces(text).for_each(|piece| visit(&unescaped(piece)));
            }
        }
        for texts in self.conversations {
            match texts.as_slice() {
                [only] => visit(only),
                texts => visit(&texts.concat()),
            }
        }
        if let Some(apart) = self.apart {
            visit(&apart);
        }
    }
}

/// Calls `visit` with the texts of a body with escapes decoded and the parts of streams put together: one for each
/// conversation, and one of all strings that are part of none, with a line for each. Of the events of a stream, only the texts
/// are in memory together.
pub(crate) fn visit_decoded(body: &str, visit: &mut dyn FnMut(&str)) {
    let mut parts = each_part(body, true);
    let Some(first) = parts.next() else { return };
    let locations = Locations::default();
    let Some(second) = parts.next() else {
        let mut texts = TextCollector::default();
        let mut add = |string| texts.add(string);
        StringReader { locations: &locations, is_stream: false, found: &mut add }.part(&first);
        texts.visit(visit);
        return;
    };
    let mut texts: TextCollector<'static> = TextCollector::default();
    for part in [first, second].into_iter().chain(parts) {
        let mut add = |string: BodyString<'_>| {
            let BodyString { location, conversation, text, .. } = string;
            texts.add(BodyString { location, conversation, name: "", text: Cow::Owned(text.into_owned()) });
        };
        StringReader { locations: &locations, is_stream: true, found: &mut add }.part(&part);
    }
    texts.visit(visit);
}

/// Number of bytes of a text in which escapes are decoded at a time, and of those that are decoded again with the next
/// ones, because what is looked for can begin in them.
const PIECE: usize = 4 << 20;
const OVERLAP: usize = 64 << 10;

/// Returns the pieces of a text, which overlap: usually one.
fn pieces(text: &str) -> impl Iterator<Item = &str> {
    let starts = (0..text.len().saturating_sub(OVERLAP).max(1)).step_by(PIECE - OVERLAP);
    let boundary = |at: usize| (0..=at).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    starts.filter_map(move |start| text.get(boundary(start)..boundary(text.len().min(start + PIECE))))
}

/// Levels of escapes that are decoded in a text that is not JSON. Each doubles the number of backslashes.
const ESCAPES: usize = 8;

/// Returns a text in which escapes of JSON are decoded wherever they are, also escapes of escapes.
pub(super) fn unescaped(text: &str) -> String {
    let mut text = Cow::Borrowed(text);
    for _ in 0..ESCAPES {
        if !text.contains('\\') {
            break;
        }
        text = Cow::Owned(unescaped_once(&text));
    }
    text.into_owned()
}

fn unescaped_once(text: &str) -> String {
    let mut decoded = String::with_capacity(text.len());
    // Two escapes of halves of a character follow each other.
    let mut units: Vec<u16> = Vec::new();
    let mut rest = text;
    loop {
        let (before, after) =
            rest.split_once('\\').map_or((rest, None), |(before, after)| (before, Some(after)));
        if !before.is_empty() || after.is_none() {
            decoded.push_str(&String::from_utf16_lossy(&units));
            units.clear();
            decoded.push_str(before);
        }
        let Some(after) = after else { return decoded };
        let mut characters = after.chars();
        let escape = characters.next();
        rest = characters.as_str();
        let digits = rest.get(..4).filter(|_| escape == Some('u'));
        if let Some(unit) = digits.and_then(|digits| u16::from_str_radix(digits, 16).ok()) {
            units.push(unit);
            rest = rest.get(4..).unwrap_or_default();
            continue;
        }
        let character = match escape {
            Some('n') => Some('\n'),
            Some('t') => Some('\t'),
            Some('r') => Some('\r'),
            // The text was broken off in the escape.
            Some('u') if rest.len() < 4 => {
                rest = "";
                None
            }
            other => other,
        };
        units.extend(character.into_iter().flat_map(|character| {
            let mut pair = [0; 2];
            character.encode_utf16(&mut pair).to_vec()
        }));
    }
}

/// Returns whether a body says that its text was cut off, or is a stream of a known form that does not say that it ended.
pub(super) fn is_cut_off(parts: &[BodyPart<'_>], strings: &[BodyString<'_>]) -> bool {
    let mut has_reason = false;
    for string in strings.iter().filter(|string| is_named(string.name, |names| names.end_reasons)) {
        if is_named(&string.text, |names| names.cut_off) {
            return true;
        }
        has_reason = true;
    }
    let types = || strings.iter().filter(|string| string.name == "type");
    let is_stream = types().any(|string| answer_forms().any(|form| form.has_event(&string.text)))
        || strings.iter().any(|string| string.name == "object" && string.text.ends_with(".chunk"));
    let has_ended = types().any(|string| answer_forms().any(|form| form.is_last_event(&string.text)))
        || parts.iter().any(|part| part.text.trim() == "[DONE]");
    is_stream && !has_reason && !has_ended
}

#[cfg(test)]
mod tests;

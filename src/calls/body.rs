//! The texts in the body of a request or a response: those of a JSON document, or of the events or lines of a stream.

use std::borrow::Cow;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::{BuildHasher, RandomState};
use std::ops::Range;

use crate::conversation::events;
use crate::conversation::providers::{answer_forms, is_named};
use crate::json::Value;
use crate::json::tokens::{DocumentBuilder, JsonToken};

/// The members with which events say to which part of an answer they belong.
const INDEXES: [&str; 5] = ["index", "output_index", "content_index", "contentBlockIndex", "item_id"];

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
pub(crate) struct ContinuedText {
    /// All of it.
    pub(crate) text: String,
    /// The positions of its strings, and the place of each in the text.
    pub(crate) strings: Vec<(usize, Range<usize>)>,
    /// The strings of each text in it, which has one location.
    pub(crate) texts: Vec<Range<usize>>,
    /// Whether its strings can be parts of longer ones.
    pub(crate) is_continued: bool,
}

impl ContinuedText {
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
    let text = without_mark(body);
    let mark = body.strip_suffix(text).unwrap_or_default();
    let part = |before, text, data| BodyPart { before, text, data, after: "" };
    if let Some(value) = read(text) {
        return vec![part(mark, text, PartData::Json(value))];
    }
    if is_unreadable(text) {
        return vec![part(mark, text, PartData::Unreadable)];
    }
    let mark = (!mark.is_empty()).then_some(part(mark, "", PartData::Other));
    mark.into_iter().chain(lines(text).map(line)).collect()
}

/// Returns a body without the byte order mark.
fn without_mark(body: &str) -> &str {
    body.strip_prefix('\u{feff}').unwrap_or(body)
}

/// Returns whether a body that is not a JSON document begins as one, and not as lines of them.
fn is_unreadable(text: &str) -> bool {
    let first = text.trim_start().lines().next().unwrap_or_default();
    begins_as_json(text) && read(first).is_none()
}

fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.split_inclusive(['\n', '\r'])
}

/// Returns the text before the data of a line, the data, and the end of the line.
fn data_of(line: &str) -> (&str, &str, &str) {
    let content = line.trim_end_matches(['\n', '\r']);
    let (content, after) = line.split_at(content.len());
    let text = content.strip_prefix("data:").map(|text| text.strip_prefix(' ').unwrap_or(text));
    let text = text.unwrap_or(content);
    (content.strip_suffix(text).unwrap_or_default(), text, after)
}

fn line(line: &str) -> BodyPart<'_> {
    let (before, text, after) = data_of(line);
    let is_data = !before.is_empty();
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
    events::read(text).filter(has_strings)
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
    /// The digest of the name of a conversation. A name can be long, and the member contain many strings.
    Class(u64),
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

    /// Returns the digest of the name of the conversations of strings in a member with this name.
    fn class(&self, name: &str) -> u64 {
        let name = if is_named(name, |names| names.messages) { "text" } else { name };
        self.inside(0, Step::Name(name))
    }

    fn member<'p>(&self, place: &Place<'p>, name: &'p str) -> Place<'p> {
        // The beginning of a block is continued by its deltas.
        let step = Step::Name(if name == "content_block" { "delta" } else { name });
        Place {
            location: self.inside(place.location, step),
            form: self.inside(place.form, step),
            name,
            class: self.class(name),
            is_apart: place.is_apart || is_apart(name),
            ..*place
        }
    }
}

/// Returns whether the strings in a member with this name are parts of no conversation.
fn is_apart(name: &str) -> bool {
    is_named(name, |names| names.descriptions) || is_named(name, |names| names.probabilities)
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
    class: u64,
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
                let place = self.locations.member(&Place::default(), "data");
                self.read_text(Cow::Borrowed(part.text), Place { form: 0, ..place });
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
        let Place { location, form, alternative, name, class, is_apart } = place;
        // Events state a text in several forms, each of which is complete.
        let owner = alternative.unwrap_or(if self.is_stream { form } else { 0 });
        let is_continued = !is_apart && !is_named(name, |names| names.repeated);
        let conversation = is_continued.then(|| self.locations.inside(owner, Step::Class(class)));
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
pub(crate) fn conversations(strings: &[BodyString<'_>]) -> Vec<ContinuedText> {
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
        let mut made = ContinuedText { is_continued: !is_apart, ..ContinuedText::default() };
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
    conversations: Vec<CollectedTexts<'p>>,
    numbers: HashMap<ConversationKey, usize>,
    /// The numbers of texts in their conversations, by that of the conversation and the location.
    text_numbers: HashMap<(usize, u64), usize>,
    /// The strings that are part of no conversation, with a line for each.
    apart: Option<String>,
}

/// The texts of a conversation.
#[derive(Default)]
struct CollectedTexts<'p> {
    texts: Vec<Cow<'p, str>>,
    /// Whether the last one is several short ones.
    is_joined: bool,
}

/// The most bytes of a text that is kept with others, because it would take more memory by itself, and of those together.
const SHORT: usize = 256;
const MAX_JOINED: usize = 64 << 10;

/// The most conversations of a body whose texts are put together. Most have a few, and each takes memory.
const MAX_CONVERSATIONS: usize = 10_000;

impl<'p> TextCollector<'p> {
    /// Adds a string. One without a location continues no other one.
    fn add(&mut self, conversation: Option<ConversationKey>, location: Option<u64>, text: Cow<'p, str>) {
        let Some(number) = conversation.and_then(|key| self.number(key)) else {
            match &mut self.apart {
                Some(apart) => {
                    apart.push('\n');
                    apart.push_str(&text);
                }
                apart => *apart = Some(text.into_owned()),
            }
            return;
        };
        let Some(of) = self.conversations.get_mut(number) else { return };
        let Some(location) = location else { return of.push(text) };
        let position = *self.text_numbers.entry((number, location)).or_insert(of.texts.len());
        match of.texts.get_mut(position) {
            Some(before) => before.to_mut().push_str(&text),
            None => of.texts.push(text),
        }
    }

    /// Returns the number of a conversation; `None` if there are too many others.
    fn number(&mut self, key: ConversationKey) -> Option<usize> {
        let next = self.conversations.len();
        let is_full = next == MAX_CONVERSATIONS;
        match self.numbers.entry(key) {
            Entry::Occupied(known) => Some(*known.get()),
            Entry::Vacant(_) if is_full => None,
            Entry::Vacant(new) => {
                self.conversations.push(CollectedTexts::default());
                Some(*new.insert(next))
            }
        }
    }

    fn add_owned(&mut self, string: BodyString<'_>) {
        let BodyString { location, conversation, text, .. } = string;
        self.add(conversation, Some(location), Cow::Owned(text.into_owned()));
    }

    /// Calls `visit` with what escapes in the texts stand for, with the texts of each conversation together, and with the
    /// strings that are part of none.
    fn visit(self, visit: &mut dyn FnMut(&str)) {
        for text in self.conversations.iter().flat_map(|conversation| &conversation.texts) {
            if begins_as_json(text) && read(text).is_some() {
                // Arguments of tools are JSON in a string.
                visit_decoded(text, visit);
            } else if text.contains('\\') {
                // A long string is as it was written.
                pieces(text).for_each(|piece| visit(&unescaped(piece)));
            }
        }
        for CollectedTexts { texts, .. } in self.conversations {
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

impl<'p> CollectedTexts<'p> {
    fn push(&mut self, text: Cow<'p, str>) {
        let is_short = text.len() <= SHORT && !text.contains('\\') && !begins_as_json(&text);
        match self.texts.last_mut() {
            Some(last) if is_short && self.is_joined && last.len() < MAX_JOINED => {
                last.to_mut().push_str(&text);
            }
            _ => self.texts.push(text),
        }
        self.is_joined = is_short;
    }
}

/// Collects the texts of a document while it is read, so that it is not in memory as a value.
#[derive(Default)]
struct DocumentTexts<'p> {
    texts: TextCollector<'p>,
    locations: Locations,
    /// The arrays and objects that are open.
    open: Vec<OpenPart>,
    /// The number of answers so far, of those that there can be several of.
    alternatives: usize,
    /// Whether it is an array, of which each element continues the texts of the one before: Gemini sends events like this.
    events: Option<DocumentBuilder<'p>>,
    has_strings: bool,
}

/// An array or an object that is being read.
#[derive(Clone, Default)]
struct OpenPart {
    /// The innermost member that contains what is read now.
    member: OpenMember,
    /// The answer that it belongs to, if there can be several.
    owner: u64,
    /// Whether it is part of no conversation.
    is_apart: bool,
    /// What an array spells so far by the numbers of bytes; `None` if it spells nothing.
    bytes: Option<Vec<u8>>,
}

/// What the name of a member says of the strings in it.
#[derive(Clone, Copy, Default)]
struct OpenMember {
    class: u64,
    is_repeated: bool,
    is_apart: bool,
    has_alternatives: bool,
}

impl<'p> DocumentTexts<'p> {
    /// Reads a document. Returns `None` if it is not one that can have strings.
    fn read(text: &'p str) -> Option<TextCollector<'p>> {
        let read = events::collect(text, Self::default, Self::add)?;
        read.has_strings.then_some(read.texts)
    }

    fn add(&mut self, token: JsonToken<'p>) {
        if self.open.is_empty() && self.events.is_none() {
            self.has_strings = !matches!(&token, JsonToken::Scalar(value) if !has_strings(value));
            self.events = (token == JsonToken::Array).then(DocumentBuilder::default);
        }
        if let Some(builder) = &mut self.events {
            if let Some(event) = builder.add(token) {
                let mut add = |string| self.texts.add_owned(string);
                let locations = &self.locations;
                StringReader { locations, is_stream: true, found: &mut add }.read(&event, Place::default());
            }
            return;
        }
        match token {
            JsonToken::Name(name) => {
                if let Some(part) = self.open.last_mut() {
                    part.member = OpenMember {
                        class: self.locations.class(&name),
                        is_repeated: is_named(&name, |names| names.repeated),
                        is_apart: part.is_apart || is_apart(&name),
                        has_alternatives: is_named(&name, |names| names.alternatives),
                    };
                }
            }
            JsonToken::Array => self.begin(Some(Vec::new())),
            JsonToken::Object => self.begin(None),
            JsonToken::Scalar(value) => self.scalar(value),
            JsonToken::End => {
                let spelled = self.open.pop().and_then(|part| part.bytes).filter(|bytes| !bytes.is_empty());
                if let Some(bytes) = spelled {
                    let text = String::from_utf8(bytes)
                        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned());
                    self.texts.add(None, None, Cow::Owned(text));
                }
            }
        }
    }

    fn begin(&mut self, bytes: Option<Vec<u8>>) {
        let mut part = OpenPart::default();
        if let Some(outside) = self.open.last_mut() {
            outside.bytes = None;
            part = OpenPart { is_apart: outside.member.is_apart, ..outside.clone() };
        }
        part.bytes = bytes;
        if part.bytes.is_none() && part.member.has_alternatives {
            self.alternatives += 1;
            part.owner = self.locations.inside(0, Step::Position(self.alternatives));
        }
        self.open.push(part);
    }

    fn scalar(&mut self, value: Value<'p>) {
        let mut only = OpenPart::default();
        let part = self.open.last_mut().unwrap_or(&mut only);
        match value {
            Value::Number(number) => {
                let byte = number.literal().parse().ok();
                part.bytes = part.bytes.take().zip(byte).map(|(mut bytes, byte)| {
                    bytes.push(byte);
                    bytes
                });
            }
            Value::String(text) => {
                part.bytes = None;
                let OpenPart { owner, member: OpenMember { class, is_repeated, is_apart, .. }, .. } = *part;
                let is_continued = !is_apart && !is_repeated;
                let key = is_continued.then(|| self.locations.inside(owner, Step::Class(class)));
                self.texts.add(key, None, text);
            }
            _ => part.bytes = None,
        }
    }
}

/// The most bytes of a line of a stream that is read as a value, to find the texts that it continues.
const LONG_LINE: usize = 1 << 20;

/// Calls `visit` with the texts of a body with escapes decoded and the parts of streams put together: one for each
/// conversation, and one of all strings that are part of none, with a line for each. Of a document, and of the events of a
/// stream, only the texts are in memory together.
pub(crate) fn visit_decoded(body: &str, visit: &mut dyn FnMut(&str)) {
    let text = without_mark(body);
    if let Some(texts) = DocumentTexts::read(text) {
        return texts.visit(visit);
    }
    if is_unreadable(text) {
        return;
    }
    let locations = Locations::default();
    let is_stream = text.len() < body.len() || lines(text).nth(1).is_some();
    let mut texts = TextCollector::default();
    for one in lines(text) {
        if one.len() > LONG_LINE
            && let Some(texts) = DocumentTexts::read(data_of(one).1)
        {
            texts.visit(visit);
            continue;
        }
        let mut add = |string| texts.add_owned(string);
        StringReader { locations: &locations, is_stream, found: &mut add }.part(&line(one));
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

use super::{MemberBytes, Place};
use crate::digest::Digest;
use crate::json::Value;
use crate::json::reader::{Limits, ReadError};

/// A searchable text of an artifact.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Passage {
    /// The field that it belongs to.
    pub field: Field,
    /// The unit of the location, such as `step`; empty if it is a pointer.
    pub unit: &'static str,
    /// The location.
    pub place: Place,
    /// The text.
    pub text: String,
}

/// The fields of passages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Field {
    /// The response of a model.
    Response,
    /// The prompt of a model.
    Prompt,
    /// The name of a tool and its arguments.
    Tool,
    /// The output of a tool or a step, including errors.
    Output,
    /// The name and description of a step.
    Step,
    /// The refs and effects of a contract.
    Contract,
    /// The files of a pack, without its session.
    Pack,
}

impl Field {
    /// Every field.
    pub const ALL: [Self; 7] =
        [Self::Response, Self::Prompt, Self::Tool, Self::Output, Self::Step, Self::Contract, Self::Pack];

    /// Returns the name, such as `response`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Response => "response",
            Self::Prompt => "prompt",
            Self::Tool => "tool",
            Self::Output => "output",
            Self::Step => "step",
            Self::Contract => "contract",
            Self::Pack => "pack",
        }
    }
}

/// A collector of the passages of an artifact, in document order.
#[derive(Default)]
pub struct Passages {
    gathered: Vec<Passage>,
}

impl Passages {
    /// Adds a text at the interaction, step or record `index`, unless it is blank.
    pub fn add_at(&mut self, field: Field, unit: &'static str, index: usize, text: impl Into<String>) {
        let place = Place::Index(u32::try_from(index).unwrap_or(u32::MAX));
        self.add(Passage { field, unit, place, text: text.into() });
    }

    /// Adds a text at a JSON Pointer, unless it is blank.
    pub fn add_pointer(&mut self, field: Field, pointer: String, text: impl Into<String>) {
        self.add(Passage { field, unit: "", place: Place::Pointer(pointer), text: text.into() });
    }

    fn add(&mut self, passage: Passage) {
        if passage.text.contains(|character: char| !character.is_whitespace()) {
            self.gathered.push(passage);
        }
    }

    /// Returns the collected passages.
    #[must_use]
    pub fn into_vec(self) -> Vec<Passage> {
        self.gathered
    }
}

/// Returns the words in `value` as readable text: one line for each string and number, prefixed by the name of its
/// member. Digests are omitted: they are indexed as mentions.
#[must_use]
pub fn words_of(value: &Value<'_>) -> String {
    let mut words = String::new();
    write_words(value, "", &mut words);
    words.truncate(words.trim_end().len());
    words
}

fn write_words(value: &Value<'_>, name: &str, words: &mut String) {
    match value {
        Value::String(text) => write_line(text, name, words),
        Value::Number(number) => write_line(number.literal(), name, words),
        Value::Bool(truth) => write_line(if *truth { "true" } else { "false" }, name, words),
        Value::Array(elements) => elements.iter().for_each(|element| write_words(element, name, words)),
        Value::Object(object) => object.iter().for_each(|(name, member)| write_words(member, name, words)),
        Value::Null => {}
    }
}

fn write_line(text: &str, name: &str, words: &mut String) {
    if Digest::parse_either(text).is_some() {
        return;
    }
    if !name.is_empty() {
        words.push_str(name);
        words.push_str(": ");
    }
    words.push_str(text);
    words.push('\n');
}

/// A function that returns the passages of a document.
pub(super) type OfDocument = fn(&[u8], &Limits) -> Result<Vec<Passage>, ReadError>;

/// A function that returns the passages of a directory.
pub(super) type OfDirectory = fn(&[MemberBytes<'_>], &Limits) -> Result<Vec<Passage>, ReadError>;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::reader;

    #[test]
    fn words_are_lines_with_their_names_and_without_digests() {
        let digest = Digest::from_content(b"x");
        let text = format!(
            r#"{{"tool": "lookup", "args": {{"city": "Paris\nFrance", "days": [1, 2.50], "dry": true, "none": null}},
                "seen": "{digest}", "bare": "{}", "empty": {{}}}}"#,
            digest.hex()
        );
        let value = reader::read(text.as_bytes(), &Limits::default()).unwrap();
        assert_eq!(words_of(&value), "tool: lookup\ncity: Paris\nFrance\ndays: 1\ndays: 2.50\ndry: true");
        assert_eq!(words_of(&Value::String("only a text ".into())), "only a text");
    }

    #[test]
    fn blank_texts_are_no_passages() {
        let mut passages = Passages::default();
        passages.add_at(Field::Response, "interaction", 0, " \n\t");
        passages.add_pointer(Field::Pack, "run.json".to_owned(), "");
        assert_eq!(passages.into_vec(), []);
    }
}

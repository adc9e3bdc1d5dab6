use super::mention::ArtifactLocation;
use crate::digest::Digest;
use crate::json::Value;

/// A searchable text of an artifact.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Passage {
    /// The field that it belongs to.
    pub field: Field,
    /// The unit of the location, such as `step`; empty if it is a pointer.
    pub unit: &'static str,
    /// The location.
    pub place: ArtifactLocation,
    /// The text.
    pub text: String,
}

/// A field of passages, such as the responses of models. Kinds declare the fields that only they have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Field(&'static str);

impl Field {
    /// The response of a model.
    pub const RESPONSE: Self = Self("response");
    /// The prompt of a model.
    pub const PROMPT: Self = Self("prompt");
    /// The name of a tool and its arguments.
    pub const TOOL: Self = Self("tool");
    /// The output of a tool or a step, including errors.
    pub const OUTPUT: Self = Self("output");
    /// The name and description of a step.
    pub const STEP: Self = Self("step");

    /// The fields that several kinds have.
    pub const SHARED: [Self; 5] = [Self::RESPONSE, Self::PROMPT, Self::TOOL, Self::OUTPUT, Self::STEP];

    /// Creates a field of one kind. The name consists of lowercase letters, and is a column of the search index.
    #[must_use]
    pub const fn new(name: &'static str) -> Self {
        Self(name)
    }

    /// Returns the name, such as `response`.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.0
    }
}

/// A collector of the passages of an artifact, in document order.
#[derive(Default)]
pub struct PassageCollector {
    gathered: Vec<Passage>,
}

impl PassageCollector {
    /// Adds a text at the interaction, step or record `index`, unless it is blank.
    pub fn add_at(&mut self, field: Field, unit: &'static str, index: usize, text: impl Into<String>) {
        let place = ArtifactLocation::Index(u32::try_from(index).unwrap_or(u32::MAX));
        self.add(Passage { field, unit, place, text: text.into() });
    }

    /// Adds a text at a JSON Pointer, unless it is blank.
    pub fn add_pointer(&mut self, field: Field, pointer: String, text: impl Into<String>) {
        self.add(Passage { field, unit: "", place: ArtifactLocation::Pointer(pointer), text: text.into() });
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::reader::{self, Limits};

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
        let mut passages = PassageCollector::default();
        passages.add_at(Field::RESPONSE, "interaction", 0, " \n\t");
        passages.add_pointer(Field::new("pack"), "run.json".to_owned(), "");
        assert_eq!(passages.into_vec(), []);
    }
}

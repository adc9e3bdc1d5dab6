//! JSON for reading: a line for each value, members in their order, numbers as their literals, and no more text than
//! wanted. It is never hashed.

use super::Value;
use super::text::push_escaped;

/// The number of columns by which each level is indented.
const INDENT: usize = 2;

/// The beginning of a text, with the size of the whole.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TruncatedText {
    /// The beginning.
    pub text: String,
    /// The size of the whole text in bytes.
    pub size: u64,
    /// The number of characters that are not part of the beginning.
    pub omitted: u64,
    /// The maximum number of characters that may still be added to the beginning.
    left: u64,
}

impl TruncatedText {
    /// Creates an empty text of which at most `most` characters are kept.
    fn new(most: u64) -> Self {
        Self { left: most, ..Self::default() }
    }

    /// Returns the beginning of `text`, of at most `most` characters.
    #[must_use]
    pub fn from_text(text: &str, most: u64) -> Self {
        let mut truncated = Self::new(most);
        truncated.push(text);
        truncated
    }

    /// Returns the beginning of the pretty text of `value`, of at most `most` characters.
    #[must_use]
    pub fn from_value(value: &Value<'_>, most: u64) -> Self {
        let mut truncated = Self::new(most);
        write(value, 0, &mut truncated);
        truncated
    }

    fn push(&mut self, text: &str) {
        self.size += text.len() as u64;
        let characters = if text.is_ascii() { text.len() } else { text.chars().count() } as u64;
        if characters <= self.left {
            self.left -= characters;
            self.text.push_str(text);
            return;
        }
        let end = usize::try_from(self.left).ok().and_then(|left| text.char_indices().nth(left));
        self.text.push_str(end.and_then(|(end, _)| text.get(..end)).unwrap_or(text));
        self.omitted += characters - self.left;
        self.left = 0;
    }

    fn string(&mut self, text: &str) {
        self.push("\"");
        // The pieces are split at ASCII characters.
        push_escaped(text, |piece| self.push(&String::from_utf8_lossy(piece)));
        self.push("\"");
    }

    fn line(&mut self, depth: usize) {
        self.push("\n");
        self.push(&" ".repeat(depth * INDENT));
    }
}

fn write(value: &Value<'_>, depth: usize, out: &mut TruncatedText) {
    match value {
        Value::Null => out.push("null"),
        Value::Bool(true) => out.push("true"),
        Value::Bool(false) => out.push("false"),
        Value::Number(number) => out.push(number.literal()),
        Value::String(text) => out.string(text),
        Value::Array(elements) if elements.is_empty() => out.push("[]"),
        Value::Array(elements) => {
            out.push("[");
            for (index, element) in elements.iter().enumerate() {
                out.push(if index > 0 { "," } else { "" });
                out.line(depth + 1);
                write(element, depth + 1, out);
            }
            out.line(depth);
            out.push("]");
        }
        Value::Object(object) if object.iter().len() == 0 => out.push("{}"),
        Value::Object(object) => {
            out.push("{");
            for (index, (name, member)) in object.iter().enumerate() {
                out.push(if index > 0 { "," } else { "" });
                out.line(depth + 1);
                out.string(name);
                out.push(": ");
                write(member, depth + 1, out);
            }
            out.line(depth);
            out.push("}");
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::reader::{self, Limits};
    use super::*;

    fn pretty(text: &str, most: u64) -> TruncatedText {
        let value = reader::read_keeping_overflow(text.as_bytes(), &Limits::default()).unwrap();
        TruncatedText::from_value(&value, most)
    }

    #[test]
    fn values_are_written_as_they_are_one_on_a_line() {
        let text = r#"{"b":[1E2,-0,[],{}],"a":{"é\n":"\u0000\"x"},"z":[true,null,36893488147419103232]}"#;
        let expected = "{\n  \"b\": [\n    1E2,\n    -0,\n    [],\n    {}\n  ],\n  \"a\": {\n    \"é\\n\": \"\\u0000\\\"x\"\n  },\n  \
                        \"z\": [\n    true,\n    null,\n    36893488147419103232\n  ]\n}";
        let TruncatedText { text, size, omitted, .. } = pretty(text, u64::MAX);
        assert_eq!((text.as_str(), size, omitted), (expected, expected.len() as u64, 0));
    }

    proptest! {
        #[test]
        fn a_beginning_and_what_is_omitted_are_the_whole(strings: Vec<String>, most in 0..80_u64) {
            let text = serde_json::to_string(&strings).unwrap();
            let (whole, part) = (pretty(&text, u64::MAX), pretty(&text, most));
            prop_assert_eq!(serde_json::from_str::<Vec<String>>(&whole.text).unwrap(), strings);
            prop_assert!(whole.text.starts_with(&part.text));
            prop_assert_eq!(part.text.chars().count() as u64 + part.omitted, whole.text.chars().count() as u64);
            prop_assert!(part.text.chars().count() as u64 <= most);
            prop_assert_eq!(part.size, whole.size);
            prop_assert_eq!(TruncatedText::from_text(&whole.text, most), part);
        }
    }
}

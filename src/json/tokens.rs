//! The tokens of a JSON text, and the values that they make.

use std::borrow::Cow;

use super::{Object, Value};

/// A part of a JSON text, in the order of the text.
#[derive(Debug, PartialEq)]
pub(crate) enum JsonToken<'a> {
    /// The beginning of an array.
    Array,
    /// The beginning of an object.
    Object,
    /// The name of the next member of the innermost object.
    Name(Cow<'a, str>),
    /// A value that is neither an array nor an object.
    Scalar(Value<'a>),
    /// The end of the innermost array or object.
    End,
}

impl JsonToken<'_> {
    /// Returns a token that borrows from no text.
    pub(crate) fn into_owned(self) -> JsonToken<'static> {
        match self {
            Self::Array => JsonToken::Array,
            Self::Object => JsonToken::Object,
            Self::Name(name) => JsonToken::Name(Cow::Owned(name.into_owned())),
            Self::Scalar(value) => JsonToken::Scalar(value.into_owned_value()),
            Self::End => JsonToken::End,
        }
    }
}

/// The most elements of all arrays together, and members of an object, that an outline has.
const MAX_OUTLINED: usize = 10_000;

/// The levels of arrays and objects that an outline has.
const OUTLINED_LEVELS: usize = 4;

/// Makes the documents of the tokens of a text: one, or the elements of an array, each of which can be forgotten before the
/// next one is made.
#[derive(Default)]
pub(crate) struct DocumentBuilder<'a> {
    /// The arrays and objects that are open, each with the name of its next member.
    open: Vec<(Value<'a>, Cow<'a, str>)>,
    is_in_list: bool,
    is_outline: bool,
    /// The number of elements of arrays in the document.
    elements: usize,
    /// The levels of what is being left out.
    left_out: usize,
}

impl<'a> DocumentBuilder<'a> {
    /// Returns a builder of outlines: they have the first four levels, and there the first 10,000 elements of arrays and the
    /// first 10,000 members of each object, so that they take little memory.
    pub(crate) fn outline() -> Self {
        Self { is_outline: true, ..Self::default() }
    }

    /// Adds a token. Returns the document that ends with it.
    pub(crate) fn add(&mut self, token: JsonToken<'a>) -> Option<Value<'a>> {
        if self.left_out > 0 {
            match token {
                JsonToken::Array | JsonToken::Object => self.left_out += 1,
                JsonToken::End => self.left_out -= 1,
                JsonToken::Name(_) | JsonToken::Scalar(_) => {}
            }
            return None;
        }
        let value = match token {
            JsonToken::Array if self.open.is_empty() && !self.is_in_list => {
                self.is_in_list = true;
                return None;
            }
            JsonToken::Array => return self.begin(Value::Array(Vec::new())),
            JsonToken::Object => return self.begin(Value::Object(Object::default())),
            JsonToken::Name(name) => {
                if let Some((_, next)) = self.open.last_mut() {
                    *next = name;
                }
                return None;
            }
            JsonToken::Scalar(_) if !self.has_room() => return None,
            JsonToken::Scalar(value) => value,
            JsonToken::End => self.open.pop()?.0,
        };
        self.end(value)
    }

    fn begin(&mut self, value: Value<'a>) -> Option<Value<'a>> {
        if self.is_outline && self.open.len() == OUTLINED_LEVELS || !self.has_room() {
            self.left_out = 1;
        } else {
            self.open.push((value, Cow::Borrowed("")));
        }
        None
    }

    /// Adds a value to the innermost array or object. Returns it if there is none.
    fn end(&mut self, value: Value<'a>) -> Option<Value<'a>> {
        match self.open.last_mut() {
            Some((Value::Array(elements), _)) => elements.push(value),
            Some((Value::Object(members), name)) => members.push(std::mem::take(name), value),
            _ => {
                self.elements = 0;
                return Some(value);
            }
        }
        None
    }

    /// Returns whether the innermost array or object can have a further value, which is counted.
    fn has_room(&mut self) -> bool {
        match self.open.last() {
            Some((Value::Array(_), _)) => {
                self.elements += 1;
                !self.is_outline || self.elements <= MAX_OUTLINED
            }
            Some((Value::Object(members), _)) => !self.is_outline || members.iter().len() < MAX_OUTLINED,
            _ => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::reader::{self, Limits};
    use super::*;
    use crate::json::compact;

    fn documents(mut builder: DocumentBuilder<'_>, text: &str) -> Vec<String> {
        let mut documents = Vec::new();
        let mut add = |token: JsonToken<'_>| documents.extend(builder.add(token.into_owned()));
        reader::visit(text.as_bytes(), &Limits::default(), &mut add).unwrap();
        documents.iter().map(compact::text).collect()
    }

    #[test]
    fn documents_are_those_of_the_text() {
        for (text, expected) in [
            (r#"{"a":[1,{"b":"\"","c":[]}],"d":null}"#, &[r#"{"a":[1,{"b":"\"","c":[]}],"d":null}"#][..]),
            (r#"[{"a":[1]},[2,[3]],4]"#, &[r#"{"a":[1]}"#, "[2,[3]]", "4"]),
            ("[]", &[]),
            ("\"a\"", &["\"a\""]),
        ] {
            assert_eq!(documents(DocumentBuilder::default(), text), expected);
        }
    }

    #[test]
    fn outlines_have_few_levels_and_values() {
        let text = r#"{"a":[{"b":{"c":1,"d":[{"e":2},3],"f":4}}],"g":5}"#;
        assert_eq!(documents(DocumentBuilder::outline(), text), [r#"{"a":[{"b":{"c":1,"f":4}}],"g":5}"#]);
        let many = |value: &str| format!("{value}{}", format!(",{value}").repeat(MAX_OUTLINED));
        let members: Vec<String> = (0..=MAX_OUTLINED).map(|member| format!(r#""m{member}":"x""#)).collect();
        let [array, object] = [format!("[{}]", many("\"x\"")), format!("{{{}}}", members.join(","))];
        for (values, kept) in [
            (array.clone(), MAX_OUTLINED),
            (format!("[{}]", many(r#"{"a":"x"}"#)), MAX_OUTLINED),
            (format!("[[{array},{array}],{array}]"), MAX_OUTLINED - 2),
            (object, MAX_OUTLINED),
        ] {
            let text = format!(r#"{{"values":{values},"last":1}}"#);
            for text in [format!("[{text},{text}]"), text] {
                for outline in documents(DocumentBuilder::outline(), &text) {
                    assert_eq!(outline.matches("\"x\"").count(), kept);
                    assert!(outline.ends_with(r#","last":1}"#));
                }
            }
        }
    }
}

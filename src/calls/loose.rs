//! The loose comparison of requests: the results of tools, and identifiers, are not compared.

use std::borrow::Cow;
use std::sync::LazyLock;

use regex::{Captures, Regex};

use crate::json::{Object, Value};

/// Returns whether a member with this name has an identifier.
pub(crate) fn is_id(name: &str) -> bool {
    name.eq_ignore_ascii_case("id") || ["_id", "Id", "ID"].iter().any(|end| name.ends_with(end))
}

/// Returns whether a member of an object is not compared: an identifier, or what a tool returned. `at` are the names and
/// indexes of the object and of the member.
pub(super) fn leaves_out(object: &Object<'_>, at: &[String]) -> bool {
    let [before @ .., name] = at else { return false };
    let says = |member: &str| object.get(member).and_then(Value::as_str).unwrap_or_default();
    let of = before.last().map_or("", String::as_str);
    let is_result = match name.as_str() {
        "content" | "is_error" | "status" => {
            says("type") == "tool_result" || says("role") == "tool" || of == "toolResult"
        }
        "output" => says("type").ends_with("_call_output"),
        "response" => ["functionResponse", "function_response"].contains(&of),
        _ => false,
    };
    is_result || is_id(name)
}

/// Returns a text without identifiers: words of at least eight letters and digits that have both.
pub(super) fn without_ids(text: &str) -> Cow<'_, str> {
    static WORD: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new("[0-9A-Za-z]{8,}").ok());
    let Some(word) = &*WORD else { return Cow::Borrowed(text) };
    word.replace_all(text, |found: &Captures<'_>| {
        let word = found.get(0).map_or("", |word| word.as_str());
        let has = |kind: fn(&u8) -> bool| word.bytes().any(|byte| kind(&byte));
        let is_id = has(u8::is_ascii_digit) && has(u8::is_ascii_alphabetic);
        if is_id { "ID" } else { word }.to_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_are_words_with_letters_and_digits() {
        for (text, expected) in [
            ("chunk 57cfa8d1, of 20250514", "chunk ID, of 20250514"),
            ("toolu_01AbCdEfGh and step_2", "toolu_ID and step_2"),
            ("implementation", "implementation"),
        ] {
            assert_eq!(without_ids(text), expected);
        }
    }
}

//! Replacements as text: `[POINTER=]s/PATTERN/TEXT/`, or `[POINTER=]NAME` with the name of a known pattern; and the loose
//! comparison of requests, which leaves out the results of tools, and identifiers.

use std::borrow::Cow;
use std::sync::LazyLock;

use regex::{Captures, Regex};

use crate::json::{Object, Value};

/// A pattern that is known by a name, and what replaces it.
struct NamedPattern {
    name: &'static str,
    pattern: String,
    with: &'static str,
}

/// Parts of dates in English, in any case.
const WEEKDAY: &str = r"(?:Mon(?:day)?|Tue(?:s(?:day)?)?|Wed(?:nesday)?|Thu(?:r(?:s(?:day)?)?)?|Fri(?:day)?|Sat(?:urday)?|Sun(?:day)?)";
const MONTH: &str = r"(?:Jan(?:uary)?|Feb(?:ruary)?|Mar(?:ch)?|Apr(?:il)?|May|June?|July?|Aug(?:ust)?|Sep(?:t(?:ember)?)?|Oct(?:ober)?|Nov(?:ember)?|Dec(?:ember)?)";
const DAY: &str = r"\d{1,2}(?:st|nd|rd|th)?";
const TIME: &str = r"\d{1,2}:\d\d(?::\d\d(?:[.,]\d+)?)?(?:\s?[AP]M)?";
const OFFSET: &str = r"[+-]\d\d(?::?\d\d)?";
/// The abbreviations of time zones that are common and no words of English.
const ZONE_NAME: &str = "Z|UTC|GMT|[ECMP][SD]T|[CE]ES?T|BST|IST|JST|KST|AE[SD]T|NZ[SD]T";

/// The values that most often differ between two runs with the same requests.
static NAMED: LazyLock<[NamedPattern; 3]> = LazyLock::new(|| {
    let weekday = format!(r"(?:{WEEKDAY}\.?,?\s+(?:the\s+)?)?");
    let month_first = format!(r"{weekday}{MONTH}\.?\s+{DAY},?\s+\d{{4}}");
    let day_first = format!(r"{weekday}{DAY}(?:\s+of)?[\s-]+{MONTH}\.?,?[\s-]+\d{{4}}");
    let month = format!(r"{MONTH}\.?,?\s+\d{{4}}");
    let numbers =
        r"\d{4}-\d\d-\d\d|\d{4}/\d{1,2}/\d{1,2}|\d{1,2}/\d{1,2}/\d{4}|\d{1,2}\.\s?\d{1,2}\.\s?\d{4}";
    let date = format!("{numbers}|{month_first}|{day_first}|{month}");
    // Any other name has its offset after it.
    let named_zone = format!(r"[A-Z]{{2,5}}\s\(UTC{OFFSET}\)|(?:{ZONE_NAME})(?:{OFFSET})?\b");
    let zone = format!(r"(?:\s?(?:{named_zone}|{OFFSET}\b)(?:\s\([\w\s]+\))?)?");
    let zone_of_date = format!(r"(?:\s(?-i:{named_zone}))?");
    let iso = format!(r"\d{{4}}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?{zone}");
    let unix = format!(r"{weekday}{MONTH}\s+{DAY}\s+{TIME}(?:\s[A-Z]{{2,5}})?\s+\d{{4}}");
    let date_and_time = format!(r"(?:{date})(?:,|\s+at)?\s+{TIME}{zone}");
    [
        NamedPattern {
            name: "timestamp",
            pattern: format!(r"(?i)\b(?:{iso}|{unix}|{date_and_time})"),
            with: "TIMESTAMP",
        },
        NamedPattern { name: "date", pattern: format!(r"(?i)\b(?:{date})\b{zone_of_date}"), with: "DATE" },
        NamedPattern {
            name: "uuid",
            // Many programs write them after a prefix, such as `msg_`.
            pattern: r"(?:\b|_)[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12}\b"
                .to_owned(),
            with: "UUID",
        },
    ]
});

static COMPILED: LazyLock<Vec<(&'static NamedPattern, Regex)>> = LazyLock::new(|| {
    NAMED.iter().filter_map(|named| Some((named, Regex::new(&named.pattern).ok()?))).collect()
});

fn replaced<'p>(text: &str, rules: impl IntoIterator<Item = &'p (&'static NamedPattern, Regex)>) -> String {
    rules
        .into_iter()
        .fold(text.to_owned(), |text, (named, regex)| regex.replace_all(&text, named.with).into_owned())
}

/// Replaces everything in a text that matches a known pattern.
pub(crate) fn without_known(text: &str) -> String {
    replaced(text, &*COMPILED)
}

/// Returns the names of known patterns that must be replaced so that two texts are the same; none if they differ
/// nevertheless.
pub(crate) fn with_which_equal(one: &str, other: &str) -> Vec<&'static str> {
    let are_equal = |rules: &[&'static (&'static NamedPattern, Regex)]| {
        replaced(one, rules.iter().copied()) == replaced(other, rules.iter().copied())
    };
    let mut rules: Vec<_> = COMPILED.iter().collect();
    if !are_equal(&rules) {
        return Vec::new();
    }
    for index in (0..rules.len()).rev() {
        let mut fewer = rules.clone();
        fewer.remove(index);
        if are_equal(&fewer) {
            rules = fewer;
        }
    }
    rules.iter().map(|(named, _)| named.name).collect()
}

/// A replacement: the JSON Pointer of a location, or `None` for all strings; a regular expression; and the text that
/// takes the place of what matches.
pub(super) type ParsedReplacement = (Option<String>, String, String);

/// Parses a replacement. Any character that is neither a letter nor a digit can take the place of the slashes around the
/// pattern. Returns `None` if it has another form.
pub(super) fn parse(text: &str) -> Option<ParsedReplacement> {
    let by_name = |text: &str| NAMED.iter().find(|named| named.name == text);
    if let Some(NamedPattern { pattern, with, .. }) = by_name(text) {
        return Some((None, pattern.clone(), (*with).to_owned()));
    }
    if !text.starts_with('/') {
        return substitution(text).map(|(pattern, with)| (None, pattern, with));
    }
    // The pointer ends before the first equals sign after which there is a rule: one can be part of a name.
    text.match_indices('=').find_map(|(at, _)| {
        let (location, rule) = (text.get(..at)?, text.get(at + 1..)?);
        let (pattern, with) = match by_name(rule) {
            Some(NamedPattern { pattern, with, .. }) => (pattern.clone(), (*with).to_owned()),
            None => substitution(rule)?,
        };
        Some((Some(location.to_owned()), pattern, with))
    })
}

/// Parses `s/PATTERN/TEXT/`.
fn substitution(text: &str) -> Option<(String, String)> {
    let rest = text.strip_prefix('s')?;
    let delimiter = rest.chars().next().filter(|first| !first.is_alphanumeric())?;
    let mut parts = rest.split(delimiter).skip(1);
    let (pattern, with) = (parts.next()?, parts.next()?);
    let is_whole = parts.next() == Some("") && parts.next().is_none() && !pattern.is_empty();
    is_whole.then(|| (pattern.to_owned(), with.to_owned()))
}

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
    fn substitutions_have_a_pattern_and_a_text() {
        let parsed = |text| parse(text).unwrap();
        assert_eq!(parsed(r"s/\d+/N/"), (None, r"\d+".to_owned(), "N".to_owned()));
        let at = |location: &str| Some(location.to_owned());
        assert_eq!(parsed("/messages/*=s#/tmp/x##"), (at("/messages/*"), "/tmp/x".to_owned(), String::new()));
        assert_eq!(parsed("/a=b=s/x/y/").0, at("/a=b"));
        assert_eq!(parsed("/input=uuid").2, "UUID");
        for wrong in ["", "s", "s/a", "s/a/b", "s//b/", "s/a/b/g", "x/a/b/", "/messages", "/a=b", "UUID"] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn known_patterns_match_what_they_are_called() {
        let replaced = |name: &str, text: &str| {
            let (_, pattern, with) = parse(name).unwrap();
            Regex::new(&pattern).unwrap().replace_all(text, with).into_owned()
        };
        for time in [
            "2026-11-22T20:15:00Z",
            "2026-11-22 20:15",
            "2026-11-22T20:15:00.123456+01:00",
            "2026-11-22 20:15:00 +01:00",
            "2026-11-22 20:15:00+01",
            "2026-11-22 20:15:00 CET",
            "November 26, 2026 at 8:15 PM PST",
            "Thu Nov 26 20:15:00 2026",
            "Thu Nov 26 20:15:00 UTC 2026",
            "Thu Nov 26 2026 20:15:00 GMT+0100 (Central European Standard Time)",
            "Thu, 26 Nov 2026 20:15:00 GMT",
            "November 26, 2026 at 8:15 PM",
            "11/26/2026, 8:15:00 PM",
            "2026-11-26 20:15 SST (UTC-11:00)",
        ] {
            for end in [", said", " said"] {
                let text = format!("at {time}{end}");
                assert_eq!(replaced("timestamp", &text), format!("at TIMESTAMP{end}"), "{text}");
            }
        }
        for date in [
            "2026-11-22",
            "2026-11-22 UTC+14:00",
            "2026-11-22 SST (UTC-11:00)",
            "22 November 2026 CET",
            "2026/11/22",
            "11/22/2026",
            "22.11.2026",
            "Thu Nov 26 2026",
            "Thursday, November 26, 2026",
            "Thursday November 26th, 2026",
            "Thursday, 26 November 2026",
            "Thu, 26 Nov 2026",
            "26-Nov-2026",
            "the 26th of November 2026",
            "Nov. 26, 2026",
            "November 2026",
            "Nov 2026",
            "may 2026",
        ] {
            let expected = if date.starts_with("the") { "on the DATE." } else { "on DATE." };
            assert_eq!(replaced("date", &format!("on {date}.")), expected, "{date}");
            assert_eq!(replaced("timestamp", date), date);
        }
        for other in ["may be 2026 items", "Novel 2026", "v2026-11-2201", "Nov 26"] {
            assert_eq!(replaced("date", other), other);
        }
        for (prefix, expected) in [("id ", "id UUID;"), ("msg_", "msgUUID;")] {
            let text = format!("{prefix}0190163d-8694-739b-aea5-966c26f8ad91;");
            assert_eq!(replaced("uuid", &text), expected);
        }
        let other = "a0190163d-8694-739b-aea5-966c26f8ad91";
        assert_eq!(replaced("uuid", other), other);
    }

    #[test]
    fn the_patterns_with_which_texts_are_the_same_are_named() {
        let date = |day: u8| format!("Today is Thursday, November {day}, 2026.");
        assert_eq!(with_which_equal(&date(26), &date(27)), ["date"]);
        let time = |minute: u8| format!("at 2026-11-22T20:{minute}:00Z");
        assert_eq!(with_which_equal(&time(15), &time(16)), ["timestamp"]);
        let both = |n: u8| format!("{} {}", date(n), time(n));
        assert_eq!(with_which_equal(&both(26), &both(27)), ["timestamp", "date"]);
        assert_eq!(with_which_equal("one", "two"), Vec::<&str>::new());
    }

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

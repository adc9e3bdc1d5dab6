//! Replacements as text: `[POINTER=]s/PATTERN/TEXT/`, or `[POINTER=]NAME` with the name of a known pattern.

/// A pattern that is known by a name, and what replaces it.
struct NamedPattern {
    name: &'static str,
    pattern: &'static str,
    with: &'static str,
}

/// The values that most often differ between two runs with the same requests.
const NAMED: [NamedPattern; 3] = [
    NamedPattern {
        name: "timestamp",
        pattern: r"\b\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?:[Zz]|[+-]\d\d:?\d\d)?",
        with: "TIMESTAMP",
    },
    NamedPattern { name: "date", pattern: r"\b\d{4}-\d\d-\d\d\b", with: "DATE" },
    NamedPattern {
        name: "uuid",
        pattern: r"\b[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12}\b",
        with: "UUID",
    },
];

/// A replacement: the JSON Pointer of a location, or `None` for all strings; a regular expression; and the text that
/// takes the place of what matches.
pub(super) type ParsedReplacement = (Option<String>, String, String);

/// Parses a replacement. Any character that is neither a letter nor a digit can take the place of the slashes around the
/// pattern. Returns `None` if it has another form.
pub(super) fn parse(text: &str) -> Option<ParsedReplacement> {
    let by_name = |text: &str| NAMED.iter().find(|named| named.name == text);
    if let Some(NamedPattern { pattern, with, .. }) = by_name(text) {
        return Some((None, (*pattern).to_owned(), (*with).to_owned()));
    }
    if !text.starts_with('/') {
        return substitution(text).map(|(pattern, with)| (None, pattern, with));
    }
    // The pointer ends before the first equals sign after which there is a rule: one can be part of a name.
    text.match_indices('=').find_map(|(at, _)| {
        let (location, rule) = (text.get(..at)?, text.get(at + 1..)?);
        let (pattern, with) = match by_name(rule) {
            Some(NamedPattern { pattern, with, .. }) => ((*pattern).to_owned(), (*with).to_owned()),
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

#[cfg(test)]
mod tests {
    use super::*;
    use regex::Regex;

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
        for time in ["2026-11-22T20:15:00Z", "2026-11-22 20:15", "2026-11-22T20:15:00.123456+01:00"] {
            assert_eq!(replaced("timestamp", &format!("at {time}, said")), "at TIMESTAMP, said");
        }
        assert_eq!(replaced("timestamp", "2026-11-22"), "2026-11-22");
        assert_eq!(replaced("date", "on 2026-11-22."), "on DATE.");
        assert_eq!(replaced("uuid", "id 0190163d-8694-739b-aea5-966c26f8ad91;"), "id UUID;");
    }
}

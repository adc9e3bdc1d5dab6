//! What differs between two requests.

use crate::json::{Value, compact};

/// Maximum number of characters of a value in a difference.
const SHOWN: usize = 80;

/// Returns what differs between a recorded request and the one that was made, one line for each value, up to `limit`;
/// and the number of all differences.
pub(super) fn differences(recorded: &Value<'_>, requested: &Value<'_>, limit: usize) -> (Vec<String>, usize) {
    let mut found = DifferenceCollector { lines: Vec::new(), count: 0, limit };
    found.compare("", recorded, requested);
    (found.lines, found.count)
}

struct DifferenceCollector {
    lines: Vec<String>,
    count: usize,
    limit: usize,
}

impl DifferenceCollector {
    fn compare(&mut self, at: &str, recorded: &Value<'_>, requested: &Value<'_>) {
        match (recorded, requested) {
            (Value::Object(one), Value::Object(other)) => {
                for (name, value) in one.iter() {
                    let at = member(at, name);
                    match other.get(name) {
                        Some(requested) => self.compare(&at, value, requested),
                        None => self.push(|| format!("{at} is missing: recorded with {}", shown(value))),
                    }
                }
                for (name, value) in other.iter().filter(|(name, _)| !one.contains(name)) {
                    let at = member(at, name);
                    self.push(|| format!("{at} was not recorded: requested with {}", shown(value)));
                }
            }
            (Value::Array(one), Value::Array(other)) => self.compare_lists(at, one, other),
            (one, other) if one == other => {}
            (Value::String(one), Value::String(other)) => {
                let (one, other) = from_difference(one, other);
                self.push(|| format!("{} differs: recorded {one}, requested {other}", named(at)));
            }
            (one, other) => {
                self.push(|| {
                    format!("{} differs: recorded {}, requested {}", named(at), shown(one), shown(other))
                });
            }
        }
    }

    fn compare_lists(&mut self, at: &str, one: &[Value<'_>], other: &[Value<'_>]) {
        for (index, (recorded, requested)) in one.iter().zip(other).enumerate() {
            self.compare(&format!("{at}[{index}]"), recorded, requested);
        }
        for (index, value) in one.iter().enumerate().skip(other.len()) {
            self.push(|| format!("{at}[{index}] is missing: recorded with {}", shown(value)));
        }
        for (index, value) in other.iter().enumerate().skip(one.len()) {
            self.push(|| format!("{at}[{index}] was not recorded: requested with {}", shown(value)));
        }
    }

    fn push(&mut self, line: impl FnOnce() -> String) {
        self.count += 1;
        if self.lines.len() < self.limit {
            self.lines.push(line());
        }
    }
}

fn member(at: &str, name: &str) -> String {
    if at.is_empty() { name.to_owned() } else { format!("{at}.{name}") }
}

fn named(at: &str) -> &str {
    if at.is_empty() { "the request" } else { at }
}

fn shown(value: &Value<'_>) -> String {
    cut(&compact::text(value), 0)
}

/// Returns both texts as JSON, from a little before the first character that differs.
fn from_difference(one: &str, other: &str) -> (String, String) {
    let same = one.chars().zip(other.chars()).take_while(|(one, other)| one == other).count();
    let start = if same > SHOWN / 2 { same - SHOWN / 4 } else { 0 };
    let quoted = |text: &str| {
        let rest: String = text.chars().skip(start).collect();
        cut(&compact::text(&Value::String(rest.into())), start)
    };
    (quoted(one), quoted(other))
}

/// Returns the beginning of a text, with marks where parts are left out.
fn cut(text: &str, start: usize) -> String {
    let before = if start > 0 { "…" } else { "" };
    let mut shown: String = text.chars().take(SHOWN).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    format!("{before}{shown}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::reader::{self, Limits};

    fn lines(recorded: &str, requested: &str) -> Vec<String> {
        let read = |text| reader::read(str::as_bytes(text), &Limits::default()).unwrap();
        differences(&read(recorded), &read(requested), 3).0
    }

    #[test]
    fn differences_name_the_member() {
        assert_eq!(
            lines(
                r#"{"model":"m","messages":[{"content":"a"},{"content":"b"}],"n":1}"#,
                r#"{"model":"m","messages":[{"content":"a"},{"content":"c"}],"top_p":1}"#
            ),
            [
                r#"messages[1].content differs: recorded "b", requested "c""#,
                "n is missing: recorded with 1",
                "top_p was not recorded: requested with 1",
            ]
        );
        assert_eq!(lines("[1,2]", "[1]"), ["[1] is missing: recorded with 2"]);
        assert_eq!(lines("{}", "{}"), Vec::<String>::new());
    }

    #[test]
    fn long_texts_are_shown_from_where_they_differ() {
        let text = |end: &str| format!("\"{}{end}\"", "x".repeat(500));
        let found = lines(&text("one"), &text("two"));
        let same = "x".repeat(SHOWN / 4);
        assert_eq!(
            found,
            [format!("the request differs: recorded …\"{same}one\", requested …\"{same}two\"")]
        );
    }

    #[test]
    fn the_number_of_lines_is_limited_and_all_are_counted() {
        let read = |text: &'static str| reader::read(text.as_bytes(), &Limits::default()).unwrap();
        let (lines, count) = differences(&read("[1,2,3,4,5]"), &read("[0,0,0,0,0]"), 2);
        assert_eq!((lines.len(), count), (2, 5));
    }
}

//! Directories of a run, which requests are compared without: each has a name that takes the place of its path, so that
//! a program that runs in another place makes the same requests, and what was recorded there is answered with paths of
//! this place.

use std::cmp::Reverse;

use regex::{Captures, Regex};

use super::redaction::Redaction;
use crate::json::Value;
use crate::json::members::{object, text, word};

/// Directories with names, the longest path first: one can be inside another.
#[derive(Clone, Debug, Default)]
pub(crate) struct RunDirectories {
    all: Vec<NamedDirectory>,
}

/// A directory, or a text that a program makes of its path.
#[derive(Clone, Debug)]
struct NamedDirectory {
    name: String,
    path: String,
    /// Finds the path, also after an escaped line break in a text that contains JSON.
    pattern: Regex,
}

/// The end of a path: what follows would continue the name of another directory.
const END: &str = r"\b{end-half}";

impl RunDirectories {
    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Adds a directory, which can have several paths. A root has no name of its own, and is not added.
    pub(super) fn add(&mut self, name: &str, path: &str) {
        let path = path.trim_end_matches(['/', '\\']);
        if path.is_empty() || path.ends_with(':') {
            return;
        }
        let pattern = format!(r"(\b{{start-half}}|\\[bfnrt]){}{END}", regex::escape(path));
        let Ok(pattern) = Regex::new(&pattern) else { return };
        self.all.push(NamedDirectory { name: name.to_owned(), path: path.to_owned(), pattern });
        self.all.sort_by_key(|directory| Reverse(directory.path.len()));
    }

    /// Returns a text with the names of the directories in the place of their paths.
    pub(super) fn named(&self, text: &str) -> String {
        self.all.iter().fold(text.to_owned(), |text, directory| {
            let named = |found: &Captures<'_>| {
                let before = found.get(1).map_or("", |before| before.as_str());
                format!("{before}{}", directory.name)
            };
            directory.pattern.replace_all(&text, named).into_owned()
        })
    }

    /// Returns the body of an answer that was recorded with these directories, with the paths of those with the same names
    /// among `here`, also where a path is split over the events of a stream. A body that cannot be decoded stays as it
    /// is.
    pub(crate) fn moved(&self, here: &Self, mut body: String) -> String {
        let both: Vec<(&str, &str)> =
            self.all.iter().filter_map(|there| there.with_same_name(here)).collect();
        if both.iter().all(|(there, here)| there == here) {
            return body;
        }
        // The path of one directory here can contain that of another one there, so that all take their places together.
        let mark = |index: usize| format!("\u{f8ff}{index}\u{f8ff}");
        for (index, (there, _)) in both.iter().enumerate() {
            body = replaced(body, &format!(r"\b{{start-half}}{}{END}", regex::escape(there)), mark(index));
        }
        for (index, (_, here)) in both.iter().enumerate() {
            body = replaced(body, &mark(index), (*here).to_owned());
        }
        body
    }

    /// Returns them as run packs state them.
    pub(super) fn to_json(&self) -> Value<'_> {
        let stated = |directory: &'_ NamedDirectory| {
            object([("name", text(directory.name.clone())), ("path", text(directory.path.clone()))])
        };
        Value::Array(self.all.iter().map(stated).collect())
    }

    /// Reads what [`to_json`](Self::to_json) writes.
    pub(super) fn from_json(value: &Value<'_>) -> Self {
        let mut directories = Self::default();
        for directory in value.as_array().unwrap_or_default() {
            if let (Some(name), Some(path)) = (word(directory, "name"), word(directory, "path")) {
                directories.add(name, path);
            }
        }
        directories
    }
}

impl NamedDirectory {
    /// Returns the path, and that of the directory with the same name among others.
    fn with_same_name<'d>(&'d self, others: &'d RunDirectories) -> Option<(&'d str, &'d str)> {
        let other = others.all.iter().find(|other| other.name == self.name)?;
        Some((&self.path, &other.path))
    }
}

/// Returns the body of an answer with `with` in the place of what matches.
fn replaced(body: String, pattern: &str, with: String) -> String {
    let Ok(pattern) = Regex::new(pattern) else { return body };
    match Redaction::with(pattern, with).body(&body, false) {
        Ok(replaced) => replaced.into_owned(),
        Err(_) => body,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn directories(all: &[(&str, &str)]) -> RunDirectories {
        let mut directories = RunDirectories::default();
        for (name, path) in all {
            directories.add(name, path);
        }
        directories
    }

    #[test]
    fn names_take_the_place_of_paths() {
        let here = directories(&[("<home>", "/home/me/"), ("<cwd>", "/home/me/work"), ("<root>", "/")]);
        for (text, expected) in [
            ("in /home/me/work/a.rs", "in <cwd>/a.rs"),
            ("/home/me/workshop", "<home>/workshop"),
            ("/mnt/home/me/x", "/mnt/home/me/x"),
            (r#"{"command":"a\n/home/me/work"}"#, r#"{"command":"a\n<cwd>"}"#),
            ("file:///home/me, /home/me", "file://<home>, <home>"),
        ] {
            assert_eq!(here.named(text), expected);
        }
        let stated = here.to_json();
        let read = RunDirectories::from_json(&stated);
        assert_eq!(read.named("/home/me/work"), "<cwd>");
    }

    #[test]
    fn answers_get_the_paths_of_this_place() {
        let there = directories(&[("<home>", "/root"), ("<cwd>", "/root/a")]);
        let here = directories(&[("<home>", "/home/me"), ("<cwd>", "/root/b")]);
        let moved = |body: &str| there.moved(&here, body.to_owned());
        assert_eq!(moved("/root/a/x and /root"), "/root/b/x and /home/me");
        assert_eq!(
            moved(r#"{"content":[{"input":{"path":"/root/a/x"},"text":"in /root/ab"}]}"#),
            r#"{"content":[{"input":{"path":"/root/b/x"},"text":"in /home/me/ab"}]}"#
        );
        let event = |part: &str| {
            format!(
                "data: {{\"type\":\"content_block_delta\",\"index\":0,\"delta\":{{\"type\":\"input_json_delta\",\"partial_json\":\"{part}\"}}}}\n\n"
            )
        };
        let stream = [r#"{\"path\":\"/ro"#, "ot/", r#"a/x\"}"#].map(event).concat();
        let expected = [r#"{\"path\":\"/root/b"#, "", r#"/x\"}"#].map(event).concat();
        assert_eq!(moved(&stream), expected);
        assert_eq!(there.moved(&there, stream.clone()), stream);
    }
}

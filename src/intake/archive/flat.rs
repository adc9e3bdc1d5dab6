//! Conversion of the paths in an archive to the entries of one directory.

use std::collections::HashSet;

use crate::artifact::{DirectoryEntry, EntryContent};

/// An archive entry with its path as stored.
pub(super) struct RawEntry {
    pub(super) path: String,
    pub(super) content: EntryContent,
    /// Whether it is a directory, by its type or, if it has none, by a trailing slash.
    pub(super) is_directory: bool,
}

impl RawEntry {
    /// Returns the components of a path that stays inside the archive, without `.` and without a trailing slash, or
    /// `None` if it could lead outside.
    fn parts(&self) -> Option<Vec<&str>> {
        parts(&self.path)
    }
}

fn parts(path: &str) -> Option<Vec<&str>> {
    if path.starts_with('/') || path.contains(['\\', '\0']) {
        return None;
    }
    let parts: Vec<&str> = path.split('/').filter(|part| !matches!(*part, "" | ".")).collect();
    (!parts.contains(&"..")).then_some(parts)
}

/// Returns whether a file at `path` may be a member after flattening: at the top level, or in a single top-level
/// directory.
pub(super) fn may_be_member(path: &str, is_member: &dyn Fn(&str) -> bool) -> bool {
    match parts(path).as_deref() {
        Some([name] | [_, name]) => is_member(name),
        _ => false,
    }
}

/// Returns the entries of the directory that the archive represents. A single top-level directory is removed. A deeper
/// entry turns the directory that contains it into an entry. Paths that lead outside are kept unchanged.
pub(super) fn flatten(raw: Vec<RawEntry>) -> Vec<DirectoryEntry> {
    let top = common_top(&raw);
    let mut directories = HashSet::new();
    let mut entries = Vec::new();
    for entry in raw {
        let Some(parts) = entry.parts() else {
            entries.push(DirectoryEntry { name: entry.path, content: entry.content });
            continue;
        };
        let inside = match (&top, parts.as_slice()) {
            (Some(_), [_, inside @ ..]) => inside,
            (_, parts) => parts,
        };
        let (name, is_directory) = match inside {
            [] if entry.is_directory => continue,
            [] => (entry.path.clone(), false),
            [name] => ((*name).to_owned(), entry.is_directory),
            [name, ..] => ((*name).to_owned(), true),
        };
        if !is_directory {
            entries.push(DirectoryEntry { name, content: entry.content });
        } else if directories.insert(name.clone()) {
            entries.push(DirectoryEntry { name, content: EntryContent::Other });
        }
    }
    entries
}

/// Returns the top-level directory that contains every path that stays inside, if there is one.
fn common_top(raw: &[RawEntry]) -> Option<String> {
    let mut top: Option<String> = None;
    let mut is_filled = false;
    for entry in raw {
        let parts = entry.parts();
        let first = match parts.as_deref() {
            None | Some([]) => continue,
            Some([first]) if entry.is_directory => first,
            Some([_]) => return None,
            Some([first, ..]) => {
                is_filled = true;
                first
            }
        };
        if top.as_deref().is_some_and(|top| top != *first) {
            return None;
        }
        top = Some((*first).to_owned());
    }
    top.filter(|_| is_filled)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(paths: &[&str]) -> Vec<String> {
        let raw = paths.iter().map(|path| RawEntry {
            path: (*path).to_owned(),
            content: EntryContent::Unexpected,
            is_directory: path.ends_with('/'),
        });
        let shown = |entry: DirectoryEntry| match entry.content {
            EntryContent::Other => format!("{}/", entry.name),
            _ => entry.name,
        };
        flatten(raw.collect()).into_iter().map(shown).collect()
    }

    #[test]
    fn paths_become_entries() {
        assert_eq!(names(&["./", "./a", "b"]), ["a", "b"]);
        assert_eq!(names(&["top/", "top/a", "top/b/c", "top/b/d", "top/b/"]), ["a", "b/"]);
        assert_eq!(names(&["top/a", "other/a"]), ["top/", "other/"]);
        assert_eq!(names(&["top/a", "a"]), ["top/", "a"]);
        assert_eq!(names(&["top/"]), ["top/"]);
        assert_eq!(
            names(&["top/a", "../b", "/c", "top/../../d", "e\\f"]),
            ["a", "../b", "/c", "top/../../d", "e\\f"]
        );
        assert_eq!(names(&["a", "a"]), ["a", "a"]);
    }

    #[test]
    fn a_link_is_never_a_directory() {
        let link =
            |path: &str| RawEntry { path: path.to_owned(), content: EntryContent::Link, is_directory: false };
        let file =
            || RawEntry { path: "top/a".to_owned(), content: EntryContent::Unexpected, is_directory: false };
        for (path, expected) in [("top/", "top"), ("./", "./"), (".", "."), ("", ""), ("top/a/", "a")] {
            let entries = flatten(vec![link(path), file()]);
            let is_link = |entry: &DirectoryEntry| matches!(entry.content, EntryContent::Link);
            assert!(entries.iter().any(|entry| entry.name == expected && is_link(entry)), "{entries:?}");
        }
    }
}

//! Agent sessions in other forms than one file for each: those of opencode in its database or files, and the files that
//! Claude Code keeps in addition to its transcripts.
//!
//! The files of a session do not name it, nor does the transcript state their digests. So they are attachments, and a list
//! of them, with the id of the session and the digest of each, is another one, which is linked to both.

mod opencode;

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use crate::digest::Digest;
use crate::formats;
use crate::intake::archive::decompressed_name;
use crate::intake::{
    AgentContent, AgentDirectory, DeclaredCapture, ExamineOptions, InputItem, Inputs, SourceError,
};
use crate::vault::add::InputResult;

/// What was found of the sessions of agents: files and rows of databases that were read before, and those that others list.
#[derive(Debug)]
pub struct AgentFiles {
    directories: Vec<AgentDirectory>,
    /// The other files of sessions, by the id of the session.
    lists: BTreeMap<String, FileList>,
    /// The state in which each session in a database was read, by the name of its document.
    read: HashMap<PathBuf, String>,
}

/// The files of a session.
#[derive(Debug)]
struct FileList {
    program: &'static str,
    /// The directory, or the first file, that is named as the session.
    place: PathBuf,
    /// The digests of the files, by their paths.
    files: BTreeMap<String, Digest>,
}

/// A file of a session.
struct ListedFile {
    session: String,
    program: &'static str,
    place: PathBuf,
    /// Its path, as the list has it.
    path: String,
}

impl AgentFiles {
    /// Creates it for files in these directories, and for databases anywhere.
    #[must_use]
    pub fn new(directories: Vec<AgentDirectory>) -> Self {
        Self { directories, lists: BTreeMap::new(), read: HashMap::new() }
    }

    /// Forgets what was read of databases, because it was not stored.
    pub fn read_again(&mut self) {
        self.read.clear();
    }

    /// Returns inputs, with what they contain of sessions in place of files that are not artifacts themselves.
    pub fn read_inputs<'a>(
        &'a mut self,
        inputs: Inputs,
        options: &'a ExamineOptions,
    ) -> impl Iterator<Item = InputResult> + Send + 'a {
        self.read_items(inputs.map(|item| ((), item)), options).map(|((), item)| item)
    }

    /// Like [`read_inputs`](Self::read_inputs), for items that are marked. An item in place of others has the mark of the last
    /// of them. A file that is in place of none is the last item with its mark.
    pub fn read_items<'a, M: Clone + Send + 'a>(
        &'a mut self,
        items: impl Iterator<Item = (M, InputResult)> + Send + 'a,
        options: &'a ExamineOptions,
    ) -> impl Iterator<Item = (M, InputResult)> + Send + 'a {
        AgentItems {
            files: self,
            options,
            items: Some(items),
            waiting: VecDeque::new(),
            changed: BTreeMap::new(),
        }
    }

    /// Returns the file of a session that is at `path`, if it is one beside the record.
    fn listed(&self, path: &Path) -> Option<ListedFile> {
        self.directories.iter().find_map(|AgentDirectory { program, path: directory, content }| {
            let names: Option<Vec<&str>> =
                path.strip_prefix(directory).ok()?.iter().map(|name| name.to_str()).collect();
            let names = names?;
            let (place, name, path) = match (content, &names[..]) {
                (AgentContent::Projects, [project, name, within @ .., file]) if !is_record(file) => {
                    let path = [within, &[file]].concat().join("/");
                    (directory.join(project).join(name), name, path)
                }
                (AgentContent::Files, [name, within @ ..]) => {
                    let path = if within.is_empty() { (*name).to_owned() } else { within.join("/") };
                    let kept = directory.file_name()?.to_str()?;
                    (directory.join(name), name, format!("{kept}/{path}"))
                }
                _ => return None,
            };
            let is_hidden = names.last().is_some_and(|file| file.starts_with('.'));
            let session = id_in(name).filter(|_| !is_hidden)?.to_owned();
            Some(ListedFile { session, program, place, path })
        })
    }
}

/// Returns whether a file has records of a session, by its name.
fn is_record(name: &str) -> bool {
    decompressed_name(name).unwrap_or(name).strip_suffix(".jsonl").is_some()
}

/// Returns the id of a session that a name begins with: a UUID.
fn id_in(name: &str) -> Option<&str> {
    let id = name.get(..36)?;
    let is_valid = |(index, byte): (usize, u8)| match index {
        8 | 13 | 18 | 23 => byte == b'-',
        _ => byte.is_ascii_hexdigit(),
    };
    id.bytes().enumerate().all(is_valid).then_some(id)
}

/// Returns the names of the documents of the sessions in the databases in a directory.
#[must_use]
pub fn sessions_in(directory: &Path) -> Vec<String> {
    let sessions =
        databases_in(directory).into_iter().filter_map(|path| opencode::sessions(&path).ok().flatten());
    sessions.flat_map(BTreeMap::into_keys).map(|id| format!("{id}.json")).collect()
}

/// Returns the databases with sessions in a directory.
#[must_use]
pub fn databases_in(directory: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> = entries
        .map(|entry| entry.path())
        .filter(|path| opencode::database_of(path).as_ref() == Some(path))
        .collect();
    found.sort_unstable();
    found
}

/// An iterator over items, and what is in their place.
struct AgentItems<'a, M, I> {
    files: &'a mut AgentFiles,
    options: &'a ExamineOptions,
    /// The items, until all are read.
    items: Option<I>,
    waiting: VecDeque<(M, WaitingItem)>,
    /// The sessions with files among the items, with the mark of the last one.
    changed: BTreeMap<String, M>,
}

enum WaitingItem {
    Item(InputItem),
    /// A session in a database.
    Row {
        database: PathBuf,
        id: String,
        stamp: String,
    },
    /// The list of the files of a session.
    List(String),
}

impl<M: Clone, I: Iterator<Item = (M, InputResult)>> AgentItems<'_, M, I> {
    /// Returns the item, or reads what is in its place.
    fn replace(&mut self, mark: M, item: InputItem) -> Option<InputResult> {
        let (path, is_named) = match &item {
            InputItem::Named(path) => (path.as_path(), true),
            InputItem::Found(path) => (&**path, false),
            _ => return Some(Ok(item)),
        };
        if let Some(listed) = self.files.listed(path) {
            return Some(item.into_attachment(self.options).inspect(|read| self.list(mark, listed, read)));
        }
        if let Some(database) = opencode::database_of(path) {
            // A file that is not such a database is examined as any other.
            let Ok(Some(sessions)) = opencode::sessions(&database) else { return Some(Ok(item)) };
            for (id, stamp) in sessions {
                self.waiting
                    .push_back((mark.clone(), WaitingItem::Row { database: database.clone(), id, stamp }));
            }
            if !is_named {
                self.waiting.push_back((mark, WaitingItem::Item(item)));
            }
            return None;
        }
        Some(match opencode::document_of_files(path, self.options.admit.limits.bytes) {
            Ok(Some(bytes)) => Ok(InputItem::Document { name: path.to_string_lossy().into_owned(), bytes }),
            Ok(None) => Ok(item),
            Err(source) => Err(SourceError { path: path.to_owned(), source }),
        })
    }

    /// Notes that a file of a session was read.
    fn list(&mut self, mark: M, listed: ListedFile, read: &InputItem) {
        let InputItem::Declared(DeclaredCapture { core, .. }) = read else { return };
        let ListedFile { session, program, place, path } = listed;
        let new = || FileList { program, place, files: BTreeMap::new() };
        self.files.lists.entry(session.clone()).or_insert_with(new).files.insert(path, core.0);
        self.changed.insert(session, mark);
    }

    /// Reads an item that waits; `None` if it is unchanged since it was read, or there is nothing.
    fn read(&mut self, waiting: WaitingItem) -> Option<InputResult> {
        match waiting {
            WaitingItem::Item(item) => Some(Ok(item)),
            WaitingItem::Row { database, id, stamp } => {
                let name = database.join(format!("{id}.json"));
                if self.files.read.get(&name) == Some(&stamp) {
                    return None;
                }
                let document = match opencode::document(&database, &id, self.options.admit.limits.bytes) {
                    Ok(document) => document?,
                    Err(error) => {
                        return Some(Err(SourceError { path: database, source: io::Error::other(error) }));
                    }
                };
                self.files.read.insert(name.clone(), stamp);
                Some(Ok(InputItem::Document { name: name.to_string_lossy().into_owned(), bytes: document }))
            }
            WaitingItem::List(session) => {
                let FileList { program, place, files } = self.files.lists.get(&session)?;
                let list = formats::list_of_files(program, &session, files).ok()?;
                let name: OsString = place.clone().into();
                Some(Ok(InputItem::Declared(DeclaredCapture::attachment(name, list))))
            }
        }
    }
}

impl<M: Clone, I: Iterator<Item = (M, InputResult)>> Iterator for AgentItems<'_, M, I> {
    type Item = (M, InputResult);

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some((mark, waiting)) = self.waiting.pop_front() {
                if let Some(item) = self.read(waiting) {
                    return Some((mark, item));
                }
                continue;
            }
            match self.items.as_mut()?.next() {
                Some((mark, Ok(item))) => {
                    if let Some(item) = self.replace(mark.clone(), item) {
                        return Some((mark, item));
                    }
                }
                Some(failed) => return Some(failed),
                None => {
                    self.items = None;
                    let changed = std::mem::take(&mut self.changed).into_iter();
                    self.waiting.extend(changed.map(|(session, mark)| (mark, WaitingItem::List(session))));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_belong_to_the_session_that_their_path_begins_with() {
        let directory = |path: &str, content| AgentDirectory { program: "p", path: path.into(), content };
        let files = AgentFiles::new(vec![
            directory("/h/projects", AgentContent::Projects),
            directory("/h/todos", AgentContent::Files),
            directory("/h/data", AgentContent::Databases),
        ]);
        let id = "610bebd5-0051-4aa6-9f8e-ff8dd45fddd0";
        let listed = |path: &str| {
            let listed = files.listed(Path::new(&path.replace("ID", id)))?;
            assert_eq!((&listed.session[..], listed.program), (id, "p"));
            Some((listed.path.replace(id, "ID"), listed.place.to_string_lossy().replace(id, "ID")))
        };
        let some = |path: &str, place: &str| Some((path.to_owned(), place.to_owned()));
        assert_eq!(
            listed("/h/projects/-w/ID/tool-results/a.txt"),
            some("tool-results/a.txt", "/h/projects/-w/ID")
        );
        assert_eq!(listed("/h/todos/ID/1.json"), some("todos/1.json", "/h/todos/ID"));
        assert_eq!(
            listed("/h/todos/ID-agent-ID.json"),
            some("todos/ID-agent-ID.json", "/h/todos/ID-agent-ID.json")
        );
        for other in [
            "/h/projects/-w/ID.jsonl",
            "/h/projects/-w/ID/subagents/agent-1.jsonl",
            "/h/projects/-w/ID/subagents/agent-1.jsonl.zst",
            "/h/projects/-w/memory/a.md",
            "/h/projects/ID/a.md",
            "/h/todos/ID/.lock",
            "/h/todos/other.json",
            "/h/data/ID/a",
            "/g/ID/a",
        ] {
            assert_eq!(listed(other), None, "{other}");
        }
    }
}

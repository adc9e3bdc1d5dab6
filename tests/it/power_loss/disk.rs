//! A disk as the events of a recording leave it, and what may be left of it after a loss of power.
//!
//! What was not synced may be lost, in part or in any order: each write of a file on its own, sector by sector; each name
//! on its own. Only a sync of a file makes its bytes certain, and only a sync of a directory the names in it: no name comes
//! with the bytes, and none with those of another directory. Few file systems are that strict.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use faulty::recording::Event;

use super::chance::Chance;

const SECTOR: usize = 512;

/// A file or a directory, whatever it is called.
type Node = usize;

/// A name: the directory that it is in, and what it is there.
type Name = (Node, String);

#[derive(Clone)]
enum Change {
    Write { offset: usize, bytes: Vec<u8> },
    Resize(usize),
}

#[derive(Clone, Default)]
struct File {
    synced: Vec<u8>,
    /// What happened since.
    pending: Vec<Change>,
}

/// What changes names in one step: each stands for something else from then on, or for nothing.
type Renaming = Vec<(Name, Option<Node>)>;

/// What becomes of what was not synced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Loss {
    /// All of it is lost.
    Everything,
    /// All that was written to files is lost, and no name.
    Bytes,
    /// All names are lost, and nothing that was written to files.
    Names,
    /// Nothing is lost, as when a process is killed.
    Nothing,
    /// Any part of it.
    Some,
}

/// The first node is the directory that was watched.
#[derive(Clone)]
pub(crate) struct Disk {
    root: PathBuf,
    /// Those that are files; all others are directories.
    files: BTreeMap<Node, File>,
    nodes: usize,
    names: BTreeMap<Name, Node>,
    synced: BTreeMap<Name, Node>,
    pending: Vec<Renaming>,
}

impl Disk {
    /// What is in the directory `root`, all of it certain.
    pub(crate) fn read(root: &Path) -> Self {
        let root = fs::canonicalize(root).unwrap();
        let mut disk = Self {
            root: root.clone(),
            files: BTreeMap::new(),
            nodes: 1,
            names: BTreeMap::new(),
            synced: BTreeMap::new(),
            pending: Vec::new(),
        };
        disk.read_directory(&root, 0);
        disk.synced.clone_from(&disk.names);
        disk
    }

    fn read_directory(&mut self, path: &Path, directory: Node) {
        for entry in fs::read_dir(path).unwrap().map(Result::unwrap) {
            let node = self.new_node();
            self.names.insert((directory, entry.file_name().into_string().unwrap()), node);
            if entry.path().is_dir() {
                self.read_directory(&entry.path(), node);
            } else {
                self.files
                    .insert(node, File { synced: fs::read(entry.path()).unwrap(), pending: Vec::new() });
            }
        }
    }

    fn new_node(&mut self) -> Node {
        self.nodes += 1;
        self.nodes - 1
    }

    /// The name that a path is.
    fn name(&self, path: &Path) -> Name {
        let parent = path.parent().unwrap();
        let directory = if parent == self.root { 0 } else { self.node(parent).unwrap() };
        (directory, path.file_name().unwrap().to_str().unwrap().to_owned())
    }

    fn node(&self, path: &Path) -> Option<Node> {
        if path == self.root { Some(0) } else { self.names.get(&self.name(path)).copied() }
    }

    fn file(&mut self, path: &Path) -> &mut File {
        let node = self.node(path).unwrap_or_else(|| panic!("{} is not known", path.display()));
        self.files.get_mut(&node).unwrap()
    }

    fn rename(&mut self, renaming: Renaming) {
        for (name, node) in &renaming {
            match node {
                Some(node) => self.names.insert(name.clone(), *node),
                None => self.names.remove(name),
            };
        }
        self.pending.push(renaming);
    }

    /// Lets `event` happen.
    pub(crate) fn apply(&mut self, event: &Event) {
        match event {
            Event::Create(path) | Event::CreateDirectory(path) => {
                if self.node(path).is_none() {
                    let node = self.new_node();
                    if matches!(event, Event::Create(_)) {
                        self.files.insert(node, File::default());
                    }
                    self.rename(vec![(self.name(path), Some(node))]);
                }
            }
            Event::Write { path, offset, bytes } => {
                let offset = usize::try_from(*offset).unwrap();
                self.file(path).pending.push(Change::Write { offset, bytes: bytes.clone() });
            }
            Event::Resize { path, size } => {
                self.file(path).pending.push(Change::Resize(usize::try_from(*size).unwrap()));
            }
            Event::Sync(path) => self.sync(path),
            Event::Rename { from, to, exchanged } => {
                let (from, to) = (self.name(from), self.name(to));
                let (moved, other) = (self.names[&from], self.names.get(&to).copied());
                self.rename(vec![(to, Some(moved)), (from, other.filter(|_| *exchanged))]);
            }
            Event::Link { from, to } => {
                let node = self.node(from);
                self.rename(vec![(self.name(to), node)]);
            }
            Event::Remove(path) => self.rename(vec![(self.name(path), None)]),
            Event::Output(_) | Event::Error(_) | Event::Exit(_) => {}
        }
    }

    fn sync(&mut self, path: &Path) {
        let node = self.node(path).unwrap_or_else(|| panic!("{} is not known", path.display()));
        if let Some(file) = self.files.get_mut(&node) {
            let pending = std::mem::take(&mut file.pending);
            for change in pending {
                change.apply(&mut file.synced);
            }
            return;
        }
        let is_of_it = |renaming: &Renaming| renaming.iter().any(|((directory, _), _)| *directory == node);
        let (synced, pending) = std::mem::take(&mut self.pending).into_iter().partition(is_of_it);
        self.pending = pending;
        apply_names(&mut self.synced, synced);
    }

    /// How much is not certain.
    pub(crate) fn pending(&self) -> usize {
        self.pending.len() + self.files.values().map(|file| file.pending.len()).sum::<usize>()
    }

    /// Writes into the directory `to` what is left when power is lost now.
    pub(crate) fn write_image(&self, to: &Path, loss: Loss, chance: &mut Chance) {
        let mut names = self.synced.clone();
        let survives = |chance: &mut Chance| match loss {
            Loss::Everything | Loss::Names => false,
            Loss::Bytes | Loss::Nothing => true,
            Loss::Some => chance.below(2) == 0,
        };
        let survivors = self.pending.iter().filter(|_| survives(chance)).cloned().collect();
        apply_names(&mut names, survivors);
        self.write_directory(0, to, &names, loss, chance);
    }

    fn write_directory(
        &self,
        directory: Node,
        to: &Path,
        names: &BTreeMap<Name, Node>,
        loss: Loss,
        chance: &mut Chance,
    ) {
        for ((_, name), node) in names.range((directory, String::new())..(directory + 1, String::new())) {
            let path = to.join(name);
            if let Some(file) = self.files.get(node) {
                fs::write(path, file.after(loss, chance)).unwrap();
            } else {
                fs::create_dir(&path).unwrap();
                self.write_directory(*node, &path, names, loss, chance);
            }
        }
    }
}

fn apply_names(names: &mut BTreeMap<Name, Node>, renamings: Vec<Renaming>) {
    for (name, node) in renamings.into_iter().flatten() {
        match node {
            Some(node) => names.insert(name, node),
            None => names.remove(&name),
        };
    }
}

impl Change {
    fn apply(&self, bytes: &mut Vec<u8>) {
        match self {
            Self::Resize(size) => bytes.resize(*size, 0),
            Self::Write { offset, bytes: new } => write_at(bytes, *offset, new),
        }
    }
}

fn write_at(bytes: &mut Vec<u8>, offset: usize, new: &[u8]) {
    bytes.resize(bytes.len().max(offset + new.len()), 0);
    bytes[offset..offset + new.len()].copy_from_slice(new);
}

impl File {
    /// What is left of it.
    fn after(&self, loss: Loss, chance: &mut Chance) -> Vec<u8> {
        let mut bytes = self.synced.clone();
        for done in &self.pending {
            match (loss, done) {
                (Loss::Names | Loss::Nothing, done) => done.apply(&mut bytes),
                (Loss::Some, Change::Write { offset, bytes: new }) => {
                    tear(*offset, new, chance).for_each(|(offset, part)| write_at(&mut bytes, offset, part));
                }
                (Loss::Some, done) if chance.below(2) == 0 => done.apply(&mut bytes),
                (Loss::Everything | Loss::Bytes | Loss::Some, _) => {}
            }
        }
        bytes
    }
}

/// The sectors of what was written that survive: all, none, or any.
fn tear<'b>(offset: usize, bytes: &'b [u8], chance: &mut Chance) -> impl Iterator<Item = (usize, &'b [u8])> {
    let how = chance.below(3);
    let mut parts = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let end = bytes.len().min((offset + at) / SECTOR * SECTOR + SECTOR - offset);
        if how == 0 || (how == 1 && chance.below(2) == 0) {
            parts.push((offset + at, &bytes[at..end]));
        }
        at = end;
    }
    parts.into_iter()
}

//! No cycles between the files of a folder: each can be read with those that it uses, and no others.
//!
//! A subfolder counts as one file of its folder. `mod.rs` is a file like the others: what it defines is imported from it,
//! and what it only re-exports from where that is defined.

use std::collections::{BTreeMap, BTreeSet};

use super::imports::{Module, Sources};
use crate::sandbox::repository;

/// The files of folders that still depend on each other in a circle. This list only gets shorter: it fails if a file
/// that is not in it joins a circle, and if one in it is in none any more.
const EXCEPTIONS: &[(&str, &[&str])] = &[
    // A kind makes drafts, a draft embeds admitted artifacts, and each of those has a kind.
    ("artifact", &["document", "draft", "kind"]),
    // A pack admits its session by way of the list of kinds, which names the pack.
    ("formats", &["mod", "pack"]),
];

type Graph = BTreeMap<String, BTreeSet<String>>;

/// Returns, for each folder, which of its files use which.
fn folders(edges: &BTreeMap<Module, BTreeSet<Module>>) -> BTreeMap<String, Graph> {
    let mut folders: BTreeMap<String, Graph> = BTreeMap::new();
    for (one, targets) in edges {
        for other in targets {
            let common = one.iter().zip(other).take_while(|(one, other)| one == other).count();
            let file = |module: &Module| module.get(common).map_or("mod", String::as_str).to_owned();
            let graph = folders.entry(one[..common].join("/")).or_default();
            graph.entry(file(one)).or_default().insert(file(other));
        }
    }
    folders
}

/// Returns what can be reached from a file.
fn reachable<'g>(graph: &'g Graph, file: &str) -> BTreeSet<&'g str> {
    let mut reached = BTreeSet::new();
    let mut waiting: Vec<&str> = vec![file];
    while let Some(file) = waiting.pop() {
        for next in graph.get(file).into_iter().flatten() {
            if reached.insert(next.as_str()) {
                waiting.push(next);
            }
        }
    }
    reached
}

/// Returns the files of a folder that can be reached from themselves.
fn in_circles(graph: &Graph) -> BTreeSet<&str> {
    graph.keys().map(String::as_str).filter(|file| reachable(graph, file).contains(file)).collect()
}

#[test]
fn files_of_a_folder_do_not_import_each_other_in_circles() {
    let folders = folders(&Sources::read(&repository("src")).edges());
    assert!(folders.len() > 30, "the test sees no imports");
    let mut joined = Vec::new();
    for (folder, graph) in &folders {
        let excepted = EXCEPTIONS.iter().find(|(name, _)| name == folder).map_or(&[][..], |(_, files)| files);
        let circles = in_circles(graph).into_iter().filter(|file| !excepted.contains(file));
        joined.extend(circles.map(|file| {
            let reached = graph[file].iter().filter(|next| reachable(graph, next).contains(file));
            format!("{folder}: {file} imports {:?}, which import it", reached.collect::<Vec<_>>())
        }));
    }
    assert!(joined.is_empty(), "{joined:#?}");
}

#[test]
fn every_exception_is_still_needed() {
    let folders = folders(&Sources::read(&repository("src")).edges());
    let mut solved = Vec::new();
    for (folder, files) in EXCEPTIONS {
        let circles = folders.get(*folder).map(in_circles).unwrap_or_default();
        solved.extend(files.iter().filter(|file| !circles.contains(*file)).map(|file| (folder, file)));
    }
    assert!(solved.is_empty(), "remove them from the list: {solved:#?}");
}

/// The test sees what it forbids.
#[test]
fn circles_are_found() {
    let edge = |one: &str, other: &str| {
        let module = |name: &str| name.split('/').map(str::to_owned).collect::<Module>();
        (module(one), BTreeSet::from([module(other)]))
    };
    let edges =
        BTreeMap::from([edge("a/b", "a/c/d"), edge("a/c", "a"), edge("a", "a/b"), edge("a/e", "a/b")]);
    let folders = folders(&edges);
    assert_eq!(in_circles(&folders["a"]), BTreeSet::from(["b", "c", "mod"]));
}

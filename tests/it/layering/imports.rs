//! Which module imports from which, read from the sources.
//!
//! A name is followed through re-exports to the file that defines it. A re-export itself is no use of what it names, and
//! neither is a `mod` item: what counts is code that needs a name of another file.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::{code_of, rust_files};

/// A module, as the names that lead to it from the crate's root.
pub(super) type Module = Vec<String>;

/// The modules of a source tree, each with its code.
pub(super) struct Sources {
    code: BTreeMap<Module, String>,
    /// What each name means that a module imports.
    imports: BTreeMap<Module, BTreeMap<String, Vec<String>>>,
}

impl Sources {
    pub(super) fn read(source: &Path) -> Self {
        let is_test = |part: &str| matches!(part, "tests" | "conformance");
        let mut code = BTreeMap::new();
        for path in rust_files(source) {
            let relative = path.strip_prefix(source).unwrap().with_extension("");
            let mut module: Module = relative.iter().map(|part| part.to_str().unwrap().to_owned()).collect();
            if module.iter().any(|part| is_test(part)) {
                continue;
            }
            module.pop_if(|last| last == "mod");
            code.insert(module, code_of(&path));
        }
        let mut sources = Self { code, imports: BTreeMap::new() };
        for (module, code) in &sources.code {
            let named = uses(code).into_iter().filter_map(|(_, path)| {
                let path = sources.absolute(module, &path)?;
                Some((path.last()?.clone(), path))
            });
            sources.imports.insert(module.clone(), named.collect());
        }
        sources
    }

    /// Returns the modules that each module needs a name of.
    pub(super) fn edges(&self) -> BTreeMap<Module, BTreeSet<Module>> {
        let edges = |(module, code): (&Module, &String)| {
            let used = uses(code).into_iter().filter(|(is_public, _)| !is_public).map(|(_, path)| path);
            let paths = used.chain(inline_paths(&without_uses(code)));
            let defining = paths.filter_map(|path| self.absolute(module, &path));
            let targets = defining.map(|path| self.defining(path)).filter(|target| target != module);
            (module.clone(), targets.filter(|target| !target.is_empty()).collect())
        };
        self.code.iter().map(edges).collect()
    }

    /// Returns a path of `module` from the crate's root, or `None` if it names another crate.
    fn absolute(&self, module: &Module, path: &[String]) -> Option<Vec<String>> {
        let (first, rest) = path.split_first()?;
        let mut absolute = match first.as_str() {
            "crate" => Vec::new(),
            "self" | "super" => module.clone(),
            _ => {
                let mut child = module.clone();
                child.push(first.clone());
                self.code.contains_key(&child).then_some(child)?
            }
        };
        if first == "super" {
            absolute.pop();
        }
        for name in rest {
            match name.as_str() {
                "super" => drop(absolute.pop()),
                "self" => {}
                _ => absolute.push(name.clone()),
            }
        }
        Some(absolute)
    }

    /// Returns the module of the file that defines what a path names.
    fn defining(&self, mut path: Vec<String>) -> Module {
        // Re-exports of re-exports; a name can also stand for itself.
        for _ in 0..16 {
            let at = (0..=path.len()).rev().find(|at| self.code.contains_key(&path[..*at]));
            let Some(at) = at else { return Module::new() };
            let (module, rest) = path.split_at(at);
            let imported = rest.first().and_then(|name| self.imports[module].get(name));
            match imported {
                Some(imported) if *imported != path[..=at] => {
                    path = imported.iter().chain(&rest[1..]).cloned().collect();
                }
                _ => return module.to_vec(),
            }
        }
        Module::new()
    }
}

/// Returns the paths that the `use` items of a file name, and whether they are exported.
pub(super) fn uses(code: &str) -> Vec<(bool, Vec<String>)> {
    let mut found = Vec::new();
    for (is_public, tree) in use_items(code) {
        expand("", tree, &mut |path| {
            let path = path.split(" as ").next().unwrap_or_default();
            let names = path.split("::").map(|name| name.trim().to_owned());
            let mut names: Vec<String> = names.filter(|name| !name.is_empty() && name != "*").collect();
            if names.len() > 1 {
                names.pop_if(|last| last == "self");
            }
            found.push((is_public, names));
        });
    }
    found
}

/// Returns the `use` items of a file without `use` and the semicolon, and whether they are exported.
fn use_items(code: &str) -> Vec<(bool, &str)> {
    let items = code.split_inclusive(';').filter_map(|item| {
        let (before, tree) = item.strip_suffix(';')?.rsplit_once("use ")?;
        let before = before.trim_end();
        let last = before.rsplit(['\n', ';', '}', '{']).next().unwrap_or_default().trim();
        let is_item = last.is_empty() || last.starts_with("pub") || last.ends_with(']');
        is_item.then_some((last.starts_with("pub"), tree))
    });
    items.collect()
}

fn without_uses(code: &str) -> String {
    use_items(code).into_iter().fold(code.to_owned(), |rest, (_, tree)| rest.replacen(tree, "", 1))
}

/// Calls `each` with every path of a `use` tree.
fn expand(prefix: &str, tree: &str, each: &mut dyn FnMut(&str)) {
    let Some((before, list)) = tree.split_once('{') else {
        let path = format!("{prefix}{}", tree.trim());
        return each(&path);
    };
    let prefix = format!("{prefix}{}", before.trim());
    let list = list.rsplit_once('}').map_or(list, |(list, _)| list);
    let (mut depth, mut begin) = (0, 0);
    for (at, character) in list.char_indices().chain([(list.len(), ',')]) {
        match character {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                if !list[begin..at].trim().is_empty() {
                    expand(&prefix, &list[begin..at], each);
                }
                begin = at + 1;
            }
            _ => {}
        }
    }
}

/// Returns the paths in code, without those of visibilities.
fn inline_paths(code: &str) -> Vec<Vec<String>> {
    let is_part = |character: char| character.is_alphanumeric() || matches!(character, '_' | ':');
    let words = code.split(|character: char| !is_part(character));
    let is_visibility = |word: &str| code.contains(&format!("(in {word})"));
    let paths = words.filter(|word| word.contains("::") && !word.starts_with(':') && !is_visibility(word));
    let names = |path: &str| path.split("::").map(str::to_owned).filter(|name| !name.is_empty()).collect();
    paths.map(names).collect()
}

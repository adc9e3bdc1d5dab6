//! The import table of the design, held against the `use` lines.

mod cycles;
mod features;
mod front_ends;
mod imports;
mod type_names;

use std::path::{Path, PathBuf};

use runvault::artifact::Kind;
use runvault::formats;

use crate::sandbox::repository;

/// Which of our modules, and which of the crates that have one home, a module may name. A folder's modules share a row.
const TABLE: &[(&str, &[&str])] = &[
    ("clock", &[]),
    ("files", &["rustix", "tempfile"]),
    ("digest", &["sha2", "hmac", "ring"]),
    ("display", &["unicode_width"]),
    ("json", &["digest", "ryu_js", "serde_json", "serde_json_canonicalizer"]),
    ("validation", &["json", "utoipa"]),
    ("secrets", &["aho_corasick", "regex", "utoipa"]),
    ("artifact", &["digest", "json", "secrets", "validation", "utoipa"]),
    ("yaml", &["json", "saphyr_parser"]),
    ("conversation", &["artifact", "digest", "json", "serde_json", "utoipa"]),
    ("formats", &["artifact", "conversation", "digest", "json", "secrets", "validation", "yaml", "regex"]),
    (
        "intake",
        &[
            "clock",
            "artifact",
            "digest",
            "files",
            "formats",
            "json",
            "secrets",
            "validation",
            "rustix",
            "zip",
            "tar",
            "flate2",
            "zstd",
        ],
    ),
    (
        "storage",
        &[
            "clock",
            "digest",
            "files",
            "validation",
            "artifact",
            "serde_json",
            "bytes",
            "object_store",
            "postgres",
            "r2d2",
            "r2d2_postgres",
            "r2d2_sqlite",
            "rusqlite",
            "rusqlite_migration",
            "rustix",
            "rustls",
            "rustls_native_certs",
            "scheduled_thread_pool",
            "tempfile",
            "tokio",
            "tokio_postgres_rustls",
            "utoipa",
            "zstd",
        ],
    ),
    (
        "vault",
        &[
            "clock",
            "artifact",
            "calls",
            "conversation",
            "digest",
            "display",
            "files",
            "formats",
            "intake",
            "json",
            "secrets",
            "storage",
            "validation",
            "parquet",
            "regex",
            "serde_json",
            "tar",
            "tempfile",
            "utoipa",
            "zstd",
        ],
    ),
    // Below the vault only what answers and errors are made of, the nouns of kinds, and JSON, which pages show as trees.
    (
        "server",
        &[
            "clock",
            "artifact",
            "digest",
            "display",
            "formats",
            "json",
            "storage",
            "validation",
            "vault",
            "axum",
            "getrandom",
            "hyper",
            "hyper_util",
            "maud",
            "pulldown_cmark",
            "rustix",
            "serde_json",
            "tempfile",
            "tokio",
        ],
    ),
    // What model clients ask and get becomes documents of two kinds, so it knows the canonical forms.
    (
        "calls",
        &[
            "artifact",
            "conversation",
            "digest",
            "formats",
            "json",
            "regex",
            "regex_automata",
            "serde_json",
            "utoipa",
        ],
    ),
    (
        "recorders",
        &[
            "artifact",
            "calls",
            "conversation",
            "digest",
            "formats",
            "intake",
            "json",
            "validation",
            "vault",
            "yaml",
            "brotli_decompressor",
            "flate2",
            "zstd",
        ],
    ),
    (
        "gateway",
        &[
            "calls",
            "clock",
            "conversation",
            "artifact",
            "digest",
            "files",
            "formats",
            "intake",
            "json",
            "recorders",
            "secrets",
            "server",
            "storage",
            "vault",
            "axum",
            "brotli_decompressor",
            "flate2",
            "futures_util",
            "http_body_util",
            "hyper",
            "hyper_rustls",
            "hyper_util",
            "rustls",
            "rustls_native_certs",
            "serde_json",
            "tokio",
            "tokio_tungstenite",
            "tower_service",
            "zstd",
        ],
    ),
    // As for pages: answers and errors, and the nouns of kinds.
    (
        "mcp",
        &[
            "clock",
            "artifact",
            "digest",
            "display",
            "formats",
            "storage",
            "vault",
            "aho_corasick",
            "rmcp",
            "serde_json",
            "tokio",
        ],
    ),
    (
        "cli",
        &[
            "runvault",
            "serde_json",
            "clap",
            "clap_complete",
            "clap_mangen",
            "signal_hook",
            "toml_edit",
            "indicatif",
            "anstream",
            "anstyle",
            "etcetera",
            "rustix",
            "tempfile",
            "terminal_size",
            "console",
            "textwrap",
        ],
    ),
];

/// Crates that belong to the modules that list them.
const HOMED: &[&str] = &[
    "rmcp",
    "axum",
    "getrandom",
    "http_body_util",
    "hyper",
    "hyper_rustls",
    "hyper_util",
    "regex",
    "regex_automata",
    "maud",
    "pulldown_cmark",
    "tokio",
    "sha2",
    "hmac",
    "object_store",
    "postgres",
    "r2d2",
    "r2d2_postgres",
    "r2d2_sqlite",
    "rusqlite",
    "rusqlite_migration",
    "rustls",
    "rustls_native_certs",
    "scheduled_thread_pool",
    "tokio_postgres_rustls",
    "zstd",
    "serde_json",
    "ryu_js",
    "serde_json_canonicalizer",
    "runvault",
    "saphyr_parser",
    "parquet",
    "clap",
    "clap_complete",
    "clap_mangen",
    "signal_hook",
    "toml_edit",
    "indicatif",
    "anstream",
    "anstyle",
    "etcetera",
    "rustix",
    "tempfile",
    "terminal_size",
    "console",
    "textwrap",
    "unicode_width",
    "utoipa",
    "zip",
    "tar",
    "flate2",
    "brotli_decompressor",
];

/// Where hashes are computed, and what is hashed is written: no value that is missing may be replaced there.
const HASHING: &[&str] = &[
    "json",
    "digest.rs",
    "vault/bundle",
    "artifact/directory.rs",
    "formats/pack/members.rs",
    "storage/sqlite/journal.rs",
];

/// What begins the computation of a hash or of a canonical form, wherever it stands.
const HASHES: &[&str] = &[
    "Digest::from_content",
    "rfc8785::",
    "c14n_v1::",
    "replaykit::object",
    "canonical_hash",
    "canonical_members",
    "Hasher::new",
];

fn rust_files(directory: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(rust_files(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    files.sort();
    files
}

/// The paths that a file names with `crate::` or the name of a homed crate, without its tests.
fn named(text: &str) -> Vec<String> {
    let code = text.split("#[cfg(test)]").next().unwrap();
    let mut named = Vec::new();
    for line in code.lines().map(str::trim).filter(|line| !line.starts_with("//")) {
        for prefix in std::iter::once("crate").chain(HOMED.iter().copied()) {
            for (at, _) in line.match_indices(&format!("{prefix}::")) {
                let before = line[..at].chars().next_back();
                if before
                    .is_some_and(|character| character.is_alphanumeric() || matches!(character, '_' | ':'))
                {
                    continue;
                }
                let rest = &line[at + prefix.len() + 2..];
                let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
                named.push(if prefix == "crate" { rest[..end].to_owned() } else { prefix.to_owned() });
            }
        }
    }
    named
}

#[test]
fn modules_import_what_the_table_allows() {
    let source = repository("src");
    let mut seen = 0;
    for path in rust_files(&source) {
        let relative = path.strip_prefix(&source).unwrap();
        let first = relative.iter().next().unwrap().to_str().unwrap();
        let module = first.strip_suffix(".rs").unwrap_or(first);
        if matches!(module, "lib" | "main")
            || relative
                .iter()
                .any(|part| ["tests", "tests.rs", "conformance"].iter().any(|test| part == *test))
        {
            continue;
        }
        let (_, allowed) = TABLE
            .iter()
            .find(|(name, _)| *name == module)
            .unwrap_or_else(|| panic!("{module} is not in the table"));
        for name in named(&std::fs::read_to_string(&path).unwrap()) {
            seen += 1;
            // The list of kinds names its own folders; macros and doc paths name the module itself.
            assert!(
                name == module || allowed.contains(&name.as_str()),
                "{} names {name}",
                relative.display()
            );
        }
    }
    assert!(seen > 100, "the test sees no imports");
}

#[test]
fn kinds_do_not_know_each_other() {
    let kinds = repository("src/formats");
    let folders: Vec<String> = std::fs::read_dir(&kinds)
        .unwrap()
        .map(|entry| entry.unwrap())
        .filter(|entry| entry.path().is_dir())
        .map(|entry| entry.file_name().into_string().unwrap())
        .collect();
    assert_eq!(folders.len(), runvault::formats::ALL.len(), "a folder for each kind and no other");
    for folder in &folders {
        for path in rust_files(&kinds.join(folder)) {
            let text = std::fs::read_to_string(&path).unwrap();
            for other in folders.iter().filter(|other| *other != folder) {
                assert!(!text.contains(&format!("formats::{other}")), "{} names {other}", path.display());
            }
        }
    }
    // Nothing outside the list names a kind's folder.
    for path in rust_files(&repository("src")).into_iter().filter(|path| !path.starts_with(&kinds)) {
        let text = std::fs::read_to_string(&path).unwrap();
        for folder in &folders {
            assert!(!text.contains(&format!("{folder}::")), "{} names {folder}", path.display());
        }
    }
}

fn names_of_kinds() -> Vec<&'static str> {
    formats::ALL.into_iter().flat_map(|kind| [kind.name(), kind.noun(), kind.plural()]).collect()
}

/// What users and other programs call kinds and what only they have.
fn words_of_kinds() -> Vec<&'static str> {
    let fields = |kind: Kind| kind.info().fields.iter().map(|field| field.name());
    let tables = |kind: Kind| kind.info().tables.iter().map(|table| table.name);
    let mut words = names_of_kinds();
    words.extend(formats::ALL.into_iter().flat_map(fields));
    words.extend(formats::ALL.into_iter().flat_map(tables));
    words
}

/// A seventh kind is one folder and one line.
#[test]
fn only_formats_name_kinds() {
    let words = words_of_kinds();
    assert!(["model_io", "run pack", "attachments", "interactions"].iter().all(|word| words.contains(word)));
    let source = repository("src");
    for path in rust_files(&source) {
        let relative = path.strip_prefix(&source).unwrap();
        let is_test = relative.iter().any(|part| part == "tests" || part == "tests.rs");
        // Calls become documents of two kinds.
        let makes_documents = ["calls/recorded_run.rs", "calls/run_parts.rs", "calls/session.rs"]
            .iter()
            .any(|file| relative == *file);
        if relative.starts_with("formats") || is_test || makes_documents {
            continue;
        }
        let code = code_of(&path);
        // Files of other programs, and the lists in results for models, have members with the names of some tables.
        let has_members = ["recorders", "mcp"].iter().any(|room| relative.starts_with(room));
        let words = if has_members { names_of_kinds() } else { words.clone() };
        for word in &words {
            // A member of the logs of Inspect.
            if relative == Path::new("recorders/inspect/pools.rs") && *word == "attachments" {
                continue;
            }
            // A directory and a table of programs.
            let of_programs = [("intake/agents.rs", "sessions"), ("vault/agents/opencode.rs", "session")];
            if of_programs.iter().any(|(file, name)| relative == Path::new(file) && *word == *name) {
                continue;
            }
            assert!(!code.contains(&format!("\"{word}\"")), "{} names {word}", relative.display());
        }
    }
}

#[test]
fn users_can_call_each_kind_by_any_of_its_names() {
    for kind in formats::ALL {
        let names = [kind.name(), kind.noun(), kind.plural()];
        for name in names.into_iter().flat_map(|name| [name.to_owned(), name.replace([' ', '_'], "-")]) {
            let singular = name.strip_suffix('s').unwrap_or(&name).to_owned();
            for name in [name.to_uppercase(), format!("{singular}s"), singular, name] {
                assert_eq!(formats::called(&name), Some(kind), "{name}");
            }
        }
    }
    assert_eq!(formats::called("artifact"), None);
}

/// The code of a file without its tests and comments.
fn code_of(path: &Path) -> String {
    let text = std::fs::read_to_string(path).unwrap();
    let code = text.split("#[cfg(test)]").next().unwrap();
    let lines = code.lines().filter(|line| !line.trim_start().starts_with("//"));
    // Parameters that a trait's default does not look at are no results.
    lines.filter(|line| !line.trim_start().starts_with("let _ = (")).collect::<Vec<_>>().join("\n")
}

#[test]
fn no_hash_is_computed_over_a_default() {
    let source = repository("src");
    let mut seen = 0;
    for path in rust_files(&source) {
        let relative = path.strip_prefix(&source).unwrap();
        let code = code_of(&path);
        if HASHING.iter().any(|place| relative.starts_with(place)) {
            seen += 1;
            for default in ["unwrap_or_default", "let _ =", "String::new)", "Vec::new)"] {
                assert!(!code.contains(default), "{} has {default}", relative.display());
            }
        }
        for statement in code.split([';', '{', '}']).filter(|code| HASHES.iter().any(|it| code.contains(it)))
        {
            for default in ["unwrap_or_default", "unwrap_or(", "let _ ="] {
                assert!(!statement.contains(default), "{}: {}", relative.display(), statement.trim());
            }
        }
    }
    assert!(seen >= 20, "the test sees no hashing");
}

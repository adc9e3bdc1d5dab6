//! The pages as files: `export --html`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use runvault::digest::Digest;
use serde_json::json;

use super::{HOSTILE, examples, hostile_run};
use crate::sandbox::{Ran, Sandbox, repository, run_pack, session};

/// The files of a directory, by name.
fn files(directory: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = std::fs::read_dir(directory).unwrap().map(Result::unwrap);
    let named = entries.map(|entry| {
        assert!(entry.file_type().unwrap().is_file(), "{}", entry.path().display());
        (entry.file_name().into_string().unwrap(), std::fs::read(entry.path()).unwrap())
    });
    named.collect()
}

/// Exports pages to the directory `pages`, and returns its files.
pub(super) fn export(sandbox: &Sandbox, arguments: &[&str]) -> BTreeMap<String, Vec<u8>> {
    let ran = sandbox.run([&["export", "--html", "pages"], arguments].concat()).expect(0);
    let files = files(&sandbox.path("pages"));
    assert!(ran.stderr.contains(&format!("{} files", files.len())), "{}", ran.stderr);
    files
}

fn is_page(name: &str) -> bool {
    Path::new(name).extension().is_some_and(|extension| extension == "html")
}

pub(super) fn pages(files: &BTreeMap<String, Vec<u8>>) -> impl Iterator<Item = (&str, &str)> {
    files
        .iter()
        .filter(|(name, _)| is_page(name))
        .map(|(name, bytes)| (name.as_str(), std::str::from_utf8(bytes).unwrap()))
}

/// The names of files that a page refers to, as the file system has them.
fn references(page: &str) -> Vec<String> {
    let values = [" href=\"", " src=\"", " action=\"", " data=\"", " srcset=\""].map(|attribute| {
        page.split(attribute).skip(1).map(|rest| rest.split('"').next().unwrap().replace("&amp;", "&"))
    });
    let all = values.into_iter().flatten();
    let all = all.filter(|reference| !reference.starts_with('#') && reference != "data:,");
    all.map(|reference| reference.split('#').next().unwrap_or_default().to_owned()).collect()
}

/// Fails unless every file is reached from the index, and every reference leads to a file.
pub(super) fn assert_closed(files: &BTreeMap<String, Vec<u8>>) {
    let mut reached = BTreeSet::from(["index.html".to_owned()]);
    let mut waiting = vec!["index.html".to_owned()];
    while let Some(name) = waiting.pop() {
        if !is_page(&name) {
            continue;
        }
        let page = std::str::from_utf8(&files[&name]).unwrap();
        for reference in references(page) {
            assert!(files.contains_key(&reference), "{name} refers to {reference}");
            if reached.insert(reference.clone()) {
                waiting.push(reference);
            }
        }
    }
    assert_eq!(reached, files.keys().cloned().collect::<BTreeSet<String>>());
}

fn run_of(sandbox: &Sandbox) -> String {
    let found = sandbox.run(["find", "runs", "--json"]).expect(0).json();
    found[0]["core_hash"].as_str().unwrap().to_owned()
}

#[test]
fn a_run_is_written_with_what_belongs_to_it() {
    let sandbox = examples();
    let files = export(&sandbox, &[&run_of(&sandbox)]);
    assert_closed(&files);
    for kind in ["run-pack", "session", "trace", "contract", "export-pack"] {
        let is_page = |name: &&String| {
            let rest = name.strip_prefix(kind).and_then(|rest| rest.strip_suffix(".html"));
            rest.is_some_and(|rest| rest.len() == 13 && rest.starts_with('-'))
        };
        assert_eq!(files.keys().filter(is_page).count(), 1, "{kind}: {:?}", files.keys());
    }
    let name = format!("run-pack-{}.html", &run_of(&sandbox)["sha256:".len()..][..12]);
    let run = std::str::from_utf8(&files[&name]).unwrap();
    assert!(run.contains("Verified") && run.contains("read and hashed when this page was written"));
    assert!(run.contains("<h2>Audit against") && run.contains("<td class=\"inconclusive\""), "{run}");
    for (name, page) in pages(&files) {
        assert!(!page.contains("<form") && !page.contains("just now") && !page.contains(" ago<"), "{name}");
        assert!(page.contains("default-src 'none'; style-src 'sha256-"), "{name}");
    }
}

#[test]
fn labels_are_text() {
    let sandbox = examples();
    let run = run_of(&sandbox);
    sandbox.run(["label", "set", &run, "suite=nightly"]).expect(0);
    let files = export(&sandbox, &[&run]);
    assert_closed(&files);
    let shown = |name: &str| {
        pages(&files).any(|(page, text)| page.starts_with(name) && text.contains("suite=nightly"))
    };
    assert!(shown("index") && shown("run-pack"));
}

#[test]
fn bytes_are_beside_the_pages() {
    let sandbox = examples();
    let core = run_of(&sandbox);
    let files = export(&sandbox, &[&core]);
    let contents: BTreeSet<&[u8]> = files.values().map(Vec::as_slice).collect();
    for name in ["run.rpk", "session.json", "trace.ndjson", "contract.yaml"] {
        let bytes = std::fs::read(repository("examples").join(name)).unwrap();
        assert!(contents.contains(bytes.as_slice()), "{name}");
    }
    for member in std::fs::read_dir(repository("examples/pack")).unwrap() {
        let path = member.unwrap().path();
        assert!(contents.contains(std::fs::read(&path).unwrap().as_slice()), "{}", path.display());
    }
    assert!(contents.iter().any(|bytes| Digest::from_content(bytes).to_string() == core), "the core");
    for name in files.keys() {
        // Nothing that a browser or a desktop interprets.
        let endings = [".html", ".json", ".txt", ".bin"];
        assert!(endings.iter().any(|ending| name.ends_with(ending)), "{name}");
    }
}

#[test]
fn the_same_selection_gives_the_same_files_at_any_time() {
    let mut sandbox = examples();
    let core = run_of(&sandbox);
    let first = export(&sandbox, &[&core, "--with-links"]);
    assert_closed(&first);
    std::fs::remove_dir_all(sandbox.path("pages")).unwrap();
    sandbox.set_clock("2027-03-04T05:06:07Z");
    let second = export(&sandbox, &[&core, "--with-links"]);
    assert!(first == second, "the files differ");
}

#[test]
fn two_artifacts_of_a_kind_are_compared() {
    let sandbox = Sandbox::at("2026-11-21T12:00:00Z");
    let run = |id: &str, label: &str| {
        let steps: Vec<_> = (0..1_100)
            .map(|number| json!({"type": "model.response", "output": format!("{label} {number}")}))
            .collect();
        run_pack(id, &steps)
    };
    let paths = [sandbox.write("a.rpk", run("a", "bug")), sandbox.write("b.rpk", run("b", "question"))];
    let cores = sandbox.add(paths);
    let files = export(&sandbox, &[&cores[0], &cores[1]]);
    assert_closed(&files);
    // The steps and the changes of several pages.
    for name in ["diff.html", "diff-after-200.html"] {
        assert!(files.contains_key(name), "{:?}", files.keys());
    }
    assert!(files.keys().any(|name| name.ends_with("-from-1000.html")), "{:?}", files.keys());
    let diff = std::str::from_utf8(&files["diff.html"]).unwrap();
    assert!(diff.contains("Where they diverge first"), "{diff}");
    std::fs::remove_dir_all(sandbox.path("pages")).unwrap();
    let other = sandbox.add([sandbox.write("s.json", session("a", &[("p", "r")]))]).remove(0);
    let files = export(&sandbox, &[&cores[0], &other]);
    assert_closed(&files);
    assert!(!files.contains_key("diff.html"), "they are of different kinds");
}

#[test]
fn conditions_select_what_is_written() {
    let sandbox = examples();
    let files = export(&sandbox, &["--kind", "trace"]);
    assert_closed(&files);
    std::fs::remove_dir_all(sandbox.path("pages")).unwrap();
    assert_closed(&export(&sandbox, &["--all"]));
    std::fs::remove_dir_all(sandbox.path("pages")).unwrap();
    sandbox.run(["export", "--html", "pages", "--run-id", "nothing"]).expect(1);
    sandbox.run(["export", "--html", "pages"]).expect(3);
    sandbox.run(["export", "--html", "pages", "-o", "x.rvz", "--all"]).expect(3);
    sandbox.run(["export", "--html", "pages", "--force", "--all"]).expect(3);
    sandbox.run(["export", "--all"]).expect(3);
    assert!(!sandbox.path("pages").exists());
}

#[test]
fn nothing_from_an_artifact_is_markup_or_a_name_of_a_file() {
    let sandbox = Sandbox::at("2026-11-21T12:00:00Z");
    let cores = sandbox.add([
        sandbox.write("hostile.json", session(HOSTILE, &[(HOSTILE, HOSTILE)])),
        sandbox.write("hostile.rpk", hostile_run()),
    ]);
    let attached = sandbox.write("hostile.html", HOSTILE);
    sandbox.run(["add", "--as", "attachment", attached.to_str().unwrap()]).expect(0);
    sandbox.run(["note", "set", &cores[0], HOSTILE]).expect(0);
    sandbox.run(["link", "add", &cores[0], "\"><a href=x>", &cores[1]]);
    let files = export(&sandbox, &["--all"]);
    assert_closed(&files);
    let mut shown = 0;
    for (name, page) in pages(&files) {
        let is_safe = |one: char| one.is_ascii_alphanumeric() || matches!(one, '.' | '-');
        assert!(name.chars().all(is_safe), "{name}");
        // The only script is that of the page.
        assert_eq!(page.matches("<script").count(), 1, "{name}");
        for part in ["<script>alert", "<img", "onerror=alert(1)>", "\u{1b}", "\u{202e}", "\u{9b}", "\u{7f}"] {
            assert!(!page.contains(part), "{name} has {part:?}");
        }
        shown += page.matches("&lt;script&gt;").count();
    }
    assert!(shown > 5, "the hostile text is on {shown} places only");
}

#[test]
fn only_a_new_or_empty_directory_is_written_to() {
    let sandbox = examples();
    let core = run_of(&sandbox);
    let try_to = || -> Ran { sandbox.run(["export", "--html", "pages", &core]) };
    let kept = sandbox.write("pages/kept.txt", "kept");
    let refused = try_to().expect(2);
    assert!(refused.stderr.contains("cannot write pages: it already exists"), "{}", refused.stderr);
    assert_eq!(files(&sandbox.path("pages")).len(), 1);
    std::fs::remove_file(kept).unwrap();
    try_to().expect(0);
    assert!(sandbox.path("pages/index.html").exists());
    try_to().expect(2);
    let refused = sandbox.run(["export", "--html", "missing/pages", &core]).expect(2);
    assert!(refused.stderr.contains("missing/pages"), "{}", refused.stderr);
    sandbox.run(["export", "--html", "v.vault", &core]).expect(2);
    let others = std::fs::read_dir(sandbox.path(".")).unwrap().map(|entry| entry.unwrap().file_name());
    let left: Vec<_> = others.filter(|name| name.to_string_lossy().contains("unfinished")).collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn a_damaged_artifact_is_not_exported() {
    let sandbox = examples();
    let core = run_of(&sandbox);
    let vault =
        rusqlite::Connection::open_with_flags(sandbox.vault(), rusqlite::OpenFlags::SQLITE_OPEN_READ_WRITE)
            .unwrap();
    // What artifacts consist of is still known.
    let damage = "UPDATE payload SET bytes = zeroblob(length(bytes)) WHERE blob NOT IN
                    (SELECT c.blob FROM capture c JOIN member m ON m.capture = c.id)";
    vault.execute(damage, []).unwrap();
    drop(vault);
    let refused = sandbox.run(["export", "--html", "pages", &core]).expect(2);
    assert!(refused.stderr.contains("run-pack-"), "{}", refused.stderr);
    assert!(!sandbox.path("pages").exists());
}

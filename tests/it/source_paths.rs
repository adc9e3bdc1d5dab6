//! The paths that captures were read from: recorded, shown, left out on request, carried over, held to the journal and
//! restored from it.

use serde_json::Value;

use crate::bundle::making::Making;
use crate::bundle::on;
use crate::fsck::{bytes_of, findings, found_and_repaired, of_bytes, sql};
use crate::sandbox::{Ran, Sandbox, repository, session};
use crate::server::Serving;

fn document(name: &str) -> String {
    session(name, &[(name, "response")])
}

/// The paths of all captures in a vault, in the order in which they were added.
fn paths_in(sandbox: &Sandbox, vault: &str) -> Vec<Option<String>> {
    let ran = on(sandbox, vault, &["sql", "--json", "SELECT source_path FROM captures"]);
    ran.expect(0).json().iter().map(|row| row["source_path"].as_str().map(str::to_owned)).collect()
}

fn paths(sandbox: &Sandbox) -> Vec<Option<String>> {
    paths_in(sandbox, "v.vault")
}

fn all(paths: &[&str]) -> Vec<Option<String>> {
    paths.iter().map(|path| Some((*path).to_owned())).collect()
}

/// A vault with two captures of one artifact, each from its own path, and another artifact.
fn with_three() -> Sandbox {
    let sandbox = Sandbox::recording_source_paths();
    sandbox.write("runs/a.json", document("a"));
    sandbox.write("runs/b.json", document("b"));
    sandbox.write("pretty/a.json", document("a").replace(',', ",\n"));
    sandbox.run(["add", "runs", "pretty/a.json"]).expect(0);
    sandbox
}

#[test]
fn a_capture_has_the_path_that_it_was_read_from() {
    let sandbox = with_three();
    sandbox.run_on(document("c").as_bytes(), &["add", "-"]).expect(0);
    let expected = ["runs/a.json", "runs/b.json", "pretty/a.json", "-"];
    assert_eq!(paths(&sandbox), all(&expected));
    let entries = sandbox.run(["log", "--action", "add", "--json"]).expect(0).json();
    let recorded: Vec<&Value> = entries.iter().map(|line| &line["entry"]["source_path"]).collect();
    assert_eq!(recorded, expected);
    assert_eq!(findings(&sandbox, &[]), "");
}

#[test]
fn what_is_in_a_pack_or_beside_a_file_has_the_path_of_that() {
    let sandbox = Sandbox::recording_source_paths();
    let pack = repository("examples/pack");
    sandbox.add([&pack]);
    let path = pack.to_str().unwrap();
    assert!(paths(&sandbox).len() > 1);
    assert!(paths(&sandbox).iter().all(|known| known.as_deref() == Some(path)), "{:?}", paths(&sandbox));
}

#[test]
fn the_first_path_stays() {
    let sandbox = with_three();
    let before = paths(&sandbox);
    sandbox.write("copy.json", document("a"));
    sandbox.run(["add", "copy.json"]).expect(0);
    assert_eq!(paths(&sandbox), before);
    assert_eq!(findings(&sandbox, &[]), "");
}

#[test]
fn paths_are_shown() {
    let sandbox = with_three();
    sandbox.run_on(document("c").as_bytes(), &["add", "-"]).expect(0);
    let a = sandbox.run(["find", "--json", "--prompt", "a"]).expect(0).json()[0]["core_hash"].clone();
    let a = a.as_str().unwrap();
    let shown = sandbox.run(["show", a]).expect(0).stdout;
    for path in ["from runs/a.json\n", "from pretty/a.json\n"] {
        assert!(shown.contains(path), "{shown}");
    }
    let latest = sandbox.run(["show", "latest"]).expect(0).stdout;
    assert!(latest.contains("from standard input\n"), "{latest}");
    let described = sandbox.run(["show", a, "--json"]).expect(0).json().remove(0);
    assert_eq!(described["captures"][0]["source_path"], "runs/a.json");
    let found = sandbox.run(["find", "--columns", "source_path", "--sort", "added"]).expect(0).stdout;
    let lines: Vec<&str> = found.lines().map(str::trim).collect();
    assert!(lines.contains(&"pretty/a.json, runs/a.json") && lines.contains(&"-"), "{found}");
    let serving = Serving::start(&sandbox);
    let page = serving.get(&format!("/artifact/{a}")).expect(200);
    assert!(page.text().contains("Read from <code>runs/a.json</code>"), "{}", page.text());
}

#[cfg(unix)]
#[test]
fn a_path_cannot_control_a_terminal_or_a_page() {
    use std::os::unix::ffi::OsStrExt;
    let sandbox = Sandbox::recording_source_paths();
    let name = b"<b>\x1b[31m\n\xe2\x80\xae\xff.json";
    sandbox.write("s.json", document("s"));
    let path = sandbox.path("").join(std::ffi::OsStr::from_bytes(name));
    std::fs::rename(sandbox.path("s.json"), path).unwrap();
    sandbox.run([std::ffi::OsStr::new("add"), std::ffi::OsStr::from_bytes(name)]).expect(0);
    assert_eq!(paths(&sandbox), all(&["<b>\u{1b}[31m\n\u{202e}\u{fffd}.json"]));
    let core = sandbox.run(["find", "--json"]).expect(0).json()[0]["core_hash"].clone();
    let serving = Serving::start(&sandbox);
    let page = serving.get(&format!("/artifact/{}", core.as_str().unwrap())).expect(200);
    for text in [
        sandbox.run(["show", "latest"]).expect(0).stdout,
        sandbox.run(["find", "--columns", "source_path"]).expect(0).stdout,
        sandbox.run(["captures", "latest"]).stdout,
        page.text().to_owned(),
    ] {
        assert!(!text.contains(['\u{1b}', '\u{202e}']) && !text.contains("<b>\u{1b}"), "{text:?}");
    }
    assert!(!page.text().contains("<b>"), "{}", page.text());
    assert_eq!(findings(&sandbox, &[]), "");
}

#[test]
fn paths_are_left_out_on_request() {
    let sandbox = Sandbox::recording_source_paths();
    for name in ["a", "b", "c", "d"] {
        sandbox.write(&format!("{name}.json"), document(name));
    }
    sandbox.run(["add", "--no-source-path", "a.json"]).expect(0);
    sandbox.command().env("RUNVAULT_SOURCE_PATH", "off").args(["add", "b.json"]).output().unwrap();
    sandbox.write("config.toml", "source-path = \"off\"\n");
    sandbox.command().env_remove("RUNVAULT_SOURCE_PATH").args(["add", "c.json"]).output().unwrap();
    assert_eq!(paths(&sandbox), [None, None, None]);
    sandbox.run(["add", "d.json"]).expect(0);
    assert_eq!(paths(&sandbox).last().unwrap().as_deref(), Some("d.json"), "a variable precedes the file");
    assert!(!sandbox.run(["show", "latest~1"]).expect(0).stdout.contains("from "));
    assert_eq!(findings(&sandbox, &[]), "");
}

#[test]
fn paths_are_held_to_the_journal_and_restored_from_it() {
    let original = with_three();
    original.write("d.json", document("d"));
    original.run(["add", "--no-source-path", "d.json"]).expect(0);
    let before = paths(&original);
    let changes = [
        "UPDATE capture SET source_entry = NULL WHERE id = 2",
        "UPDATE capture SET source_entry = 1",
        "UPDATE capture SET source_entry = 99 WHERE id = 1",
        "UPDATE capture SET source_entry = 4 WHERE id = 4",
    ];
    let reports = found_and_repaired(&bytes_of(&original), &changes, |change, sandbox| {
        assert_eq!(paths(sandbox), before, "{change}");
    });
    insta::assert_snapshot!(reports);
}

#[test]
fn a_path_that_was_changed_in_the_journal_breaks_its_chain() {
    let bytes = bytes_of(&with_three());
    for change in ["source_path = 'forged'", "source_path = NULL", "source_path = source_path || ' '"] {
        let sandbox = of_bytes(&bytes);
        sql(&sandbox).execute_batch(&format!("UPDATE journal SET {change} WHERE seq = 2")).unwrap();
        let found = findings(&sandbox, &["--quick"]);
        assert!(found.starts_with("broken-chain | entry 2 |"), "{change}\n{found}");
    }
}

#[test]
fn a_capture_that_is_restored_has_its_path_again() {
    let sandbox = with_three();
    let before = paths(&sandbox);
    sandbox.run(["backup", "b.vault"]).expect(0);
    assert_eq!(paths_in(&sandbox, "b.vault"), before);
    sql(&sandbox)
        .execute_batch("DELETE FROM capture WHERE id = 2; DELETE FROM artifact WHERE id = 2")
        .unwrap();
    assert_ne!(findings(&sandbox, &[]), "");
    sandbox.run(["fsck", "--repair", "--from", "b.vault"]);
    assert_eq!(findings(&sandbox, &[]), "");
    let mut after = paths(&sandbox);
    after.sort();
    let mut expected = before;
    expected.sort();
    assert_eq!(after, expected);
}

#[test]
fn bundles_carry_paths() {
    let sandbox = with_three();
    sandbox.run(["add".into(), repository("examples/pack")]).expect(0);
    let session = sandbox.write("apart.json", std::fs::read(repository("examples/session.json")).unwrap());
    sandbox.add([session]);
    let sorted = |vault: &str| {
        let sql = "SELECT capture_hash, source_path FROM captures ORDER BY capture_hash";
        on(&sandbox, vault, &["sql", "--json", sql]).expect(0).stdout
    };
    sandbox.run(["export", "--all", "-o", "all.rvz"]).expect(0);
    on(&sandbox, "n.vault", &["import", "--create", "all.rvz"]).expect(0);
    assert_eq!(sorted("n.vault"), sorted("v.vault"));
    assert_eq!(on(&sandbox, "n.vault", &["fsck"]).expect(0).stdout, "");
    for (vault, export, import) in
        [("x.vault", &["--no-source-path"][..], &[][..]), ("y.vault", &[][..], &["--no-source-path"][..])]
    {
        sandbox.run([&["export", "--all", "--force", "-o", "some.rvz"], export].concat()).expect(0);
        on(&sandbox, vault, &[&["import", "--create", "some.rvz"], import].concat()).expect(0);
        assert!(paths_in(&sandbox, vault).iter().all(Option::is_none), "{vault}");
    }
    let manifest = Making::of(&sandbox, "all.rvz").manifest.to_string();
    assert!(manifest.contains("runs/a.json"), "{manifest}");
}

#[test]
fn a_bundle_with_an_invalid_path_is_rejected() {
    let sandbox = with_three();
    sandbox.run(["export", "--all", "-o", "good.rvz"]).expect(0);
    for path in [String::new(), "x".repeat(1_025), "a\0b".to_owned()] {
        let mut making = Making::of(&sandbox, "good.rvz");
        making.manifest["artifacts"][0]["captures"][0]["source_path"] = path.into();
        sandbox.write("bad.rvz", making.tar());
        let ran = on(&sandbox, "n.vault", &["import", "--create", "bad.rvz"]).expect(1);
        assert!(ran.stderr.contains("source path") && ran.stderr.contains("(rule BU"), "{}", ran.stderr);
        assert!(!sandbox.path("n.vault").exists());
    }
}

#[test]
fn watched_files_have_their_paths() {
    let sandbox = with_three();
    sandbox.write("watched/w.json", document("w"));
    sandbox.run(["watch", "watched", "--once", "--settle", "0s"]).expect(0);
    assert_eq!(paths(&sandbox).last().unwrap().as_deref(), Some("watched/w.json"));
}

#[test]
fn a_copy_adds_paths_unless_the_setting_is_off() {
    let sandbox = with_three();
    sandbox.write("d.json", document("d"));
    for (setting, expected) in [("on", 3), ("off", 0)] {
        let to = format!("{setting}.vault");
        on(&sandbox, &to, &["add", "d.json", "--create", "--no-source-path"]).expect(0);
        let mut command = sandbox.command();
        command.env("RUNVAULT_SOURCE_PATH", setting).args(["copy", "v.vault", &to]);
        Ran::from(command.output().unwrap()).expect(0);
        let paths = paths_in(&sandbox, &to);
        assert_eq!((paths.len(), paths.iter().flatten().count()), (4, expected), "{setting}");
    }
}

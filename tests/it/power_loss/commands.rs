//! Each command that acknowledges something.

use faulty::recording::Event;
use runvault::Vault;
use runvault::digest::CoreHash;

use super::{Image, cores, directory_of, record};
use crate::sandbox::{Sandbox, program, repository, session};

const PACK: &str = "54490aab8b3f";

/// A vault with the examples, which no process uses.
fn with_examples() -> (Sandbox, Vec<CoreHash>) {
    let sandbox = Sandbox::new();
    let added = sandbox.add([repository("examples")]);
    (sandbox, added.iter().map(|core| core.parse().unwrap()).collect())
}

fn sessions(sandbox: &Sandbox, count: usize) {
    for number in 0..count {
        let text = session(&format!("adapter-{number}"), &[(&format!("prompt {number}"), "a response")]);
        sandbox.write(&format!("d/{number}.json"), text);
    }
}

#[test]
fn what_is_moved_into_a_new_vault_is_there_or_where_it_was() {
    let sandbox = Sandbox::without_vault();
    sessions(&sandbox, 3);
    let before = directory_of(&sandbox.path("d"));
    let arguments = ["add", "--json", "--create", "--move", "--vault", "deep/er/v.vault", "d"];
    let Some(recording) = record(&sandbox, &arguments) else { return };
    assert!(directory_of(&sandbox.path("d")).is_empty());
    recording.check(|image| {
        let added = cores(&image.lines, &["added"]);
        assert!(!image.is_done || added.len() == 3, "{}", image.which);
        if !added.is_empty() {
            image.expect_vault("deep/er/v.vault", &added);
        }
        // Under the name that it had, or the one that it has while it is removed.
        let left = directory_of(&image.path("d"));
        for (name, bytes) in &before {
            if left.iter().any(|(_, left)| left == bytes) {
                continue;
            }
            let vault = Vault::open(&image.path("deep/er/v.vault"));
            let vault = vault.unwrap_or_else(|error| panic!("{}: {name} is lost: {error}", image.which));
            let snapshot = vault.snapshot().unwrap();
            let has = |artifact| vault.get(&artifact).is_ok_and(|got| got == *bytes);
            let is_stored =
                snapshot.all_artifacts(None).unwrap().into_iter().any(|artifact| has(artifact.core.0.into()));
            assert!(is_stored, "{}: {name} is lost", image.which);
        }
    });
}

#[test]
fn what_was_added_is_there() {
    let (sandbox, before) = with_examples();
    sessions(&sandbox, 3);
    let Some(recording) = record(&sandbox, &["add", "--json", "d"]) else { return };
    recording.check(|image| {
        let added = cores(&image.lines, &["added"]);
        assert!(!image.is_done || added.len() == 3, "{}", image.which);
        image.expect_vault("v.vault", &[before.as_slice(), &added].concat());
    });
}

/// One artifact for each process, after commands that leave the file in different states.
#[test]
fn what_each_process_added_is_there() {
    let (sandbox, mut before) = with_examples();
    sessions(&sandbox, 4);
    let others: [&[&str]; 4] =
        [&[], &["find"], &["tag", "set", "4df877dec7f4", "x"], &["rm", "103ef1c54b58", "--force"]];
    for (number, other) in others.into_iter().enumerate() {
        if !other.is_empty() {
            sandbox.run(other).expect(0);
        }
        before.retain(|core| other.first() != Some(&"rm") || !core.to_string().contains("103ef1c54b58"));
        let Some(recording) = record(&sandbox, &["add", "--json", &format!("d/{number}.json")]) else {
            return;
        };
        recording.check(|image| {
            let added = cores(&image.lines, &["added"]);
            assert!(!image.is_done || added.len() == 1, "{}", image.which);
            image.expect_vault("v.vault", &[before.as_slice(), &added].concat());
        });
        before.extend(
            sandbox.add([format!("d/{number}.json")]).iter().map(|core| core.parse::<CoreHash>().unwrap()),
        );
    }
}

/// The number of artifacts in the examples.
const EXAMPLES: usize = 7;

/// A copy of only the vault's file, made while no process uses it, has everything.
#[test]
fn the_file_alone_is_the_whole_vault_when_it_is_not_in_use() {
    let (sandbox, _) = with_examples();
    sessions(&sandbox, 3);
    for number in 0..3 {
        sandbox.add([format!("d/{number}.json")]);
        assert!(!sandbox.path("v.vault-wal").exists());
        std::fs::copy(sandbox.vault(), sandbox.path("copy.vault")).unwrap();
        let copy = Vault::open(&sandbox.path("copy.vault")).unwrap();
        let count = copy.snapshot().unwrap().all_artifacts(None).unwrap().len();
        assert_eq!(count, EXAMPLES + number + 1);
    }
}

#[test]
fn reading_syncs_nothing() {
    let (sandbox, _) = with_examples();
    let Some(recording) = record(&sandbox, &["get", "4df877dec7f4"]) else { return };
    let syncs = recording.events.iter().filter(|event| matches!(event, Event::Sync(_)));
    assert_eq!(syncs.count(), 0);
}

#[test]
fn what_was_removed_stays_removed_and_the_rest_stays() {
    let (sandbox, before) = with_examples();
    let gone = before.iter().find(|core| core.to_string().contains("103ef1c54b58")).unwrap();
    let rest: Vec<CoreHash> = before.iter().filter(|core| *core != gone).copied().collect();
    for arguments in [&["rm", "103ef1c54b58", "--force"][..], &["gc"]] {
        let Some(recording) = record(&sandbox, arguments) else { return };
        recording.check(|image| {
            image.expect_vault("v.vault", &rest);
            if image.is_done || arguments == ["gc"] {
                let vault = Vault::open(&image.path("v.vault")).unwrap();
                assert!(vault.get(&gone.0.into()).is_err(), "{}", image.which);
            }
        });
    }
}

#[test]
fn a_file_that_is_written_has_all_of_its_bytes() {
    let (sandbox, _) = with_examples();
    for (name, arguments) in [
        ("get.json", &["get", "4df877dec7f4", "-o", "get.json"][..]),
        ("get.json", &["get", "103ef1c54b58", "-o", "get.json", "--force", "--mode", "644"]),
        ("pack.tar", &["get", PACK, "-o", "pack.tar"]),
        ("all.rvz", &["export", "--all", "-o", "all.rvz"]),
        ("all.rvz", &["export", "4df877dec7f4", "-o", "all.rvz", "--force"]),
        ("b.vault", &["backup", "b.vault"]),
        ("b.vault", &["backup", "b.vault", "--force"]),
        ("saved.db", &["sql", "--save", "saved.db"]),
        ("config.toml", &["config", "set", "max-depth", "100"]),
        ("config.toml", &["config", "set", "actor", "me"]),
        ("man/runvault.1", &["man", "--all", "man"]),
    ] {
        let before = std::fs::read(sandbox.path(name)).ok();
        let Some(recording) = record(&sandbox, arguments) else { return };
        let new = std::fs::read(sandbox.path(name)).unwrap();
        recording.check(|image| image.expect_whole(name, before.as_deref(), &new));
    }
}

#[test]
fn a_directory_that_is_written_has_all_of_its_files() {
    let (sandbox, _) = with_examples();
    let other = sandbox.add([repository("tests/corpus/pack/minimal-bundle")]).remove(0);
    for arguments in [&["get", PACK, "-o", "out"][..], &["get", &other, "-o", "out", "--force"]] {
        let before = directory_of(&sandbox.path("out"));
        let Some(recording) = record(&sandbox, arguments) else { return };
        let new = directory_of(&sandbox.path("out"));
        assert!(new.len() >= 2 && new != before);
        recording.check(|image| {
            let found = directory_of(&image.path("out"));
            assert!(found == new || (!image.is_done && found == before), "{}: {found:?}", image.which);
        });
    }
}

/// What is in a directory under names that programs make up.
fn made_up(image: &Image, directory: &str) -> Vec<String> {
    let entries = std::fs::read_dir(image.path(directory)).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names
        .filter(|name| name.starts_with('.') || name.contains("tmp") || name.contains("unfinished"))
        .collect()
}

#[test]
fn what_a_killed_command_leaves_the_next_one_removes() {
    let (sandbox, _) = with_examples();
    for arguments in [
        &["get", "4df877dec7f4", "-o", "get.json"][..],
        &["get", PACK, "-o", "out"],
        &["get", "5c496a37feba", "-o", "get.json", "--force"],
        &["get", PACK, "-o", "out", "--force", "--mode", "640"],
        &["export", "--all", "-o", "all.rvz"],
        &["backup", "b.vault"],
        &["sql", "--save", "saved.db"],
        &["config", "set", "max-depth", "100"],
    ] {
        let Some(recording) = record(&sandbox, arguments) else { return };
        recording.check_kills(|image| {
            // Another command, to another name.
            run_in(image, &["get", "103ef1c54b58", "-o", "next.json"]);
            assert_eq!(made_up(image, ""), Vec::<String>::new(), "{arguments:?}: {}", image.which);
        });
    }
}

/// Copies the files of the example into the directory `name`, and returns their names and contents.
fn copy_pack(sandbox: &Sandbox, name: &str) -> Vec<(String, Vec<u8>)> {
    let files = directory_of(&repository("examples/pack"));
    for (file, bytes) in &files {
        sandbox.write(&format!("{name}/{file}"), bytes);
    }
    files
}

/// After a kill at every step of moving, each file is in the vault or can be found, and the next move leaves nothing.
#[test]
fn what_a_killed_move_leaves_the_next_one_takes() {
    let sandbox = Sandbox::new();
    sessions(&sandbox, 3);
    copy_pack(&sandbox, "d/pack");
    let Some(recording) = record(&sandbox, &["add", "--move", "d"]) else { return };
    let all = Vault::open(&sandbox.vault()).unwrap().snapshot().unwrap().all_artifacts(None).unwrap().len();
    let directory = std::fs::canonicalize(sandbox.path("d")).unwrap();
    let check = |image: &Image| {
        // With a file that is new, for a directory in which there is nothing is no input.
        std::fs::write(image.path("d/next.json"), session("next", &[("p", "r")])).unwrap();
        run_in(image, &["add", "--move", "d"]);
        let left = std::fs::read_dir(image.path("d")).unwrap().map(|entry| entry.unwrap().file_name());
        assert!(left.into_iter().all(|name| name == "pack"), "{}", image.which);
        // Its directory can remain, without any file.
        assert!(directory_of(&image.path("d/pack")).is_empty(), "{}", image.which);
        let vault = Vault::open(&image.path("v.vault")).unwrap();
        assert_eq!(vault.snapshot().unwrap().all_artifacts(None).unwrap().len(), all + 1, "{}", image.which);
    };
    recording.check_kills(check);
    recording.check_each_change_of(&directory, check);
}

/// The same for a pack and a file that are named: they are complete under their names again, or gone.
#[test]
fn what_is_named_again_after_a_killed_move_is_found() {
    let sandbox = Sandbox::new();
    let pack = copy_pack(&sandbox, "p");
    sandbox.write("f/s.json", session("a", &[("prompt", "response")]));
    let Some(recording) = record(&sandbox, &["add", "--move", "p", "f/s.json"]) else { return };
    let root = std::fs::canonicalize(sandbox.path("")).unwrap();
    recording.check_each_change_of(&root.join("f"), |image| {
        let is_gone = directory_of(&image.path("f")).is_empty();
        let status = if is_gone { 2 } else { 0 };
        assert_eq!(status_in(image, &["add", "--move", "f/s.json"]), status, "{}", image.which);
        assert!(directory_of(&image.path("f")).is_empty(), "{}", image.which);
    });
    recording.check_each_change_of(&root.join("p"), |image| {
        // A command that writes there recovers the files, too.
        if !image.path("p").exists() {
            return;
        }
        run_in(image, &["get", PACK, "-o", "p/written.tar"]);
        std::fs::remove_file(image.path("p/written.tar")).unwrap();
        let left = directory_of(&image.path("p"));
        assert!(left.is_empty() || left == pack, "{}: {left:?}", image.which);
        if !left.is_empty() {
            run_in(image, &["add", "--move", "p"]);
            assert!(!image.path("p").exists(), "{}", image.which);
        }
    });
}

/// Runs the program on what is left.
fn run_in(image: &Image, arguments: &[&str]) {
    let output = output_in(image, arguments);
    assert!(output.status.success(), "{}: {}", image.which, String::from_utf8_lossy(&output.stderr));
}

fn status_in(image: &Image, arguments: &[&str]) -> i32 {
    output_in(image, arguments).status.code().unwrap()
}

fn output_in(image: &Image, arguments: &[&str]) -> std::process::Output {
    let mut command = std::process::Command::new(program());
    command.current_dir(image.path("")).env_clear().args(arguments);
    command.env("RUNVAULT_VAULT", "v.vault").env("RUNVAULT_CONFIG", "none.toml");
    command.output().unwrap()
}

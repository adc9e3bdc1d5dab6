//! `add --move` and `add --fail-fast`: what goes, what stays, and what is said.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use runvault::Vault;
use runvault::clock;
use runvault::intake::{
    ArtifactSource, ExamineOptions, Input, Inputs, KeepReason, MoveOptions, MoveOutcome, SourceError,
};
use runvault::vault::add::{AddMonitor, ExaminedDocument};

use crate::sandbox::{Sandbox, repository, session};

fn copy_pack(sandbox: &Sandbox, name: &str) {
    for entry in std::fs::read_dir(repository("examples/pack")).unwrap() {
        let entry = entry.unwrap();
        let file = entry.file_name().into_string().unwrap();
        sandbox.write(&format!("{name}/{file}"), std::fs::read(entry.path()).unwrap());
    }
}

fn names(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn what_is_stored_goes_and_nothing_else() {
    let sandbox = Sandbox::new();
    let good = session("good", &[("p", "r")]);
    sandbox.write("d/good.json", &good);
    sandbox.write("d/again.json", &good);
    sandbox.write("d/bad.rpk", "{}");
    sandbox.write("d/notes.txt", "notes");
    copy_pack(&sandbox, "d/pack");
    let ran = sandbox.run(["add", "--move", "--json", "d"]).expect(1);
    let moved: Vec<String> = ran
        .json()
        .iter()
        .map(|line| format!("{} {} {}", line["path"], line["outcome"], line["moved"]).replace('"', ""))
        .collect();
    assert_eq!(
        moved,
        [
            "d/again.json added true",
            "d/bad.rpk rejected null",
            "d/good.json present true",
            "d/pack added true"
        ]
    );
    assert_eq!(names(&sandbox.path("d")), ["bad.rpk", "notes.txt"]);
    assert!(
        ran.stderr.contains("2 added, 1 seen again") && ran.stderr.contains("3 moved;"),
        "{}",
        ran.stderr
    );
    // What is gone is in the vault.
    let core = ran.json()[0]["core_hash"].as_str().unwrap().to_owned();
    assert_eq!(sandbox.run(["get", &core]).expect(0).stdout, good);
    sandbox.run(["fsck"]).expect(0);
}

#[test]
fn archives_go_as_a_whole() {
    let sandbox = Sandbox::new();
    let core = sandbox.add([repository("examples/pack")]).remove(0);
    for name in ["p.zip", "p.tar.gz"] {
        sandbox.run(["get", &core, "-o", name]).expect(0);
        let ran = sandbox.run(["add", "--move", name]).expect(0);
        assert_eq!(ran.stdout, format!("moved         export pack {} {name}\n", &core[7..19]));
        assert!(!sandbox.path(name).exists());
    }
}

#[test]
fn standard_input_and_dry_runs_move_nothing() {
    let sandbox = Sandbox::without_vault();
    let ran = sandbox.run_on(b"{}", &["add", "--move", "-"]).expect(3);
    assert!(ran.stderr.contains("--move works on files, not on standard input"), "{}", ran.stderr);
    sandbox.write("s.json", session("a", &[]));
    sandbox.run(["add", "--move", "--dry-run", "s.json"]).expect(3);
    assert!(sandbox.path("s.json").exists() && !sandbox.vault().exists());
}

#[cfg(unix)]
#[test]
fn links_stay_and_are_named() {
    let sandbox = Sandbox::new();
    sandbox.write("real.json", session("a", &[]));
    std::os::unix::fs::symlink("real.json", sandbox.path("link.json")).unwrap();
    let ran = sandbox.run(["add", "--move", "link.json"]).expect(1);
    assert!(ran.stdout.starts_with("added ") && !ran.stdout.contains("moved"), "{}", ran.stdout);
    assert!(ran.stderr.contains("kept link.json: it is a link"), "{}", ran.stderr);
    assert!(sandbox.path("link.json").exists() && sandbox.path("real.json").exists());
}

#[cfg(target_os = "linux")]
#[test]
fn what_cannot_be_removed_is_reported_and_stays_in_the_vault() {
    let sandbox = Sandbox::new();
    sandbox.write("d/s.json", session("a", &[]));
    sandbox.write("d/t.json", session("b", &[]));
    // Directories that cannot be written are no obstacle to root, but files that cannot be changed are.
    let is_fixed = |flag: &str| {
        let ran = std::process::Command::new("chattr").arg(flag).arg(sandbox.path("d/s.json")).status();
        ran.is_ok_and(|status| status.success())
    };
    if !is_fixed("+i") {
        return;
    }
    let ran = sandbox.run(["add", "--move", "d"]);
    assert!(is_fixed("-i"));
    let ran = ran.expect(2);
    assert!(ran.stderr.contains("error: cannot remove d/s.json: "), "{}", ran.stderr);
    assert!(ran.stderr.contains("1 moved, 1 stored but not moved"), "{}", ran.stderr);
    assert_eq!(sandbox.run(["find", "--json"]).expect(0).json().len(), 2);
    assert_eq!(names(&sandbox.path("d")), ["s.json"]);
}

/// Does something between the storing and the taking away, and keeps what became of it.
struct Between<F> {
    act: F,
    taken: Vec<MoveOutcome>,
}

/// Removes an original with the default options.
fn remove(original: &ArtifactSource) -> MoveOutcome {
    let outcomes = ArtifactSource::remove_all(&[original], &MoveOptions::default(), clock::now().into());
    outcomes.into_iter().next().unwrap()
}

impl<F: FnMut()> AddMonitor for Between<F> {
    fn examined(&mut self, examined: &ExaminedDocument) {
        (self.act)();
        let original = examined.original.as_ref();
        self.taken.extend(original.map(remove));
    }

    fn unreadable(&mut self, error: &SourceError) {
        panic!("{error}");
    }
}

fn take(sandbox: &Sandbox, name: &str, act: impl FnMut()) -> MoveOutcome {
    let vault = Vault::open_or_create(&sandbox.vault()).unwrap();
    let mut between = Between { act, taken: Vec::new() };
    let inputs = Inputs::new(vec![Input::Path(sandbox.path(name))]);
    vault.add(inputs, &ExamineOptions::default(), &mut between).unwrap();
    assert_eq!(between.taken.len(), 1);
    between.taken.remove(0)
}

#[test]
fn a_file_that_changes_between_reading_and_removing_stays() {
    let sandbox = Sandbox::new();
    let text = session("a", &[("p", "r")]);
    let path = sandbox.write("s.json", &text);
    let other = text.replace("\"m\"", "\"n\"");
    // Of the same size.
    let taken = take(&sandbox, "s.json", || std::fs::write(&path, &other).unwrap());
    assert_eq!(taken.kept, [(path.clone(), KeepReason::Changed)]);
    assert!(taken.removed.is_empty() && !taken.is_whole());
    assert_eq!(std::fs::read_to_string(&path).unwrap(), other);
    // The other one is as good as any.
    sandbox.run(["add", "--move", "s.json"]).expect(0);
    assert!(!path.exists());
    assert_eq!(sandbox.run(["find", "--json"]).expect(0).json().len(), 2);
}

/// Where a document was read from that is in the vault then.
#[cfg(target_os = "linux")]
fn original_of(sandbox: &Sandbox, name: &str) -> ArtifactSource {
    struct Keep(Option<ArtifactSource>);
    impl AddMonitor for Keep {
        fn examined(&mut self, examined: &ExaminedDocument) {
            self.0.clone_from(&examined.original);
        }
        fn unreadable(&mut self, error: &SourceError) {
            panic!("{error}");
        }
    }
    let vault = Vault::open_or_create(&sandbox.vault()).unwrap();
    let mut keep = Keep(None);
    let inputs = Inputs::new(vec![Input::Path(sandbox.path(name))]);
    vault.add(inputs, &ExamineOptions::default(), &mut keep).unwrap();
    keep.0.unwrap()
}

#[cfg(target_os = "linux")]
#[test]
fn what_takes_the_place_of_a_file_while_it_is_removed_is_never_lost() {
    use rustix::fs::{CWD, RenameFlags, renameat_with};

    let sandbox = Sandbox::new();
    let stored = session("a", &[("p", "r")]);
    let (path, beside) = (sandbox.write("d/s.json", &stored), sandbox.path("d/t.json"));
    let original = original_of(&sandbox, "d/s.json");
    let other = stored.replace("\"m\"", "\"n\"");
    std::fs::write(&beside, &other).unwrap();
    // Both are so old that times tell nothing.
    for path in [&path, &beside] {
        std::fs::File::options().write(true).open(path).unwrap().set_modified(std::time::UNIX_EPOCH).unwrap();
    }
    let is_over = AtomicBool::new(false);
    let mut removed = 0;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                let _ = renameat_with(CWD, &path, CWD, &beside, RenameFlags::EXCHANGE);
            }
        });
        for _ in 0..1_000 {
            let taken = remove(&original);
            if !taken.removed.is_empty() {
                removed += 1;
                std::fs::write(sandbox.path("d/new"), &stored).unwrap();
                // The other one may be at either place, and this goes to the one that is free.
                for free in [&path, &beside] {
                    if std::fs::hard_link(sandbox.path("d/new"), free).is_ok() {
                        break;
                    }
                }
                std::fs::remove_file(sandbox.path("d/new")).unwrap();
            }
        }
        is_over.store(true, Ordering::Relaxed);
    });
    let left: Vec<String> = names(&sandbox.path("d"))
        .iter()
        .map(|name| std::fs::read_to_string(sandbox.path("d").join(name)).unwrap())
        .collect();
    assert!(left.contains(&other), "removed {removed} times, the last time what was not stored");
    assert!(removed > 0, "it was not there even once");
    assert_eq!(names(&sandbox.path("d")), ["s.json", "t.json"], "nothing is left aside");
}

#[test]
fn a_file_that_is_gone_before_it_is_removed_is_no_trouble() {
    let sandbox = Sandbox::new();
    let path = sandbox.write("s.json", session("a", &[]));
    let taken = take(&sandbox, "s.json", || std::fs::remove_file(&path).unwrap());
    assert!(taken.is_whole() && taken.removed.is_empty());
}

#[test]
fn a_pack_loses_what_was_stored_and_keeps_the_rest() {
    let sandbox = Sandbox::new();
    copy_pack(&sandbox, "p");
    let (unexpected, changed) = (sandbox.path("p/notes.txt"), sandbox.path("p/policy.json"));
    let taken = take(&sandbox, "p", || {
        std::fs::write(&unexpected, "mine").unwrap();
        std::fs::write(&changed, "{}").unwrap();
    });
    assert_eq!(taken.kept, [(changed, KeepReason::Changed), (unexpected, KeepReason::Unexpected)]);
    assert!(taken.failed.is_empty() && !taken.is_whole());
    assert_eq!(names(&sandbox.path("p")), ["notes.txt", "policy.json"]);
}

/// Examines `name`, exchanges the directory `d` for a link to `other`, which holds the same, and removes what was read.
#[cfg(unix)]
fn removed_after_exchange(sandbox: &Sandbox, name: &str) -> MoveOutcome {
    take(sandbox, name, || {
        std::fs::rename(sandbox.path("d"), sandbox.path("away")).unwrap();
        std::os::unix::fs::symlink("other", sandbox.path("d")).unwrap();
    })
}

#[cfg(unix)]
#[test]
fn a_directory_that_is_exchanged_for_a_link_protects_what_the_link_leads_to() {
    for (name, sort) in [("d/s.json", "named"), ("d", "found"), ("d/deep", "found deeper")] {
        let sandbox = Sandbox::new();
        let text = session("a", &[("p", "r")]);
        let file = if name == "d/deep" { "deep/s.json" } else { "s.json" };
        sandbox.write(&format!("d/{file}"), &text);
        let other = sandbox.write(&format!("other/{file}"), &text);
        let taken = removed_after_exchange(&sandbox, name);
        assert_eq!(taken.kept, [(sandbox.path("d").join(file), KeepReason::Replaced)], "{sort}");
        assert!(taken.removed.is_empty() && taken.failed.is_empty() && !taken.is_whole());
        assert_eq!(std::fs::read_to_string(&other).unwrap(), text);
        assert!(sandbox.path("away").join(file).exists());
    }
}

#[cfg(unix)]
#[test]
fn a_pack_and_its_directory_are_protected_likewise() {
    for name in ["d", "d/pack"] {
        let sandbox = Sandbox::new();
        let place = |root: &str| if name == "d" { root.to_owned() } else { format!("{root}/pack") };
        copy_pack(&sandbox, &place("d"));
        copy_pack(&sandbox, &place("other"));
        let before = names(&sandbox.path(&place("other")));
        let taken = removed_after_exchange(&sandbox, name);
        assert_eq!(taken.kept, [(sandbox.path(name), KeepReason::Replaced)]);
        assert_eq!(names(&sandbox.path(&place("other"))), before);
    }
}

#[cfg(unix)]
#[test]
fn a_directory_with_the_same_name_and_contents_is_not_the_one_that_was_read() {
    let sandbox = Sandbox::new();
    let text = session("a", &[]);
    sandbox.write("d/s.json", &text);
    let taken = take(&sandbox, "d", || {
        std::fs::rename(sandbox.path("d"), sandbox.path("away")).unwrap();
        sandbox.write("d/s.json", &text);
    });
    assert_eq!(taken.kept, [(sandbox.path("d/s.json"), KeepReason::Replaced)]);
    assert!(sandbox.path("d/s.json").exists());
}

#[cfg(unix)]
#[test]
fn a_directory_that_becomes_a_link_between_listing_and_reading_is_not_read() {
    let sandbox = Sandbox::new();
    sandbox.write("d/sub/s.json", session("a", &[]));
    let secret = sandbox.write("other/s.json", session("secret", &[]));
    // The entries of "sub" are known now, and not opened yet.
    let mut inputs = Inputs::new(vec![Input::Path(sandbox.path("d"))]);
    let item = inputs.next().unwrap().unwrap();
    std::fs::rename(sandbox.path("d/sub"), sandbox.path("away")).unwrap();
    std::os::unix::fs::symlink(sandbox.path("other"), sandbox.path("d/sub")).unwrap();
    let error = runvault::intake::examine(item, &ExamineOptions::default()).unwrap_err();
    assert!(error.to_string().ends_with("its directory was replaced while it was read"), "{error}");
    assert!(secret.exists());
    // And a directory that was listed as one, and not entered yet.
    let sandbox = Sandbox::new();
    sandbox.write("d/a.json", session("a", &[]));
    sandbox.write("d/sub/s.json", session("b", &[]));
    sandbox.write("other/s.json", session("secret", &[]));
    let mut inputs = Inputs::new(vec![Input::Path(sandbox.path("d"))]);
    assert!(inputs.next().unwrap().unwrap().name().to_string_lossy().ends_with("a.json"));
    std::fs::rename(sandbox.path("d/sub"), sandbox.path("away")).unwrap();
    std::os::unix::fs::symlink(sandbox.path("other"), sandbox.path("d/sub")).unwrap();
    let error = inputs.next().unwrap().unwrap_err();
    assert!(error.to_string().ends_with("its directory was replaced while it was read"), "{error}");
    assert!(inputs.next().is_none());
}

#[test]
fn an_archive_that_changes_stays() {
    let sandbox = Sandbox::new();
    let core = sandbox.add([repository("examples/pack")]).remove(0);
    sandbox.run(["get", &core, "-o", "p.tar"]).expect(0);
    let path = sandbox.path("p.tar");
    let once = AtomicBool::new(false);
    let taken = take(&sandbox, "p.tar", || {
        if !once.swap(true, Ordering::Relaxed) {
            std::fs::write(&path, "something else").unwrap();
        }
    });
    assert_eq!(taken.kept, [(path, KeepReason::Changed)]);
}

#[test]
fn the_first_bad_document_ends_it_if_that_is_wanted() {
    let sandbox = Sandbox::new();
    for number in 0..40 {
        let good = session(&format!("adapter-{number}"), &[]);
        sandbox.write(&format!("d/{number:02}.json"), if number == 20 { "{}".to_owned() } else { good });
    }
    sandbox.write("d/20.rpk", "{}");
    let kept_going = ["add", "--dry-run", "--json", "--keep-going", "d"];
    assert_eq!(sandbox.run(kept_going).expect(1).json().len(), 40);
    let ran = sandbox.run(["add", "--json", "--fail-fast", "d"]).expect(1);
    let paths: Vec<String> =
        ran.json().iter().map(|line| line["path"].as_str().unwrap().to_owned()).collect();
    let expected: Vec<String> =
        (0..20).map(|number| format!("d/{number:02}.json")).chain(["d/20.rpk".into()]).collect();
    assert_eq!(paths, expected, "d/20.json is no artifact, and is skipped as always");
    let left = "stopped at the first failure; 19 documents after it were not examined";
    assert!(ran.stderr.contains(left), "{}", ran.stderr);
    assert_eq!(sandbox.run(["find", "--json"]).expect(0).json().len(), 20);
    // The flag that comes last counts.
    let ran = sandbox.run(["add", "--json", "--fail-fast", "--keep-going", "d"]).expect(1);
    assert_eq!(ran.json().len(), 40);
}

#[test]
fn what_cannot_be_read_ends_it_as_well() {
    let sandbox = Sandbox::new();
    sandbox.write("a.json", session("a", &[]));
    sandbox.write("b.json", session("b", &[]));
    let ran = sandbox.run(["add", "--fail-fast", "a.json", "missing.json", "b.json"]).expect(2);
    assert!(ran.stderr.contains("1 document after it was not examined"), "{}", ran.stderr);
    assert_eq!(sandbox.run(["find", "--json"]).expect(0).json().len(), 1);
    let ran = sandbox.run(["add", "--fail-fast", "a.json", "b.json"]).expect(0);
    assert!(!ran.stderr.contains("stopped"), "{}", ran.stderr);
}

//! Files that commands write: where they may be, and who can read them.

use std::fs;
use std::path::Path;

use runvault::Vault;
use runvault::storage::ErrorKind;

use crate::sandbox::{Sandbox, program, repository, session};

/// Names that SQLite would take for something else than a file, or for a file of another name.
const STRANGE: [&str; 9] = [
    ":memory:",
    "file:x.vault",
    "file::memory:",
    "file:y?mode=memory&cache=shared",
    "file:z?vfs=unix-none",
    "file:",
    "FILE:w",
    "?immutable=1",
    "%3Amemory%3A",
];

fn with_examples() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.run(["add".into(), repository("examples")]).expect(0);
    sandbox
}

fn is_database(path: &Path) -> bool {
    fs::read(path).is_ok_and(|bytes| bytes.starts_with(b"SQLite format 3\0"))
}

#[test]
fn a_vault_is_a_file_whatever_its_name() {
    for name in STRANGE {
        let sandbox = Sandbox::without_vault();
        let file = sandbox.write("s.json", session("a", &[("p", "r")]));
        let file = file.to_str().unwrap();
        sandbox.run(["--vault", name, "add", "--create", "--move", file]).expect(0);
        assert!(is_database(&sandbox.path(name)), "{name}");
        let from_variable: crate::sandbox::Ran =
            sandbox.command().env("RUNVAULT_VAULT", name).args(["find", "--json"]).output().unwrap().into();
        assert_eq!(from_variable.expect(0).json().len(), 1, "{name}");
        sandbox.run(["config", "set", "vault", name]).expect(0);
        let from_file: crate::sandbox::Ran =
            sandbox.command().env_remove("RUNVAULT_VAULT").args(["find", "--json"]).output().unwrap().into();
        assert_eq!(from_file.expect(0).json().len(), 1, "{name}");
        let mut names: Vec<String> = fs::read_dir(sandbox.path(""))
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        let mut expected = vec![(*name).to_owned(), "config.toml".to_owned()];
        expected.sort();
        assert_eq!(names, expected);
    }
}

#[test]
fn what_is_written_is_a_file_whatever_its_name() {
    let sandbox = with_examples();
    for name in STRANGE {
        for arguments in [
            &["backup", name, "--force"][..],
            &["sql", "--save", name, "--force"],
            &["get", "4df877dec7f4", "-o", name, "--force"],
            &["export", "--all", "-o", name, "--force"],
        ] {
            let _ = fs::remove_file(sandbox.path(name));
            sandbox.run(arguments).expect(0);
            assert!(sandbox.path(name).is_file(), "{arguments:?}");
            assert_eq!(is_database(&sandbox.path(name)), ["backup", "sql"].contains(&arguments[0]));
        }
        sandbox.run(["--vault", "n.vault", "import", "--create", name]).expect(0);
        fs::remove_file(sandbox.path("n.vault")).unwrap();
        sandbox.run(["backup", name, "--force"]).expect(0);
        // Lost bytes are taken from it.
        let lost = Sandbox::new();
        lost.run(["add".into(), repository("examples")]).expect(0);
        let connection =
            rusqlite::Connection::open_with_flags(lost.vault(), rusqlite::OpenFlags::SQLITE_OPEN_READ_WRITE)
                .unwrap();
        let spoil =
            "UPDATE payload SET encoding = 0, bytes = x'00' WHERE rowid = (SELECT min(rowid) FROM payload)";
        assert_eq!(connection.execute(spoil, []).unwrap(), 1);
        drop(connection);
        lost.run(["fsck"]).expect(1);
        fs::copy(sandbox.path(name), lost.path(name)).unwrap();
        lost.run(["fsck", "--repair", "--from", name]).expect(0);
    }
}

#[test]
fn an_empty_path_is_an_error() {
    let sandbox = Sandbox::without_vault();
    sandbox.run(["--vault", "", "find"]).expect(3);
    let empty = Path::new("");
    let mut silent = Silent;
    for outcome in
        [Vault::open(empty).map(drop), Vault::create(empty).map(drop), Vault::open_or_create(empty).map(drop)]
    {
        assert!(matches!(&outcome, Err(error) if error.kind() == ErrorKind::Invalid), "{outcome:?}");
    }
    let later = Vault::create_when_needed(empty).unwrap();
    let document = runvault::intake::Input::Document {
        name: String::new(),
        bytes: session("a", &[("p", "r")]).into_bytes(),
    };
    let inputs = runvault::intake::Inputs::new(vec![document]);
    let outcome = later.add(inputs, &runvault::intake::ExamineOptions::default(), &mut silent);
    assert!(matches!(&outcome, Err(error) if error.kind() == ErrorKind::Invalid), "{outcome:?}");
}

struct Silent;

impl runvault::vault::fsck::FsckMonitor for Silent {
    fn found(&mut self, _: &runvault::vault::fsck::Finding) {}
    fn checked(&mut self, _: runvault::digest::CoreHash, _: u64) {}
}

impl runvault::vault::add::AddMonitor for Silent {
    fn examined(&mut self, _: &runvault::vault::add::ExaminedDocument) {}
    fn unreadable(&mut self, _: &runvault::intake::SourceError) {}
}

#[cfg(unix)]
mod on_unix {
    use std::collections::BTreeMap;
    use std::ffi::OsString;
    use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
    use std::process::Command;

    use super::*;
    use crate::fsck::sql;
    use crate::sandbox::Ran;

    const PACK: &str = "54490aab8b3f";

    /// The files of the sandbox's directory: what they are, and what is in them. What is in the memory that processes share
    /// changes with each reader.
    fn contents(sandbox: &Sandbox) -> BTreeMap<OsString, (u64, String)> {
        let entries = fs::read_dir(sandbox.path("")).unwrap().map(Result::unwrap);
        // Not in this process: closing a file of a vault that is open here would drop its locks.
        let read = |path: &Path| Command::new("cat").arg(path).output().unwrap().stdout;
        let content = |path: &Path| {
            let is_memory = path.to_string_lossy().contains("shm");
            if is_memory {
                String::new()
            } else {
                runvault::digest::Digest::from_content(&read(path)).to_string()
            }
        };
        let row = |entry: fs::DirEntry| {
            (entry.file_name(), (entry.metadata().unwrap().ino(), content(&entry.path())))
        };
        entries.map(row).collect()
    }

    #[test]
    fn nothing_overwrites_a_file_of_the_vault() {
        let sandbox = with_examples();
        fs::create_dir(sandbox.path("e")).unwrap();
        symlink("..", sandbox.path("e/up")).unwrap();
        symlink("v.vault", sandbox.path("link")).unwrap();
        symlink("v.vault-wal", sandbox.path("link-to-log")).unwrap();
        // Once without a log, and once with one.
        for is_open in [false, true] {
            let open = is_open.then(|| Vault::open(&sandbox.vault()).unwrap());
            let names = ["", "-wal", "-shm", "-journal"].map(|ending| format!("v.vault{ending}"));
            let mut names: Vec<String> =
                names.iter().flat_map(|name| [name.clone(), format!("e/up/{name}")]).collect();
            names.push("link".to_owned());
            if open.is_some() {
                sandbox.run(["note", "set", "4df877dec7f4", "in the log"]).expect(0);
                assert!(fs::metadata(sandbox.path("v.vault-wal")).unwrap().len() > 0);
                fs::hard_link(sandbox.path("v.vault-wal"), sandbox.path("hard-to-log")).unwrap();
                fs::hard_link(sandbox.path("v.vault-shm"), sandbox.path("hard-to-shm")).unwrap();
                names.extend(["link-to-log", "hard-to-log", "hard-to-shm"].map(str::to_owned));
            }
            let before = contents(&sandbox);
            for name in &names {
                for arguments in [
                    &["get", "4df877dec7f4", "-o", name, "--force"][..],
                    &["get", PACK, "-o", name, "--force"],
                    &["get", PACK, "--member", "run.json", "-o", name, "--force"],
                    &["export", "--all", "-o", name, "--force"],
                    &["backup", name, "--force"],
                    &["sql", "--save", name, "--force"],
                    &["fsck", "--resume", name],
                ] {
                    let ran = sandbox.run(arguments);
                    assert_eq!(ran.status, 2, "{arguments:?}: {}", ran.stderr);
                    let is_explained =
                        ran.stderr.contains("the vault itself") || ran.stderr.contains("is not a directory");
                    assert!(is_explained, "{arguments:?}: {}", ran.stderr);
                    assert_eq!(contents(&sandbox), before, "{arguments:?}");
                }
                let mut command = sandbox.command();
                command.env("RUNVAULT_CONFIG", name).args(["config", "set", "actor", "me"]);
                let ran: Ran = command.output().unwrap().into();
                assert!([2, 3].contains(&ran.status), "config set in {name}: {}", ran.stderr);
                assert_eq!(contents(&sandbox), before, "config set in {name}");
            }
        }
    }

    #[test]
    fn a_vault_with_the_name_of_something_that_is_written_stays() {
        let sandbox = Sandbox::without_vault();
        let run = |vault: &str, arguments: &[&str]| -> Ran {
            sandbox.command().args(["--vault", vault]).args(arguments).output().unwrap().into()
        };
        let examples = repository("examples");
        // In the directory of a pack, which is replaced as a whole, and as a page of the manual.
        for (vault, arguments) in [
            ("out/run.json", &["get", PACK, "-o", "out", "--force"][..]),
            ("man/runvault.1", &["man", "--all", "man"]),
        ] {
            run(vault, &["add", "--create", examples.to_str().unwrap()]).expect(0);
            let before = fs::read(sandbox.path(vault)).unwrap();
            let refused = run(vault, arguments).expect(2).stderr;
            let is_explained = ["the vault itself", "it contains run.json-"].map(|why| refused.contains(why));
            assert!(is_explained.contains(&true), "{refused}");
            assert_eq!(fs::read(sandbox.path(vault)).unwrap(), before);
        }
        // A link to the vault is replaced by those that replace links, and the vault is not touched.
        fs::create_dir(sandbox.path("pages")).unwrap();
        for page in ["runvault-add.1", "runvault-find.1"] {
            symlink("../out/run.json", sandbox.path("pages").join(page)).unwrap();
        }
        let before = fs::read(sandbox.path("out/run.json")).unwrap();
        run("man/runvault.1", &["man", "--all", "pages"]).expect(0);
        assert_eq!(fs::read(sandbox.path("out/run.json")).unwrap(), before);
    }

    #[test]
    fn a_vault_with_several_hard_links_is_refused() {
        let sandbox = with_examples();
        fs::hard_link(sandbox.vault(), sandbox.path("other")).unwrap();
        let before = contents(&sandbox);
        let file = sandbox.write("d/s.json", session("a", &[("p", "r")]));
        for name in ["v.vault", "other"] {
            for arguments in [
                &["find"][..],
                &["get", "4df877dec7f4"],
                &["add", "--create", "--move", file.to_str().unwrap()],
                &["fsck", "--repair"],
                &["watch", "--once", "d"],
                &["backup", "b.vault"],
            ] {
                let ran: Ran =
                    sandbox.command().args(["--vault", name]).args(arguments).output().unwrap().into();
                let said = ran.expect(2).stderr;
                assert!(said.contains(&format!("{name} has 2 hard links")), "{said}");
                assert!(said.contains("remove all but one"), "{said}");
            }
        }
        assert!(file.exists());
        fs::remove_dir_all(sandbox.path("d")).unwrap();
        assert_eq!(contents(&sandbox), before);
        fs::remove_file(sandbox.path("other")).unwrap();
        sandbox.run(["fsck"]).expect(0);
        // Links of the other sort are names of one file.
        symlink("v.vault", sandbox.path("link")).unwrap();
        sandbox.run(["--vault", "link", "fsck"]).expect(0);
    }

    /// Whatever is done in a process that has the vault open, such as a gateway or the library.
    #[test]
    fn a_vault_that_is_not_the_one_that_was_opened_is_not_written() {
        use runvault::vault::annotate::{SetNoteRequest, SetTagRequest};

        for change in
            ["cp other.vault v.vault", "ln v.vault second", "mv v.vault moved", "mv other.vault v.vault"]
        {
            let sandbox = with_examples();
            let text = |number: usize| session(&format!("a {number}"), &[("p", "r")]).into_bytes();
            sandbox.write("s.json", text(0));
            sandbox.run(["--vault", "other.vault", "add", "--create", "s.json"]).expect(0);
            let vault = Vault::open(&sandbox.vault()).unwrap();
            let options = runvault::intake::ExamineOptions::default();
            let core_hash = vault.add_document(text(1), &options).unwrap().core;
            let changed = Command::new("sh").args(["-c", change]).current_dir(sandbox.path("")).status();
            assert!(changed.unwrap().success());
            let name = "x".to_owned();
            for error in [
                match vault.add_document(text(2), &options) {
                    Err(runvault::AddError::Store(error)) => error,
                    outcome => panic!("{change}: {outcome:?}"),
                },
                vault.run(&SetTagRequest { core_hash, name }).map(drop).unwrap_err(),
                vault.run(&SetNoteRequest { core_hash, text: "x".to_owned() }).map(drop).unwrap_err(),
            ] {
                assert_eq!(error.kind(), ErrorKind::Replaced, "{change}: {error}");
            }
            drop(vault);
            let others = if change == "mv other.vault v.vault" { "v.vault" } else { "other.vault" };
            assert_eq!(sandbox.run(["--vault", others, "find", "--json"]).expect(0).json().len(), 1);
            sandbox.run(["--vault", others, "fsck"]).expect(0);
        }
    }

    #[test]
    fn a_read_that_is_under_way_is_not_answered_from_another_vault() {
        use runvault::storage::{Filter, Order, Page};

        for program in ["cp", "mv"] {
            let sandbox = with_examples();
            // Its rows are where those of the other one are.
            let other = Sandbox::without_vault();
            fs::copy(sandbox.vault(), other.vault()).unwrap();
            sql(&other).execute_batch("UPDATE journal SET chain = randomblob(32)").unwrap();
            let vault = Vault::open(&sandbox.vault()).unwrap();
            let (snapshot, reader) = (vault.snapshot().unwrap(), vault.sql().unwrap());
            let mut statement = reader.prepare("SELECT core_hash FROM artifacts", &[]).unwrap();
            let mut rows = statement.rows();
            assert!(rows.next().unwrap().is_ok());
            let find = || snapshot.find(&Filter::default(), Order::default(), &Page::all());
            assert!(!find().unwrap().items.is_empty());
            let mut writing = Command::new(program);
            assert!(writing.arg(other.vault()).arg(sandbox.vault()).status().unwrap().success());
            assert_eq!(find().unwrap_err().kind(), ErrorKind::Replaced, "{program}");
            let failure = rows.find_map(Result::err).expect("an error").to_string();
            assert!(failure.contains("overwritten with another vault"), "{program}: {failure}");
        }
    }

    /// As containers mount single files. Processes that use another name of the file would have another log.
    #[cfg(target_os = "linux")]
    #[test]
    fn a_vault_that_is_a_mount_point_is_refused() {
        let sandbox = with_examples();
        sandbox.write("d/s.json", session("a", &[("p", "r")]));
        sandbox.write("bound/w.vault", "");
        fs::create_dir(sandbox.path("m")).unwrap();
        symlink("bound/w.vault", sandbox.path("link")).unwrap();
        let mounted = |then: &str| -> Ran {
            let script = format!(
                "mount --bind v.vault bound/w.vault && mount --bind . m && RUNVAULT_CONFIG=none.toml && export RUNVAULT_CONFIG && {then}"
            );
            let mut command = Command::new("unshare");
            command.args(["-rm", "sh", "-c", &script]).current_dir(sandbox.path("")).output().unwrap().into()
        };
        if mounted("true").status != 0 {
            println!("skipped: no file can be mounted here");
            return;
        }
        let program = program();
        for name in ["bound/w.vault", "link"] {
            for command in ["find", "add --create --move d/s.json", "fsck", "watch --once d"] {
                let ran = mounted(&format!("'{program}' --vault {name} {command}")).expect(2);
                assert!(ran.stderr.contains("mount the directory that contains the vault"), "{}", ran.stderr);
            }
        }
        // The file under its own name, and in a directory that is mounted elsewhere.
        for name in ["v.vault", "m/v.vault"] {
            mounted(&format!("'{program}' --vault {name} fsck")).expect(0);
        }
        assert!(sandbox.path("d/s.json").exists());
    }

    #[test]
    fn a_device_is_not_replaced_by_a_file() {
        let sandbox = with_examples();
        symlink("/dev/null", sandbox.path("null")).unwrap();
        for arguments in
            [&["get", "4df877dec7f4", "-o", "null", "--force"][..], &["backup", "null", "--force"]]
        {
            let refused = sandbox.run(arguments).expect(2).stderr;
            assert!(refused.contains("it exists and is not a file"), "{refused}");
            assert!(sandbox.path("null").is_symlink());
        }
    }

    /// Runs the program with another umask.
    fn with_umask(sandbox: &Sandbox, umask: &str, arguments: &[&str]) -> Ran {
        let program = sandbox.command();
        let mut command = Command::new("sh");
        command.current_dir(sandbox.path("")).env_clear();
        command.envs(program.get_envs().filter_map(|(name, value)| Some((name, value?))));
        let script = format!("umask {umask}; exec \"$0\" \"$@\"");
        command.args(["-c", &script]).arg(program.get_program()).args(arguments);
        command.output().unwrap().into()
    }

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o7777
    }

    #[test]
    fn only_the_owner_can_read_what_is_written_unless_it_is_said() {
        let sandbox = with_examples();
        // Who could read a file that is replaced does not matter.
        for umask in ["000", "022", "077", "0177", "0277", "000"] {
            let allowed = 0o777 & !u32::from_str_radix(umask, 8).unwrap();
            for (name, arguments) in [
                ("s.json", &["get", "4df877dec7f4", "-o", "s.json", "--force"][..]),
                ("core", &["get", "4df877dec7f4", "--core", "-o", "core", "--force"]),
                ("p.zip", &["get", PACK, "-o", "p.zip", "--force"]),
                ("a.rvz", &["export", "--all", "-o", "a.rvz", "--force"]),
                ("b.vault", &["backup", "b.vault", "--force"]),
                ("saved.db", &["sql", "--save", "saved.db", "--force"]),
            ] {
                let path = sandbox.path(name);
                fs::write(&path, "there").unwrap();
                fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
                with_umask(&sandbox, umask, arguments).expect(0);
                assert_eq!(mode(&path), 0o600 & allowed, "{arguments:?}, umask {umask}");
            }
            with_umask(&sandbox, umask, &["get", PACK, "-o", "out", "--force"]).expect(0);
            assert_eq!(mode(&sandbox.path("out")), 0o700 & allowed, "umask {umask}");
            assert_eq!(mode(&sandbox.path("out/run.json")), 0o600 & allowed, "umask {umask}");
        }
    }

    #[test]
    fn permissions_are_those_that_are_asked_for() {
        let sandbox = with_examples();
        for (text, file, directory) in [("0644", 0o644, 0o755), ("640", 0o640, 0o750), ("0400", 0o400, 0o500)]
        {
            for arguments in [
                &["get", "4df877dec7f4", "-o", "s.json", "--force"][..],
                &["export", "--all", "-o", "s.json", "--force"],
            ] {
                with_umask(&sandbox, "077", &[arguments, &["--mode", text]].concat()).expect(0);
                assert_eq!(mode(&sandbox.path("s.json")), file, "{arguments:?}");
            }
            with_umask(&sandbox, "077", &["get", PACK, "-o", "out", "--force", "--mode", text]).expect(0);
            assert_eq!(mode(&sandbox.path("out/run.json")), file);
            assert_eq!(mode(&sandbox.path("out")), directory);
        }
        for text in ["", "8", "u+r", "01777", "-1", "0x1ff"] {
            sandbox.run(["get", "4df877dec7f4", "-o", "x", &format!("--mode={text}")]).expect(3);
        }
        assert!(!sandbox.path("x").exists());
    }

    #[test]
    fn locks_are_kept_while_the_directory_of_the_vault_is_read() {
        let sandbox = with_examples();
        let vault = Vault::open(&sandbox.vault()).unwrap();
        let add = |name: &str| {
            let path = sandbox.write(name, session(name, &[("p", "r")]));
            let inputs = [path, sandbox.path("")].map(runvault::intake::Input::Path).into();
            let inputs = runvault::intake::Inputs::new(inputs);
            let options = runvault::intake::ExamineOptions::default();
            let summary = vault.add(inputs, &options, &mut Silent).unwrap();
            assert_eq!((summary.added, summary.unreadable), (1, 0));
        };
        // Each of these reads everything that is in the directory, where the vault is as well; and opens the vault again.
        add("first.json");
        drop(Vault::open(&sandbox.vault()).unwrap());
        let log = sandbox.path("v.vault-wal");
        let before = fs::metadata(&log).unwrap();
        assert!(before.len() > 0);
        // The last process that uses a vault removes its log. This one is not the last.
        let found = sandbox.run(["find", "--json"]).expect(0).json().len();
        let after = fs::metadata(&log).map(|log| log.ino());
        assert_eq!(after.ok(), Some(before.ino()), "the log of a vault that is in use was removed");
        add("second.json");
        assert_eq!(sandbox.run(["find", "--json"]).expect(0).json().len(), found + 1);
        drop(vault);
        assert_eq!(sandbox.run(["find", "--json"]).expect(0).json().len(), found + 1);
        sandbox.run(["fsck"]).expect(0);
        // What is named is refused, what is found is passed over.
        let refused = sandbox.run(["add", "v.vault"]).expect(2).stderr;
        assert!(refused.contains("the vault itself"), "{refused}");
        assert!(sandbox.run(["add", "."]).expect(0).stderr.contains("skipped"));
    }
}

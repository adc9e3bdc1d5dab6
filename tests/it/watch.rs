//! `watch`: what appears is added once it is complete, whatever else happens.

use std::cell::Cell;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStderr, ChildStdout, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::sandbox::{Ran, Sandbox, program, run_pack, session};
#[cfg(unix)]
use crate::traces::{core, steps};

/// So long anything may take on a machine that does other things as well.
const TIMEOUT: Duration = Duration::from_mins(1);

/// A watch that goes on, and the lines that it prints.
struct Watch {
    child: Child,
    lines: Receiver<String>,
    said: BufReader<ChildStderr>,
    /// The number of documents that were written to see whether anything is told.
    later: Cell<usize>,
}

impl Watch {
    fn start(sandbox: &Sandbox, arguments: &[&str]) -> Self {
        Self::settling(sandbox, "400ms", arguments)
    }

    fn settling(sandbox: &Sandbox, settle: &str, arguments: &[&str]) -> Self {
        fs::create_dir_all(sandbox.path("d")).unwrap();
        let mut command = sandbox.command();
        command.args(["watch", "--json", "--interval", "20ms", "--settle", settle]);
        command.args(arguments).arg("d").stdout(Stdio::piped()).stderr(Stdio::piped());
        Self::of(command.spawn().unwrap())
    }

    /// Starts one with files of `prepare`, and changes files by `act`, until that takes less time than files need to settle:
    /// on a machine that does other things as well, all of them may have settled meanwhile.
    #[cfg(unix)]
    fn while_nothing_settles(
        arguments: &[&str],
        prepare: impl Fn(&Sandbox),
        act: impl Fn(&Sandbox),
    ) -> (Sandbox, Self) {
        loop {
            let sandbox = Sandbox::new();
            prepare(&sandbox);
            let watch = Self::settling(&sandbox, "3s", arguments);
            let begun = Instant::now();
            act(&sandbox);
            if begun.elapsed() < Duration::from_secs(3) {
                return (sandbox, watch);
            }
            watch.interrupt("-INT");
        }
    }

    fn of(mut child: Child) -> Self {
        // It says so when it watches.
        let mut stderr = BufReader::new(child.stderr.take().unwrap());
        let mut first = String::new();
        stderr.read_line(&mut first).unwrap();
        assert!(first.starts_with("watching d; press Ctrl-C to stop"), "{first}");
        let lines = lines_of(child.stdout.take().unwrap());
        Self { child, lines, said: stderr, later: Cell::default() }
    }

    /// The next line, as it came out: `name outcome`.
    fn next(&self) -> String {
        let line: Value = serde_json::from_str(&self.lines.recv_timeout(TIMEOUT).unwrap()).unwrap();
        let path = line["path"].as_str().unwrap().rsplit('/').next().unwrap();
        format!("{path} {}", line["outcome"].as_str().unwrap())
    }

    /// The same, and whether the file is gone.
    fn next_moved(&self) -> String {
        let line: Value = serde_json::from_str(&self.lines.recv_timeout(TIMEOUT).unwrap()).unwrap();
        let path = line["path"].as_str().unwrap().rsplit('/').next().unwrap();
        format!("{path} {} {}", line["outcome"].as_str().unwrap(), line["moved"])
    }

    /// Reads what it says up to a line with `text`.
    fn says(&mut self, text: &str) -> String {
        let mut all = String::new();
        while !all.lines().last().is_some_and(|line| line.contains(text)) {
            assert!(self.said.read_line(&mut all).unwrap() > 0, "it ended without {text:?}: {all}");
        }
        all
    }

    /// Nothing is told before another document, which comes later and settles, is.
    fn is_silent(&self, sandbox: &Sandbox) {
        let name = format!("later-{}.json", self.later.get());
        self.later.set(self.later.get() + 1);
        sandbox.write(&format!("d/{name}"), session(&name, &[]));
        assert_eq!(self.next(), format!("{name} added"));
    }

    /// Ends it as Ctrl-C does, and gives what it said in the end.
    #[cfg(unix)]
    fn interrupt(self, signal: &str) -> String {
        let id = self.child.id().to_string();
        assert!(std::process::Command::new("kill").args([signal, &id]).status().unwrap().success());
        self.end().expect(0).stderr
    }

    fn end(mut self) -> Ran {
        let mut stderr = String::new();
        self.said.read_to_string(&mut stderr).unwrap();
        let status = self.child.wait().unwrap().code().unwrap_or(-1);
        Ran { status, stdout: self.lines.iter().collect(), stderr }
    }
}

fn lines_of(stdout: ChildStdout) -> Receiver<String> {
    let (sender, lines) = mpsc::channel();
    std::thread::spawn(move || {
        for line in BufReader::new(stdout).lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    lines
}

#[cfg(unix)]
#[test]
fn a_slow_writer_is_waited_for() {
    let text = session("slow", &[("p", "r")]);
    let (sandbox, watch) = Watch::while_nothing_settles(
        &[],
        |_| (),
        |sandbox| {
            let mut file = fs::File::create(sandbox.path("d/slow.json")).unwrap();
            for piece in text.as_bytes().chunks(text.len() / 4) {
                file.write_all(piece).unwrap();
                std::thread::sleep(Duration::from_millis(150));
            }
        },
    );
    assert_eq!(watch.next(), "slow.json added", "half of it was never looked at");
    watch.is_silent(&sandbox);
    assert!(watch.interrupt("-INT").contains("2 added, 0 seen again, 0 new captures, 0 rejected;"));
}

#[cfg(unix)]
#[test]
fn half_a_document_is_told_once_and_tried_again_when_it_changes() {
    let sandbox = Sandbox::new();
    let watch = Watch::start(&sandbox, &[]);
    let text = session("half", &[("p", "r")]);
    let path = sandbox.write("d/model_io.json", &text[..text.len() / 2]);
    assert_eq!(watch.next(), "model_io.json rejected");
    watch.is_silent(&sandbox);
    let mut file = fs::File::options().append(true).open(&path).unwrap();
    file.write_all(&text.as_bytes()[text.len() / 2..]).unwrap();
    assert_eq!(watch.next(), "model_io.json added");
    assert!(watch.interrupt("-TERM").contains("2 added, 0 seen again, 0 new captures, 1 rejected;"));
}

#[cfg(unix)]
#[test]
fn a_log_that_grows_is_taken_each_time_it_has_settled() {
    let sandbox = Sandbox::new();
    let whole = fs::read(crate::sandbox::repository("examples/trace.ndjson")).unwrap();
    let part = fs::read(crate::sandbox::repository("examples/trace-partial.ndjson")).unwrap();
    let watch = Watch::start(&sandbox, &[]);
    let path = sandbox.write("d/trace.ndjson", &part);
    assert_eq!(watch.next(), "trace.ndjson added");
    fs::write(&path, &whole).unwrap();
    assert_eq!(watch.next(), "trace.ndjson added");
    watch.interrupt("-INT");
    assert_eq!(sandbox.run(["find", "traces", "--all-versions", "--json"]).expect(0).json().len(), 2);
}

/// Sets when a file was written.
fn written(path: &std::path::Path, ago: Duration) {
    let now: std::time::SystemTime = runvault::clock::now().into();
    fs::File::options().append(true).open(path).unwrap().set_modified(now - ago).unwrap();
}

#[cfg(target_os = "linux")]
#[test]
fn a_writer_that_pauses_with_the_file_open_loses_no_record() {
    let sandbox = Sandbox::new();
    let all = steps("run", 3);
    fs::create_dir(sandbox.path("d")).unwrap();
    let path = sandbox.path("d/run.ndjson");
    let mut file = fs::File::create(&path).unwrap();
    file.write_all(all[0].as_bytes()).unwrap();
    // No trace has to rest, but this one is open.
    let watch = Watch::settling(&sandbox, "20ms", &["--move", "--settle-traces", "0"]);
    assert_eq!(watch.next_moved(), "run.ndjson added false");
    for line in &all[1..] {
        // Whoever writes goes on after the pause in which the file settled.
        file.write_all(line.as_bytes()).unwrap();
        assert_eq!(watch.next_moved(), "run.ndjson added false");
    }
    assert_eq!(fs::read_to_string(&path).unwrap(), all.concat());
    drop(file);
    // It is stored and goes as soon as nothing has it open.
    assert_eq!(watch.next_moved(), "run.ndjson present true");
    assert!(!path.exists());
    let said = watch.interrupt("-INT");
    let why = "kept d/run.ndjson: a process has it open for writing";
    assert_eq!(said.matches(why).count(), 1, "it is said once: {said}");
    assert!(said.contains("4 added") && said.contains("1 moved;"), "{said}");
    assert_eq!(sandbox.run(["get", &core(&all[3])]).expect(0).stdout, all.concat());
}

#[cfg(unix)]
#[test]
fn a_trace_goes_once_it_was_not_written_for_long_enough() {
    let sandbox = Sandbox::new();
    let all = steps("run", 2);
    let path = sandbox.write("d/run.ndjson", all[..2].concat());
    written(&path, Duration::from_mins(30));
    let watch = Watch::settling(&sandbox, "20ms", &["--move", "--settle-traces", "1h"]);
    assert_eq!(watch.next_moved(), "run.ndjson added false");
    let grown = sandbox.write("grown.ndjson", all.concat());
    written(&grown, Duration::from_mins(1));
    fs::rename(grown, &path).unwrap();
    assert_eq!(watch.next_moved(), "run.ndjson added false");
    written(&path, Duration::from_mins(61));
    assert_eq!(watch.next_moved(), "run.ndjson present true");
    assert!(!path.exists());
    let said = watch.interrupt("-INT");
    assert!(said.contains("2 added") && said.contains("1 moved;"), "{said}");
}

#[cfg(unix)]
#[test]
fn a_trace_goes_later_without_being_written_again() {
    let sandbox = Sandbox::new();
    let path = sandbox.write("d/run.ndjson", steps("run", 1).concat());
    // Some seconds are left of the hour.
    written(&path, Duration::from_secs(3_597));
    let watch = Watch::settling(&sandbox, "20ms", &["--move", "--settle-traces", "1h"]);
    let first = watch.next_moved();
    // On a machine that does other things, they may be over.
    if first == "run.ndjson added false" {
        assert_eq!(watch.next_moved(), "run.ndjson present true");
    }
    assert!(!path.exists());
    let said = watch.interrupt("-INT");
    assert!(said.contains("1 added") && said.contains("1 moved;"), "{said}");
}

#[cfg(unix)]
#[test]
fn a_trace_that_was_removed_from_the_vault_meanwhile_keeps_its_file() {
    let sandbox = Sandbox::new();
    let all = steps("run", 1);
    let path = sandbox.write("d/run.ndjson", all.concat());
    written(&path, Duration::ZERO);
    let watch = Watch::settling(&sandbox, "20ms", &["--move", "--settle-traces", "1h"]);
    assert_eq!(watch.next_moved(), "run.ndjson added false");
    sandbox.run(["rm", &core(&all[1])]).expect(0);
    // The next document shows that there was another look.
    sandbox.write("d/s.json", session("s", &[]));
    assert_eq!(watch.next_moved(), "s.json added true");
    sandbox.write("d/t.json", session("t", &[]));
    assert_eq!(watch.next_moved(), "t.json added true");
    let said = watch.interrupt("-INT");
    let why = "kept d/run.ndjson: it was removed from the vault after it was stored";
    assert!(said.contains(why) && path.exists(), "{said}");
}

#[cfg(unix)]
#[test]
fn a_writer_that_opens_the_file_for_each_record_loses_none() {
    let sandbox = Sandbox::new();
    let all = steps("run", 3);
    let watch = Watch::settling(&sandbox, "20ms", &["--move", "--settle-traces", "0"]);
    for line in &all {
        // Where the file went, the next record begins another one.
        let mut file =
            fs::File::options().append(true).create(true).open(sandbox.path("d/run.ndjson")).unwrap();
        file.write_all(line.as_bytes()).unwrap();
        drop(file);
        assert_eq!(watch.next_moved(), "run.ndjson added true");
    }
    watch.interrupt("-INT");
    assert_eq!(fs::read_dir(sandbox.path("d")).unwrap().count(), 0);
    assert_eq!(sandbox.run(["get", &core(&all[3])]).expect(0).stdout, all.concat());
    let found = sandbox.run(["find", "traces"]).expect(0);
    assert!(found.stderr.contains("1 trace; 3 shorter versions not shown"), "{}", found.stderr);
}

#[cfg(unix)]
#[test]
fn once_leaves_what_may_grow_for_the_next_time() {
    let sandbox = Sandbox::new();
    let path = sandbox.write("d/run.ndjson", steps("run", 1).concat());
    written(&path, Duration::from_mins(5));
    let ran = sandbox.run(["watch", "--once", "--move", "--json", "d"]).expect(0);
    assert_eq!(ran.json()[0]["moved"], false);
    assert!(
        ran.stderr.contains("1 added") && ran.stderr.contains("0 moved, 1 stored but not moved yet"),
        "{}",
        ran.stderr
    );
    written(&path, Duration::from_mins(15));
    let ran = sandbox.run(["watch", "--once", "--move", "--json", "d"]).expect(0);
    assert_eq!(ran.json()[0]["moved"], true);
    assert!(!path.exists());
}

#[cfg(unix)]
#[test]
fn a_file_from_the_future_is_taken_when_it_was_not_changed_for_long_enough() {
    let sandbox = Sandbox::new();
    let path = sandbox.write("d/s.json", session("s", &[]));
    let future = std::time::SystemTime::UNIX_EPOCH + Duration::from_hours(24 * 365 * 300);
    fs::File::options().append(true).open(&path).unwrap().set_modified(future).unwrap();
    // The system knows when it was changed really.
    let ran = sandbox.run(["watch", "--once", "--settle", "0", "--json", "d"]).expect(0);
    assert_eq!(ran.json()[0]["outcome"], "added");
    let watch = Watch::settling(&sandbox, "20ms", &[]);
    assert_eq!(watch.next(), "s.json present");
    watch.interrupt("-INT");
}

#[test]
fn where_all_times_lie_in_the_future_a_file_is_observed() {
    // The clock of this machine stands long before every file was made.
    let sandbox = Sandbox::at("2001-01-01T00:00:00Z");
    sandbox.write("d/s.json", session("s", &[]));
    let ran = sandbox.run(["watch", "--once", "--settle", "30ms", "--json", "d"]).expect(0);
    assert_eq!(ran.json()[0]["outcome"], "added");
    assert!(!ran.stderr.contains("not settled"), "{}", ran.stderr);
}

#[cfg(unix)]
#[test]
fn a_directory_that_becomes_a_link_is_not_entered() {
    let sandbox = Sandbox::new();
    let watch = Watch::settling(&sandbox, "20ms", &["--move"]);
    sandbox.write("d/s.json", session("s", &[]));
    assert_eq!(watch.next_moved(), "s.json added true");
    let other = sandbox.write("other/precious.json", session("precious", &[]));
    fs::rename(sandbox.path("d"), sandbox.path("away")).unwrap();
    std::os::unix::fs::symlink("other", sandbox.path("d")).unwrap();
    // It says so before it looks the next time.
    let mut said = watch.said;
    let mut line = String::new();
    said.read_line(&mut line).unwrap();
    assert!(line.starts_with("error: cannot scan d: "), "{line}");
    let watch = Watch { said, ..watch };
    fs::remove_file(sandbox.path("d")).unwrap();
    fs::rename(sandbox.path("away"), sandbox.path("d")).unwrap();
    sandbox.write("d/t.json", session("t", &[]));
    assert_eq!(watch.next_moved(), "t.json added true");
    watch.interrupt("-INT");
    assert!(other.exists());
}

#[cfg(unix)]
#[test]
fn a_link_that_is_watched_is_followed() {
    let sandbox = Sandbox::new();
    sandbox.write("real/s.json", session("s", &[]));
    std::os::unix::fs::symlink("real", sandbox.path("d")).unwrap();
    let ran = sandbox.run(["watch", "--once", "--settle", "0", "--move", "--json", "d"]).expect(0);
    assert_eq!(ran.json()[0]["moved"], true);
}

#[cfg(unix)]
#[test]
fn renamed_into_place_removed_and_moved() {
    let (sandbox, watch) = Watch::while_nothing_settles(
        &["--move"],
        |sandbox| {
            sandbox.write("d/old.json", session("old", &[]));
        },
        |sandbox| {
            let ready = sandbox.write("ready", session("renamed", &[]));
            fs::create_dir_all(sandbox.path("d/deep/er")).unwrap();
            fs::rename(ready, sandbox.path("d/deep/er/renamed.json")).unwrap();
            sandbox.write("d/short-lived.json", session("gone", &[]));
            std::thread::sleep(Duration::from_millis(100));
            fs::remove_file(sandbox.path("d/short-lived.json")).unwrap();
        },
    );
    assert_eq!(watch.next(), "old.json added", "what is there already is taken");
    assert_eq!(watch.next(), "renamed.json added");
    watch.is_silent(&sandbox);
    let said = watch.interrupt("-INT");
    assert!(said.contains("3 added") && said.contains("3 moved") && !said.contains("unreadable"), "{said}");
    assert!(!sandbox.path("d/old.json").exists() && !sandbox.path("d/deep/er/renamed.json").exists());
    assert!(sandbox.path("d/deep/er").is_dir(), "directories are not artifacts, and stay");
}

#[cfg(unix)]
#[test]
fn a_pack_is_taken_when_nothing_in_it_changes() {
    let mut files: Vec<_> = fs::read_dir(crate::sandbox::repository("examples/pack"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    // The one that tells that it is a pack comes first, and each comes before the last has settled.
    files.sort_by_key(|path| !path.ends_with("run.json"));
    let (sandbox, watch) = Watch::while_nothing_settles(
        &[],
        |_| (),
        |sandbox| {
            for path in &files {
                let name = path.file_name().unwrap().to_str().unwrap();
                sandbox.write(&format!("d/p/{name}"), fs::read(path).unwrap());
                std::thread::sleep(Duration::from_millis(120));
            }
        },
    );
    assert_eq!(watch.next(), "p added");
    watch.is_silent(&sandbox);
    watch.interrupt("-INT");
    let count = sandbox.run(["find", "--json"]).expect(0).json().len();
    assert_eq!(count, 3, "the pack, its session and the document that came later");
}

#[cfg(unix)]
#[test]
fn only_what_is_new() {
    let sandbox = Sandbox::new();
    sandbox.write("d/old.json", session("old", &[]));
    let watch = Watch::start(&sandbox, &["--new-only"]);
    sandbox.write("d/new.json", session("new", &[]));
    assert_eq!(watch.next(), "new.json added");
    sandbox.write("d/old.json", session("not so old", &[]));
    assert_eq!(watch.next(), "old.json added");
    watch.interrupt("-INT");
}

#[cfg(unix)]
#[test]
fn the_vault_in_the_directory_is_left_alone() {
    let sandbox = Sandbox::new();
    fs::create_dir(sandbox.path("d")).unwrap();
    sandbox.write("d/s.json", session("s", &[]));
    let mut command = sandbox.command();
    command.env("RUNVAULT_VAULT", sandbox.path("d/v.vault"));
    command.args(["watch", "--create", "--json", "--interval", "20ms", "--settle", "100ms", "-v", "d"]);
    let watch = Watch::of(command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap());
    assert_eq!(watch.next(), "s.json added");
    watch.is_silent(&sandbox);
    let said = watch.interrupt("-INT");
    assert!(said.contains("2 added") && !said.contains("skipped"), "{said}");
}

#[cfg(unix)]
#[test]
fn ten_thousand_files_and_an_interrupt_in_the_middle() {
    const FILES: usize = 10_000;
    let sandbox = Sandbox::new();
    for number in 0..FILES {
        sandbox.write(
            &format!("d/{}/{number}.json", number % 10),
            session(&format!("a-{number}"), &[("p", "r")]),
        );
    }
    let watch = Watch::settling(&sandbox, "1ms", &[]);
    watch.next();
    let said = watch.interrupt("-INT");
    let stored = sandbox.run(["find", "--json"]).expect(0).json().len();
    // What it says is what is stored, and none of it is half there.
    assert!(said.contains(&format!("{stored} added")) && (1..FILES).contains(&stored), "{stored} {said}");
    sandbox.run(["fsck", "--quick"]).expect(0);
    let ran = sandbox.run(["watch", "--once", "--settle", "1ms", "--json", "d"]).expect(0);
    let all = ran.json();
    assert_eq!(all.iter().filter(|line| line["outcome"] == "added").count(), FILES - stored);
    assert_eq!(sandbox.run(["find", "--json"]).expect(0).json().len(), FILES);
}

#[test]
fn once_takes_what_has_settled_and_ends() {
    let sandbox = Sandbox::new();
    written(&sandbox.write("d/s.json", session("s", &[])), Duration::ZERO);
    let hasty = sandbox.run(["watch", "--once", "--settle", "1h", "d"]).expect(0);
    assert!(
        hasty.stderr.contains("0 added") && hasty.stderr.contains("1 has not settled yet"),
        "{}",
        hasty.stderr
    );
    written(&sandbox.path("d/s.json"), Duration::from_secs(1));
    written(&sandbox.write("d/bad.rpk", "{}"), Duration::from_secs(1));
    let ran = sandbox.run(["watch", "--once", "--settle", "10ms", "d"]).expect(1);
    assert!(
        ran.stdout.starts_with("added ") && ran.stderr.contains("rejected run pack d/bad.rpk"),
        "{}",
        ran.stderr
    );
    let again = sandbox.run(["watch", "--once", "--settle", "10ms", "--json", "d"]).expect(1).json();
    assert_eq!(again[0]["outcome"], "present");
}

#[test]
fn what_is_added_can_be_searched_if_that_is_set() {
    let sandbox = Sandbox::new();
    sandbox.run(["config", "set", "search", "on"]).expect(0);
    sandbox.write("d/s.json", session("s", &[("p", "a telling answer")]));
    sandbox.run(["watch", "--once", "--settle", "0", "d"]).expect(0);
    assert_eq!(sandbox.run(["search", "telling", "--json"]).expect(0).json().len(), 1);
}

#[test]
fn what_cannot_be_watched_is_told_at_once() {
    let sandbox = Sandbox::without_vault();
    sandbox.write("file", "");
    let ran = sandbox.run(["watch", "missing"]).expect(2);
    assert!(ran.stderr.contains("cannot watch missing: "), "{}", ran.stderr);
    let ran = sandbox.run(["watch", "file"]).expect(2);
    assert!(ran.stderr.contains("it is not a directory; \"runvault add\" adds a file"), "{}", ran.stderr);
    assert!(!sandbox.vault().exists());
    for wrong in ["-1", "2x", "", "25h", "nan"] {
        sandbox.run(["watch", "--settle", wrong, "."]).expect(3);
    }
}

#[cfg(unix)]
#[test]
fn a_vault_that_is_removed_or_replaced_gets_nothing_more() {
    for replaced in [false, true] {
        let sandbox = Sandbox::new();
        let watch = Watch::start(&sandbox, &["--move"]);
        sandbox.write("d/first.json", session("first", &[]));
        assert_eq!(watch.next(), "first.json added");
        let vault = sandbox.vault();
        for ending in ["", "-wal", "-shm"] {
            let _ = fs::remove_file(format!("{}{ending}", vault.display()));
        }
        // Held open, so that it has a log.
        let other = replaced.then(|| runvault::Vault::open_or_create(&vault).unwrap());
        if replaced {
            sandbox.add([sandbox.write("other.json", session("other", &[]))]);
        }
        let log = format!("{}-wal", vault.display());
        assert_eq!(fs::exists(&log).unwrap(), replaced);
        sandbox.write("d/second.json", session("second", &[]));
        let ran = watch.end().expect(2);
        assert!(ran.stderr.contains("was removed or replaced"), "{}", ran.stderr);
        assert!(sandbox.path("d/second.json").exists());
        assert_eq!(fs::exists(&log).unwrap(), replaced, "it is the log of the other vault");
        drop(other);
    }
}

/// With entries in the file, with entries only in the log, and without any entry.
#[cfg(unix)]
#[test]
fn a_vault_that_is_overwritten_by_another_one_gets_nothing_more() {
    for (before, since) in [(1, 1), (0, 1), (1, 0), (0, 0)] {
        let sandbox = Sandbox::new();
        let other = Sandbox::new();
        let cores = other.add([other.write("other.json", session("other", &[("p", "r")]))]);
        for number in 0..before {
            sandbox.add([sandbox.write(&format!("{number}.json"), session(&number.to_string(), &[]))]);
        }
        let watch = Watch::start(&sandbox, &["--move"]);
        for number in 0..since {
            sandbox.write(&format!("d/{number}.json"), session(&format!("since {number}"), &[]));
            assert_eq!(watch.next(), format!("{number}.json added"));
        }
        // Not in this process: it would change the locks of vaults that are open here.
        let copied = std::process::Command::new("cp").arg(other.vault()).arg(sandbox.vault()).status();
        assert!(copied.unwrap().success());
        sandbox.write("d/last.json", session("last", &[]));
        let ran = watch.end().expect(2);
        assert!(ran.stderr.contains("overwritten with another vault"), "{before} {since}: {}", ran.stderr);
        assert!(sandbox.path("d/last.json").exists());
        // The other vault is as it was copied.
        assert_eq!(sandbox.run(["fsck"]).expect(0).stdout, "");
        let found = sandbox.run(["find", "--json"]).expect(0).json();
        assert_eq!(found.len(), 1, "{before} {since}");
        assert_eq!(found[0]["core_hash"], cores[0].as_str());
    }
}

/// Started when the disk is full already: with a vault, and without one that it could create.
#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_waited_for_from_the_start() {
    for has_vault in [true, false] {
        let sandbox = if has_vault { Sandbox::new() } else { Sandbox::without_vault() };
        sandbox.write("d/s.json", session("s", &[("p", "r")]));
        let program = program();
        let script = format!(
            "trap '' XFSZ; ulimit -S -f 0; exec {program} watch --create --json --interval 20ms --settle 50ms d"
        );
        let mut command = std::process::Command::new("sh");
        command.args(["-c", &script]).current_dir(sandbox.path("")).env("RUNVAULT_VAULT", sandbox.vault());
        command.env("RUNVAULT_CONFIG", sandbox.path("config.toml"));
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut said = BufReader::new(child.stderr.take().unwrap());
        let mut line = || {
            let mut line = String::new();
            said.read_line(&mut line).unwrap();
            line
        };
        // A vault that is there can be read, so it is only when something is to be stored that nothing can be.
        if has_vault {
            assert!(line().starts_with("watching d"));
        }
        let (error, waits) = (line(), line());
        assert!(
            error.starts_with("error: ") && waits.contains("retrying until everything is stored"),
            "{error}{waits}"
        );
        let lifted = std::process::Command::new("prlimit")
            .args(["--pid", &child.id().to_string(), "--fsize=unlimited"])
            .status();
        if !lifted.is_ok_and(|status| status.success()) {
            child.kill().unwrap();
            child.wait().unwrap();
            return;
        }
        assert_eq!(line(), "continuing\n");
        let lines = lines_of(child.stdout.take().unwrap());
        let watch = Watch { child, lines, said, later: Cell::default() };
        assert_eq!(watch.next(), "s.json added");
        watch.interrupt("-INT");
    }
}

/// A full disk: nothing may be written beyond a limit, which is lifted later.
#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_waited_for() {
    let sandbox = Sandbox::new();
    sandbox.add([sandbox.write("s.json", session("s", &[]))]);
    let numbers = (0..400_000_u32).map(|number| number.wrapping_mul(2_654_435_761));
    let noise: Vec<String> = numbers.map(|number| format!("{number:08x}")).collect();
    let noise = noise.concat();
    let program = program();
    let script = format!(
        "trap '' XFSZ; ulimit -S -f 600; exec {program} watch --json --interval 20ms --settle 100ms d"
    );
    fs::create_dir(sandbox.path("d")).unwrap();
    let mut command = std::process::Command::new("sh");
    command.args(["-c", &script]).current_dir(sandbox.path("")).env("RUNVAULT_VAULT", sandbox.vault());
    command.env("RUNVAULT_CONFIG", sandbox.path("config.toml"));
    let mut watch = Watch::of(command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap());
    sandbox
        .write("d/big.json", session("big", &[("p", &noise[..900_000]), ("q", &noise[900_000..1_800_000])]));
    let said = watch.says("retrying");
    assert!(said.contains("error: "), "{said}");
    assert!(watch.lines.try_recv().is_err(), "nothing is stored yet");
    let id = watch.child.id().to_string();
    let lifted = std::process::Command::new("prlimit").args(["--pid", &id, "--fsize=unlimited"]).status();
    if lifted.is_ok_and(|status| status.success()) {
        assert_eq!(watch.next(), "big.json added");
        let said = watch.interrupt("-INT");
        assert!(said.contains("continuing"), "{said}");
    } else {
        watch.interrupt("-KILL");
    }
}

#[cfg(unix)]
#[test]
fn damaged_bytes_are_restored_before_a_file_goes_and_those_of_attachments_alone() {
    let damage = |sandbox: &Sandbox, digest: &str| {
        let change = "UPDATE payload SET encoding = 0, bytes = zeroblob(length(bytes))
                       WHERE blob = (SELECT id FROM blob WHERE lower(hex(digest)) = ?1)";
        let vault = crate::fsck::sql(sandbox);
        assert_eq!(vault.execute(change, [digest]).unwrap(), 1);
    };
    let sandbox = Sandbox::new();
    let content = "beside\n".repeat(200);
    let digest = runvault::digest::Digest::from_content(content.as_bytes());
    let output = json!({"files": [{"path": "beside.txt", "sha256": digest.to_string()}]});
    let run = run_pack("run-1", &[json!({"type": "tool.response", "output": output})]);
    sandbox.write("d/beside.txt", &content);
    sandbox.write("d/run.rpk", &run);
    sandbox.run(["add", "d"]).expect(0);
    let stored = runvault::digest::Digest::from_content(run.as_bytes());
    for damaged in [stored, digest] {
        damage(&sandbox, &damaged.hex());
        sandbox.run(["fsck"]).expect(1);
        sandbox.write("d/run.rpk", &run);
        let ran = sandbox.run(["watch", "--once", "--move", "--settle", "0", "--json", "d"]).expect(0);
        let line = ran.json().remove(0);
        assert_eq!((&line["outcome"], &line["moved"]), (&json!("restored"), &json!(true)), "{line}");
        assert!(!sandbox.path("d/run.rpk").exists() && sandbox.path("d/beside.txt").exists());
        assert_eq!(sandbox.run(["fsck"]).expect(0).stdout, "");
        let bytes = if damaged == digest { &content } else { &run };
        assert_eq!(&sandbox.run(["get", &damaged.to_string()]).expect(0).stdout, bytes);
    }
}

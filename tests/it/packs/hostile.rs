//! Hostile directories and archives.

use std::path::Path;

use super::{Part, Sort, gzip, other, part, run, tar_of, verdict, zip_of};
use crate::conformance::{admit_directory, corpus};
use crate::sandbox::Sandbox;
use serde_json::Value;

fn good() -> Vec<Part> {
    vec![part("run.json", run().to_string())]
}

fn with(parts: impl IntoIterator<Item = Part>) -> Vec<Part> {
    good().into_iter().chain(parts).collect()
}

fn rules(sandbox: &Sandbox, bytes: Vec<u8>) -> Vec<String> {
    let found = verdict(&sandbox.write("hostile", bytes)).unwrap_err();
    found.into_iter().map(|(rule, path)| format!("{rule} {path}")).collect()
}

#[test]
fn entries_that_lead_elsewhere_are_violations() {
    let sandbox = Sandbox::new();
    assert!(verdict(&sandbox.write("good", zip_of(&good()))).is_ok());
    for (parts, expected) in [
        (with([part("../escape", "x")]), vec!["PK2 ../escape", "PK7 ../escape"]),
        (with([part("a/../../escape", "x")]), vec!["PK2 a/../../escape", "PK7 a/../../escape"]),
        (with([part("/etc/passwd", "x")]), vec!["PK2 /etc/passwd", "PK7 /etc/passwd"]),
        (with([part("..\\run.json", "x")]), vec!["PK2 ..\\run.json", "PK7 ..\\run.json"]),
        (with([other("policy.json", Sort::Link)]), vec!["PK6 policy.json"]),
        (with([part("Policy.json", "x")]), vec!["PK2 Policy.json"]),
        (with([part("a/b/meta.json", "{}")]), vec!["PK12 a", "PK2 a"]),
        (with([part("\u{1b}[2Jmeta.json", "x")]), vec!["PK2 \u{1b}[2Jmeta.json"]),
    ] {
        assert_eq!(rules(&sandbox, tar_of(&parts)), expected);
        assert_eq!(rules(&sandbox, zip_of(&parts)), expected);
        assert_eq!(rules(&sandbox, gzip(&tar_of(&parts))), expected);
    }
    let device = with([other("meta.json", Sort::Device)]);
    assert_eq!(rules(&sandbox, tar_of(&device)), ["PK12 meta.json"]);
    let twice = with([part("run.json", run().to_string())]);
    assert_eq!(rules(&sandbox, tar_of(&twice)), ["PK15 run.json"]);
}

#[test]
fn control_characters_do_not_reach_the_terminal() {
    let sandbox = Sandbox::new();
    sandbox.write("p.tar", tar_of(&with([part("\u{1b}[2Jmeta.json", "x")])));
    let ran = sandbox.run(["verify", "p.tar"]).expect(1);
    assert!(!ran.stdout.contains('\u{1b}') && ran.stdout.contains("\\u{1b}[2Jmeta.json"), "{}", ran.stdout);
    let json = sandbox.run(["verify", "--json", "p.tar"]).expect(1);
    assert!(!json.stdout.contains('\u{1b}'));
}

/// A zip file in which an entry stands twice: this writer makes none, so a name of the same length is changed.
#[test]
fn zip_files_with_an_entry_twice_are_refused() {
    let sandbox = Sandbox::new();
    let mut bytes = zip_of(&with([part("rum.json", "{}")]));
    let places: Vec<usize> =
        bytes.windows(8).enumerate().filter(|(_, name)| *name == b"rum.json").map(|(at, _)| at).collect();
    assert_eq!(places.len(), 2);
    for at in places {
        bytes[at + 2] = b'n';
    }
    assert_eq!(rules(&sandbox, bytes), ["DOC2 "]);
}

#[test]
fn bombs_end_in_a_clear_error() {
    let sandbox = Sandbox::new();
    let note = |bytes: usize| part("meta.json", format!("\"{}\"", " ".repeat(bytes)));
    let zeros = with([note(64 << 20)]);
    for bytes in [zip_of(&zeros), gzip(&tar_of(&zeros))] {
        sandbox.write("bomb", bytes);
        let ran = sandbox.run(["add", "bomb"]).expect(1);
        assert!(ran.stderr.contains("more than 200 times its size"), "{}", ran.stderr);
    }
    let large = with([note(3 << 20)]);
    for bytes in [zip_of(&large), gzip(&tar_of(&large)), tar_of(&large)] {
        sandbox.write("large", bytes);
        let ran = sandbox.run(["add", "--max-size", "2M", "large"]).expect(1);
        assert!(ran.stderr.contains("limit of 2097152") && ran.stderr.contains("DOC5"), "{}", ran.stderr);
        sandbox.run(["verify", "--max-size", "4M", "large"]).expect(0);
    }
}

#[test]
fn very_many_entries_are_not_looked_at() {
    let sandbox = Sandbox::new();
    let many: Vec<Part> = (0..10_001).map(|number| part(&format!("{number}"), "")).collect();
    for bytes in [zip_of(&many), tar_of(&many), gzip(&tar_of(&many))] {
        assert_eq!(rules(&sandbox, bytes), ["DOC5 "]);
    }
    // One that only claims to have them, at both places where it can.
    let mut claims = zip_of(&good());
    let end = claims.len() - 22;
    claims[end + 8..end + 12].copy_from_slice(&[0x28, 0x27, 0x28, 0x27]);
    assert_eq!(rules(&sandbox, claims.clone()), ["DOC5 "]);
    claims[end + 8..end + 12].copy_from_slice(&[1, 0, 0xff, 0xff]);
    assert_eq!(rules(&sandbox, claims), ["DOC5 "]);
    for number in 0..=10_000 {
        sandbox.write(&format!("wide/{number}"), "");
    }
    sandbox.write("wide/run.json", run().to_string());
    let found = admit_directory(&sandbox.path("wide")).unwrap_err();
    assert_eq!(found.violations()[0].rule_id, "DOC5");
}

#[test]
fn what_was_cut_off_does_not_get_in() {
    let sandbox = Sandbox::new();
    let parts = with([part("meta.json", "{\"note\": \"the last member\"}")]);
    let tar = tar_of(&parts);
    for (bytes, step) in [(zip_of(&parts), 7), (gzip(&tar), 7), (tar, 256)] {
        let kept = sandbox.write("whole", &bytes);
        assert!(verdict(&kept).is_ok());
        // The end of a tar file is one empty block and padding.
        let end = if step == 256 { bytes.len() - 512 } else { bytes.len() };
        for length in (1..end).step_by(step) {
            let cut = sandbox.write("cut", &bytes[..length]);
            assert!(verdict(&cut).is_err(), "{length} of {}", bytes.len());
        }
        for at in (0..bytes.len()).step_by(11) {
            let mut changed = bytes.clone();
            changed[at] ^= 0x55;
            // Whatever comes of it, it comes to an end, and a member that changed is another pack.
            let _ = verdict(&sandbox.write("changed", changed));
        }
    }
}

#[test]
fn other_archives_are_no_packs() {
    let sandbox = Sandbox::new();
    let parts = [part("src/main.rs", "fn main() {}"), part("README.md", "hello")];
    for (name, bytes) in [("x.zip", zip_of(&parts)), ("x.tgz", gzip(&tar_of(&parts)))] {
        sandbox.write(&format!("walked/{name}"), &bytes);
        sandbox.write(name, &bytes);
        let ran = sandbox.run(["verify", name]).expect(1);
        assert!(ran.stdout.contains("(rule KIND)"), "{}", ran.stdout);
    }
    sandbox.write("walked/good.bin", gzip(&tar_of(&good())));
    let ran = sandbox.run(["add", "--json", "walked"]).expect(0);
    let lines = ran.json();
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert_eq!(lines[0]["path"], "walked/good.bin");
    assert!(ran.stderr.contains("2 other files skipped"), "{}", ran.stderr);
}

#[test]
fn a_broken_archive_in_a_directory_is_not_passed_over() {
    let sandbox = Sandbox::new();
    let parts = with([part("bundle.json", "{}")]);
    let zip = zip_of(&parts);
    let tar = gzip(&tar_of(&parts));
    let mut flipped = zip.clone();
    flipped[45] ^= 1;
    sandbox.write("walked/cut.zip", &zip[..zip.len() / 2]);
    sandbox.write("walked/cut.tgz", &tar[..tar.len() - 20]);
    sandbox.write("walked/flipped.zip", flipped);
    let others = zip_of(&[part("src/main.rs", "fn main() {}")]);
    sandbox.write(
        "walked/other.tgz",
        &gzip(&tar_of(&[part("src/main.rs", "fn main() {}"), part("a", "b")]))[..100],
    );
    sandbox.write("walked/other.zip", [&others[..], b"trailing"].concat());
    let ran = sandbox.run(["add", "--json", "walked"]).expect(1);
    let rejected: Vec<Value> = ran.json().iter().map(|line| line["path"].clone()).collect();
    assert_eq!(rejected, ["walked/cut.tgz", "walked/cut.zip", "walked/flipped.zip"]);
    assert!(ran.stderr.contains("2 other files skipped"), "{}", ran.stderr);
}

/// A tar entry with its header written by hand.
fn raw_entry(path: &str, sort: u8, content: &[u8]) -> Vec<u8> {
    let mut header = tar::Header::new_ustar();
    header.as_old_mut().name[..path.len()].copy_from_slice(path.as_bytes());
    header.set_mode(0o644);
    header.set_size(content.len() as u64);
    header.as_old_mut().linkflag = [sort];
    header.set_cksum();
    let mut bytes = [header.as_bytes(), content].concat();
    bytes.resize(bytes.len().next_multiple_of(512), 0);
    bytes
}

#[test]
fn links_and_devices_are_violations_whatever_their_names() {
    let sandbox = Sandbox::new();
    let text = run().to_string();
    for path in ["top/", "./", "."] {
        for sort in [b'2', b'1', b'3', b'6'] {
            let inside = if path == "top/" { "top/run.json" } else { "run.json" };
            let entries =
                [raw_entry(path, sort, b""), raw_entry(inside, b'0', text.as_bytes()), vec![0; 1024]];
            let found = rules(&sandbox, entries.concat());
            assert!(found.iter().any(|rule| rule.starts_with("PK2 ")), "{path} {sort}: {found:?}");
        }
    }
    let slash =
        [raw_entry("run.json", b'0', text.as_bytes()), raw_entry("meta.json/", b'2', b""), vec![0; 1024]];
    assert_eq!(rules(&sandbox, slash.concat()), ["PK6 meta.json"]);
}

#[test]
fn names_of_any_length_take_no_memory_and_no_screen() {
    let sandbox = Sandbox::new();
    let text = run().to_string();
    for (sort, name) in [(b'L', "a/".repeat(1 << 20)), (b'L', "x".repeat(5000)), (b'x', "y".repeat(1 << 20))]
    {
        let long = raw_entry("long", sort, name.as_bytes());
        let bytes = [long, raw_entry("run.json", b'0', text.as_bytes()), vec![0; 1024]].concat();
        for bytes in [gzip(&bytes), bytes] {
            assert_eq!(rules(&sandbox, bytes), ["DOC5 "]);
        }
    }
    assert_eq!(rules(&sandbox, zip_of(&with([part(&"z".repeat(5000), "")]))), ["DOC5 "]);
}

/// What one program reads as a good pack, and another as something else.
#[test]
fn archives_that_programs_read_differently_are_refused() {
    let sandbox = Sandbox::new();
    let text = run().to_string();
    let file = || raw_entry("run.json", b'0', text.as_bytes());
    let end = || vec![0; 1024];
    assert!(verdict(&sandbox.write("good", [file(), end()].concat())).is_ok());
    let comment = raw_entry("pax", b'g', b"15 comment=abc\n");
    assert!(verdict(&sandbox.write("good", [comment, file(), end()].concat())).is_ok());
    for bytes in [
        [file(), end(), file(), end()].concat(),
        [raw_entry("pax", b'g', b"19 path=other.json\n"), file(), end()].concat(),
        [raw_entry("pax", b'x', b"26 GNU.sparse.size=100000\n"), file(), end()].concat(),
        [raw_entry("pax", b'x', b"28 size=99999999999999999999\n"), file(), end()].concat(),
    ] {
        assert_eq!(rules(&sandbox, bytes), ["DOC2 "]);
    }
    let zip = zip_of(&good());
    let mut renamed = zip.clone();
    renamed[30..38].copy_from_slice(b"evil.exe");
    for bytes in [renamed, [&zip[..], &zip].concat(), [&zip[..], b"more"].concat()] {
        assert_eq!(rules(&sandbox, bytes), ["DOC2 "]);
    }
}

#[cfg(unix)]
fn fifo(path: &Path) {
    assert!(std::process::Command::new("mkfifo").arg(path).status().unwrap().success());
}

#[cfg(unix)]
#[test]
fn pipes_and_links_in_directories_are_never_opened() {
    let found = |name: &str| {
        let sandbox = Sandbox::new();
        sandbox.write("p/run.json", run().to_string());
        fifo(&sandbox.path("p").join(name));
        let report = admit_directory(&sandbox.path("p")).unwrap_err();
        let found = report.violations().iter();
        found.map(|violation| format!("{} {}", violation.rule_id, violation.path)).collect::<Vec<_>>()
    };
    assert_eq!(found("meta.json"), ["PK12 meta.json"]);
    assert_eq!(found("pipe"), ["PK12 pipe", "PK2 pipe"]);
    assert_eq!(found("ledger.jsonl"), ["PK12 ledger.jsonl", "PK9 ledger.jsonl"]);
    assert_eq!(found("policy.json"), ["PK12 policy.json", "PK8 policy.json"]);
    assert_eq!(found("bundle.json"), ["PK12 bundle.json"]);
}

#[cfg(unix)]
#[test]
fn what_is_no_directory_is_no_pack() {
    let sandbox = Sandbox::new();
    std::os::unix::fs::symlink(corpus().join("pack/minimal-bundle"), sandbox.path("link")).unwrap();
    sandbox.write("file", "{}");
    for path in ["link", "file", "missing"] {
        let line = sandbox.run(["verify", "--json", "--kind", "pack", path]).expect(1).json().remove(0);
        assert_eq!(line["violations"].as_array().unwrap().len(), 1);
        assert_eq!(
            (&line["violations"][0]["rule_id"], &line["violations"][0]["path"]),
            (&"IO".into(), &path.into())
        );
    }
    let line = sandbox.run(["verify", "--json", "link"]).expect(1).json().remove(0);
    assert_eq!(line["violations"][0]["rule_id"], "IO");
}

#[test]
fn a_pack_may_be_named_by_any_path() {
    let sandbox = Sandbox::new();
    sandbox.write("d/p/run.json", run().to_string());
    sandbox.write("d/q/run.json", run().to_string().replace("strict", "lax"));
    let absolute = sandbox.path("d/./p/../p").into_os_string().into_string().unwrap();
    let within = |arguments: &[&str]| {
        let mut command = sandbox.command();
        command.current_dir(sandbox.path("d/q")).env("RUNVAULT_VAULT", sandbox.vault());
        let ran = command.args(arguments).output().unwrap();
        crate::sandbox::Ran::from(ran)
    };
    for name in ["../p", "./../p/", "..//p/.", "../../d/p", &absolute, "."] {
        within(&["verify", name]).expect(0);
        within(&["add", "--kind", "pack", name]).expect(0);
    }
    assert_eq!(sandbox.run(["find", "--json"]).expect(0).json().len(), 2);
    for (one, other, status) in [("../p", ".", 1), ("./", "../q", 0), ("../p/", "../../d/p", 0)] {
        within(&["diff", one, other]).expect(status);
    }
}

#[test]
fn a_directory_of_sessions_is_no_pack() {
    let sandbox = Sandbox::new();
    let session = crate::sandbox::session("a", &[("hello", "hi")]);
    sandbox.write("d/model_io.json", &session);
    sandbox.write("d/meta.json", "{}");
    sandbox.write("d/policy.json", "{}");
    // Documents of other kinds do not count, whatever they are called.
    sandbox.write("d/run.json", &session);
    sandbox.write("d/bundle.json", &session);
    let lines = sandbox.run(["add", "--json", "d"]).expect(0).json();
    assert_eq!(lines.len(), 3);
    assert!(lines.iter().all(|line| line["kind"] == "model_io"));
}

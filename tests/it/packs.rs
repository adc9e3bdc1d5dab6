//! Packs: in as directories and archives, out as both, and nothing else in or out.

mod hostile;
mod linked;

use std::io::{Cursor, Write};
use std::path::{Path, PathBuf};

use runvault::artifact::MemberBytes;
use runvault::digest::Digest;
use runvault::formats;
use runvault::intake::archive::{self, ArchiveFormat};
use runvault::intake::{self, DocumentVerdict, ExamineOptions, InputItem};
use serde_json::{Value, json};

use crate::conformance::{corpus, pack};
use crate::sandbox::Sandbox;

const FORMATS: [(ArchiveFormat, &str); 4] = [
    (ArchiveFormat::Zip, "p.zip"),
    (ArchiveFormat::Tar, "p.tar"),
    (ArchiveFormat::TarGz, "p.tar.gz"),
    (ArchiveFormat::TarZst, "p.tar.zst"),
];

/// The run of a pack that needs nothing else.
pub(crate) fn run() -> Value {
    json!({
        "run_schema_version": "1.0.0", "run_id": "run-7", "started_at": "", "completed_at": "",
        "kernel_version": "0.1", "policy": {"name": "strict", "version": "2"},
        "intent": {"path": "i.json", "sha256": Digest::from_content(b"intent").to_string()},
        "kernel_result_kind": "REFUSE", "decision": null, "model_mode": "record",
    })
}

/// What an archive is made of: a path, its bytes, and what sort of entry it is.
#[derive(Clone)]
pub(crate) struct Part {
    path: String,
    bytes: Vec<u8>,
    sort: Sort,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Sort {
    File,
    Link,
    Directory,
    Device,
}

pub(crate) fn part(path: &str, bytes: impl AsRef<[u8]>) -> Part {
    Part { path: path.to_owned(), bytes: bytes.as_ref().to_vec(), sort: Sort::File }
}

fn other(path: &str, sort: Sort) -> Part {
    Part { path: path.to_owned(), bytes: b"run.json".to_vec(), sort }
}

pub(crate) fn zip_of(parts: &[Part]) -> Vec<u8> {
    let mut zip = zip::ZipWriter::new(Cursor::new(Vec::new()));
    let options = zip::write::SimpleFileOptions::default();
    for part in parts {
        match part.sort {
            Sort::File => {
                zip.start_file(&*part.path, options).unwrap();
                zip.write_all(&part.bytes).unwrap();
            }
            Sort::Link => zip.add_symlink(&*part.path, "run.json", options).unwrap(),
            Sort::Directory => zip.add_directory(&*part.path, options).unwrap(),
            Sort::Device => panic!("this writer makes no devices"),
        }
    }
    zip.finish().unwrap().into_inner()
}

pub(crate) fn tar_of(parts: &[Part]) -> Vec<u8> {
    let mut tar = Vec::new();
    for part in parts {
        let mut header = tar::Header::new_ustar();
        let (sort, bytes): (_, &[u8]) = match part.sort {
            Sort::File => (tar::EntryType::Regular, &part.bytes),
            Sort::Link => (tar::EntryType::Symlink, &[]),
            Sort::Directory => (tar::EntryType::Directory, &[]),
            Sort::Device => (tar::EntryType::Char, &[]),
        };
        header.set_entry_type(sort);
        header.set_size(bytes.len() as u64);
        header.set_mode(0o644);
        // The library's own setter refuses the names that are of interest here.
        header.as_mut_bytes()[..part.path.len()].copy_from_slice(part.path.as_bytes());
        if part.sort == Sort::Link {
            header.set_link_name("run.json").unwrap();
        }
        header.set_cksum();
        tar.extend_from_slice(header.as_bytes());
        tar.extend_from_slice(bytes);
        tar.resize(tar.len().next_multiple_of(512), 0);
    }
    tar.resize(tar.len() + 1024, 0);
    tar
}

pub(crate) fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(bytes).unwrap();
    packed.finish().unwrap()
}

/// The parts of a directory, below `top`.
fn parts_of(directory: &Path, top: &str) -> Vec<Part> {
    let mut paths: Vec<PathBuf> =
        std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let mut parts = Vec::new();
    for path in paths {
        let name = format!("{top}{}", path.file_name().unwrap().to_str().unwrap());
        if path.is_symlink() {
            parts.push(other(&name, Sort::Link));
        } else if path.is_dir() {
            parts.push(other(&format!("{name}/"), Sort::Directory));
            parts.extend(parts_of(&path, &format!("{name}/")));
        } else {
            parts.push(part(&name, std::fs::read(path).unwrap()));
        }
    }
    parts
}

/// Rule ids and paths, or the core and capture hash.
fn verdict(path: &Path) -> Result<(String, String), Vec<(String, String)>> {
    let options = ExamineOptions { kind: formats::named("pack"), ..ExamineOptions::default() };
    match intake::examine(InputItem::Named(path.to_owned()), &options).unwrap() {
        DocumentVerdict::Admitted(admitted) => {
            Ok((admitted.core().to_string(), admitted.capture().to_string()))
        }
        DocumentVerdict::Rejected(rejection) => {
            let found = rejection.report.violations().iter();
            Err(found.map(|violation| (violation.rule_id.to_string(), violation.path.clone())).collect())
        }
        DocumentVerdict::NoArtifact => panic!("{} was passed over", path.display()),
    }
}

fn expected(case: &Value) -> Vec<(String, String)> {
    let violations = case["violations"].as_array().unwrap().iter();
    let text = |violation: &Value, name: &str| violation[name].as_str().unwrap().to_owned();
    violations.map(|violation| (text(violation, "rule_id"), text(violation, "path"))).collect()
}

fn cases() -> Vec<Value> {
    let text = std::fs::read_to_string(corpus().join("expected.jsonl")).unwrap();
    let cases = text.lines().map(|line| serde_json::from_str(line).unwrap());
    cases.filter(|case: &Value| case["kind"] == "pack").collect()
}

#[test]
fn archives_have_the_verdicts_of_directories() {
    let sandbox = Sandbox::new();
    for case in cases() {
        let name = case["case"].as_str().unwrap();
        let (_copy, directory) = pack(name);
        for top in ["", "./", "some-run/"] {
            let parts = parts_of(&directory, top);
            let tar = tar_of(&parts);
            for (file, bytes) in [("p.zip", zip_of(&parts)), ("p.tgz", gzip(&tar)), ("p.tar", tar)] {
                match verdict(&sandbox.write(file, bytes)) {
                    Ok((core, _)) => assert_eq!(case["core_hash"], core, "{name} in {file}"),
                    Err(found) if case["class"].is_null() => {
                        assert_eq!(found, expected(&case), "{name} in {file}");
                    }
                    Err(found) => assert!(!found.is_empty()),
                }
            }
        }
    }
}

#[test]
fn every_accepted_pack_comes_out_byte_for_byte() {
    let sandbox = Sandbox::new();
    for case in cases().iter().filter(|case| case["verdict"] == "accept") {
        let directory = corpus().join(case["case"].as_str().unwrap());
        let line = sandbox
            .run(["add".as_ref(), "--json".as_ref(), directory.as_os_str()])
            .expect(0)
            .json()
            .remove(0);
        assert_eq!(line["core_hash"], case["core_hash"]);
        // Two packs of the corpus are byte forms of one, so the capture is asked for.
        let capture = match intake::examine(
            InputItem::Directory {
                path: directory.clone().into(),
                kind: formats::named("pack").unwrap(),
                named: false,
            },
            &ExamineOptions::default(),
        ) {
            Ok(DocumentVerdict::Admitted(admitted)) => admitted.capture().to_string(),
            other => panic!("{other:?}"),
        };
        let out = sandbox.path(&format!("out-{}", &capture[7..]));
        sandbox.run(["get".as_ref(), capture.as_ref(), "-o".as_ref(), out.as_os_str()]).expect(0);
        let same =
            |parts: Vec<Part>| parts.into_iter().map(|part| (part.path, part.bytes)).collect::<Vec<_>>();
        assert_eq!(same(parts_of(&out, "")), same(parts_of(&directory, "")));
        for (_, file) in FORMATS {
            sandbox.run(["get", &capture, "--force", "-o", file]).expect(0);
            let (core, again) = verdict(&sandbox.path(file)).unwrap();
            assert_eq!((&case["core_hash"], again), (&json!(core), capture.clone()));
            let line = sandbox.run(["add", "--json", file]).expect(0).json().remove(0);
            assert_eq!((&line["outcome"], &line["kind"]), (&json!("present"), &json!("pack")));
        }
        let run = sandbox.run(["get", &capture, "--member", "run.json"]).expect(0).stdout;
        assert_eq!(run.as_bytes(), std::fs::read(directory.join("run.json")).unwrap());
    }
}

#[test]
fn archives_have_the_same_bytes_every_time() {
    let files = [("run.json", "{}"), ("bundle.json", "[]")]
        .map(|(name, text)| MemberBytes { name, bytes: text.as_bytes() });
    let backwards = [files[1], files[0]];
    for (format, name) in FORMATS {
        let written = |files: &[MemberBytes<'_>]| {
            let mut out = Vec::new();
            archive::write(format, files, &mut out).unwrap();
            out
        };
        assert_eq!(written(&files), written(&backwards), "{name}");
        if format == ArchiveFormat::Tar {
            assert_eq!(Digest::from_content(&written(&files)).hex(), TAR);
        }
    }
}

/// The SHA-256 of the tar file of two small members. Tar files contain no compressed data, so it never changes.
const TAR: &str = "43734df01d86ea1c2ac6a98db4afe82d56ea5a279c7cbb72e3b9f296daff28e0";

#[test]
fn what_is_written_can_be_read_however_well_it_compresses() {
    let sandbox = Sandbox::new();
    sandbox.write("p/run.json", run().to_string());
    sandbox.write("p/meta.json", format!("\"{}\"", " ".repeat(17 << 20)));
    let core = sandbox.add([sandbox.path("p")]).remove(0);
    for (_, file) in FORMATS {
        sandbox.run(["get", &core, "-o", file]).expect(0);
        assert_eq!(verdict(&sandbox.path(file)).unwrap().0, core, "{file}");
    }
}

#[test]
fn nothing_is_overwritten_and_nothing_is_left_over() {
    let sandbox = Sandbox::new();
    let directory = corpus().join("pack/minimal-bundle");
    let core = sandbox.add([&directory]).remove(0);
    let hint = sandbox.run(["get", &core]).expect(3).stderr;
    assert!(hint.contains("-o") && hint.contains("--member"), "{hint}");
    sandbox.write("out/patch.json", "stale");
    sandbox.write("out/mine.txt", "mine");
    let refused = sandbox.run(["get", &core, "-o", "out"]).expect(2).stderr;
    assert!(refused.contains("out: it already exists; use --force"), "{refused}");
    let files = |sandbox: &Sandbox| -> Vec<String> {
        parts_of(&sandbox.path("out"), "").into_iter().map(|part| part.path).collect()
    };
    let refused = sandbox.run(["get", &core, "-o", "out", "--force"]).expect(2).stderr;
    assert!(refused.contains("it contains mine.txt"), "{refused}");
    assert_eq!(files(&sandbox), ["mine.txt", "patch.json"]);
    std::fs::remove_file(sandbox.path("out/mine.txt")).unwrap();
    sandbox.run(["get", &core, "-o", "out/", "--force"]).expect(0);
    assert_eq!(files(&sandbox), ["bundle.json", "run.json"]);
    sandbox.run(["get", &core, "-o", "none/out"]).expect(2);
    sandbox.write("file", "mine");
    sandbox.run(["get", &core, "-o", "file", "--force"]).expect(2);
    assert_eq!(std::fs::read(sandbox.path("file")).unwrap(), b"mine");
    sandbox.run(["get", &core, "--member", "patch.json"]).expect(1);
    sandbox.run(["get", &core, "--member", "../run.json"]).expect(1);
    let leftovers = std::fs::read_dir(sandbox.path("")).unwrap().map(|entry| entry.unwrap().file_name());
    assert!(leftovers.into_iter().all(|name| !name.to_string_lossy().starts_with('.')));
}

#[cfg(unix)]
#[test]
fn links_are_not_followed_on_the_way_out() {
    let sandbox = Sandbox::new();
    let core = sandbox.add([corpus().join("pack/minimal-bundle")]).remove(0);
    std::fs::create_dir(sandbox.path("elsewhere")).unwrap();
    std::os::unix::fs::symlink("elsewhere", sandbox.path("link")).unwrap();
    for link in ["link", "link/"] {
        sandbox.run(["get", &core, "-o", link, "--force"]).expect(2);
    }
    assert_eq!(std::fs::read_dir(sandbox.path("elsewhere")).unwrap().count(), 0);
    sandbox.write("victim", "mine");
    std::fs::create_dir(sandbox.path("out")).unwrap();
    std::os::unix::fs::symlink("../victim", sandbox.path("out/run.json")).unwrap();
    sandbox.run(["get", &core, "-o", "out", "--force"]).expect(0);
    assert_eq!(std::fs::read(sandbox.path("victim")).unwrap(), b"mine");
    assert!(!sandbox.path("out/run.json").is_symlink());
}

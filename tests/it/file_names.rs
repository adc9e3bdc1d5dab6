//! File names that are not UTF-8 are stored and printed unchanged.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

use serde_json::Value;

use crate::sandbox::{Ran, Sandbox, session};

const NAME: &[u8] = b"s\xff\xc3(.json";

/// A directory with a document of such a name.
fn with_document() -> (Sandbox, PathBuf) {
    let sandbox = Sandbox::new();
    let directory = sandbox.path("d");
    fs::create_dir(&directory).unwrap();
    fs::write(directory.join(OsStr::from_bytes(NAME)), session("s", &[("p", "r")])).unwrap();
    (sandbox, PathBuf::from("d").join(OsStr::from_bytes(NAME)))
}

fn run(sandbox: &Sandbox, arguments: &[&OsStr]) -> Ran {
    sandbox.command().args(arguments).output().unwrap().into()
}

/// The path that a line of JSON has in `member`, from the bytes beside it.
fn whole(line: &Value, member: &str) -> OsString {
    let bytes = line[format!("{member}_bytes")].as_str().unwrap_or_else(|| panic!("{line}"));
    let bytes = (0..bytes.len()).step_by(2).map(|at| u8::from_str_radix(&bytes[at..at + 2], 16).unwrap());
    let whole = OsString::from_vec(bytes.collect());
    assert_eq!(whole.to_string_lossy(), line[member].as_str().unwrap());
    whole
}

#[test]
fn json_has_the_bytes_of_documents_names() {
    let (sandbox, path) = with_document();
    let os = OsStr::new;
    for arguments in [
        &[os("verify"), os("--json"), path.as_os_str()][..],
        &[os("verify"), os("--json"), os("d")],
        &[os("add"), os("--json"), os("--dry-run"), path.as_os_str()],
        &[os("add"), os("--json"), os("d")],
        &[os("watch"), os("--json"), os("--once"), os("--settle"), os("0"), os("d")],
        &[os("add"), os("--json"), os("--move"), os("d")],
    ] {
        let ran = run(&sandbox, arguments);
        assert_eq!(ran.status, 0, "{}", ran.stderr);
        assert_eq!(whole(&ran.json()[0], "path"), path.as_os_str());
    }
    assert!(!sandbox.path("d").join(OsStr::from_bytes(NAME)).exists());
    // What can be written is written once.
    sandbox.write("a.json", session("t", &[]));
    assert_eq!(sandbox.run(["add", "--json", "a.json"]).expect(0).json()[0].get("path_bytes"), None);
}

#[test]
fn json_has_the_bytes_of_other_files_names() {
    let (sandbox, path) = with_document();
    run(&sandbox, &[OsStr::new("add"), path.as_os_str()]).expect(0);
    let file = |name: &[u8]| OsString::from_vec(name.to_vec());
    let os = OsStr::new;
    let backup = file(b"b\xff.vault");
    let copied = run(&sandbox, &[os("backup"), os("--json"), &backup]).expect(0).json().remove(0);
    assert_eq!(whole(&copied, "path"), backup);
    let saved = file(b"q\xff.sqlite");
    let line = run(&sandbox, &[os("sql"), os("--json"), os("--save"), &saved]).expect(0).json().remove(0);
    assert_eq!(whole(&line, "path"), saved);
    let bundle = file(b"r\xff.rvz");
    run(&sandbox, &[os("export"), os("--all"), os("-o"), &bundle]).expect(0);
    let imported =
        run(&sandbox, &[os("import"), os("--json"), os("--dry-run"), &bundle]).expect(0).json().remove(0);
    assert!(whole(&imported, "path").as_bytes().starts_with(b"r\xff.rvz#"));
    let compared =
        run(&sandbox, &[os("diff"), os("--json"), path.as_os_str(), path.as_os_str()]).expect(0).json();
    assert_eq!(whole(&compared[0]["one"], "name"), path.as_os_str());
    let vault = file(b"v\xff.vault");
    let told: Ran = sandbox
        .command()
        .env("RUNVAULT_VAULT", &vault)
        .args(["config", "list", "--json"])
        .output()
        .unwrap()
        .into();
    let told = told.expect(0).json();
    let told = told.iter().flat_map(|line| line.as_array().cloned().unwrap_or_else(|| vec![line.clone()]));
    let setting = told.into_iter().find(|setting| setting["name"] == "vault").unwrap();
    assert_eq!(whole(&setting, "value"), vault);
}
